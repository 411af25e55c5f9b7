//! Synchronous system calls: pread(2) and pwrite(2), or read(2) and write(2) at the position of the
//! open file.
#![expect(
    unsafe_code,
    reason = "close(2) with its result and sync_file_range(2) have no safe form"
)]

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd},
    path::Path,
};

use model::phase::{AccessPattern, RangeSync, Stream, SyncCall};
use rustix::{
    fs::{SeekFrom, fdatasync, fsync, seek, syncfs},
    io::{Errno, pread, pwrite, read, write},
};

use super::{
    Cause, Completion, IoEngine, IoFault, Kind, Op, PassCalls, PassPoint, Submitted,
    open::{self, AccessMode},
    resume,
};
use crate::error::{Fault, Operation};

/// pread(2) and pwrite(2).
pub(crate) struct Offset {
    file: OwnedFd,
}

impl Offset {
    /// Opens the file of a worker.
    pub(crate) fn open(stream: &Stream, path: &Path, mode: AccessMode) -> Result<Self, Fault> {
        Ok(Self { file: open::open(stream, path, mode)? })
    }

    /// Number of the descriptor.
    pub(super) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

impl<'p> IoEngine<'p> for Offset {
    #[inline]
    fn submit(&mut self, mut op: Op<'p>) -> Submitted<'p> {
        let (file, offset, len) = (&self.file, op.offset, op.len);
        let kind = op.kind;
        let bytes = op.bytes();
        let result = match kind {
            Kind::Read => resume(Operation::Read, len, |done| {
                pread(file, &mut bytes[done..], offset + done as u64)
            }),
            Kind::Write => resume(Operation::Write, len, |done| {
                pwrite(file, &bytes[done..], offset + done as u64)
            }),
        };
        Submitted::Done(Completion { op, result })
    }

    fn begin_pass(&mut self, calls: &PassCalls, point: PassPoint) -> Result<(), Fault> {
        calls.make(&mut self.file, point)
    }

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        make_durable(self.file.as_fd(), call, range)
    }

    fn close(self) -> Result<(), Fault> {
        close(self.file)
    }
}

/// read(2) and write(2), after lseek(2) unless the access pattern is sequential.
///
/// A sequential stream seeks only if it begins after the start of the file, or if it starts over.
/// All other patterns seek before each block, even if it follows the previous one, as IOzone and
/// bonnie++ do. All seeks are inside the loop, including the first one. (In the backward test,
/// IOzone seeks relative to the position after each read, and once more after the last one; the
/// reads are the same.)
pub(crate) struct Position {
    file: OwnedFd,
    seeks: Seeks,
}

/// Decision to seek, for engines with a file position.
pub(super) struct Seeks {
    always: bool,
    // Start of the next block if it follows the previous one.
    position: u64,
}

impl Seeks {
    /// State for a stream that was just opened. Appends write to the end of the file regardless of
    /// the position.
    pub(super) fn of(stream: &Stream) -> Self {
        let append = stream.access_pattern == AccessPattern::Append;
        let always = !append && stream.access_pattern != AccessPattern::Sequential;
        Self { always, position: if append { u64::MAX } else { 0 } }
    }

    /// Returns true if the operation needs a seek, and assumes that the seek and the operation are
    /// made.
    #[inline]
    pub(super) fn needed(&mut self, op: &Op<'_>) -> bool {
        if self.position == u64::MAX {
            return false;
        }
        let elsewhere = self.position != op.offset;
        self.position = op.offset + op.len as u64;
        self.always || elsewhere
    }

    /// True if every block needs a seek.
    pub(super) fn each(&self) -> bool {
        self.always
    }

    /// Records that the position is unknown, so that the next block needs a seek.
    pub(super) fn restarted(&mut self) {
        if self.position != u64::MAX {
            self.position = u64::MAX - 1;
        }
    }

    /// Records that the position is at the start of the file.
    pub(super) fn rewound(&mut self) {
        if self.position != u64::MAX {
            self.position = 0;
        }
    }
}

impl Position {
    /// Opens the file of a worker.
    pub(crate) fn open(stream: &Stream, path: &Path, mode: AccessMode) -> Result<Self, Fault> {
        Ok(Self { file: open::open(stream, path, mode)?, seeks: Seeks::of(stream) })
    }

    #[inline]
    fn transfer(&mut self, op: &mut Op<'_>) -> Result<(), IoFault> {
        if self.seeks.needed(op) {
            move_to(&self.file, SeekFrom::Start(op.offset))?;
        }
        let (file, len, kind) = (&self.file, op.len, op.kind);
        let bytes = op.bytes();
        match kind {
            Kind::Read => resume(Operation::Read, len, |done| read(file, &mut bytes[done..])),
            Kind::Write => resume(Operation::Write, len, |done| write(file, &bytes[done..])),
        }
    }
}

impl<'p> IoEngine<'p> for Position {
    #[inline]
    fn submit(&mut self, mut op: Op<'p>) -> Submitted<'p> {
        let result = self.transfer(&mut op);
        Submitted::Done(Completion { op, result })
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        self.seeks.rewound();
        move_to(&self.file, SeekFrom::Start(0)).map_err(|fault| fault.at(0))
    }

    fn begin_pass(&mut self, calls: &PassCalls, point: PassPoint) -> Result<(), Fault> {
        if point == PassPoint::Next {
            // The next pass begins at the start of the file, with a new position.
            self.seeks.restarted();
        }
        calls.make(&mut self.file, point)
    }

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        make_durable(self.file.as_fd(), call, range)
    }

    fn close(self) -> Result<(), Fault> {
        close(self.file)
    }
}

/// lseek(2).
#[inline]
pub(super) fn move_to(file: &OwnedFd, place: SeekFrom) -> Result<(), IoFault> {
    let fault = |errno| IoFault { operation: Operation::Seek, moved: 0, cause: Cause::Os(errno) };
    seek(file, place).map(|_| ()).map_err(fault)
}

/// Makes written data durable by the given call; interrupted calls are repeated.
pub(super) fn make_durable(
    file: BorrowedFd<'_>,
    call: SyncCall,
    range: (u64, u64),
) -> Result<(), Fault> {
    loop {
        let answer = match call {
            SyncCall::Fsync => fsync(file),
            SyncCall::Fdatasync => fdatasync(file),
            SyncCall::Range(flags) => sync_file_range(file, flags, range),
            SyncCall::Syncfs => syncfs(file),
        };
        match answer {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Fault::whole(Operation::Sync, errno)),
        }
    }
}

fn sync_file_range(
    file: BorrowedFd<'_>,
    sync: RangeSync,
    (offset, len): (u64, u64),
) -> Result<(), Errno> {
    let offset = libc::off64_t::try_from(offset).map_err(|_| Errno::OVERFLOW)?;
    let len = libc::off64_t::try_from(len).map_err(|_| Errno::OVERFLOW)?;
    let flags = [
        (sync.wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE),
        (sync.write, libc::SYNC_FILE_RANGE_WRITE),
        (sync.wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER),
    ];
    let flags = flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
    // SAFETY: the call takes no pointers; the descriptor is open while it is borrowed.
    let answer = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

/// close(2), which may report that written data was lost.
pub(crate) fn close(file: OwnedFd) -> Result<(), Fault> {
    // The bare system call: close(3) of the C library is a cancellation point, which costs as much
    // as the kernel's part.
    // SAFETY: into_raw_fd transfers the ownership, so this is the only close of this descriptor.
    let answer = unsafe { libc::syscall(libc::SYS_close, file.into_raw_fd()) };
    // After EINTR, Linux has closed the descriptor (close(2)), and no error is known.
    match (answer, last_errno()) {
        (0, _) | (_, Errno::INTR) => Ok(()),
        (_, errno) => Err(Fault::whole(Operation::Close, errno)),
    }
}

/// errno of the C library; valid only right after a failed call.
pub(super) fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
