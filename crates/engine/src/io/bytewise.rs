//! read(2) and write(2) of one byte each: the cost of unbuffered I/O by character.
//!
//! An operation consists of all calls of its block, so blocks are counted and timed, not bytes.
//! Seeks are as in [`super::Position`]: one before a block if the access pattern needs it, none
//! between the bytes.

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
pub(crate) struct Bytewise {
    file: OwnedFd,
    seeks: Seeks,
}

impl Bytewise {
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

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        make_durable(self.file.as_fd(), call, range)
    }

    fn close(self) -> Result<(), Fault> {
        close(self.file)
    }
}
