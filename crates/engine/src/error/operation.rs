//! Operations that the kernel can reject.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Operation of a worker that the kernel can reject.
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
    /// fsync(2), preceded by fflush(3) with stdio.
    Sync,
    /// close(2) or fclose(3).
    Close,
    /// sched_setaffinity(2).
    Pin,
    /// ioprio_set(2).
    Prioritize,
    /// msync(2) of the crash state.
    State,
    /// io_uring_setup(2).
    Ring,
    /// io_uring_register(2).
    Register,
    /// Selection of a CPU for the thread that polls a submission queue.
    PollThread,
    /// Transfer whose completion is polled (`IORING_SETUP_IOPOLL`).
    Poll,
    /// io_uring_enter(2).
    Reap,
    /// io_setup(2), io_submit(2), or io_getevents(2).
    Aio,
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
            Self::Sync => "syncing",
            Self::Close => "closing",
            Self::Pin => "setting the CPU for the worker of",
            Self::State => "writing the crash state of",
            Self::Prioritize => "setting the I/O priority of the worker of",
            Self::Ring => "setting up io_uring for",
            Self::Register => "registering buffers or files with io_uring for",
            Self::PollThread => "setting the CPU of the polling thread of",
            Self::Poll => "polling for completions of",
            Self::Reap => "submitting to io_uring for",
            Self::Aio => "submitting to Linux AIO for",
            Self::CallFlags => "transferring with the flags of the call in",
            Self::Extend => "extending",
            Self::Map => "mapping",
            Self::Advise => "advising the kernel on the mapping of",
            Self::Pipe => "creating a pipe for",
            Self::Copy => "copying to",
            Self::MakeDirectory => "creating the directory",
            Self::ChangeMode => "changing the mode of",
            Self::Rename => "renaming",
            Self::Link => "linking",
            Self::List => "listing",
            Self::SetTimes => "setting the times of",
            Self::SymbolicLink => "creating the symbolic link",
            Self::Wait => "waiting for the program in",
            Self::ChangeOwner => "changing the owner of",
            Self::SetAttribute => "setting an extended attribute of",
            Self::GetAttribute => "reading an extended attribute of",
            Self::Truncate => "truncating",
            Self::Allocate => "allocating space for",
            Self::PunchHole => "punching a hole into",
            Self::MakeNode => "creating the file",
            Self::RemoveDirectory => "removing the directory",
            Self::Lock => "locking",
        })
    }
}
