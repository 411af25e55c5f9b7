//! The seam between our logic and the machine: whatever touches the machine is a method of
//! [`Host`].
//!
//! [`RealHost`] is the machine. [`FakeHost`] is a folder that stands for `/`, a list of what was
//! done, and scripted answers, so that the logic above runs in tests without root. No method
//! decides anything or journals anything; both are the callers' work.

mod block;
mod data;
#[cfg(test)]
mod failing;
mod fake;
mod kmsg;
mod real;
mod tree;
mod walk;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use model::{Allocation, Bytes, Nanos};
use serde::{Deserialize, Serialize};

pub(crate) use self::data::Random;
#[cfg(test)]
pub(crate) use self::failing::FailingHost;
pub use self::{fake::FakeHost, real::RealHost, tree::TreeRefusal};
use crate::{
    guard::{Medium, Roots},
    instance::ProgramTime,
    mount::{MountEntry, MountRefusal, MountRequest},
};

/// Where the kernel tells the id it drew when it was booted (random(4)).
pub(crate) const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Which file a path led to: what is compared before anything is undone to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Device number of the filesystem that holds it (`st_dev`).
    pub device: u64,
    /// Its inode number (`st_ino`).
    pub inode: u64,
}

/// What a path leads to, its last component not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which file it is.
    pub identity: Identity,
    /// What kind of file.
    pub kind: EntryKind,
    /// Its length; only meaningful for regular files.
    pub size: Bytes,
    /// The space it takes on its filesystem.
    pub allocated: Bytes,
}

/// The kinds of file that are told apart here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else, symbolic links included.
    Other,
}

/// What a program answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// Its standard output, bytes that are not UTF-8 replaced.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// Wall-clock time from start to exit.
    pub elapsed: Nanos,
    /// CPU time of it and of the programs it waited for; `None` where nobody told.
    pub cpu: Option<ProgramTime>,
}

impl Output {
    /// Whether it exited with 0.
    pub fn success(&self) -> bool {
        self.status == Some(0)
    }

    /// Exit status and the last words, on one line: "exit 1: mkfs.xfs: size 1 is too small". A text
    /// on how to use the program is left out where something stands before it.
    pub fn verdict(&self) -> String {
        let status = match self.status {
            Some(status) => format!("exit {status}"),
            None => "killed by a signal".to_owned(),
        };
        let lines = |text: &str| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let words = Some(lines(&self.stderr)).filter(|lines| !lines.is_empty());
        let words = words.unwrap_or_else(|| lines(&self.stdout));
        // Whoever explains how it is used has said before what was wrong.
        let is_usage = |line: &String| line.to_lowercase().starts_with("usage");
        let end = words.iter().position(is_usage).filter(|end| *end > 0).unwrap_or(words.len());
        let tail = words[end.saturating_sub(3)..end].join("; ");
        if tail.is_empty() { status } else { format!("{status}: {tail}") }
    }
}

/// A file as a block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Its node, `/dev/loopN`.
    pub path: PathBuf,
    /// Whether I/O to the file is direct, as read back from the kernel.
    pub direct: bool,
    /// Its number, if the device was made for the file and is to be removed with it.
    pub made: Option<u32>,
}

/// How a device was made to forget what it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erased {
    /// The whole device was discarded.
    Discarded,
    /// It cannot discard; the first and last mebibytes, where signatures are, were overwritten.
    Wiped,
}

/// What `statfs(2)` says of a filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Its magic number (`f_type`).
    pub magic: u64,
    /// Size of the data area.
    pub total: Bytes,
    /// What is not taken (`f_bfree`), of which root may have a part for itself.
    pub free: Bytes,
    /// What an ordinary user may still fill (`f_bavail`).
    pub usable: Bytes,
    /// Inodes in all; 0 where the filesystem makes them on demand.
    pub inodes: u64,
}

impl Statistics {
    /// What is taken, by files and by the filesystem itself.
    pub fn used(&self) -> Bytes {
        self.total - self.free
    }
}

/// What stayed in memory of a directory tree that should have left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Bytes still in the page cache.
    pub bytes: Bytes,
    /// Files looked at.
    pub files: u64,
    /// Files that could not be opened or asked.
    pub unknown: u64,
}

/// A file or directory that cannot be looked at.
#[derive(Debug, thiserror::Error)]
#[error("cannot look at {path}")]
pub struct Unread {
    /// Which.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// What this process has used since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all of its threads, those that have ended included.
    pub process: Nanos,
    /// The part of that which threads used while a [`Watcher`](crate::Watcher) stood for them.
    pub watching: Nanos,
    /// CPU time of its children that have ended and were waited for, and of theirs.
    pub children: Nanos,
    /// Page faults without I/O, of the process and of such children.
    pub minor_faults: u64,
    /// Page faults that read a device, likewise.
    pub major_faults: u64,
}

/// Records of the kernel's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// As they come from `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg), oldest first.
    pub lines: Vec<String>,
    /// Whether the kernel threw records away before they were read.
    pub lost: bool,
}

/// The kernel's log from where it ended when [`Host::kernel_log`] opened it.
pub trait KernelLog: Send + fmt::Debug {
    /// What was added since it was opened, or since the last call.
    ///
    /// # Errors
    /// When the log cannot be read on.
    fn records(&mut self) -> io::Result<Records>;
}

/// A machine. Paths are absolute; errors are the operating system's.
pub trait Host: Send + Sync + fmt::Debug {
    /// Whether the effective user is root.
    fn is_root(&self) -> bool;
    /// The process id under which this process is put into control groups.
    fn pid(&self) -> u32;
    /// Where `/sys`, `/proc` and `/dev` are.
    fn roots(&self) -> Roots;
    /// The id that the kernel drew when it was booted; `None` where it does not tell.
    fn boot_id(&self) -> Option<String> {
        let id = self.read(Path::new(BOOT_ID)).ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    }
    /// A monotonic clock.
    fn now(&self) -> Nanos;
    /// Waits.
    fn sleep(&self, time: Nanos);

    /// The program of that name, or at that absolute path, if it may be run
    /// ([`sys::program::find`]).
    fn find(&self, program: &str) -> Option<PathBuf>;
    /// Runs a program to its end: an argument vector, no shell, no standard input, and nothing of
    /// this process's environment ([`sys::program::environment`]).
    ///
    /// # Errors
    /// When it cannot be started, or may not be run; its own failure is in [`Output::status`].
    fn run(&self, argv: &[String]) -> io::Result<Output>;

    /// The same for a program that is told this text on its standard input.
    ///
    /// # Errors
    /// As [`Host::run`].
    fn run_told(&self, argv: &[String], input: &str) -> io::Result<Output>;
    /// Bytes of the kernel's random device, which cannot be guessed (random(4)).
    fn random(&self, length: usize) -> io::Result<Vec<u8>>;

    /// CPU time of any process since its start, ended threads included: the scheduler's sum, not
    /// ticks.
    ///
    /// # Errors
    /// When there is no such process.
    fn process_time(&self, process: u32) -> io::Result<Nanos>;
    /// CPU time of the calling thread since its start.
    fn thread_time(&self) -> Nanos;
    /// What this process has used.
    fn usage(&self) -> io::Result<Usage>;
    /// Opens the kernel's log at its end.
    ///
    /// # Errors
    /// `EPERM` where only the privileged may read it, `ENOENT` where there is no `/dev/kmsg`.
    fn kernel_log(&self) -> io::Result<Box<dyn KernelLog>>;

    /// The bytes of a file.
    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The text of a file, bytes that are not UTF-8 replaced.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Writes a text to an existing file in one `write(2)`, as sysfs and cgroups want it.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Makes a file with this text; refuses one that exists.
    fn create(&self, path: &Path, text: &str) -> io::Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// The path with every symbolic link followed.
    fn follow(&self, path: &Path) -> io::Result<PathBuf>;
    /// What a path leads to, without following a link at its end.
    fn entry(&self, path: &Path) -> io::Result<Entry>;
    /// Makes one directory (mode 0700); refuses one that exists.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all below it; links are removed, never followed.
    fn remove_tree(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory tree that fslab made: the one of that identity, or any if it is not
    /// known, whose marker ([`crate::undo::MARKER`]) holds this token. Nothing outside of it is
    /// touched, even if the path is replaced by a link; no mount point is crossed.
    ///
    /// # Errors
    /// [`TreeRefusal`].
    fn remove_marked(
        &self,
        path: &Path,
        token: &str,
        identity: Option<Identity>,
    ) -> Result<(), TreeRefusal>;
    /// Removes a file if the path leads to the one of that identity; answers if it did.
    fn remove_same(&self, path: &Path, identity: Identity) -> io::Result<bool>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Makes an empty image file (mode 0600); refuses a name that exists.
    fn create_image(&self, path: &Path) -> io::Result<Identity>;
    /// Gives an image its size, all zeros; with [`Allocation::Full`] its space is reserved, with
    /// [`Allocation::Sparse`] it takes none. Refuses a path that leads to another file than
    /// `identity`.
    fn renew_image(
        &self,
        path: &Path,
        identity: Identity,
        size: Bytes,
        allocation: Allocation,
    ) -> io::Result<()>;
    /// Attaches an image to a free loop device, with direct I/O if the file can do it. Refuses a
    /// path that leads to another file than `identity`.
    fn attach_loop(&self, image: &Path, identity: Identity) -> io::Result<Loop>;
    /// The loop devices a file is attached to.
    fn loops_of(&self, identity: Identity) -> io::Result<Vec<PathBuf>>;
    /// Detaches a loop device if that very file is still behind it.
    fn detach_loop(&self, device: &Path, identity: Identity) -> io::Result<()>;
    /// Removes a loop device that nothing is attached to; one that is not there counts as removed.
    fn remove_loop(&self, number: u32) -> io::Result<()>;

    /// Makes a whole block device forget what it held. The device is opened exclusively, which a
    /// mounted one refuses, and nothing is written if it is not the `expected` one.
    fn erase_device(&self, device: &Path, expected: &Medium) -> io::Result<Erased>;
    /// Overwrites the beginning of a block device with zeros, opened likewise.
    fn zero(&self, device: &Path, expected: &Medium, length: Bytes) -> io::Result<()>;
    /// Writes back and drops the page cache of a block device.
    fn flush_device(&self, device: &Path) -> io::Result<()>;

    /// What is mounted, in mounting order.
    fn mounts(&self) -> io::Result<Vec<MountEntry>>;
    /// Mounts.
    ///
    /// # Errors
    /// [`MountRefusal`] with the kernel's own words.
    fn mount(&self, request: &MountRequest) -> Result<(), MountRefusal>;
    /// Unmounts what is topmost at a path; never lazily, never by force.
    fn unmount(&self, target: &Path) -> io::Result<()>;
    /// What `statfs(2)` says.
    fn statistics(&self, path: &Path) -> io::Result<Statistics>;
    /// Makes a folder, with its parents, and in it files of these sizes with incompressible data;
    /// the same seed gives the same data.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] once `stop` is set; it is looked at before each file.
    fn make_files(
        &self,
        folder: &Path,
        sizes: &[Bytes],
        seed: u64,
        stop: &AtomicBool,
    ) -> io::Result<()>;
    /// Sizes of all regular files below a directory together, each file once however many names it
    /// has; links are not followed, and what `except` names is left out where it stands in the
    /// directory itself.
    fn sizes(&self, directory: &Path, except: &[&str]) -> Result<Bytes, Unread>;
    /// Writes back the filesystem that holds a path (`syncfs(2)`).
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// Bytes the page cache holds of a file or block device.
    fn resident(&self, path: &Path) -> io::Result<Bytes>;
    /// Writes back and drops from memory every file below a directory, and the kernel's caches too
    /// where that is allowed; then looks what stayed.
    fn evict(&self, directory: &Path) -> io::Result<Kept>;
}

#[cfg(test)]
mod tests;
