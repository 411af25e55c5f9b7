//! Replays of loadfiles: the operations of a file server, by several clients.

use serde::{Deserialize, Serialize};

use super::workers::Workers;
use crate::units::{Bytes, Nanos};

/// Concurrent clients that replay a loadfile, each in its own directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Loadfile.
    pub loadfile: Load,
    /// Condition that ends the replay.
    pub until: Until,
    /// If a name does not exist, the whole directory is read, as a file server for case-insensitive
    /// clients does.
    pub resolve: bool,
    /// Additional sync calls.
    pub durability: Durability,
    /// Extended attributes are set on new files and read by each query.
    pub xattr: bool,
    /// Maximum bytes per second of each client; `None`: unlimited.
    pub rate: Option<Bytes>,
    /// Starts operations at the times of the loadfile; delays count as latency.
    pub use_timestamps: bool,
    /// Extra system call per operation, with which dbench checks its parent process.
    pub parent_check: bool,
    /// Clients.
    pub workers: Workers,
}

/// Loadfile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// File of the user, plain or gzip.
    File {
        /// Path; `None`: that of the package dbench.
        path: Option<String>,
    },
    /// Built-in loadfile, which is generated.
    Office {
        /// Iterations, at least 1. The replay starts again after the last one.
        iterations: u64,
        /// Seed.
        seed: u64,
    },
}

/// End of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// After this many complete replays of each client. All of them are measured.
    Replayed(u64),
    /// After a time. The loadfile is repeated until then.
    Time {
        /// Ramp time, which is not measured.
        ramp: Nanos,
        /// Measured time.
        run: Nanos,
    },
}

/// Sync calls in addition to those of the loadfile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durability {
    /// Files are opened with `O_SYNC`.
    pub files: bool,
    /// fsync(2) of the directory after a rename or removal.
    pub directories: bool,
    /// fsync(2) after each write.
    pub writes: bool,
}

/// Operation of a loadfile, with its name in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReplayOp {
    /// Opens or creates a file or directory.
    NTCreateX,
    /// Closes a handle.
    Close,
    /// Renames.
    Rename,
    /// Removes a file.
    Unlink,
    /// Removes all files below a directory.
    Deltree,
    /// Removes a directory.
    Rmdir,
    /// Creates a directory.
    Mkdir,
    /// Queries a path.
    Qpathinfo,
    /// Queries an open file.
    Qfileinfo,
    /// Queries the free space.
    Qfsinfo,
    /// Sets the times of an open file.
    Sfileinfo,
    /// Lists a directory.
    Find,
    /// Writes.
    WriteX,
    /// Reads.
    ReadX,
    /// Locks a range.
    LockX,
    /// Unlocks a range.
    UnlockX,
    /// Syncs a file.
    Flush,
    /// Sleeps.
    Sleep,
}

impl ReplayOp {
    /// All operations, in the order of the output of dbench.
    pub const ALL: [Self; 18] = [
        Self::NTCreateX,
        Self::Close,
        Self::Rename,
        Self::Unlink,
        Self::Deltree,
        Self::Rmdir,
        Self::Mkdir,
        Self::Qpathinfo,
        Self::Qfileinfo,
        Self::Qfsinfo,
        Self::Sfileinfo,
        Self::Find,
        Self::WriteX,
        Self::ReadX,
        Self::LockX,
        Self::UnlockX,
        Self::Flush,
        Self::Sleep,
    ];

    /// Name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NTCreateX => "NTCreateX",
            Self::Close => "Close",
            Self::Rename => "Rename",
            Self::Unlink => "Unlink",
            Self::Deltree => "Deltree",
            Self::Rmdir => "Rmdir",
            Self::Mkdir => "Mkdir",
            Self::Qpathinfo => "Qpathinfo",
            Self::Qfileinfo => "Qfileinfo",
            Self::Qfsinfo => "Qfsinfo",
            Self::Sfileinfo => "Sfileinfo",
            Self::Find => "Find",
            Self::WriteX => "WriteX",
            Self::ReadX => "ReadX",
            Self::LockX => "LockX",
            Self::UnlockX => "UnlockX",
            Self::Flush => "Flush",
            Self::Sleep => "Sleep",
        }
    }

    /// Name of the histogram of latencies of the operation, see [`crate::record::HistogramKind`].
    pub const fn word(self) -> &'static str {
        match self {
            Self::NTCreateX => "op:NTCreateX",
            Self::Close => "op:Close",
            Self::Rename => "op:Rename",
            Self::Unlink => "op:Unlink",
            Self::Deltree => "op:Deltree",
            Self::Rmdir => "op:Rmdir",
            Self::Mkdir => "op:Mkdir",
            Self::Qpathinfo => "op:Qpathinfo",
            Self::Qfileinfo => "op:Qfileinfo",
            Self::Qfsinfo => "op:Qfsinfo",
            Self::Sfileinfo => "op:Sfileinfo",
            Self::Find => "op:Find",
            Self::WriteX => "op:WriteX",
            Self::ReadX => "op:ReadX",
            Self::LockX => "op:LockX",
            Self::UnlockX => "op:UnlockX",
            Self::Flush => "op:Flush",
            Self::Sleep => "op:Sleep",
        }
    }

    /// True for operations that modify the filesystem. They count as writes, all others as reads.
    pub const fn changes(self) -> bool {
        match self {
            Self::NTCreateX
            | Self::Rename
            | Self::Unlink
            | Self::Deltree
            | Self::Rmdir
            | Self::Mkdir
            | Self::Sfileinfo
            | Self::WriteX
            | Self::Flush => true,
            Self::Close
            | Self::Qpathinfo
            | Self::Qfileinfo
            | Self::Qfsinfo
            | Self::Find
            | Self::ReadX
            | Self::LockX
            | Self::UnlockX
            | Self::Sleep => false,
        }
    }
}
