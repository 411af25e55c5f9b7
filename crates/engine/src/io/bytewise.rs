//! read(2) and write(2) of one byte each: what a program pays that has no buffer of its own.
//!
//! An operation is all calls of its record, so counts and times are those of records. Seeks are
//! made as in [`super::Position`], one before a record where the order needs it and none between
//! the bytes.

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
pub(crate) struct Bytewise {
    file: OwnedFd,
    seeks: Seeks,
}

impl Bytewise {
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
            Kind::Read => resume(Operation::Read, len, |done| read(file, &mut bytes[done..=done])),
            Kind::Write => resume(Operation::Write, len, |done| write(file, &bytes[done..=done])),
        }
    }
}

impl<'p> IoEngine<'p> for Bytewise {
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
