//! Directory for many files, and memory of a process that handles them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use model::{Bytes, phase::Spread};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use super::{EACH, MAKE, PLAIN, Set, TreeOrder, TreeStep, set, tree};

/// Directory on a tmpfs. As root it is a separate tmpfs, because others limit the number of inodes.
pub(crate) struct Room {
    directory: TempDir,
    mounted: bool,
}

impl Room {
    /// Creates an empty directory.
    pub(crate) fn new() -> Self {
        let parent = if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" };
        let directory = TempDir::new_in(parent).expect("a directory for files");
        let (path, options) = (directory.path(), c"nr_inodes=0,size=90%,mode=0700");
        let mounted = rustix::process::geteuid().is_root()
            && mount("tmpfs", path, "tmpfs", MountFlags::empty(), options).is_ok();
        Self { directory, mounted }
    }

    /// Path of the directory.
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

/// Peak memory in KiB of this process, which creates, stats, and removes this number of files.
pub(crate) fn peak(files: u64, directory: &Path) -> u64 {
    let set = Set { spread: Spread::Directories { each: EACH }, ..set("memory", files) };
    tree(&set, TreeOrder::Creation, &MAKE, PLAIN, directory);
    tree(&set, TreeOrder::Random, &[TreeStep::Stat], PLAIN, directory);
    tree(&set, TreeOrder::Creation, &[TreeStep::Unlink], PLAIN, directory);
    std::fs::remove_dir_all(directory.join("memory.0")).expect("it is empty");
    crate::peak_kib()
}

/// Paragraph on the peak memory with few and with many files, each measured in a separate process.
/// Both numbers are smaller without enough memory.
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
        "A process that creates {few} files, calls stat for each in random order, and removes \
         them has a peak memory of {small} KiB. With {many} files it has {large} KiB. The \
         difference must be less than 16 MiB."
    )
}

/// `MemAvailable` of proc_meminfo(5) in bytes.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) << 10
}
