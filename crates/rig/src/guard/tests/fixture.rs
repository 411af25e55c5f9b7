//! Loop devices, mounts, swap, and helper processes, each released when its value is dropped.

use std::{
    ffi::OsStr,
    fmt::Debug,
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::guard::{ClaimedDevice, Permission, Refusal, Roots, claim_device};

/// True if the test must be skipped because it requires root. Reports the skip on stderr, and in
/// the file named by `FSLAB_SKIP_LOG`, so that skipped tests are counted.
pub(super) fn lacks_root() -> bool {
    let lacks = !rustix::process::geteuid().is_root();
    if lacks {
        skipped("needs root");
    }
    lacks
}

pub(super) fn skipped(reason: &str) {
    let test = thread::current().name().unwrap_or("?").to_owned();
    writeln!(io::stderr(), "skipped: {reason}").unwrap();
    if let Some(log) = std::env::var_os("FSLAB_SKIP_LOG") {
        let mut log = File::options().create(true).append(true).open(log).unwrap();
        writeln!(log, "{test}: {reason}").unwrap();
    }
}

/// True if the test must be skipped because a program is missing.
pub(super) fn lacks_program(name: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", name]).output().unwrap();
    if !found.status.success() {
        skipped(&format!("needs {name}"));
    }
    !found.status.success()
}

/// Runs a program and returns its output without the final newline.
pub(super) fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> String {
    ran(program, arguments).unwrap_or_else(|errors| panic!("{program}: {errors}"))
}

/// As [`run`]; the error is what the program printed.
pub(super) fn ran<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap().trim_end().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Repeats an operation that fails, for up to 10 s. A process that another test starts has the
/// descriptors of this one until it executes its program, and its mounts in another namespace.
pub(super) fn eventually<T, E: Debug>(mut operation: impl FnMut() -> Result<T, E>) -> T {
    let limit = Instant::now() + Duration::from_secs(10);
    loop {
        match operation() {
            Ok(value) => return value,
            Err(error) => assert!(Instant::now() < limit, "{error:?}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Directory on a disk.
pub(super) fn scratch() -> TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

/// File of zeros.
pub(super) fn zeros(path: &Path, size: u64) -> PathBuf {
    File::create(path).unwrap().set_len(size).unwrap();
    path.to_owned()
}

/// Loop device; detached at the end.
pub(super) struct LoopDevice {
    pub(super) path: PathBuf,
    file: PathBuf,
    partitions: u32,
}

impl LoopDevice {
    /// Attaches the next free one to `file`.
    pub(super) fn over(file: &Path) -> Self {
        Self::with(&[], file)
    }

    pub(super) fn with(options: &[&str], file: &Path) -> Self {
        let mut arguments: Vec<&OsStr> = ["-f", "--show"].map(OsStr::new).to_vec();
        arguments.extend(options.iter().map(OsStr::new));
        arguments.push(file.as_os_str());
        Self { path: run("losetup", &arguments).into(), file: file.to_owned(), partitions: 0 }
    }

    /// Detaches the file, and attaches another one. Another test may attach its file in between;
    /// then this waits until the device is free.
    pub(super) fn attach_instead(&mut self, file: &Path) {
        run("losetup", &["-d", &self.text()]);
        eventually(|| ran("losetup", &[&self.path, file]));
        self.file = file.to_owned();
    }

    /// A loop device with `n` partitions of 8 MiB each. They are added by ioctl, because the kernel
    /// may not support any partition table.
    pub(super) fn partitioned(file: &Path, n: u32) -> Self {
        let mut device = Self::with(&["--partscan"], file);
        for number in 1..=n {
            let start = u64::from(number) * 16384;
            let words = [device.text(), number.to_string(), start.to_string(), "16384".into()];
            run("addpart", &words);
            device.partitions = number;
        }
        device
    }

    pub(super) fn partition(&self, number: u32) -> PathBuf {
        format!("{}p{number}", self.text()).into()
    }

    pub(super) fn text(&self) -> String {
        self.path.to_str().unwrap().to_owned()
    }

    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap().to_str().unwrap().to_owned()
    }

    /// `MAJOR:MINOR`.
    pub(super) fn number(&self) -> String {
        let text = fs::read_to_string(format!("/sys/block/{}/dev", self.name())).unwrap();
        text.trim().to_owned()
    }
}

impl Drop for LoopDevice {
    /// Detaches, unless the number refers to another file by now. If another program has the device
    /// open, the kernel detaches it at its last close.
    fn drop(&mut self) {
        let backing = format!("/sys/block/{}/loop/backing_file", self.name());
        let is_attached = || {
            let file = fs::read_to_string(&backing).unwrap_or_default();
            Path::new(file.trim_end()) == self.file
        };
        if !is_attached() {
            return;
        }
        for number in 1..=self.partitions {
            let words = [self.text(), number.to_string()];
            let _ = Command::new("delpart").args(words).output();
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.path).output();
        for _ in 0..100 {
            if !is_attached() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Mounted filesystem; unmounted at the end.
pub(super) struct Mount(pub(super) PathBuf);

impl Mount {
    pub(super) fn new(options: &[&str], device: &Path, point: &Path) -> Self {
        fs::create_dir_all(point).unwrap();
        let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        arguments.extend([device.as_os_str(), point.as_os_str()]);
        run("mount", &arguments);
        Self(point.to_owned())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

/// Active swap space; disabled at the end.
pub(super) struct Swap(PathBuf);

impl Swap {
    pub(super) fn on(path: &Path) -> Self {
        run("mkswap", &[path]);
        run("swapon", &[path]);
        Self(path.to_owned())
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(&self.0).output();
    }
}

/// Start of a script in a mount namespace: unmounts the copies of mounts of parallel tests, which
/// would keep their devices in use.
pub(super) const DETACH: &str = "tac /proc/self/mounts | while read -r _ at _; do \
    case $at in /var/tmp/*) umount -l \"$at\";; esac; done; ";

/// Shell that has run its script and keeps its resources; ended by closing its input.
pub(super) struct Holder(Child);

impl Holder {
    pub(super) fn shell(wrapper: &[&str], script: &str, arguments: &[&Path]) -> Self {
        let detach = if wrapper.contains(&"-m") { DETACH } else { "" };
        let script = format!("{detach}{script} && echo ready && read end");
        let mut words: Vec<&OsStr> = wrapper.iter().map(OsStr::new).collect();
        words.extend(["sh", "-c", &script].map(OsStr::new));
        words.extend(arguments.iter().map(|argument| argument.as_os_str()));
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let holder = Self(child);
        assert_eq!(line, "ready\n");
        holder
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Claims with the real roots and all possible permissions.
pub(super) fn claim_at_any_price(
    device: &LoopDevice,
    path: &Path,
) -> Result<ClaimedDevice, Refusal> {
    let backing = fs::read_to_string(format!("/sys/block/{}/loop/backing_file", device.name()));
    let overwrite = vec![backing.unwrap().trim().to_owned(), device.number()];
    let permission = Permission { overwrite, store_file: "/var/tmp/none.fslab".into() };
    claim_device(path, &permission, &Roots::default(), &[])
}

/// Claims with the real roots and no permission.
pub(super) fn claim(path: &Path) -> Result<ClaimedDevice, Refusal> {
    claim_device(path, &Permission::default(), &Roots::default(), &[])
}

/// Directories in place of /sys and /proc, in which a device has the number of a real loop device.
pub(super) struct FakeMachine {
    pub(super) temp: TempDir,
    pub(super) roots: Roots,
}

impl FakeMachine {
    /// Contains only `device`.
    pub(super) fn around(device: &LoopDevice) -> Self {
        let temp = scratch();
        let roots = Roots {
            sys: temp.path().join("sys"),
            proc: temp.path().join("proc"),
            dev: "/dev".into(),
        };
        let machine = Self { temp, roots };
        machine.proc("self/mountinfo", "1 1 0:2 / / rw - rootfs rootfs rw\n");
        machine.proc("swaps", "Filename Type Size Used Priority\n");
        machine.disk(&device.name(), &device.number());
        machine
    }

    /// Adds a whole disk.
    pub(super) fn disk(&self, name: &str, number: &str) {
        self.device(&format!("block/{name}"), number);
    }

    /// Adds a device in a sysfs directory.
    pub(super) fn device(&self, temp: &str, number: &str) {
        self.sys(&format!("{temp}/dev"), format!("{number}\n"));
        self.link(&format!("dev/block/{number}"), temp);
    }

    pub(super) fn sys(&self, path: &str, text: impl AsRef<[u8]>) {
        write(&self.roots.sys.join(path), text.as_ref());
    }

    pub(super) fn proc(&self, path: &str, text: &str) {
        write(&self.roots.proc.join(path), text.as_bytes());
    }

    /// Adds a link in sysfs to a sysfs directory.
    pub(super) fn link(&self, path: &str, target: &str) {
        let path = self.roots.sys.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(self.roots.sys.join(target), path).unwrap();
    }

    /// Makes `lower` a slave of `upper`; names below `block`.
    pub(super) fn stack(&self, upper: &str, lower: &str) {
        let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        self.link(&format!("block/{lower}/holders/{}", name(upper)), &format!("block/{upper}"));
        self.link(&format!("block/{upper}/slaves/{}", name(lower)), &format!("block/{lower}"));
    }

    pub(super) fn claim(&self, path: &Path) -> Result<ClaimedDevice, Refusal> {
        claim_device(path, &Permission::default(), &self.roots, &[])
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Passes the device to claim to this test in another process.
const OTHER: &str = "FSLAB_GUARD_TEST_OTHER_RUN";

/// Claims the device if this process is that of [`claim_in_another_process`].
pub(super) fn is_the_other_process() -> bool {
    let Some(device) = std::env::var_os(OTHER) else { return false };
    let answer = claim(Path::new(&device));
    let text = answer.map_or_else(|refusal| refusal.to_string(), |_| "claimed".into());
    writeln!(io::stderr(), "{text}").unwrap();
    true
}

/// Runs this test in another process, like another run, and returns the outcome of its claim.
pub(super) fn claim_in_another_process(test: &str, device: &Path) -> String {
    claim_by(&mut Command::new(std::env::current_exe().unwrap()), test, device)
}

/// As [`claim_in_another_process`], with a command that runs this program.
pub(super) fn claim_by(command: &mut Command, test: &str, device: &Path) -> String {
    let output = command.args(["--exact", "--nocapture", test]).env(OTHER, device).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}
