//! What can go wrong in a phase, and what to do about it.
//!
//! [`EngineError`] is the public face. Inside, a worker answers with the smaller [`Fault`], which
//! carries no path and can be sent from a worker process to its parent; the parent adds the path,
//! or gets it beside the fault where only the worker knows it (trees).

mod cure;
mod difference;
mod fault;
mod list;

use std::{ffi::OsString, fmt, io, path::PathBuf, process::ExitStatus};

use model::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use cure::cure;
pub use difference::Difference;
pub(crate) use fault::{Fault, Memory};
pub use list::ListProblem;

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
    /// The tree asks for something that does not exist.
    #[error("this tree cannot run: {problem}; {cure}")]
    Tree {
        /// What contradicts what.
        problem: &'static str,
        /// What to change.
        cure: &'static str,
    },
    /// The replay asks for something that does not exist.
    #[error("this replay cannot run: {problem}; {cure}")]
    Replay {
        /// What contradicts what.
        problem: &'static str,
        /// What to change.
        cure: &'static str,
    },
    /// The kernel refused an operation of a replay, and the rest of it would mean nothing.
    #[error(
        "{operation} {} for line {line} of the load file{}",
        .path.display(), cure(*.operation, .source)
    )]
    Line {
        /// What was being done.
        operation: Operation,
        /// With what.
        path: PathBuf,
        /// The line of the load file that it was done for, from 1.
        line: u64,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The task asks for something that does not exist.
    #[error("this task cannot be done: {problem}; {cure}")]
    Task {
        /// What is wrong.
        problem: String,
        /// What to change.
        cure: &'static str,
    },
    /// An archive cannot be unpacked, or must not be.
    #[error("the archive {}: {problem}; {cure}", .path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        cure: String,
    },
    /// An everyday program could not be started.
    #[error(
        "starting {program}; install it (on Debian the package {package}), or let fslab do the task \
         itself (method native)"
    )]
    Program {
        /// Its name.
        program: &'static str,
        /// Where Debian has it.
        package: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// An everyday program answered with an error.
    #[error(
        "`{command}` {verdict}; see what it says, or let fslab do the task itself (method native)"
    )]
    ProgramFailed {
        /// The command, shortened.
        command: String,
        /// How it ended, and what it said.
        verdict: String,
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
    /// A directory that was listed holds another number of entries than the set says.
    #[error(
        "the directory {} holds {found} of {expected} entries of this set; run the phase that \
         makes them first, with the same set and as many workers",
        .path.display()
    )]
    Entries {
        /// The directory.
        path: PathBuf,
        /// Entries that are there.
        found: u64,
        /// Entries that the set says are there.
        expected: u64,
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
    /// A block read back is not what was written.
    #[error(
        "the block of {} at offset {} is not what was written there: {difference}; the storage \
         returned wrong data, unless something else wrote to the file",
        .path.display(), .offset.0
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// Where it begins.
        offset: Bytes,
        /// How it differs.
        difference: Difference,
    },
    /// The directory that a state speaks of is not there.
    #[error(
        "{} is not there, so nothing can be judged: mount the filesystem where it was; a run that \
         ended, and `fslab clean`, remove their files",
        .path.display()
    )]
    Gone {
        /// The directory.
        path: PathBuf,
    },
    /// The state for after a crash cannot be kept or read.
    #[error("the state file {}", .path.display())]
    State {
        /// Its file.
        path: PathBuf,
        /// What was wrong.
        source: io::Error,
    },
    /// A new state would replace a file.
    #[error(
        "the crash state {} exists already; verify it with `fslab verify {}` or name another file",
        .path.display(),
        .path.display()
    )]
    StateExists {
        /// The file.
        path: PathBuf,
    },
    /// The list of operations to replay could not be read.
    #[error(
        "reading the list {}; check that it is a file that this user may read",
        .path.display()
    )]
    ListFile {
        /// The list.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The list of operations to replay has a line that cannot be replayed.
    #[error("line {line} of the list {}: {problem}", .path.display())]
    List {
        /// The list.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: ListProblem,
    },
    /// A load file could not be read or written.
    #[error(
        "the load file {}; check that it is a file that this user may read or write",
        .path.display()
    )]
    LoadFile {
        /// The load file.
        path: PathBuf,
        /// What was wrong.
        source: io::Error,
    },
    /// A load file cannot be replayed.
    #[error("{}the load file {}: {problem}; {cure}", of_line(*.line), .path.display())]
    Load {
        /// The load file.
        path: PathBuf,
        /// Number of the line, from 1; none where it is about the file as a whole.
        line: Option<u64>,
        /// What is wrong, with what was found.
        problem: String,
        /// What to do.
        cure: &'static str,
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
    /// The filesystem or the kernel does not have what the phase is about, found before anything
    /// was timed.
    #[error("{what}: this filesystem, or this kernel, does not have it")]
    Unsupported {
        /// What it lacks: `extended attributes`, `hard links`, `io_uring openat`.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
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
    /// fstat(2) or stat(2).
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
    /// sched_setaffinity(2).
    Pin,
    /// ioprio_set(2).
    Prioritize,
    /// msync(2) of the state for after a crash.
    State,
    /// io_uring_setup(2).
    Ring,
    /// io_uring_register(2).
    Register,
    /// Finding a CPU for the thread that polls a submission queue.
    PollThread,
    /// A transfer whose completion is polled for (`IORING_SETUP_IOPOLL`).
    Poll,
    /// io_uring_enter(2).
    Reap,
    /// preadv2(2) or pwritev2(2) with flags.
    CallFlags,
    /// ftruncate(2) before mapping.
    Extend,
    /// mmap(2).
    Map,
    /// madvise(2).
    Advise,
    /// pipe(2).
    Pipe,
    /// copy_file_range(2), sendfile(2), or splice(2).
    Copy,
    /// mkdir(2).
    MakeDirectory,
    /// chmod(2).
    ChangeMode,
    /// rename(2).
    Rename,
    /// link(2).
    Link,
    /// getdents64(2).
    List,
    /// utimensat(2).
    SetTimes,
    /// symlink(2).
    SymbolicLink,
    /// wait4(2) for a program.
    Wait,
    /// chown(2).
    ChangeOwner,
    /// setxattr(2).
    SetAttribute,
    /// getxattr(2).
    GetAttribute,
    /// truncate(2).
    Truncate,
    /// fallocate(2).
    Allocate,
    /// fallocate(2) with `FALLOC_FL_PUNCH_HOLE`.
    PunchHole,
    /// mknod(2).
    MakeNode,
    /// rmdir(2).
    RemoveDirectory,
    /// fcntl(2) with `F_SETLKW`.
    Lock,
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
            Self::Pin => "choosing a CPU for the worker of",
            Self::State => "keeping the state for after a crash of",
            Self::Prioritize => "setting the I/O priority of the worker of",
            Self::Ring => "setting up io_uring for",
            Self::Register => "registering buffers or files with io_uring for",
            Self::PollThread => "choosing a CPU for the polling thread of",
            Self::Poll => "polling for completions of",
            Self::Reap => "submitting to io_uring for",
            Self::CallFlags => "transferring with the flags of the call in",
            Self::Extend => "extending",
            Self::Map => "mapping",
            Self::Advise => "advising the kernel on the mapping of",
            Self::Pipe => "making a pipe for",
            Self::Copy => "copying to",
            Self::MakeDirectory => "making the directory",
            Self::ChangeMode => "changing the mode of",
            Self::Rename => "renaming",
            Self::Link => "linking",
            Self::List => "listing",
            Self::SetTimes => "setting the times of",
            Self::SymbolicLink => "making the symbolic link",
            Self::Wait => "waiting for the program in",
            Self::ChangeOwner => "changing the owner of",
            Self::SetAttribute => "setting an extended attribute of",
            Self::GetAttribute => "reading an extended attribute of",
            Self::Truncate => "truncating",
            Self::Allocate => "allocating room for",
            Self::PunchHole => "punching a hole into",
            Self::MakeNode => "making the file",
            Self::RemoveDirectory => "removing the directory",
            Self::Lock => "locking",
        })
    }
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
            (libc::EEXIST, "measure in an empty directory"),
            (libc::ENOENT, "run the phase that writes it first"),
        ] {
            let text = text(true, Operation::Open, errno);
            assert!(text.starts_with("opening /mnt/f.0: ") && text.contains(cure), "{text}");
        }
    }

    #[test]
    fn refusals_of_single_interfaces_name_cause_and_cure() {
        for (operation, errno, cause, cure) in [
            (Operation::Ring, libc::ENOSYS, "built without io_uring", "more workers"),
            (Operation::Ring, libc::EPERM, "kernel.io_uring_disabled", "set the sysctl to 0"),
            (Operation::Ring, libc::ENOMEM, "may be locked", "raise ulimit -l"),
            (Operation::Register, libc::ENOMEM, "may be locked", "set registered to false"),
            (Operation::PollThread, libc::EBUSY, "may use only one", "set sqpoll to false"),
            (Operation::Poll, libc::EOPNOTSUPP, "no poll queues", "set iopoll to false"),
            (Operation::CallFlags, libc::EOPNOTSUPP, "does not know one of", "turn it off"),
            (Operation::Copy, libc::EXDEV, "does not copy so", "use another call"),
            (Operation::Copy, libc::ENOSPC, "the filesystem is full", "smaller files"),
            (
                Operation::MakeNode,
                libc::ENOSPC,
                "more inodes if df -i shows none left",
                "fewer files",
            ),
            (Operation::Link, libc::EMLINK, "so many links to one file", "use fewer files"),
            (Operation::MakeDirectory, libc::EMLINK, "so many directories", "spread"),
            (Operation::Open, libc::ENAMETOOLONG, "names so long", "shorter names"),
            (Operation::GetAttribute, libc::ENODATA, "no such attribute", "sets it first"),
            (Operation::SetAttribute, libc::ENOSPC, "for extended attributes", "larger inodes"),
            (Operation::RemoveDirectory, libc::ENOTEMPTY, "in it", "removes all of them"),
        ] {
            let text = text(true, operation, errno);
            assert!(text.contains("/mnt/f.0: ") && text.contains(cause), "{text}");
            assert!(text.contains(cure), "{text}");
        }
    }
}
