//! Amounts, regions, file handling, and syncs before the next operation.

use model::phase::{
    Aio, Allocation, Bound, FileHandling, PassStart, Region, SyncCall, SyncEvery, SyncInterval,
    TimeLimit, WorkLimit,
};

use super::*;

fn handled(handling: FileHandling) -> Stream {
    Stream { file_handling: Some(handling), ..stream(IoEngineKind::Offset, Direction::Write, 8) }
}

const ENGINES: [IoEngineKind; 3] =
    [IoEngineKind::Offset, IoEngineKind::Position, IoEngineKind::Aio(Aio::of(4, 1))];

#[test]
fn an_amount_limits_operations_and_bytes_over_passes() {
    let bench = Bench::new();
    for io_engine in ENGINES {
        for (ops, bytes, expected) in [(3, u64::MAX, 3), (19, u64::MAX, 19), (u64::MAX, 40_959, 9)]
        {
            let amount = WorkLimit { ops, bytes: Bytes(bytes), time: None };
            let plan = Stream {
                bound: Bound::Amount(amount),
                io_engine,
                ..stream(io_engine, Direction::Write, 8)
            };
            assert_eq!(bench.run(&plan).unwrap().ops(), Ops(expected), "{io_engine:?} {amount:?}");
        }
    }
}

#[test]
fn the_time_of_an_amount_ends_the_loop_first() {
    let bench = Bench::new();
    let time = TimeLimit { ramp: Nanos(0), run: Nanos(20_000_000) };
    let bound = Bound::Amount(WorkLimit { time: Some(time), ..WorkLimit::UNLIMITED });
    let plan = Stream { bound, ..stream(IoEngineKind::Null, Direction::Write, 8) };
    let result = bench.run(&plan).unwrap();
    assert!(result.workers[0].loop_time >= Nanos(20_000_000), "{:?}", result.workers[0].loop_time);
}

#[test]
fn regions_of_workers_are_a_step_apart() {
    let bench = Bench::new();
    fs::write(bench.path("f"), vec![7; 12 * 4096]).unwrap();
    let region = Region { offset: Bytes::kib(4), worker_step: Bytes::kib(16), size: Bytes::kib(8) };
    let mut plan = handled(FileHandling { region: Some(region), ..FileHandling::default() });
    plan.files = FileSharing::Shared("f".into());
    plan.size = Bytes::kib(48);
    plan.workers = threads(2, Stonewall::Off);
    assert_eq!(bench.run(&plan).unwrap().ops(), Ops(4));
    let content = fs::read(bench.path("f")).unwrap();
    let changed: Vec<usize> = (0..12).filter(|block| content[block * 4096] != 7).collect();
    // A header could begin with the byte 7, but its block of random data cannot be all sevens.
    let changed_blocks: Vec<usize> = (0..12)
        .filter(|block| content[block * 4096..][..4096].iter().any(|byte| *byte != 7))
        .collect();
    assert!(changed.iter().all(|block| changed_blocks.contains(block)));
    assert_eq!(changed_blocks, [1, 2, 5, 6]);
}

#[test]
fn files_are_allocated_before_the_first_write() {
    for (allocate, size) in [
        (Allocation::None, 4096),
        (Allocation::Native, 8 * 4096),
        (Allocation::Posix, 8 * 4096),
        (Allocation::Truncate, 8 * 4096),
        (Allocation::Keep, 4096),
    ] {
        let bench = Bench::new();
        let mut plan = handled(FileHandling { allocate, ..FileHandling::default() });
        plan.bound = Bound::Ops(1);
        bench.run(&plan).unwrap();
        let found = fs::metadata(bench.path("f.0")).unwrap();
        assert_eq!(found.len(), size, "{allocate:?}");
    }
}

#[test]
fn complete_files_are_kept_and_others_are_replaced() {
    let bench = Bench::new();
    let mut plan = handled(FileHandling::default());
    plan.open.creation = FileCreation::Complete;
    plan.end_sync = EndSync::Fsync;
    fs::write(bench.path("f.0"), vec![7; 8 * 4096]).unwrap();
    assert_eq!(bench.run(&plan).unwrap().ops(), Ops(0));
    assert!(fs::read(bench.path("f.0")).unwrap().iter().all(|byte| *byte == 7));
    fs::write(bench.path("f.0"), vec![7; 8 * 4096 - 1]).unwrap();
    assert_eq!(bench.run(&plan).unwrap().ops(), Ops(8));
    assert_eq!(fs::read(bench.path("f.0")).unwrap().len(), 8 * 4096);
}

#[test]
fn a_sync_before_the_next_operation_does_not_follow_the_last_one() {
    let bench = Bench::new();
    for io_engine in ENGINES {
        for (before_next, syncs) in [(false, 4), (true, 3)] {
            let mut plan = stream(io_engine, Direction::Write, 8);
            let after = SyncInterval::Ops(2);
            plan.sync_every = Some(SyncEvery { after, call: SyncCall::Fsync, before_next });
            let result = bench.run(&plan).unwrap();
            let worker = &result.workers[0];
            assert_eq!(worker.latencies.flush.count(), syncs, "{io_engine:?} {before_next}");
            assert_eq!(result.ops(), Ops(8), "{io_engine:?}");
        }
    }
}

#[test]
fn a_pass_that_opens_its_file_again_continues_at_its_start() {
    for io_engine in ENGINES {
        let bench = Bench::new();
        let handling = FileHandling {
            pass_start: PassStart::Reopen,
            invalidate: true,
            ..FileHandling::default()
        };
        let mut plan = Stream { io_engine, ..handled(handling) };
        plan.bound = Bound::Ops(20);
        assert_eq!(bench.run(&plan).unwrap().ops(), Ops(20));
        let length = fs::metadata(bench.path("f.0")).unwrap().len();
        assert_eq!(length, 8 * 4096, "{io_engine:?}");
    }
}

#[test]
fn devices_are_not_opened_with_file_handling() {
    let bench = Bench::new();
    let mut plan = handled(FileHandling::default());
    plan.files = FileSharing::One("/dev/null".into());
    assert!(bench.run(&plan).is_err());
}

#[test]
fn mixed_sequential_streams_have_a_position_per_direction() {
    let bench = Bench::new();
    let mut plan = stream(IoEngineKind::Offset, Direction::Mixed(0.5), 64);
    plan.access_pattern = AccessPattern::SequentialPerDirection;
    fs::write(bench.path("f.0"), vec![0; 64 * 4096]).unwrap();
    let result = bench.run(&plan).unwrap();
    assert_eq!(result.ops(), Ops(64));
    let written = result.workers.iter().map(|worker| worker.written.ops.0).sum::<u64>();
    let content = fs::read(bench.path("f.0")).unwrap();
    let changed: Vec<bool> =
        content.chunks(4096).map(|block| block.iter().any(|byte| *byte != 0)).collect();
    let first: Vec<bool> = (0..64).map(|block| block < written).collect();
    assert_eq!(changed, first, "the first {written} blocks are written, in order");
}
