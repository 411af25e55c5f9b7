mod bonnie;
mod deadline;
mod handling;
mod hosts;
mod metadata;
mod several;
mod steady;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use model::{
    Histogram, Nanos, Ops,
    phase::{
        AccessPattern, Advice, Aio, CallFlags, CopyCall, DataPattern, Direction, EndSync,
        FileCreation, IoEngineKind, Length, Open, Ring, Stonewall, Workers,
    },
};
use tempfile::TempDir;

use super::*;
use crate::{
    Difference, Progress,
    io::conformance::{kernel_allows_direct, stream, uring_is_available},
    payload::Verifier,
};

/// Directory under test and context of a phase.
struct Bench {
    directory: TempDir,
    progress: Progress,
    interrupt: AtomicBool,
}

impl Bench {
    fn new() -> Self {
        let interrupt = AtomicBool::new(false);
        Self { directory: TempDir::new().unwrap(), progress: Progress::default(), interrupt }
    }

    fn context(&self) -> Context<'_> {
        Context {
            directory: self.directory.path(),
            progress: &self.progress,
            interrupt: &self.interrupt,
            state: None,
            worker_command: &[],
            start: None,
        }
    }

    fn run(&self, stream: &Stream) -> Result<PhaseResult, EngineError> {
        run(stream, &self.context())
    }

    fn refusal(&self, stream: &Stream) -> String {
        self.run(stream).unwrap_err().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// All engines that transfer data here; io_uring if available.
fn interfaces() -> Vec<IoEngineKind> {
    let mut all = vec![
        IoEngineKind::Offset,
        IoEngineKind::Position,
        IoEngineKind::Stdio,
        IoEngineKind::Vector(CallFlags::default()),
        IoEngineKind::Mmap(Advice::Normal),
        IoEngineKind::Aio(Aio::of(8, 0)),
        IoEngineKind::Aio(Aio::of(4, 1)),
    ];
    if uring_is_available() {
        all.push(IoEngineKind::Ring(Ring::of(8)));
        all.push(IoEngineKind::Ring(Ring { submit_batch: 2, fixed_buffers: false, ..Ring::of(4) }));
    }
    all
}

const ORDERS: [AccessPattern; 5] = [
    AccessPattern::Sequential,
    AccessPattern::Backward,
    AccessPattern::SameBlock,
    AccessPattern::Stride { blocks: 17 },
    AccessPattern::IozonePermutation,
];

fn threads(count: u32, stonewall: Stonewall) -> Workers {
    Workers { stonewall, ..Workers::threads(count) }
}

#[test]
fn every_engine_reads_data_written_by_every_engine() {
    let bench = Bench::new();
    for duplicates in [0.0, 0.5] {
        for written_by in interfaces() {
            let mut write = stream(written_by, Direction::Write, 32);
            write.data = DataPattern::Random {
                incompressible_fraction: 0.3,
                duplicate_fraction: duplicates,
            };
            write.open.creation = FileCreation::Fresh;
            write.end_sync = EndSync::Fsync;
            write.workers = threads(2, Stonewall::Off);
            let result = bench.run(&write).unwrap();
            assert_eq!((result.ops(), result.bytes()), (Ops(64), Bytes::kib(256)));
            for (read_by, access) in interfaces().into_iter().flat_map(|i| ORDERS.map(|o| (i, o))) {
                let open = Open { fsync: true, read_first_block: true, ..Open::default() };
                let direction = Direction::Read;
                let read = Stream {
                    direction,
                    access_pattern: access,
                    io_engine: read_by,
                    open,
                    verify: true,
                    ..write.clone()
                };
                let result = bench.run(&read).unwrap();
                assert_eq!(result.ops(), Ops(64), "{written_by:?} {read_by:?} {access:?}");
            }
        }
    }
}

/// Further patterns, and the number of distinct blocks, out of 64, that one pass accesses.
const DRAWN: [(AccessPattern, std::ops::RangeInclusive<usize>); 8] = [
    (AccessPattern::Sequential, 64..=64),
    (AccessPattern::Backward, 64..=64),
    (AccessPattern::IozonePermutation, 64..=64),
    (AccessPattern::Permutation, 64..=64),
    (AccessPattern::Random, 30..=55),
    (AccessPattern::Zipf { theta: 0.99 }, 10..=50),
    (AccessPattern::Pareto { share: 0.2 }, 10..=50),
    (AccessPattern::Hotspot { space: 0.25, visits: 0.9 }, 10..=30),
];

/// Every engine writes in every pattern: accessed blocks are intact and at their offsets, the
/// others are holes. Append is the only pattern with other offsets.
#[test]
fn every_engine_writes_in_every_pattern() {
    let bench = Bench::new();
    for interface in interfaces() {
        for (access, visited) in DRAWN {
            let mut plan = stream(interface, Direction::Write, 64);
            plan.open.creation = FileCreation::Fresh;
            plan.access_pattern = access;
            assert_eq!(bench.run(&plan).unwrap().ops(), Ops(64), "{interface:?} {access:?}");
            let content = fs::read(bench.path("f.0")).unwrap();
            let check = Verifier::new(&plan, 0);
            let verdicts = (0..).zip(content.chunks(4096)).map(|(index, block)| {
                match check.block(index * 4096, block) {
                    Ok(generation) => generation > 0,
                    Err(Difference::Hole) => false,
                    Err(difference) => panic!("{interface:?} {access:?}: {difference}"),
                }
            });
            let count = verdicts.filter(|whole| *whole).count();
            assert!(visited.contains(&count), "{interface:?} {access:?}: {count} of 64");
        }
        if matches!(interface, IoEngineKind::Mmap(_) | IoEngineKind::Ring(_) | IoEngineKind::Aio(_))
        {
            continue;
        }
        let mut plan = stream(interface, Direction::Write, 16);
        plan.access_pattern = AccessPattern::Append;
        let before = fs::metadata(bench.path("f.0")).unwrap().len();
        bench.run(&plan).unwrap();
        let content = fs::read(bench.path("f.0")).unwrap();
        assert_eq!(content.len() as u64, before + 16 * 4096, "{interface:?}");
        let appended = usize::try_from(before).unwrap();
        assert_eq!(Verifier::new(&plan, 0).verify(before, &content[appended..]), Ok(()));
    }
}

/// Lengths, mixed directions, and repetition, for every engine that supports them.
#[test]
fn lengths_mixes_and_second_passes_keep_blocks_intact() {
    let bench = Bench::new();
    let several = |interface: &IoEngineKind| *interface != IoEngineKind::Stdio;
    for interface in interfaces().into_iter().filter(several) {
        for access in [AccessPattern::Sequential, AccessPattern::Random, AccessPattern::Permutation]
        {
            let mut plan = stream(interface, Direction::Write, 64);
            plan.open.creation = FileCreation::Fresh;
            bench.run(&plan).unwrap();
            plan.open.creation = FileCreation::Existing;
            plan.access_pattern = access;
            plan.block_sizes =
                vec![Length { blocks: 1, weight: 3 }, Length { blocks: 4, weight: 1 }];
            plan.direction = Direction::Mixed(0.4);
            plan.bound = Bound::Ops(300);
            let result = bench.run(&plan).unwrap();
            let worker = &result.workers[0];
            assert_eq!(result.ops(), Ops(300), "{interface:?} {access:?}");
            assert!((60..180).contains(&worker.read.ops.0), "{worker:?}");
            assert_eq!(worker.latencies.write.count(), worker.written.ops.0);
            assert!(worker.written.bytes.0 > worker.written.ops.0 * 4096);
            let content = fs::read(bench.path("f.0")).unwrap();
            let verdict = Verifier::new(&plan, 0).verify(0, &content);
            assert_eq!(verdict, Ok(()), "{interface:?} {access:?}");
        }
    }
}

/// Workers that share a file, each in its segment or in the whole file.
#[test]
fn a_shared_file_is_segmented_or_common() {
    let bench = Bench::new();
    for interface in interfaces() {
        for files in [FileSharing::Segmented("s".into()), FileSharing::Shared("s".into())] {
            let mut plan = stream(interface, Direction::Write, 64);
            plan.files = files.clone();
            plan.workers = threads(4, Stonewall::Off);
            let each = if matches!(files, FileSharing::Segmented(_)) { 16 } else { 64 };
            assert_eq!(bench.run(&plan).unwrap().ops(), Ops(4 * each), "{interface:?}");
            (plan.direction, plan.verify) = (Direction::Read, true);
            plan.access_pattern = AccessPattern::Backward;
            assert_eq!(bench.run(&plan).unwrap().ops(), Ops(4 * each), "{interface:?}");
            fs::remove_file(bench.path("s")).unwrap();
        }
    }
}

#[test]
fn copies_equal_their_source() {
    let bench = Bench::new();
    let mut source = stream(IoEngineKind::Offset, Direction::Write, 32);
    source.files = FileSharing::One("f.source".into());
    bench.run(&source).unwrap();
    for call in [CopyCall::CopyFileRange, CopyCall::Sendfile, CopyCall::Splice] {
        for access in ORDERS {
            let mut copy = Stream { access_pattern: access, ..source.clone() };
            copy.files = FileSharing::One("f".into());
            copy.io_engine = IoEngineKind::Copy(call);
            copy.end_sync = EndSync::Fsync;
            assert_eq!(bench.run(&copy).unwrap().ops(), Ops(32), "{call:?} {access:?}");
        }
        let mut read = Stream { direction: Direction::Read, verify: true, ..source.clone() };
        read.files = FileSharing::One("f".into());
        assert_eq!(bench.run(&read).unwrap().ops(), Ops(32));
        fs::remove_file(bench.path("f")).unwrap();
    }
}

#[test]
fn io_uring_nops_access_no_file() {
    if !uring_is_available() {
        return;
    }
    let bench = Bench::new();
    for (direction, batch) in [(Direction::Read, 0), (Direction::Write, 3)] {
        let ring = Ring { nop: true, submit_batch: batch, ..Ring::of(8) };
        let plan = stream(IoEngineKind::Ring(ring), direction, 1000);
        let result = bench.run(&plan).unwrap();
        let latencies = &result.workers[0].latencies;
        assert_eq!((result.ops(), latencies.submit.count()), (Ops(1000), 1000));
    }
    assert!(fs::read_dir(bench.directory.path()).unwrap().next().is_none());
}

/// An operation that does not fit into a batch waits for the next batch; its latency excludes this
/// wait.
#[test]
fn a_latency_is_its_submission_and_its_completion() {
    let bench = Bench::new();
    let batches = |engine: &IoEngineKind| {
        matches!(
            engine,
            IoEngineKind::Aio(Aio { submit_batch: 1.., .. })
                | IoEngineKind::Ring(Ring { submit_batch: 1.., .. })
        )
    };
    for engine in interfaces().into_iter().filter(batches) {
        let result = bench.run(&stream(engine, Direction::Write, 1000)).unwrap();
        let latencies = &result.workers[0].latencies;
        let mean = |histogram: &Histogram| histogram.mean().unwrap().0;
        let parts = mean(&latencies.submit) + mean(&latencies.complete);
        // Each mean is rounded down.
        let whole = mean(&latencies.write);
        assert!(whole.abs_diff(parts) <= 2, "{engine:?}: {whole} ns, parts {parts} ns");
    }
}

#[test]
fn shuffled_writes_fill_the_file() {
    let bench = Bench::new();
    for interface in interfaces() {
        let mut plan = stream(interface, Direction::Write, 100);
        plan.open.creation = FileCreation::Fresh;
        plan.access_pattern = AccessPattern::IozonePermutation;
        bench.run(&plan).unwrap();
        plan = Stream { direction: Direction::Read, verify: true, open: Open::default(), ..plan };
        bench.run(&plan).unwrap();
        assert_eq!(fs::metadata(bench.path("f.0")).unwrap().len(), 409_600);
    }
}

/// Every slot of the pool is suitable for direct I/O, if the filesystem supports it.
#[test]
fn direct_streams_read_what_they_wrote() {
    let bench = Bench { directory: TempDir::new_in("/var/tmp").unwrap(), ..Bench::new() };
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, 3000);
    plan.open.direct = true;
    let allowed = kernel_allows_direct(&bench.path("probe"), 4096);
    assert_eq!(bench.run(&plan).is_ok(), allowed);
    if allowed {
        plan = Stream { direction: Direction::Read, verify: true, ..plan };
        plan.access_pattern = AccessPattern::IozonePermutation;
        assert_eq!(bench.run(&plan).unwrap().ops(), Ops(3000));
    }
}

#[test]
fn a_changed_byte_is_detected() {
    let bench = Bench::new();
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, 8);
    bench.run(&plan).unwrap();
    let mut content = fs::read(bench.path("f.0")).unwrap();
    content[9000] ^= 0x40;
    fs::write(bench.path("f.0"), &content).unwrap();
    (plan.direction, plan.verify) = (Direction::Read, true);
    let EngineError::Content { offset, difference, .. } = bench.run(&plan).unwrap_err() else {
        panic!("the change was not detected")
    };
    assert_eq!((offset, difference), (Bytes(8192), Difference::Damaged));
}

#[test]
fn no_two_blocks_of_a_run_are_equal() {
    let bench = Bench::new();
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, 2048);
    plan.data = DataPattern::Random { incompressible_fraction: 0.0, duplicate_fraction: 0.0 };
    plan.workers = threads(2, Stonewall::Off);
    bench.run(&plan).unwrap();
    let content = [fs::read(bench.path("f.0")).unwrap(), fs::read(bench.path("f.1")).unwrap()];
    let mut blocks: Vec<&[u8]> = content.iter().flat_map(|bytes| bytes.chunks(4096)).collect();
    let count = blocks.len();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!((count, blocks.len()), (4096, 4096));
}

#[test]
fn segments_are_within_the_wall_time_and_counts_agree() {
    let bench = Bench::new();
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, 64);
    plan.end_sync = EndSync::Fsync;
    plan.workers = threads(3, Stonewall::Off);
    let before = now();
    let result = bench.run(&plan).unwrap();
    let after = now();
    assert_eq!(result.workers.len(), 3);
    for (worker, index) in result.workers.iter().zip(0..) {
        assert_eq!((worker.worker, worker.writes()), (index, true));
        assert_eq!((worker.ops(), worker.latencies.write.count()), (Ops(64), 64));
        assert_eq!(worker.bytes().0, worker.ops().0 * 4096);
        assert!(before < worker.started && worker.end_sync_time > Nanos(0));
        let end = worker.started + worker.loop_time + worker.end_sync_time + worker.close_time;
        assert!(end <= after && end - worker.started <= result.wall_time);
    }
    assert!(result.wall_time <= after - before);
    plan.end_sync = EndSync::None;
    assert_eq!(bench.run(&plan).unwrap().workers[0].end_sync_time, Nanos(0));
}

#[test]
fn the_tail_is_unchanged_and_new_files_have_mode_0640() {
    let bench = Bench::new();
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, 2);
    plan.size = Bytes(3 * 4096 - 1);
    bench.run(&plan).unwrap();
    let metadata = fs::metadata(bench.path("f.0")).unwrap();
    assert_eq!(metadata.len(), 2 * 4096);
    assert_eq!(metadata.permissions().mode() & 0o137, 0, "no more than 0640");
}

#[test]
fn workers_may_read_and_write_in_one_phase() {
    let bench = Bench::new();
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, 16);
    plan.workers = threads(3, Stonewall::Off);
    bench.run(&plan).unwrap();
    plan.direction = Direction::Alternate;
    let result = bench.run(&plan).unwrap();
    let reads: Vec<bool> = result.workers.iter().map(|worker| worker.read.ops.0 > 0).collect();
    assert_eq!(reads, [true, false, true]);
}

#[test]
fn with_a_stonewall_one_worker_completes_and_writers_may_fill_their_files() {
    let bench = Bench::new();
    for stonewall in [Stonewall::Stop, Stonewall::Finish] {
        let mut plan = stream(IoEngineKind::Offset, Direction::Write, 2000);
        plan.open.creation = FileCreation::Fresh;
        plan.workers = threads(4, stonewall);
        let result = bench.run(&plan).unwrap();
        let whole = plan.size;
        assert!(result.workers.iter().any(|worker| worker.bytes() == whole), "{stonewall:?}");
        for (worker, index) in result.workers.iter().zip(0..) {
            assert_eq!(worker.bytes().0, worker.ops().0 * 4096);
            let file = fs::metadata(bench.path(&plan.files.name(index))).unwrap();
            assert_eq!(file.size(), (worker.bytes() + worker.uncounted).0);
            // Uncounted bytes have a separate time. Otherwise, the data that was made durable after
            // the stop would seem to have taken no time. A worker that stops immediately has no
            // such time.
            let more_than_one = worker.uncounted.0 > 4096;
            assert_eq!(worker.uncounted_time > Nanos(0), more_than_one, "{worker:?}");
            if stonewall == Stonewall::Finish {
                assert_eq!(Bytes(file.size()), whole);
            }
        }
    }
}

#[test]
fn a_full_disk_of_one_worker_stops_all_workers() {
    let bench = Bench::new();
    symlink("/dev/null", bench.path("f.0")).unwrap();
    symlink("/dev/full", bench.path("f.1")).unwrap();
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, 1 << 50);
    plan.workers = threads(2, Stonewall::Off);
    let error = bench.run(&plan).unwrap_err();
    let text = error.to_string();
    assert!(text.ends_with(
        "/f.1 at offset 0: the filesystem is full; use a larger device or image, smaller files, \
         or fewer workers"
    ));
    assert!(matches!(error, EngineError::Io { operation: Operation::Write, source, .. }
        if source.raw_os_error() == Some(libc::ENOSPC)));
}

#[test]
fn stdio_reports_errors_of_buffered_data() {
    let bench = Bench::new();
    symlink("/dev/full", bench.path("f.0")).unwrap();
    for flush in [EndSync::None, EndSync::Fsync] {
        let mut plan = stream(IoEngineKind::Stdio, Direction::Write, 4);
        plan.end_sync = flush;
        let error = bench.run(&plan).unwrap_err();
        assert!(error.to_string().contains("the filesystem is full"), "{error}");
    }
}

#[test]
fn an_interrupt_ends_an_endless_phase() {
    let bench = Bench::new();
    let plan = stream(IoEngineKind::Null, Direction::Write, 1 << 50);
    let error = thread::scope(|scope| {
        let phase = scope.spawn(|| bench.run(&plan));
        while bench.progress.snapshot().done == Bytes(0) {
            thread::yield_now();
        }
        bench.interrupt.store(true, Relaxed);
        phase.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, EngineError::Interrupted), "{error:?}");
    // A phase that is interrupted before it starts changes nothing.
    let plan = stream(IoEngineKind::Offset, Direction::Write, 1);
    assert!(matches!(bench.run(&plan), Err(EngineError::Interrupted)));
    assert!(!bench.path("f.0").exists());
    let remove = remove(&plan.files, 1, &bench.context());
    assert!(matches!(remove, Err(EngineError::Interrupted)));
}

#[test]
fn progress_ends_at_the_total() {
    let bench = Bench::new();
    let mut plan = stream(IoEngineKind::Null, Direction::Read, 1000);
    plan.workers = threads(3, Stonewall::Off);
    bench.run(&plan).unwrap();
    let total = Bytes(3 * 1000 * 4096);
    let snapshot = bench.progress.snapshot();
    assert_eq!((snapshot.done, snapshot.total, snapshot.ops), (total, total, Ops(3000)));
    assert!(fs::read_dir(bench.directory.path()).unwrap().next().is_none(), "no file was created");
}

#[test]
fn files_are_removed_once() {
    let bench = Bench::new();
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, 1);
    plan.workers = threads(2, Stonewall::Off);
    bench.run(&plan).unwrap();
    let result = remove(&plan.files, 2, &bench.context()).unwrap();
    assert!(result.workers.is_empty() && result.wall_time > Nanos(0));
    assert!(!bench.path("f.0").exists() && !bench.path("f.1").exists());
    let error = remove(&plan.files, 2, &bench.context()).unwrap_err().to_string();
    assert!(error.starts_with("removing ") && error.contains("/f.0: the file is missing"));
}

#[test]
fn invalid_streams_are_rejected_before_any_change() {
    let bench = Bench::new();
    let good = stream(IoEngineKind::Offset, Direction::Write, 1);
    let refused = |change: &dyn Fn(&mut Stream)| {
        let mut plan = good.clone();
        change(&mut plan);
        bench.refusal(&plan)
    };
    for (text, expected) in [
        (refused(&|s| s.block_size = Bytes(0)), "block_size is 0"),
        (refused(&|s| s.size = Bytes(4095)), "file_size is smaller than block_size"),
        (refused(&|s| s.workers.count = 0), "workers is 0"),
        (
            refused(&|s| {
                s.workers.count = 2;
                s.files = FileSharing::One("f".into());
            }),
            "several workers use one file",
        ),
        (
            refused(&|s| {
                s.data = DataPattern::Random {
                    incompressible_fraction: f64::NAN,
                    duplicate_fraction: 0.0,
                }
            }),
            "is out of range",
        ),
        (
            refused(&|s| {
                s.direction = Direction::Read;
                s.open.creation = FileCreation::Fresh;
            }),
            "creates itself",
        ),
        (
            refused(&|s| {
                s.io_engine = IoEngineKind::Stdio;
                s.open.direct = true;
            }),
            "does not support O_DIRECT",
        ),
        (
            refused(&|s| {
                s.io_engine = IoEngineKind::Null;
                s.direction = Direction::Read;
                s.verify = true;
            }),
            "no data is transferred",
        ),
        (refused(&|s| s.workers.kind = WorkerKind::Process), "not available"),
    ] {
        assert!(text.starts_with("invalid workload: ") && text.contains(expected), "{text}");
    }
    assert!(fs::read_dir(bench.directory.path()).unwrap().next().is_none());
}

#[test]
fn a_reader_needs_an_existing_file() {
    let bench = Bench::new();
    let mut plan = stream(IoEngineKind::Offset, Direction::Read, 4);
    plan.open = Open::default();
    let text = bench.refusal(&plan);
    assert!(text.contains("f.0 has 0B, 16KiB needed; run the phase"), "{text}");
}
