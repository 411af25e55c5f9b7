//! I/O engines: the ways to move bytes, one file each, behind one contract.
//!
//! An operation owns its buffer: [`Op`] moves into [`IoEngine::submit`] and comes back in a
//! [`Completion`], so while the kernel may touch a buffer nobody else can. Engines move whole
//! records: they resume short transfers and interrupted calls themselves, and a completion is a
//! whole record or a fault. They know nothing of orders, content, or time.
//!
//! To add an engine: one file here, one line in `conformance`, one arm in the match of `worker`.

mod null;
mod open;
mod stdio;
mod sync;

#[cfg(test)]
pub(crate) mod conformance;

use model::Nanos;
use rustix::io::Errno;

use crate::error::{Fault, Operation};

pub(crate) use null::Null;
pub(crate) use stdio::Stdio;
pub(crate) use sync::{Offset, Position};

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From the file into the buffer.
    Read,
    /// From the buffer into the file.
    Write,
}

/// One record to move.
#[derive(Debug)]
pub(crate) struct Op<'p> {
    /// Which way.
    pub(crate) kind: Kind,
    /// Number of the record.
    pub(crate) record: u64,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// When the worker turned to it.
    pub(crate) issued: Nanos,
    /// The memory, exactly one record; the engine's until completion.
    pub(crate) buffer: &'p mut [u8],
}

/// An operation that is over, with its buffer.
#[derive(Debug)]
pub(crate) struct Completion<'p> {
    /// The operation as it was submitted.
    pub(crate) op: Op<'p>,
    /// Whether the whole record was moved.
    pub(crate) result: Result<(), IoFault>,
}

/// What became of a submission.
#[derive(Debug)]
pub(crate) enum Submitted<'p> {
    /// It is over already.
    Done(Completion<'p>),
    /// It is in flight; [`IoEngine::reap`] will return it.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the answer of asynchronous engines, which the tests have")
    )]
    Queued,
    /// There is no room; reap, then submit it again. Only while something is in flight.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the answer of asynchronous engines, which the tests have")
    )]
    Full(Op<'p>),
}

/// Completions on their way from an engine to the worker; never more than there are buffers, so its
/// memory is reserved once.
pub(crate) type Completions<'p> = Vec<Completion<'p>>;

/// Why a record was not moved, or a file not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IoFault {
    /// What was being done.
    pub(crate) operation: Operation,
    /// Bytes of the record that had been moved.
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
    /// The same, in the words of the worker, for the record at `offset`.
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

/// Moves records of one open file for one thread; never allocates in `submit` and `reap`.
///
/// A synchronous engine does the I/O inside `submit` and answers [`Submitted::Done`]; an
/// asynchronous one must not wait there. Dropping an engine waits for what is in flight.
pub(crate) trait IoEngine<'p> {
    /// Starts (or does) one operation. [`Submitted::Full`] returns it untouched.
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p>;

    /// Waits for at least `min` completions (0: only look) and appends them to `out`.
    ///
    /// # Errors
    /// [`IoFault`] when the queue itself failed; faults of single operations are in their
    /// completions.
    fn reap(&mut self, min: u32, out: &mut Completions<'p>) -> Result<(), IoFault>;

    /// Goes back to the start of the file, after priming.
    fn rewind(&mut self) -> Result<(), Fault>;

    /// Makes what was written durable: fsync(2), with everything that must precede it.
    fn sync(&mut self) -> Result<(), Fault>;

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
