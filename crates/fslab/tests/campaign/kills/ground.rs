//! Environment of a try: state directory, filesystems, and files that a command left.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::support::{Bench, Disk};

/// Filesystems for all tries of a test, outside of the directories passed to fslab.
pub(super) struct Range {
    place: TempDir,
    mounted: Vec<PathBuf>,
    _disk: Disk,
    _bench: Bench,
}

impl Range {
    /// Mounts an ext4 on a loop device, and a small tmpfs, which is easily filled.
    pub(super) fn new() -> Self {
        let place = tempfile::Builder::new().prefix("campaign-").tempdir_in("/var/tmp").unwrap();
        let bench = Bench::new();
        let disk = bench.disk("target.img", 256 << 20);
        run("mkfs.ext4", &["-q", disk.path()]);
        let mut range = Self { place, mounted: Vec::new(), _disk: disk, _bench: bench };
        let disk = range._disk.path().to_owned();
        range.mount("target", &["-t", "ext4", &disk]);
        range.mount("small", &["-t", "tmpfs", "-o", "size=64m", "tmpfs"]);
        // On a tmpfs, so that the duration of a try does not depend on the disk of the machine.
        range.mount("scratch", &["-t", "tmpfs", "-o", "size=1g", "tmpfs"]);
        range
    }

    fn mount(&mut self, name: &str, arguments: &[&str]) {
        let at = self.path(name);
        fs::create_dir(&at).unwrap();
        run("mount", &[arguments, &[&at.display().to_string()]].concat());
        self.mounted.push(at);
    }

    /// Path of a filesystem or file: `target` is the ext4, `small` the tmpfs.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Fills a filesystem up to this many free bytes.
    pub(super) fn fill(&self, name: &str, free: u64) {
        let at = self.path(name);
        let space = rustix::fs::statvfs(&at).unwrap();
        let filler = (space.f_bavail * space.f_frsize).saturating_sub(free);
        let file = fs::File::create(at.join("filler")).unwrap();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, filler.max(1))
            .unwrap();
    }

    pub(super) fn make_room(&self, name: &str) {
        drop(fs::remove_file(self.path(name).join("filler")));
    }

    /// Empties a filesystem before the next try.
    pub(super) fn clear(&self, name: &str) {
        for entry in fs::read_dir(self.path(name)).unwrap() {
            let path = entry.unwrap().path();
            match path.file_name().is_some_and(|name| name == "lost+found") {
                true => {}
                false if path.is_dir() => fs::remove_dir_all(&path).unwrap(),
                false => fs::remove_file(&path).unwrap(),
            }
        }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        for at in &self.mounted {
            run("umount", &[&at.display().to_string()]);
        }
    }
}

fn run(program: &str, arguments: &[&str]) {
    let path = "/usr/sbin:/sbin:/usr/bin:/bin";
    let output = Command::new(program).args(arguments).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Process of a command.
pub(super) struct Process {
    pub(super) id: i32,
    pub(super) arguments: Vec<String>,
}

/// All processes of a session (setsid(2)), and those with a state directory in their environment or
/// arguments.
pub(super) fn processes(session: u32, state: &str) -> Vec<Process> {
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found: Vec<Process> = ids
        .filter_map(|id| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            // The name in parentheses may contain any character (proc(5)).
            let rest: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
            let (dead, own) = (rest.first() == Some(&"Z"), rest.get(3)?.parse() == Ok(session));
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            let named = String::from_utf8_lossy(&environment).contains(state);
            let words = fs::read(format!("/proc/{id}/cmdline")).ok()?;
            let words = String::from_utf8_lossy(&words);
            let arguments = words.split('\0').map(str::to_owned).collect();
            let named = named || words.contains(state);
            (!dead && (own || named)).then_some(Process { id, arguments })
        })
        .collect();
    found.sort_by_key(|process| process.id);
    found
}

/// Waits until no process of a session remains. Returns the processes that remain after the
/// timeout.
pub(super) fn remaining(session: u32, state: &str, patience: Duration) -> Vec<String> {
    let start = Instant::now();
    loop {
        let left = processes(session, state);
        if left.is_empty() || start.elapsed() > patience {
            return left
                .iter()
                .map(|it| format!("process {}: {:?}", it.id, it.arguments))
                .collect();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Values of settings that fslab may change, by path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings(BTreeMap<PathBuf, Vec<u8>>);

impl Settings {
    /// Reads the settings of the queue of a device and, if `machine` is set, of the machine.
    pub(super) fn read(device: Option<&str>, machine: bool) -> Self {
        let name = device.map(|device| device.trim_start_matches("/dev/"));
        let queue = name.map(|name| format!("/sys/block/{name}/queue"));
        let own = ["scheduler", "nr_requests", "read_ahead_kb", "write_cache"];
        let mut files: Vec<PathBuf> = queue
            .iter()
            .flat_map(|queue| own.map(|file| format!("{queue}/{file}").into()))
            .collect();
        if machine {
            files.extend(["/sys/kernel/mm/transparent_hugepage/enabled".into()]);
            files.extend(["/sys/devices/system/cpu/online".into()]);
            let vm = fs::read_dir("/proc/sys/vm").unwrap().map(|entry| entry.unwrap());
            let dirty = vm.filter(|it| it.file_name().to_string_lossy().starts_with("dirty"));
            files.extend(dirty.map(|it| it.path()));
        }
        let read = |path: PathBuf| Some((path.clone(), fs::read(&path).ok()?));
        Self(files.into_iter().filter_map(read).collect())
    }

    /// Descriptions of the settings that differ from `before`.
    pub(super) fn changed(&self, before: &Self) -> Vec<String> {
        let differs = |(path, was): (&PathBuf, &Vec<u8>)| {
            let now = self.0.get(path)?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
            (now != was).then(|| format!("{}: {}, was {}", path.display(), text(now), text(was)))
        };
        before.0.iter().filter_map(differs).collect()
    }
}

/// Device-mapper devices and md arrays of this machine.
pub(super) fn stacked() -> BTreeSet<String> {
    let names = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("dm-") || name.starts_with("md")).collect()
}

/// Paths of all files and directories below a directory, relative to it.
pub(super) fn tree(below: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![below.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            found.insert(path.strip_prefix(below).unwrap().display().to_string());
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
        }
    }
    found
}

/// Directories in which a run may create files or control groups whose names contain its ID.
const SHARED: [&str; 8] = [
    "/dev/shm",
    "/tmp",
    "/var/tmp",
    "/run",
    "/run/fslab",
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/memory",
    "/sys/fs/cgroup/cpu",
];

/// Files in shared directories whose names contain one of these words.
pub(super) fn shared(words: &BTreeSet<String>) -> Vec<String> {
    let user = format!("/dev/shm/fslab-{}", rustix::process::geteuid().as_raw());
    let mut left = Vec::new();
    for folder in SHARED.into_iter().chain([user.as_str()]) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if words.iter().any(|word| name.contains(word)) {
                left.push(format!("{folder}/{name}"));
            }
        }
    }
    left
}
