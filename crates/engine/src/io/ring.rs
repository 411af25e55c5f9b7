//! io_uring(7): operations are submitted in batches and complete in any order.
//!
//! `submit` stores an operation in a table, indexed by its slot. `commit` writes the entries of the
//! submission queue (one per operation, two with a linked sync) and submits all of them by one
//! io_uring_enter(2). `reap` checks the completion queue. The kernel is entered only to wait, or if
//! completions must be delivered by a call. `next` reads one entry of the completion queue, which
//! contains the slot.
//!
//! Buffers and file are registered if the stream requests it. The setup of a ring, and its errors,
//! are in [`setup`].
//!
//! With `nop`, no data is transferred, no file is opened, and nothing is registered: only the
//! overhead of the ring remains. With a polling thread, the worker enters the kernel only to wake
//! that thread, or to sleep if no completion arrives for some time.
//!
//! Registered resources are released before close(2); otherwise the file would stay open longer.
#![expect(unsafe_code, reason = "the kernel gets addresses of buffers")]

mod setup;
mod verdict;

use std::path::PathBuf;

use io_uring::{EnterFlags, IoUring, opcode, squeue, types};
use model::{
    Nanos,
    phase::{Stream, SyncCall},
};
use rustix::io::Errno;

pub(crate) use setup::{fault, newest};
use verdict::{Verdict, again};

use super::{
    AccessMode, Cause, Completion, IoEngine, IoFault, Kind, Op, PassCalls, PassPoint, Submitted,
    Wait, several::QueueFiles,
};
use crate::{
    clock::{AWAKE, now},
    error::{Fault, Operation},
    file_offset::FileChange,
};

/// Maximum number of bytes of one operation in Linux (read(2)): `INT_MAX` rounded down to a whole
/// page.
const MOST: usize = 0x7fff_f000;

/// User data flag of a write with a linked fdatasync(2); the low half is the slot.
const LINKED_WRITE: u64 = 1 << 32;

/// User data flag of the linked fdatasync(2).
const LINKED_SYNC: u64 = 1 << 33;

/// Number of times that a worker with a polling thread checks the completion queue before it
/// sleeps. A check takes 10 to 50 ns (a pause of the CPU). All checks together take longer than an
/// operation of a fast device.
const POLLS: u32 = 4096;

/// Memory of all slots, which are equal parts of it. Used only for registration.
#[derive(Clone, Copy)]
pub(crate) struct SlotMemory {
    /// First byte.
    pub(crate) base: *mut u8,
    /// Length in bytes.
    pub(crate) len: usize,
    /// Number of slots.
    pub(crate) slots: usize,
}

/// Options of a submission queue entry.
#[derive(Clone, Copy)]
struct SqeOptions {
    nop: bool,
    // True if files and buffers are given by their registered index.
    registered: bool,
    linked_sync: bool,
    iopoll: bool,
    descriptor: i32,
    // First offset of the file, subtracted from the offsets of operations.
    first: u64,
}

/// Table entry of an operation in flight. It is one cache line: a queue accesses all entries in
/// turn between two system calls, and the kernel replaces the content of the CPU caches during a
/// call.
#[repr(align(64))]
struct InFlight<'p> {
    op: Option<Op<'p>>,
    // Bytes transferred by earlier entries; fewer than 2^32, see `run::check`.
    moved: u32,
    // Result of a completion that completes the operation.
    expected: i32,
    // First result of a linked pair.
    other: i32,
    // Registered buffer that contains the slot.
    buffer: u16,
    // Outstanding completions of a linked pair.
    awaited: u8,
}

const _: () = assert!(size_of::<InFlight<'_>>() == 64, "one cache line");

/// io_uring and files of a worker.
pub(crate) struct Ring<'p> {
    // Dropped, with nothing in flight, before the buffers are released.
    uring: IoUring,
    flights: Box<[InFlight<'p>]>,
    files: QueueFiles,
    options: SqeOptions,
    polled: bool,
    // Flags of a call of io_uring_enter(2) that does not wait.
    collects: EnterFlags,
    depth: u32,
    // Maximum number of operations between two commits.
    batch: usize,
    // Completions to wait for, and to collect together at most.
    least: u32,
    most: usize,
    in_flight: u32,
    // Slots of operations submitted since the last commit. The next commit writes their entries.
    fresh: Vec<u32>,
    // Entries not yet taken by the kernel.
    queued: u32,
    // Unread entries of the completion queue found by `reap`.
    ready: usize,
}

impl<'p> Ring<'p> {
    /// Opens the files of a worker and sets up a ring for them; `area` contains the slots of the
    /// operations. For use by the calling thread only.
    ///
    /// # Errors
    /// [`Fault`] with [`Operation::Ring`], [`Operation::Register`], or [`Operation::PollThread`] if
    /// the ring cannot be set up, other faults if the file cannot be opened.
    pub(crate) fn open(
        stream: &Stream,
        ring: model::phase::Ring,
        paths: &[PathBuf],
        mode: AccessMode,
        area: SlotMemory,
        worker: u32,
    ) -> Result<Self, Fault> {
        let files = match ring.nop {
            true => QueueFiles::NONE,
            false => QueueFiles::open(stream, paths, mode)?,
        };
        let uring = setup::build(ring, worker)?;
        let mut options = SqeOptions {
            nop: ring.nop,
            registered: ring.fixed_buffers,
            linked_sync: ring.linked_fdatasync,
            iopoll: ring.iopoll,
            descriptor: -1,
            first: 0,
        };
        let mut parts = setup::Parts { slots_in_each: usize::MAX };
        if let Some(file) = files.one() {
            options.descriptor = files.place(0).0;
            if ring.fixed_buffers {
                parts = setup::register(&uring, file, area)?;
            }
        }
        let flight = |slot| InFlight {
            op: None,
            moved: 0,
            expected: 0,
            buffer: parts.index(slot),
            awaited: 0,
            other: 0,
        };
        Ok(Self {
            uring,
            flights: (0..area.slots).map(flight).collect(),
            files,
            options,
            polled: ring.sqpoll,
            // A ring with deferred work, or with polling, delivers completions only on request.
            collects: if ring.sqpoll { EnterFlags::empty() } else { EnterFlags::GETEVENTS },
            depth: ring.depth,
            batch: if ring.submit_batch == 0 { usize::MAX } else { ring.submit_batch as usize },
            least: ring.completions.min.max(1),
            most: if ring.completions.max == 0 {
                usize::MAX
            } else {
                ring.completions.max as usize
            },
            in_flight: 0,
            fresh: Vec::with_capacity(area.slots),
            queued: 0,
            ready: 0,
        })
    }

    /// Enters the kernel until it has taken all entries, then waits for `wait` completions, at most
    /// `timeout`.
    fn enter(&mut self, wait: u32, timeout: Option<types::Timespec>) -> Result<(), IoFault> {
        let mut flags = self.collects;
        if wait > 0 {
            flags |= EnterFlags::GETEVENTS;
        }
        if self.polled && self.uring.submission().need_wakeup() {
            flags |= EnterFlags::SQ_WAKEUP;
        }
        let mut args = types::SubmitArgs::new();
        if let Some(timeout) = &timeout {
            flags |= EnterFlags::EXT_ARG;
            args = args.timespec(timeout);
        }
        loop {
            let args = timeout.is_some().then_some(&args);
            // SAFETY: the entries were written by `push`, which ensures the validity of their
            // buffers. The arguments have the size that the flag requires and live during the call.
            let answer =
                unsafe { self.uring.submitter().enter(self.queued, wait, flags.bits(), args) };
            match answer {
                // A call that submits fewer entries than requested does not wait
                // (io_uring_enter(2)).
                Ok(taken) => {
                    self.queued -= u32::try_from(taken).unwrap_or(u32::MAX).min(self.queued);
                    if self.queued == 0 {
                        return Ok(());
                    }
                }
                Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                    Errno::TIME => return Ok(()),
                    errno if again(errno) => {}
                    errno => {
                        let operation = Operation::Reap;
                        return Err(IoFault { operation, moved: 0, cause: Cause::Os(errno) });
                    }
                },
            }
        }
    }

    /// Returns true if there are `least` completions, and makes them available to `next`.
    #[inline]
    fn poll(&mut self, least: u32) -> bool {
        self.ready = self.uring.completion().len();
        self.ready >= least as usize
    }

    /// Waits for `least` completions: polls for some time if a polling thread is used, then sleeps.
    fn wait(&mut self, least: u32) -> Result<(), IoFault> {
        let mut looks = if self.polled { POLLS } else { 0 };
        while !self.poll(least) {
            if self.queued > 0 || looks == 0 {
                self.enter(least, None)?;
            } else {
                looks -= 1;
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// Waits for a completion, at most until an instant. The last 60 µs are spent polling, as in
    /// [`crate::clock`].
    #[cold]
    fn wait_until(&mut self, instant: Nanos) -> Result<(), IoFault> {
        while !self.poll(1) {
            let clock = now();
            if clock >= instant {
                break;
            }
            let left = Nanos(instant.0 - clock.0);
            if left > AWAKE {
                let sleep = left.0 - AWAKE.0;
                let part = (sleep % 1_000_000_000) as u32;
                let time = types::Timespec::new().sec(sleep / 1_000_000_000).nsec(part);
                self.enter(1, Some(time))?;
            } else if self.polled && self.queued == 0 {
                std::hint::spin_loop();
            } else {
                self.enter(0, None)?;
            }
        }
        Ok(())
    }

    /// Waits for all operations in flight, and releases registered resources.
    fn drain(&mut self) {
        // Entries that were not committed never reached the kernel.
        self.in_flight -= u32::try_from(self.fresh.drain(..).count()).unwrap_or(self.in_flight);
        while self.in_flight > 0 {
            while self.next().is_some() {}
            if self.in_flight > 0 && self.wait(1).is_err() {
                // The kernel may write to buffers that are about to be released, and the end of
                // these writes cannot be detected.
                std::process::abort();
            }
        }
        if self.options.registered && self.files.one().is_some() {
            // Fails only if nothing is registered.
            let _ = self.uring.submitter().unregister_files();
            let _ = self.uring.submitter().unregister_buffers();
            self.options.registered = false;
        }
    }
}

impl InFlight<'_> {
    /// Options with the file of the operation.
    fn options(&self, files: &QueueFiles, options: SqeOptions) -> SqeOptions {
        let Some(op) = self.op.as_ref().filter(|_| files.are_several()) else { return options };
        let (descriptor, first) = files.place(op.offset);
        SqeOptions { descriptor, first, ..options }
    }

    /// Writes the entries for the rest of the operation, and returns their number.
    #[inline]
    fn push(&mut self, entries: &mut squeue::SubmissionQueue<'_>, options: SqeOptions) -> u32 {
        let op = self.op.as_mut().expect("an operation is put here before it is pushed");
        let slot = u64::from(op.slot);
        if options.nop {
            self.expected = 0;
            put(entries, &opcode::Nop::new().build().user_data(slot));
            return 1;
        }
        let linked = options.linked_sync && op.kind == Kind::Write;
        let offset = op.offset - options.first + u64::from(self.moved);
        let rest = &mut op.buffer[self.moved as usize..op.len];
        let len = rest.len().min(MOST);
        #[expect(clippy::cast_possible_truncation, reason = "less than 2^31")]
        let bytes = len as u32;
        // An operation larger than the limit of one entry never completes at once.
        self.expected = if len == rest.len() { bytes.cast_signed() } else { i32::MAX };
        let (address, buffer) = (rest.as_mut_ptr(), self.buffer);
        let (number, file) = (types::Fixed(0), types::Fd(options.descriptor));
        let entry = match (op.kind, options.registered) {
            (Kind::Read, true) => {
                opcode::ReadFixed::new(number, address, bytes, buffer).offset(offset).build()
            }
            (Kind::Write, true) => {
                opcode::WriteFixed::new(number, address, bytes, buffer).offset(offset).build()
            }
            (Kind::Read, false) => opcode::Read::new(file, address, bytes).offset(offset).build(),
            (Kind::Write, false) => opcode::Write::new(file, address, bytes).offset(offset).build(),
        };
        if !linked {
            put(entries, &entry.user_data(slot));
            return 1;
        }
        self.awaited = 2;
        put(entries, &entry.flags(squeue::Flags::IO_LINK).user_data(slot | LINKED_WRITE));
        let flags = types::FsyncFlags::DATASYNC;
        let sync = match options.registered {
            true => opcode::Fsync::new(number).flags(flags).build(),
            false => opcode::Fsync::new(file).flags(flags).build(),
        };
        put(entries, &sync.user_data(slot | LINKED_SYNC));
        2
    }
}

/// Writes one entry.
#[inline]
fn put(entries: &mut squeue::SubmissionQueue<'_>, entry: &squeue::Entry) {
    // SAFETY: the buffer of the entry belongs to an operation that stays in the table, unmoved and
    // unaccessed, until its completion: no other code removes it, and `Drop` waits for all
    // operations. The worker never leaks an engine. The file is closed after all operations, too.
    let answer = unsafe { entries.push(entry) };
    answer.expect("the queue fits all entries of all operations, see setup::entries");
}

impl<'p> IoEngine<'p> for Ring<'p> {
    const QUEUES: bool = true;

    #[inline]
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        if self.in_flight >= self.depth || self.fresh.len() >= self.batch {
            return Submitted::Full(op);
        }
        let slot = op.slot;
        let flight = &mut self.flights[slot as usize];
        flight.op = Some(op);
        flight.moved = 0;
        self.fresh.push(slot);
        self.in_flight += 1;
        Submitted::Queued
    }

    #[inline]
    fn commit(&mut self) -> Result<(), IoFault> {
        let mut entries = self.uring.submission();
        if self.files.are_several() {
            for slot in self.fresh.drain(..) {
                let flight = &mut self.flights[slot as usize];
                let options = flight.options(&self.files, self.options);
                self.queued += flight.push(&mut entries, options);
            }
        }
        for slot in self.fresh.drain(..) {
            self.queued += self.flights[slot as usize].push(&mut entries, self.options);
        }
        // The polling thread checks the queue once more after it has set the flag that requests a
        // wakeup, so the entries must be visible before the flag is read.
        entries.sync();
        if self.polled && !entries.need_wakeup() {
            self.queued = 0;
            return Ok(());
        }
        drop(entries);
        self.enter(0, None)
    }

    #[inline]
    fn reap(&mut self, wait: Wait) -> Result<bool, IoFault> {
        if self.queued > 0 || !self.fresh.is_empty() {
            self.commit()?;
        }
        let least = match wait {
            Wait::No | Wait::Some => self.least.min(self.in_flight),
            Wait::Until(_) => 1,
        };
        if !self.poll(least) {
            match wait {
                Wait::No => return Ok(false),
                Wait::Some => self.wait(least)?,
                Wait::Until(instant) => self.wait_until(instant)?,
            }
        }
        self.ready = self.ready.min(self.most);
        Ok(self.ready > 0)
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Completion<'p>> {
        while self.ready > 0 {
            self.ready -= 1;
            let answer = self.uring.completion().next()?;
            let (data, answer) = (answer.user_data(), answer.result());
            #[expect(clippy::cast_possible_truncation, reason = "the low half is the slot")]
            let flight = &mut self.flights[data as u32 as usize];
            let result = if answer == flight.expected && data < LINKED_WRITE {
                Ok(())
            } else {
                match flight.classify(data, answer, self.options) {
                    Verdict::Over(result) => result,
                    Verdict::Pending => continue,
                    Verdict::Again => {
                        let options = flight.options(&self.files, self.options);
                        self.queued += flight.push(&mut self.uring.submission(), options);
                        continue;
                    }
                }
            };
            self.in_flight -= 1;
            let op = flight.op.take().expect("a completion is of an operation in flight");
            return Some(Completion { op, result });
        }
        None
    }

    fn begin_pass(&mut self, calls: &PassCalls, point: PassPoint) -> Result<(), Fault> {
        self.files.begin_pass(calls, point)?;
        self.options.descriptor = self.files.place(0).0;
        Ok(())
    }

    fn change_file(&mut self, calls: &PassCalls, change: FileChange) -> Result<(), Fault> {
        self.files.change(calls, change)
    }

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        self.files.make_durable(call, range)
    }

    fn close(mut self) -> Result<(), Fault> {
        self.drain();
        self.files.close()
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        self.drain();
    }
}

#[cfg(test)]
mod tests;
