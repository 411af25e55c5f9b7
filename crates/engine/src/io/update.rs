//! Records that are read, changed by one byte, and written back: read(2), lseek(2), and write(2) at
//! the position of the open file.
//!
//! Here a [`Kind::Write`] is such an update, so an update counts once, as a write of its bytes, and
//! the loop knows nothing of it; a [`Kind::Read`] is the plain read. Both seek before they read
//! where the order needs it, as in [`super::Position`]. The way back is as in the classic tool: by
//! a distance (`SEEK_CUR`) in the sequential order, to the place (`SEEK_SET`) in those that seek
//! before each record.
//!
//! The byte that changes is one more than it was, wrapping: of record i of the file byte `i mod
//! record`, the one that [`model::phase::Fill::Marks`] increases when it writes the file in order.
//! No other content is looked at; data with headers is refused before, as an update would make them
//! false.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use model::phase::{FlushCall, Stream};
use rustix::{
    fs::SeekFrom,
    io::{read, write},
};

use super::{
    Completion, IoEngine, IoFault, Kind, Op, Submitted,
    open::{self, Purpose},
    resume,
    sync::{Seeks, close, flush, move_to},
};
use crate::error::{Fault, Operation};

/// See the module.
pub(crate) struct Update {
    file: OwnedFd,
    seeks: Seeks,
    // Bytes of a record, at least 1.
    record: u64,
}

impl Update {
    /// Opens the file of a worker.
    pub(crate) fn open(stream: &Stream, path: &Path, purpose: Purpose) -> Result<Self, Fault> {
        let file = open::open(stream, path, purpose)?;
        Ok(Self { file, seeks: Seeks::of(stream), record: stream.record.0.max(1) })
    }

    /// Which byte of the operation changes. Two divisions, beside three system calls.
    fn mark(&self, offset: u64) -> usize {
        usize::try_from(offset / self.record % self.record).unwrap_or(0)
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
                // No buffer is longer than the address space of a process, half of 2^64 bytes.
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

    fn flush(&mut self, call: FlushCall, range: (u64, u64)) -> Result<(), Fault> {
        flush(self.file.as_fd(), call, range)
    }

    fn close(self) -> Result<(), Fault> {
        close(self.file)
    }
}
