use std::path::Path;

use model::phase::{Direction, Interface};
use rustix::io::Errno;
use tempfile::TempDir;

use super::*;
use crate::{
    EngineError, Operation,
    buffer::Pool,
    io::{
        IoFault, Null, Offset,
        conformance::{FailAt, Late, stream},
    },
    patterns::Linear,
    payload::{Checked, Plain, Stamped},
};

const RECORD: Bytes = Bytes(4096);

/// What loops share in a test.
#[derive(Default)]
struct Shared {
    signal: AtomicU32,
    progress: AtomicU64,
}

impl Shared {
    fn around(&self, finish: bool) -> Surroundings<'_> {
        Surroundings { signal: &self.signal, progress: &self.progress, finish }
    }
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
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        if self.seen == self.at {
            self.signal.store(self.bits, Relaxed);
        }
        self.seen += 1;
        self.inner.submit(op)
    }

    fn reap(&mut self, min: u32, out: &mut Completions<'p>) -> Result<(), IoFault> {
        self.inner.reap(min, out)
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        self.inner.rewind()
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.inner.sync()
    }

    fn close(self) -> Result<(), Fault> {
        self.inner.close()
    }
}

fn signaled(bits: u32, finish: bool, depth: Option<usize>) -> Result<Tally, Fault> {
    let shared = Shared::default();
    let mut pool = Pool::new(RECORD).unwrap();
    let drive = Drive::new(shared.around(finish), Kind::Write, RECORD, pool.slots());
    let order = Linear::sequential(100);
    let signal = &shared.signal;
    match depth {
        None => {
            let mut engine = SignalAt { inner: Null, at: 40, signal, bits, seen: 0 };
            drive.run(&mut engine, order, &mut Plain)
        }
        Some(depth) => {
            let inner = Late::new(Null, depth);
            let mut engine = SignalAt { inner, at: 40, signal, bits, seen: 0 };
            drive.run(&mut engine, order, &mut Plain)
        }
    }
}

#[test]
fn an_undisturbed_loop_counts_everything() {
    let tally = signaled(0, false, None).unwrap();
    assert_eq!((tally.ops, tally.bytes), (Ops(100), Bytes(409_600)));
    assert_eq!((tally.uncounted, tally.complete), (Bytes(0), true));
    assert_eq!(tally.latency.count(), 100);
    assert!(tally.started <= tally.counted_until && tally.counted_until == tally.ended);
}

#[test]
fn the_service_times_add_up_to_the_loop() {
    // One clock read an operation: where one ends the next begins, and nothing falls between.
    let tally = signaled(0, false, None).unwrap();
    let mean = tally.latency.mean().unwrap().0;
    let elapsed = (tally.ended - tally.started).0;
    assert_eq!(mean, elapsed / 100);
}

#[test]
fn the_operation_in_progress_at_the_stop_does_not_count() {
    let tally = signaled(STOP, false, None).unwrap();
    assert_eq!((tally.ops, tally.uncounted), (Ops(40), RECORD));
    assert_eq!((tally.latency.count(), tally.complete), (40, false));
    assert_eq!(tally.counted_until, tally.ended);
}

#[test]
fn a_finishing_worker_goes_on_uncounted() {
    let tally = signaled(STOP, true, None).unwrap();
    assert_eq!((tally.ops, tally.uncounted), (Ops(40), Bytes(60 * 4096)));
    assert!(tally.counted_until <= tally.ended);
}

#[test]
fn what_is_in_flight_at_the_stop_does_not_count() {
    let stopped = signaled(STOP, false, Some(8)).unwrap();
    assert!(stopped.ops.0 <= 40, "{stopped:?}");
    // Submitted, waited for, and not counted: at most a full queue.
    assert!((1..=8).contains(&(stopped.uncounted.0 / 4096)), "{stopped:?}");
    let finished = signaled(STOP, true, Some(8)).unwrap();
    assert_eq!(finished.bytes + finished.uncounted, Bytes(409_600));
}

#[test]
fn an_abort_ends_the_loop() {
    assert_eq!(signaled(ABORT, true, None).unwrap_err(), Fault::Aborted);
    assert_eq!(signaled(ABORT | STOP, true, Some(3)).unwrap_err(), Fault::Aborted);
}

#[test]
fn only_writers_finish() {
    assert!(Surroundings::finishes(Stonewall::Finish, Kind::Write));
    assert!(!Surroundings::finishes(Stonewall::Finish, Kind::Read));
    assert!(!Surroundings::finishes(Stonewall::Stop, Kind::Write));
}

/// Writes 50 records with stamps through a late engine and reads them back, compared.
fn late_round_trip(directory: &Path, depth: usize, records: u64) {
    let shared = Shared::default();
    let plan = stream(Interface::Offset, Direction::Write, records);
    let path = directory.join("f");
    let mut pool = Pool::filled(RECORD, plan.fill).unwrap();
    let mut drive = Drive::new(shared.around(false), Kind::Write, RECORD, pool.slots());
    let mut engine = Late::new(Offset::open(&plan, &path, false).unwrap(), depth);
    drive.prime(&mut engine).unwrap();
    let order = Linear::backward(records);
    let tally = drive.run(&mut engine, order, &mut Stamped { key: 5 }).unwrap();
    assert_eq!((tally.ops.0, tally.latency.count()), (records, records));
    assert_eq!(engine.deepest as u64, records.min(depth as u64).min(1024), "the queue was filled");
    assert_eq!(shared.progress.load(Relaxed), records * 4096);

    let mut pool = Pool::new(RECORD).unwrap();
    let mut reference = Pool::filled(RECORD, plan.fill).unwrap();
    let mut payload = Checked { writer: Stamped { key: 5 }, reference: reference.slots() };
    let drive = Drive::new(shared.around(false), Kind::Read, RECORD, pool.slots());
    let mut engine = Late::new(Offset::open(&plan, &path, true).unwrap(), depth);
    let tally = drive.run(&mut engine, Linear::sequential(records), &mut payload).unwrap();
    assert_eq!(tally.ops, Ops(records));
}

#[test]
fn engines_that_answer_late_are_kept_full_and_lose_nothing() {
    let directory = TempDir::new().unwrap();
    late_round_trip(directory.path(), 1, 50);
    late_round_trip(directory.path(), 7, 50);
    // Deeper than there are slots: the loop waits for a slot, not for the engine.
    late_round_trip(directory.path(), 5000, 3000);
}

#[test]
fn an_injected_error_names_operation_offset_file_and_cause() {
    let shared = Shared::default();
    let mut pool = Pool::new(RECORD).unwrap();
    let drive = Drive::new(shared.around(false), Kind::Write, RECORD, pool.slots());
    let mut engine = FailAt { inner: Null, at: 3, errno: Errno::IO, seen: 0 };
    let fault = drive.run(&mut engine, Linear::sequential(9), &mut Plain).unwrap_err();
    let offset = Some(3 * 4096 + 512);
    assert_eq!(fault, Fault::Os { operation: Operation::Write, offset, errno: libc::EIO });
    let plan = stream(Interface::Offset, Direction::Write, 9);
    let error = fault.into_error(&plan, Path::new("/mnt/f.0"));
    assert_eq!(
        error.to_string(),
        "writing /mnt/f.0 at offset 12800: the device below the filesystem failed; look for its \
         error in the kernel log (dmesg)"
    );
    let EngineError::Io { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.raw_os_error(), Some(libc::EIO));
}
