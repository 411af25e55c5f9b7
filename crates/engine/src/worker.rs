//! Worker of a stream: from opening its file to closing it.
//!
//! A match on the stream selects the engine as a type; the loop is compiled once per engine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use model::{
    Nanos, Ops,
    phase::{
        AccessPattern, Bound, EndSync, FileCreation, FileSharing, IoEngineKind, Pace, Stream,
        SyncCall, WorkLimit, WorkerResult,
    },
};

use crate::{
    affinity,
    buffer::{Pool, Slots},
    clock::now,
    counter::Counter,
    driver::{Ended, Seat, WorkerLoop},
    error::{Failure, Fault, Operation},
    flow::FlowShare,
    io::{
        AccessMode, Aio, Bytewise, Copy, IoEngine, Mmap, Names, Null, Offset, PassCalls, PassPoint,
        Position, Ring, Several, SlotMemory, Space, Stdio, Update, Vector, depth,
        failure_of_several, is_complete, updates,
    },
    io_loop::{self, IoLoop, LoopConfig, Observer, Queue},
    operation_log::OperationLog,
    pace::Pacer,
    patterns::{Order, Prepared},
    payload::{self, PayloadWriter, Verifier},
};

/// Work of one worker.
#[derive(Clone, Copy)]
pub(crate) struct Assignment<'a> {
    /// Stream to run.
    pub(crate) stream: &'a Stream,
    /// Place of the worker.
    pub(crate) seat: &'a Seat<'a>,
    /// Data prepared for its access pattern.
    pub(crate) prepared: &'a Prepared,
    /// Files of the worker.
    pub(crate) paths: &'a [PathBuf],
}

impl<'a> Assignment<'a> {
    /// Opens the file and runs the loop in the calling thread.
    pub(crate) fn perform(self) -> Result<WorkerResult, Failure> {
        if self.stream.open.creation == FileCreation::Complete {
            let (stream, paths) = completed(self.stream, self.paths);
            return Assignment { stream: &stream, paths: &paths, ..self }.perform();
        }
        let Self { stream, seat, paths, .. } = self;
        let (worker, path, mode) = (seat.worker, &*paths[0], self.mode());
        if stream.pace != Pace::Free {
            affinity::wake_exactly();
        }
        // Created before the engine and dropped after it, because the engine may hold slots until
        // its end.
        let pool = Pool::new(stream, mode, depth(stream.io_engine));
        let mut pool = pool.map_err(|fault| self.failure(fault))?;
        let (base, len) = pool.region();
        let slots = pool.slots();
        let of = stream.clone();
        match stream.io_engine {
            IoEngineKind::Offset => self.each(slots, move |path| Offset::open(&of, path, mode)),
            IoEngineKind::Position if updates(stream) => {
                self.run(Update::open(stream, path, mode), slots)
            }
            IoEngineKind::Position => self.each(slots, move |path| Position::open(&of, path, mode)),
            IoEngineKind::Bytewise => self.run(Bytewise::open(stream, path, mode), slots),
            IoEngineKind::Stdio => self.run(Stdio::open(stream, path, mode), slots),
            IoEngineKind::Vector(flags) => {
                self.each(slots, move |path| Vector::open(&of, flags, path, mode))
            }
            IoEngineKind::Mmap(advice) => {
                self.each(slots, move |path| Mmap::open(&of, advice, path, mode))
            }
            IoEngineKind::Ring(ring) => {
                let area = SlotMemory { base, len, slots: slots.len() };
                self.run(Ring::open(stream, ring, paths, mode, area, worker), slots)
            }
            IoEngineKind::Aio(aio) => {
                let count = slots.len();
                self.run(Aio::open(stream, aio, paths, mode, count), slots)
            }
            IoEngineKind::Copy(call) => self.run(Copy::open(stream, call, path, mode), slots),
            IoEngineKind::Space(call) => {
                self.each(slots, move |path| Space::open(&of, call, path, mode))
            }
            IoEngineKind::Name(call) => self.run(Ok(Names::new(stream, call, paths)), slots),
            IoEngineKind::Null => self.run(Ok(Null), slots),
        }
    }

    /// Runs the loop with one engine per file.
    fn each<'p, E: IoEngine<'p> + 'static>(
        self,
        slots: Slots<'p>,
        open: impl Fn(&Path) -> Result<E, Fault> + 'static,
    ) -> Result<WorkerResult, Failure> {
        match self.stream.files.several() {
            None => self.run(open(&self.paths[0]), slots),
            Some(files) => self.run(Several::open(self.paths.to_vec(), files.open, open), slots),
        }
    }

    #[cold]
    fn failure(&self, fault: Fault) -> Failure {
        if self.stream.files.several().is_none() {
            return fault.of_stream(self.stream, &self.paths[0]);
        }
        let Failure { fault, path } = failure_of_several(fault, self.paths);
        fault.of_stream(self.stream, &path)
    }

    fn mode(&self) -> AccessMode {
        AccessMode::of(self.stream, self.seat.worker)
    }

    fn config(
        &self,
        generation: u64,
        slots: &mut Slots<'_>,
        log: Option<Box<OperationLog>>,
    ) -> LoopConfig {
        let Self { stream, seat, .. } = *self;
        let worker = seat.worker;
        let writes = self.mode().writes();
        let verifies = stream.verify || stream.verify_backlog.is_some();
        LoopConfig {
            writer: writes.then(|| PayloadWriter::new(stream, worker, slots)).flatten(),
            observer: Observer::new(verifies.then(|| Verifier::new(stream, worker)), log),
            pacer: Pacer::new(stream, worker),
            flow: (seat.flows.zip(stream.flow))
                .map(|(flows, flow)| FlowShare::new(Arc::clone(flows), flow)),
            worker: (worker, stream.workers.count),
            generation,
            pass: PassCalls::new(stream, worker, self.paths, self.mode())
                .filter(PassCalls::between_passes)
                .map(Box::new),
        }
    }

    /// Length of the file at the start, if the access pattern depends on it.
    fn end(&self) -> Result<u64, Fault> {
        if self.stream.access_pattern != AccessPattern::Append || !self.stream.moves() {
            return Ok(0);
        }
        let status = rustix::fs::stat(&self.paths[0])
            .map_err(|errno| Fault::whole(Operation::Examine, errno))?;
        Ok(u64::try_from(status.st_size).unwrap_or(0))
    }

    /// Operations to run, starting at the end of the file if they append.
    fn order(&self, end: u64) -> Result<Order<'a>, Fault> {
        let order = Order::new(self.stream, self.seat.worker, end, self.prepared)?;
        Ok(match self.stream.bound {
            Bound::Together(ops) => order.together(self.seat.control.taken(), ops),
            Bound::Once
            | Bound::Ops(_)
            | Bound::Amount(_)
            | Bound::Time { .. }
            | Bound::Deadline(_) => order,
        })
    }

    fn calls(&self) -> Option<PassCalls> {
        PassCalls::new(self.stream, self.seat.worker, self.paths, self.mode())
    }

    /// Runs the loop with this engine.
    fn run<'p, E: IoEngine<'p>>(
        self,
        engine: Result<E, Fault>,
        slots: Slots<'p>,
    ) -> Result<WorkerResult, Failure> {
        let prepared = engine.and_then(|engine| self.prepare(engine, slots));
        let (work, counter) = prepared.map_err(|fault| self.failure(fault))?;
        self.seat.run(work, counter)
    }

    /// Prepares the order and the loop, and runs the untimed fsync and read of the first block.
    fn prepare<'p, E: IoEngine<'p>>(
        self,
        mut engine: E,
        mut slots: Slots<'p>,
    ) -> Result<(StreamLoop<'a, 'p, E>, Counter<'a>), Fault> {
        let Self { stream, seat, .. } = self;
        let mode = self.mode();
        let end = self.end()?;
        let generation = payload::first_generation();
        seat.control.slot(seat.slot).begin(end, generation);
        let order = self.order(end)?;
        let log = OperationLog::new(stream, seat.worker, E::QUEUES)?;
        let config = self.config(generation, &mut slots, log);
        let open = config.pacer.open();
        let counter = Counter::new(
            seat.control,
            seat.slot,
            io_loop::limits(stream, mode, open),
            io_loop::latencies(stream, mode, open, E::QUEUES),
        );
        let mut io = IoLoop::new(stream, mode, slots, config);
        // Dirty pages cannot be dropped.
        if stream.open.fsync {
            engine.make_durable(SyncCall::Fsync, (0, 0))?;
        }
        if let Some(calls) = self.calls() {
            engine.begin_pass(&calls, PassPoint::Opened)?;
        }
        if stream.open.read_first_block && mode.reads() {
            let len = usize::try_from(stream.block_size.0).unwrap_or(usize::MAX);
            io.prime(&mut engine, len)?;
            engine.rewind()?;
        }
        let queue = Queue::new(if E::QUEUES { io.depth() } else { 0 }, stream.io_engine);
        let would_block = engine.would_block();
        let work =
            StreamLoop { assignment: self, io, queue, order, engine: Some(engine), would_block };
        Ok((work, counter))
    }
}

/// Work of a worker with [`FileCreation::Complete`], and the files that it creates.
fn completed(stream: &Stream, paths: &[PathBuf]) -> (Stream, Vec<PathBuf>) {
    let mut own = stream.clone();
    let missing = (0..paths.len()).filter(|file| !is_complete(stream, &paths[*file]));
    let missing: Vec<usize> = missing.collect();
    if let FileSharing::Several(files) = &mut own.files {
        files.names = missing.iter().map(|file| files.names[*file].clone()).collect();
    }
    if !missing.is_empty() {
        own.open.creation = FileCreation::Fresh;
        return (own, missing.into_iter().map(|file| paths[file].clone()).collect());
    }
    own.files = FileSharing::One(String::new());
    own.open.creation = FileCreation::Existing;
    own.bound = Bound::Amount(WorkLimit { ops: 0, ..WorkLimit::UNLIMITED });
    own.end_sync = EndSync::None;
    own.file_handling = None;
    (own, paths.to_vec())
}

/// Prepared worker.
struct StreamLoop<'a, 'p, E> {
    assignment: Assignment<'a>,
    io: IoLoop<'p>,
    queue: Queue<'p>,
    order: Order<'a>,
    // Closed at the end.
    engine: Option<E>,
    // Reads repeated after EAGAIN: before the loop, and at the end those in the loop.
    would_block: u64,
}

impl<'p, E: IoEngine<'p>> StreamLoop<'_, 'p, E> {
    /// After the loop: continues up to a common number of operations if a deadline ended the loop.
    #[cold]
    fn at_deadline(&mut self, counter: &mut Counter<'_>) -> Result<bool, Failure> {
        let agreed = counter.at_deadline(counter.done(), !counter.over);
        let Some(largest) = agreed.map_err(|fault| self.assignment.failure(fault))? else {
            return Ok(false);
        };
        self.order.limit(largest.saturating_sub(counter.done()));
        self.queue.resume();
        Ok(true)
    }

    fn close(&mut self, ended: Nanos) -> Result<Ended, Fault> {
        let Assignment { stream, seat, .. } = self.assignment;
        let mut engine = self.engine.take().expect("closed once");
        let synced = match stream.end_sync.call() {
            None => ended,
            Some(call) => {
                engine.make_durable(call, (0, 0))?;
                seat.control.slot(seat.slot).all_durable();
                let synced = now();
                seat.control.persist()?;
                synced
            }
        };
        if let Some(calls) = self.assignment.calls() {
            engine.begin_pass(&calls, PassPoint::Ended)?;
        }
        self.would_block = engine.would_block() - self.would_block;
        engine.close()?;
        Ok(Ended { synced, closed: now() })
    }
}

impl<'p, E: IoEngine<'p>> WorkerLoop for StreamLoop<'_, 'p, E> {
    type Error = Failure;

    fn start(&mut self) -> Nanos {
        self.io.start()
    }

    #[inline(always)]
    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, Failure> {
        let Self { io, queue, order, .. } = self;
        let engine = self.engine.as_mut().expect("closed at the end");
        let advanced = if E::QUEUES {
            io.turn(counter, queue, engine, order)
        } else {
            io.one(counter, engine, order)
        };
        match advanced {
            Ok(true) => Ok(true),
            Ok(false) => self.at_deadline(counter),
            Err(fault) => Err(self.assignment.failure(fault)),
        }
    }

    fn finish(&mut self, ended: Nanos) -> Result<Ended, Failure> {
        self.io.leave_flow();
        self.close(ended).map_err(|fault| self.assignment.failure(fault))
    }

    fn report(mut self, result: &mut WorkerResult) -> Result<(), Failure> {
        result.eagain_reads = Ops(self.would_block);
        if let Some(log) = self.io.take_log() {
            let ended = result.started + result.loop_time + result.uncounted_time;
            result.unlogged = Ops(log.write(ended)?);
        }
        Ok(())
    }
}
