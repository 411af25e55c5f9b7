//! Many entries: what they are ([`Set`]), how they come to be there ([`Layout`]), and what is done
//! to each of them ([`Tree`]) or to some of them ([`Mix`]).

use serde::{Deserialize, Serialize};

use super::{stream::Fill, workers::Workers};
use crate::units::Bytes;

/// Entries of directories: what each is called, where it is, and how large it is. All of it follows
/// from the number of the entry and the seed, so nothing has to be kept of any of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// Name of the set in the directory under test, see [`Sharing`].
    pub name: String,
    /// Which worker has which entries.
    pub sharing: Sharing,
    /// Entries of each worker, at least 1.
    pub files: u64,
    /// How they are spread over directories.
    pub spread: Spread,
    /// What they are called.
    pub naming: Naming,
    /// How large the files are.
    pub sizes: Sizes,
    /// Bytes of one read or write call, at least 1 if files are not empty.
    pub record: Bytes,
    /// What is written.
    pub fill: Fill,
    /// Seed of the data, names, sizes, and order.
    pub seed: u64,
}

/// Which worker has which entries: the degrees of sharing by which FxMark (Min et al., USENIX ATC
/// 2016) tells where a filesystem stops scaling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Worker w has the directory `NAME.w` with entries of its own.
    #[default]
    Private,
    /// All workers have the directory `NAME`; entries of worker w are its own and have `w-` before
    /// their names.
    Directory,
    /// All workers have the directory `NAME` and the same entries in it.
    File,
}

/// How entries are spread over directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All of them lie in the directory of the set.
    Flat,
    /// Entry i lies in the directory `floor(i / each)` in that of the set.
    Directories {
        /// Entries of one directory, at least 1.
        each: u64,
    },
}

/// What entries are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// Their number in decimal; directories likewise.
    Numbers,
    /// Their number in decimal, filled up behind with underscores to so many bytes; a number that
    /// is longer stays as it is.
    Padded {
        /// Length of a name in bytes, a prefix for the worker not counted.
        length: u32,
    },
    /// Ten hexadecimal digits of the number and then 0 to 12 random letters and digits, so names
    /// sort as they are numbered; directories have five decimal digits. A name of bonnie++'s
    /// sequential tests.
    Ordered,
    /// The random letters and digits first, so names sort in no order: bonnie++'s random tests.
    Scrambled,
}

/// How large files are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// All the same; 0 makes empty files.
    Fixed(Bytes),
    /// Every size from the least to the most, both included, equally often.
    Uniform {
        /// The least.
        min: Bytes,
        /// The most, not below the least.
        max: Bytes,
    },
    /// Log-normal: many small files, and few that are large. The usual model of file sizes
    /// (Downey, MASCOTS 2001; Agrawal et al., ACM TOS 3(3), 2007).
    LogNormal {
        /// The mean of the sizes, at least 1.
        mean: Bytes,
        /// Standard deviation of the natural logarithm of a size, within 0..=4.
        sigma: f64,
    },
}

impl Sizes {
    /// The mean of the sizes, rounded down.
    pub fn mean(&self) -> Bytes {
        match *self {
            Self::Fixed(size) => size,
            Self::Uniform { min, max } => Bytes(min.0 + (max.0 - min.0) / 2),
            Self::LogNormal { mean, .. } => mean,
        }
    }

    /// Whether all files are empty.
    pub fn are_empty(&self) -> bool {
        match *self {
            Self::Fixed(size) => size == Bytes(0),
            Self::Uniform { max, .. } => max == Bytes(0),
            Self::LogNormal { .. } => false,
        }
    }
}

/// The same steps for each entry of a set, by workers that start together. One operation is all
/// steps of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// The entries.
    pub set: Set,
    /// How often a worker goes over its entries, at least 1.
    pub passes: u64,
    /// The order of entries.
    pub order: TreeOrder,
    /// What is done to each entry, in order; at least one step.
    pub steps: Vec<TreeStep>,
    /// What follows the last entry.
    pub end: TreeEnd,
    /// How the calls are made.
    pub calls: Calls,
    /// Who does the work.
    pub workers: Workers,
}

impl Tree {
    /// One worker that does these steps once to each entry, in the order they are numbered, with
    /// plain calls and nothing behind them: the tree that all others are variations of.
    pub fn new(set: Set, steps: Vec<TreeStep>) -> Self {
        Self {
            set,
            passes: 1,
            order: TreeOrder::Created,
            steps,
            end: TreeEnd::default(),
            calls: Calls::Plain,
            workers: Workers::ONE,
        }
    }
}

/// The order in which a worker goes through its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeOrder {
    /// As they are numbered.
    Created,
    /// In a permutation drawn from the seed, in constant memory.
    Shuffled,
    /// Directory after directory, in the order in which readdir(3) answers the entries; reading
    /// the directory is part of the time of the entry it leads to.
    Listed,
}

/// What follows the last entry of a worker, timed as the flush of the phase but no operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEnd {
    /// rmdir(2) of the directories that held the entries, that of the set included.
    pub remove_directories: bool,
    /// sync(2): everything of all filesystems, as one of the classic tools does.
    pub sync: bool,
}

/// How the calls of a tree are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calls {
    /// One system call after the other.
    #[default]
    Plain,
    /// io_uring(7): the steps of an entry are linked, and those of several are in flight.
    Ring {
        /// Entries in flight for each worker, at least 1.
        depth: u32,
    },
}

/// One thing done to an entry. Names are relative to the directory of the set, which stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeStep {
    /// mkdir(2) of the directory that holds the entry, when the entry is the first in it; one that
    /// is there is as good. Without this step directories are made before the clock starts.
    MakeParent,
    /// open(2) with `O_CREAT | O_EXCL`, for writing, mode 0600.
    Create,
    /// open(2) for reading and writing.
    Open,
    /// open(2) for reading.
    OpenRead,
    /// write(2) until the file has its size.
    Write,
    /// One record at the end of the file, opened with `O_APPEND`, to an open file.
    Append,
    /// read(2) to the end of the file.
    Read,
    /// If the last stat told that the file holds anything: open(2) for reading, read(2) of that
    /// many bytes, close(2).
    Fetch,
    /// fsync(2) of the open file.
    Fsync,
    /// fsync(2) of the directory of the entry.
    FsyncDirectory,
    /// close(2).
    Close,
    /// stat(2) by name.
    Stat,
    /// stat(2) of the name with `.none` behind it, which is not there.
    StatMissing,
    /// chmod(2) by name, to 0640.
    Chmod,
    /// chown(2) by name, to the user and group of this process.
    Chown,
    /// utimensat(2) by name, to the beginning of 2000.
    SetTimes,
    /// setxattr(2) of `user.fslab` to 16 bytes, by name.
    SetXattr,
    /// getxattr(2) of it.
    GetXattr,
    /// truncate(2) by name, to half the size.
    Truncate,
    /// fallocate(2) of one record at the start of the open file.
    Allocate,
    /// fallocate(2) with `FALLOC_FL_PUNCH_HOLE` over the first record of the open file.
    PunchHole,
    /// rename(2) to the name with `.new` behind it.
    Rename,
    /// rename(2) back from that name.
    RenameBack,
    /// rename(2) into the directory `across` of the set, under the entry's number.
    RenameAcross,
    /// link(2) to the name with `.link` behind it.
    Link,
    /// unlink(2) of that link.
    UnlinkLink,
    /// For entry 0 open(2) with `O_CREAT | O_EXCL` and close(2); for all others link(2) of entry 0.
    LinkFirst,
    /// For entry 0 the same; for all others symlink(2) to the name of entry 0.
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
    /// Read all names of the directory of the entry.
    List,
}

impl TreeStep {
    /// All of them, in the order of their definition.
    pub const ALL: [Self; 34] = [
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
    ];

    /// Whether it changes what the filesystem holds.
    pub const fn changes(self) -> bool {
        match self {
            Self::Open
            | Self::OpenRead
            | Self::Read
            | Self::Fetch
            | Self::Close
            | Self::Stat
            | Self::StatMissing
            | Self::GetXattr
            | Self::List => false,
            Self::MakeParent
            | Self::Create
            | Self::Write
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

/// Makes the entries of all workers of a set, as fast as it can, for the phases that follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The entries. Each directory is the work of one maker at a time.
    pub set: Set,
    /// What they are.
    pub item: Item,
    /// Workers of the phases that follow: so many times [`Set::files`] are made, or once where all
    /// workers have the same entries.
    pub owners: u32,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Item {
    /// A file of its size; an empty one is made by mknod(2), which is one call instead of two.
    #[default]
    File,
    /// An empty directory.
    Directory,
    /// A symbolic link to the text `target`.
    Symlink,
}

/// Operations drawn by weight, on a population of files that grows, shrinks, and moves on: its
/// oldest is removed, and a new one gets the next number, so that it is a window over the numbers
/// and takes no memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// The population at the start, which an earlier phase has made.
    pub set: Set,
    /// Operations of each worker, at least 1.
    pub ops: u64,
    /// Operations and how often each is drawn relative to the others; each at most once.
    pub weights: Vec<(MixOp, u32)>,
    /// Who does the work.
    pub workers: Workers,
}

/// One operation of a mix; on any file of the population unless it says which.
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
    /// A new file: open(2) with `O_CREAT | O_EXCL`, its size written, close(2).
    Create,
    /// unlink(2) of the oldest file; if there is none, `create` instead.
    Unlink,
    /// rename(2) of the oldest file to the next number.
    Rename,
}

impl MixOp {
    /// All of them with their words.
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
