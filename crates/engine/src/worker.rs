//! One worker: its timeline from opening the file to closing it.
//!
//! The match in here is where a stream stops being data: it picks the engine as a type, and
//! [`Assignment::timeline`] is compiled for each.

use std::path::Path;

use model::phase::{
    Access, Bound, Direction, Flush, FlushCall, Interface, Stonewall, Stream, WorkerResult,
};

use crate::{
    barrier::Board,
    buffer::{Pool, Slots},
    clock::{Usage, now},
    drive::{Drive, Manner, Surroundings},
    error::{Fault, Operation},
    io::{
        Area, Bytewise, Copy, IoEngine, Mmap, Null, Offset, Position, Purpose, Ring, Stdio, Update,
        Vector, touches_files,
    },
    pace::Pacer,
    patterns::{Order, Prepared},
    payload::{self, Check, Stamp},
    seat,
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
    /// What its order needs.
    pub(crate) prepared: &'a Prepared,
}

/// Operations that a worker has in flight at most.
pub(crate) fn depth(interface: Interface) -> u32 {
    match interface {
        Interface::Ring(ring) => ring.depth,
        Interface::Offset
        | Interface::Position
        | Interface::Bytewise
        | Interface::Stdio
        | Interface::Vector(_)
        | Interface::Mmap(_)
        | Interface::Copy(_)
        | Interface::Null => 1,
    }
}

/// Whether operations read their record and may write it back.
pub(crate) fn updates(stream: &Stream) -> bool {
    matches!(stream.direction, Direction::Update(_))
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

    fn purpose(&self) -> Purpose {
        Purpose::of(self.stream, self.worker)
    }

    fn choose_engine(self) -> Result<WorkerResult, Fault> {
        let Self { stream, path, .. } = self;
        let purpose = self.purpose();
        seat::take(stream, self.worker)?;
        // Made before the engine and dropped after it: the engine may hold slots to its end.
        let mut pool = Pool::new(stream, purpose, depth(stream.interface))?;
        let (base, len) = pool.region();
        let slots = pool.slots();
        match stream.interface {
            Interface::Offset => self.timeline(Offset::open(stream, path, purpose)?, slots),
            Interface::Position if updates(stream) => {
                self.timeline(Update::open(stream, path, purpose)?, slots)
            }
            Interface::Position => self.timeline(Position::open(stream, path, purpose)?, slots),
            Interface::Bytewise => self.timeline(Bytewise::open(stream, path, purpose)?, slots),
            Interface::Stdio => self.timeline(Stdio::open(stream, path, purpose)?, slots),
            Interface::Vector(flags) => {
                self.timeline(Vector::open(stream, flags, path, purpose)?, slots)
            }
            Interface::Mmap(advice) => {
                self.timeline(Mmap::open(stream, advice, path, purpose)?, slots)
            }
            Interface::Ring(ring) => {
                let area = Area { base, len, slots: slots.len() };
                let engine = Ring::open(stream, ring, path, purpose, area, self.worker)?;
                self.timeline(engine, slots)
            }
            Interface::Copy(call) => self.timeline(Copy::open(stream, call, path, purpose)?, slots),
            Interface::Null => self.timeline(Null, slots),
        }
    }

    fn manner(&self, generation: u64, slots: &mut Slots<'_>) -> Manner {
        let Self { stream, worker, .. } = *self;
        let writes = self.purpose().writes();
        Manner {
            stamp: writes.then(|| Stamp::new(stream, worker, slots)).flatten(),
            check: stream.verify.then(|| Check::new(stream, worker)),
            pacer: Pacer::new(stream, worker),
            worker: (worker, stream.workers.count),
            generation,
        }
    }

    /// Length of the file at the start, where the order depends on it.
    fn end(&self) -> Result<u64, Fault> {
        if self.stream.access != Access::Append || !touches_files(self.stream.interface) {
            return Ok(0);
        }
        let status =
            rustix::fs::stat(self.path).map_err(|errno| Fault::whole(Operation::Examine, errno))?;
        Ok(u64::try_from(status.st_size).unwrap_or(0))
    }

    /// The operations to do, from the end of the file on if they append.
    fn order(&self, end: u64) -> Result<Order<'_>, Fault> {
        let order = Order::new(self.stream, self.worker, end, self.prepared)?;
        Ok(match self.stream.bound {
            Bound::Together(ops) => order.together(self.board.taken(), ops),
            Bound::Once | Bound::Ops(_) | Bound::Time { .. } => order,
        })
    }

    /// fsync · priming read │ barrier │ loop │ flush │ close.
    fn timeline<'p, E>(self, mut engine: E, mut slots: Slots<'p>) -> Result<WorkerResult, Fault>
    where
        E: IoEngine<'p>,
    {
        let Self { stream, worker, board, .. } = self;
        let purpose = self.purpose();
        let stonewall = stream.workers.stonewall;
        let lane = board.lane(worker);
        let around = Surroundings {
            signal: board.signal(),
            moved: &lane.bytes,
            done: &lane.done,
            durable: &lane.durable,
            board: board.is_kept().then_some(board),
            finish: Surroundings::finishes(stonewall, purpose),
        };
        let end = self.end()?;
        let generation = payload::first_generation();
        lane.begin(end, generation);
        let order = self.order(end)?;
        let manner = self.manner(generation, &mut slots);
        let mut drive = Drive::new(stream, purpose, around, slots, manner, E::QUEUES);
        if stream.open.fsync {
            engine.flush(FlushCall::Fsync, (0, 0))?;
        }
        if stream.open.prime && purpose.reads() {
            let len = usize::try_from(stream.record.0).unwrap_or(usize::MAX);
            drive.prime(&mut engine, len)?;
            engine.rewind()?;
        }

        let refused = engine.would_block();
        board.arrive()?;

        let before = Usage::of_this_thread();
        let tally = drive.run(&mut engine, order)?;
        if tally.complete && stonewall != Stonewall::Off {
            board.stop();
        }
        let flushed = match stream.flush {
            Flush::None => tally.ended,
            Flush::Fsync | Flush::Fdatasync => {
                let data = stream.flush == Flush::Fdatasync;
                let call = if data { FlushCall::Fdatasync } else { FlushCall::Fsync };
                engine.flush(call, (0, 0))?;
                lane.all_durable();
                let flushed = now();
                board.persist()?;
                flushed
            }
        };
        let would_block = engine.would_block() - refused;
        engine.close()?;
        let closed = now();
        let usage = Usage::of_this_thread().since(before);
        lane.end(closed);
        Ok(WorkerResult {
            worker,
            started: tally.started,
            loop_time: tally.counted_until - tally.started,
            uncounted_time: tally.ended - tally.counted_until,
            flush_time: flushed - tally.ended,
            close_time: closed - flushed,
            read: tally.read,
            written: tally.written,
            uncounted: tally.uncounted,
            would_block: model::Ops(would_block),
            unexpected: model::Ops(0),
            ticked: None,
            user_time: usage.user,
            system_time: usage.system,
            voluntary_switches: usage.voluntary,
            involuntary_switches: usage.involuntary,
            latencies: tally.latencies,
            series: tally.series,
        })
    }
}
