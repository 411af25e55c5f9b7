//! Errors of a phase, with hints.
//!
//! [`EngineError`] is the public type. Functions that make system calls return the smaller
//! [`Fault`], which has no path. A worker adds the path. The resulting [`Failure`] can be sent from
//! a worker process to its parent, and is converted to the public error in one place.

mod difference;
mod failure;
mod fault;
mod hint;
mod operation;
mod trace;

use std::{ffi::OsString, io, path::PathBuf, process::ExitStatus};

use model::Bytes;
use thiserror::Error;

pub use difference::Difference;
pub(crate) use failure::Failure;
pub(crate) use fault::{Fault, Memory};
use hint::hint;
pub use operation::Operation;
pub use trace::TraceProblem;

/// Error of a phase.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The stream (block I/O on files) is invalid.
    #[error("invalid workload: {problem}; {hint}")]
    Stream {
        /// Problem.
        problem: &'static str,
        /// Hint.
        hint: &'static str,
    },
    /// The tree (operations on the entries of a file set) is invalid.
    #[error("invalid workload: {problem}; {hint}")]
    Tree {
        /// Problem.
        problem: &'static str,
        /// Hint.
        hint: &'static str,
    },
    /// The replay (operations of a loadfile) is invalid.
    #[error("invalid workload: {problem}; {hint}")]
    Replay {
        /// Problem.
        problem: &'static str,
        /// Hint.
        hint: &'static str,
    },
    /// The kernel rejected an operation of a replay that cannot be skipped.
    #[error(
        "{operation} {} for line {line} of the loadfile{}",
        .path.display(), hint(*.operation, .source)
    )]
    Line {
        /// Operation.
        operation: Operation,
        /// Path of the operation.
        path: PathBuf,
        /// Line of the loadfile, from 1.
        line: u64,
        /// Error of the system call.
        source: io::Error,
    },
    /// The task is invalid.
    #[error("invalid task: {problem}; {hint}")]
    Task {
        /// Problem.
        problem: String,
        /// Hint.
        hint: &'static str,
    },
    /// An archive cannot or must not be unpacked.
    #[error("the archive {}: {problem}; {hint}", .path.display())]
    Archive {
        /// Path of the archive.
        path: PathBuf,
        /// Problem.
        problem: String,
        /// Hint.
        hint: String,
    },
    /// A program of a task could not be started.
    #[error(
        "starting {program}; install it (on Debian the package {package}), or use \
         method native"
    )]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Debian package of the program.
        package: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// A program of a task failed.
    #[error("`{command}` {verdict}; check its output, or use method native")]
    ProgramFailed {
        /// Command line, shortened.
        command: String,
        /// Exit status and output.
        verdict: String,
    },
    /// The kernel rejected an operation on a file.
    #[error("{operation} {}{}{}", .path.display(), at(*.offset), hint(*.operation, .source))]
    Io {
        /// Operation.
        operation: Operation,
        /// Path of the file.
        path: PathBuf,
        /// Offset in the file; `None` for operations on the whole file.
        offset: Option<Bytes>,
        /// Error of the system call.
        source: io::Error,
    },
    /// `O_DIRECT` was rejected: EINVAL (or EOPNOTSUPP) from open(2), read(2), or write(2).
    #[error(
        "{operation} {}{} with direct I/O: not supported by the filesystem, or not with block \
         size {block_size}; use a multiple of the device's logical block size (4KiB suits most \
         devices), or set direct = false",
        .path.display(), at(*.offset)
    )]
    Direct {
        /// Operation.
        operation: Operation,
        /// Path of the file.
        path: PathBuf,
        /// Offset in the file; `None` when opening.
        offset: Option<Bytes>,
        /// Block size.
        block_size: Bytes,
        /// Error of the system call.
        source: io::Error,
    },
    /// A file to read is missing or too short.
    #[error(
        "{} has {found}, {needed} needed; run the phase that writes it first, \
         with the same file_size and block_size",
        .path.display()
    )]
    NotLaidOut {
        /// Path of the file.
        path: PathBuf,
        /// Length of the file; zero if it does not exist.
        found: Bytes,
        /// Length that the stream needs.
        needed: Bytes,
    },
    /// A listed directory has a different number of entries than the file set.
    #[error(
        "the directory {} has {found} of {expected} entries of the file set; run the phase that \
         creates them first, with the same file set and number of workers",
        .path.display()
    )]
    Entries {
        /// Path of the directory.
        path: PathBuf,
        /// Entries found.
        found: u64,
        /// Entries of the file set.
        expected: u64,
    },
    /// A file ended inside a block, although it was long enough when it was opened.
    #[error(
        "reading {}: the file ends at offset {}: another process truncated it during the phase; \
         keep other programs away from the directory under test",
        .path.display(), .offset.0
    )]
    EndOfFile {
        /// Path of the file.
        path: PathBuf,
        /// End of the file.
        offset: Bytes,
    },
    /// A block that was read differs from the block that was written.
    #[error(
        "the block of {} at offset {} differs from the written one: {difference}; the storage \
         returned wrong data, unless another process wrote to the file",
        .path.display(), .offset.0
    )]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the block.
        offset: Bytes,
        /// Kind of difference.
        difference: Difference,
    },
    /// The directory that a crash state names does not exist.
    #[error(
        "{} does not exist, nothing can be verified; mount the filesystem at the same path (a \
         completed run and `fslab clean` remove the files)",
        .path.display()
    )]
    Gone {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The crash state cannot be written or read.
    #[error(
        "cannot read or write the crash state {}; check the path given to --crash-state",
        .path.display()
    )]
    State {
        /// Path of the state file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A new crash state would replace an existing file.
    #[error(
        "the crash state {} already exists; verify it with `fslab verify {}` or use another path",
        .path.display(),
        .path.display()
    )]
    StateExists {
        /// Path of the file.
        path: PathBuf,
    },
    /// A trace could not be read.
    #[error(
        "reading the trace {}; check that it is a file readable by this user",
        .path.display()
    )]
    TraceFile {
        /// Path of the trace.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// A trace has an invalid line.
    #[error("line {line} of the trace {}: {problem}", .path.display())]
    Trace {
        /// Path of the trace.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// Problem of the line.
        problem: TraceProblem,
    },
    /// A loadfile could not be read or written.
    #[error(
        "cannot open the loadfile {}; check the path and its permissions",
        .path.display()
    )]
    LoadFile {
        /// Path of the loadfile.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A loadfile is invalid.
    #[error("{}the loadfile {}: {problem}; {hint}", of_line(*.line), .path.display())]
    Load {
        /// Path of the loadfile.
        path: PathBuf,
        /// Line number, from 1; `None` for the file as a whole.
        line: Option<u64>,
        /// Problem, with the offending value.
        problem: String,
        /// Hint.
        hint: &'static str,
    },
    /// The rate of a worker is below its minimum.
    #[error(
        "{}: a worker had {found} {} per second, less than its minimum of {least}; use a lower \
         minimum rate, or remove it",
        .path.display(),
        if *.bytes { "bytes" } else { "operations" }
    )]
    Slow {
        /// File of the worker.
        path: PathBuf,
        /// Rate since the previous check, per second.
        found: u64,
        /// Minimum rate, per second.
        least: u64,
        /// True for bytes, false for operations.
        bytes: bool,
    },
    /// The memory that a worker needs before it starts is not available.
    #[error("cannot allocate {bytes} for the {what}; use a smaller block_size or fewer workers")]
    Memory {
        /// Use of the memory.
        what: &'static str,
        /// Size of the memory.
        bytes: Bytes,
        /// Error of the system call.
        source: io::Error,
    },
    /// A worker thread or process could not be started.
    #[error(
        "starting worker {worker} ({}); check that the program exists, use fewer workers, or \
         raise the process limit (ulimit -u)",
        .program.display()
    )]
    Spawn {
        /// Index of the worker.
        worker: u32,
        /// Program, or `thread`.
        program: OsString,
        /// Error of the system.
        source: io::Error,
    },
    /// A worker process ended without a reply.
    #[error(
        "worker {worker} ended without a result ({status}); see its message above, or the kernel \
         log if it ran out of memory"
    )]
    WorkerDied {
        /// Index of the worker.
        worker: u32,
        /// Exit status.
        status: ExitStatus,
    },
    /// The pipe to or from a worker process broke.
    #[error("communicating with worker {worker}; repeat the run")]
    Pipe {
        /// Index of the worker.
        worker: u32,
        /// Error of the system.
        source: io::Error,
    },
    /// The job or the reply of a worker process cannot be parsed.
    #[error(
        "worker {worker} uses another protocol version; run parent and worker from the same \
         build"
    )]
    Protocol {
        /// Index of the worker; 0 if the worker could not read its job.
        worker: u32,
        /// Cause.
        source: serde_json::Error,
    },
    /// The filesystem or the kernel does not support an operation of the phase; detected before any
    /// measurement.
    #[error("{what} is not supported by this filesystem or kernel")]
    Unsupported {
        /// Missing feature: `extended attributes`, `hard links`, `io_uring openat`.
        what: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// A recording cannot be read or replayed.
    #[error("the recording {}: {source}", .path.display())]
    Recording {
        /// Path of the recording.
        path: PathBuf,
        /// Cause, with a hint.
        #[source]
        source: ::trace::TraceError,
    },
    /// A replay did not do the work of the recorded program.
    #[error(
        "{count} of {of} operations were not done or have another result than recorded ({most}); \
         record the program again on this type of filesystem, or set `unexpected_max`"
    )]
    Diverged {
        /// Operations with another result, and operations that were not done.
        count: u64,
        /// All operations.
        of: u64,
        /// Most frequent differences.
        most: String,
    },
    /// SQLite reported an error.
    #[error("SQLite on {}", .path.display())]
    Sqlite {
        /// Path of the database.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// A maintenance action failed.
    #[error("maintenance action `{action}`")]
    Maintenance {
        /// Name of the action.
        action: &'static str,
        /// Cause.
        source: io::Error,
    },
    /// A change of a file failed, or was not seen by another worker.
    #[error("coherence of {}", .path.display())]
    Coherence {
        /// Directory of the files.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The caller interrupted the phase.
    #[error("interrupted")]
    Interrupted,
}

fn at(offset: Option<Bytes>) -> String {
    offset.map(|offset| format!(" at offset {}", offset.0)).unwrap_or_default()
}

fn of_line(line: Option<u64>) -> String {
    line.map(|line| format!("line {line} of ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::phase::{Direction, IoEngineKind};

    use super::*;
    use crate::io::conformance::stream;

    fn text(direct: bool, operation: Operation, errno: i32) -> String {
        let mut plan = stream(IoEngineKind::Offset, Direction::Write, 1);
        plan.open.direct = direct;
        let fault = Fault::Os { operation, offset: None, errno };
        EngineError::from(fault.of_stream(&plan, Path::new("/mnt/f.0"))).to_string()
    }

    #[test]
    fn rejected_direct_io_has_a_dedicated_message() {
        let refusal =
            "with direct I/O: not supported by the filesystem, or not with block size 4KiB; ";
        assert!(text(true, Operation::Open, libc::EINVAL).contains(refusal));
        assert!(text(true, Operation::Write, libc::EOPNOTSUPP).contains(refusal));
        assert_eq!(text(false, Operation::Write, libc::EINVAL), "writing /mnt/f.0");
        assert_eq!(text(true, Operation::Sync, libc::EINVAL), "syncing /mnt/f.0");
    }

    #[test]
    fn common_errors_have_cause_and_hint() {
        for (errno, hint) in [
            (libc::ENOSPC, "the filesystem is full; use a larger device"),
            (libc::EDQUOT, "the quota is exhausted; raise it"),
            (libc::EIO, "the device below the filesystem failed; check"),
            (libc::EROFS, "the filesystem is read-only; "),
            (libc::EFBIG, "larger than the filesystem or ulimit -f allows"),
            (libc::EMFILE, "raise ulimit -n"),
            (libc::EACCES, "permission denied; run as a user with write permission"),
            (libc::EEXIST, "use an empty directory"),
            (libc::ENOENT, "run the phase that writes it first"),
        ] {
            let text = text(true, Operation::Open, errno);
            assert!(text.starts_with("opening /mnt/f.0: ") && text.contains(hint), "{text}");
        }
    }

    #[test]
    fn errors_of_specific_operations_have_cause_and_hint() {
        for (operation, errno, cause, hint) in [
            (Operation::Ring, libc::ENOSYS, "built without io_uring", "more workers"),
            (Operation::Ring, libc::EPERM, "kernel.io_uring_disabled", "set the sysctl to 0"),
            (Operation::Ring, libc::ENOMEM, "may be locked", "raise ulimit -l"),
            (Operation::Register, libc::ENOMEM, "may be locked", "set fixed_buffers to false"),
            (Operation::PollThread, libc::EBUSY, "has only one", "set sqpoll to false"),
            (Operation::Poll, libc::EOPNOTSUPP, "no poll queues", "set iopoll to false"),
            (Operation::CallFlags, libc::EOPNOTSUPP, "support one of the flags", "disable it"),
            (Operation::Copy, libc::EXDEV, "does not support this copy call", "use another call"),
            (Operation::Copy, libc::ENOSPC, "the filesystem is full", "smaller files"),
            (
                Operation::MakeNode,
                libc::ENOSPC,
                "more inodes if df -i shows none left",
                "fewer files",
            ),
            (Operation::Link, libc::EMLINK, "number of links to one file", "use fewer files"),
            (Operation::MakeDirectory, libc::EMLINK, "number of directories", "spread"),
            (Operation::Open, libc::ENAMETOOLONG, "the name is too long", "shorter names"),
            (Operation::GetAttribute, libc::ENODATA, "does not exist", "sets it first"),
            (Operation::SetAttribute, libc::ENOSPC, "of extended attributes", "larger inodes"),
            (Operation::RemoveDirectory, libc::ENOTEMPTY, "is not empty", "removes all entries"),
        ] {
            let text = text(true, operation, errno);
            assert!(text.contains("/mnt/f.0: ") && text.contains(cause), "{text}");
            assert!(text.contains(hint), "{text}");
        }
    }
}
