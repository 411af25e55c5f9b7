//! Blocks that are read, changed by one byte, and written back: read(2), lseek(2), and write(2) at
//! the position of the open file.
//!
//! In this engine, a [`Kind::Write`] is such an update. An update therefore counts once, as a write
//! of its bytes, and the loop is the same as for writes. A [`Kind::Read`] is a plain read. Both
//! seek before they read if the access pattern needs it, as in [`super::Position`]. The seek back
//! is as in bonnie++: relative (`SEEK_CUR`) in the sequential pattern, absolute (`SEEK_SET`) in
//! patterns that seek before each block.
//!
//! In block i of the file, byte `i mod block size` is incremented, with wraparound.
//! [`model::phase::DataPattern::Marks`] increments the same byte when it writes the file
//! sequentially. Other content is not inspected. Streams whose data has headers are rejected before
//! they run, because an update would invalidate the headers.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use model::phase::{Stream, SyncCall};
use rustix::{
    fs::SeekFrom,
    io::{read, write},
};

use super::{
    Completion, IoEngine, IoFault, Kind, Op, Submitted,
    open::{self, AccessMode},
    resume,
    sync::{Seeks, close, make_durable, move_to},
};
use crate::error::{Fault, Operation};

/// I/O engine; see the module.
pub(crate) struct Update {
    file: OwnedFd,
    seeks: Seeks,
    // Block size in bytes, at least 1.
    block_size: u64,
}

impl Update {
    /// Opens the file of a worker.
    pub(crate) fn open(stream: &Stream, path: &Path, mode: AccessMode) -> Result<Self, Fault> {
        let file = open::open(stream, path, mode)?;
        Ok(Self { file, seeks: Seeks::of(stream), block_size: stream.block_size.0.max(1) })
    }

    /// Index of the byte to change. Takes two divisions, in addition to three system calls.
    fn mark(&self, offset: u64) -> usize {
        usize::try_from(offset / self.block_size % self.block_size).unwrap_or(0)
    }

    #[inline]
    fn transfer(&mut self, op: &mut Op<'_>) -> Result<(), IoFault> {
        if self.seeks.needed(op) {
            move_to(&self.file, SeekFrom::Start(op.offset))?;
        }
        let (file, len, kind, offset) = (&self.file, op.len, op.kind, op.offset);
        let (mark, to_place) = (self.mark(offset), self.seeks.each());
        let bytes = op.bytes();
        resume(Operation::Read, len, |done| read(file, &mut bytes[done..]))?;
        match kind {
            Kind::Read => Ok(()),
            Kind::Write => {
                bytes[mark] = bytes[mark].wrapping_add(1);
                // A buffer is not longer than the address space of a process, half of 2^64 bytes.
                let distance = i64::try_from(len).unwrap_or(i64::MAX);
                let relative = SeekFrom::Current(-distance);
                move_to(file, if to_place { SeekFrom::Start(offset) } else { relative })?;
                resume(Operation::Write, len, |done| write(file, &bytes[done..]))
            }
        }
    }
}

impl<'p> IoEngine<'p> for Update {
    #[inline]
    fn submit(&mut self, mut op: Op<'p>) -> Submitted<'p> {
        let result = self.transfer(&mut op);
        Submitted::Done(Completion { op, result })
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        self.seeks.rewound();
        move_to(&self.file, SeekFrom::Start(0)).map_err(|fault| fault.at(0))
    }

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        make_durable(self.file.as_fd(), call, range)
    }

    fn close(self) -> Result<(), Fault> {
        close(self.file)
    }
}
