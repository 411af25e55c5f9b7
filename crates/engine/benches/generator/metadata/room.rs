//! Where many files have room, and what memory a process takes that handles them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use model::{Bytes, phase::Spread};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use super::{EACH, MAKE, PLAIN, Set, TreeOrder, TreeStep, set, tree};

/// A directory on tmpfs; of its own if we are root, as others have room for few inodes.
pub(crate) struct Room {
    directory: TempDir,
    mounted: bool,
}

impl Room {
    /// An empty one.
    pub(crate) fn new() -> Self {
        let parent = if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" };
        let directory = TempDir::new_in(parent).expect("a directory for files");
        let (path, options) = (directory.path(), c"nr_inodes=0,size=90%,mode=0700");
        let mounted = rustix::process::geteuid().is_root()
            && mount("tmpfs", path, "tmpfs", MountFlags::empty(), options).is_ok();
        Self { directory, mounted }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.mounted {
            let _ = unmount(self.path(), UnmountFlags::DETACH);
        }
    }
}

/// Peak memory of a process that makes, looks at, and removes so many files, told by itself.
pub(crate) fn peak(files: u64, directory: &Path) -> u64 {
    let set = Set { spread: Spread::Directories { each: EACH }, ..set("memory", files) };
    tree(&set, TreeOrder::Created, &MAKE, PLAIN, directory);
    tree(&set, TreeOrder::Shuffled, &[TreeStep::Stat], PLAIN, directory);
    tree(&set, TreeOrder::Created, &[TreeStep::Unlink], PLAIN, directory);
    std::fs::remove_dir_all(directory.join("memory.0")).expect("it is empty");
    crate::peak_kib()
}

/// The same for few files and for many, each in a process of its own.
pub(crate) fn memory((few, many, needed): (u64, u64, Bytes), room: &Room) -> String {
    let (few, many) = if room.mounted && available() >= needed.0 || needed.0 == 0 {
        (few, many)
    } else {
        (few / 10, few)
    };
    let child = |files: u64| -> u64 {
        let exe: PathBuf = "/proc/self/exe".into();
        let mut command = Command::new(exe);
        let output = command.arg("memory").arg(files.to_string()).arg(room.path()).output();
        let output = output.expect("this program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("a peak in KiB")
    };
    let (small, large) = (child(few), child(many));
    eprintln!(" memory: {few} files {small} KiB, {many} files {large} KiB");
    format!(
        "Peak memory of a process that makes, looks at (in shuffled order), and removes {few} \
         files: {small} KiB; {many} files: {large} KiB (asked: less than 16 MiB more)."
    )
}

/// `MemAvailable` of proc_meminfo(5), in bytes.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) << 10
}
