//! Control block: memory that the workers of a phase share with their coordinator.
//!
//! The block is a file in memory (memfd_create(2)), mapped shared, so that workers can be threads
//! or processes. The header is followed by one cache line per worker:
//!
//! ```text
//! header  events   incremented when a worker arrives, finishes, or fails; wakes the coordinator
//!         gate     0 closed, 1 open, 2 canceled; wakes the workers
//!         ready    workers that wait at the gate
//!         finished workers that have ended, for any reason
//!         signal   bit 0: stop counting (stonewall); bit 1: abort
//!         first_failed_worker  1 + index of the first worker that failed
//!         taken    operations started, if all workers share one number of operations
//!         reached  workers that have reached a deadline, or ended before it
//!         largest  largest number of operations of such a worker
//!         agreed   1 after the coordinator has stored the final `largest`; wakes the workers
//! slot    bytes    bytes moved; like the following fields, stored by its worker only
//!         done     operations completed
//!         durable  operations covered by the last sync
//!         start    length of the file when it was opened
//!         generation  number in block headers before its first write (payload)
//!         ended    instant after close
//! ```
//!
//! Waiting workers sleep in futex(2), so that they do not take CPU time from workers that are not
//! ready yet. Inside the loop, a worker loads `signal` and stores to its own slot, both relaxed. It
//! also increments `taken` if the workers share one number of operations. Results of workers are
//! not part of the block.
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

/// Bit of the signal word: stop counting, because the first worker has finished.
pub(crate) const STOP: u32 = 1;
/// Bit of the signal word: abort immediately.
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
    first_failed_worker: AtomicU32,
    // This word is read inside the loop. It has its own cache line because the counters above still
    // change while other workers already run.
    signal: Line,
    // Changed by all workers if they share one number of operations, otherwise unused.
    taken: Counter,
    reached: AtomicU32,
    largest: AtomicU64,
    agreed: AtomicU32,
}

#[repr(C, align(64))]
struct Counter(AtomicU64);

#[repr(C, align(64))]
struct Line(AtomicU32);

/// Part of the block that one worker writes. It is a separate cache line, so that progress updates
/// do not slow the other workers.
#[repr(C, align(64))]
pub(crate) struct WorkerSlot {
    /// Bytes moved.
    pub(crate) bytes: AtomicU64,
    /// Operations completed.
    pub(crate) done: AtomicU64,
    /// Operations covered by the last sync.
    pub(crate) durable: AtomicU64,
    start: AtomicU64,
    generation: AtomicU64,
    ended: AtomicU64,
}

impl WorkerSlot {
    /// Stores the length of the file when the worker opened it, and the generation before its first
    /// write ([`crate::payload`]).
    pub(crate) fn begin(&self, len: u64, generation: u64) {
        self.start.store(len, Relaxed);
        self.generation.store(generation, Relaxed);
    }

    /// Generation before the worker's first write.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// Length of the file when the worker opened it.
    pub(crate) fn start(&self) -> u64 {
        self.start.load(Relaxed)
    }

    /// Operations completed, and operations covered by the last sync.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.durable.load(Relaxed))
    }

    /// Marks all completed operations as durable.
    pub(crate) fn all_durable(&self) {
        self.durable.store(self.done.load(Relaxed), Relaxed);
    }

    /// Stores the instant at which the worker had closed its file.
    pub(crate) fn end(&self, instant: Nanos) {
        self.ended.store(instant.0, Release);
    }
}

/// Control block of one phase.
pub(crate) struct ControlBlock {
    mapping: Mapping,
    file: OwnedFd,
    workers: u32,
    // True if the file outlives the phase.
    kept: bool,
}

impl ControlBlock {
    /// Creates a block for this number of workers.
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

    /// Length of the file of a block in bytes.
    pub(crate) fn file_len(workers: u32) -> u64 {
        Self::len(workers).get() as u64
    }

    /// Creates a block in a file that outlives the phase and has at least [`Self::file_len`] bytes.
    pub(crate) fn kept(file: OwnedFd, workers: u32) -> Result<Self, Fault> {
        let bytes = Self::file_len(workers);
        Self::map(file, workers, true).map_err(|errno| Fault::Memory {
            what: Memory::ControlBlock,
            bytes,
            errno: errno.raw_os_error(),
        })
    }

    /// Writes a block that outlives the phase to its device. Does nothing for other blocks.
    pub(crate) fn persist(&self) -> Result<(), Fault> {
        if !self.kept {
            return Ok(());
        }
        self.mapping.sync().map_err(|errno| Fault::whole(Operation::State, errno))
    }

    /// Maps the block that another process created for `workers` workers. `kept` is true if the
    /// block outlives the phase.
    pub(crate) fn attach(file: OwnedFd, workers: u32, kept: bool) -> Result<Self, Fault> {
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
        let slots = workers as usize * size_of::<WorkerSlot>();
        NonZeroUsize::MIN.saturating_add(size_of::<Header>() + slots - 1)
    }

    /// True if the block outlives the phase.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    /// File of the block, to be passed to a worker process.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping starts on a page boundary and is longer than a header (`len`). A
        // header consists of atomics, for which the kernel's zeros are valid. All users of this
        // file, in this or another process of this build, access it through these atomics only.
        unsafe { self.mapping.base().cast::<Header>().as_ref() }
    }

    /// Slot of a worker.
    ///
    /// # Panics
    /// If the worker does not exist.
    pub(crate) fn slot(&self, worker: u32) -> &WorkerSlot {
        assert!(worker < self.workers, "worker index out of range");
        let offset = size_of::<Header>() + worker as usize * size_of::<WorkerSlot>();
        // SAFETY: `offset` plus one slot is inside the mapping, because `len` counts `workers`
        // slots and the assertion holds. It is a multiple of 64, like both sizes. Atomics only, as
        // above.
        unsafe { self.mapping.base().add(offset).cast::<WorkerSlot>().as_ref() }
    }

    /// Word to check after each operation: zero, or [`STOP`] and [`ABORT`] bits.
    pub(crate) fn signal(&self) -> &AtomicU32 {
        &self.header().signal.0
    }

    /// Number of operations that the workers have started, if they share one number of operations.
    pub(crate) fn taken(&self) -> &AtomicU64 {
        &self.header().taken.0
    }

    /// Marks a worker as having completed this many operations at its deadline, or at its end.
    pub(crate) fn reach(&self, done: u64) {
        self.header().largest.fetch_max(done, Relaxed);
        if self.header().reached.fetch_add(1, Release) + 1 == self.workers {
            self.announce();
        }
    }

    /// Largest number of operations of a worker, once: after all workers have reached their
    /// deadline, and before [`Self::agree`].
    pub(crate) fn reached(&self) -> Option<u64> {
        let header = self.header();
        let due = header.reached.load(Acquire) >= self.workers && header.agreed.load(Relaxed) == 0;
        due.then(|| header.largest.load(Relaxed))
    }

    /// Continues the workers that wait at their deadline, up to this number of operations.
    pub(crate) fn agree(&self, largest: u64) {
        self.header().largest.store(largest, Relaxed);
        self.header().agreed.store(1, Release);
        wake(&self.header().agreed);
    }

    /// Waits until the coordinator has stored the number of operations up to which all workers
    /// continue.
    pub(crate) fn largest(&self) -> Result<u64, Fault> {
        while self.header().agreed.load(Acquire) == 0 {
            if self.aborted() {
                return Err(Fault::Aborted);
            }
            let _ = futex::wait(&self.header().agreed, SHARED, 0, Some(&patience()));
        }
        Ok(self.header().largest.load(Relaxed))
    }

    /// Marks a worker as ready, and waits until all workers are ready and the coordinator opens the
    /// gate.
    pub(crate) fn arrive(&self) -> Result<(), Fault> {
        self.header().ready.fetch_add(1, Release);
        self.announce();
        loop {
            match self.header().gate.load(Acquire) {
                OPEN => return Ok(()),
                // The wait ends with a wakeup or a signal, or does not begin if the gate has just
                // changed. The gate is then read again.
                CLOSED => drop(futex::wait(&self.header().gate, SHARED, CLOSED, None)),
                _ => return Err(Fault::Aborted),
            }
        }
    }

    /// Ends counting in all workers, because the first one has finished.
    pub(crate) fn stop(&self) {
        self.signal().fetch_or(STOP, Relaxed);
    }

    /// Aborts all workers, including those that wait at the gate.
    pub(crate) fn abort(&self) {
        self.signal().fetch_or(ABORT, Relaxed);
        // An open gate stays open. A worker that passes it sees the signal after its first
        // operation.
        let _ = self.header().gate.compare_exchange(CLOSED, CALLED_OFF, Release, Relaxed);
        wake(&self.header().gate);
        self.announce();
    }

    /// True if the phase was aborted.
    pub(crate) fn aborted(&self) -> bool {
        self.signal().load(Relaxed) & ABORT != 0
    }

    /// Aborts the phase because this worker failed. Only the first failure is recorded.
    pub(crate) fn fail(&self, worker: u32) {
        let _ = self.header().first_failed_worker.compare_exchange(0, worker + 1, Relaxed, Relaxed);
        self.abort();
    }

    /// First worker that failed.
    pub(crate) fn first_failed_worker(&self) -> Option<u32> {
        self.header().first_failed_worker.load(Relaxed).checked_sub(1)
    }

    /// Marks a worker as ended, for any reason. Called once per worker in the coordinator's
    /// process.
    pub(crate) fn finish(&self) {
        self.header().finished.fetch_add(1, Release);
        self.announce();
    }

    /// Opens the gate and returns the instant.
    pub(crate) fn release(&self) -> Nanos {
        let released = now();
        let _ = self.header().gate.compare_exchange(CLOSED, OPEN, Release, Relaxed);
        wake(&self.header().gate);
        released
    }

    /// Sleeps until all workers are at the gate or the phase was aborted. Calls `poll` at least
    /// every 50 ms.
    pub(crate) fn wait_ready(&self, poll: impl Fn()) {
        self.wait(|header| header.ready.load(Acquire) >= self.workers || self.aborted(), poll);
    }

    /// Sleeps until all workers have ended. Calls `poll` at least every 50 ms.
    pub(crate) fn wait_finished(&self, poll: impl Fn()) {
        self.wait(|header| header.finished.load(Acquire) >= self.workers, poll);
    }

    fn wait(&self, done: impl Fn(&Header) -> bool, poll: impl Fn()) {
        loop {
            let seen = self.header().events.load(Acquire);
            poll();
            if done(self.header()) {
                return;
            }
            // After a timeout, a wakeup, or an event since `seen`, the condition is checked again.
            let _ = futex::wait(&self.header().events, SHARED, seen, Some(&patience()));
        }
    }

    fn announce(&self) {
        self.header().events.fetch_add(1, Release);
        wake(&self.header().events);
    }

    /// Bytes moved by all workers.
    pub(crate) fn bytes(&self) -> Bytes {
        (0..self.workers).map(|worker| Bytes(self.slot(worker).bytes.load(Relaxed))).sum()
    }

    /// Operations completed by all workers.
    pub(crate) fn done(&self) -> Ops {
        Ops((0..self.workers).map(|worker| self.slot(worker).done.load(Relaxed)).sum())
    }

    /// Instant at which the last worker had closed its file.
    pub(crate) fn last_end(&self) -> Nanos {
        let ends = (0..self.workers).map(|worker| self.slot(worker).ended.load(Acquire));
        Nanos(ends.max().unwrap_or(0))
    }
}

/// Futex flags without `FUTEX_PRIVATE`, because waiters may be other processes.
const SHARED: futex::Flags = futex::Flags::empty();

/// Longest sleep of a waiter between two checks.
fn patience() -> futex::Timespec {
    futex::Timespec::try_from(Duration::from_millis(50)).expect("50 ms fit into a timespec")
}

fn wake(word: &AtomicU32) {
    // futex(2) takes the number of waiters as an int. Waking cannot fail on a mapped, aligned word.
    let _ = futex::wake(word, SHARED, i32::MAX as u32);
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_worker_passes_the_gate_before_all_are_ready() {
        let control = ControlBlock::new(3).unwrap();
        let order = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    control.arrive().unwrap();
                    assert_eq!(order.load(Acquire), 1, "passed before the release");
                    control.finish();
                });
            }
            control.wait_ready(|| ());
            order.store(1, Release);
            control.release();
            control.wait_finished(|| ());
        });
    }

    #[test]
    fn an_abort_wakes_waiting_workers_and_records_the_first_failure() {
        let control = ControlBlock::new(2).unwrap();
        let fault = thread::scope(|scope| {
            let waiter = scope.spawn(|| control.arrive());
            control.fail(1);
            control.fail(0);
            waiter.join().unwrap()
        });
        assert_eq!(fault, Err(Fault::Aborted));
        assert_eq!(control.first_failed_worker(), Some(1));
        control.wait_ready(|| ());
        control.release();
        assert_eq!(control.arrive(), Err(Fault::Aborted), "an abort outlives a late release");
    }

    #[test]
    fn workers_wait_for_the_largest_number_of_all() {
        let control = ControlBlock::new(3).unwrap();
        let all = thread::scope(|scope| {
            let control = &control;
            let each = [4, 9, 2].map(|done| {
                scope.spawn(move || {
                    control.reach(done);
                    let largest = control.largest();
                    control.finish();
                    largest
                })
            });
            control.wait_finished(|| {
                if let Some(largest) = control.reached() {
                    assert_eq!(largest, 9);
                    control.agree(11);
                }
            });
            each.map(|worker| worker.join().unwrap())
        });
        assert_eq!(all, [Ok(11), Ok(11), Ok(11)], "workers of another host were faster");
        assert_eq!(control.reached(), None, "once");
        let control = ControlBlock::new(2).unwrap();
        control.reach(1);
        assert_eq!(control.reached(), None, "one worker has not reached the deadline");
        control.fail(1);
        assert_eq!(control.largest(), Err(Fault::Aborted), "the other worker failed");
    }

    #[test]
    fn another_mapping_of_the_file_is_the_same_block() {
        let control = ControlBlock::new(2).unwrap();
        let second =
            ControlBlock::attach(control.file().try_clone_to_owned().unwrap(), 2, false).unwrap();
        second.slot(1).bytes.store(5, Relaxed);
        second.slot(0).bytes.store(2, Relaxed);
        second.slot(1).end(Nanos(9));
        second.stop();
        assert_eq!((control.bytes(), control.last_end()), (Bytes(7), Nanos(9)));
        assert_eq!(control.signal().load(Relaxed), STOP);
    }
}
