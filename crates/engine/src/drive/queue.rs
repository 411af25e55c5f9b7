//! The loop of an engine with a queue: fill it, commit, take what is done.

use model::Nanos;

use super::{Drive, Flight, Flusher};
use crate::{
    clock::now,
    error::Fault,
    io::{Completions, IoEngine, Op, Submitted, Wait},
    patterns::{Order, Visit},
};

/// What is in flight, or about to be.
pub(super) struct Queue<'p> {
    flights: Box<[Flight]>,
    // Slots submitted since the last commit.
    batch: Vec<u32>,
    completions: Completions<'p>,
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
            batch: Vec::with_capacity(slots),
            completions: Vec::with_capacity(slots),
            in_flight: 0,
            next: None,
            refused: None,
            exhausted: false,
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
            self.fill(&mut queue, engine, order);
            if queue.in_flight > 0 {
                self.exchange(&mut queue, engine)?;
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

    /// Submits what is due while there is room.
    #[inline]
    fn fill<E>(&mut self, queue: &mut Queue<'p>, engine: &mut E, order: &mut Order<'_>)
    where
        E: IoEngine<'p>,
    {
        loop {
            let op = match queue.refused.take() {
                Some(op) => op,
                None => {
                    // A flush covers what was written before it, and nothing else.
                    if self.flusher.as_ref().is_some_and(Flusher::due) {
                        return;
                    }
                    let Some(op) = self.next_op(queue, order) else { return };
                    op
                }
            };
            let slot = op.slot;
            match engine.submit(op) {
                Submitted::Queued => {
                    queue.in_flight += 1;
                    queue.batch.push(slot);
                }
                Submitted::Full(op) => {
                    queue.refused = Some(op);
                    return;
                }
                Submitted::Done(_) => unreachable!("an engine with a queue answers through it"),
            }
        }
    }

    #[inline]
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
        let begun = if self.manner.pacer.open() { due } else { self.clock };
        queue.flights[op.slot as usize] = Flight { begun, issued: self.clock, committed: begun };
        Some(op)
    }

    /// Hands the batch to the kernel and takes what is done, waiting if nothing is.
    #[inline]
    fn exchange<E>(&mut self, queue: &mut Queue<'p>, engine: &mut E) -> Result<(), Fault>
    where
        E: IoEngine<'p>,
    {
        let fault = |fault: crate::io::IoFault| fault.at(0);
        if !queue.batch.is_empty() {
            engine.commit().map_err(fault)?;
            self.committed(queue);
            engine.reap(Wait::No, &mut queue.completions).map_err(fault)?;
            if queue.completions.is_empty() && queue.refused.is_some() {
                // It was the batch that was full, perhaps, and not the queue: the next one is tried
                // before anything is waited for.
                return self.look();
            }
        }
        if queue.completions.is_empty() {
            let wait = match queue.next {
                Some((_, due)) if due > self.clock => Wait::Until(due.min(self.border)),
                _ => Wait::One,
            };
            engine.reap(wait, &mut queue.completions).map_err(fault)?;
            self.clock = now();
        }
        self.look()?;
        let mut completions = std::mem::take(&mut queue.completions);
        queue.in_flight -= completions.len();
        // What was done as soon as the kernel had it, which is most of a batch from the page cache,
        // is counted at once.
        let mut at_once = 0;
        for completion in completions.drain(..) {
            let flight = queue.flights[completion.op.slot as usize];
            if self.counting {
                match self.clock.0 - flight.committed.0 {
                    0 => at_once += 1,
                    nanos => self.tally.latencies.complete.record(nanos),
                }
            }
            self.settle(completion, flight)?;
        }
        if at_once > 0 {
            self.tally.latencies.complete.record_n(0, at_once);
        }
        queue.completions = completions;
        self.publish();
        self.ramp();
        Ok(())
    }

    /// The kernel has the batch.
    fn committed(&mut self, queue: &mut Queue<'p>) {
        let issued = self.clock;
        self.clock = now();
        for slot in &queue.batch {
            queue.flights[*slot as usize].committed = self.clock;
        }
        if self.counting {
            let n = queue.batch.len() as u64;
            self.tally.latencies.submit.record_n(self.clock.0 - issued.0, n);
        }
        queue.batch.clear();
    }
}
