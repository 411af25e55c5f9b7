//! Faults of system calls and data: small, without a path, and serializable.

use serde::{Deserialize, Serialize};

use super::{Difference, Operation, TraceProblem};

/// Failure of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// Another worker failed or the caller interrupted the phase.
    Aborted,
    /// A system call failed with this errno.
    Os { operation: Operation, offset: Option<u64>, errno: i32 },
    /// A transfer with direct I/O was rejected with this errno.
    Direct { operation: Operation, offset: Option<u64>, errno: i32, block_size: u64 },
    /// The operation of this line of a loadfile failed with this errno.
    Line { operation: Operation, line: u64, errno: i32 },
    /// A transfer moved no bytes: end of file for a read, unexpected for a write.
    Nothing { operation: Operation, offset: u64 },
    /// The file is shorter than the stream needs.
    NotLaidOut { found: u64, needed: u64 },
    /// The source file of a copy is shorter than the stream needs.
    SourceNotLaidOut { found: u64, needed: u64 },
    /// First block that differs from the written one.
    Content { offset: u64, difference: Difference },
    /// The trace could not be read, with this errno.
    TraceFile { errno: i32 },
    /// A line of the trace is invalid.
    Trace { line: u64, problem: TraceProblem },
    /// A listed directory has a different number of entries than the file set.
    Entries { found: u64, expected: u64 },
    /// The directory that was created for the phase was replaced by another one.
    Exchanged,
    /// The rate of a worker is below its minimum, per second.
    Slow { found: u64, least: u64, bytes: bool },
    /// Memory could not be mapped or reserved.
    Memory { what: Memory, bytes: u64, errno: i32 },
}

/// Use of memory that could not be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Memory {
    Buffers,
    Permutation,
    ControlBlock,
    Listing,
    Program,
    Log,
}

impl Memory {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Buffers => "buffers",
            Self::Permutation => "block order",
            Self::ControlBlock => "control block",
            Self::Listing => "entry numbers of one directory",
            Self::Program => "operations of the loadfile",
            Self::Log => "log of operations",
        }
    }
}

impl Fault {
    /// Failure of an operation on the whole file.
    pub(crate) fn whole(operation: Operation, errno: rustix::io::Errno) -> Self {
        Self::Os { operation, offset: None, errno: errno.raw_os_error() }
    }
}
