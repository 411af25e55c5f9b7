mod classic;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use model::{
    Nanos, Ops,
    phase::{
        Access, Advice, CallFlags, CopyCall, Direction, Fill, Flush, Interface, Length, Open,
        Presence, Ring, Stonewall, Workers,
    },
};
use tempfile::TempDir;

use super::*;
use crate::{
    Difference,
    io::conformance::{kernel_allows_direct, stream, uring_is_available},
    payload::Check,
};

/// A directory under test, and what a phase needs.
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

/// All that move bytes here; a ring where the kernel has it.
fn interfaces() -> Vec<Interface> {
    let mut all = vec![
        Interface::Offset,
        Interface::Position,
        Interface::Stdio,
        Interface::Vector(CallFlags::default()),
        Interface::Mmap(Advice::Normal),
    ];
    if uring_is_available() {
        all.push(Interface::Ring(Ring::of(8)));
        all.push(Interface::Ring(Ring { batch: 2, registered: false, ..Ring::of(4) }));
    }
    all
}

const ORDERS: [Access; 5] = [
    Access::Sequential,
    Access::Backward,
    Access::SameRecord,
    Access::Stride { records: 17 },
    Access::Shuffled,
];

fn threads(count: u32, stonewall: Stonewall) -> Workers {
    Workers { stonewall, ..Workers::threads(count) }
}

#[test]
fn every_interface_reads_what_every_interface_wrote() {
    let bench = Bench::new();
    for duplicates in [0.0, 0.5] {
        for written_by in interfaces() {
            let mut write = stream(written_by, Direction::Write, 32);
            write.fill = Fill::Random { entropy: 0.3, duplicates };
            write.open.presence = Presence::Fresh;
            write.flush = Flush::Fsync;
            write.workers = threads(2, Stonewall::Off);
            let result = bench.run(&write).unwrap();
            assert_eq!((result.ops(), result.bytes()), (Ops(64), Bytes::kib(256)));
            for (read_by, access) in interfaces().into_iter().flat_map(|i| ORDERS.map(|o| (i, o))) {
                let open = Open { fsync: true, prime: true, ..Open::default() };
                let direction = Direction::Read;
                let read = Stream {
                    direction,
                    access,
                    interface: read_by,
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

/// Orders beyond the classic ones, and how many different records of 64 they visit in one pass.
const DRAWN: [(Access, std::ops::RangeInclusive<usize>); 8] = [
    (Access::Sequential, 64..=64),
    (Access::Backward, 64..=64),
    (Access::Shuffled, 64..=64),
    (Access::Permuted, 64..=64),
    (Access::Random, 30..=55),
    (Access::Zipf { theta: 0.99 }, 10..=50),
    (Access::Pareto { share: 0.2 }, 10..=50),
    (Access::Hot { space: 0.25, visits: 0.9 }, 10..=30),
];

/// Every interface writes in every order: what it visited is whole and in its place, the rest a
/// hole. Appending is the order that has no places of its own.
#[test]
fn every_interface_writes_in_every_order() {
    let bench = Bench::new();
    for interface in interfaces() {
        for (access, visited) in DRAWN {
            let mut plan = stream(interface, Direction::Write, 64);
            plan.open.presence = Presence::Fresh;
            plan.access = access;
            assert_eq!(bench.run(&plan).unwrap().ops(), Ops(64), "{interface:?} {access:?}");
            let content = fs::read(bench.path("f.0")).unwrap();
            let check = Check::new(&plan, 0);
            let judged = (0..).zip(content.chunks(4096)).map(|(record, block)| {
                match check.block(record * 4096, block) {
                    Ok(generation) => generation > 0,
                    Err(Difference::Hole) => false,
                    Err(difference) => panic!("{interface:?} {access:?}: {difference}"),
                }
            });
            let count = judged.filter(|whole| *whole).count();
            assert!(visited.contains(&count), "{interface:?} {access:?}: {count} of 64");
        }
        if matches!(interface, Interface::Mmap(_) | Interface::Ring(_)) {
            continue;
        }
        let mut plan = stream(interface, Direction::Write, 16);
        plan.access = Access::Append;
        let before = fs::metadata(bench.path("f.0")).unwrap().len();
        bench.run(&plan).unwrap();
        let content = fs::read(bench.path("f.0")).unwrap();
        assert_eq!(content.len() as u64, before + 16 * 4096, "{interface:?}");
        let appended = usize::try_from(before).unwrap();
        assert_eq!(Check::new(&plan, 0).judge(before, &content[appended..]), Ok(()));
    }
}

/// Lengths, mixed directions, and starting over, for every interface that has them.
#[test]
fn lengths_mixes_and_second_passes_keep_the_content_whole() {
    let bench = Bench::new();
    let several = |interface: &Interface| *interface != Interface::Stdio;
    for interface in interfaces().into_iter().filter(several) {
        for access in [Access::Sequential, Access::Random, Access::Permuted] {
            let mut plan = stream(interface, Direction::Write, 64);
            plan.open.presence = Presence::Fresh;
            bench.run(&plan).unwrap();
            plan.open.presence = Presence::Existing;
            plan.access = access;
            plan.lengths = vec![Length { records: 1, weight: 3 }, Length { records: 4, weight: 1 }];
            plan.direction = Direction::Mixed(0.4);
            plan.bound = Bound::Ops(300);
            let result = bench.run(&plan).unwrap();
            let worker = &result.workers[0];
            assert_eq!(result.ops(), Ops(300), "{interface:?} {access:?}");
            assert!((60..180).contains(&worker.read.ops.0), "{worker:?}");
            assert_eq!(worker.latencies.write.count(), worker.written.ops.0);
            assert!(worker.written.bytes.0 > worker.written.ops.0 * 4096);
            let content = fs::read(bench.path("f.0")).unwrap();
            let verdict = Check::new(&plan, 0).judge(0, &content);
            assert_eq!(verdict, Ok(()), "{interface:?} {access:?}");
        }
    }
}

/// Workers that share a file, each in its part or all over it.
#[test]
fn a_shared_file_is_split_or_common() {
    let bench = Bench::new();
    for interface in interfaces() {
        for files in [Files::Split("s".into()), Files::Shared("s".into())] {
            let mut plan = stream(interface, Direction::Write, 64);
            plan.files = files.clone();
            plan.workers = threads(4, Stonewall::Off);
            let each = if matches!(files, Files::Split(_)) { 16 } else { 64 };
            assert_eq!(bench.run(&plan).unwrap().ops(), Ops(4 * each), "{interface:?}");
            (plan.direction, plan.verify) = (Direction::Read, true);
            plan.access = Access::Backward;
            assert_eq!(bench.run(&plan).unwrap().ops(), Ops(4 * each), "{interface:?}");
            fs::remove_file(bench.path("s")).unwrap();
        }
    }
}

#[test]
fn copies_are_what_was_written() {
    let bench = Bench::new();
    let mut source = stream(Interface::Offset, Direction::Write, 32);
    source.files = Files::One("f.source".into());
    bench.run(&source).unwrap();
    for call in [CopyCall::CopyFileRange, CopyCall::Sendfile, CopyCall::Splice] {
        for access in ORDERS {
            let mut copy = Stream { access, ..source.clone() };
            copy.files = Files::One("f".into());
            copy.interface = Interface::Copy(call);
            copy.flush = Flush::Fsync;
            assert_eq!(bench.run(&copy).unwrap().ops(), Ops(32), "{call:?} {access:?}");
        }
        let mut read = Stream { direction: Direction::Read, verify: true, ..source.clone() };
        read.files = Files::One("f".into());
        assert_eq!(bench.run(&read).unwrap().ops(), Ops(32));
        fs::remove_file(bench.path("f")).unwrap();
    }
}

#[test]
fn a_ring_of_nops_touches_nothing() {
    if !uring_is_available() {
        return;
    }
    let bench = Bench::new();
    for (direction, batch) in [(Direction::Read, 0), (Direction::Write, 3)] {
        let ring = Ring { nop: true, batch, ..Ring::of(8) };
        let plan = stream(Interface::Ring(ring), direction, 1000);
        let result = bench.run(&plan).unwrap();
        let latencies = &result.workers[0].latencies;
        assert_eq!((result.ops(), latencies.submit.count()), (Ops(1000), 1000));
    }
    assert!(fs::read_dir(bench.directory.path()).unwrap().next().is_none());
}

#[test]
fn shuffled_writes_fill_the_file() {
    let bench = Bench::new();
    for interface in interfaces() {
        let mut plan = stream(interface, Direction::Write, 100);
        plan.open.presence = Presence::Fresh;
        plan.access = Access::Shuffled;
        bench.run(&plan).unwrap();
        plan = Stream { direction: Direction::Read, verify: true, open: Open::default(), ..plan };
        bench.run(&plan).unwrap();
        assert_eq!(fs::metadata(bench.path("f.0")).unwrap().len(), 409_600);
    }
}

/// Every slot of the pool is fit for direct I/O, where the filesystem has it at all.
#[test]
fn direct_streams_read_what_they_wrote() {
    let bench = Bench { directory: TempDir::new_in("/var/tmp").unwrap(), ..Bench::new() };
    let mut plan = stream(Interface::Offset, Direction::Write, 3000);
    plan.open.direct = true;
    let allowed = kernel_allows_direct(&bench.path("probe"), 4096);
    assert_eq!(bench.run(&plan).is_ok(), allowed);
    if allowed {
        plan = Stream { direction: Direction::Read, verify: true, ..plan };
        plan.access = Access::Shuffled;
        assert_eq!(bench.run(&plan).unwrap().ops(), Ops(3000));
    }
}

#[test]
fn a_changed_byte_is_found() {
    let bench = Bench::new();
    let mut plan = stream(Interface::Offset, Direction::Write, 8);
    bench.run(&plan).unwrap();
    let mut content = fs::read(bench.path("f.0")).unwrap();
    content[9000] ^= 0x40;
    fs::write(bench.path("f.0"), &content).unwrap();
    (plan.direction, plan.verify) = (Direction::Read, true);
    let EngineError::Content { offset, difference, .. } = bench.run(&plan).unwrap_err() else {
        panic!("the change was overlooked")
    };
    assert_eq!((offset, difference), (Bytes(8192), Difference::Damaged));
}

#[test]
fn no_two_blocks_of_a_run_are_equal() {
    let bench = Bench::new();
    let mut plan = stream(Interface::Offset, Direction::Write, 2048);
    plan.fill = Fill::Random { entropy: 0.0, duplicates: 0.0 };
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
fn segments_lie_within_the_wall_time_and_counts_agree() {
    let bench = Bench::new();
    let mut plan = stream(Interface::Offset, Direction::Write, 64);
    plan.flush = Flush::Fsync;
    plan.workers = threads(3, Stonewall::Off);
    let before = now();
    let result = bench.run(&plan).unwrap();
    let after = now();
    assert_eq!(result.workers.len(), 3);
    for (worker, index) in result.workers.iter().zip(0..) {
        assert_eq!((worker.worker, worker.writes()), (index, true));
        assert_eq!((worker.ops(), worker.latencies.write.count()), (Ops(64), 64));
        assert_eq!(worker.bytes().0, worker.ops().0 * 4096);
        assert!(before < worker.started && worker.flush_time > Nanos(0));
        let end = worker.started + worker.loop_time + worker.flush_time + worker.close_time;
        assert!(end <= after && end - worker.started <= result.wall_time);
    }
    assert!(result.wall_time <= after - before);
    plan.flush = Flush::None;
    assert_eq!(bench.run(&plan).unwrap().workers[0].flush_time, Nanos(0));
}

#[test]
fn the_tail_is_not_touched_and_new_files_have_mode_0640() {
    let bench = Bench::new();
    let mut plan = stream(Interface::Offset, Direction::Write, 2);
    plan.size = Bytes(3 * 4096 - 1);
    bench.run(&plan).unwrap();
    let metadata = fs::metadata(bench.path("f.0")).unwrap();
    assert_eq!(metadata.len(), 2 * 4096);
    assert_eq!(metadata.permissions().mode() & 0o137, 0, "no more than 0640");
}

#[test]
fn workers_may_read_and_write_in_one_phase() {
    let bench = Bench::new();
    let mut plan = stream(Interface::Offset, Direction::Write, 16);
    plan.workers = threads(3, Stonewall::Off);
    bench.run(&plan).unwrap();
    plan.direction = Direction::Alternate;
    let result = bench.run(&plan).unwrap();
    let reads: Vec<bool> = result.workers.iter().map(|worker| worker.read.ops.0 > 0).collect();
    assert_eq!(reads, [true, false, true]);
}

#[test]
fn with_a_stonewall_somebody_is_complete_and_finishing_writers_fill_their_files() {
    let bench = Bench::new();
    for stonewall in [Stonewall::Stop, Stonewall::Finish] {
        let mut plan = stream(Interface::Offset, Direction::Write, 2000);
        plan.open.presence = Presence::Fresh;
        plan.workers = threads(4, stonewall);
        let result = bench.run(&plan).unwrap();
        let whole = plan.size;
        assert!(result.workers.iter().any(|worker| worker.bytes() == whole), "{stonewall:?}");
        for (worker, index) in result.workers.iter().zip(0..) {
            assert_eq!(worker.bytes().0, worker.ops().0 * 4096);
            let file = fs::metadata(bench.path(&plan.files.name(index))).unwrap();
            assert_eq!(file.size(), (worker.bytes() + worker.uncounted).0);
            // Uncounted bytes take time of their own: without it what was made durable after the
            // stop would seem to have taken none. Who stops at once has no such time.
            let more_than_one = worker.uncounted.0 > 4096;
            assert_eq!(worker.uncounted_time > Nanos(0), more_than_one, "{worker:?}");
            if stonewall == Stonewall::Finish {
                assert_eq!(Bytes(file.size()), whole);
            }
        }
    }
}

#[test]
fn one_full_disk_stops_the_endless_work_of_the_others() {
    let bench = Bench::new();
    symlink("/dev/null", bench.path("f.0")).unwrap();
    symlink("/dev/full", bench.path("f.1")).unwrap();
    let mut plan = stream(Interface::Offset, Direction::Write, 1 << 50);
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
fn a_stream_of_the_c_library_tells_what_its_buffer_kept_back() {
    let bench = Bench::new();
    symlink("/dev/full", bench.path("f.0")).unwrap();
    for flush in [Flush::None, Flush::Fsync] {
        let mut plan = stream(Interface::Stdio, Direction::Write, 4);
        plan.flush = flush;
        let error = bench.run(&plan).unwrap_err();
        assert!(error.to_string().contains("the filesystem is full"), "{error}");
    }
}

#[test]
fn an_interrupt_ends_endless_work() {
    let bench = Bench::new();
    let plan = stream(Interface::Null, Direction::Write, 1 << 50);
    let error = thread::scope(|scope| {
        let phase = scope.spawn(|| bench.run(&plan));
        while bench.progress.snapshot().done == Bytes(0) {
            thread::yield_now();
        }
        bench.interrupt.store(true, Relaxed);
        phase.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, EngineError::Interrupted), "{error:?}");
    // And whoever is interrupted before he begins touches nothing.
    let plan = stream(Interface::Offset, Direction::Write, 1);
    assert!(matches!(bench.run(&plan), Err(EngineError::Interrupted)));
    assert!(!bench.path("f.0").exists());
    let remove = remove(&plan.files, 1, &bench.context());
    assert!(matches!(remove, Err(EngineError::Interrupted)));
}

#[test]
fn progress_ends_at_the_total() {
    let bench = Bench::new();
    let mut plan = stream(Interface::Null, Direction::Read, 1000);
    plan.workers = threads(3, Stonewall::Off);
    bench.run(&plan).unwrap();
    let total = Bytes(3 * 1000 * 4096);
    let snapshot = bench.progress.snapshot();
    assert_eq!((snapshot.done, snapshot.total, snapshot.ops), (total, total, Ops(3000)));
    assert!(fs::read_dir(bench.directory.path()).unwrap().next().is_none(), "no file was touched");
}

#[test]
fn files_are_removed_once() {
    let bench = Bench::new();
    let mut plan = stream(Interface::Offset, Direction::Write, 1);
    plan.workers = threads(2, Stonewall::Off);
    bench.run(&plan).unwrap();
    let result = remove(&plan.files, 2, &bench.context()).unwrap();
    assert!(result.workers.is_empty() && result.wall_time > Nanos(0));
    assert!(!bench.path("f.0").exists() && !bench.path("f.1").exists());
    let error = remove(&plan.files, 2, &bench.context()).unwrap_err().to_string();
    assert!(error.starts_with("removing ") && error.contains("/f.0: the file is missing"));
}

#[test]
fn contradictions_are_refused_before_anything_is_touched() {
    let bench = Bench::new();
    let good = stream(Interface::Offset, Direction::Write, 1);
    let refused = |change: &dyn Fn(&mut Stream)| {
        let mut plan = good.clone();
        change(&mut plan);
        bench.refusal(&plan)
    };
    for (text, expected) in [
        (refused(&|s| s.record = Bytes(0)), "record is empty"),
        (refused(&|s| s.size = Bytes(4095)), "smaller than one record"),
        (refused(&|s| s.workers.count = 0), "no workers"),
        (
            refused(&|s| {
                s.workers.count = 2;
                s.files = Files::One("f".into());
            }),
            "several workers for one file",
        ),
        (refused(&|s| s.fill = Fill::Random { entropy: f64::NAN, duplicates: 0.0 }), "not a share"),
        (
            refused(&|s| {
                s.direction = Direction::Read;
                s.open.presence = Presence::Fresh;
            }),
            "just created",
        ),
        (
            refused(&|s| {
                s.interface = Interface::Stdio;
                s.open.direct = true;
            }),
            "without O_DIRECT",
        ),
        (
            refused(&|s| {
                s.interface = Interface::Null;
                s.direction = Direction::Read;
                s.verify = true;
            }),
            "no content to verify",
        ),
        (refused(&|s| s.workers.kind = WorkerKind::Process), "no command"),
    ] {
        assert!(text.starts_with("this stream cannot run: ") && text.contains(expected), "{text}");
    }
    assert!(fs::read_dir(bench.directory.path()).unwrap().next().is_none());
}

#[test]
fn a_reader_wants_its_file_laid_out() {
    let bench = Bench::new();
    let mut plan = stream(Interface::Offset, Direction::Read, 4);
    plan.open = Open::default();
    let text = bench.refusal(&plan);
    assert!(text.contains("f.0 was not laid out: 0B of 16KiB are there; run the phase"), "{text}");
}
