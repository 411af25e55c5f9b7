//! Deadlines after which all workers continue to the same number of operations.

use model::phase::{FileSharing, Pace, Rate};

use super::*;
use crate::start_gate::{Start, StartGate};

fn until(deadline: Nanos, io_engine: IoEngineKind, blocks: u64) -> Stream {
    let mut stream = stream(io_engine, Direction::Write, blocks);
    stream.bound = Bound::Deadline(deadline);
    stream.files = FileSharing::PerWorker("file".into());
    stream.open.creation = FileCreation::Fresh;
    stream.workers = threads(2, Stonewall::Off);
    stream
}

fn counts(result: &PhaseResult) -> Vec<u64> {
    result.workers.iter().map(|own| own.written.ops.0).collect()
}

#[test]
fn after_a_deadline_all_workers_have_the_same_number_of_operations() {
    let bench = Bench::new();
    for io_engine in interfaces() {
        if matches!(io_engine, IoEngineKind::Mmap(_)) {
            // A mapped file has its final length from the start.
            continue;
        }
        let plan = until(Nanos(10_000_000), io_engine, 1 << 22);
        let result = bench.run(&plan).unwrap();
        let done = counts(&result);
        assert!(done[0] == done[1] && done[0] > 0, "{io_engine:?}: {done:?}");
        let before: Vec<_> = result.workers.iter().map(|own| own.at_deadline.unwrap()).collect();
        let most = before.iter().map(|own| own.moved.ops.0).max();
        assert_eq!(most, Some(done[0]), "{io_engine:?}: the fastest worker determines the number");
        for (worker, own) in (0..).zip(&before) {
            assert!(own.elapsed >= Nanos(10_000_000), "{io_engine:?}: {own:?}");
            assert_eq!(own.moved.bytes.0, own.moved.ops.0 * plan.block_size.0);
            let len = fs::metadata(bench.path(&plan.files.name(worker))).unwrap().len();
            assert_eq!(len, done[0] * plan.block_size.0, "{io_engine:?}: no block is omitted");
        }
    }
}

#[test]
fn a_worker_that_has_all_blocks_before_the_deadline_does_not_wait() {
    let bench = Bench::new();
    for io_engine in interfaces() {
        let result = bench.run(&until(Nanos(3_600_000_000_000), io_engine, 8)).unwrap();
        assert_eq!(counts(&result), [8, 8], "{io_engine:?}");
        assert!(result.workers.iter().all(|own| own.at_deadline.unwrap().moved.ops == Ops(8)));
    }
}

#[test]
fn the_fastest_worker_of_all_hosts_determines_the_number_of_operations() {
    let bench = Bench::new();
    let plan = until(Nanos(5_000_000), IoEngineKind::Offset, 1 << 22);
    let agreed = |agree: &(dyn Fn(u64) -> Option<u64> + Sync)| {
        let gate = StartGate::new(1);
        let start = Start { agree: Some(agree), ..Start::at(&gate) };
        run(&plan, &Context { start: Some(start), ..bench.context() })
    };
    let result = agreed(&|own| Some(own + 100)).unwrap();
    let most = result.workers.iter().map(|own| own.at_deadline.unwrap().moved.ops.0).max();
    assert_eq!(counts(&result), [most.unwrap() + 100; 2]);
    let canceled = agreed(&|_| None);
    assert!(matches!(canceled, Err(EngineError::Interrupted)), "{canceled:?}");
}

#[test]
fn a_deadline_excludes_other_ends() {
    let bench = Bench::new();
    let plan = until(Nanos(1), IoEngineKind::Offset, 8);
    let stopping = Stream { workers: threads(2, Stonewall::Stop), ..plan.clone() };
    let paced = Stream { pace: Pace::Limit(Rate::Ops(10)), ..plan.clone() };
    for plan in [stopping, paced] {
        assert!(bench.refusal(&plan).contains("a deadline excludes"), "{plan:?}");
    }
    assert!(bench.refusal(&until(Nanos(0), IoEngineKind::Offset, 8)).contains("use a longer time"));
}
