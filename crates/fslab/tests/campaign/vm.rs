//! QEMU machine with a shell script as init process, programs of the host, a kernel package, and
//! disks on image files.
//!
//! The serial line transfers the output of the script, and lines from the test to the script.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::AtomicBool,
    time::Duration,
};

use guest::{
    Architecture, Cache, Kernel, KernelQuery,
    initramfs::{self, Contents, Initramfs},
    kvm::{self, Verdict},
    modules::Index,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use crate::{guest::package, support::on_path};

/// busybox, whose applets are available to the script in addition to the listed programs.
const BUSYBOX: &str = "/bin/busybox";
/// Beginning of every script.
const PRELUDE: &str = include_str!("vm.sh");

/// Maximum time between two lines of output.
const SILENCE: Duration = Duration::from_secs(180);

/// Description of a machine.
pub(crate) struct Wanted<'a> {
    /// Programs of the host, by name or absolute path.
    pub(crate) programs: &'a [String],
    /// Kernel modules, loaded in this order.
    pub(crate) modules: &'a [&'a str],
    /// Modules that are loaded if the kernel has them.
    pub(crate) if_there: &'a [&'a str],
    /// Sizes in bytes of the disks `/dev/vda`, `/dev/vdb`, … with the serial numbers `disk-a`,
    /// `disk-b`, …
    pub(crate) disks: &'a [u64],
    /// Additional QEMU arguments.
    pub(crate) arguments: &'a [String],
    /// Script to run.
    pub(crate) script: &'a str,
}

/// Running machine, killed when dropped.
pub(crate) struct Vm {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    directory: TempDir,
    disks: usize,
    /// Complete output, shown if a test fails.
    pub(crate) log: String,
    /// Programs that the host lacks.
    pub(crate) missing: Vec<String>,
}

/// Missing requirements of a machine; `None` if there are none.
pub(crate) fn missing() -> Option<&'static str> {
    let there = package().is_some() && on_path("qemu-system-x86_64") && Path::new(BUSYBOX).exists();
    (!there).then_some("QEMU, a kernel package, and busybox-static")
}

/// Path of an image file of a machine with this directory.
pub(crate) fn image(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("disk-{number}.img"))
}

impl Vm {
    pub(crate) fn boot(wanted: &Wanted<'_>) -> Self {
        let directory = TempDir::with_prefix_in("fslab-test-", "/var/tmp").unwrap();
        let script = directory.path().join("script");
        fs::write(&script, format!("{PRELUDE}\n{}", wanted.script)).unwrap();
        let kernel = kernel();
        let archive = archive(&kernel, wanted, &script);
        let initramfs = directory.path().join("initramfs");
        fs::write(&initramfs, archive.bytes).unwrap();
        let mut command = command(&script);
        command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(&initramfs);
        for (number, size) in wanted.disks.iter().enumerate() {
            let file = image(directory.path(), number);
            File::create_new(&file).unwrap().set_len(*size).unwrap();
            let letter = char::from(b'a' + u8::try_from(number).unwrap());
            command.arg("-drive").arg(format!(
                "file={},if=none,id=d{number},format=raw,cache=writeback,discard=unmap",
                file.display()
            ));
            command.arg("-device");
            command.arg(format!("virtio-blk-pci,drive=d{number},serial=disk-{letter}"));
        }
        command.args(wanted.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let missing = archive.missing.into_keys().collect();
        let (log, disks) = (String::new(), wanted.disks.len());
        Self { child, input, output, directory, disks, log, missing }
    }

    /// Next line of output; `None` after the machine has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        if self.output.buffer().is_empty() {
            let mut files = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
            let ready = poll(&mut files, Timespec::try_from(SILENCE).ok().as_ref()).unwrap();
            assert!(ready > 0, "the machine is silent:\n{}", self.log);
        }
        self.output.read_until(b'\n', &mut line).unwrap();
        let line = String::from_utf8_lossy(&line).into_owned();
        self.log.push_str(&line);
        (!line.is_empty()).then(|| line.trim_end().to_owned())
    }

    /// Sends a line to the script, which waits for it.
    pub(crate) fn go_on(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    /// SHA-256 of each disk.
    pub(crate) fn hashes(&self) -> Vec<String> {
        let images = (0..self.disks).map(|number| image(self.directory.path(), number));
        let output = Command::new("sha256sum").args(images).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }

    /// Directory of the images.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Waits until the machine has powered off.
    pub(crate) fn end(&mut self) {
        while self.line().is_some() {}
        self.child.wait().unwrap();
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// QEMU command without disks.
fn command(script: &Path) -> Command {
    let real = kvm::probe(None) == Verdict::Runs;
    let accelerator = if real { "kvm" } else { "tcg,thread=single" };
    let mut command = Command::new("qemu-system-x86_64");
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none"]);
    command.args(["-no-reboot", "-serial", "stdio", "-M", "q35", "-m", "1024", "-cpu"]);
    command.args(["max,la57=off,erms=off,fsrm=off", "-accel", accelerator, "-append"]);
    command.arg(format!(
        "console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check \
         apparmor=0 audit=0 cryptomgr.notests rdinit=/bin/sh -- {}",
        script.display()
    ));
    command
}

/// Root filesystem: programs, modules, and the script.
fn archive(kernel: &Kernel, wanted: &Wanted<'_>, script: &Path) -> Initramfs {
    let index = kernel.modules.as_ref().map(|at| Index::read(at, Some(&cache())).unwrap());
    let index = index.unwrap_or_else(Index::empty);
    let modules = [&["virtio_pci", "virtio_blk"], wanted.modules].concat();
    let modules = index.order_with(&modules, wanted.if_there).unwrap();
    let mut programs = vec!["sh".to_owned(), BUSYBOX.to_owned()];
    programs.extend_from_slice(wanted.programs);
    initramfs::build(&Contents {
        program: Path::new(BUSYBOX),
        programs: &programs,
        files: &["/etc/mke2fs.conf".to_owned(), script.display().to_string()],
        modules: &modules,
        at_start: &modules,
        on_demand: &index,
        config: "",
    })
    .unwrap()
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels")
}

fn kernel() -> Kernel {
    let package = package().unwrap().display().to_string();
    let interrupt = AtomicBool::new(false);
    let cache = Cache::new(cache());
    Kernel::find(KernelQuery::Text(&package), Architecture::Pc, &cache, &interrupt).unwrap()
}
