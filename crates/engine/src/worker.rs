//! Worker of a stream: from opening its file to closing it.
//!
//! A match on the stream selects the engine as a type; [`Assignment::timeline`] is compiled once
//! per engine.

use std::path::Path;

use model::phase::{
    AccessPattern, Bound, Direction, EndSync, IoEngineKind, Stonewall, Stream, SyncCall,
    WorkerResult,
};

use crate::{
    affinity,
    barrier::ControlBlock,
    buffer::{Pool, Slots},
    clock::{Usage, now},
    error::{Fault, Operation},
    io::{
        AccessMode, Bytewise, Copy, IoEngine, Mmap, Null, Offset, Position, Ring, SlotMemory,
        Stdio, Update, Vector, touches_files,
    },
    io_loop::{IoLoop, LoopConfig, LoopShared},
    pace::Pacer,
    patterns::{Order, Prepared},
    payload::{self, PayloadWriter, Verifier},
};

/// Work of one worker.
#[derive(Clone, Copy)]
pub(crate) struct Assignment<'a> {
    /// Stream to run.
    pub(crate) stream: &'a Stream,
    /// Index of the worker.
    pub(crate) worker: u32,
    /// File of the worker.
    pub(crate) path: &'a Path,
    /// Control block shared with the other workers.
    pub(crate) control: &'a ControlBlock,
    /// Data prepared for its access pattern.
    pub(crate) prepared: &'a Prepared,
}

/// Maximum number of operations in flight per worker.
pub(crate) fn depth(interface: IoEngineKind) -> u32 {
    match interface {
        IoEngineKind::Ring(ring) => ring.depth,
        IoEngineKind::Offset
        | IoEngineKind::Position
        | IoEngineKind::Bytewise
        | IoEngineKind::Stdio
        | IoEngineKind::Vector(_)
        | IoEngineKind::Mmap(_)
        | IoEngineKind::Copy(_)
        | IoEngineKind::Null => 1,
    }
}

/// True if operations read their block and may write it back.
pub(crate) fn updates(stream: &Stream) -> bool {
    matches!(stream.direction, Direction::Update(_))
}

impl Assignment<'_> {
    /// Does the work in the calling thread and aborts the other workers if it fails.
    pub(crate) fn perform(self) -> Result<WorkerResult, Fault> {
        let result = self.choose_engine();
        match result {
            Ok(_) | Err(Fault::Aborted) => {}
            Err(_) => self.control.fail(self.worker),
        }
        result
    }

    fn mode(&self) -> AccessMode {
        AccessMode::of(self.stream, self.worker)
    }

    fn choose_engine(self) -> Result<WorkerResult, Fault> {
        let Self { stream, path, .. } = self;
        let mode = self.mode();
        affinity::apply_to_stream(stream, self.worker)?;
        // Created before the engine and dropped after it, because the engine may hold slots until
        // its end.
        let mut pool = Pool::new(stream, mode, depth(stream.io_engine))?;
        let (base, len) = pool.region();
        let slots = pool.slots();
        match stream.io_engine {
            IoEngineKind::Offset => self.timeline(Offset::open(stream, path, mode)?, slots),
            IoEngineKind::Position if updates(stream) => {
                self.timeline(Update::open(stream, path, mode)?, slots)
            }
            IoEngineKind::Position => self.timeline(Position::open(stream, path, mode)?, slots),
            IoEngineKind::Bytewise => self.timeline(Bytewise::open(stream, path, mode)?, slots),
            IoEngineKind::Stdio => self.timeline(Stdio::open(stream, path, mode)?, slots),
            IoEngineKind::Vector(flags) => {
                self.timeline(Vector::open(stream, flags, path, mode)?, slots)
            }
            IoEngineKind::Mmap(advice) => {
                self.timeline(Mmap::open(stream, advice, path, mode)?, slots)
            }
            IoEngineKind::Ring(ring) => {
                let area = SlotMemory { base, len, slots: slots.len() };
                let engine = Ring::open(stream, ring, path, mode, area, self.worker)?;
                self.timeline(engine, slots)
            }
            IoEngineKind::Copy(call) => self.timeline(Copy::open(stream, call, path, mode)?, slots),
            IoEngineKind::Null => self.timeline(Null, slots),
        }
    }

    fn config(&self, generation: u64, slots: &mut Slots<'_>) -> LoopConfig {
        let Self { stream, worker, .. } = *self;
        let writes = self.mode().writes();
        LoopConfig {
            writer: writes.then(|| PayloadWriter::new(stream, worker, slots)).flatten(),
            verifier: stream.verify.then(|| Verifier::new(stream, worker)),
            pacer: Pacer::new(stream, worker),
            worker: (worker, stream.workers.count),
            generation,
        }
    }

    /// Length of the file at the start, if the access pattern depends on it.
    fn end(&self) -> Result<u64, Fault> {
        if self.stream.access_pattern != AccessPattern::Append
            || !touches_files(self.stream.io_engine)
        {
            return Ok(0);
        }
        let status =
            rustix::fs::stat(self.path).map_err(|errno| Fault::whole(Operation::Examine, errno))?;
        Ok(u64::try_from(status.st_size).unwrap_or(0))
    }

    /// Operations to run, starting at the end of the file if they append.
    fn order(&self, end: u64) -> Result<Order<'_>, Fault> {
        let order = Order::new(self.stream, self.worker, end, self.prepared)?;
        Ok(match self.stream.bound {
            Bound::Together(ops) => order.together(self.control.taken(), ops),
            Bound::Once | Bound::Ops(_) | Bound::Time { .. } => order,
        })
    }

    /// fsync · priming read │ barrier │ loop │ sync │ close.
    fn timeline<'p, E>(self, mut engine: E, mut slots: Slots<'p>) -> Result<WorkerResult, Fault>
    where
        E: IoEngine<'p>,
    {
        let Self { stream, worker, control, .. } = self;
        let mode = self.mode();
        let stonewall = stream.workers.stonewall;
        let slot = control.slot(worker);
        let shared = LoopShared {
            signal: control.signal(),
            moved: &slot.bytes,
            done: &slot.done,
            durable: &slot.durable,
            control: control.is_kept().then_some(control),
            finish: LoopShared::finishes(stonewall, mode),
        };
        let end = self.end()?;
        let generation = payload::first_generation();
        slot.begin(end, generation);
        let order = self.order(end)?;
        let config = self.config(generation, &mut slots);
        let mut drive = IoLoop::new(stream, mode, shared, slots, config, E::QUEUES);
        if stream.open.fsync {
            engine.make_durable(SyncCall::Fsync, (0, 0))?;
        }
        if stream.open.read_first_block && mode.reads() {
            let len = usize::try_from(stream.block_size.0).unwrap_or(usize::MAX);
            drive.prime(&mut engine, len)?;
            engine.rewind()?;
        }

        let refused = engine.would_block();
        control.arrive()?;

        let before = Usage::of_this_thread();
        let result = drive.run(&mut engine, order)?;
        if result.complete && stonewall != Stonewall::Off {
            control.stop();
        }
        let synced = match stream.end_sync {
            EndSync::None => result.ended,
            EndSync::Fsync | EndSync::Fdatasync => {
                let data = stream.end_sync == EndSync::Fdatasync;
                let call = if data { SyncCall::Fdatasync } else { SyncCall::Fsync };
                engine.make_durable(call, (0, 0))?;
                slot.all_durable();
                let synced = now();
                control.persist()?;
                synced
            }
        };
        let would_block = engine.would_block() - refused;
        engine.close()?;
        let closed = now();
        let usage = Usage::of_this_thread().since(before);
        slot.end(closed);
        Ok(WorkerResult {
            worker,
            started: result.started,
            loop_time: result.counted_until - result.started,
            uncounted_time: result.ended - result.counted_until,
            end_sync_time: synced - result.ended,
            close_time: closed - synced,
            read: result.read,
            written: result.written,
            uncounted: result.uncounted,
            eagain_reads: model::Ops(would_block),
            unexpected: model::Ops(0),
            ticked: None,
            user_time: usage.user,
            system_time: usage.system,
            voluntary_switches: usage.voluntary,
            involuntary_switches: usage.involuntary,
            latencies: result.latencies,
            series: result.series,
        })
    }
}
