//! io_uring(7): operations go to the kernel in batches and come back in any order.
//!
//! `submit` puts an operation into a table by the number of its slot. `commit` writes the entries
//! of the submission queue (one for each, two with a linked sync) and is one io_uring_enter(2) for
//! all of them. `reap` looks at the completion queue, entering the kernel only to wait or to have
//! completions delivered, and `next` reads it: the kernel hands back the number of the slot.
//!
//! Buffers and file are registered where the stream asks for it; how a ring is set up, and what
//! the kernel may refuse, is in [`setup`].
//!
//! With `nop` nothing is moved, no file is opened, and nothing is registered: what is left is the
//! cost of the ring. With a polling thread the worker enters the kernel only to wake that thread,
//! or to sleep when nothing has come for a while.
//!
//! close(2) is preceded by taking back what was registered, as the ring would otherwise keep the
//! file open until the kernel has torn the ring down, some time later; that is part of the closing.
#![expect(unsafe_code, reason = "the kernel gets addresses of buffers")]

mod setup;
mod verdict;

use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
};

use io_uring::{EnterFlags, IoUring, opcode, squeue, types};
use model::{
    Nanos,
    phase::{FlushCall, Stream},
};
use rustix::io::Errno;

pub(crate) use setup::{fault, newest};
use verdict::{Verdict, again};

use super::{
    Cause, Completion, IoEngine, IoFault, Kind, Op, Submitted, Wait,
    open::{self, Purpose},
    sync,
};
use crate::{
    clock::{AWAKE, now},
    error::{Fault, Operation},
};

/// The most bytes that one operation of Linux moves (read(2)): `INT_MAX` cut to a whole page.
const MOST: usize = 0x7fff_f000;

/// In the user data of a write that an fdatasync(2) is linked to; the low half is the slot.
const LINKED_WRITE: u64 = 1 << 32;

/// In the user data of that fdatasync(2).
const LINKED_SYNC: u64 = 1 << 33;

/// Looks at the completion queue before the worker sleeps, with a polling thread: at the 10 to 50
/// ns that a pause of the CPU takes, longer than a fast device needs for an operation.
const LOOKS: u32 = 4096;

/// The memory of all slots, which are equal parts of it: for registering it, never looked at.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    /// Its first byte.
    pub(crate) base: *mut u8,
    /// Its length in bytes.
    pub(crate) len: usize,
    /// Number of slots.
    pub(crate) slots: usize,
}

/// What an entry of the submission queue says beside the operation.
#[derive(Clone, Copy)]
struct Manner {
    nop: bool,
    // By number in the table of registered files and buffers, or as they are.
    registered: bool,
    linked_sync: bool,
    iopoll: bool,
    descriptor: i32,
}

/// A place for an operation in flight: one cache line, as a queue touches all of them in turn
/// between two visits of the kernel, which takes the caches for itself.
#[repr(align(64))]
struct Flight<'p> {
    op: Option<Op<'p>>,
    // Bytes of it that earlier entries have moved; fewer than 2^32, see `run::check`.
    moved: u32,
    // The answer that means that all is done.
    expected: i32,
    // Of a linked pair: the answer that came first.
    other: i32,
    // The registered buffer that the slot lies in.
    buffer: u16,
    // Of a linked pair: completions that have yet to come.
    awaited: u8,
}

const _: () = assert!(size_of::<Flight<'_>>() == 64, "one cache line");

/// An io_uring and the file of a worker.
pub(crate) struct Ring<'p> {
    // Dropped, with nothing in flight, before the buffers are given up.
    uring: IoUring,
    flights: Box<[Flight<'p>]>,
    // `None` for NOPs, and once closed.
    file: Option<OwnedFd>,
    manner: Manner,
    polled: bool,
    // What an entering that need not wait is to do beside submitting.
    collects: EnterFlags,
    depth: u32,
    // The most operations between two commits.
    batch: usize,
    in_flight: u32,
    // Slots of operations submitted since the last commit: their entries are written then, all at
    // once.
    fresh: Vec<u32>,
    // Entries that the kernel has not got.
    queued: u32,
    // Entries of the completion queue that are left of those that `reap` found.
    ready: usize,
}

impl<'p> Ring<'p> {
    /// Opens the file of a worker and sets up a ring for it; `area` has the slots that operations
    /// will be in. To be used by the calling thread alone.
    ///
    /// # Errors
    /// [`Fault`] with [`Operation::Ring`], [`Operation::Register`], or [`Operation::PollThread`]
    /// for the ring, others for the file.
    pub(crate) fn open(
        stream: &Stream,
        ring: model::phase::Ring,
        path: &Path,
        purpose: Purpose,
        area: Area,
        worker: u32,
    ) -> Result<Self, Fault> {
        let file = if ring.nop { None } else { Some(open::open(stream, path, purpose)?) };
        let uring = setup::build(ring, worker)?;
        let mut manner = Manner {
            nop: ring.nop,
            registered: ring.registered,
            linked_sync: ring.linked_sync,
            iopoll: ring.iopoll,
            descriptor: -1,
        };
        let mut parts = setup::Parts { slots_in_each: usize::MAX };
        if let Some(file) = &file {
            manner.descriptor = file.as_raw_fd();
            if ring.registered {
                parts = setup::register(&uring, file.as_fd(), area)?;
            }
        }
        let flight = |slot| Flight {
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
            file,
            manner,
            polled: ring.sqpoll,
            // Completions of a ring with deferred work, or with polling, are delivered to those
            // who ask for them.
            collects: if ring.sqpoll { EnterFlags::empty() } else { EnterFlags::GETEVENTS },
            depth: ring.depth,
            batch: if ring.batch == 0 { usize::MAX } else { ring.batch as usize },
            in_flight: 0,
            fresh: Vec::with_capacity(area.slots),
            queued: 0,
            ready: 0,
        })
    }

    /// Enters the kernel until it has all entries, then waits for so many completions, for no
    /// longer than `timeout`.
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
            // SAFETY: the entries were written by `push`, which makes sure of their buffers; the
            // arguments are of the size that the flag promises and live during the call.
            let answer =
                unsafe { self.uring.submitter().enter(self.queued, wait, flags.bits(), args) };
            match answer {
                // Who submits less than asked does not wait either (io_uring_enter(2)).
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

    /// Whether there are answers; those that are there now are the ones to go through.
    #[inline]
    fn look(&mut self) -> bool {
        self.ready = self.uring.completion().len();
        self.ready > 0
    }

    /// Waits for an answer: looks for a while where a thread polls, then sleeps.
    fn wait(&mut self) -> Result<(), IoFault> {
        let mut looks = if self.polled { LOOKS } else { 0 };
        while !self.look() {
            if self.queued > 0 || looks == 0 {
                self.enter(1, None)?;
            } else {
                looks -= 1;
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// Waits for an answer until an instant; as in [`crate::clock`], the last part is spent
    /// awake.
    #[cold]
    fn wait_until(&mut self, instant: Nanos) -> Result<(), IoFault> {
        while !self.look() {
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

    /// Waits for all that is in flight, and takes back what was registered.
    fn settle(&mut self) {
        // What was not committed the kernel never had.
        self.in_flight -= u32::try_from(self.fresh.drain(..).count()).unwrap_or(self.in_flight);
        while self.in_flight > 0 {
            while self.next().is_some() {}
            if self.in_flight > 0 && self.wait().is_err() {
                // The kernel may write to buffers that are about to be given up, and there is no
                // way to find out when it is through.
                std::process::abort();
            }
        }
        if self.file.is_some() && self.manner.registered {
            // Refused only where nothing is registered.
            let _ = self.uring.submitter().unregister_files();
            let _ = self.uring.submitter().unregister_buffers();
            self.manner.registered = false;
        }
    }
}

impl Flight<'_> {
    /// Writes the entries for what is left of the operation, and tells how many.
    #[inline]
    fn push(&mut self, entries: &mut squeue::SubmissionQueue<'_>, manner: Manner) -> u32 {
        let op = self.op.as_mut().expect("an operation is put here before it is pushed");
        let slot = u64::from(op.slot);
        if manner.nop {
            self.expected = 0;
            put(entries, &opcode::Nop::new().build().user_data(slot));
            return 1;
        }
        let linked = manner.linked_sync && op.kind == Kind::Write;
        let offset = op.offset + u64::from(self.moved);
        let rest = &mut op.buffer[self.moved as usize..op.len];
        let len = rest.len().min(MOST);
        #[expect(clippy::cast_possible_truncation, reason = "less than 2^31")]
        let bytes = len as u32;
        // More than one entry can move is never done at once.
        self.expected = if len == rest.len() { bytes.cast_signed() } else { i32::MAX };
        let (address, buffer) = (rest.as_mut_ptr(), self.buffer);
        let (number, file) = (types::Fixed(0), types::Fd(manner.descriptor));
        let entry = match (op.kind, manner.registered) {
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
        let sync = match manner.registered {
            true => opcode::Fsync::new(number).flags(flags).build(),
            false => opcode::Fsync::new(file).flags(flags).build(),
        };
        put(entries, &sync.user_data(slot | LINKED_SYNC));
        2
    }

    /// Everything but the plain good answer.
    #[cold]
    fn judge(&mut self, data: u64, answer: i32, manner: Manner) -> Verdict {
        if data & (LINKED_WRITE | LINKED_SYNC) != 0 {
            self.awaited -= 1;
            if self.awaited > 0 {
                self.other = answer;
                return Verdict::Pending;
            }
            let (written, synced) = match data & LINKED_WRITE {
                0 => (self.other, answer),
                _ => (answer, self.other),
            };
            // A write that fails or falls short cancels its sync, so its answer comes first.
            if written != self.expected {
                return self.transferred(written, manner);
            }
            if synced >= 0 {
                return Verdict::Over(Ok(()));
            }
            return match Errno::from_raw_os_error(-synced) {
                errno if again(errno) => Verdict::Again,
                errno => self.fault(Operation::Flush, Cause::Os(errno)),
            };
        }
        self.transferred(answer, manner)
    }

    fn transferred(&mut self, answer: i32, manner: Manner) -> Verdict {
        let op = self.op.as_ref().expect("a completion is of an operation in flight");
        let (operation, len) = (op.kind.operation(), op.len);
        match u32::try_from(answer) {
            Ok(0) => self.fault(operation, Cause::Nothing),
            Ok(bytes) => {
                self.moved += bytes;
                let moved = self.moved as usize;
                assert!(moved <= len, "the kernel moved more than it was asked for");
                if moved == len { Verdict::Over(Ok(())) } else { Verdict::Again }
            }
            Err(_) => match Errno::from_raw_os_error(-answer) {
                errno if again(errno) => Verdict::Again,
                errno @ Errno::OPNOTSUPP if manner.iopoll => {
                    self.fault(Operation::Poll, Cause::Os(errno))
                }
                errno => self.fault(operation, Cause::Os(errno)),
            },
        }
    }

    fn fault(&self, operation: Operation, cause: Cause) -> Verdict {
        Verdict::Over(Err(IoFault { operation, moved: u64::from(self.moved), cause }))
    }
}

/// Writes one entry.
#[inline]
fn put(entries: &mut squeue::SubmissionQueue<'_>, entry: &squeue::Entry) {
    // SAFETY: the buffer of the entry belongs to an operation that stays in the table, unmoved and
    // untouched, until its completion has come: nothing else takes it out, and `Drop` waits for
    // all. The worker never leaks an engine. The file is closed after that, too.
    let answer = unsafe { entries.push(entry) };
    answer.expect("the queue has room for every entry of every operation, see setup::entries");
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
        for slot in self.fresh.drain(..) {
            self.queued += self.flights[slot as usize].push(&mut entries, self.manner);
        }
        // The thread looks at the queue once more after it has asked to be woken, so the entries
        // must be there before the question.
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
        if !self.look() {
            match wait {
                Wait::No => {}
                Wait::One => self.wait()?,
                Wait::Until(instant) => self.wait_until(instant)?,
            }
        }
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
                match flight.judge(data, answer, self.manner) {
                    Verdict::Over(result) => result,
                    Verdict::Pending => continue,
                    Verdict::Again => {
                        self.queued += flight.push(&mut self.uring.submission(), self.manner);
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

    fn flush(&mut self, call: FlushCall, range: (u64, u64)) -> Result<(), Fault> {
        self.file.as_ref().map_or(Ok(()), |file| sync::flush(file.as_fd(), call, range))
    }

    fn close(mut self) -> Result<(), Fault> {
        self.settle();
        self.file.take().map_or(Ok(()), sync::close)
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}

#[cfg(test)]
mod tests;
