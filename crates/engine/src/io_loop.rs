//! I/O loop: issues the operations of one worker and times each of them.
//!
//! The loop is compiled once per I/O engine. Access pattern, payload, and pace are values whose
//! branches are predictable. Inside the loop there is no allocation, lock, logging, floating-point
//! arithmetic, or division.
//!
//! # Time of an operation
//!
//! A synchronous engine needs one clock read per operation: the end of one operation is the start
//! of the next. A service time therefore includes the work of the load generator between two
//! operations (header, offset, histogram of the previous one), which [`crate::generator_limit`]
//! measures.
//!
//! A queue has two instants per batch: when the kernel had accepted it, and when completions were
//! read. Operations of a batch count from the start of the batch. Completions that are available as
//! soon as the kernel has accepted the batch get that instant without another clock read.
//!
//! In an open loop ([`crate::pace`]), an operation counts from its scheduled start.
//!
//! # Borders
//!
//! All events that depend on time (end of the loop, next interval of the series) are detected by
//! one comparison with the earliest of their instants and handled out of line.
//!
//! # Stonewall
//!
//! After a stop signal, the operation that has just ended does not count, and the counted time ends
//! with it: a rate may be slightly too low, but not too high. Later writes are reported as
//! uncounted. At the end of a time limit, operations in flight are awaited and count with their
//! time, so a stall at the end is included. An open loop also runs the operations that were
//! scheduled before the end and had to wait, for at most the time limit again.

use std::sync::atomic::Ordering::Relaxed;

use model::{
    Bytes, Histogram, Nanos,
    phase::{Bound, Latencies, Moved, Series, Stream, SyncCall},
};

use crate::{
    barrier::{ABORT, STOP},
    buffer::{Class, Slots},
    clock::{now, sleep_until},
    error::Fault,
    io::{AccessMode, Completion, IoEngine, Kind, Op, Submitted, Wait},
    patterns::{Order, PlannedOp},
    series::Recorder,
};

mod config;
mod queue;
mod sync_schedule;

pub(crate) use config::{LoopConfig, LoopResult, LoopShared};
use sync_schedule::SyncSchedule;

/// Instant that is never reached.
const NEVER: Nanos = Nanos(u64::MAX);

/// Longest sleep between two reads of the signal word.
const NAP: Nanos = Nanos(50_000_000);

/// Operations of one kind with the same times.
#[derive(Clone, Copy)]
struct Run {
    kind: Kind,
    ops: u64,
    bytes: u64,
    // Start of their latency.
    begun: Nanos,
    issued: Nanos,
}

/// Prepared loop. Everything it needs is allocated in [`IoLoop::new`].
pub(crate) struct IoLoop<'b, 'p> {
    shared: LoopShared<'b>,
    slots: Slots<'p>,
    config: LoopConfig,
    sync_schedule: Option<SyncSchedule>,
    recorder: Recorder,
    bound: Bound,
    // Last instant read, at which the next operation starts.
    clock: Nanos,
    // Earliest instant at which an event is due.
    border: Nanos,
    series_border: Nanos,
    ramp_end: Nanos,
    deadline: Nanos,
    // End of the time limit of an open loop that has passed it, otherwise never.
    due_before: Nanos,
    counting: bool,
    // No more operations are submitted.
    over: bool,
    moved: u64,
    done: u64,
    generation: u64,
    result: LoopResult,
}

impl<'b, 'p> IoLoop<'b, 'p> {
    /// Prepares the loop of a worker over `slots`; `queues` for an engine with a queue.
    pub(crate) fn new(
        stream: &Stream,
        mode: AccessMode,
        shared: LoopShared<'b>,
        slots: Slots<'p>,
        config: LoopConfig,
        queues: bool,
    ) -> Self {
        let wanted = |wanted: bool| if wanted { Histogram::new() } else { Histogram::default() };
        let latencies = Latencies {
            read: wanted(mode.reads()),
            write: wanted(mode.writes()),
            service: wanted(config.pacer.open()),
            submit: wanted(queues),
            complete: wanted(queues),
            flush: wanted(stream.sync_every.is_some()),
            by_kind: Vec::new(),
        };
        let result = LoopResult {
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
        let generation = config.generation;
        let syncs = stream.sync_every.filter(|_| mode.writes());
        Self {
            shared,
            slots,
            config,
            sync_schedule: syncs.map(SyncSchedule::new),
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
            result,
        }
    }

    /// Reads the first `len` bytes once, neither timed nor counted.
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
            Submitted::Full(_) => unreachable!("an idle engine accepts an operation"),
        };
        let Completion { op, result } = completion;
        self.slots.give(op.slot, op.buffer);
        result.map_err(|fault| fault.at(0))
    }

    /// Runs all of `order`, timed from the start of this call.
    ///
    /// # Errors
    /// The first [`Fault`]. The engine may still hold operations and must be dropped.
    pub(crate) fn run<E>(
        mut self,
        engine: &mut E,
        mut order: Order<'_>,
    ) -> Result<LoopResult, Fault>
    where
        E: IoEngine<'p>,
    {
        let queue = E::QUEUES.then(|| queue::Queue::new(self.slots.len()));
        self.start();
        match queue {
            None => self.one_by_one(engine, &mut order)?,
            Some(queue) => self.queued(queue, engine, &mut order)?,
        }
        self.result.ended = self.clock;
        if self.result.complete {
            self.result.counted_until = self.clock;
        }
        let (ops, bytes) = self.totals();
        self.result.series = self.recorder.finish(ops, bytes);
        Ok(self.result)
    }

    fn start(&mut self) {
        self.clock = now();
        let (worker, workers) = self.config.worker;
        self.config.pacer.start(self.clock, worker, workers);
        self.result.started = self.clock;
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

    /// Loop of a synchronous engine.
    fn one_by_one<E>(&mut self, engine: &mut E, order: &mut Order<'_>) -> Result<(), Fault>
    where
        E: IoEngine<'p>,
    {
        while !self.over {
            let Some(planned) = order.next() else { break };
            let mut begun = self.clock;
            let due = self.config.pacer.due(self.clock, planned.len);
            if due != self.clock {
                if self.after_time_limit(due) {
                    break;
                }
                if due > self.clock && !self.wait(due)? {
                    break;
                }
                begun = if self.config.pacer.open() { due } else { self.clock };
            }
            let issued = self.clock;
            let op = self.prepare(planned).expect("one slot of each class is enough for one");
            match engine.submit(op) {
                Submitted::Done(completion) => {
                    self.clock = now();
                    self.poll()?;
                    let (kind, bytes) = self.drain(completion)?;
                    self.count(Run { kind, ops: 1, bytes, begun, issued });
                    self.publish();
                    self.ramp();
                }
                Submitted::Queued | Submitted::Full(_) => {
                    unreachable!("a synchronous engine completes before it returns")
                }
            }
            self.sync_if_due(engine)?;
        }
        Ok(())
    }

    /// Sleeps until an instant. Returns `false` if the loop ends earlier.
    #[cold]
    fn wait(&mut self, due: Nanos) -> Result<bool, Fault> {
        while self.clock < due {
            self.clock = sleep_until(due.min(self.clock + NAP).min(self.border));
            self.poll()?;
            self.ramp();
            if self.over || self.after_time_limit(due) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Operation for a planned operation, ready to submit; `None` while all slots of its class are
    /// in flight.
    #[inline(always)]
    fn prepare(&mut self, planned: PlannedOp) -> Option<Op<'p>> {
        let PlannedOp { offset, len, kind } = planned;
        let (slot, buffer) = match kind {
            Kind::Read => self.slots.take(Class::Read)?,
            Kind::Write => {
                let taken = self.take_to_write(planned)?;
                self.generation += 1;
                if let Some(sync_schedule) = &mut self.sync_schedule {
                    sync_schedule.wrote(planned);
                }
                taken
            }
        };
        Some(Op { kind, offset, len, slot, buffer })
    }

    #[inline(always)]
    fn take_to_write(&mut self, planned: PlannedOp) -> Option<(u32, &'p mut [u8])> {
        let Some(writer) = &mut self.config.writer else { return self.slots.take(Class::Write) };
        if writer.duplicate(planned.offset) {
            return self.slots.take(Class::Duplicate);
        }
        let (slot, buffer) = self.slots.take(Class::Write)?;
        writer.put(slot, planned.offset, self.generation + 1, &mut buffer[..planned.len]);
        Some((slot, buffer))
    }

    /// Handles signals and borders after a clock read.
    #[inline(always)]
    fn poll(&mut self) -> Result<(), Fault> {
        if self.shared.signal.load(Relaxed) != 0 {
            self.signaled()?;
        }
        if self.clock >= self.border {
            self.cross();
        }
        Ok(())
    }

    /// Verifies a completed operation and returns its slot.
    #[inline(always)]
    fn drain(&mut self, completion: Completion<'p>) -> Result<(Kind, u64), Fault> {
        let Completion { mut op, result } = completion;
        if let Err(fault) = result {
            return Err(fault.at(op.offset));
        }
        if let (Some(verifier), Kind::Read) = (&self.config.verifier, op.kind) {
            verifier.verify(op.offset, op.bytes())?;
        }
        self.slots.give(op.slot, op.buffer);
        Ok((op.kind, op.len as u64))
    }

    /// Counts completed operations.
    #[inline(always)]
    fn count(&mut self, run: Run) {
        let Run { kind, ops, bytes, begun, issued } = run;
        self.moved += bytes;
        self.done += ops;
        if !self.counting {
            if kind == Kind::Write && !self.result.complete {
                self.result.uncounted.0 += bytes;
            }
            return;
        }
        let latencies = &mut self.result.latencies;
        let (moved, latency) = match kind {
            Kind::Read => (&mut self.result.read, &mut latencies.read),
            Kind::Write => (&mut self.result.written, &mut latencies.write),
        };
        moved.ops.0 += ops;
        moved.bytes.0 += bytes;
        latency.record_n(self.clock.0 - begun.0, ops);
        if self.config.pacer.open() {
            latencies.service.record_n(self.clock.0 - issued.0, ops);
        }
    }

    /// Publishes the progress of this worker.
    #[inline(always)]
    fn publish(&self) {
        self.shared.moved.store(self.moved, Relaxed);
        self.shared.done.store(self.done, Relaxed);
    }

    /// Syncs inside the loop when enough was written; nothing is in flight.
    #[inline(always)]
    fn sync_if_due<E: IoEngine<'p>>(&mut self, engine: &mut E) -> Result<(), Fault> {
        match &self.sync_schedule {
            Some(sync_schedule) if sync_schedule.due() => self.sync_now(engine),
            _ => Ok(()),
        }
    }

    fn sync_now<E: IoEngine<'p>>(&mut self, engine: &mut E) -> Result<(), Fault> {
        let Some(sync_schedule) = &mut self.sync_schedule else { return Ok(()) };
        let (call, range) = sync_schedule.restart();
        let before = self.clock;
        engine.make_durable(call, range)?;
        self.clock = now();
        if call != SyncCall::Range {
            self.shared.durable.store(self.done, Relaxed);
        }
        if self.counting {
            self.result.latencies.flush.record(self.clock.0 - before.0);
        }
        if let Some(control) = self.shared.control {
            control.persist()?;
            self.clock = now();
        }
        self.poll()
    }

    fn totals(&self) -> (u64, u64) {
        let LoopResult { read, written, .. } = &self.result;
        (read.ops.0 + written.ops.0, read.bytes.0 + written.bytes.0)
    }

    #[cold]
    fn cross(&mut self) {
        while self.clock >= self.deadline {
            self.handle_time_limit();
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

    /// Starts counting if the ramp time has elapsed, with operations that end after this instant.
    /// Call it when all operations that ended before are counted.
    #[inline(always)]
    fn ramp(&mut self) {
        if self.clock >= self.ramp_end {
            self.begin_counting();
        }
    }

    /// Handles the end of the time limit. An open loop continues with operations that were
    /// scheduled before it and had to wait, because these have the longest latency, but for at most
    /// the time limit again.
    fn handle_time_limit(&mut self) {
        match (self.bound, self.due_before) {
            (Bound::Time { run, .. }, NEVER) if self.config.pacer.open() => {
                self.due_before = self.deadline;
                self.deadline = self.deadline + run;
            }
            _ => {
                self.deadline = NEVER;
                self.over = true;
            }
        }
    }

    /// True if an operation is scheduled after the end of the time limit.
    #[inline]
    fn after_time_limit(&self, due: Nanos) -> bool {
        due >= self.due_before
    }

    #[cold]
    fn begin_counting(&mut self) {
        self.ramp_end = NEVER;
        self.counting = true;
        self.result.started = self.clock;
        self.series_border = self.recorder.start(self.clock);
        self.set_border();
    }

    #[cold]
    fn signaled(&mut self) -> Result<(), Fault> {
        let signal = self.shared.signal.load(Relaxed);
        if signal & ABORT != 0 {
            return Err(Fault::Aborted);
        }
        assert_eq!(signal, STOP, "the signal word has two bits");
        if self.result.complete {
            self.counting = false;
            self.result.complete = false;
            self.result.counted_until = self.clock;
            if self.ramp_end != NEVER {
                // Nothing was counted.
                self.ramp_end = NEVER;
                self.result.started = self.clock;
            }
        }
        // Never reset to false: the loop may end for another reason.
        self.over |= !self.shared.finish;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
