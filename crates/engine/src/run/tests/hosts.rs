//! Streams whose workers run on several hosts.

use model::phase::{FileSharing, WorkerShare};

use super::*;

/// Runs the share of each of two hosts with two workers each, one host after the other.
fn on_hosts(bench: &Bench, stream: &Stream, shift: u32) -> Vec<WorkerResult> {
    let share = |first| Some(WorkerShare { first, count: 2, shift });
    let host = |first| {
        let workers = Workers { share: share(first), ..stream.workers };
        bench.run(&Stream { workers, ..stream.clone() }).unwrap().workers
    };
    [host(0), host(2)].concat()
}

#[test]
fn the_workers_of_all_hosts_have_distinct_indices_files_and_data() {
    let bench = Bench::new();
    let mut write = stream(IoEngineKind::Offset, Direction::Write, 8);
    write.files = FileSharing::PerWorker("file".into());
    write.open.creation = FileCreation::Fresh;
    write.workers = threads(4, Stonewall::Off);
    write.data = DataPattern::default();
    let indices = |results: &[WorkerResult]| -> Vec<u32> {
        results.iter().map(|result| result.worker).collect()
    };
    assert_eq!(indices(&on_hosts(&bench, &write, 0)), [0, 1, 2, 3]);
    let content = |worker| fs::read(bench.path(&write.files.name(worker))).unwrap();
    let all: Vec<Vec<u8>> = (0..4).map(content).collect();
    // The same data as that of four workers on one host.
    let alone = Bench::new();
    alone.run(&write).unwrap();
    for (worker, bytes) in (0..4).zip(&all) {
        let own = fs::read(alone.path(&write.files.name(worker))).unwrap();
        assert_eq!(own.len(), bytes.len());
    }
    // Verification depends on the index: the reader of another worker's file has its index.
    let read = Stream { direction: Direction::Read, verify: true, ..write.clone() };
    let read = Stream { open: Open::default(), ..read };
    assert_eq!(indices(&on_hosts(&bench, &read, 2)), [2, 3, 0, 1], "shifted by one host");
    fs::copy(bench.path(&write.files.name(0)), bench.path(&write.files.name(3))).unwrap();
    let workers =
        Workers { share: Some(WorkerShare { first: 2, count: 2, shift: 0 }), ..read.workers };
    let changed = bench.refusal(&Stream { workers, ..read.clone() });
    assert!(changed.contains("file.3") || changed.contains("file3"), "{changed}");
}

#[test]
fn segments_of_one_file_are_divided_among_the_workers_of_all_hosts() {
    let bench = Bench::new();
    let mut layout = stream(IoEngineKind::Offset, Direction::Write, 8);
    layout.files = FileSharing::One("file".into());
    layout.open.creation = FileCreation::Fresh;
    bench.run(&layout).unwrap();
    let read = Stream {
        direction: Direction::Read,
        files: FileSharing::Segmented("file".into()),
        open: Open::default(),
        workers: threads(4, Stonewall::Off),
        ..layout
    };
    let results = on_hosts(&bench, &read, 0);
    assert!(results.iter().all(|result| result.ops() == Ops(2)), "8 blocks, 4 workers");
}

#[test]
fn bounds_that_hosts_cannot_share_are_rejected() {
    let bench = Bench::new();
    let mut write = stream(IoEngineKind::Offset, Direction::Write, 8);
    write.open.creation = FileCreation::Any;
    write.workers = Workers {
        share: Some(WorkerShare { first: 0, count: 1, shift: 0 }),
        ..threads(2, Stonewall::Stop)
    };
    write.files = FileSharing::PerWorker("file".into());
    assert!(bench.refusal(&write).contains("workers of other hosts"));
    write.workers.stonewall = Stonewall::Off;
    write.bound = Bound::Together(4);
    assert!(bench.refusal(&write).contains("cannot share one number of operations"));
}
