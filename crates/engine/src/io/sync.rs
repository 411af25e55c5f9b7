//! System calls that return when the bytes are moved: pread(2) and pwrite(2), or read(2) and
//! write(2) at the position of the open file.
#![expect(
    unsafe_code,
    reason = "close(2) with its answer, and sync_file_range(2), have no safe form"
)]

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd},
    path::Path,
};

use model::phase::{Access, FlushCall, Stream};
use rustix::{
    fs::{SeekFrom, fdatasync, fsync, seek},
    io::{Errno, pread, pwrite, read, write},
};

use super::{
    Cause, Completion, IoEngine, IoFault, Kind, Op, Submitted,
    open::{self, Purpose},
    resume,
};
use crate::error::{Fault, Operation};

/// pread(2) and pwrite(2).
pub(crate) struct Offset {
    file: OwnedFd,
}

impl Offset {
    /// Opens the file of a worker.
    pub(crate) fn open(stream: &Stream, path: &Path, purpose: Purpose) -> Result<Self, Fault> {
        Ok(Self { file: open::open(stream, path, purpose)? })
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

    fn flush(&mut self, call: FlushCall, range: (u64, u64)) -> Result<(), Fault> {
        flush(self.file.as_fd(), call, range)
    }

    fn close(self) -> Result<(), Fault> {
        close(self.file)
    }
}

/// read(2) and write(2), after lseek(2) wherever the order is not sequential.
///
/// A sequential stream seeks only where it begins elsewhere than at the start of the file, or
/// starts over; every other order seeks before each record, also where two records happen to follow
/// each other, as the classic tools do. All of it lies inside the loop, the first seek included.
/// (Going backward they seek relative to the position after each read, and once more, in vain,
/// after the last; the reads are the same.)
pub(crate) struct Position {
    file: OwnedFd,
    seeks: Seeks,
}

/// When a stream with a position of its own must seek.
pub(super) struct Seeks {
    always: bool,
    // Where the next record begins if it follows the one before.
    position: u64,
}

impl Seeks {
    /// For a stream that was just opened. Appends go to the end of the file whatever the position.
    pub(super) fn of(stream: &Stream) -> Self {
        let append = stream.access == Access::Append;
        let always = !append && stream.access != Access::Sequential;
        Self { always, position: if append { u64::MAX } else { 0 } }
    }

    /// Whether the operation needs a seek; it is then taken to be made and done.
    #[inline]
    pub(super) fn needed(&mut self, op: &Op<'_>) -> bool {
        if self.position == u64::MAX {
            return false;
        }
        let elsewhere = self.position != op.offset;
        self.position = op.offset + op.len as u64;
        self.always || elsewhere
    }

    /// Whether every record needs a seek, wherever it lies.
    pub(super) fn each(&self) -> bool {
        self.always
    }

    /// The position is at the start of the file again.
    pub(super) fn rewound(&mut self) {
        if self.position != u64::MAX {
            self.position = 0;
        }
    }
}

impl Position {
    /// Opens the file of a worker.
    pub(crate) fn open(stream: &Stream, path: &Path, purpose: Purpose) -> Result<Self, Fault> {
        Ok(Self { file: open::open(stream, path, purpose)?, seeks: Seeks::of(stream) })
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

    fn flush(&mut self, call: FlushCall, range: (u64, u64)) -> Result<(), Fault> {
        flush(self.file.as_fd(), call, range)
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

/// Brings what was written to the device, by the call asked for; interrupted calls are made again.
pub(super) fn flush(file: BorrowedFd<'_>, call: FlushCall, range: (u64, u64)) -> Result<(), Fault> {
    loop {
        let answer = match call {
            FlushCall::Fsync => fsync(file),
            FlushCall::Fdatasync => fdatasync(file),
            FlushCall::Range => sync_file_range(file, range),
        };
        match answer {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Fault::whole(Operation::Flush, errno)),
        }
    }
}

fn sync_file_range(file: BorrowedFd<'_>, (offset, len): (u64, u64)) -> Result<(), Errno> {
    let offset = libc::off64_t::try_from(offset).map_err(|_| Errno::OVERFLOW)?;
    let len = libc::off64_t::try_from(len).map_err(|_| Errno::OVERFLOW)?;
    // Wait for what is being written already, write, and wait for that: the one combination of
    // sync_file_range(2) that leaves nothing of the range in memory alone.
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the call takes no pointers; the descriptor is open while it is borrowed.
    let answer = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

/// close(2); the file may only then say that something written was lost.
pub(crate) fn close(file: OwnedFd) -> Result<(), Fault> {
    // The bare system call: close(3) of the C library is a point at which a thread may be
    // cancelled, which costs as much as the kernel's part.
    // SAFETY: into_raw_fd gives up the ownership, so this is the one close of this descriptor.
    let answer = unsafe { libc::syscall(libc::SYS_close, file.into_raw_fd()) };
    // After EINTR the descriptor is gone on Linux (close(2)), and nothing is known to be wrong.
    match (answer, last_errno()) {
        (0, _) | (_, Errno::INTR) => Ok(()),
        (_, errno) => Err(Fault::whole(Operation::Close, errno)),
    }
}

/// errno as the C library left it; of use only right after a failed call.
pub(super) fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
