//! The loop: issues the operations of one worker and times each of them.
//!
//! Compiled once for each I/O engine; order, payload, and pace are values whose branches go the
//! same way every time. In it there is no allocation, lock, log, floating point, or division.
//!
//! # Time of an operation
//!
//! A synchronous engine needs one clock read for each operation: the instant at which one ends is
//! the instant at which the worker turns to the next. A service time therefore includes what the
//! generator does between two operations (header, place, histogram of the one before);
//! [`crate::ceiling`] tells how much that is.
//!
//! A queue has two instants for each batch: when the kernel had taken it, and when completions were
//! seen. Operations of a batch count from the instant the worker turned to the batch. Completions
//! that are there as soon as the kernel has taken the batch are given that instant, without another
//! look at the clock.
//!
//! With an open loop ([`crate::pace`]) an operation counts from the instant it was due.
//!
//! # Borders
//!
//! Whatever depends on time (the end of the loop, the next interval of the series) is one
//! comparison with the earliest of these instants; what follows is done out of line.
//!
//! # The stonewall
//!
//! When the signal says stop, the operation that has just ended does not count any more, and the
//! counted time ends with it: a rate may come out a little low, never too high. What is still
//! written then is told as uncounted. At the end of a time, on the other hand, operations in
//! progress are waited for and count, with their time: a stall at the end is not cut off. An open
//! loop also does what was due before the end and had to wait, for no longer than the time again.

use std::sync::atomic::Ordering::Relaxed;

use model::{
    Bytes, Histogram, Nanos,
    phase::{Bound, FlushCall, Latencies, Moved, Series, Stream},
};

use crate::{
    barrier::{ABORT, STOP},
    buffer::{Class, Slots},
    clock::{now, sleep_until},
    error::Fault,
    io::{Completion, IoEngine, Kind, Op, Purpose, Submitted, Wait},
    patterns::{Order, Visit},
    series::Recorder,
};

mod flusher;
mod given;
mod queue;

use flusher::Flusher;
pub(crate) use given::{Manner, Surroundings, Tally};

/// An instant that never comes.
const NEVER: Nanos = Nanos(u64::MAX);

/// The longest sleep between two looks at the signal word.
const NAP: Nanos = Nanos(50_000_000);

/// Operations of one kind that have the same times.
#[derive(Clone, Copy)]
struct Run {
    kind: Kind,
    ops: u64,
    bytes: u64,
    // From where their latency counts.
    begun: Nanos,
    issued: Nanos,
}

/// A loop, prepared: everything it needs is allocated in [`Drive::new`].
pub(crate) struct Drive<'b, 'p> {
    around: Surroundings<'b>,
    slots: Slots<'p>,
    manner: Manner,
    flusher: Option<Flusher>,
    recorder: Recorder,
    bound: Bound,
    // The last instant read; the next operation begins here.
    clock: Nanos,
    // The next instant at which something is to be done.
    border: Nanos,
    series_border: Nanos,
    ramp_end: Nanos,
    deadline: Nanos,
    // Of an open loop whose time is up: the end of the time. Else never.
    due_before: Nanos,
    counting: bool,
    // Nothing more is to be submitted.
    over: bool,
    moved: u64,
    done: u64,
    generation: u64,
    tally: Tally,
}

impl<'b, 'p> Drive<'b, 'p> {
    /// Prepares the loop of a worker over `slots`; `queues` for an engine that has a queue.
    pub(crate) fn new(
        stream: &Stream,
        purpose: Purpose,
        around: Surroundings<'b>,
        slots: Slots<'p>,
        manner: Manner,
        queues: bool,
    ) -> Self {
        let wanted = |wanted: bool| if wanted { Histogram::new() } else { Histogram::default() };
        let latencies = Latencies {
            read: wanted(purpose.reads()),
            write: wanted(purpose.writes()),
            service: wanted(manner.pacer.open()),
            submit: wanted(queues),
            complete: wanted(queues),
            flush: wanted(stream.flush_every.is_some()),
            by_kind: Vec::new(),
        };
        let tally = Tally {
            started: Nanos(0),
            counted_until: Nanos(0),
            ended: Nanos(0),
            read: Moved::default(),
            written: Moved::default(),
            uncounted: Bytes(0),
            latencies,
            series: Series::default(),
            complete: true,
        };
        let generation = manner.generation;
        let flushes = stream.flush_every.filter(|_| purpose.writes());
        Self {
            around,
            slots,
            manner,
            flusher: flushes.map(Flusher::new),
            recorder: Recorder::new(),
            bound: stream.bound,
            clock: Nanos(0),
            border: NEVER,
            series_border: NEVER,
            ramp_end: NEVER,
            deadline: NEVER,
            due_before: NEVER,
            counting: true,
            over: false,
            moved: 0,
            done: 0,
            generation,
            tally,
        }
    }

    /// Reads the first `len` bytes once, outside of any time or count.
    pub(crate) fn prime<E: IoEngine<'p>>(
        &mut self,
        engine: &mut E,
        len: usize,
    ) -> Result<(), Fault> {
        let taken = self.slots.take(Class::Read);
        let (slot, buffer) = taken.expect("nothing is in flight before the loop");
        let completion = match engine.submit(Op { kind: Kind::Read, offset: 0, len, slot, buffer })
        {
            Submitted::Done(completion) => completion,
            Submitted::Queued => loop {
                engine.reap(Wait::One).map_err(|fault| fault.at(0))?;
                if let Some(completion) = engine.next() {
                    break completion;
                }
            },
            Submitted::Full(_) => unreachable!("an engine with nothing in flight has room"),
        };
        let Completion { op, result } = completion;
        self.slots.give(op.slot, op.buffer);
        result.map_err(|fault| fault.at(0))
    }

    /// The timed loop: all of `order`, from the instant of this call on.
    ///
    /// # Errors
    /// The first [`Fault`]; the engine may still hold operations then, and is to be dropped.
    pub(crate) fn run<E>(mut self, engine: &mut E, mut order: Order<'_>) -> Result<Tally, Fault>
    where
        E: IoEngine<'p>,
    {
        let queue = E::QUEUES.then(|| queue::Queue::new(self.slots.len()));
        self.start();
        match queue {
            None => self.one_by_one(engine, &mut order)?,
            Some(queue) => self.queued(queue, engine, &mut order)?,
        }
        self.tally.ended = self.clock;
        if self.tally.complete {
            self.tally.counted_until = self.clock;
        }
        let (ops, bytes) = self.totals();
        self.tally.series = self.recorder.finish(ops, bytes);
        Ok(self.tally)
    }

    fn start(&mut self) {
        self.clock = now();
        let (worker, workers) = self.manner.worker;
        self.manner.pacer.start(self.clock, worker, workers);
        self.tally.started = self.clock;
        if let Bound::Time { ramp, run } = self.bound {
            self.deadline = self.clock + ramp + run;
            if ramp > Nanos(0) {
                self.ramp_end = self.clock + ramp;
                self.counting = false;
            }
        }
        if self.counting {
            self.series_border = self.recorder.start(self.clock);
        }
        self.set_border();
    }

    fn set_border(&mut self) {
        self.border = self.series_border.min(self.ramp_end).min(self.deadline);
    }

    /// The loop of a synchronous engine.
    fn one_by_one<E>(&mut self, engine: &mut E, order: &mut Order<'_>) -> Result<(), Fault>
    where
        E: IoEngine<'p>,
    {
        while !self.over {
            let Some(visit) = order.next() else { break };
            let mut begun = self.clock;
            let due = self.manner.pacer.due(self.clock, visit.len);
            if due != self.clock {
                if self.too_late(due) {
                    break;
                }
                if due > self.clock && !self.wait(due)? {
                    break;
                }
                begun = if self.manner.pacer.open() { due } else { self.clock };
            }
            let issued = self.clock;
            let op = self.prepare(visit).expect("one slot of each class is enough for one");
            match engine.submit(op) {
                Submitted::Done(completion) => {
                    self.clock = now();
                    self.look()?;
                    let (kind, bytes) = self.settle(completion)?;
                    self.count(Run { kind, ops: 1, bytes, begun, issued });
                    self.publish();
                    self.ramp();
                }
                Submitted::Queued | Submitted::Full(_) => {
                    unreachable!("a synchronous engine is done when it returns")
                }
            }
            self.flush_if_due(engine)?;
        }
        Ok(())
    }

    /// Sleeps until an instant, unless the loop is to end before; then `false`.
    #[cold]
    fn wait(&mut self, due: Nanos) -> Result<bool, Fault> {
        while self.clock < due {
            self.clock = sleep_until(due.min(self.clock + NAP).min(self.border));
            self.look()?;
            self.ramp();
            if self.over || self.too_late(due) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The operation for a visit, ready to submit; `None` while all slots of its class are in
    /// flight.
    #[inline(always)]
    fn prepare(&mut self, visit: Visit) -> Option<Op<'p>> {
        let Visit { offset, len, kind } = visit;
        let (slot, buffer) = match kind {
            Kind::Read => self.slots.take(Class::Read)?,
            Kind::Write => {
                let taken = self.take_to_write(visit)?;
                self.generation += 1;
                if let Some(flusher) = &mut self.flusher {
                    flusher.wrote(visit);
                }
                taken
            }
        };
        Some(Op { kind, offset, len, slot, buffer })
    }

    #[inline(always)]
    fn take_to_write(&mut self, visit: Visit) -> Option<(u32, &'p mut [u8])> {
        let Some(stamp) = &mut self.manner.stamp else { return self.slots.take(Class::Write) };
        if stamp.duplicate(visit.offset) {
            return self.slots.take(Class::Duplicate);
        }
        let (slot, buffer) = self.slots.take(Class::Write)?;
        stamp.put(slot, visit.offset, self.generation + 1, &mut buffer[..visit.len]);
        Some((slot, buffer))
    }

    /// Looks around after the clock was read: signals and borders.
    #[inline(always)]
    fn look(&mut self) -> Result<(), Fault> {
        if self.around.signal.load(Relaxed) != 0 {
            self.signaled()?;
        }
        if self.clock >= self.border {
            self.cross();
        }
        Ok(())
    }

    /// One operation is over: judges it and puts its slot back.
    #[inline(always)]
    fn settle(&mut self, completion: Completion<'p>) -> Result<(Kind, u64), Fault> {
        let Completion { mut op, result } = completion;
        if let Err(fault) = result {
            return Err(fault.at(op.offset));
        }
        if let (Some(check), Kind::Read) = (&self.manner.check, op.kind) {
            check.judge(op.offset, op.bytes())?;
        }
        self.slots.give(op.slot, op.buffer);
        Ok((op.kind, op.len as u64))
    }

    /// Counts operations that are over.
    #[inline(always)]
    fn count(&mut self, run: Run) {
        let Run { kind, ops, bytes, begun, issued } = run;
        self.moved += bytes;
        self.done += ops;
        if !self.counting {
            if kind == Kind::Write && !self.tally.complete {
                self.tally.uncounted.0 += bytes;
            }
            return;
        }
        let latencies = &mut self.tally.latencies;
        let (moved, latency) = match kind {
            Kind::Read => (&mut self.tally.read, &mut latencies.read),
            Kind::Write => (&mut self.tally.written, &mut latencies.write),
        };
        moved.ops.0 += ops;
        moved.bytes.0 += bytes;
        latency.record_n(self.clock.0 - begun.0, ops);
        if self.manner.pacer.open() {
            latencies.service.record_n(self.clock.0 - issued.0, ops);
        }
    }

    /// Tells the others how far this worker is.
    #[inline(always)]
    fn publish(&self) {
        self.around.moved.store(self.moved, Relaxed);
        self.around.done.store(self.done, Relaxed);
    }

    /// A flush inside the loop, when enough was written; nothing is in flight.
    #[inline(always)]
    fn flush_if_due<E: IoEngine<'p>>(&mut self, engine: &mut E) -> Result<(), Fault> {
        match &self.flusher {
            Some(flusher) if flusher.due() => self.flush(engine),
            _ => Ok(()),
        }
    }

    fn flush<E: IoEngine<'p>>(&mut self, engine: &mut E) -> Result<(), Fault> {
        let Some(flusher) = &mut self.flusher else { return Ok(()) };
        let (call, range) = flusher.restart();
        let before = self.clock;
        engine.flush(call, range)?;
        self.clock = now();
        if call != FlushCall::Range {
            self.around.durable.store(self.done, Relaxed);
        }
        if self.counting {
            self.tally.latencies.flush.record(self.clock.0 - before.0);
        }
        if let Some(board) = self.around.board {
            board.persist()?;
            self.clock = now();
        }
        self.look()
    }

    fn totals(&self) -> (u64, u64) {
        let Tally { read, written, .. } = &self.tally;
        (read.ops.0 + written.ops.0, read.bytes.0 + written.bytes.0)
    }

    #[cold]
    fn cross(&mut self) {
        while self.clock >= self.deadline {
            self.meet_deadline();
        }
        if self.clock >= self.series_border {
            let (ops, bytes) = self.totals();
            self.series_border = match self.counting {
                true => self.recorder.roll(self.clock, ops, bytes),
                false => NEVER,
            };
        }
        self.set_border();
    }

    /// The ramp-up may be over: counting begins with what ends after this instant. To be called
    /// when everything that ended by now was settled.
    #[inline(always)]
    fn ramp(&mut self) {
        if self.clock >= self.ramp_end {
            self.begin_counting();
        }
    }

    /// The time is up. An open loop goes on with the operations that were due before and had to
    /// wait, or those that suffer most would be left out; but no longer than the whole time again.
    fn meet_deadline(&mut self) {
        match (self.bound, self.due_before) {
            (Bound::Time { run, .. }, NEVER) if self.manner.pacer.open() => {
                self.due_before = self.deadline;
                self.deadline = self.deadline + run;
            }
            _ => {
                self.deadline = NEVER;
                self.over = true;
            }
        }
    }

    /// Whether an operation is due after the time is up.
    #[inline]
    fn too_late(&self, due: Nanos) -> bool {
        due >= self.due_before
    }

    #[cold]
    fn begin_counting(&mut self) {
        self.ramp_end = NEVER;
        self.counting = true;
        self.tally.started = self.clock;
        self.series_border = self.recorder.start(self.clock);
        self.set_border();
    }

    #[cold]
    fn signaled(&mut self) -> Result<(), Fault> {
        let signal = self.around.signal.load(Relaxed);
        if signal & ABORT != 0 {
            return Err(Fault::Aborted);
        }
        assert_eq!(signal, STOP, "the signal word has two bits");
        if self.tally.complete {
            self.counting = false;
            self.tally.complete = false;
            self.tally.counted_until = self.clock;
            if self.ramp_end != NEVER {
                // Nothing was counted yet.
                self.ramp_end = NEVER;
                self.tally.started = self.clock;
            }
        }
        // Never back to false: the loop may be over for another reason.
        self.over |= !self.around.finish;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
