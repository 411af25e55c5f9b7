//! I/O engines: one file per way to transfer data, with a common interface.
//!
//! An operation owns its buffer: [`Op`] is moved into [`IoEngine::submit`] and returned in a
//! [`Completion`], so no other code can access a buffer while the kernel may. Engines transfer
//! whole operations: they resume short transfers and interrupted calls, and a completion is a whole
//! operation or a fault. Access pattern, content, and time are outside of the engines.
//!
//! A new engine needs one file here, a variant of [`IoEngineKind`](model::phase::IoEngineKind), a
//! line in `conformance`, and its name in suite `stream`. The compiler finds the matches.
//!
//! io_uring has all features of Linux AIO (io_submit(2)) with fewer calls, and supports buffered
//! I/O, for which io_submit(2) blocks. The engine for AIO exists because many programs use it.

mod aio;
mod bytewise;
mod copy;
mod failure;
mod metadata;
mod mmap;
mod null;
mod open;
mod pass;
mod ring;
mod several;
mod stdio;
mod sync;
mod update;
mod vector;

#[cfg(test)]
pub(crate) mod conformance;

use model::{
    Nanos,
    phase::{Direction, IoEngineKind, Stream, SyncCall},
};
use rustix::io::Errno;

use crate::{
    error::{Fault, Operation},
    file_offset::FileChange,
};

pub(crate) use aio::Aio;
pub(crate) use bytewise::Bytewise;
pub(crate) use copy::{Copy, source_of};
pub(crate) use metadata::{Names, Space};
pub(crate) use mmap::Mmap;
pub(crate) use null::Null;
pub(crate) use open::AccessMode;
pub(crate) use pass::{PassCalls, PassPoint, is_complete, prepare};
pub(crate) use ring::{Ring, SlotMemory, fault as ring_fault, newest as newest_ring};
pub(crate) use several::{Several, failure as failure_of_several};
pub(crate) use stdio::Stdio;
pub(crate) use sync::{Offset, Position, close};
pub(crate) use update::Update;
pub(crate) use vector::Vector;

/// Maximum number of operations in flight per worker.
pub(crate) fn depth(engine: IoEngineKind) -> u32 {
    engine.properties().queue_depth.unwrap_or(1)
}

/// True if operations read their block and may write it back.
pub(crate) fn updates(stream: &Stream) -> bool {
    matches!(stream.direction, Direction::Update(_))
}

/// Direction of a transfer.
///
/// The type is as large as a word, so that structures that contain it have no padding. With
/// padding, the parts of a word are stored by several instructions, and a copy of the structure
/// loads the word at once. The CPU then has to wait until the stores are complete, which took 18 ns
/// per queued operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Kind {
    /// From the file to the buffer.
    Read,
    /// From the buffer to the file. With [`Update`]: from the file to the buffer, and back after a
    /// change.
    Write,
}

impl Kind {
    /// Operation for fault messages.
    pub(crate) fn operation(self) -> Operation {
        match self {
            Self::Read => Operation::Read,
            Self::Write => Operation::Write,
        }
    }
}

/// Operation to run.
#[derive(Debug)]
pub(crate) struct Op<'p> {
    /// Direction.
    pub(crate) kind: Kind,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Number of bytes; at most the length of the buffer.
    pub(crate) len: usize,
    /// Number of the buffer's slot; operations in flight have different slots.
    pub(crate) slot: u32,
    /// Buffer, one whole slot; owned by the engine until completion.
    pub(crate) buffer: &'p mut [u8],
}

impl Op<'_> {
    /// Bytes to transfer.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }
}

/// Completed operation with its buffer.
#[derive(Debug)]
pub(crate) struct Completion<'p> {
    /// Operation as it was submitted.
    pub(crate) op: Op<'p>,
    /// `Ok` if all bytes were transferred.
    pub(crate) result: Result<(), IoFault>,
}

/// Result of a submission.
#[derive(Debug)]
pub(crate) enum Submitted<'p> {
    /// Completed.
    Done(Completion<'p>),
    /// Waits for [`IoEngine::commit`], and is returned by [`IoEngine::next`] when completed.
    Queued,
    /// The queue is full: reap, then submit this operation again.
    Full(Op<'p>),
}

/// Time to wait for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Do not wait.
    No,
    /// Wait for the number of completions of the engine ([`model::phase::Completions::min`]), or
    /// for all operations in flight if they are fewer.
    Some,
    /// Wait for one completion, at most until this instant of [`crate::now`].
    Until(Nanos),
}

/// Failure of an operation or of a call on the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IoFault {
    /// Operation that failed.
    pub(crate) operation: Operation,
    /// Bytes transferred before the failure.
    pub(crate) moved: u64,
    /// Cause of the failure.
    pub(crate) cause: Cause,
}

/// Cause of a failed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Errno of the kernel.
    Os(Errno),
    /// A call transferred no bytes: the end of the file if reading.
    Nothing,
}

impl IoFault {
    /// Converts to a worker's fault for the operation at `offset`.
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

/// Engine that transfers data of one open file for one thread. `submit`, `commit`, `reap`, and
/// `next` do not allocate.
///
/// A synchronous engine runs the I/O inside `submit` and returns [`Submitted::Done`]; it uses the
/// default implementations of the queue functions. An asynchronous engine must not wait in
/// `submit`. Dropping an engine waits for the operations in flight.
pub(crate) trait IoEngine<'p> {
    /// True if it may return [`Submitted::Queued`].
    const QUEUES: bool = false;

    /// Starts (or runs) one operation. [`Submitted::Full`] returns it unchanged.
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p>;

    /// Submits all queued operations to the kernel; does not wait for completions.
    ///
    /// # Errors
    /// [`IoFault`] if the queue itself failed.
    fn commit(&mut self) -> Result<(), IoFault> {
        Ok(())
    }

    /// Commits queued operations, waits for completions as requested, and returns true if there are
    /// any. [`IoEngine::next`] then returns the completions. Called only while operations are in
    /// flight.
    ///
    /// # Errors
    /// [`IoFault`] if the queue itself failed; faults of single operations are in their
    /// completions.
    fn reap(&mut self, _wait: Wait) -> Result<bool, IoFault> {
        Ok(false)
    }

    /// Next completion found by the last [`IoEngine::reap`]. It may return none even if `reap`
    /// returned true, because incomplete operations are queued again. Further operations may be
    /// submitted between two calls.
    ///
    /// Completions are returned one at a time, so that they stay in CPU registers.
    fn next(&mut self) -> Option<Completion<'p>> {
        None
    }

    /// Number of reads that failed with EAGAIN because of `RWF_NOWAIT` and were repeated without
    /// it.
    fn would_block(&self) -> u64 {
        0
    }

    /// Returns to the start of the file after priming (an untimed read of the first block).
    fn rewind(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Makes the calls on the file that a stream requests at this point ([`PassCalls`]). Engines
    /// that cannot make them reject such streams (`run::check`).
    fn begin_pass(&mut self, _calls: &PassCalls, _point: PassPoint) -> Result<(), Fault> {
        Ok(())
    }

    /// Opens one of several files, and closes another one. Called while no operation is in flight.
    fn change_file(&mut self, _calls: &PassCalls, _change: FileChange) -> Result<(), Fault> {
        Ok(())
    }

    /// Makes written data durable. Called while no operation is in flight. For [`SyncCall::Range`],
    /// `range` (offset and length) covers at least the data written since the last sync. With
    /// several files, it is an offset in the file to sync, or all files if the length is 0.
    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault>;

    /// Closes the file and returns the result of close(2), which some filesystems use to report
    /// failed writes.
    fn close(self) -> Result<(), Fault>;
}

/// Transfers `len` bytes by as many calls as needed. `transfer(done)` makes one call for the bytes
/// after `done` and returns their number. Calls interrupted by EINTR are repeated.
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
