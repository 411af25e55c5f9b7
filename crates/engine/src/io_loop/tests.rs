use std::{path::Path, time::Duration};

use model::phase::{
    Arrivals, Direction, IoEngineKind, Pace, Rate, SyncCall, SyncEvery, SyncInterval,
};
use rustix::io::Errno;
use tempfile::TempDir;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use model::{
    Bytes,
    phase::{Stonewall, WorkerResult},
};

use super::*;
use crate::{
    EngineError, Operation,
    barrier::{ABORT, ControlBlock, STOP},
    buffer::Pool,
    clock::Usage,
    io::{
        Completion, IoFault, Null, Offset,
        conformance::{FailAt, Late, stream},
    },
    pace::Pacer,
    patterns::Prepared,
    payload::{PayloadWriter, Verifier},
};

const RECORD: Bytes = Bytes(4096);

/// Loop that has ended.
#[derive(Debug)]
struct Looped {
    started: Nanos,
    ended: Nanos,
    complete: bool,
    result: WorkerResult,
}

/// Runs the loop of worker 0 of a stream with a new pool; `finish` as in [`Limits`].
fn run_loop<'p, E: IoEngine<'p>>(
    plan: &Stream,
    control: &ControlBlock,
    finish: bool,
    engine: &mut E,
    pool: &'p mut Pool,
) -> Result<Looped, Fault> {
    let mode = AccessMode::of(plan, 0);
    let prepared = Prepared::new(plan).unwrap();
    let mut order = Order::new(plan, 0, 0, &prepared).unwrap();
    let mut slots = pool.slots();
    let config = LoopConfig {
        writer: PayloadWriter::new(plan, 0, &mut slots).filter(|_| mode.writes()),
        observer: Observer::new(plan.verify.then(|| Verifier::new(plan, 0)), None),
        pacer: Pacer::new(plan, 0),
        flow: None,
        worker: (0, 1),
        generation: 0,
        pass: None,
    };
    let open = config.pacer.open();
    let limits = Limits { finish, ..limits(plan, mode, open) };
    let latencies = latencies(plan, mode, open, E::QUEUES);
    let mut counter = Counter::new(control, 0, limits, latencies);
    let mut io = IoLoop::new(plan, mode, slots, config);
    let mut queue = Queue::new(io.depth(), plan.io_engine);
    counter.start(io.start());
    while match E::QUEUES {
        true => io.turn(&mut counter, &mut queue, engine, &mut order)?,
        false => io.one(&mut counter, engine, &mut order)?,
    } {}
    let (ended, complete) = (counter.clock, counter.complete);
    let result = counter.finish(0, Usage::default());
    Ok(Looped { started: result.started, ended, complete, result })
}

impl std::ops::Deref for Looped {
    type Target = WorkerResult;

    fn deref(&self) -> &WorkerResult {
        &self.result
    }
}

impl Looped {
    fn counted_until(&self) -> Nanos {
        self.started + self.loop_time
    }
}

fn control() -> ControlBlock {
    ControlBlock::new(1).unwrap()
}

fn pool(plan: &Stream, depth: usize) -> Pool {
    Pool::new(plan, AccessMode::of(plan, 0), depth.try_into().unwrap()).unwrap()
}

fn writes(records: u64) -> Stream {
    stream(IoEngineKind::Null, Direction::Write, records)
}

/// Raises a signal during operation `at`.
struct SignalAt<'s, E> {
    inner: E,
    at: u64,
    signal: &'s AtomicU32,
    bits: u32,
    seen: u64,
}

impl<'p, E: IoEngine<'p>> IoEngine<'p> for SignalAt<'_, E> {
    const QUEUES: bool = E::QUEUES;

    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        if self.seen == self.at {
            self.signal.store(self.bits, Relaxed);
        }
        self.seen += 1;
        self.inner.submit(op)
    }

    fn reap(&mut self, wait: Wait) -> Result<bool, IoFault> {
        self.inner.reap(wait)
    }

    fn next(&mut self) -> Option<Completion<'p>> {
        self.inner.next()
    }

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        self.inner.make_durable(call, range)
    }

    fn close(self) -> Result<(), Fault> {
        self.inner.close()
    }
}

fn signaled(bits: u32, finish: bool, depth: Option<usize>) -> Result<Looped, Fault> {
    let (shared, plan) = (control(), writes(100));
    let mut pool = pool(&plan, depth.unwrap_or(1));
    let signal = shared.signal();
    match depth {
        None => {
            let mut engine = SignalAt { inner: Null, at: 40, signal, bits, seen: 0 };
            run_loop(&plan, &shared, finish, &mut engine, &mut pool)
        }
        Some(depth) => {
            let inner = Late::new(Null, depth);
            let mut engine = SignalAt { inner, at: 40, signal, bits, seen: 0 };
            run_loop(&plan, &shared, finish, &mut engine, &mut pool)
        }
    }
}

fn ops(result: &Looped) -> u64 {
    result.read.ops.0 + result.written.ops.0
}

#[test]
fn an_undisturbed_loop_counts_everything() {
    let result = signaled(0, false, None).unwrap();
    assert_eq!((result.written.ops.0, result.written.bytes), (100, Bytes(409_600)));
    assert_eq!((result.uncounted, result.complete), (Bytes(0), true));
    assert_eq!(result.latencies.write.count(), 100);
    assert_eq!(result.series.ops.iter().sum::<u64>(), 100);
    assert!(result.started <= result.counted_until() && result.counted_until() == result.ended);
}

#[test]
fn service_times_add_up_to_the_loop_time() {
    // One clock read per operation: the end of one is the start of the next.
    let result = signaled(0, false, None).unwrap();
    let mean = result.latencies.write.mean().unwrap().0;
    let elapsed = (result.ended - result.started).0;
    assert_eq!(mean, elapsed / 100);
}

#[test]
fn an_operation_in_flight_at_a_stop_does_not_count() {
    let result = signaled(STOP, false, None).unwrap();
    assert_eq!((ops(&result), result.uncounted), (40, RECORD));
    assert_eq!((result.latencies.write.count(), result.complete), (40, false));
    assert_eq!(result.counted_until(), result.ended);
}

#[test]
fn a_worker_that_finishes_after_a_stop_is_not_counted() {
    let result = signaled(STOP, true, None).unwrap();
    assert_eq!((ops(&result), result.uncounted), (40, Bytes(60 * 4096)));
    assert!(result.counted_until() <= result.ended);
}

#[test]
fn queued_operations_at_a_stop_do_not_count() {
    let stopped = signaled(STOP, false, Some(8)).unwrap();
    assert!(ops(&stopped) <= 40, "{stopped:?}");
    // Submitted, awaited, and not counted: at most a full queue.
    assert!((1..=8).contains(&(stopped.uncounted.0 / 4096)), "{stopped:?}");
    let finished = signaled(STOP, true, Some(8)).unwrap();
    assert_eq!(finished.written.bytes + finished.uncounted, Bytes(409_600));
}

#[test]
fn an_abort_ends_the_loop() {
    assert_eq!(signaled(ABORT, true, None).unwrap_err(), Fault::Aborted);
    assert_eq!(signaled(ABORT | STOP, true, Some(3)).unwrap_err(), Fault::Aborted);
}

#[test]
fn only_writers_continue_after_a_stop() {
    let continues = |stonewall, mode| {
        let mut plan = writes(1);
        plan.workers.stonewall = stonewall;
        limits(&plan, mode, false).finish
    };
    assert!(continues(Stonewall::Finish, AccessMode::Write));
    assert!(!continues(Stonewall::Finish, AccessMode::Read));
    assert!(!continues(Stonewall::Finish, AccessMode::Both));
    assert!(!continues(Stonewall::Stop, AccessMode::Write));
}

/// Writes blocks with headers through a delayed engine, reads them back, and verifies them.
fn late_round_trip(directory: &Path, depth: usize, records: u64) {
    let shared = control();
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, records);
    plan.access_pattern = model::phase::AccessPattern::Backward;
    let path = directory.join("f");
    let mut memory = pool(&plan, depth);
    let mut engine = Late::new(Offset::open(&plan, &path, AccessMode::Write).unwrap(), depth);
    let result = run_loop(&plan, &shared, false, &mut engine, &mut memory).unwrap();
    assert_eq!((ops(&result), result.latencies.write.count()), (records, records));
    assert_eq!(result.latencies.submit.count(), records);
    assert_eq!(result.latencies.complete.count(), records);
    assert_eq!(engine.deepest as u64, records.min(depth as u64), "the queue was filled");
    assert_eq!(shared.bytes().0, records * 4096);
    assert_eq!(shared.done().0, records);

    (plan.direction, plan.verify) = (Direction::Read, true);
    let mut memory = pool(&plan, depth);
    let mut engine = Late::new(Offset::open(&plan, &path, AccessMode::Read).unwrap(), depth);
    let result = run_loop(&plan, &shared, false, &mut engine, &mut memory).unwrap();
    assert_eq!(result.read.ops.0, records);
}

/// A full batch does not cause waiting: the queue is filled batch by batch.
#[test]
fn small_batches_fill_a_deep_queue() {
    let (shared, plan) = (control(), writes(300));
    for (depth, batch) in [(7, 1), (8, 3), (32, 16)] {
        let mut memory = pool(&plan, depth);
        let mut engine = Late { batch, ..Late::new(Null, depth) };
        let result = run_loop(&plan, &shared, false, &mut engine, &mut memory).unwrap();
        assert_eq!((ops(&result), engine.deepest), (300, depth));
    }
}

#[test]
fn engines_with_late_completions_are_kept_full_and_lose_nothing() {
    let directory = TempDir::new().unwrap();
    late_round_trip(directory.path(), 1, 50);
    late_round_trip(directory.path(), 7, 50);
    late_round_trip(directory.path(), 2000, 3000);
}

#[test]
fn a_sync_covers_all_earlier_writes() {
    /// Records the sync calls and the number of operations before each.
    struct Noting<'p> {
        inner: Late<'p, Null>,
        submitted: u64,
        syncs: Vec<(u64, (u64, u64))>,
    }
    impl<'p> IoEngine<'p> for Noting<'p> {
        const QUEUES: bool = true;
        fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
            let answer = self.inner.submit(op);
            self.submitted += u64::from(matches!(answer, Submitted::Queued));
            answer
        }
        fn reap(&mut self, wait: Wait) -> Result<bool, IoFault> {
            self.inner.reap(wait)
        }
        fn next(&mut self) -> Option<Completion<'p>> {
            self.inner.next()
        }
        fn make_durable(&mut self, _: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
            assert!(self.inner.held.is_empty(), "something was in flight");
            self.syncs.push((self.submitted, range));
            Ok(())
        }
        fn close(self) -> Result<(), Fault> {
            Ok(())
        }
    }
    let shared = control();
    let mut plan = writes(10);
    let after = SyncInterval::Bytes(Bytes(3 * 4096));
    plan.sync_every = Some(SyncEvery { after, call: SyncCall::Fdatasync, before_next: false });
    let mut memory = pool(&plan, 4);
    let mut engine = Noting { inner: Late::new(Null, 4), submitted: 0, syncs: Vec::new() };
    let result = run_loop(&plan, &shared, false, &mut engine, &mut memory).unwrap();
    let range = |records: u64| (records * 4096, 3 * 4096);
    assert_eq!(engine.syncs, [(3, range(0)), (6, range(3)), (9, range(6))]);
    assert_eq!(result.latencies.flush.count(), 3);
    assert_eq!(shared.slot(0).counts().1, 9);
}

#[test]
fn the_runtime_counts_from_the_end_of_the_ramp_time() {
    let shared = control();
    let mut plan = writes(4);
    plan.bound = Bound::Time { ramp: Nanos(200_000_000), run: Nanos(600_000_000) };
    plan.pace = Pace::Limit(Rate::Ops(100));
    let mut memory = pool(&plan, 1);
    let before = now();
    let result = run_loop(&plan, &shared, false, &mut Null, &mut memory).unwrap();
    // 80 operations are scheduled in 800 ms, and the first 20 do not count. Slow hosts complete
    // fewer, and a host that pauses completes operations of the ramp time later.
    assert!(ops(&result) <= 75, "{result:?}");
    assert_eq!(result.latencies.write.count(), ops(&result));
    assert!(shared.done().0 > ops(&result));
    assert!(result.started >= before + Nanos(200_000_000));
    assert!(result.ended >= before + Nanos(800_000_000) && result.complete);
    assert_eq!(result.uncounted, Bytes(0));
}

/// Stalls for a time at one operation, as a device may.
struct Stall {
    at: u64,
    length: Duration,
    seen: u64,
}

impl<'p> IoEngine<'p> for Stall {
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        if self.seen == self.at {
            std::thread::sleep(self.length);
        }
        self.seen += 1;
        Submitted::Done(Completion { op, result: Ok(()) })
    }

    fn make_durable(&mut self, _: SyncCall, _: (u64, u64)) -> Result<(), Fault> {
        Ok(())
    }

    fn close(self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Runs 3000 operations at 1000 per second, with a stall of 500 ms. Returns 99th percentiles in
/// milliseconds: the latency and the service time of the open loop, and the latency of the closed
/// loop.
fn stalled() -> [f64; 3] {
    let rate = Rate::Ops(1000);
    let result = |pace| {
        let plan = Stream { pace, ..writes(3000) };
        let mut stall = Stall { at: 1000, length: Duration::from_millis(500), seen: 0 };
        run_loop(&plan, &control(), false, &mut stall, &mut pool(&plan, 1)).unwrap()
    };
    let open = result(Pace::Open { rate, arrivals: Arrivals::Constant });
    let closed = result(Pace::Limit(rate));
    let p99 = |histogram: &Histogram| histogram.quantile(0.99).unwrap().0 as f64 / 1e6;
    [p99(&open.latencies.write), p99(&open.latencies.service), p99(&closed.latencies.write)]
}

#[test]
fn an_open_loop_includes_a_stall_that_a_closed_loop_omits() {
    // 500 of 3000 operations wait for 500 ms down to 0: the 99th percentile waits 470 ms. One of
    // 3000 is slow and does not affect the other percentiles. A host may pause and add a stall.
    let expected = |[open, service, closed]: &[f64; 3]| {
        (400.0..600.0).contains(open) && *service < 100.0 && *closed < 100.0
    };
    let mut found = vec![stalled()];
    while found.len() < 3 && !found.last().is_some_and(expected) {
        found.push(stalled());
    }
    assert!(
        found.last().is_some_and(expected),
        "open loop, its service, closed loop: {found:?} ms"
    );
}

#[test]
fn an_injected_error_reports_operation_offset_file_and_cause() {
    let (shared, plan) = (control(), writes(9));
    let mut memory = pool(&plan, 1);
    let mut engine = FailAt { inner: Null, at: 3, errno: Errno::IO, seen: 0 };
    let fault = run_loop(&plan, &shared, false, &mut engine, &mut memory).unwrap_err();
    let offset = Some(3 * 4096 + 512);
    assert_eq!(fault, Fault::Os { operation: Operation::Write, offset, errno: libc::EIO });
    let error = EngineError::from(fault.of_stream(&plan, Path::new("/mnt/f.0")));
    assert_eq!(
        error.to_string(),
        "writing /mnt/f.0 at offset 12800: the device below the filesystem failed; check the \
         kernel log (dmesg)"
    );
    let EngineError::Io { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.raw_os_error(), Some(libc::EIO));
}

/// A stop at the end of the time limit, followed by a sync, ends the loop.
#[test]
fn a_worker_that_finishes_after_a_stop_ends_with_its_runtime() {
    let shared = control();
    let mut plan = writes(4);
    plan.bound = Bound::Time { ramp: Nanos(0), run: Nanos(500_000_000) };
    plan.sync_every =
        Some(SyncEvery { after: SyncInterval::Ops(1), call: SyncCall::Fsync, before_next: false });
    let stall = Stall { at: 5, length: Duration::from_millis(600), seen: 0 };
    let signal = shared.signal();
    let mut engine = SignalAt { inner: stall, at: 2, signal, bits: STOP, seen: 0 };
    let result = run_loop(&plan, &shared, true, &mut engine, &mut pool(&plan, 1)).unwrap();
    assert_eq!((ops(&result), result.uncounted), (2, Bytes(4 * 4096)));
}

/// Operations that were scheduled before the end and had to wait are still run. Their latency
/// begins at the scheduled start.
#[test]
fn an_open_loop_runs_operations_scheduled_before_its_end() {
    let mut plan = writes(4);
    plan.pace = Pace::Open { rate: Rate::Ops(200), arrivals: Arrivals::Constant };
    plan.bound = Bound::Time { ramp: Nanos(0), run: Nanos(500_000_000) };
    // The 50th operation ends about 250 ms after the end of the runtime.
    let mut stall = Stall { at: 49, length: Duration::from_millis(500), seen: 0 };
    let result = run_loop(&plan, &control(), false, &mut stall, &mut pool(&plan, 1)).unwrap();
    assert_eq!(ops(&result), 100, "one every 5 ms");
    assert!(result.latencies.write.quantile(0.75).unwrap() > Nanos(300_000_000));
    let late = Stall { at: 0, length: Duration::from_millis(1250), seen: 0 };
    let result = run_loop(&plan, &control(), false, &mut { late }, &mut pool(&plan, 1)).unwrap();
    assert_eq!(ops(&result), 1, "at most the runtime again");
}

#[test]
fn a_ramp_time_without_completed_operations_is_not_counted() {
    let mut plan = writes(4);
    plan.pace = Pace::Open { rate: Rate::Ops(1), arrivals: Arrivals::Constant };
    plan.bound = Bound::Time { ramp: Nanos(300_000_000), run: Nanos(400_000_000) };
    let before = now();
    let result = run_loop(&plan, &control(), false, &mut Null, &mut pool(&plan, 1)).unwrap();
    assert_eq!(ops(&result), 0, "the first is due at the start, the second after the end");
    assert!(result.started >= before + Nanos(300_000_000));
    let end = before + Nanos(700_000_000);
    assert!(result.counted_until() >= result.started && result.ended >= end);
}

/// Pauses begin when nothing is in flight, also if a queue has several operations.
#[test]
fn a_pause_follows_the_completion_of_all_operations() {
    let mut plan = writes(10);
    let pause = Nanos(20_000_000);
    plan.pace =
        Pace::Think { ops: 4, pause, spin: Nanos(5_000_000), completed: false, every: Nanos(0) };
    let before = now();
    let mut engine = Late::new(Null, 4);
    let queued = run_loop(&plan, &control(), false, &mut engine, &mut pool(&plan, 4)).unwrap();
    assert_eq!(ops(&queued), 10);
    assert!(queued.ended >= before + Nanos(40_000_000), "pauses after 4 and 8 operations");
    // An operation in flight during a pause would last as long.
    let median = queued.latencies.write.quantile(0.5).unwrap();
    assert!(median < pause, "{median}");
    let alone = run_loop(&plan, &control(), false, &mut Null, &mut pool(&plan, 1)).unwrap();
    assert_eq!(ops(&alone), 10);
    assert!(alone.loop_time >= Nanos(40_000_000));
}

#[test]
fn rates_by_direction_determine_the_number_of_reads_and_writes() {
    let (reads, writes) = (Rate::Ops(200), Rate::Ops(500));
    for queue in [false, true] {
        let mut plan = stream(IoEngineKind::Null, Direction::Mixed(0.5), 400);
        plan.access_pattern = model::phase::AccessPattern::Random;
        plan.pace = Pace::OpenByDirection { reads, writes, arrivals: Arrivals::Constant };
        plan.bound = Bound::Time { ramp: Nanos(0), run: Nanos(500_000_000) };
        let result = if queue {
            let mut memory = pool(&plan, 4);
            run_loop(&plan, &control(), false, &mut Late::new(Null, 4), &mut memory)
        } else {
            run_loop(&plan, &control(), false, &mut Null, &mut pool(&plan, 1))
        };
        let result = result.unwrap();
        let (read, written) = (result.read.ops.0, result.written.ops.0);
        // The schedule starts a little before the time limit, so one more operation may be due.
        assert!((100..=101).contains(&read) && (250..=251).contains(&written), "{queue}");
        let Latencies { service, service_read, service_write, .. } = &result.latencies;
        let counts = [service, service_read, service_write].map(model::Histogram::count);
        assert_eq!(counts, [read + written, read, written]);
    }
}
