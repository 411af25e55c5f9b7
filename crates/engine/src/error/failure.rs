//! Failure of a worker with its path, and the conversion to the public error.

use std::{io, path::PathBuf};

use model::Bytes;

use super::{EngineError, Fault, Operation};

/// Fault with the path of the file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Fault.
    pub(crate) fault: Fault,
    /// Path.
    pub(crate) path: PathBuf,
}

impl From<Failure> for EngineError {
    fn from(Failure { fault, path }: Failure) -> Self {
        let os = io::Error::from_raw_os_error;
        match fault {
            Fault::Aborted => Self::Interrupted,
            Fault::Os { operation, offset, errno } => {
                Self::Io { operation, path, offset: offset.map(Bytes), source: os(errno) }
            }
            Fault::Direct { operation, offset, errno, block_size } => Self::Direct {
                operation,
                path,
                offset: offset.map(Bytes),
                block_size: Bytes(block_size),
                source: os(errno),
            },
            Fault::Line { operation, line, errno } => {
                Self::Line { operation, path, line, source: os(errno) }
            }
            Fault::Nothing { operation: Operation::Read | Operation::Copy, offset } => {
                Self::EndOfFile { path, offset: Bytes(offset) }
            }
            Fault::Nothing { operation, offset } => Self::Io {
                operation,
                path,
                offset: Some(Bytes(offset)),
                source: io::ErrorKind::WriteZero.into(),
            },
            Fault::NotLaidOut { found, needed } | Fault::SourceNotLaidOut { found, needed } => {
                Self::NotLaidOut { path, found: Bytes(found), needed: Bytes(needed) }
            }
            Fault::Content { offset, difference } => {
                Self::Content { path, offset: Bytes(offset), difference }
            }
            Fault::TraceFile { errno } => Self::TraceFile { path, source: os(errno) },
            Fault::Trace { line, problem } => Self::Trace { path, line, problem },
            Fault::Exchanged => Self::Io {
                operation: Operation::Open,
                path,
                offset: None,
                source: io::Error::other(
                    "not the directory that was created for this phase, or writable by other \
                     users; use a directory that only this user can write to",
                ),
            },
            Fault::Slow { found, least, bytes } => Self::Slow { path, found, least, bytes },
            Fault::Entries { found, expected } => Self::Entries { path, found, expected },
            Fault::Memory { what, bytes, errno } => {
                Self::Memory { what: what.name(), bytes: Bytes(bytes), source: os(errno) }
            }
        }
    }
}
