use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use model::{
    Nanos, Ops,
    phase::{Durability, Load, Stonewall, WorkerKind, Workers},
};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use super::*;
use crate::{Operation, Progress};

/// Directory under test, loadfile next to it, and context of a phase.
struct Bench {
    directory: TempDir,
    files: TempDir,
    progress: Progress,
    interrupt: AtomicBool,
}

impl Bench {
    fn new() -> Self {
        Self::at(TempDir::new().unwrap())
    }

    fn at(directory: TempDir) -> Self {
        Self {
            directory,
            files: TempDir::new().unwrap(),
            progress: Progress::default(),
            interrupt: AtomicBool::new(false),
        }
    }

    /// One client that replays this loadfile once, without a rate limit.
    fn replay(&self, text: &str) -> Replay {
        let path = self.files.path().join("load.txt");
        fs::write(&path, text).unwrap();
        Replay {
            loadfile: Load::File { path: Some(path.to_str().unwrap().into()) },
            until: Until::Replayed(1),
            resolve: true,
            durability: Durability::default(),
            xattr: false,
            rate: None,
            use_timestamps: false,
            parent_check: false,
            workers: Workers::threads(1),
        }
    }

    fn run(&self, replay: &Replay) -> Result<PhaseResult, EngineError> {
        let context = Context {
            directory: self.directory.path(),
            progress: &self.progress,
            interrupt: &self.interrupt,
            state: None,
            worker_command: &[],
            start: None,
        };
        run_replay(replay, &context)
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join(ROOT)
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(self.directory.path()).unwrap().next().is_none()
    }
}

/// All types of operations, and the number of each type with times.
const ALL: &str = include_str!("../../tests/traces/replay.load");
const COUNTS: [(ReplayOp, u64); 17] = [
    (ReplayOp::NTCreateX, 6),
    (ReplayOp::Close, 5),
    (ReplayOp::Rename, 1),
    (ReplayOp::Unlink, 2),
    (ReplayOp::Deltree, 2),
    (ReplayOp::Rmdir, 1),
    (ReplayOp::Mkdir, 2),
    (ReplayOp::Qpathinfo, 3),
    (ReplayOp::Qfileinfo, 1),
    (ReplayOp::Qfsinfo, 1),
    (ReplayOp::Sfileinfo, 1),
    (ReplayOp::Find, 3),
    (ReplayOp::WriteX, 2),
    (ReplayOp::ReadX, 2),
    (ReplayOp::LockX, 1),
    (ReplayOp::UnlockX, 1),
    (ReplayOp::Flush, 1),
];

fn counts(result: &PhaseResult) -> Vec<(ReplayOp, u64)> {
    let latencies = result.latencies();
    latencies.by_kind.iter().map(|(kind, times)| (*kind, times.count())).collect()
}

#[test]
fn counts_are_those_of_the_loadfile() {
    let bench = Bench::new();
    for (clients, times) in [(1, 1), (3, 1), (2, 4)] {
        let workers = Workers::threads(clients);
        let replay = Replay { workers, until: Until::Replayed(times), ..bench.replay(ALL) };
        let result = bench.run(&replay).unwrap();
        let all = u64::from(clients) * times;
        assert_eq!(counts(&result), COUNTS.map(|(kind, count)| (kind, count * all)));
        let sum = |changes| {
            let of = COUNTS.iter().filter(|(kind, _)| kind.changes() == changes);
            Ops(of.map(|(_, count)| count).sum::<u64>() * all)
        };
        let (read, written) =
            result.workers.iter().fold((Ops(0), Ops(0)), |(read, written), own| {
                (read + own.read.ops, written + own.written.ops)
            });
        assert_eq!((read, written), (sum(false), sum(true)));
        // Requested bytes, although one of these reads is short.
        assert_eq!(result.bytes(), Bytes((4096 + 4096 + 1 + 65536) * all));
        let latencies = result.latencies();
        assert_eq!(Ops(latencies.read.count()), read);
        assert_eq!(Ops(latencies.write.count()), written);
        assert_eq!(unexpected(&result), 0);
        assert!(bench.is_empty(), "files are left");
        let snapshot = bench.progress.snapshot();
        assert_eq!((snapshot.ops, snapshot.done), (result.ops(), result.bytes()));
        assert_eq!(snapshot.total, snapshot.done);
    }
}

#[test]
fn the_built_in_loadfile_has_its_expected_statuses_and_label() {
    let bench = Bench::new();
    let load = Load::Office { iterations: 1, seed: 3 };
    let replay = Replay { loadfile: load, workers: Workers::threads(3), ..bench.replay("") };
    // The second time, the files of the first time exist.
    for times in [1, 2] {
        let until = Until::Replayed(times);
        let result = bench.run(&Replay { until, ..replay.clone() }).unwrap();
        let facts = &result.facts;
        let each: u64 = facts.get("loadfile.operations").unwrap().parse().unwrap();
        assert_eq!((result.ops(), unexpected(&result)), (Ops(each * 3 * times), 0));
        assert!(facts.get("loadfile.label").unwrap().starts_with("fslab-office"), "{facts:?}");
        assert!(bench.is_empty());
    }
}

fn unexpected(result: &PhaseResult) -> u64 {
    result.workers.iter().map(|worker| worker.unexpected.0).sum()
}

#[test]
fn every_option_works_with_all_operations() {
    let bench = Bench::at(TempDir::new_in("/var/tmp").unwrap());
    let durability = Durability { files: true, directories: true, writes: true };
    for resolve in [true, false] {
        let plain = bench.replay(ALL);
        let replay = Replay { resolve, durability, xattr: true, parent_check: true, ..plain };
        let result = bench.run(&replay).unwrap();
        assert_eq!(counts(&result), COUNTS);
        // A name in another case exists only with `resolve`.
        assert_eq!(unexpected(&result), u64::from(!resolve));
    }
}

#[test]
fn deviations_are_counted_and_the_replay_continues() {
    let bench = Bench::new();
    let replay = bench.replay(
        r#"NTCreateX "\there" 0x40 0x2 1 NT_STATUS_OBJECT_NAME_NOT_FOUND
NTCreateX "\missing" 0x40 0x1 2 NT_STATUS_OK
ReadX 2 0 100 100 NT_STATUS_OK
Flush 2 NT_STATUS_OK
Close 2 NT_STATUS_OK
NTCreateX "\file" 0x40 0x2 3 NT_STATUS_OK
WriteX 3 0 100 100 NT_STATUS_OK
ReadX 3 0 100 50 NT_STATUS_OK
ReadX 3 100 100 0 NT_STATUS_END_OF_FILE
Close 3 NT_STATUS_OK
Unlink "\missing" 0 NT_STATUS_OK
Unlink "\missing" 0 NT_STATUS_OBJECT_NAME_NOT_FOUND
Rename "\missing" "\other" NT_STATUS_OK
Rmdir "\missing" NT_STATUS_OK
QUERY_PATH_INFORMATION "\missing" 1004 NT_STATUS_OK
QUERY_PATH_INFORMATION "\FILE" 1004 NT_STATUS_OK
"#,
    );
    let result = bench.run(&replay).unwrap();
    assert_eq!((result.ops(), unexpected(&result)), (Ops(16), 10));
    assert!(bench.is_empty());
}

#[test]
fn failed_transfers_do_not_count_as_throughput() {
    let bench = Bench::new();
    let replay = bench.replay(
        r#"NTCreateX "\missing" 0x40 0x1 1 NT_STATUS_OK
ReadX 1 0 1048576 1048576 NT_STATUS_OK
WriteX 1 0 1048576 1048576 NT_STATUS_OK
NTCreateX "\d" 0x1 0x2 2 NT_STATUS_OK
ReadX 2 0 1048576 1048576 NT_STATUS_INVALID_DEVICE_REQUEST
WriteX 2 0 1048576 1048576 NT_STATUS_INVALID_DEVICE_REQUEST
NTCreateX "\file" 0x40 0x2 3 NT_STATUS_OK
WriteX 3 0 100 100 NT_STATUS_OK
ReadX 3 0 300 100 NT_STATUS_OK
ReadX 3 100 5000 0 NT_STATUS_END_OF_FILE
"#,
    );
    let result = bench.run(&replay).unwrap();
    // A short read counts with its requested bytes.
    let worker = &result.workers[0];
    assert_eq!((worker.written.bytes, worker.read.bytes), (Bytes(100), Bytes(300 + 5000)));
    assert_eq!((result.ops(), unexpected(&result)), (Ops(10), 3));
    assert_eq!(bench.progress.snapshot().done, Bytes(5400));
}

#[test]
fn expected_statuses_also_apply_to_files_that_are_not_open() {
    for (status, expected) in [("NT_STATUS_OK", 9), ("NT_STATUS_INVALID_HANDLE", 1), ("*", 1)] {
        let bench = Bench::new();
        let text = [
            "ReadX 1 0 100 100",
            "WriteX 1 0 100 100",
            "Flush 1",
            "LockX 1 0 1",
            "UnlockX 1 0 1",
            "QUERY_FILE_INFORMATION 1 258",
            "SET_FILE_INFORMATION 1 258",
            "Close 1",
        ]
        .map(|line| format!("{line} {status}\n"))
        .concat();
        let text = format!("NTCreateX \"\\missing\" 0x40 0x1 1 NT_STATUS_OK\n{text}");
        let result = bench.run(&bench.replay(&text)).unwrap();
        assert_eq!((result.ops(), unexpected(&result)), (Ops(9), expected), "{status}");
    }
}

#[test]
fn a_read_must_have_the_recorded_length() {
    let bench = Bench::new();
    let text = r#"NTCreateX "\file" 0x40 0x2 1 NT_STATUS_OK
WriteX 1 0 100 100 NT_STATUS_OK
ReadX 1 0 100 0 SUCCESS
ReadX 1 0 300 0 SUCCESS
ReadX 1 0 100 100 SUCCESS
ReadX 1 0 100 99 SUCCESS
"#;
    let result = bench.run(&bench.replay(text)).unwrap();
    assert_eq!((result.ops(), unexpected(&result)), (Ops(6), 1));
}

#[test]
fn a_replay_by_time_repeats_the_loadfile_and_ends_in_time() {
    let bench = Bench::new();
    let until = Until::Time { ramp: Nanos(20_000_000), run: Nanos(1_200_000_000) };
    let replay = Replay { until, workers: Workers::threads(2), ..bench.replay(ALL) };
    let result = bench.run(&replay).unwrap();
    let once: u64 = COUNTS.iter().map(|(_, count)| count).sum();
    assert!(result.ops().0 > 2 * once, "{:?}", result.ops());
    assert_eq!(unexpected(&result), 0);
    for worker in &result.workers {
        let ticked = worker.ticked.unwrap();
        assert_eq!(ticked.elapsed, Nanos(1_000_000_000));
        assert!(ticked.bytes > Bytes(0) && ticked.bytes <= worker.bytes());
        assert!(worker.loop_time <= Nanos(1_300_000_000) || worker.loop_time < result.wall_time);
        assert_eq!(worker.series.ops.iter().sum::<u64>(), worker.ops().0);
    }
    assert_eq!(bench.progress.snapshot().total, Bytes(0));
    assert!(bench.is_empty());
}

#[test]
fn rates_and_timestamps_are_respected() {
    let bench = Bench::new();
    let text = r#"NTCreateX "\f" 0x40 0x2 1 NT_STATUS_OK
WriteX 1 0 10000 10000 NT_STATUS_OK
WriteX 1 0 10000 10000 NT_STATUS_OK
WriteX 1 0 10000 10000 NT_STATUS_OK
Close 1 NT_STATUS_OK
"#;
    let result = bench.run(&Replay { rate: Some(Bytes(1_000_000)), ..bench.replay(text) }).unwrap();
    let least = Nanos(30_000_000);
    assert!(result.workers[0].loop_time >= least, "{}", result.workers[0].loop_time);

    let text = "0.0 Mkdir \"\\d\" NT_STATUS_OK\n0.05 Rmdir \"\\d\" NT_STATUS_OK\n";
    let until = Until::Replayed(2);
    let paced = Replay { use_timestamps: true, until, ..bench.replay(text) };
    let result = bench.run(&paced).unwrap();
    assert!(result.workers[0].loop_time >= Nanos(100_000_000), "the second one is due later");

    // A sleep delays the following operation, which counts as its latency.
    let text = "0.0 Mkdir \"\\d\" NT_STATUS_OK\n0.0 Sleep 30000 NT_STATUS_OK\n\
                0.001 Rmdir \"\\d\" NT_STATUS_OK\n";
    let result = bench.run(&Replay { use_timestamps: true, ..bench.replay(text) }).unwrap();
    let latencies = result.latencies();
    let rmdir = latencies.by_kind.iter().find(|(kind, _)| *kind == ReplayOp::Rmdir).unwrap();
    assert!(rmdir.1.min().unwrap() >= Nanos(29_000_000), "{:?}", rmdir.1);
}

#[test]
fn an_interrupt_stops_a_replay_and_the_next_one_starts_clean() {
    let bench = Bench::new();
    let hour = Nanos(3_600_000_000_000);
    let until = Until::Time { ramp: hour, run: hour };
    let endless = Replay { until, workers: Workers::threads(2), ..bench.replay(ALL) };
    let waiting = Replay { rate: Some(Bytes(1)), ..endless.clone() };
    for replay in [endless, waiting] {
        std::thread::scope(|scope| {
            let phase = bench.progress.snapshot().phase;
            let run = scope.spawn(|| bench.run(&replay));
            while bench.progress.snapshot().phase == phase
                || bench.progress.snapshot().ops == Ops(0)
            {
                std::thread::yield_now();
            }
            bench.interrupt.store(true, Relaxed);
            assert!(matches!(run.join().unwrap(), Err(EngineError::Interrupted)));
        });
        assert!(matches!(bench.run(&replay), Err(EngineError::Interrupted)), "before the start");
        bench.interrupt.store(false, Relaxed);
        fs::write(bench.root().join("old"), "").unwrap();
        assert_eq!(counts(&bench.run(&bench.replay(ALL)).unwrap()), COUNTS);
        assert!(bench.is_empty());
    }
}

#[test]
fn links_do_not_lead_outside() {
    let bench = Bench::new();
    let outside = TempDir::new().unwrap();
    let file = outside.path().join("file");
    fs::write(&file, "precious").unwrap();
    // A link at the path of the root is rejected.
    symlink(outside.path(), bench.root()).unwrap();
    let error = bench.run(&bench.replay(ALL)).unwrap_err();
    let EngineError::Io { operation: Operation::Open, path, source, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*path, bench.root());
    let errno = source.raw_os_error();
    assert!([libc::ELOOP, libc::ENOTDIR].map(Some).contains(&errno), "{error}");
    fs::remove_file(bench.root()).unwrap();
    // A link in the remains of an earlier replay is removed and not followed.
    fs::create_dir_all(bench.root().join("clients")).unwrap();
    symlink(outside.path(), bench.root().join("clients/client0")).unwrap();
    symlink(outside.path(), bench.root().join("client1")).unwrap();
    assert_eq!(counts(&bench.run(&bench.replay(ALL)).unwrap()), COUNTS);
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert!(bench.is_empty());
}

#[test]
fn remains_of_an_earlier_replay_are_removed_at_any_depth() {
    let bench = Bench::new();
    let deep: PathBuf = std::iter::repeat_n("d", 700).collect();
    fs::create_dir_all(bench.root().join(deep)).unwrap();
    fs::write(bench.root().join("d/d/file"), "").unwrap();
    assert_eq!(counts(&bench.run(&bench.replay(ALL)).unwrap()), COUNTS);
    assert!(bench.is_empty());
}

#[test]
fn deltree_removes_files_and_keeps_directories() {
    let bench = Bench::new();
    let text = r#"Mkdir "\a" NT_STATUS_OK
Mkdir "\a\b" NT_STATUS_OK
NTCreateX "\a\b\f" 0x40 0x2 1 NT_STATUS_OK
Close 1 NT_STATUS_OK
Deltree "\a" NT_STATUS_OK
QUERY_PATH_INFORMATION "\a\b\f" 1 NT_STATUS_OBJECT_NAME_NOT_FOUND
QUERY_PATH_INFORMATION "\a\b" 1 NT_STATUS_OK
Deltree "\nothing" NT_STATUS_OK
"#;
    let result = bench.run(&bench.replay(text)).unwrap();
    assert_eq!((result.ops(), unexpected(&result)), (Ops(8), 0));
}

/// Small tmpfs; `None` if it cannot be mounted.
struct Small(PathBuf);

impl Small {
    #[expect(clippy::print_stderr, reason = "reports that the test is skipped")]
    fn on(directory: &Path, options: &std::ffi::CStr) -> Option<Self> {
        let mounted = mount("tmpfs", directory, "tmpfs", MountFlags::empty(), options);
        if mounted.is_err() {
            eprintln!("skipped: needs root");
        }
        mounted.is_ok().then(|| Self(directory.to_path_buf()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_full_filesystem_is_reported_with_the_line() {
    let directory = TempDir::new().unwrap();
    let Some(small) = Small::on(directory.path(), c"size=64k") else { return };
    let bench = Bench::at(directory);
    let text = r#"# full in the end
NTCreateX "\client1" 0x40 0x2 1 NT_STATUS_OK
WriteX 1 0 32768 32768 NT_STATUS_OK
WriteX 1 32768 65536 65536 NT_STATUS_OK
"#;
    let error = bench.run(&bench.replay(text)).unwrap_err();
    let EngineError::Line { operation, path, line, source } = &error else { panic!("{error}") };
    assert_eq!((*operation, *line), (Operation::Write, 4));
    assert_eq!(*path, bench.root().join("client0"));
    assert_eq!(source.raw_os_error(), Some(libc::ENOSPC));
    assert!(error.to_string().contains("for line 4 of the loadfile: the filesystem is full"));
    assert!(bench.is_empty(), "the files are removed nevertheless");
    drop(bench);
    drop(small);
}

#[test]
fn invalid_replays_are_rejected() {
    let bench = Bench::new();
    let plain = || bench.replay(ALL);
    let refused = |replay: Replay| bench.run(&replay).unwrap_err().to_string();
    let workers = |change: fn(&mut Workers)| {
        let mut replay = plain();
        change(&mut replay.workers);
        refused(replay)
    };
    let texts = [
        workers(|workers| workers.count = 0),
        workers(|workers| workers.kind = WorkerKind::Process),
        workers(|workers| workers.stonewall = Stonewall::Stop),
        refused(Replay { until: Until::Replayed(0), ..plain() }),
        refused(Replay { until: Until::Time { ramp: Nanos(1), run: Nanos(0) }, ..plain() }),
        refused(Replay { rate: Some(Bytes(0)), ..plain() }),
        refused(Replay { rate: Some(Bytes(1)), use_timestamps: true, ..plain() }),
        refused(Replay { use_timestamps: true, ..plain() }),
        refused(Replay { loadfile: Load::Office { iterations: 0, seed: 1 }, ..plain() }),
    ];
    for text in &texts {
        assert!(text.starts_with("invalid workload: "), "{text}");
    }
    let distinct: std::collections::BTreeSet<_> = texts.iter().collect();
    assert_eq!(distinct.len(), texts.len());
    assert!(bench.is_empty(), "nothing was changed");
}
