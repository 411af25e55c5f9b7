//! Counter of a worker: operations and bytes, their times, and their distribution over time.
//!
//! Workers of all phases use a [`Counter`]. It takes clock readings and returns a [`WorkerResult`].
//! All memory is allocated on creation.
//!
//! # Borders
//!
//! A border is the earliest instant at which an event is due: the end of the ramp time or of the
//! loop, or the next interval of the series. One comparison with the border detects all of these
//! events. They are handled outside of the loop.
//!
//! # Stonewall
//!
//! With a stonewall, the first worker that finishes stops the counting in all workers. After this
//! stop signal, a worker does not count the operation that has just ended, but counts its time. A
//! rate may therefore be slightly too low, but not too high. Later writes are reported as
//! uncounted.
//!
//! # Time limit
//!
//! At the end of a time limit, the loop waits for operations in flight and counts them with their
//! time, so that a stall at the end is included. An open loop also runs delayed operations that
//! were scheduled before the end, for at most as long as the time limit.
//!
//! # Deadline
//!
//! A deadline ends the loop like a time limit. The worker then continues up to the largest number
//! of operations that any worker had completed by then ([`Counter::at_deadline`]).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use model::{
    Bytes, Nanos, Ops,
    phase::{AtDeadline, Latencies, MinimumRate, Moved, Ticked, WorkerResult},
};

use crate::{
    barrier::{ABORT, ControlBlock, STOP, WorkerSlot},
    clock::{Usage, now, sleep_until},
    error::Fault,
    io::Kind,
    series::Recorder,
};

mod deadline;
mod minimum;

use minimum::Minimum;

/// Instant that is never reached.
pub(crate) const NEVER: Nanos = Nanos(u64::MAX);

/// Longest sleep between two reads of the signal word.
const NAP: Nanos = Nanos(50_000_000);

const SECOND: u64 = 1_000_000_000;

/// Start and end of counting.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Ramp time and runtime, if they limit the loop.
    pub(crate) time: Option<(Nanos, Nanos)>,
    /// True if operations that are scheduled before the end of the time are run after it.
    pub(crate) open: bool,
    /// Minimum rates.
    pub(crate) minimum_rate: Option<MinimumRate>,
    /// True if service times of reads and writes are also recorded separately.
    pub(crate) both: bool,
    /// True if the worker runs its remaining operations, uncounted, after a stop.
    pub(crate) finish: bool,
    /// True if the bytes up to the last full second before the end of the time limit are reported.
    pub(crate) ticks: bool,
    /// True if the worker continues after the time limit.
    pub(crate) continues: bool,
}

/// Counters and clock of a loop.
pub(crate) struct Counter<'c> {
    control: &'c ControlBlock,
    signal: &'c AtomicU32,
    slot: &'c WorkerSlot,
    limits: Limits,
    /// Last instant read, at which the next operation starts.
    pub(crate) clock: Nanos,
    /// Earliest instant at which an event is due.
    pub(crate) border: Nanos,
    /// True if operations that end now count.
    pub(crate) counting: bool,
    /// True if no more operations are started.
    pub(crate) over: bool,
    /// True unless a signal ended the counting.
    pub(crate) complete: bool,
    /// Times of counted operations.
    pub(crate) latencies: Latencies,
    series_border: Nanos,
    ramp_end: Nanos,
    deadline: Nanos,
    // End of the time limit, once an open loop has passed it; otherwise never.
    due_before: Nanos,
    tick: Tick,
    at_deadline: Option<AtDeadline>,
    minimum: Option<Box<Minimum>>,
    started: Nanos,
    counted_until: Nanos,
    moved: u64,
    done: u64,
    read: Moved,
    written: Moved,
    uncounted: u64,
    recorder: Recorder,
}

/// Last full second before the end of the time limit, counted from the end of the ramp time. The
/// elapsed time is the same for all workers.
struct Tick {
    due: Nanos,
    elapsed: Nanos,
    passed: Option<Ticked>,
}

impl<'c> Counter<'c> {
    /// Creates the counters of a worker; `latencies` contains its empty histograms.
    pub(crate) fn new(
        control: &'c ControlBlock,
        worker: u32,
        limits: Limits,
        latencies: Latencies,
    ) -> Self {
        let zero = Nanos(0);
        Self {
            control,
            signal: control.signal(),
            slot: control.slot(worker),
            limits,
            clock: zero,
            border: NEVER,
            counting: false,
            over: false,
            complete: true,
            latencies,
            series_border: NEVER,
            ramp_end: NEVER,
            deadline: NEVER,
            due_before: NEVER,
            tick: Tick { due: NEVER, elapsed: zero, passed: None },
            at_deadline: None,
            minimum: limits.minimum_rate.map(|rate| Box::new(Minimum::new(rate))),
            started: zero,
            counted_until: zero,
            moved: 0,
            done: 0,
            read: Moved::default(),
            written: Moved::default(),
            uncounted: 0,
            recorder: Recorder::new(),
        }
    }

    /// Starts the loop.
    pub(crate) fn start(&mut self, clock: Nanos) {
        (self.clock, self.started) = (clock, clock);
        if let Some((ramp, run)) = self.limits.time {
            self.ramp_end = clock + ramp;
            self.deadline = self.ramp_end + run;
            let whole = run.0.saturating_sub(1) / SECOND * SECOND;
            if self.limits.ticks && whole > 0 {
                self.tick.elapsed = Nanos(whole);
                self.tick.due = self.ramp_end + self.tick.elapsed;
            }
        }
        match self.limits.time {
            Some((ramp, _)) if ramp > Nanos(0) => self.set_border(),
            Some(_) | None => self.begin_counting(),
        }
    }

    fn set_border(&mut self) {
        self.border = self.series_border.min(self.ramp_end).min(self.deadline).min(self.tick.due);
        if let Some(minimum) = &self.minimum {
            self.border = self.border.min(minimum.due());
        }
    }

    /// Handles signals and borders after an operation that ended at this instant.
    #[inline(always)]
    pub(crate) fn at(&mut self, clock: Nanos) -> Result<(), Fault> {
        self.clock = clock;
        self.poll()
    }

    /// Handles signals and borders after a clock read.
    #[inline(always)]
    pub(crate) fn poll(&mut self) -> Result<(), Fault> {
        if self.signal.load(Relaxed) != 0 {
            self.signaled()?;
        }
        if self.clock >= self.border {
            self.cross()?;
        }
        Ok(())
    }

    /// Counts operations of one kind without their times. Returns true if they are part of the
    /// result.
    #[inline(always)]
    pub(crate) fn tally(&mut self, kind: Kind, ops: u64, bytes: u64) -> bool {
        self.moved += bytes;
        self.done += ops;
        if !self.counting {
            if kind == Kind::Write && !self.complete {
                self.uncounted += bytes;
            }
            return false;
        }
        let moved = match kind {
            Kind::Read => &mut self.read,
            Kind::Write => &mut self.written,
        };
        moved.ops.0 += ops;
        moved.bytes.0 += bytes;
        true
    }

    /// Counts operations of one kind that started at `begun`. Returns true if they are part of the
    /// result.
    #[inline(always)]
    pub(crate) fn count(&mut self, kind: Kind, ops: u64, bytes: u64, begun: Nanos) -> bool {
        let counts = self.tally(kind, ops, bytes);
        if counts {
            let latency = match kind {
                Kind::Read => &mut self.latencies.read,
                Kind::Write => &mut self.latencies.write,
            };
            latency.record_n(self.clock.0 - begun.0, ops);
        }
        counts
    }

    /// Counts bytes that a write operation has read. Call it before the write is counted.
    #[inline]
    pub(crate) fn also_read(&mut self, bytes: u64) {
        self.moved += bytes;
        if self.counting {
            self.read.bytes.0 += bytes;
        }
    }

    /// Publishes the progress of this worker.
    #[inline(always)]
    pub(crate) fn publish(&self) {
        self.slot.bytes.store(self.moved, Relaxed);
        self.slot.done.store(self.done, Relaxed);
    }

    /// Publishes that all operations so far are durable.
    pub(crate) fn publish_durable(&self) {
        self.slot.durable.store(self.done, Relaxed);
    }

    /// Saves the control block if it is kept after the phase. Returns true if it was saved.
    pub(crate) fn persist(&self) -> Result<bool, Fault> {
        let kept = self.control.is_kept();
        if kept {
            self.control.persist()?;
        }
        Ok(kept)
    }

    /// Starts counting if the ramp time has elapsed: operations that end after this instant count.
    /// Call this when all operations that ended earlier are counted.
    #[inline(always)]
    pub(crate) fn ramp(&mut self) {
        if self.clock >= self.ramp_end {
            self.begin_counting();
        }
    }

    /// Counts one operation that started at `begun` and has ended at this instant.
    #[inline(always)]
    pub(crate) fn one(
        &mut self,
        clock: Nanos,
        kind: Kind,
        bytes: u64,
        begun: Nanos,
    ) -> Result<(), Fault> {
        self.at(clock)?;
        self.count(kind, 1, bytes, begun);
        self.publish();
        self.ramp();
        Ok(())
    }

    /// Sleeps until an instant. Returns `false` if the loop ends earlier.
    #[cold]
    pub(crate) fn wait(&mut self, due: Nanos) -> Result<bool, Fault> {
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

    /// Uses the CPU until an instant. Returns `false` if the loop ends earlier.
    pub(crate) fn spin(&mut self, until: Nanos) -> Result<bool, Fault> {
        while self.clock < until {
            self.clock = now();
            self.poll()?;
            self.ramp();
            if self.over {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Operations that are complete.
    #[inline(always)]
    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// Records the service time of counted operations of an open loop.
    #[inline]
    pub(crate) fn count_service(&mut self, kind: Kind, service: u64, ops: u64) {
        self.latencies.service.record_n(service, ops);
        let own = match kind {
            Kind::Read => &mut self.latencies.service_read,
            Kind::Write => &mut self.latencies.service_write,
        };
        if self.limits.both {
            own.record_n(service, ops);
        }
    }

    /// Sleeps until an instant, at most to the end of the loop, as part of an operation.
    pub(crate) fn nap(&self, until: Nanos) -> Result<(), Fault> {
        let (until, mut clock) = (until.min(self.deadline), now());
        while clock < until {
            self.check()?;
            clock = sleep_until(until.min(clock + NAP));
        }
        Ok(())
    }

    /// True if the phase was aborted, or if counting was stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.signal.load(Relaxed) != 0
    }

    /// Fails if the phase is aborted.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.signal.load(Relaxed) & ABORT != 0 { Err(Fault::Aborted) } else { Ok(()) }
    }

    /// True if an operation is scheduled after the end of the time limit.
    #[inline]
    pub(crate) fn after_time_limit(&self, due: Nanos) -> bool {
        due >= self.due_before
    }

    fn totals(&self) -> (u64, u64) {
        (self.read.ops.0 + self.written.ops.0, self.read.bytes.0 + self.written.bytes.0)
    }

    #[cold]
    fn cross(&mut self) -> Result<(), Fault> {
        while self.clock >= self.deadline {
            self.pass_deadline();
        }
        let (ops, bytes) = self.totals();
        if self.clock >= self.tick.due {
            self.tick.pass(bytes);
        }
        if self.clock >= self.series_border {
            self.series_border = match self.counting {
                true => self.recorder.roll(self.clock, ops, bytes),
                false => NEVER,
            };
        }
        if let Some(minimum) = &mut self.minimum
            && self.clock >= minimum.due()
        {
            minimum.check(self.clock, [self.read, self.written])?;
        }
        self.set_border();
        Ok(())
    }

    /// Handles the end of the time limit. An open loop continues with delayed operations that were
    /// scheduled before the end, because these have the longest latency. It continues for at most
    /// the duration of the time limit.
    fn pass_deadline(&mut self) {
        match (self.limits.time, self.due_before) {
            (Some((_, run)), NEVER) if self.limits.open => {
                self.due_before = self.deadline;
                self.deadline = self.deadline + run;
            }
            _ => {
                self.deadline = NEVER;
                self.over = true;
            }
        }
    }

    #[cold]
    fn begin_counting(&mut self) {
        self.ramp_end = NEVER;
        self.counting = true;
        self.started = self.clock;
        self.series_border = self.recorder.start(self.clock);
        if let Some(minimum) = &mut self.minimum {
            minimum.start(self.clock);
        }
        self.set_border();
    }

    #[cold]
    fn signaled(&mut self) -> Result<(), Fault> {
        let signal = self.signal.load(Relaxed);
        if signal & ABORT != 0 {
            return Err(Fault::Aborted);
        }
        assert_eq!(signal, STOP, "the signal word has two bits");
        if self.complete {
            self.counting = false;
            self.complete = false;
            self.counted_until = self.clock;
            if self.ramp_end != NEVER {
                // Nothing was counted.
                self.ramp_end = NEVER;
                self.started = self.clock;
            }
        }
        // Never reset to false: the loop may end for another reason.
        self.over |= !self.limits.finish;
        Ok(())
    }

    /// Result of a worker with this CPU usage. The times end with its last operation.
    pub(crate) fn finish(self, worker: u32, usage: Usage) -> WorkerResult {
        let (ops, bytes) = self.totals();
        let counted_until = if self.complete { self.clock } else { self.counted_until };
        WorkerResult {
            worker,
            started: self.started,
            loop_time: counted_until - self.started,
            uncounted_time: self.clock - counted_until,
            end_sync_time: Nanos(0),
            close_time: Nanos(0),
            read: self.read,
            written: self.written,
            uncounted: Bytes(self.uncounted),
            eagain_reads: Ops(0),
            unlogged: Ops(0),
            unexpected: Ops(0),
            ticked: self.tick.finish(bytes),
            at_deadline: self.at_deadline,
            user_time: usage.user,
            system_time: usage.system,
            voluntary_switches: usage.voluntary,
            involuntary_switches: usage.involuntary,
            latencies: self.latencies,
            series: self.recorder.finish(ops, bytes),
            begun: Nanos(0),
            events: Vec::new(),
        }
    }
}

impl Tick {
    fn pass(&mut self, bytes: u64) {
        self.passed = Some(Ticked { elapsed: self.elapsed, bytes: Bytes(bytes) });
        self.due = NEVER;
    }

    /// Result of the tick. A worker that ended before the tick has moved all of its bytes by then.
    fn finish(mut self, bytes: u64) -> Option<Ticked> {
        if self.due != NEVER {
            self.pass(bytes);
        }
        self.passed
    }
}

#[cfg(test)]
mod tests;
