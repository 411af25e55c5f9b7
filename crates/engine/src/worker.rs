//! One worker: its timeline from opening the file to closing it.
//!
//! The matches in here are where a stream stops being data: they pick the engine, the payload, and
//! the order as types, and [`timeline`] is compiled for each combination that exists.

use std::path::Path;

use model::phase::{Access, Fill, Flush, Interface, Stonewall, Stream, WorkerResult};

use crate::{
    barrier::Board,
    buffer::{Pool, Slots},
    clock::{CpuTime, now},
    drive::{Drive, Surroundings},
    error::Fault,
    io::{IoEngine, Kind, Null, Offset, Position, Stdio},
    patterns::{Linear, Stride},
    payload::{Checked, Payload, Plain, Stamped},
};

/// What one worker is to do.
#[derive(Clone, Copy)]
pub(crate) struct Assignment<'a> {
    /// The work.
    pub(crate) stream: &'a Stream,
    /// Index of the worker.
    pub(crate) worker: u32,
    /// Its file.
    pub(crate) path: &'a Path,
    /// What it shares with the others.
    pub(crate) board: &'a Board,
    /// The order, if it is [`Access::Shuffled`].
    pub(crate) permutation: &'a [u64],
}

impl Assignment<'_> {
    /// Does the work in the calling thread, and tells the others if it fails.
    pub(crate) fn perform(self) -> Result<WorkerResult, Fault> {
        let result = self.choose_engine();
        match result {
            Ok(_) | Err(Fault::Aborted) => {}
            Err(_) => self.board.fail(self.worker),
        }
        result
    }

    fn reads(&self) -> bool {
        self.stream.direction.reads(self.worker)
    }

    fn kind(&self) -> Kind {
        if self.reads() { Kind::Read } else { Kind::Write }
    }

    /// Number of whole records.
    fn records(&self) -> u64 {
        self.stream.size.0 / self.stream.record.0
    }

    fn choose_engine(self) -> Result<WorkerResult, Fault> {
        let Self { stream, path, .. } = self;
        let reads = self.reads();
        // Made before the engine and dropped after it: the engine may hold slots to its end.
        let mut pool = if reads {
            Pool::new(stream.record)?
        } else {
            Pool::filled(stream.record, stream.fill)?
        };
        let slots = pool.slots();
        match stream.interface {
            Interface::Offset => self.choose_payload(Offset::open(stream, path, reads)?, slots),
            Interface::Position => self.choose_payload(Position::open(stream, path, reads)?, slots),
            Interface::Stdio => self.choose_payload(Stdio::open(stream, path, reads)?, slots),
            Interface::Null => self.choose_payload(Null, slots),
        }
    }

    fn choose_payload<'p, E>(self, engine: E, slots: Slots<'p>) -> Result<WorkerResult, Fault>
    where
        E: IoEngine<'p>,
    {
        let stamped = match self.stream.fill {
            Fill::Random { seed, .. } => Some(Stamped { key: seed ^ u64::from(self.worker) }),
            Fill::PagePattern => None,
        };
        if !self.reads() {
            return match stamped {
                Some(stamped) => self.choose_order(engine, slots, stamped),
                None => self.choose_order(engine, slots, Plain),
            };
        }
        if !self.stream.verify {
            return self.choose_order(engine, slots, Plain);
        }
        let mut pool = Pool::filled(self.stream.record, self.stream.fill)?;
        let reference = pool.slots();
        match stamped {
            Some(writer) => self.choose_order(engine, slots, Checked { writer, reference }),
            None => self.choose_order(engine, slots, Checked { writer: Plain, reference }),
        }
    }

    fn choose_order<'p, E, P>(
        self,
        engine: E,
        slots: Slots<'p>,
        payload: P,
    ) -> Result<WorkerResult, Fault>
    where
        E: IoEngine<'p>,
        P: Payload,
    {
        let n = self.records();
        match self.stream.access {
            Access::Sequential => self.timeline(engine, slots, payload, Linear::sequential(n)),
            Access::Backward => self.timeline(engine, slots, payload, Linear::backward(n)),
            Access::SameRecord => self.timeline(engine, slots, payload, Linear::same_record(n)),
            Access::Stride { records } => {
                self.timeline(engine, slots, payload, Stride::new(n, records))
            }
            Access::Shuffled => {
                self.timeline(engine, slots, payload, self.permutation.iter().copied())
            }
        }
    }

    /// fsync · priming read │ barrier │ loop │ flush │ close.
    fn timeline<'p, E, P, O>(
        self,
        mut engine: E,
        slots: Slots<'p>,
        mut payload: P,
        order: O,
    ) -> Result<WorkerResult, Fault>
    where
        E: IoEngine<'p>,
        P: Payload,
        O: Iterator<Item = u64>,
    {
        let Self { stream, worker, board, .. } = self;
        let stonewall = stream.workers.stonewall;
        let lane = board.lane(worker);
        let around = Surroundings {
            signal: board.signal(),
            progress: &lane.bytes,
            finish: Surroundings::finishes(stonewall, self.kind()),
        };
        let mut drive = Drive::new(around, self.kind(), stream.record, slots);
        if stream.open.fsync {
            engine.sync()?;
        }
        if stream.open.prime && self.reads() {
            drive.prime(&mut engine)?;
            engine.rewind()?;
        }

        board.arrive()?;

        let cpu_before = CpuTime::of_this_thread();
        let tally = drive.run(&mut engine, order, &mut payload)?;
        if tally.complete && stonewall != Stonewall::Off {
            board.stop();
        }
        let flushed = match stream.flush {
            Flush::None => tally.ended,
            Flush::Fsync => {
                engine.sync()?;
                now()
            }
        };
        engine.close()?;
        let closed = now();
        let cpu = CpuTime::of_this_thread();
        lane.end(closed);
        Ok(WorkerResult {
            worker,
            reads: self.reads(),
            started: tally.started,
            loop_time: tally.counted_until - tally.started,
            uncounted_time: tally.ended - tally.counted_until,
            flush_time: flushed - tally.ended,
            close_time: closed - flushed,
            ops: tally.ops,
            bytes: tally.bytes,
            uncounted: tally.uncounted,
            user_time: cpu.user - cpu_before.user,
            system_time: cpu.system - cpu_before.system,
            latency: tally.latency,
        })
    }
}
