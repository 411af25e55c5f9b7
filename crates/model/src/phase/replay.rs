//! Replays of load files: what a file server did for a client, line after line, by many clients.

use serde::{Deserialize, Serialize};

use super::workers::Workers;
use crate::units::{Bytes, Nanos};

/// Clients replay a load file, each in a directory of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Whose operations are done.
    pub load: Load,
    /// When it ends.
    pub until: Until,
    /// Before any operation on a name that is not there, its directory is read to the end, as a
    /// server does that looks for the name in any case of letters.
    pub resolve: bool,
    /// What is made durable on the way.
    pub durability: Durability,
    /// A new file gets an extended attribute, which every look at it reads, as a server keeps the
    /// attributes of another system there.
    pub attributes: bool,
    /// Bytes a second that each client reads and writes at most; `None`: as fast as it can.
    pub rate: Option<Bytes>,
    /// Operations are begun at the times that the load file has for them; being late counts as
    /// latency.
    pub paced: bool,
    /// One cheap system call before each operation, as the classic tool makes to see whether its
    /// parent is alive: only for comparing with that tool.
    pub line_call: bool,
    /// The clients.
    pub workers: Workers,
}

/// A load file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// One that a user has, plain or compressed by gzip.
    File {
        /// Its path; `None`: where the package of the classic tool installs it.
        path: Option<String>,
    },
    /// Our own, an office at a file server; it is made, not stored.
    Office {
        /// How often its day goes by, at least 1; a replay that gets to the end begins anew.
        iterations: u64,
        /// What it is drawn from.
        seed: u64,
    },
}

/// When a replay ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Each client has replayed the load file so many times; everything counts.
    Replayed(u64),
    /// A time is over. The load file begins anew when it is at its end.
    Time {
        /// What is done first and not counted.
        ramp: Nanos,
        /// What counts.
        run: Nanos,
    },
}

/// What a replay makes durable beside what its load file flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durability {
    /// Files are opened with `O_SYNC`.
    pub files: bool,
    /// A directory is flushed after a name in it was changed.
    pub directories: bool,
    /// Every write is followed by fsync(2).
    pub writes: bool,
}

/// One operation of a load file, by the name that load files have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReplayOp {
    /// Opens or makes a file or a directory.
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
    /// Makes a directory.
    Mkdir,
    /// Looks at a name.
    Qpathinfo,
    /// Looks at an open file.
    Qfileinfo,
    /// Asks what space there is.
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
    /// Unlocks it.
    UnlockX,
    /// Flushes a file.
    Flush,
    /// Does nothing for a while.
    Sleep,
}

impl ReplayOp {
    /// All of them, in the order in which the classic tool tells them.
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

    /// Its name in tables and files.
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

    /// Its word among the things that are timed, see [`crate::record::TimesOf`].
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

    /// Whether it changes the filesystem, which makes it count as a write; the others are reads.
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
