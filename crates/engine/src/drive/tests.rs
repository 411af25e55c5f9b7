use std::{path::Path, time::Duration};

use model::phase::{Amount, Arrivals, Direction, FlushEvery, Interface, Pace, Rate};
use rustix::io::Errno;
use tempfile::TempDir;

use std::sync::atomic::{AtomicU32, AtomicU64};

use model::phase::Stonewall;

use super::*;
use crate::{
    EngineError, Operation,
    buffer::Pool,
    io::{
        Completion, IoFault, Null, Offset,
        conformance::{FailAt, Late, stream},
    },
    pace::Pacer,
    patterns::Prepared,
    payload::{Check, Stamp},
};

const RECORD: Bytes = Bytes(4096);

/// What loops share in a test.
#[derive(Default)]
struct Shared {
    signal: AtomicU32,
    moved: AtomicU64,
    done: AtomicU64,
    durable: AtomicU64,
}

impl Shared {
    fn around(&self, finish: bool) -> Surroundings<'_> {
        let Self { signal, moved, done, durable } = self;
        Surroundings { signal, moved, done, durable, board: None, finish }
    }
}

/// The loop of worker 0 of a stream, over a pool made for it.
fn drive<'p, E: IoEngine<'p>>(
    plan: &Stream,
    shared: &Shared,
    finish: bool,
    engine: &mut E,
    pool: &'p mut Pool,
) -> Result<Tally, Fault> {
    let purpose = Purpose::of(plan, 0);
    let prepared = Prepared::new(plan).unwrap();
    let order = Order::new(plan, 0, 0, &prepared).unwrap();
    let mut slots = pool.slots();
    let manner = Manner {
        stamp: Stamp::new(plan, 0, &mut slots).filter(|_| purpose.writes()),
        check: plan.verify.then(|| Check::new(plan, 0)),
        pacer: Pacer::new(plan, 0),
        worker: (0, 1),
        generation: 0,
    };
    Drive::new(plan, purpose, shared.around(finish), slots, manner, E::QUEUES).run(engine, order)
}

fn pool(plan: &Stream, depth: usize) -> Pool {
    Pool::new(plan, Purpose::of(plan, 0), depth.try_into().unwrap()).unwrap()
}

fn writes(records: u64) -> Stream {
    stream(Interface::Null, Direction::Write, records)
}

/// Raises a signal while operation `at` is in progress.
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

    fn flush(&mut self, call: FlushCall, range: (u64, u64)) -> Result<(), Fault> {
        self.inner.flush(call, range)
    }

    fn close(self) -> Result<(), Fault> {
        self.inner.close()
    }
}

fn signaled(bits: u32, finish: bool, depth: Option<usize>) -> Result<Tally, Fault> {
    let (shared, plan) = (Shared::default(), writes(100));
    let mut pool = pool(&plan, depth.unwrap_or(1));
    let signal = &shared.signal;
    match depth {
        None => {
            let mut engine = SignalAt { inner: Null, at: 40, signal, bits, seen: 0 };
            drive(&plan, &shared, finish, &mut engine, &mut pool)
        }
        Some(depth) => {
            let inner = Late::new(Null, depth);
            let mut engine = SignalAt { inner, at: 40, signal, bits, seen: 0 };
            drive(&plan, &shared, finish, &mut engine, &mut pool)
        }
    }
}

fn ops(tally: &Tally) -> u64 {
    tally.read.ops.0 + tally.written.ops.0
}

#[test]
fn an_undisturbed_loop_counts_everything() {
    let tally = signaled(0, false, None).unwrap();
    assert_eq!((tally.written.ops.0, tally.written.bytes), (100, Bytes(409_600)));
    assert_eq!((tally.uncounted, tally.complete), (Bytes(0), true));
    assert_eq!(tally.latencies.write.count(), 100);
    assert_eq!(tally.series.ops.iter().sum::<u64>(), 100);
    assert!(tally.started <= tally.counted_until && tally.counted_until == tally.ended);
}

#[test]
fn the_service_times_add_up_to_the_loop() {
    // One clock read an operation: where one ends the next begins, and nothing falls between.
    let tally = signaled(0, false, None).unwrap();
    let mean = tally.latencies.write.mean().unwrap().0;
    let elapsed = (tally.ended - tally.started).0;
    assert_eq!(mean, elapsed / 100);
}

#[test]
fn the_operation_in_progress_at_the_stop_does_not_count() {
    let tally = signaled(STOP, false, None).unwrap();
    assert_eq!((ops(&tally), tally.uncounted), (40, RECORD));
    assert_eq!((tally.latencies.write.count(), tally.complete), (40, false));
    assert_eq!(tally.counted_until, tally.ended);
}

#[test]
fn a_finishing_worker_goes_on_uncounted() {
    let tally = signaled(STOP, true, None).unwrap();
    assert_eq!((ops(&tally), tally.uncounted), (40, Bytes(60 * 4096)));
    assert!(tally.counted_until <= tally.ended);
}

#[test]
fn what_is_in_flight_at_the_stop_does_not_count() {
    let stopped = signaled(STOP, false, Some(8)).unwrap();
    assert!(ops(&stopped) <= 40, "{stopped:?}");
    // Submitted, waited for, and not counted: at most a full queue.
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
fn only_writers_finish() {
    assert!(Surroundings::finishes(Stonewall::Finish, Purpose::Write));
    assert!(!Surroundings::finishes(Stonewall::Finish, Purpose::Read));
    assert!(!Surroundings::finishes(Stonewall::Finish, Purpose::Both));
    assert!(!Surroundings::finishes(Stonewall::Stop, Purpose::Write));
}

/// Writes records with headers through a late engine and reads them back, checked.
fn late_round_trip(directory: &Path, depth: usize, records: u64) {
    let shared = Shared::default();
    let mut plan = stream(Interface::Offset, Direction::Write, records);
    plan.access = model::phase::Access::Backward;
    let path = directory.join("f");
    let mut memory = pool(&plan, depth);
    let mut engine = Late::new(Offset::open(&plan, &path, Purpose::Write).unwrap(), depth);
    let tally = drive(&plan, &shared, false, &mut engine, &mut memory).unwrap();
    assert_eq!((ops(&tally), tally.latencies.write.count()), (records, records));
    assert_eq!(tally.latencies.submit.count(), records);
    assert_eq!(tally.latencies.complete.count(), records);
    assert_eq!(engine.deepest as u64, records.min(depth as u64), "the queue was filled");
    assert_eq!(shared.moved.load(Relaxed), records * 4096);
    assert_eq!(shared.done.load(Relaxed), records);

    (plan.direction, plan.verify) = (Direction::Read, true);
    let mut memory = pool(&plan, depth);
    let mut engine = Late::new(Offset::open(&plan, &path, Purpose::Read).unwrap(), depth);
    let tally = drive(&plan, &shared, false, &mut engine, &mut memory).unwrap();
    assert_eq!(tally.read.ops.0, records);
}

/// A batch that is full is no reason to wait: the queue is filled batch by batch.
#[test]
fn small_batches_fill_a_deep_queue() {
    let (shared, plan) = (Shared::default(), writes(300));
    for (depth, batch) in [(7, 1), (8, 3), (32, 16)] {
        let mut memory = pool(&plan, depth);
        let mut engine = Late { batch, ..Late::new(Null, depth) };
        let tally = drive(&plan, &shared, false, &mut engine, &mut memory).unwrap();
        assert_eq!((ops(&tally), engine.deepest), (300, depth));
    }
}

#[test]
fn engines_that_answer_late_are_kept_full_and_lose_nothing() {
    let directory = TempDir::new().unwrap();
    late_round_trip(directory.path(), 1, 50);
    late_round_trip(directory.path(), 7, 50);
    late_round_trip(directory.path(), 2000, 3000);
}

#[test]
fn a_flush_covers_all_that_was_written_before_it() {
    /// Notes which flush came after how many operations.
    struct Noting<'p> {
        inner: Late<'p, Null>,
        submitted: u64,
        flushes: Vec<(u64, (u64, u64))>,
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
        fn flush(&mut self, _: FlushCall, range: (u64, u64)) -> Result<(), Fault> {
            assert!(self.inner.held.is_empty(), "something was in flight");
            self.flushes.push((self.submitted, range));
            Ok(())
        }
        fn close(self) -> Result<(), Fault> {
            Ok(())
        }
    }
    let shared = Shared::default();
    let mut plan = writes(10);
    let after = Amount::Bytes(Bytes(3 * 4096));
    plan.flush_every = Some(FlushEvery { after, call: FlushCall::Fdatasync });
    let mut memory = pool(&plan, 4);
    let mut engine = Noting { inner: Late::new(Null, 4), submitted: 0, flushes: Vec::new() };
    let tally = drive(&plan, &shared, false, &mut engine, &mut memory).unwrap();
    let range = |records: u64| (records * 4096, 3 * 4096);
    assert_eq!(engine.flushes, [(3, range(0)), (6, range(3)), (9, range(6))]);
    assert_eq!(tally.latencies.flush.count(), 3);
    assert_eq!(shared.durable.load(Relaxed), 9);
}

#[test]
fn a_time_counts_from_its_ramp_to_its_end() {
    let shared = Shared::default();
    let mut plan = writes(4);
    plan.bound = Bound::Time { ramp: Nanos(20_000_000), run: Nanos(60_000_000) };
    plan.pace = Pace::Limit(Rate::Ops(1000));
    let mut memory = pool(&plan, 1);
    let before = now();
    let tally = drive(&plan, &shared, false, &mut Null, &mut memory).unwrap();
    // 80 operations are due in 80 ms, and those of the first 20 do not count. Slow hosts do fewer.
    assert!(ops(&tally) <= 61, "{tally:?}");
    assert_eq!(tally.latencies.write.count(), ops(&tally));
    assert!(shared.done.load(Relaxed) > ops(&tally));
    assert!(tally.started >= before + Nanos(20_000_000));
    assert!(tally.ended >= before + Nanos(80_000_000) && tally.complete);
    assert_eq!(tally.uncounted, Bytes(0));
}

/// Stands still for a while at one operation, as a device may.
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

    fn flush(&mut self, _: FlushCall, _: (u64, u64)) -> Result<(), Fault> {
        Ok(())
    }

    fn close(self) -> Result<(), Fault> {
        Ok(())
    }
}

/// 3 s at 1000 operations a second, with a stall of 500 ms in the middle: 99th percentiles of the
/// open loop (as reported, and of its service times) and of the closed loop, in milliseconds.
fn stalled() -> [f64; 3] {
    let rate = Rate::Ops(1000);
    let tally = |pace| {
        let plan = Stream { pace, ..writes(3000) };
        let mut stall = Stall { at: 1000, length: Duration::from_millis(500), seen: 0 };
        drive(&plan, &Shared::default(), false, &mut stall, &mut pool(&plan, 1)).unwrap()
    };
    let open = tally(Pace::Open { rate, arrivals: Arrivals::Constant });
    let closed = tally(Pace::Limit(rate));
    let p99 = |histogram: &Histogram| histogram.quantile(0.99).unwrap().0 as f64 / 1e6;
    [p99(&open.latencies.write), p99(&open.latencies.service), p99(&closed.latencies.write)]
}

#[test]
fn an_open_loop_shows_the_stall_that_a_closed_one_hides() {
    let [open, service, closed] = stalled();
    // 500 of 3000 operations wait, 500 ms down to 0: the 99th percentile waits 470 ms.
    assert!((400.0..600.0).contains(&open), "open loop: {open} ms");
    // One of 3000 is slow: the 99th percentile does not see it.
    assert!(service < 100.0 && closed < 100.0, "service {service} ms, closed loop {closed} ms");
}

#[test]
fn an_injected_error_names_operation_offset_file_and_cause() {
    let (shared, plan) = (Shared::default(), writes(9));
    let mut memory = pool(&plan, 1);
    let mut engine = FailAt { inner: Null, at: 3, errno: Errno::IO, seen: 0 };
    let fault = drive(&plan, &shared, false, &mut engine, &mut memory).unwrap_err();
    let offset = Some(3 * 4096 + 512);
    assert_eq!(fault, Fault::Os { operation: Operation::Write, offset, errno: libc::EIO });
    let error = fault.into_error(&plan, Path::new("/mnt/f.0"));
    assert_eq!(
        error.to_string(),
        "writing /mnt/f.0 at offset 12800: the device below the filesystem failed; look for its \
         error in the kernel log (dmesg)"
    );
    let EngineError::Io { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.raw_os_error(), Some(libc::EIO));
}

/// A stop that comes with the end of the time, and a flush after it: the loop ends all the same.
#[test]
fn a_finishing_worker_ends_with_its_time() {
    let shared = Shared::default();
    let mut plan = writes(4);
    plan.bound = Bound::Time { ramp: Nanos(0), run: Nanos(20_000_000) };
    plan.flush_every = Some(FlushEvery { after: Amount::Ops(1), call: FlushCall::Fsync });
    let stall = Stall { at: 5, length: Duration::from_millis(30), seen: 0 };
    let signal = &shared.signal;
    let mut engine = SignalAt { inner: stall, at: 2, signal, bits: STOP, seen: 0 };
    let tally = drive(&plan, &shared, true, &mut engine, &mut pool(&plan, 1)).unwrap();
    assert_eq!((ops(&tally), tally.uncounted), (2, Bytes(4 * 4096)));
}

/// What was due before the end and had to wait is done, and counts from when it was due.
#[test]
fn an_open_loop_does_what_was_due_before_its_end() {
    let mut plan = writes(4);
    plan.pace = Pace::Open { rate: Rate::Ops(1000), arrivals: Arrivals::Constant };
    plan.bound = Bound::Time { ramp: Nanos(0), run: Nanos(100_000_000) };
    // The 50th operation ends 150 ms after the end of the time.
    let mut stall = Stall { at: 49, length: Duration::from_millis(150), seen: 0 };
    let tally = drive(&plan, &Shared::default(), false, &mut stall, &mut pool(&plan, 1)).unwrap();
    assert_eq!(ops(&tally), 100, "one for each millisecond");
    assert!(tally.latencies.write.quantile(0.75).unwrap() > Nanos(90_000_000));
    let late = Stall { at: 0, length: Duration::from_millis(250), seen: 0 };
    let tally =
        drive(&plan, &Shared::default(), false, &mut { late }, &mut pool(&plan, 1)).unwrap();
    assert_eq!(ops(&tally), 1, "no longer than the whole time again");
}

#[test]
fn a_ramp_that_nothing_ends_in_is_not_counted() {
    let mut plan = writes(4);
    plan.pace = Pace::Open { rate: Rate::Ops(10), arrivals: Arrivals::Constant };
    plan.bound = Bound::Time { ramp: Nanos(30_000_000), run: Nanos(40_000_000) };
    let before = now();
    let tally = drive(&plan, &Shared::default(), false, &mut Null, &mut pool(&plan, 1)).unwrap();
    assert_eq!(ops(&tally), 0, "the first is due at once, the second after the end");
    assert!(tally.started >= before + Nanos(30_000_000));
    assert!(tally.counted_until >= tally.started && tally.ended >= before + Nanos(70_000_000));
}
