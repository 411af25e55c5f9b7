//! Loop of an engine with a queue: fill it, submit, and process completions.
//!
//! An operation on the page cache takes less than a microsecond, and between two batches the kernel
//! replaces the data of the loop in the CPU caches. The loop therefore accesses few bytes per
//! operation, does common work once per batch, and reuses the slot of a completed operation
//! immediately.

use model::{Nanos, phase::IoEngineKind};

use super::{IoLoop, Run, SyncSchedule};
use crate::{
    clock::now,
    counter::{Counter, NEVER},
    error::Fault,
    io::{IoEngine, Kind, Op, Submitted, Wait, depth},
    operation_log::Times,
    patterns::{Order, PlannedOp},
};

/// Operation in flight.
#[derive(Clone, Copy, Default)]
struct InFlight {
    // Start of its latency.
    begun: Nanos,
    // Number of its batch.
    batch: u64,
}

/// Operations in flight, or about to be submitted.
pub(crate) struct Queue<'p> {
    flights: Box<[InFlight]>,
    // Instants at which an open loop issued the operations. Other loops do not use them, because
    // latency starts at the same instant.
    issued: Box<[Nanos]>,
    // Instants at which the kernel had accepted operations that are not in the last batch. Most
    // operations on the page cache complete before this is needed.
    committed: Box<[Nanos]>,
    // Slots submitted since the last commit.
    batch: Vec<u32>,
    // Number of the next batch, from 1.
    batches: u64,
    // Last batch: its slots, the number of them in flight, and the instant of its acceptance.
    last: Vec<u32>,
    last_left: usize,
    last_committed: Nanos,
    in_flight: usize,
    // Next planned operation and its scheduled start.
    next: Option<(PlannedOp, Nanos)>,
    // Operation that the engine could not accept.
    refused: Option<Op<'p>>,
    exhausted: bool,
    // Number of operations in flight of a full queue, and the number at which it is filled again.
    full: usize,
    refill_at: usize,
    drains: bool,
    // True if `next` begins a pass whose calls wait until nothing is in flight, or follows a pause,
    // which begins then.
    pass_waits: bool,
    pauses: bool,
}

impl Queue<'_> {
    /// Creates a queue for this number of slots.
    pub(crate) fn new(slots: usize, engine: IoEngineKind) -> Self {
        let refill_at = engine.completions().refill_at;
        Self {
            flights: vec![InFlight::default(); slots].into(),
            issued: vec![Nanos(0); slots].into(),
            committed: vec![Nanos(0); slots].into(),
            batch: Vec::with_capacity(slots),
            // No operation in flight has batch 0.
            batches: 1,
            last: Vec::with_capacity(slots),
            last_left: 0,
            last_committed: Nanos(0),
            in_flight: 0,
            next: None,
            refused: None,
            exhausted: false,
            full: depth(engine) as usize,
            refill_at: refill_at.map_or(usize::MAX, |at| at as usize),
            drains: false,
            pass_waits: false,
            pauses: false,
        }
    }

    /// Determines whether operations complete until the queue is filled again.
    #[inline(always)]
    fn note_level(&mut self) {
        self.drains =
            self.in_flight > self.refill_at && (self.drains || self.in_flight >= self.full);
    }

    /// Continues after the end of the order.
    pub(crate) fn resume(&mut self) {
        self.exhausted = false;
    }

    /// Start of the latency of a completed operation, and the instant at which the kernel had
    /// accepted it.
    #[inline(always)]
    fn complete(&mut self, slot: u32) -> (Nanos, Nanos) {
        self.in_flight -= 1;
        let InFlight { begun, batch } = self.flights[slot as usize];
        if batch + 1 == self.batches {
            self.last_left -= 1;
            return (begun, self.last_committed);
        }
        (begun, self.committed[slot as usize])
    }

    /// Records that the kernel has accepted the batch at this instant.
    #[inline]
    fn committed(&mut self, clock: Nanos) {
        if self.last_left > 0 {
            self.keep_committed();
        }
        std::mem::swap(&mut self.batch, &mut self.last);
        self.batch.clear();
        self.batches += 1;
        self.last_left = self.last.len();
        self.last_committed = clock;
    }

    /// Stores the acceptance of the last batch for its operations in flight.
    fn keep_committed(&mut self) {
        for slot in &self.last {
            if self.flights[*slot as usize].batch + 1 == self.batches {
                self.committed[*slot as usize] = self.last_committed;
            }
        }
    }
}

impl<'p> IoLoop<'p> {
    /// Fills the queue, submits it, and processes completions. Returns false if nothing is in
    /// flight and either the order is complete or the loop has ended.
    #[inline(always)]
    pub(crate) fn turn<E: IoEngine<'p>>(
        &mut self,
        counter: &mut Counter<'_>,
        queue: &mut Queue<'p>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> Result<bool, Fault> {
        if counter.pauses() {
            // Planned operations are run, so that none is omitted.
            queue.exhausted = true;
        } else if counter.over {
            queue.exhausted = true;
            queue.next = None;
            (queue.pass_waits, queue.pauses) = (false, false);
            if let Some(op) = queue.refused.take() {
                self.slots.give(op.slot, op.buffer);
            }
        }
        if queue.pass_waits
            && queue.in_flight == 0
            && !self.drained(counter, queue, engine, order)?
        {
            return Ok(true);
        }
        // With all slots in flight, nothing can be submitted. With a pause or a schedule, the start
        // of the next operation is determined nevertheless, because it may precede a free slot.
        queue.note_level();
        if !queue.drains && (queue.in_flight < self.slots.len() || !self.config.pacer.free()) {
            self.fill(counter, queue, engine, order);
            queue.note_level();
        }
        if queue.in_flight > 0 {
            self.exchange(counter, queue, engine, order)?;
            return Ok(true);
        }
        // Before the next operation there is one: without it, this was the last sync interval.
        let wanted = !self.syncs_before_next() || queue.next.is_some();
        if wanted && self.sync_schedule.as_ref().is_some_and(SyncSchedule::due) {
            self.sync_now(counter, engine, order)?;
            return Ok(true);
        }
        match queue.next {
            Some((_, due)) => {
                counter.wait(due)?;
                if let Some(flow) = self.config.flow.as_ref().filter(|flow| !flow.allows()) {
                    flow.pause(counter)?;
                }
                Ok(true)
            }
            None if queue.exhausted => Ok(false),
            None => unreachable!("an idle queue takes the next operation"),
        }
    }

    /// Makes the calls of a new pass, and pauses. Returns `false` if the loop ends earlier.
    #[cold]
    fn drained<E: IoEngine<'p>>(
        &mut self,
        counter: &mut Counter<'_>,
        queue: &mut Queue<'p>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> Result<bool, Fault> {
        self.begin_pass(counter, engine, order)?;
        queue.pass_waits = false;
        let (true, Some((planned, due))) = (std::mem::take(&mut queue.pauses), queue.next) else {
            return Ok(true);
        };
        let runs = self.wait(counter, due)?;
        queue.next = Some((planned, counter.clock));
        Ok(runs)
    }

    /// Submits due operations while slots are free. Not inlined: a full queue rarely calls it, and
    /// the code of the caller should stay in the cache.
    #[inline(never)]
    fn fill<E: IoEngine<'p>>(
        &mut self,
        counter: &Counter<'_>,
        queue: &mut Queue<'p>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) {
        while self.feed(counter, queue, engine, order) {}
    }

    /// Submits one operation if one is due and a slot is free.
    #[inline(always)]
    fn feed<E: IoEngine<'p>>(
        &mut self,
        counter: &Counter<'_>,
        queue: &mut Queue<'p>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> bool {
        let op = match queue.refused.take() {
            // Its latency excludes the submission of the batch before it.
            Some(op) if !self.config.pacer.open() => {
                queue.flights[op.slot as usize].begun = counter.clock;
                op
            }
            Some(op) => op,
            None => {
                // A sync covers only the writes before it.
                if !self.plain && self.sync_schedule.as_ref().is_some_and(SyncSchedule::due) {
                    if self.syncs_before_next() {
                        self.plan_next(counter, queue, order);
                    }
                    return false;
                }
                let Some(op) = self.next_op(counter, queue, order) else { return false };
                op
            }
        };
        let slot = op.slot;
        match engine.submit(op) {
            Submitted::Queued => {
                queue.in_flight += 1;
                queue.batch.push(slot);
                queue.flights[slot as usize].batch = queue.batches;
                true
            }
            Submitted::Full(op) => {
                queue.refused = Some(op);
                false
            }
            Submitted::Done(_) => unreachable!("an engine with a queue completes through it"),
        }
    }

    /// Plans the next operation without preparing it.
    #[cold]
    fn plan_next(&mut self, counter: &Counter<'_>, queue: &mut Queue<'p>, order: &mut Order<'_>) {
        if queue.next.is_some() || queue.exhausted {
            return;
        }
        match order.next() {
            Some(planned) => {
                let due = self.due(counter, planned);
                queue.next = Some((planned, due));
                queue.pass_waits |= self.config.pass.is_some() && order.takes_calls();
            }
            None => queue.exhausted = true,
        }
    }

    #[inline(always)]
    fn next_op(
        &mut self,
        counter: &Counter<'_>,
        queue: &mut Queue<'p>,
        order: &mut Order<'_>,
    ) -> Option<Op<'p>> {
        if queue.pass_waits {
            return None;
        }
        let (planned, due) = match queue.next.take() {
            Some(next) => next,
            None if queue.exhausted => return None,
            None => match order.next() {
                Some(planned) => (planned, self.due(counter, planned)),
                None => {
                    queue.exhausted = true;
                    return None;
                }
            },
        };
        if !self.plain && self.config.pass.is_some() && order.takes_calls() {
            queue.pass_waits = true;
            queue.next = Some((planned, due));
            return None;
        }
        if due > counter.clock {
            if counter.after_time_limit(due) {
                queue.exhausted = true;
                return None;
            }
            if self.config.pacer.pause().is_some() {
                (queue.pass_waits, queue.pauses) = (true, true);
            }
            queue.next = Some((planned, due));
            return None;
        }
        if let Some(flow) = &self.config.flow
            && !flow.allows()
        {
            queue.next = Some((planned, due));
            return None;
        }
        let Some(op) = self.prepare(planned) else {
            queue.next = Some((planned, due));
            return None;
        };
        if let Some(flow) = &mut self.config.flow {
            flow.take();
        }
        let (slot, mut begun) = (op.slot as usize, counter.clock);
        if self.config.pacer.open() {
            begun = due;
            queue.issued[slot] = counter.clock;
        }
        queue.flights[slot].begun = begun;
        Some(op)
    }

    /// Submits the batch to the kernel and processes completions; waits if there are none. Each
    /// completion frees a slot for the next operation.
    #[inline]
    fn exchange<E>(
        &mut self,
        counter: &mut Counter<'_>,
        queue: &mut Queue<'p>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> Result<(), Fault>
    where
        E: IoEngine<'p>,
    {
        let fault = |fault: crate::io::IoFault| fault.at(0);
        let mut answered = false;
        if !queue.batch.is_empty() {
            engine.commit().map_err(fault)?;
            committed(counter, queue);
            answered = engine.reap(Wait::No).map_err(fault)?;
            if !answered && queue.refused.is_some() {
                // The batch may have been full, but not the queue: submit the next operation before
                // waiting.
                return counter.poll();
            }
        }
        if !answered {
            let wait = match queue.next {
                Some((_, due)) if due > counter.clock => Wait::Until(due.min(counter.border)),
                _ => Wait::Some,
            };
            engine.reap(wait).map_err(fault)?;
            counter.clock = now();
        }
        counter.poll()?;
        self.take_done(counter, queue, engine, order)?;
        counter.publish();
        counter.ramp();
        Ok(())
    }

    /// Processes completions, and submits the next operation for each.
    #[inline(always)]
    fn take_done<E>(
        &mut self,
        counter: &mut Counter<'_>,
        queue: &mut Queue<'p>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> Result<(), Fault>
    where
        E: IoEngine<'p>,
    {
        // Operations on the page cache complete as soon as the kernel has accepted their batch.
        // They have the same times and are counted together.
        let open = self.config.pacer.open();
        let mut run = Run { kind: Kind::Read, ops: 0, bytes: 0, begun: NEVER, issued: NEVER };
        let mut run_committed = NEVER;
        while let Some(completion) = engine.next() {
            let slot = completion.op.slot;
            let (begun, committed) = queue.complete(slot);
            let issued = if open { queue.issued[slot as usize] } else { begun };
            let (ended, counts) = (counter.clock, counter.counting);
            let times = Times { issued, accepted: committed, ended, counts };
            let (kind, bytes) = self.drain(completion, times)?;
            let of_run = (run.begun, run.issued, run_committed);
            if kind != run.kind || (begun, issued, committed) != of_run {
                self.count_run(counter, run, run_committed);
                run = Run { kind, ops: 0, bytes: 0, begun, issued };
                run_committed = committed;
            }
            run.ops += 1;
            run.bytes += bytes;
            if !counter.over && !queue.drains {
                self.feed(counter, queue, engine, order);
            }
        }
        self.count_run(counter, run, run_committed);
        Ok(())
    }

    /// Counts completed operations, if any, that the kernel had accepted at `committed`.
    fn count_run(&mut self, counter: &mut Counter<'_>, run: Run, committed: Nanos) {
        if run.ops == 0 {
            return;
        }
        if counter.counting {
            counter.latencies.complete.record_n(counter.clock.0 - committed.0, run.ops);
        }
        self.count(counter, run);
    }
}

/// Reads the clock and records that the kernel has accepted the batch.
fn committed(counter: &mut Counter<'_>, queue: &mut Queue<'_>) {
    let issued = counter.clock;
    counter.clock = now();
    if counter.counting {
        let n = queue.batch.len() as u64;
        counter.latencies.submit.record_n(counter.clock.0 - issued.0, n);
    }
    queue.committed(counter.clock);
}
