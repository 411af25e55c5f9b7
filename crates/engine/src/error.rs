//! What can go wrong in a phase, and what to do about it.
//!
//! [`EngineError`] is the public face. Inside, a worker answers with the smaller [`Fault`], which
//! carries no path and can be sent from a worker process to its parent; the parent adds the path.

use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use model::{Bytes, phase::Stream};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a phase has no result.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The stream asks for something that does not exist.
    #[error("this stream cannot run: {problem}; {cure}")]
    Stream {
        /// What contradicts what.
        problem: &'static str,
        /// What to change.
        cure: &'static str,
    },
    /// The kernel refused an operation on a file.
    #[error("{operation} {}{}{}", .path.display(), at(*.offset), cure(*.operation, .source))]
    Io {
        /// What was being done.
        operation: Operation,
        /// The file.
        path: PathBuf,
        /// Where in the file; none for operations on the file as a whole.
        offset: Option<Bytes>,
        /// The kernel's answer.
        source: io::Error,
    },
    /// `O_DIRECT` was refused: EINVAL (or EOPNOTSUPP) from open(2), read(2), or write(2).
    #[error(
        "{operation} {}{} with direct I/O: this filesystem refuses it, or refuses records of \
         {record}; make the record a multiple of the device's logical block size (4KiB suits most \
         devices), or set direct = false",
        .path.display(), at(*.offset)
    )]
    Direct {
        /// What was being done.
        operation: Operation,
        /// The file.
        path: PathBuf,
        /// Where in the file; none when opening.
        offset: Option<Bytes>,
        /// The size of the records.
        record: Bytes,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A file to be read is missing or too short.
    #[error(
        "{} was not laid out: {found} of {needed} are there; run the phase that writes it first, \
         with the same size and record",
        .path.display()
    )]
    NotLaidOut {
        /// The file.
        path: PathBuf,
        /// Its length; zero when it does not exist.
        found: Bytes,
        /// The length that the records of the stream need.
        needed: Bytes,
    },
    /// A file ended inside a record although it was long enough when it was opened.
    #[error(
        "reading {}: the file ends at offset {}; something truncated it during the phase, keep \
         other programs away from the directory under test",
        .path.display(), .offset.0
    )]
    EndOfFile {
        /// The file.
        path: PathBuf,
        /// Where it ended.
        offset: Bytes,
    },
    /// A record read back is not what was written.
    #[error(
        "content of {} differs at offset {}: expected {expected:#04x}, found {found:#04x}; the \
         storage returned wrong data, unless the file was written with another seed, fill, or \
         record size",
        .path.display(), .offset.0
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// The first byte that differs.
        offset: Bytes,
        /// What was written there.
        expected: u8,
        /// What was read.
        found: u8,
    },
    /// The memory that a worker needs before it starts could not be had.
    #[error("no memory for {bytes} of {what}; use a smaller record or fewer workers")]
    Memory {
        /// What for.
        what: &'static str,
        /// How much.
        bytes: Bytes,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A worker thread or process could not be started.
    #[error(
        "starting worker {worker} ({}); check that the program is there, use fewer workers, or \
         raise the limit of processes (ulimit -u)",
        .program.display()
    )]
    Spawn {
        /// Its index.
        worker: u32,
        /// The program, or `thread`.
        program: OsString,
        /// The system's answer.
        source: io::Error,
    },
    /// A worker process ended without an answer.
    #[error(
        "worker {worker} ended without an answer ({status}); see its message above, or the kernel \
         log if it was killed for lack of memory"
    )]
    WorkerDied {
        /// Its index.
        worker: u32,
        /// How it ended.
        status: ExitStatus,
    },
    /// The pipe to or from a worker process broke.
    #[error("talking to worker {worker}; start the run again")]
    Pipe {
        /// Its index.
        worker: u32,
        /// The system's answer.
        source: io::Error,
    },
    /// The order or the answer of a worker process is not what this version writes.
    #[error("worker {worker} and its parent do not understand each other; run both from one build")]
    Protocol {
        /// Its index; 0 when the worker could not read its order.
        worker: u32,
        /// What was wrong.
        source: serde_json::Error,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// A step of a worker that the kernel can refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// unlink(2).
    Unlink,
    /// open(2) or fopen(3).
    Open,
    /// fstat(2).
    Examine,
    /// lseek(2) or fseeko(3).
    Seek,
    /// read(2), pread(2), or fread(3).
    Read,
    /// write(2), pwrite(2), or fwrite(3).
    Write,
    /// fsync(2), and fflush(3) before it with stdio.
    Flush,
    /// close(2) or fclose(3).
    Close,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unlink => "removing",
            Self::Open => "opening",
            Self::Examine => "examining",
            Self::Seek => "seeking in",
            Self::Read => "reading",
            Self::Write => "writing",
            Self::Flush => "flushing",
            Self::Close => "closing",
        })
    }
}

fn at(offset: Option<Bytes>) -> String {
    offset.map(|offset| format!(" at offset {}", offset.0)).unwrap_or_default()
}

/// The cause and the cure of the refusals a benchmark meets, by errno(3); empty for others, whose
/// own text is the source of the error.
fn cure(operation: Operation, source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENOSPC) => {
            ": the filesystem is full; use a larger device or image, smaller files, or fewer \
             workers"
        }
        Some(libc::EDQUOT) => ": a quota is used up; raise it, or use smaller files",
        Some(libc::EIO) => {
            ": the device below the filesystem failed; look for its error in the kernel log (dmesg)"
        }
        Some(libc::EROFS) => {
            ": the filesystem is read-only; it was mounted so, or became so after an error that \
             the kernel log (dmesg) names"
        }
        Some(libc::EFBIG) => ": the file is larger than the filesystem or ulimit -f allows",
        Some(libc::EMFILE | libc::ENFILE) => ": too many open files; raise ulimit -n",
        Some(libc::EACCES | libc::EPERM) => ": run as a user who may write to this directory",
        Some(libc::ENOENT) if operation == Operation::Open => {
            ": the file or its directory is missing; run the phase that writes it first"
        }
        Some(libc::ENOENT) => ": the file is missing; run the phase that writes it first",
        _ => "",
    }
}

/// What a worker answers instead of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// Someone else failed or the caller interrupted; this worker only obeyed.
    Aborted,
    /// The kernel answered an operation with this errno.
    Os { operation: Operation, offset: Option<u64>, errno: i32 },
    /// A transfer moved nothing: the end of the file for a read, never expected for a write.
    Nothing { operation: Operation, offset: u64 },
    /// The file is shorter than the stream needs.
    NotLaidOut { found: u64, needed: u64 },
    /// The first byte that is not what was written.
    Content { offset: u64, expected: u8, found: u8 },
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
}

impl Memory {
    fn name(self) -> &'static str {
        match self {
            Self::Buffers => "buffers",
            Self::Permutation => "record order",
            Self::ControlBlock => "control block",
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
            Self::Nothing { operation: Operation::Read, offset } => {
                EngineError::EndOfFile { path, offset: Bytes(offset) }
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
            Self::Content { offset, expected, found } => {
                EngineError::Content { path, offset: Bytes(offset), expected, found }
            }
            Self::Memory { what, bytes, errno } => EngineError::Memory {
                what: what.name(),
                bytes: Bytes(bytes),
                source: io::Error::from_raw_os_error(errno),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use model::phase::{Direction, Interface};

    use super::*;
    use crate::io::conformance::stream;

    fn text(direct: bool, operation: Operation, errno: i32) -> String {
        let mut plan = stream(Interface::Offset, Direction::Write, 1);
        plan.open.direct = direct;
        let fault = Fault::Os { operation, offset: None, errno };
        fault.into_error(&plan, Path::new("/mnt/f.0")).to_string()
    }

    #[test]
    fn a_refusal_of_direct_io_says_so_and_others_do_not() {
        let refusal = "with direct I/O: this filesystem refuses it, or refuses records of 4KiB; ";
        assert!(text(true, Operation::Open, libc::EINVAL).contains(refusal));
        assert!(text(true, Operation::Write, libc::EOPNOTSUPP).contains(refusal));
        assert_eq!(text(false, Operation::Write, libc::EINVAL), "writing /mnt/f.0");
        assert_eq!(text(true, Operation::Flush, libc::EINVAL), "flushing /mnt/f.0");
    }

    #[test]
    fn refusals_that_a_benchmark_meets_name_cause_and_cure() {
        for (errno, cure) in [
            (libc::ENOSPC, "the filesystem is full; use a larger device"),
            (libc::EDQUOT, "a quota is used up; raise it"),
            (libc::EIO, "the device below the filesystem failed; look for its error"),
            (libc::EROFS, "the filesystem is read-only; "),
            (libc::EFBIG, "larger than the filesystem or ulimit -f allows"),
            (libc::EMFILE, "raise ulimit -n"),
            (libc::EACCES, "run as a user who may write"),
            (libc::ENOENT, "run the phase that writes it first"),
        ] {
            let text = text(true, Operation::Open, errno);
            assert!(text.starts_with("opening /mnt/f.0: ") && text.contains(cure), "{text}");
        }
    }
}
