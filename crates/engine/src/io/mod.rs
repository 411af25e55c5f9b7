//! I/O engines: the ways to move bytes, one file each, behind one contract.
//!
//! An operation owns its buffer: [`Op`] moves into [`IoEngine::submit`] and comes back in a
//! [`Completion`], so while the kernel may touch a buffer nobody else can. Engines move whole
//! operations: they resume short transfers and interrupted calls themselves, and a completion is a
//! whole operation or a fault. They know nothing of orders, content, or time.
//!
//! To add an engine: one file here, one line in `conformance`, one arm in the match of `worker`.
//!
//! There is none for libaio (io_submit(2)). io_uring does all it does with fewer calls, and
//! buffered I/O besides, where io_submit(2) waits; it is in every kernel since Linux 5.1. Where it
//! is switched off, workers that each wait for one operation have as many in flight.

mod bytewise;
mod copy;
mod mmap;
mod null;
mod open;
mod ring;
mod stdio;
mod sync;
mod update;
mod vector;

#[cfg(test)]
pub(crate) mod conformance;

use model::{
    Nanos,
    phase::{FlushCall, Interface},
};
use rustix::io::Errno;

use crate::error::{Fault, Operation};

pub(crate) use bytewise::Bytewise;
pub(crate) use copy::{Copy, source_of};
pub(crate) use mmap::Mmap;
pub(crate) use null::Null;
pub(crate) use open::Purpose;
pub(crate) use ring::{Area, Ring, fault as ring_fault, newest as newest_ring};
pub(crate) use stdio::Stdio;
pub(crate) use sync::{Offset, Position, close};
pub(crate) use update::Update;
pub(crate) use vector::Vector;

/// Which way the bytes go.
///
/// A whole word, so that what holds it has no padding behind it: copies of padding read bytes that
/// were stored apart, which the CPU cannot forward from its store buffer. That took 18 ns of each
/// operation of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Kind {
    /// From the file into the buffer.
    Read,
    /// From the buffer into the file; with [`Update`] from the file and back to it, changed.
    Write,
}

impl Kind {
    /// What the engine is doing, for faults.
    pub(crate) fn operation(self) -> Operation {
        match self {
            Self::Read => Operation::Read,
            Self::Write => Operation::Write,
        }
    }
}

/// Whether an interface touches files at all: the null engine and a ring of NOPs do not.
pub(crate) fn touches_files(interface: Interface) -> bool {
    match interface {
        Interface::Null => false,
        Interface::Ring(ring) => !ring.nop,
        Interface::Offset
        | Interface::Position
        | Interface::Bytewise
        | Interface::Stdio
        | Interface::Vector(_)
        | Interface::Mmap(_)
        | Interface::Copy(_) => true,
    }
}

/// Bytes to move.
#[derive(Debug)]
pub(crate) struct Op<'p> {
    /// Which way.
    pub(crate) kind: Kind,
    /// Where they begin in the file.
    pub(crate) offset: u64,
    /// How many; at most the length of the buffer.
    pub(crate) len: usize,
    /// Number of the slot that the buffer is: no two operations in flight have the same.
    pub(crate) slot: u32,
    /// The memory, one whole slot; the engine's until completion.
    pub(crate) buffer: &'p mut [u8],
}

impl Op<'_> {
    /// The bytes to move.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }
}

/// An operation that is over, with its buffer.
#[derive(Debug)]
pub(crate) struct Completion<'p> {
    /// The operation as it was submitted.
    pub(crate) op: Op<'p>,
    /// Whether all bytes were moved.
    pub(crate) result: Result<(), IoFault>,
}

/// What became of a submission.
#[derive(Debug)]
pub(crate) enum Submitted<'p> {
    /// It is over.
    Done(Completion<'p>),
    /// It waits for [`IoEngine::commit`], and comes back through [`IoEngine::next`].
    Queued,
    /// There is no room: reap, then submit this again.
    Full(Op<'p>),
}

/// How long to wait for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    /// For one.
    One,
    /// For one, but not beyond this instant of [`crate::now`].
    Until(Nanos),
}

/// Why an operation was not done, or a file not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IoFault {
    /// What was being done.
    pub(crate) operation: Operation,
    /// Bytes of the operation that had been moved.
    pub(crate) moved: u64,
    /// What stopped it.
    pub(crate) cause: Cause,
}

/// What stops a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The kernel's errno.
    Os(Errno),
    /// A call moved nothing: the end of the file, when reading.
    Nothing,
}

impl IoFault {
    /// The same, in the words of the worker, for the operation at `offset`.
    pub(crate) fn at(self, offset: u64) -> Fault {
        let (operation, offset) = (self.operation, offset + self.moved);
        match self.cause {
            Cause::Os(errno) => {
                Fault::Os { operation, offset: Some(offset), errno: errno.raw_os_error() }
            }
            Cause::Nothing => Fault::Nothing { operation, offset },
        }
    }
}

/// Moves bytes of one open file for one thread; never allocates in `submit`, `commit`, `reap`, and
/// `next`.
///
/// A synchronous engine does the I/O inside `submit` and answers [`Submitted::Done`]; it leaves
/// the rest of the queue as it is. An asynchronous one must not wait in `submit`. Dropping an
/// engine waits for what is in flight.
pub(crate) trait IoEngine<'p> {
    /// Whether it ever answers [`Submitted::Queued`].
    const QUEUES: bool = false;

    /// Starts (or does) one operation. [`Submitted::Full`] returns it untouched.
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p>;

    /// Hands everything queued to the kernel; does not wait for completions.
    ///
    /// # Errors
    /// [`IoFault`] when the queue itself failed.
    fn commit(&mut self) -> Result<(), IoFault> {
        Ok(())
    }

    /// Waits for answers as told, and tells whether there are any; those that came by now are what
    /// [`IoEngine::next`] goes through. Called only while something is in flight; commits what was
    /// not.
    ///
    /// # Errors
    /// [`IoFault`] when the queue itself failed; faults of single operations are in their
    /// completions.
    fn reap(&mut self, _wait: Wait) -> Result<bool, IoFault> {
        Ok(false)
    }

    /// The next completion among the answers that the last [`IoEngine::reap`] found. There may be
    /// none in them: what is not done yet is queued again. More may be submitted in between.
    ///
    /// One at a time, so that a completion stays in the registers of the CPU.
    fn next(&mut self) -> Option<Completion<'p>> {
        None
    }

    /// Operations so far that `RWF_NOWAIT` refused and that were done again without it.
    fn would_block(&self) -> u64 {
        0
    }

    /// Goes back to the start of the file, after priming.
    fn rewind(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Makes durable what was written, with everything that must precede it; nothing is in flight.
    /// `range` (offset and length) is what was written since the last flush at least, for
    /// [`FlushCall::Range`].
    fn flush(&mut self, call: FlushCall, range: (u64, u64)) -> Result<(), Fault>;

    /// Closes the file and tells what close(2) said, which on some filesystems is the first word
    /// about a failed write.
    fn close(self) -> Result<(), Fault>;
}

/// Moves `len` bytes by as many calls as it takes: `transfer(done)` makes one call for the bytes
/// from `done` on and tells how many it moved. EINTR is tried again.
#[inline]
fn resume(
    operation: Operation,
    len: usize,
    mut transfer: impl FnMut(usize) -> Result<usize, Errno>,
) -> Result<(), IoFault> {
    let mut moved = 0;
    while moved < len {
        let cause = match transfer(moved) {
            Ok(0) => Cause::Nothing,
            Ok(bytes) => {
                moved += bytes;
                continue;
            }
            Err(Errno::INTR) => continue,
            Err(errno) => Cause::Os(errno),
        };
        return Err(IoFault { operation, moved: moved as u64, cause });
    }
    Ok(())
}
