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
//! operations, such as the header and the offset of the next block. [`crate::generator_limit`]
//! measures this work.
//!
//! With a queue, the clock is read twice per batch: when the kernel has accepted the batch, and
//! when completions are read. The latency of all operations of a batch begins at the start of the
//! batch. Completions that are available as soon as the kernel has accepted the batch get the
//! instant of the acceptance, without another clock read.
//!
//! In an open loop ([`crate::pace`]), the latency of an operation begins at its scheduled start.
//!
//! The end of the loop and of counting is decided by the counter ([`crate::counter`]).

use model::{
    Histogram, Nanos,
    phase::{Bound, Latencies, Stonewall, Stream},
};

use crate::{
    buffer::{Class, Slots},
    clock::now,
    counter::{Counter, Limits},
    error::Fault,
    io::{AccessMode, Completion, IoEngine, Kind, Op, PassPoint, Submitted, Wait},
    operation_log::{OperationLog, Times},
    patterns::{Order, PlannedOp},
};

mod config;
mod queue;
mod sync_schedule;

pub(crate) use config::{LoopConfig, Observer};
pub(crate) use queue::Queue;
use sync_schedule::SyncSchedule;

/// Operations of one kind with the same times.
#[derive(Clone, Copy)]
struct Run {
    kind: Kind,
    ops: u64,
    bytes: u64,
    // Start of their latency: in an open loop, the scheduled start.
    begun: Nanos,
    issued: Nanos,
}

/// Prepared loop. Everything it needs is allocated in [`IoLoop::new`].
pub(crate) struct IoLoop<'p> {
    slots: Slots<'p>,
    config: LoopConfig,
    sync_schedule: Option<SyncSchedule>,
    generation: u64,
    // True without syncs in the loop, calls at the start of a pass, and a flow. One test of this
    // value is faster than the tests of its parts.
    plain: bool,
}

/// Limits of the loop of a worker. Only writers continue after a stop, because later phases need
/// their files.
pub(crate) fn limits(stream: &Stream, mode: AccessMode, open: bool) -> Limits {
    Limits {
        time: match stream.bound {
            Bound::Time { ramp, run } => Some((ramp, run)),
            Bound::Amount(amount) => amount.time.map(|limit| (limit.ramp, limit.run)),
            Bound::Deadline(time) => Some((Nanos(0), time)),
            Bound::Once | Bound::Ops(_) | Bound::Together(_) => None,
        },
        continues: matches!(stream.bound, Bound::Deadline(_)),
        open,
        finish: stream.workers.stonewall == Stonewall::Finish && mode == AccessMode::Write,
        ticks: false,
        minimum_rate: stream.minimum_rate,
        both: open && mode.reads() && mode.writes(),
    }
}

/// Histograms of a worker; `queues` is true for an engine with a queue.
pub(crate) fn latencies(stream: &Stream, mode: AccessMode, open: bool, queues: bool) -> Latencies {
    let wanted = |wanted: bool| if wanted { Histogram::new() } else { Histogram::default() };
    Latencies {
        read: wanted(mode.reads()),
        write: wanted(mode.writes()),
        service: wanted(open),
        service_read: wanted(open && mode.reads() && mode.writes()),
        service_write: wanted(open && mode.reads() && mode.writes()),
        submit: wanted(queues),
        complete: wanted(queues),
        flush: wanted(stream.sync_every.is_some()),
        by_kind: Vec::new(),
        by_call: Vec::new(),
    }
}

impl<'p> IoLoop<'p> {
    /// Prepares the loop of a worker over `slots`.
    pub(crate) fn new(
        stream: &Stream,
        mode: AccessMode,
        slots: Slots<'p>,
        config: LoopConfig,
    ) -> Self {
        let syncs = stream.sync_every.filter(|_| mode.writes());
        let plain = syncs.is_none() && config.pass.is_none() && config.flow.is_none();
        let generation = config.generation;
        Self { slots, config, sync_schedule: syncs.map(SyncSchedule::new), generation, plain }
    }

    /// Number of operations that can be in flight.
    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
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
                engine.reap(Wait::Some).map_err(|fault| fault.at(0))?;
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

    /// Reads the clock and starts the schedule.
    pub(crate) fn start(&mut self) -> Nanos {
        let clock = now();
        if let Some(log) = self.config.observer.as_mut().and_then(|own| own.log.as_mut()) {
            log.start(clock);
        }
        let (worker, workers) = self.config.worker;
        self.config.pacer.start(clock, worker, workers);
        clock
    }

    /// Runs the next operation of a synchronous engine. Returns false after the last one.
    ///
    /// # Errors
    /// The first [`Fault`]. The engine may still hold operations and must be dropped.
    #[inline(always)]
    pub(crate) fn one<E: IoEngine<'p>>(
        &mut self,
        counter: &mut Counter<'_>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> Result<bool, Fault> {
        if counter.over {
            return Ok(false);
        }
        let Some(planned) = order.next() else { return Ok(false) };
        if !self.plain && !self.before_next(counter, engine, order)? {
            return Ok(false);
        }
        let mut begun = counter.clock;
        let due = self.due(counter, planned);
        if due != counter.clock {
            if counter.after_time_limit(due) {
                return Ok(false);
            }
            if due > counter.clock && !self.wait(counter, due)? {
                return Ok(false);
            }
            begun = if self.config.pacer.open() { due } else { counter.clock };
        }
        let issued = counter.clock;
        let op = self.prepare(planned).expect("one slot of each class is enough for one");
        match engine.submit(op) {
            Submitted::Done(completion) => {
                counter.at(now())?;
                let (ended, counts) = (counter.clock, counter.counting);
                let times = Times { issued, accepted: issued, ended, counts };
                let (kind, bytes) = self.drain(completion, times)?;
                self.count(counter, Run { kind, ops: 1, bytes, begun, issued });
                counter.publish();
                counter.ramp();
            }
            Submitted::Queued | Submitted::Full(_) => {
                unreachable!("a synchronous engine completes before it returns")
            }
        }
        if !self.plain && !self.syncs_before_next() {
            self.sync_if_due(counter, engine, order)?;
        }
        Ok(true)
    }

    /// Scheduled start of an operation, or the end of a pause before it.
    #[inline(always)]
    fn due(&mut self, counter: &Counter<'_>, planned: PlannedOp) -> Nanos {
        self.config.pacer.due(counter.clock, planned.len, planned.kind, counter.done())
    }

    /// Waits for the scheduled start of an operation, or pauses. Returns `false` if the loop ends
    /// earlier.
    #[cold]
    fn wait(&mut self, counter: &mut Counter<'_>, due: Nanos) -> Result<bool, Fault> {
        if let Some((pause, spin)) = self.config.pacer.pause() {
            let begun = counter.clock;
            self.config.pacer.begin_pause(begun);
            return Ok(counter.spin(begun + spin)? && counter.wait(begun + pause)?);
        }
        counter.wait(due)
    }

    /// True if syncs are made before the next operation instead of after the last one.
    #[inline(always)]
    fn syncs_before_next(&self) -> bool {
        matches!(&self.sync_schedule, Some(schedule) if schedule.before_next())
    }

    /// Makes the calls before the next operation (a sync, and those of a new pass), and waits for
    /// its flow. Returns `false` if the loop ends earlier.
    #[inline(always)]
    fn before_next<E: IoEngine<'p>>(
        &mut self,
        counter: &mut Counter<'_>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> Result<bool, Fault> {
        if self.syncs_before_next() {
            self.sync_if_due(counter, engine, order)?;
        }
        if self.config.pass.is_some() && order.takes_calls() {
            self.begin_pass(counter, engine, order)?;
        }
        let Some(flow) = &mut self.config.flow else { return Ok(true) };
        let runs = flow.wait(counter)?;
        if runs {
            flow.take();
        }
        Ok(runs)
    }

    /// Makes the calls of a new pass, or those of a change of files. No operation is in flight.
    #[cold]
    fn begin_pass<E: IoEngine<'p>>(
        &mut self,
        counter: &mut Counter<'_>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> Result<(), Fault> {
        if let Some(calls) = &self.config.pass {
            if order.take_pass_start() {
                engine.begin_pass(calls, PassPoint::Next)?;
            }
            while let Some(change) = order.take_change() {
                engine.change_file(calls, change)?;
            }
            counter.clock = now();
        }
        Ok(())
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

    /// Leaves the flow after the last operation, so that no other worker waits for this one.
    pub(crate) fn leave_flow(&mut self) {
        self.config.flow = None;
    }

    /// Log of the operations, after the loop.
    pub(crate) fn take_log(&mut self) -> Option<Box<OperationLog>> {
        self.config.observer.as_mut()?.log.take()
    }

    /// Observes a completed operation and returns its slot.
    #[inline(always)]
    fn drain(&mut self, completion: Completion<'p>, times: Times) -> Result<(Kind, u64), Fault> {
        let Completion { mut op, result } = completion;
        if let Err(fault) = result {
            return Err(fault.at(op.offset));
        }
        if let Some(observer) = &mut self.config.observer {
            observer.completed(&mut op, times)?;
        }
        self.slots.give(op.slot, op.buffer);
        Ok((op.kind, op.len as u64))
    }

    /// Counts completed operations.
    #[inline(always)]
    fn count(&mut self, counter: &mut Counter<'_>, run: Run) {
        let Run { kind, ops, bytes, begun, issued } = run;
        if counter.count(kind, ops, bytes, begun) && self.config.pacer.open() {
            counter.count_service(kind, counter.clock.0 - issued.0, ops);
        }
    }

    /// Syncs inside the loop if the sync schedule requires it. No operation is in flight.
    #[inline(always)]
    fn sync_if_due<E: IoEngine<'p>>(
        &mut self,
        counter: &mut Counter<'_>,
        engine: &mut E,
        order: &Order<'_>,
    ) -> Result<(), Fault> {
        match &self.sync_schedule {
            Some(sync_schedule) if sync_schedule.due() => self.sync_now(counter, engine, order),
            _ => Ok(()),
        }
    }

    fn sync_now<E: IoEngine<'p>>(
        &mut self,
        counter: &mut Counter<'_>,
        engine: &mut E,
        order: &Order<'_>,
    ) -> Result<(), Fault> {
        let Some(sync_schedule) = &mut self.sync_schedule else { return Ok(()) };
        let (call, range) = sync_schedule.restart();
        let before = counter.clock;
        engine.make_durable(call, order.sync_range(range))?;
        counter.clock = now();
        if call.is_durable() {
            counter.publish_durable();
        }
        if counter.counting {
            let elapsed = counter.clock.0 - before.0;
            counter.latencies.flush.record(elapsed);
        }
        if counter.persist()? {
            counter.clock = now();
        }
        counter.poll()
    }
}

#[cfg(test)]
mod tests;
