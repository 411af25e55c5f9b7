//! File sets ([`Set`]), their creation ([`Layout`]), and operations on each entry ([`Tree`]) or on
//! random entries ([`Mix`]).

use serde::{Deserialize, Serialize};

use super::{
    hierarchy::{DirectoryTree, Selection},
    stream::DataPattern,
    together::TimeLimit,
    workers::Workers,
};
use crate::units::Bytes;

/// Generated directory tree. Name, directory, and size of an entry are functions of its number and
/// the seed, so entries need no memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// Name of the set in the test directory, see [`Sharing`].
    pub name: String,
    /// Sharing of the entries by the workers.
    pub sharing: Sharing,
    /// Number of entries of each worker, at least 1.
    pub files: u64,
    /// Distribution over directories.
    pub spread: Spread,
    /// Names of the entries.
    pub naming: Naming,
    /// File sizes.
    pub sizes: Sizes,
    /// Bytes per read or write call. At least 1, unless all files are empty.
    pub block_size: Bytes,
    /// Written data.
    pub data: DataPattern,
    /// Seed of the data, names, sizes, and order.
    pub seed: u64,
}

/// Sharing of the entries by the workers, as in FxMark (Min et al., USENIX ATC 2016).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Worker w has a separate directory `NAME.w`.
    #[default]
    Private,
    /// All workers share the directory `NAME`, but not its entries. Entries of worker w have the
    /// prefix `w-`.
    Directory,
    /// All workers share the directory `NAME` and its entries.
    File,
}

/// Distribution of entries over directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All entries in the directory of the set.
    Flat,
    /// Entry i in subdirectory `floor(i / each)` of the directory of the set.
    Directories {
        /// Entries per directory, at least 1.
        each: u64,
    },
    /// Entry i in the directory `floor(i / each)` of those directories of a tree that contain
    /// entries. The directories exist; phases whose entries are [`Naming::TreeDirectories`] create
    /// and remove them.
    Tree(DirectoryTree),
}

/// Names of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// Decimal numbers, for entries and directories.
    Numbers,
    /// Decimal numbers, padded with trailing underscores to a length; longer numbers are
    /// unchanged.
    Padded {
        /// Length of a name in bytes, without the prefix of the worker.
        length: u32,
    },
    /// The number as ten hexadecimal digits, then 0 to 12 random letters and digits, so that names
    /// sort by number. Directories have five decimal digits. Used by the sequential tests of
    /// bonnie++.
    Ordered,
    /// The random letters and digits first, so that names are unordered. Used by the random tests
    /// of bonnie++.
    Scrambled,
    /// `file.mdtest.W.I` or `dir.mdtest.W.I` for entry I of worker W, as in mdtest.
    Mdtest {
        /// Names of directories.
        directories: bool,
    },
    /// Entry k is directory k of [`Spread::Tree`]: `mdtest_tree.K` in its parent directory, or
    /// `mdtest_tree.W.K` if worker W has a separate tree ([`Sharing::Private`]).
    TreeDirectories,
}

/// File sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// One size; 0 for empty files.
    Fixed(Bytes),
    /// Uniform from minimum to maximum, inclusive.
    Uniform {
        /// Minimum.
        min: Bytes,
        /// Maximum, at least `min`.
        max: Bytes,
    },
    /// Log-normal, with many small files and few large ones: the usual model of file sizes (Downey,
    /// MASCOTS 2001; Agrawal et al., ACM TOS 3(3), 2007).
    LogNormal {
        /// Mean of the sizes, at least 1.
        mean: Bytes,
        /// Standard deviation of the natural logarithm of a size, 0 to 4.
        sigma: f64,
    },
}

impl Sizes {
    /// Mean of the sizes, rounded down.
    pub fn mean(&self) -> Bytes {
        match *self {
            Self::Fixed(size) => size,
            Self::Uniform { min, max } => Bytes(min.0 + (max.0 - min.0) / 2),
            Self::LogNormal { mean, .. } => mean,
        }
    }

    /// True if all files are empty.
    pub fn are_empty(&self) -> bool {
        match *self {
            Self::Fixed(size) => size == Bytes(0),
            Self::Uniform { max, .. } => max == Bytes(0),
            Self::LogNormal { .. } => false,
        }
    }
}

/// Steps that workers perform on each entry of a set. All workers start together. One operation
/// consists of all steps on one entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// Entries.
    pub set: Set,
    /// Number of passes of a worker over its entries, at least 1.
    pub passes: u64,
    /// Order of entries.
    pub order: TreeOrder,
    /// Steps per entry, in order; at least one.
    pub steps: Vec<TreeStep>,
    /// Final steps after the last entry.
    pub end: TreeEnd,
    /// I/O interface.
    pub calls: Calls,
    /// Workers.
    pub workers: Workers,
    /// Entries that each worker visits.
    #[serde(default, skip_serializing_if = "Selection::is_default")]
    pub selection: Selection,
}

impl Tree {
    /// Tree of one worker and one pass in creation order by system calls, without final steps.
    pub fn new(set: Set, steps: Vec<TreeStep>) -> Self {
        Self {
            set,
            passes: 1,
            order: TreeOrder::Creation,
            steps,
            end: TreeEnd::default(),
            calls: Calls::Syscall,
            workers: Workers::ONE,
            selection: Selection::default(),
        }
    }

    /// Worker whose entries a worker visits: the first one, or the one after `turn` others.
    pub fn owner(&self, worker: u32, turn: u32) -> u32 {
        if self.set.sharing == Sharing::File {
            return 0;
        }
        let of = u64::from(self.workers.count.max(self.selection.owners).max(1));
        let owner = u64::from(worker) + u64::from(self.selection.shift) + u64::from(turn);
        u32::try_from(owner % of).unwrap_or(worker)
    }

    /// True if each file is written, synced, and then renamed: a delivery, as of a mail server.
    pub fn delivers(&self) -> bool {
        let position = |step| self.steps.iter().position(|other| *other == step);
        let (write, fsync) = (position(TreeStep::Write), position(TreeStep::Fsync));
        let rename = position(TreeStep::Rename);
        write.is_some() && write < fsync && fsync < rename
    }
}

/// Order in which a worker visits its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeOrder {
    /// By number.
    Creation,
    /// By descending number.
    Descending,
    /// Random permutation determined by the seed, in constant memory.
    Random,
    /// One directory after another, each in the order of readdir(3). The time of reading a
    /// directory is part of the next operation.
    Listed,
}

/// Final steps after the last entry of a worker. They are timed as the final sync of the phase, and
/// do not count as operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEnd {
    /// rmdir(2) of the directories of the entries, including that of the set.
    pub remove_directories: bool,
    /// sync(2), which writes back all filesystems, as bonnie++ does.
    pub sync: bool,
}

/// I/O interface of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calls {
    /// One system call after another.
    #[default]
    Syscall,
    /// io_uring(7): the steps of an entry are linked, and several entries are in flight.
    Ring {
        /// Entries in flight per worker, at least 1.
        depth: u32,
    },
}

/// Step on an entry. Paths are relative to the directory of the set, which stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeStep {
    /// mkdir(2) of the directory of the entry, if the entry is the first one in it. The directory
    /// may exist. Without this step, directories are created before the measurement starts.
    MakeParent,
    /// open(2) with `O_CREAT | O_EXCL`, for writing, mode 0600.
    Create,
    /// open(2) with `O_CREAT`, for reading and writing, mode 0600. The file may exist.
    OpenCreate,
    /// open(2) for reading and writing.
    Open,
    /// open(2) for reading.
    OpenRead,
    /// write(2) up to the size of the file.
    Write,
    /// pwrite(2) of one block at the start of the open file. The seed, the owner, and the number of
    /// the entry determine the data.
    WriteBlock,
    /// write(2) of one block to the open file, which is opened with `O_APPEND`.
    Append,
    /// read(2) to the end of the file.
    Read,
    /// pread(2) of one block at the start of the open file.
    ReadBlock,
    /// Comparison of the block that was read with the data of [`Self::WriteBlock`].
    VerifyBlock,
    /// open(2) for reading, read(2) of as many bytes as the last stat reported, and close(2).
    /// Nothing if the last stat reported a size of 0.
    Fetch,
    /// fsync(2) of the open file.
    Fsync,
    /// fsync(2) of the directory of the entry.
    FsyncDirectory,
    /// close(2).
    Close,
    /// stat(2) by name.
    Stat,
    /// stat(2) of the name with suffix `.none`, which does not exist.
    StatMissing,
    /// chmod(2) by name, to 0640.
    Chmod,
    /// chown(2) by name, to the user and group of this process.
    Chown,
    /// utimensat(2) by name, to the start of the year 2000.
    SetTimes,
    /// setxattr(2) of attribute `user.fslab` by name, 16 bytes.
    SetXattr,
    /// getxattr(2) of attribute `user.fslab` by name.
    GetXattr,
    /// truncate(2) by name, to half the size.
    Truncate,
    /// fallocate(2) of one block at the start of the open file.
    Allocate,
    /// fallocate(2) with `FALLOC_FL_PUNCH_HOLE` of the first block of the open file.
    PunchHole,
    /// rename(2) to the name with suffix `.new`.
    Rename,
    /// rename(2) of that name back to the original one.
    RenameBack,
    /// rename(2) in a ring, as in mdtest: entry 0 to its name with suffix `-XX`, entry i to the
    /// name of entry i - 1, and instead of the last entry, the first one to the name that is then
    /// free.
    RenameRing,
    /// rename(2) into the directory `across` of the set; the new name is the number of the entry.
    RenameAcross,
    /// link(2) to the name with suffix `.link`.
    Link,
    /// unlink(2) of that link.
    UnlinkLink,
    /// Entry 0: open(2) with `O_CREAT | O_EXCL` and close(2); other entries: link(2) of entry 0.
    LinkFirst,
    /// Entry 0: as [`Self::LinkFirst`]; other entries: symlink(2) to the name of entry 0.
    SymlinkFirst,
    /// symlink(2) of the text `target`.
    Symlink,
    /// unlink(2) of the entry.
    Unlink,
    /// mknod(2) of an empty regular file, mode 0600.
    Mknod,
    /// mkdir(2) of the entry, mode 0700.
    Mkdir,
    /// rmdir(2) of the entry.
    Rmdir,
    /// Reads all names of the directory of the entry.
    List,
}

impl TreeStep {
    /// All steps. Random orders depend on the positions.
    pub const ALL: [Self; 39] = [
        Self::MakeParent,
        Self::Create,
        Self::Open,
        Self::OpenRead,
        Self::Write,
        Self::Append,
        Self::Read,
        Self::Fetch,
        Self::Fsync,
        Self::FsyncDirectory,
        Self::Close,
        Self::Stat,
        Self::StatMissing,
        Self::Chmod,
        Self::Chown,
        Self::SetTimes,
        Self::SetXattr,
        Self::GetXattr,
        Self::Truncate,
        Self::Allocate,
        Self::PunchHole,
        Self::Rename,
        Self::RenameBack,
        Self::RenameAcross,
        Self::Link,
        Self::UnlinkLink,
        Self::LinkFirst,
        Self::SymlinkFirst,
        Self::Symlink,
        Self::Unlink,
        Self::Mknod,
        Self::Mkdir,
        Self::Rmdir,
        Self::List,
        Self::OpenCreate,
        Self::WriteBlock,
        Self::ReadBlock,
        Self::VerifyBlock,
        Self::RenameRing,
    ];

    /// True if the step modifies the filesystem.
    pub const fn changes(self) -> bool {
        match self {
            Self::Open
            | Self::OpenRead
            | Self::Read
            | Self::ReadBlock
            | Self::VerifyBlock
            | Self::Fetch
            | Self::Close
            | Self::Stat
            | Self::StatMissing
            | Self::GetXattr
            | Self::List => false,
            Self::MakeParent
            | Self::Create
            | Self::OpenCreate
            | Self::Write
            | Self::WriteBlock
            | Self::Append
            | Self::Fsync
            | Self::FsyncDirectory
            | Self::Chmod
            | Self::Chown
            | Self::SetTimes
            | Self::SetXattr
            | Self::Truncate
            | Self::Allocate
            | Self::PunchHole
            | Self::Rename
            | Self::RenameBack
            | Self::RenameRing
            | Self::RenameAcross
            | Self::Link
            | Self::UnlinkLink
            | Self::LinkFirst
            | Self::SymlinkFirst
            | Self::Symlink
            | Self::Unlink
            | Self::Mknod
            | Self::Mkdir
            | Self::Rmdir => true,
        }
    }
}

/// Creates the entries of all workers of a set for later phases, with maximum throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Entries. Only one thread at a time works on a directory.
    pub set: Set,
    /// Type of the entries.
    pub item: Item,
    /// Number of workers of the later phases. [`Set::files`] entries are created for each worker,
    /// or only once if the workers share the entries.
    pub owners: u32,
}

/// Type of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Item {
    /// File with the size of the entry. Empty files are created by mknod(2), which needs one call
    /// instead of two.
    #[default]
    File,
    /// Empty directory.
    Directory,
    /// Symbolic link to the text `target`.
    Symlink,
}

/// Weighted random operations on a population of files that grows and shrinks. Files are removed in
/// the order of their numbers, and a new file has the next number. The population is therefore a
/// range of numbers and needs no memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Initial population, created by an earlier phase.
    pub set: Set,
    /// Operations per worker, at least 1; not used if `time` limits the loop.
    pub ops: u64,
    /// Time limit; `None`: the number of operations ends the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeLimit>,
    /// Operations with their relative weights; each operation at most once.
    pub weights: Vec<(MixOp, u32)>,
    /// Workers.
    pub workers: Workers,
}

/// Operation of a mix, on a random file of the population unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MixOp {
    /// stat(2).
    Stat,
    /// open(2) for reading and close(2).
    Open,
    /// open(2), read(2) to the end, close(2).
    Read,
    /// chmod(2).
    Chmod,
    /// Creates a file: open(2) with `O_CREAT | O_EXCL`, write(2) of its size, close(2).
    Create,
    /// unlink(2) of the oldest file; [`Self::Create`] if the population is empty.
    Unlink,
    /// rename(2) of the oldest file to the name with the next number.
    Rename,
}

impl MixOp {
    /// All operations with their names.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Stat, "stat"),
        (Self::Open, "open"),
        (Self::Read, "read"),
        (Self::Chmod, "chmod"),
        (Self::Create, "create"),
        (Self::Unlink, "unlink"),
        (Self::Rename, "rename"),
    ];
}
