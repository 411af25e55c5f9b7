//! What a worker answers instead of a result: small, without a path, and fit to be sent from a
//! worker process to its parent, which adds the path and makes it an [`EngineError`].

use std::{
    io,
    path::{Path, PathBuf},
};

use model::{Bytes, phase::Stream};
use serde::{Deserialize, Serialize};

use super::{Difference, EngineError, ListProblem, Operation};

/// What a worker answers instead of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// Someone else failed or the caller interrupted; this worker only obeyed.
    Aborted,
    /// The kernel answered an operation with this errno.
    Os { operation: Operation, offset: Option<u64>, errno: i32 },
    /// The kernel answered the operation of this line of a load file with this errno.
    Line { operation: Operation, line: u64, errno: i32 },
    /// A transfer moved nothing: the end of the file for a read, never expected for a write.
    Nothing { operation: Operation, offset: u64 },
    /// The file is shorter than the stream needs.
    NotLaidOut { found: u64, needed: u64 },
    /// The file that is to be copied is shorter than the stream needs.
    SourceNotLaidOut { found: u64, needed: u64 },
    /// The first block that is not what was written.
    Content { offset: u64, difference: Difference },
    /// The list of operations could not be read, with this errno.
    ListFile { errno: i32 },
    /// A line of the list of operations cannot be replayed.
    List { line: u64, problem: ListProblem },
    /// A directory that was listed holds another number of entries than the set says.
    Entries { found: u64, expected: u64 },
    /// Another directory is in the place of the one that was made for the phase.
    Exchanged,
    /// Memory could not be mapped or reserved.
    Memory { what: Memory, bytes: u64, errno: i32 },
}

/// What memory was asked for.
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
            Self::Permutation => "record order",
            Self::ControlBlock => "control block",
            Self::Listing => "numbers of the entries of one directory",
            Self::Program => "operations of a load file",
        }
    }
}

impl Fault {
    /// An operation on the file as a whole that the kernel refused.
    pub(crate) fn whole(operation: Operation, errno: rustix::io::Errno) -> Self {
        Self::Os { operation, offset: None, errno: errno.raw_os_error() }
    }

    /// The public error, for the file `path` of `stream`.
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
                    let record = stream.record;
                    return EngineError::Direct { operation, path, offset, record, source };
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
            Self::ListFile { errno } => EngineError::ListFile {
                path: PathBuf::from(&stream.list),
                source: io::Error::from_raw_os_error(errno),
            },
            Self::List { line, problem } => {
                EngineError::List { path: PathBuf::from(&stream.list), line, problem }
            }
            Self::Exchanged => EngineError::Io {
                operation: Operation::Open,
                path,
                offset: None,
                source: io::Error::other(
                    "it is not the directory that was made for this phase, or others may write to \
                     it; measure in a directory that only this user may write to",
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
