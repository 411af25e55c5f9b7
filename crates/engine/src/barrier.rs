//! The control block: what the workers of a phase and their coordinator share while it runs.
//!
//! It is a file in memory (memfd_create(2)), mapped shared, so the same block serves threads and
//! processes. The header comes first, then one cache line for each worker:
//!
//! ```text
//! header  events   bumped when a worker arrives, finishes, or fails; the coordinator sleeps on it
//!         gate     0 closed, 1 open, 2 called off; the workers sleep on it
//!         ready    workers that wait at the gate
//!         finished workers that are done, in any way
//!         signal   bit 0: stop counting (the stonewall); bit 1: abort
//!         culprit  1 + index of the first worker that failed
//!         taken    operations begun, where all workers have one number of them together
//! lane    bytes    moved so far; stored by its worker alone, as are the others
//!         done     operations done so far
//!         durable  how many of these the last flush covered
//!         start    length of its file when it was opened
//!         generation  from where its writes are counted
//!         ended    instant after close
//! ```
//!
//! Everybody sleeps in futex(2) until it is his turn: a worker that waits does not take CPU time
//! from those that still prepare. In the loop a worker only loads `signal` and stores its own lane,
//! both relaxed. Results do not travel here.
#![expect(unsafe_code, reason = "atomics in memory that processes share")]

use std::{
    mem::size_of,
    num::NonZeroUsize,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    time::Duration,
};

use model::{Bytes, Nanos, Ops};
use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    io::Errno,
    thread::futex,
};

use crate::{
    clock::now,
    error::{Fault, Memory, Operation},
    mapping::Mapping,
};

/// Bit of the signal word: the first worker is done, counting ends.
pub(crate) const STOP: u32 = 1;
/// Bit of the signal word: give up at once.
pub(crate) const ABORT: u32 = 2;

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const CALLED_OFF: u32 = 2;

#[repr(C, align(64))]
struct Header {
    events: AtomicU32,
    gate: AtomicU32,
    ready: AtomicU32,
    finished: AtomicU32,
    culprit: AtomicU32,
    // The one word that is read in the loop has a cache line of its own, away from the counters
    // above that change while others already work.
    signal: Line,
    // Changed by all workers where they share one number of operations, and by nobody otherwise.
    taken: Counter,
}

#[repr(C, align(64))]
struct Counter(AtomicU64);

#[repr(C, align(64))]
struct Line(AtomicU32);

/// The part of the block that one worker writes; a cache line of its own, so that publishing
/// progress does not slow the neighbors.
#[repr(C, align(64))]
pub(crate) struct Lane {
    /// Bytes moved so far.
    pub(crate) bytes: AtomicU64,
    /// Operations done so far.
    pub(crate) done: AtomicU64,
    /// How many of these the last flush covered.
    pub(crate) durable: AtomicU64,
    start: AtomicU64,
    generation: AtomicU64,
    ended: AtomicU64,
}

impl Lane {
    /// Notes how long the file was when the worker opened it, and from where its generations count.
    pub(crate) fn begin(&self, len: u64, generation: u64) {
        self.start.store(len, Relaxed);
        self.generation.store(generation, Relaxed);
    }

    /// From where the worker's generations count.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// How long the file was when the worker opened it.
    pub(crate) fn start(&self) -> u64 {
        self.start.load(Relaxed)
    }

    /// Operations done, and how many of these the last flush covered.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.durable.load(Relaxed))
    }

    /// Everything done so far was flushed.
    pub(crate) fn all_durable(&self) {
        self.durable.store(self.done.load(Relaxed), Relaxed);
    }

    /// Notes when the worker had closed its file.
    pub(crate) fn end(&self, instant: Nanos) {
        self.ended.store(instant.0, Release);
    }
}

/// The control block of one phase.
pub(crate) struct Board {
    mapping: Mapping,
    file: OwnedFd,
    workers: u32,
    // Whether the file is one that outlives the phase.
    kept: bool,
}

impl Board {
    /// A fresh block for so many workers.
    pub(crate) fn new(workers: u32) -> Result<Self, Fault> {
        let len = Self::len(workers);
        let fault = |errno: Errno| Fault::Memory {
            what: Memory::ControlBlock,
            bytes: len.get() as u64,
            errno: errno.raw_os_error(),
        };
        let file = memfd_create("fslab-phase", MemfdFlags::CLOEXEC).map_err(fault)?;
        ftruncate(&file, len.get() as u64).map_err(fault)?;
        Self::map(file, workers, false).map_err(fault)
    }

    /// Length of the file of a block, in bytes.
    pub(crate) fn file_len(workers: u32) -> u64 {
        Self::len(workers).get() as u64
    }

    /// The block in a file that outlives the phase, at least [`Self::file_len`] long.
    pub(crate) fn kept(file: OwnedFd, workers: u32) -> Result<Self, Fault> {
        let bytes = Self::file_len(workers);
        Self::map(file, workers, true).map_err(|errno| Fault::Memory {
            what: Memory::ControlBlock,
            bytes,
            errno: errno.raw_os_error(),
        })
    }

    /// Brings a block that outlives the phase to its device; others are left alone.
    pub(crate) fn persist(&self) -> Result<(), Fault> {
        if !self.kept {
            return Ok(());
        }
        self.mapping.sync().map_err(|errno| Fault::whole(Operation::State, errno))
    }

    /// Maps the block that another process made for `workers` workers.
    /// `kept` as it was made.
    pub(crate) fn adopt(file: OwnedFd, workers: u32, kept: bool) -> Result<Self, Fault> {
        let bytes = Self::len(workers).get() as u64;
        let what = Memory::ControlBlock;
        Self::map(file, workers, kept).map_err(|errno| Fault::Memory {
            what,
            bytes,
            errno: errno.raw_os_error(),
        })
    }

    fn map(file: OwnedFd, workers: u32, kept: bool) -> Result<Self, Errno> {
        let mapping = Mapping::shared(file.as_fd(), Self::len(workers))?;
        Ok(Self { mapping, file, workers, kept })
    }

    fn len(workers: u32) -> NonZeroUsize {
        let lanes = workers as usize * size_of::<Lane>();
        NonZeroUsize::MIN.saturating_add(size_of::<Header>() + lanes - 1)
    }

    /// Whether the block outlives the phase.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    /// The file behind the block, for handing it to a worker process.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping starts on a page and is longer than a header (`len`); a header is
        // atomics only, for which the kernel's zeros are valid; everyone who maps this file, here
        // or in another process of this build, touches it through these atomics alone.
        unsafe { self.mapping.base().cast::<Header>().as_ref() }
    }

    /// The lane of a worker.
    ///
    /// # Panics
    /// If there is no such worker.
    pub(crate) fn lane(&self, worker: u32) -> &Lane {
        assert!(worker < self.workers, "a lane exists for each worker of the phase");
        let offset = size_of::<Header>() + worker as usize * size_of::<Lane>();
        // SAFETY: `offset` plus one lane lies within the mapping, as `len` counts `workers` lanes
        // and the assertion holds; it is a multiple of 64 like both sizes. Atomics only, as above.
        unsafe { self.mapping.base().add(offset).cast::<Lane>().as_ref() }
    }

    /// The word to look at after each operation: zero, or [`STOP`] and [`ABORT`] bits.
    pub(crate) fn signal(&self) -> &AtomicU32 {
        &self.header().signal.0
    }

    /// Where the workers take their operations from when they have one number of them together: how
    /// often one was asked for.
    pub(crate) fn taken(&self) -> &AtomicU64 {
        &self.header().taken.0
    }

    /// A worker is prepared: waits until all are, and the coordinator opens the gate.
    pub(crate) fn arrive(&self) -> Result<(), Fault> {
        self.header().ready.fetch_add(1, Release);
        self.announce();
        loop {
            match self.header().gate.load(Acquire) {
                OPEN => return Ok(()),
                // Woken, interrupted, or too late to sleep: the gate tells which.
                CLOSED => drop(futex::wait(&self.header().gate, SHARED, CLOSED, None)),
                _ => return Err(Fault::Aborted),
            }
        }
    }

    /// The first worker is done: the others stop counting.
    pub(crate) fn stop(&self) {
        self.signal().fetch_or(STOP, Relaxed);
    }

    /// Everybody gives up, also those that wait at the gate.
    pub(crate) fn abort(&self) {
        self.signal().fetch_or(ABORT, Relaxed);
        // A gate already open stays so: who passes it sees the signal after his first operation.
        let _ = self.header().gate.compare_exchange(CLOSED, CALLED_OFF, Release, Relaxed);
        wake(&self.header().gate);
        self.announce();
    }

    /// Whether the phase was called off.
    pub(crate) fn aborted(&self) -> bool {
        self.signal().load(Relaxed) & ABORT != 0
    }

    /// This worker failed: the others give up. Only the first to say so is remembered.
    pub(crate) fn fail(&self, worker: u32) {
        let _ = self.header().culprit.compare_exchange(0, worker + 1, Relaxed, Relaxed);
        self.abort();
    }

    /// The first worker that failed.
    pub(crate) fn culprit(&self) -> Option<u32> {
        self.header().culprit.load(Relaxed).checked_sub(1)
    }

    /// A worker is done, in whatever way. Called once for each, in the coordinator's process.
    pub(crate) fn finish(&self) {
        self.header().finished.fetch_add(1, Release);
        self.announce();
    }

    /// Opens the gate and says when.
    pub(crate) fn release(&self) -> Nanos {
        let released = now();
        let _ = self.header().gate.compare_exchange(CLOSED, OPEN, Release, Relaxed);
        wake(&self.header().gate);
        released
    }

    /// Sleeps until all workers stand at the gate or the phase was called off; `look` is called at
    /// least every 50 ms.
    pub(crate) fn wait_ready(&self, look: impl Fn()) {
        self.wait(|header| header.ready.load(Acquire) >= self.workers || self.aborted(), look);
    }

    /// Sleeps until all workers are done; `look` is called at least every 50 ms.
    pub(crate) fn wait_finished(&self, look: impl Fn()) {
        self.wait(|header| header.finished.load(Acquire) >= self.workers, look);
    }

    fn wait(&self, done: impl Fn(&Header) -> bool, look: impl Fn()) {
        let patience = futex::Timespec::try_from(Duration::from_millis(50))
            .expect("50 ms fit into a timespec");
        loop {
            let seen = self.header().events.load(Acquire);
            look();
            if done(self.header()) {
                return;
            }
            // Time out, wake up, or an event since `seen`: look again in any case.
            let _ = futex::wait(&self.header().events, SHARED, seen, Some(&patience));
        }
    }

    fn announce(&self) {
        self.header().events.fetch_add(1, Release);
        wake(&self.header().events);
    }

    /// Bytes moved so far by all workers.
    pub(crate) fn bytes(&self) -> Bytes {
        (0..self.workers).map(|worker| Bytes(self.lane(worker).bytes.load(Relaxed))).sum()
    }

    /// Operations done so far by all workers.
    pub(crate) fn done(&self) -> Ops {
        Ops((0..self.workers).map(|worker| self.lane(worker).done.load(Relaxed)).sum())
    }

    /// When the last worker had closed its file.
    pub(crate) fn last_end(&self) -> Nanos {
        let ends = (0..self.workers).map(|worker| self.lane(worker).ended.load(Acquire));
        Nanos(ends.max().unwrap_or(0))
    }
}

/// Not `FUTEX_PRIVATE`: the waiters may be other processes.
const SHARED: futex::Flags = futex::Flags::empty();

fn wake(word: &AtomicU32) {
    // futex(2) takes the number of waiters as an int; waking cannot fail on a mapped, aligned word.
    let _ = futex::wake(word, SHARED, i32::MAX as u32);
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nobody_passes_before_all_are_ready() {
        let board = Board::new(3).unwrap();
        let order = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    board.arrive().unwrap();
                    assert_eq!(order.load(Acquire), 1, "passed before the release");
                    board.finish();
                });
            }
            board.wait_ready(|| ());
            order.store(1, Release);
            board.release();
            board.wait_finished(|| ());
        });
    }

    #[test]
    fn an_abort_frees_the_waiting_and_names_the_first_culprit() {
        let board = Board::new(2).unwrap();
        let fault = thread::scope(|scope| {
            let waiter = scope.spawn(|| board.arrive());
            board.fail(1);
            board.fail(0);
            waiter.join().unwrap()
        });
        assert_eq!(fault, Err(Fault::Aborted));
        assert_eq!(board.culprit(), Some(1));
        board.wait_ready(|| ());
        board.release();
        assert_eq!(board.arrive(), Err(Fault::Aborted), "an abort outlives a late release");
    }

    #[test]
    fn another_mapping_of_the_file_is_the_same_block() {
        let board = Board::new(2).unwrap();
        let twin = Board::adopt(board.file().try_clone_to_owned().unwrap(), 2, false).unwrap();
        twin.lane(1).bytes.store(5, Relaxed);
        twin.lane(0).bytes.store(2, Relaxed);
        twin.lane(1).end(Nanos(9));
        twin.stop();
        assert_eq!((board.bytes(), board.last_end()), (Bytes(7), Nanos(9)));
        assert_eq!(board.signal().load(Relaxed), STOP);
    }
}
