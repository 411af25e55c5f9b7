//! Interface between the logic and the machine: all access to the machine is a method of [`Host`].
//!
//! [`RealHost`] is the machine on which fslab runs. [`FakeHost`] is a simulated host for tests
//! without root: it uses a directory in place of `/`, lists the operations, and returns scripted
//! results. A method executes one operation. Its caller decides whether the operation is allowed
//! and writes it to the undo journal.

mod block;
mod data;
#[cfg(test)]
mod failing;
#[cfg(any(test, feature = "simulated"))]
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
#[cfg(any(test, feature = "simulated"))]
pub use self::fake::FakeHost;
pub use self::{
    real::RealHost,
    tree::{MARKER, TreeRefusal},
};
pub use crate::medium::{Medium, Roots};
use crate::mount::{MountEntry, MountRefusal, MountRequest};

/// File with the boot ID, which the kernel generates at random at each boot (random(4)).
pub(crate) const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Identity of a file, independent of its path. Before an undo, the identity shows whether the path
/// still leads to the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Device number of the filesystem (`st_dev`).
    pub device: u64,
    /// Inode number (`st_ino`).
    pub inode: u64,
}

/// Attributes of a file; for a symbolic link, those of the link itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Identity of the file.
    pub identity: Identity,
    /// File type.
    pub kind: EntryKind,
    /// Length; meaningful for regular files only.
    pub size: Bytes,
    /// Allocated space.
    pub allocated: Bytes,
}

/// File type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Any other type, including symbolic links.
    Other,
}

/// CPU time of a program (wait4(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramTime {
    /// Time in user mode.
    pub user: Nanos,
    /// Time in the kernel.
    pub system: Nanos,
}

/// Result of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Exit status; `None` if a signal ended the program.
    pub status: Option<i32>,
    /// Standard output; invalid UTF-8 is replaced.
    pub stdout: String,
    /// Standard error; invalid UTF-8 is replaced.
    pub stderr: String,
    /// Wall-clock time from start to exit.
    pub elapsed: Nanos,
    /// CPU time of the program and of the child processes that the program waited for; `None` if
    /// not available.
    pub cpu: Option<ProgramTime>,
}

impl Output {
    /// True if the exit status is 0.
    pub fn success(&self) -> bool {
        self.status == Some(0)
    }

    /// Exit status and the last three lines of standard error, on one line: "exit 1: mkfs.xfs: size
    /// 1 is too small". If standard error is empty, standard output is used. A usage text after the
    /// error message is omitted.
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
        // A usage text is printed after the error message.
        let is_usage = |line: &String| line.to_lowercase().starts_with("usage");
        let end = words.iter().position(is_usage).filter(|end| *end > 0).unwrap_or(words.len());
        let tail = words[end.saturating_sub(3)..end].join("; ");
        if tail.is_empty() { status } else { format!("{status}: {tail}") }
    }
}

/// Loop device with an attached image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Device node, `/dev/loopN`.
    pub path: PathBuf,
    /// True if I/O to the file is direct, as read back from the kernel.
    pub direct: bool,
    /// Number of the loop device if the device was created for this image. Such a device is removed
    /// after the image is detached.
    pub made: Option<u32>,
}

/// Method by which the contents of a device were removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WipeMethod {
    /// The whole device was discarded.
    Discarded,
    /// The discard failed, for example because the device does not support it. The first and the
    /// last 2 MiB, which contain the signatures, were overwritten with zeros.
    Wiped,
}

/// Result of `statfs(2)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Magic number (`f_type`).
    pub magic: u64,
    /// Size of the data area.
    pub total: Bytes,
    /// Free space (`f_bfree`), including space reserved for root.
    pub free: Bytes,
    /// Space available to unprivileged users (`f_bavail`).
    pub available: Bytes,
    /// Number of inodes; 0 if the filesystem creates them on demand.
    pub inodes: u64,
}

impl Statistics {
    /// Space used by files and by the filesystem itself.
    pub fn used(&self) -> Bytes {
        self.total - self.free
    }
}

/// Result of [`Host::evict`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResidentPages {
    /// Bytes of the checked files that are still in the page cache. Only a sample of the files is
    /// checked.
    pub bytes: Bytes,
    /// Number of regular files in the directory tree.
    pub files: u64,
    /// Number of files that could not be opened, evicted, or checked.
    pub unknown: u64,
}

/// File or directory that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct UnreadablePath {
    /// Path of the file or directory.
    pub path: PathBuf,
    /// Cause.
    pub source: io::Error,
}

/// Resource usage of this process since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all threads, including ended threads.
    pub process: Nanos,
    /// Part of `process` used by threads that hold a [`MonitorThread`](crate::MonitorThread).
    pub monitoring: Nanos,
    /// CPU time of the child processes that have ended and for which this process has waited, and
    /// of their children (`RUSAGE_CHILDREN` of getrusage(2)).
    pub children: Nanos,
    /// Page faults without I/O, of this process and of the child processes in `children`.
    pub minor_faults: u64,
    /// Page faults with I/O, of this process and of the child processes in `children`.
    pub major_faults: u64,
}

/// Records of the kernel log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Lines of `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg), oldest first.
    pub lines: Vec<String>,
    /// True if the kernel overwrote records before they were read.
    pub lost: bool,
}

/// Reader of the kernel log. Reading starts at the end that the log had when [`Host::kernel_log`]
/// was called.
pub trait KernelLog: Send + fmt::Debug {
    /// Returns the records added since the last call, or since the log was opened.
    ///
    /// # Errors
    /// If the log cannot be read.
    fn records(&mut self) -> io::Result<Records>;
}

/// Access to a machine. Paths are absolute; errors are those of the operating system.
pub trait Host: Send + Sync + fmt::Debug {
    /// True if the effective user is root.
    fn is_root(&self) -> bool;
    /// Process ID under which this process is added to control groups.
    fn pid(&self) -> u32;
    /// Locations of `/sys`, `/proc`, and `/dev`.
    fn roots(&self) -> Roots;
    /// Boot ID; `None` if not available.
    fn boot_id(&self) -> Option<String> {
        let id = self.read(Path::new(BOOT_ID)).ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    }
    /// Time of a monotonic clock with an arbitrary start.
    fn now(&self) -> Nanos;
    /// Sleeps for this time.
    fn sleep(&self, time: Nanos);

    /// Path of a program, given its name or absolute path; `None` if there is no such program, or
    /// if it may not be run ([`sys::program::find`]).
    fn find(&self, program: &str) -> Option<PathBuf>;
    /// Runs a program and waits until it exits. `argv` contains the program and its arguments;
    /// there is no shell, standard input is empty, and only fixed environment variables are set
    /// ([`sys::program::environment`]).
    ///
    /// # Errors
    /// If the program cannot be started or may not be run. A program that fails is not an error;
    /// see [`Output::status`].
    fn run(&self, argv: &[String]) -> io::Result<Output>;

    /// Runs a program as [`Host::run`] does, with `input` as its standard input.
    ///
    /// # Errors
    /// As [`Host::run`].
    fn run_with_input(&self, argv: &[String], input: &str) -> io::Result<Output>;
    /// Makes orphaned descendants children of this process (`PR_SET_CHILD_SUBREAPER`, prctl(2)), so
    /// that daemons count as programs of this process.
    fn adopt_orphans(&self) -> io::Result<()>;
    /// Removes an ended child from the process table; no effect on other processes.
    fn reap(&self, process: u32);
    /// Random bytes from the kernel (random(4)), suitable as an encryption key.
    fn random(&self, length: usize) -> io::Result<Vec<u8>>;

    /// CPU time of a process since its start, including ended threads. The time is the scheduler's
    /// exact sum, not a number of ticks.
    ///
    /// # Errors
    /// If there is no such process.
    fn process_time(&self, process: u32) -> io::Result<Nanos>;
    /// CPU time of the calling thread since its start.
    fn thread_time(&self) -> Nanos;
    /// Resource usage of this process.
    fn usage(&self) -> io::Result<Usage>;
    /// Opens the kernel log at its end.
    ///
    /// # Errors
    /// `EPERM` if the log is restricted to privileged users, `ENOENT` if there is no `/dev/kmsg`.
    fn kernel_log(&self) -> io::Result<Box<dyn KernelLog>>;

    /// Reads a file as bytes.
    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Reads a file as text; invalid UTF-8 is replaced.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Writes a text to an existing file with a single write(2) call, as files of sysfs and control
    /// groups require.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Creates a file with this text; fails if it exists.
    fn create(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Resolves all symbolic links of a path.
    fn follow(&self, path: &Path) -> io::Result<PathBuf>;
    /// Attributes of the file at a path; for a symbolic link, those of the link itself.
    fn entry(&self, path: &Path) -> io::Result<Entry>;
    /// Creates one directory (mode 0700); fails if it exists.
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all its contents. Symbolic links are removed, not followed.
    fn remove_tree(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory tree created by fslab. The marker file ([`MARKER`]) in the tree must
    /// contain `token`. If `identity` is known, the top directory must have this identity. Nothing
    /// outside of the tree is removed, even if the path was replaced by a symbolic link, and mount
    /// points are not crossed.
    ///
    /// # Errors
    /// [`TreeRefusal`].
    fn remove_marked(
        &self,
        path: &Path,
        token: &str,
        identity: Option<Identity>,
    ) -> Result<(), TreeRefusal>;
    /// Removes the file at a path if it has this identity. Returns true if the file was removed.
    fn remove_same(&self, path: &Path, identity: Identity) -> io::Result<bool>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Creates an empty image file (mode 0600); fails if the path exists.
    fn create_image(&self, path: &Path) -> io::Result<Identity>;
    /// Sets the size of an image and sets all its bytes to zero. With [`Allocation::Preallocated`]
    /// its space is allocated; with [`Allocation::Sparse`] all its space is released. Fails if the
    /// path leads to a file other than `identity`.
    fn renew_image(
        &self,
        path: &Path,
        identity: Identity,
        size: Bytes,
        allocation: Allocation,
    ) -> io::Result<()>;
    /// Attaches an image to a free loop device, with direct I/O if the file supports it. Fails if
    /// the path leads to a file other than `identity`.
    fn attach_loop(&self, image: &Path, identity: Identity) -> io::Result<Loop>;
    /// Loop devices to which a file is attached.
    fn loops_of(&self, identity: Identity) -> io::Result<Vec<PathBuf>>;
    /// Detaches a loop device if its backing file has this identity; a device that is already
    /// detached is not an error.
    fn detach_loop(&self, device: &Path, identity: Identity) -> io::Result<()>;
    /// Removes a loop device without backing file; succeeds if the device does not exist.
    fn remove_loop(&self, number: u32) -> io::Result<()>;

    /// Removes the contents of a block device. The device is opened exclusively, which fails for a
    /// mounted device. Nothing is written unless the opened device is the `expected` one.
    fn erase_device(&self, device: &Path, expected: &Medium) -> io::Result<WipeMethod>;
    /// Overwrites the first `length` bytes of a block device with zeros, under the conditions of
    /// [`Host::erase_device`].
    fn zero(&self, device: &Path, expected: &Medium, length: Bytes) -> io::Result<()>;
    /// Writes back and drops the page cache of a block device.
    fn flush_device(&self, device: &Path) -> io::Result<()>;

    /// Mounted filesystems, in mount order.
    fn mounts(&self) -> io::Result<Vec<MountEntry>>;
    /// Mounts a filesystem.
    ///
    /// # Errors
    /// [`MountRefusal`] with the kernel's message.
    fn mount(&self, request: &MountRequest) -> Result<(), MountRefusal>;
    /// Unmounts the topmost filesystem at a path. Lazy (`MNT_DETACH`) and forced unmounts are not
    /// used.
    fn unmount(&self, target: &Path) -> io::Result<()>;
    /// Thaws the filesystem mounted at a path if it is frozen.
    fn thaw(&self, target: &Path) -> io::Result<()>;
    /// Calls `statfs(2)`.
    fn statistics(&self, path: &Path) -> io::Result<Statistics>;
    /// Creates a directory with its parents, and creates files of the given sizes with
    /// incompressible data in this directory. The same seed gives the same data.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] if `stop` is set; the flag is checked before each file.
    fn make_files(
        &self,
        directory: &Path,
        sizes: &[Bytes],
        seed: u64,
        stop: &AtomicBool,
    ) -> io::Result<()>;
    /// Total size of all regular files in a directory tree; a file with several hard links counts
    /// once. Symbolic links are not followed. Entries of the top directory whose names are in
    /// `except` are omitted.
    fn sizes(&self, directory: &Path, except: &[&str]) -> Result<Bytes, UnreadablePath>;
    /// Writes back the filesystem that contains a path (`syncfs(2)`), or the page cache of a block
    /// device (`fsync(2)`).
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// Number of cached bytes of a file or block device.
    fn resident(&self, path: &Path) -> io::Result<Bytes>;
    /// Writes back the filesystem of a directory tree, drops every file of the tree from the page
    /// cache, and, as root, drops the kernel caches. Then counts the pages that are still cached,
    /// for a sample of the files.
    fn evict(&self, directory: &Path) -> io::Result<ResidentPages>;
}

#[cfg(test)]
mod tests;
