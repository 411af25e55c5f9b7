//! System calls that return when the bytes are moved: pread(2) and pwrite(2), or read(2) and
//! write(2) at the position of the open file.
#![expect(unsafe_code, reason = "close(2) with its answer has no safe form")]

use std::{
    os::fd::{IntoRawFd, OwnedFd},
    path::Path,
};

use model::phase::{Access, Stream};
use rustix::{
    fs::{SeekFrom, fsync, seek},
    io::{Errno, pread, pwrite, read, write},
};

use super::{Cause, Completion, Completions, IoEngine, IoFault, Kind, Op, Submitted, open, resume};
use crate::error::{Fault, Operation};

/// pread(2) and pwrite(2).
pub(crate) struct Offset {
    file: OwnedFd,
}

impl Offset {
    /// Opens the file of a worker.
    pub(crate) fn open(stream: &Stream, path: &Path, reads: bool) -> Result<Self, Fault> {
        Ok(Self { file: open::open(stream, path, reads)? })
    }
}

impl<'p> IoEngine<'p> for Offset {
    #[inline]
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        let (file, offset, len) = (&self.file, op.offset, op.buffer.len());
        let result = match op.kind {
            Kind::Read => resume(Operation::Read, len, |done| {
                pread(file, &mut op.buffer[done..], offset + done as u64)
            }),
            Kind::Write => resume(Operation::Write, len, |done| {
                pwrite(file, &op.buffer[done..], offset + done as u64)
            }),
        };
        Submitted::Done(Completion { op, result })
    }

    fn reap(&mut self, _min: u32, _out: &mut Completions<'p>) -> Result<(), IoFault> {
        Ok(())
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        sync(&self.file)
    }

    fn close(self) -> Result<(), Fault> {
        close(self.file)
    }
}

/// read(2) and write(2), after lseek(2) wherever the order is not sequential.
///
/// A sequential stream never seeks; every other order seeks before each record, also where two
/// records happen to follow each other, as the classic tools do. All of it lies inside the loop,
/// the first seek included. (Going backward they seek relative to the position after each read, and
/// once more, in vain, after the last; the reads are the same.)
pub(crate) struct Position {
    file: OwnedFd,
    seeks: bool,
}

impl Position {
    /// Opens the file of a worker.
    pub(crate) fn open(stream: &Stream, path: &Path, reads: bool) -> Result<Self, Fault> {
        let seeks = stream.access != Access::Sequential;
        Ok(Self { file: open::open(stream, path, reads)?, seeks })
    }

    #[inline]
    fn transfer(&mut self, op: &mut Op<'_>) -> Result<(), IoFault> {
        if self.seeks {
            seek(&self.file, SeekFrom::Start(op.offset)).map_err(|errno| IoFault {
                operation: Operation::Seek,
                moved: 0,
                cause: Cause::Os(errno),
            })?;
        }
        let (file, len) = (&self.file, op.buffer.len());
        match op.kind {
            Kind::Read => resume(Operation::Read, len, |done| read(file, &mut op.buffer[done..])),
            Kind::Write => resume(Operation::Write, len, |done| write(file, &op.buffer[done..])),
        }
    }
}

impl<'p> IoEngine<'p> for Position {
    #[inline]
    fn submit(&mut self, mut op: Op<'p>) -> Submitted<'p> {
        let result = self.transfer(&mut op);
        Submitted::Done(Completion { op, result })
    }

    fn reap(&mut self, _min: u32, _out: &mut Completions<'p>) -> Result<(), IoFault> {
        Ok(())
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        let start = seek(&self.file, SeekFrom::Start(0));
        start.map(|_| ()).map_err(|errno| Fault::whole(Operation::Seek, errno))
    }

    fn sync(&mut self) -> Result<(), Fault> {
        sync(&self.file)
    }

    fn close(self) -> Result<(), Fault> {
        close(self.file)
    }
}

fn sync(file: &OwnedFd) -> Result<(), Fault> {
    loop {
        match fsync(file) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Fault::whole(Operation::Flush, errno)),
        }
    }
}

fn close(file: OwnedFd) -> Result<(), Fault> {
    // SAFETY: into_raw_fd gives up the ownership, so this is the one close of this descriptor.
    let answer = unsafe { libc::close(file.into_raw_fd()) };
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
