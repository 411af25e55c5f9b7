//! The loop of an engine with a queue: fill it, commit, take what is done.
//!
//! From the page cache an operation takes less than a microsecond, and between two batches the
//! kernel takes the caches for itself. So each operation touches few bytes, what a batch has in
//! common is counted once, and the slot of an operation that is over goes to the next one at once.

use model::Nanos;

use super::{Drive, Flusher, NEVER, Run};
use crate::{
    clock::now,
    error::Fault,
    io::{IoEngine, Kind, Op, Submitted, Wait},
    patterns::{Order, Visit},
};

/// An operation in flight.
#[derive(Clone, Copy, Default)]
struct Flight {
    // From where its latency counts.
    begun: Nanos,
    // The number of its batch.
    batch: u64,
}

/// What is in flight, or about to be.
pub(super) struct Queue<'p> {
    flights: Box<[Flight]>,
    // When the loop turned to them, with an open loop; else that is where their latency begins.
    issued: Box<[Nanos]>,
    // When the kernel had those that are not of the last batch. Most of a batch from the page cache
    // is over before it gets here.
    committed: Box<[Nanos]>,
    // Slots submitted since the last commit.
    batch: Vec<u32>,
    // The batches so far, which is the number of the next one.
    batches: u64,
    // The last one: its slots, how many of them are in flight, and when the kernel had it.
    last: Vec<u32>,
    last_left: usize,
    last_committed: Nanos,
    in_flight: usize,
    // The visit that comes next, and when it is due.
    next: Option<(Visit, Nanos)>,
    // An operation that the engine had no room for.
    refused: Option<Op<'p>>,
    exhausted: bool,
}

impl Queue<'_> {
    /// For so many slots.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            flights: vec![Flight::default(); slots].into(),
            issued: vec![Nanos(0); slots].into(),
            committed: vec![Nanos(0); slots].into(),
            batch: Vec::with_capacity(slots),
            // No flight begins in batch 0.
            batches: 1,
            last: Vec::with_capacity(slots),
            last_left: 0,
            last_committed: Nanos(0),
            in_flight: 0,
            next: None,
            refused: None,
            exhausted: false,
        }
    }

    /// An operation is over: from where its latency counts, and when the kernel had it.
    #[inline(always)]
    fn landed(&mut self, slot: u32) -> (Nanos, Nanos) {
        self.in_flight -= 1;
        let Flight { begun, batch } = self.flights[slot as usize];
        if batch + 1 == self.batches {
            self.last_left -= 1;
            return (begun, self.last_committed);
        }
        (begun, self.committed[slot as usize])
    }

    /// The kernel has the batch.
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

    /// When the kernel had the last batch, for what is in flight of it.
    fn keep_committed(&mut self) {
        for slot in &self.last {
            if self.flights[*slot as usize].batch + 1 == self.batches {
                self.committed[*slot as usize] = self.last_committed;
            }
        }
    }
}

impl<'p> Drive<'_, 'p> {
    /// Until the order is through, or the loop is over and nothing is in flight.
    pub(super) fn queued<E>(
        &mut self,
        mut queue: Queue<'p>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> Result<(), Fault>
    where
        E: IoEngine<'p>,
    {
        loop {
            if self.over {
                queue.exhausted = true;
                queue.next = None;
                if let Some(op) = queue.refused.take() {
                    self.slots.give(op.slot, op.buffer);
                }
            }
            // With all slots in flight nothing can be submitted. Only a pause or a schedule has to
            // know the next operation ahead, as its time may begin before there is room.
            if queue.in_flight < self.slots.len() || !self.manner.pacer.free() {
                self.fill(&mut queue, engine, order);
            }
            if queue.in_flight > 0 {
                self.exchange(&mut queue, engine, order)?;
                continue;
            }
            if self.flusher.as_ref().is_some_and(Flusher::due) {
                self.flush(engine)?;
                continue;
            }
            match queue.next {
                Some((_, due)) => {
                    self.wait(due)?;
                }
                None if queue.exhausted => return Ok(()),
                None => unreachable!("an idle queue takes the next operation"),
            }
        }
    }

    /// Submits what is due while there is room. Not inlined: a queue that is kept full rarely gets
    /// here, and its code is to stay in the cache.
    #[inline(never)]
    fn fill<E>(&mut self, queue: &mut Queue<'p>, engine: &mut E, order: &mut Order<'_>)
    where
        E: IoEngine<'p>,
    {
        while self.feed(queue, engine, order) {}
    }

    /// Submits one operation, if one is due and there is room.
    #[inline(always)]
    fn feed<E>(&mut self, queue: &mut Queue<'p>, engine: &mut E, order: &mut Order<'_>) -> bool
    where
        E: IoEngine<'p>,
    {
        let op = match queue.refused.take() {
            Some(op) => op,
            None => {
                // A flush covers what was written before it, and nothing else.
                if self.flusher.as_ref().is_some_and(Flusher::due) {
                    return false;
                }
                let Some(op) = self.next_op(queue, order) else { return false };
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
            Submitted::Done(_) => unreachable!("an engine with a queue answers through it"),
        }
    }

    #[inline(always)]
    fn next_op(&mut self, queue: &mut Queue<'p>, order: &mut Order<'_>) -> Option<Op<'p>> {
        let (visit, due) = match queue.next.take() {
            Some(next) => next,
            None if queue.exhausted => return None,
            None => match order.next() {
                Some(visit) => (visit, self.manner.pacer.due(self.clock, visit.len)),
                None => {
                    queue.exhausted = true;
                    return None;
                }
            },
        };
        if due > self.clock {
            if self.too_late(due) {
                queue.exhausted = true;
                return None;
            }
            queue.next = Some((visit, due));
            return None;
        }
        let Some(op) = self.prepare(visit) else {
            queue.next = Some((visit, due));
            return None;
        };
        let (slot, mut begun) = (op.slot as usize, self.clock);
        if self.manner.pacer.open() {
            begun = due;
            queue.issued[slot] = self.clock;
        }
        queue.flights[slot].begun = begun;
        Some(op)
    }

    /// Hands the batch to the kernel and takes what is done, waiting if nothing is. What is over
    /// makes room for the next operation at once.
    #[inline]
    fn exchange<E>(
        &mut self,
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
            self.committed(queue);
            answered = engine.reap(Wait::No).map_err(fault)?;
            if !answered && queue.refused.is_some() {
                // It was the batch that was full, perhaps, and not the queue: the next one is tried
                // before anything is waited for.
                return self.look();
            }
        }
        if !answered {
            let wait = match queue.next {
                Some((_, due)) if due > self.clock => Wait::Until(due.min(self.border)),
                _ => Wait::One,
            };
            engine.reap(wait).map_err(fault)?;
            self.clock = now();
        }
        self.look()?;
        self.take_done(queue, engine, order)?;
        self.publish();
        self.ramp();
        Ok(())
    }

    /// Takes what is done, and submits the next operation for each.
    #[inline(always)]
    fn take_done<E>(
        &mut self,
        queue: &mut Queue<'p>,
        engine: &mut E,
        order: &mut Order<'_>,
    ) -> Result<(), Fault>
    where
        E: IoEngine<'p>,
    {
        // Operations from the page cache are over as soon as the kernel has their batch: they have
        // all times in common, and are counted together.
        let open = self.manner.pacer.open();
        let mut run = Run { kind: Kind::Read, ops: 0, bytes: 0, begun: NEVER, issued: NEVER };
        let mut run_committed = NEVER;
        while let Some(completion) = engine.next() {
            let slot = completion.op.slot;
            let (begun, committed) = queue.landed(slot);
            let issued = if open { queue.issued[slot as usize] } else { begun };
            let (kind, bytes) = self.settle(completion)?;
            let times = (run.begun, run.issued, run_committed);
            if kind != run.kind || (begun, issued, committed) != times {
                self.count_run(run, run_committed);
                run = Run { kind, ops: 0, bytes: 0, begun, issued };
                run_committed = committed;
            }
            run.ops += 1;
            run.bytes += bytes;
            if !self.over {
                self.feed(queue, engine, order);
            }
        }
        self.count_run(run, run_committed);
        Ok(())
    }

    /// Counts operations that are over, if any, and that the kernel had at `committed`.
    fn count_run(&mut self, run: Run, committed: Nanos) {
        if run.ops == 0 {
            return;
        }
        if self.counting {
            self.tally.latencies.complete.record_n(self.clock.0 - committed.0, run.ops);
        }
        self.count(run);
    }

    /// The kernel has the batch.
    fn committed(&mut self, queue: &mut Queue<'p>) {
        let issued = self.clock;
        self.clock = now();
        if self.counting {
            let n = queue.batch.len() as u64;
            self.tally.latencies.submit.record_n(self.clock.0 - issued.0, n);
        }
        queue.committed(self.clock);
    }
}
