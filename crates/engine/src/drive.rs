//! The loop: issues the operations of one worker and times each of them.
//!
//! Generic over I/O engine, order, and payload, so each combination is a loop of its own without
//! choices inside. In it there is no allocation, lock, log, or division; after each operation it
//! reads the clock once, looks at the signal word, and stores its progress.
//!
//! # Time of an operation
//!
//! The instant at which one operation ends is the instant at which the worker turns to the next, so
//! one clock read serves both. A service time therefore includes what the generator does between
//! two operations (stamp, comparison of the record before); [`crate::ceiling`] tells how much that
//! is. With an asynchronous engine an operation counts from its submission.
//!
//! # The stonewall
//!
//! When the signal says stop, the operation that has just ended does not count any more, and the
//! counted time ends with it: a rate may come out a little low, never too high. Its bytes, and
//! those that [`Stonewall::Finish`] still writes, are told as uncounted.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use model::{Bytes, Histogram, Nanos, Ops, phase::Stonewall};

use crate::{
    barrier::{ABORT, STOP},
    buffer::Slots,
    clock::now,
    error::Fault,
    io::{Completion, Completions, IoEngine, Kind, Op, Submitted},
    payload::Payload,
};

/// What a loop did.
#[derive(Debug)]
pub(crate) struct Tally {
    /// When it began.
    pub(crate) started: Nanos,
    /// When counting ended.
    pub(crate) counted_until: Nanos,
    /// When the last operation ended, counted or not.
    pub(crate) ended: Nanos,
    /// Counted operations.
    pub(crate) ops: Ops,
    /// Counted bytes.
    pub(crate) bytes: Bytes,
    /// Bytes moved after counting had ended.
    pub(crate) uncounted: Bytes,
    /// Service times of counted operations.
    pub(crate) latency: Histogram,
    /// No signal ended the counting.
    pub(crate) complete: bool,
}

/// What a loop shares with others, and what it does when the signal says stop.
pub(crate) struct Surroundings<'b> {
    /// Zero, or [`STOP`] and [`ABORT`] bits.
    pub(crate) signal: &'b AtomicU32,
    /// Where the bytes moved so far are published.
    pub(crate) progress: &'b AtomicU64,
    /// Whether the rest of the order is done uncounted after a stop.
    pub(crate) finish: bool,
}

impl Surroundings<'_> {
    /// Only writers go on after a stop: readers have nothing that later phases need.
    pub(crate) fn finishes(stonewall: Stonewall, kind: Kind) -> bool {
        stonewall == Stonewall::Finish && kind == Kind::Write
    }
}

/// A loop, prepared: everything it needs is allocated in [`Drive::new`].
pub(crate) struct Drive<'b, 'p> {
    around: Surroundings<'b>,
    kind: Kind,
    record_size: u64,
    slots: Slots<'p>,
    completions: Completions<'p>,
    in_flight: u32,
    // The last instant read; the next operation begins here.
    clock: Nanos,
    moved: u64,
    stopped: bool,
    tally: Tally,
}

impl<'b, 'p> Drive<'b, 'p> {
    /// Prepares a loop over records of `record_size` bytes in `slots`.
    pub(crate) fn new(
        around: Surroundings<'b>,
        kind: Kind,
        record_size: Bytes,
        slots: Slots<'p>,
    ) -> Self {
        let tally = Tally {
            started: Nanos(0),
            counted_until: Nanos(0),
            ended: Nanos(0),
            ops: Ops(0),
            bytes: Bytes(0),
            uncounted: Bytes(0),
            latency: Histogram::new(),
            complete: true,
        };
        Self {
            around,
            kind,
            record_size: record_size.0,
            completions: Vec::with_capacity(slots.len()),
            slots,
            in_flight: 0,
            clock: Nanos(0),
            moved: 0,
            stopped: false,
            tally,
        }
    }

    /// Moves the first record once, outside of any time or count.
    pub(crate) fn prime<E: IoEngine<'p>>(&mut self, engine: &mut E) -> Result<(), Fault> {
        let buffer = self.slots.take(0).expect("nothing is in flight before the loop");
        let op = Op { kind: self.kind, record: 0, offset: 0, issued: Nanos(0), buffer };
        match engine.submit(op) {
            Submitted::Done(completion) => self.completions.push(completion),
            Submitted::Queued => {
                engine.reap(1, &mut self.completions).map_err(|fault| fault.at(0))?;
            }
            Submitted::Full(_) => unreachable!("an engine with nothing in flight has room"),
        }
        let Completion { op, result } = self.completions.pop().expect("one was waited for");
        self.slots.give(0, op.buffer);
        result.map_err(|fault| fault.at(0))
    }

    /// The timed loop: all records of `order`, from the instant of this call on.
    ///
    /// # Errors
    /// The first [`Fault`]; the engine may still hold operations then, and is to be dropped.
    pub(crate) fn run<E, O, P>(
        mut self,
        engine: &mut E,
        mut order: O,
        payload: &mut P,
    ) -> Result<Tally, Fault>
    where
        E: IoEngine<'p>,
        O: Iterator<Item = u64>,
        P: Payload,
    {
        // The record that comes next, and an operation that the engine had no room for.
        let mut record = order.next();
        let mut refused: Option<Op<'p>> = None;
        self.clock = now();
        self.tally.started = self.clock;
        loop {
            if self.stopped {
                record = None;
                if let Some(op) = refused.take() {
                    self.slots.give(op.record, op.buffer);
                }
            }
            let op = refused.take().or_else(|| self.prepare(record?, payload));
            let Some(op) = op else {
                if self.in_flight == 0 {
                    assert!(record.is_none(), "a slot is taken only by what is in flight");
                    break;
                }
                self.reap(engine, payload)?;
                continue;
            };
            match engine.submit(op) {
                Submitted::Done(completion) => {
                    self.settle(completion, payload)?;
                    record = order.next();
                }
                Submitted::Queued => {
                    self.in_flight += 1;
                    self.clock = now();
                    record = order.next();
                }
                Submitted::Full(op) => {
                    assert!(self.in_flight > 0, "an idle engine has room");
                    refused = Some(op);
                    self.reap(engine, payload)?;
                }
            }
        }
        self.tally.ended = self.clock;
        if self.tally.complete {
            self.tally.counted_until = self.clock;
        }
        Ok(self.tally)
    }

    /// The operation for a record, ready to submit; `None` while its slot is in flight.
    #[inline]
    fn prepare<P: Payload>(&mut self, record: u64, payload: &mut P) -> Option<Op<'p>> {
        let buffer = self.slots.take(record)?;
        let offset = record * self.record_size;
        payload.prepare(offset, buffer);
        Some(Op { kind: self.kind, record, offset, issued: self.clock, buffer })
    }

    fn reap<E, P>(&mut self, engine: &mut E, payload: &mut P) -> Result<(), Fault>
    where
        E: IoEngine<'p>,
        P: Payload,
    {
        let mut completions = std::mem::take(&mut self.completions);
        engine.reap(1, &mut completions).map_err(|fault| fault.at(0))?;
        for completion in completions.drain(..) {
            self.in_flight -= 1;
            self.settle(completion, payload)?;
        }
        self.completions = completions;
        Ok(())
    }

    /// One operation is over.
    #[inline]
    fn settle<P: Payload>(
        &mut self,
        completion: Completion<'p>,
        payload: &mut P,
    ) -> Result<(), Fault> {
        let Completion { op, result } = completion;
        self.clock = now();
        if let Err(fault) = result {
            return Err(fault.at(op.offset));
        }
        payload.check(op.record, op.offset, op.buffer)?;
        self.slots.give(op.record, op.buffer);
        self.moved += self.record_size;
        self.around.progress.store(self.moved, Relaxed);
        if self.around.signal.load(Relaxed) != 0 {
            return self.signaled();
        }
        self.tally.latency.record(self.clock.0 - op.issued.0);
        self.tally.ops.0 += 1;
        self.tally.bytes.0 += self.record_size;
        Ok(())
    }

    #[cold]
    fn signaled(&mut self) -> Result<(), Fault> {
        let signal = self.around.signal.load(Relaxed);
        if signal & ABORT != 0 {
            return Err(Fault::Aborted);
        }
        assert_eq!(signal, STOP, "the signal word has two bits");
        if self.tally.complete {
            self.tally.complete = false;
            self.tally.counted_until = self.clock;
        }
        self.tally.uncounted.0 += self.record_size;
        self.stopped = !self.around.finish;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
