//! Failures of a worker: small, without a path, and serializable. A worker process sends them to
//! its parent, which adds the path and converts them to an [`EngineError`].

use std::{
    io,
    path::{Path, PathBuf},
};

use model::{Bytes, phase::Stream};
use serde::{Deserialize, Serialize};

use super::{Difference, EngineError, Operation, TraceProblem};

/// Failure of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// Another worker failed or the caller interrupted the phase.
    Aborted,
    /// A system call failed with this errno.
    Os { operation: Operation, offset: Option<u64>, errno: i32 },
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
    /// A listed directory has another number of entries than the file set.
    Entries { found: u64, expected: u64 },
    /// The directory that was created for the phase was replaced by another one.
    Exchanged,
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
}

impl Memory {
    fn name(self) -> &'static str {
        match self {
            Self::Buffers => "buffers",
            Self::Permutation => "block order",
            Self::ControlBlock => "control block",
            Self::Listing => "entry numbers of one directory",
            Self::Program => "operations of the loadfile",
        }
    }
}

impl Fault {
    /// Failure of an operation on the whole file.
    pub(crate) fn whole(operation: Operation, errno: rustix::io::Errno) -> Self {
        Self::Os { operation, offset: None, errno: errno.raw_os_error() }
    }

    /// Converts the fault to the public error for the file `path` of `stream`.
    pub(crate) fn into_error(self, stream: &Stream, path: &Path) -> EngineError {
        let path = path.to_path_buf();
        match self {
            Self::Aborted => EngineError::Interrupted,
            Self::Os { operation, offset, errno } => {
                let offset = offset.map(Bytes);
                let source = io::Error::from_raw_os_error(errno);
                let transfer =
                    matches!(operation, Operation::Open | Operation::Read | Operation::Write);
                if stream.open.direct
                    && transfer
                    && matches!(errno, libc::EINVAL | libc::EOPNOTSUPP)
                {
                    let block_size = stream.block_size;
                    return EngineError::Direct { operation, path, offset, block_size, source };
                }
                EngineError::Io { operation, path, offset, source }
            }
            Self::Line { operation, line, errno } => {
                let source = io::Error::from_raw_os_error(errno);
                EngineError::Line { operation, path, line, source }
            }
            Self::Nothing { operation: Operation::Read, offset } => {
                EngineError::EndOfFile { path, offset: Bytes(offset) }
            }
            Self::Nothing { operation: Operation::Copy, offset } => {
                EngineError::EndOfFile { path: crate::io::source_of(&path), offset: Bytes(offset) }
            }
            Self::Nothing { operation, offset } => EngineError::Io {
                operation,
                path,
                offset: Some(Bytes(offset)),
                source: io::ErrorKind::WriteZero.into(),
            },
            Self::NotLaidOut { found, needed } => {
                EngineError::NotLaidOut { path, found: Bytes(found), needed: Bytes(needed) }
            }
            Self::SourceNotLaidOut { found, needed } => {
                let path = crate::io::source_of(&path);
                EngineError::NotLaidOut { path, found: Bytes(found), needed: Bytes(needed) }
            }
            Self::Content { offset, difference } => {
                EngineError::Content { path, offset: Bytes(offset), difference }
            }
            Self::TraceFile { errno } => EngineError::TraceFile {
                path: PathBuf::from(&stream.trace_file),
                source: io::Error::from_raw_os_error(errno),
            },
            Self::Trace { line, problem } => {
                EngineError::Trace { path: PathBuf::from(&stream.trace_file), line, problem }
            }
            Self::Exchanged => EngineError::Io {
                operation: Operation::Open,
                path,
                offset: None,
                source: io::Error::other(
                    "not the directory that was created for this phase, or writable by other \
                     users; use a directory that only this user can write to",
                ),
            },
            Self::Entries { found, expected } => EngineError::Entries { path, found, expected },
            Self::Memory { what, bytes, errno } => EngineError::Memory {
                what: what.name(),
                bytes: Bytes(bytes),
                source: io::Error::from_raw_os_error(errno),
            },
        }
    }
}
