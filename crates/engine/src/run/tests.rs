use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use model::{
    Nanos, Ops,
    phase::{Access, Direction, Flush, Open, Stonewall, Workers},
};
use tempfile::TempDir;

use super::*;
use crate::io::conformance::{kernel_allows_direct, stream};

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

const INTERFACES: [Interface; 3] = [Interface::Offset, Interface::Position, Interface::Stdio];
const ORDERS: [Access; 5] = [
    Access::Sequential,
    Access::Backward,
    Access::SameRecord,
    Access::Stride { records: 17 },
    Access::Shuffled,
];

fn threads(count: u32, stonewall: Stonewall) -> Workers {
    Workers { count, kind: WorkerKind::Thread, stonewall }
}

#[test]
fn every_interface_reads_what_every_interface_wrote() {
    let bench = Bench::new();
    for fill in [Fill::Random { entropy: 0.3, seed: 11 }, Fill::PagePattern] {
        for written_by in INTERFACES {
            let mut write = stream(written_by, Direction::Write, 32);
            write.fill = fill;
            write.open.presence = Presence::Fresh;
            write.flush = Flush::Fsync;
            write.workers = threads(2, Stonewall::Off);
            let result = bench.run(&write).unwrap();
            assert_eq!((result.ops(), result.bytes()), (Ops(64), Bytes::kib(256)));
            for (read_by, access) in INTERFACES.iter().flat_map(|i| ORDERS.map(|o| (*i, o))) {
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

#[test]
fn shuffled_writes_fill_the_file() {
    let bench = Bench::new();
    for interface in INTERFACES {
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
    let EngineError::Content { offset, found, expected, .. } = bench.run(&plan).unwrap_err() else {
        panic!("the change was overlooked")
    };
    assert_eq!((offset, found, expected), (Bytes(9000), content[9000], content[9000] ^ 0x40));
}

#[test]
fn no_two_blocks_of_a_run_are_equal() {
    let bench = Bench::new();
    let mut plan = stream(Interface::Offset, Direction::Write, 2048);
    plan.fill = Fill::Random { entropy: 0.0, seed: 1 };
    plan.workers = threads(2, Stonewall::Off);
    bench.run(&plan).unwrap();
    let content = [fs::read(bench.path("f.0")).unwrap(), fs::read(bench.path("f.1")).unwrap()];
    let mut blocks: Vec<&[u8]> = content.iter().flat_map(|bytes| bytes.chunks(512)).collect();
    let count = blocks.len();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!((count, blocks.len()), (32_768, 32_768));
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
        assert_eq!((worker.worker, worker.reads), (index, false));
        assert_eq!((worker.ops, worker.latency.count()), (Ops(64), 64));
        assert_eq!(worker.bytes.0, worker.ops.0 * 4096);
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
    let reads: Vec<bool> = result.workers.iter().map(|worker| worker.reads).collect();
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
        assert!(result.workers.iter().any(|worker| worker.bytes == whole), "{stonewall:?}");
        for (worker, index) in result.workers.iter().zip(0..) {
            assert_eq!(worker.bytes.0, worker.ops.0 * 4096);
            let file = fs::metadata(bench.path(&plan.files.name(index))).unwrap();
            assert_eq!(file.size(), (worker.bytes + worker.uncounted).0);
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
    assert_eq!(bench.progress.snapshot(), crate::Snapshot { done: total, total });
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
        (refused(&|s| s.fill = Fill::Random { entropy: f64::NAN, seed: 0 }), "not a share"),
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
