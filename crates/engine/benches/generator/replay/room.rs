//! Memory of clients, and a filesystem on an image file.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use model::phase::{Until, WorkerKind, Workers};
use tempfile::TempDir;

use super::replay;

/// Runs this number of clients as processes or threads, and returns their peak memory in KiB.
/// [`memory`] starts this program for it.
pub(crate) fn hold_clients(arguments: &[String]) -> u64 {
    let [clients, kind, load, directory, millis] = arguments else { panic!("five arguments") };
    let kind = if kind == "process" { WorkerKind::Process } else { WorkerKind::Thread };
    let number = |text: &String| text.parse::<u64>().expect("a number");
    let count = u32::try_from(number(clients)).expect("a number of clients");
    let workers = Workers { kind, ..Workers::threads(count) };
    let run = Duration::from_millis(number(millis));
    let until = Until::Time { ramp: model::Nanos(0), run: run.into() };
    let replay = replay(Path::new(load), workers, until);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let most = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Relaxed) {
                most = most.max(total_memory());
                thread::sleep(Duration::from_millis(100));
            }
            most
        });
        super::run(&replay, Path::new(directory));
        over.store(true, Relaxed);
        most.join().expect("the thread only reads")
    })
}

/// Memory in KiB of this process and its children, with shared pages counted once: proportional set
/// sizes of proc_pid_smaps(5).
fn total_memory() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children: Vec<String> = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let size = |process: &str| -> Option<u64> {
        let mut text = String::new();
        let path = format!("/proc/{process}/smaps_rollup");
        fs::File::open(path).ok()?.read_to_string(&mut text).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let own = size("self").unwrap_or(0);
    own + children.iter().filter_map(|process| size(process)).sum::<u64>()
}

/// Paragraph on the peak memory of one client and of this number of clients.
pub(super) fn memory(clients: u32, load: &Path, directory: &Path, run: Duration) -> String {
    let reported = |clients: u32, kind: &str| -> u64 {
        let mut command = Command::new("/proc/self/exe");
        command.args(["clients", &clients.to_string(), kind]).arg(load).arg(directory);
        let output = command.arg(run.as_millis().to_string()).stderr(Stdio::inherit()).output();
        let output = output.expect("this program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("KiB")
    };
    let (one, threads, processes) =
        (reported(1, "thread"), reported(clients, "thread"), reported(clients, "process"));
    eprintln!(" memory: 1 client {one} KiB, {clients} threads {threads}, processes {processes}");
    format!(
        "Peak memory of all processes, with shared pages counted once (PSS): {one} KiB with one \
         client, {threads} KiB with {clients} threads as clients, and {processes} KiB with \
         {clients} processes as clients (required: less than 102400 KiB)."
    )
}

/// Mounted ext4 in an image file, unmounted on drop.
pub(super) struct Image {
    _directory: TempDir,
    point: PathBuf,
}

impl Image {
    /// Creates and mounts the image. `None` if that fails, for example without root or mkfs.ext4.
    pub(super) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let directory = TempDir::new_in("/var/tmp").ok()?;
        let (image, point) = (directory.path().join("image"), directory.path().join("mounted"));
        fs::File::create(&image).ok()?.set_len(4 << 30).ok()?;
        fs::create_dir(&point).ok()?;
        let succeeds =
            |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let made = succeeds(Command::new("mkfs.ext4").arg("-q").arg(&image))
            && succeeds(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&point));
        made.then_some(Self { _directory: directory, point })
    }

    /// Path of the mount point.
    pub(super) fn path(&self) -> &Path {
        &self.point
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.point).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{}", self.point.display());
    }
}
