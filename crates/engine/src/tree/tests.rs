use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    sync::atomic::AtomicBool,
};

use model::{
    Ops,
    phase::{Fill, IoPriority, Pin, Stonewall, TreeOrder, WorkerKind, Workers},
};
use tempfile::TempDir;

use super::*;
use crate::Progress;

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

    fn run(&self, tree: &Tree) -> Result<PhaseResult, EngineError> {
        let context = Context {
            directory: self.directory.path(),
            progress: &self.progress,
            interrupt: &self.interrupt,
            state: None,
            worker_command: &[],
        };
        run_tree(tree, &context)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join("t.0").join(name)
    }

    fn length(&self, name: &str) -> Option<u64> {
        fs::metadata(self.path(name)).ok().map(|status| status.len())
    }

    fn refusal(&self, tree: &Tree) -> String {
        self.run(tree).unwrap_err().to_string()
    }
}

/// Ten files of 10000 bytes in records of 4 KiB, four in a directory.
fn tree(steps: &[TreeStep]) -> Tree {
    Tree {
        name: "t".into(),
        files: 10,
        per_directory: 4,
        size: Bytes(10_000),
        record: Bytes::kib(4),
        order: TreeOrder::Created,
        steps: steps.to_vec(),
        fill: Fill::default(),
        seed: 7,
        workers: Workers::ONE,
    }
}

const MAKE: [TreeStep; 3] = [TreeStep::Create, TreeStep::Write, TreeStep::Close];

#[test]
fn files_lie_where_the_contract_says_and_have_their_size() {
    let bench = Bench::new();
    let result = bench.run(&tree(&MAKE)).unwrap();
    for file in 0..10 {
        assert_eq!(bench.length(&format!("{}/{file}", file / 4)), Some(10_000), "{file}");
    }
    assert_eq!(fs::read_dir(bench.path("")).unwrap().count(), 3);
    let worker = &result.workers[0];
    assert_eq!((worker.written.ops, worker.written.bytes), (Ops(10), Bytes(100_000)));
    assert_eq!((result.ops(), worker.read), (Ops(10), model::phase::Moved::default()));
    assert_eq!(worker.latencies.write.count(), 10);
    assert_eq!(worker.latencies.read.count(), 0);
    assert_eq!(worker.series.ops.iter().sum::<u64>(), 10);
    assert_eq!(worker.series.bytes.iter().sum::<u64>(), 100_000);
    assert!(result.wall_time >= worker.loop_time);
    let snapshot = bench.progress.snapshot();
    assert_eq!((snapshot.done, snapshot.total), (Bytes(100_000), Bytes(100_000)));
}

#[test]
fn each_step_does_what_it_says() {
    use TreeStep::{
        Append, Chmod, Close, Fsync, FsyncDirectory, Link, List, Open, Read, Rename, RenameBack,
        Stat, Unlink, UnlinkLink,
    };
    let bench = Bench::new();
    bench.run(&tree(&MAKE)).unwrap();
    let read = bench.run(&tree(&[Open, Read, Close])).unwrap();
    assert_eq!((read.workers[0].read.ops, read.bytes()), (Ops(10), Bytes(100_000)));
    assert_eq!(read.workers[0].latencies.read.count(), 10);
    let looked = bench.run(&tree(&[Stat, List, FsyncDirectory])).unwrap();
    assert_eq!((looked.ops(), looked.bytes()), (Ops(10), Bytes(0)));

    bench.run(&tree(&[Open, Read, Append, Fsync, Close])).unwrap();
    assert_eq!(bench.length("2/9"), Some(10_000 + 4096));
    let longer = bench.run(&tree(&[Open, Read, Close])).unwrap();
    assert_eq!(longer.bytes(), Bytes(140_960), "reads go to the end");

    bench.run(&tree(&[Chmod])).unwrap();
    let mode = fs::metadata(bench.path("0/0")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    bench.run(&tree(&[Link])).unwrap();
    assert_eq!(fs::metadata(bench.path("1/5.link")).unwrap().nlink(), 2);
    bench.run(&tree(&[UnlinkLink])).unwrap();
    assert_eq!(fs::metadata(bench.path("1/5")).unwrap().nlink(), 1);

    bench.run(&tree(&[Rename])).unwrap();
    assert_eq!((bench.length("0/3"), bench.length("0/3.new")), (None, Some(14_096)));
    bench.run(&tree(&[RenameBack])).unwrap();
    assert_eq!((bench.length("0/3"), bench.length("0/3.new")), (Some(14_096), None));

    bench.run(&tree(&[Unlink])).unwrap();
    assert_eq!(fs::read_dir(bench.path("0")).unwrap().count(), 0);
}

#[test]
fn steps_may_come_again_and_empty_files_are_files() {
    use TreeStep::{Append, Close, Create, Open, Read, Unlink, Write};
    let bench = Bench::new();
    let whole = [Create, Write, Append, Close, Open, Read, Close, Unlink, Create, Close];
    let result = bench.run(&tree(&whole)).unwrap();
    let worker = &result.workers[0];
    assert_eq!((worker.written.bytes, worker.read.bytes), (Bytes(140_960), Bytes(140_960)));
    assert_eq!((worker.written.ops, worker.read.ops), (Ops(10), Ops(0)), "a file counts once");
    assert_eq!(bench.length("2/8"), Some(0));
    let empty = Tree { size: Bytes(0), record: Bytes(0), name: "e".into(), ..tree(&whole[..2]) };
    let closed = Tree { steps: vec![Create, Close], ..empty };
    assert_eq!(bench.run(&closed).unwrap().ops(), Ops(10));
}

#[test]
fn no_two_blocks_are_equal_and_none_can_be_compressed() {
    let bench = Bench::new();
    let workers = Workers::threads(2);
    let plan = Tree { files: 300, size: Bytes(8192), workers, ..tree(&MAKE) };
    bench.run(&plan).unwrap();
    let mut blocks = BTreeSet::new();
    for worker in ["t.0", "t.1"] {
        for file in 0..300 {
            let path = bench.directory.path().join(format!("{worker}/{}/{file}", file / 4));
            for block in fs::read(path).unwrap().chunks(4096) {
                assert!(block.iter().filter(|byte| **byte == 0).count() < 64, "random all over");
                assert!(blocks.insert(block.to_vec()), "a block came twice");
            }
        }
    }
    assert_eq!(blocks.len(), 2 * 300 * 2);
}

#[test]
fn entropy_is_the_share_of_random_bytes() {
    let bench = Bench::new();
    let fill = Fill::Random { entropy: 0.25, duplicates: 0.0 };
    bench.run(&Tree { fill, ..tree(&MAKE) }).unwrap();
    let bytes = fs::read(bench.path("1/6")).unwrap();
    assert!(bytes[1024..4096].iter().all(|byte| *byte == 0));
    assert!(bytes[16..1024].iter().filter(|byte| **byte == 0).count() < 64);
    bench.run(&Tree { fill: Fill::PagePattern, name: "p".into(), ..tree(&MAKE) }).unwrap();
    let bytes = fs::read(bench.directory.path().join("p.0/0/0")).unwrap();
    assert_eq!((&bytes[..9], &bytes[4096..4105]), (&b"        \0"[..], &b"        \0"[..]));
}

#[test]
fn a_shuffled_order_has_every_file_once() {
    let bench = Bench::new();
    let order = TreeOrder::Shuffled;
    let files = 500;
    bench.run(&Tree { order, files, size: Bytes(0), ..tree(&MAKE[..1]) }).unwrap_err();
    let steps = vec![TreeStep::Create, TreeStep::Close];
    let make = Tree { order, files, size: Bytes(0), steps, ..tree(&[]) };
    assert_eq!(bench.run(&make).unwrap().ops(), Ops(500));
    let inode =
        |file: u64| fs::metadata(bench.path(&format!("{}/{file}", file / 4))).unwrap().ino();
    let inodes: Vec<_> = (0..500).map(inode).collect();
    assert!(!inodes.is_sorted(), "created in another order than numbered");
    let remove = Tree { steps: vec![TreeStep::Unlink], seed: 8, ..make };
    assert_eq!(bench.run(&remove).unwrap().ops(), Ops(500));
}

#[test]
fn workers_have_directories_of_their_own() {
    let bench = Bench::new();
    let workers =
        Workers { pin: Pin::Each, io_priority: Some(IoPriority::Idle), ..Workers::threads(3) };
    let result = bench.run(&Tree { workers, ..tree(&MAKE) }).unwrap();
    assert_eq!(result.ops(), Ops(30));
    let indices: Vec<_> = result.workers.iter().map(|worker| worker.worker).collect();
    assert_eq!(indices, [0, 1, 2]);
    assert!(bench.directory.path().join("t.2/2/9").exists());
}

#[test]
fn a_stonewall_stops_the_counting_and_perhaps_the_work() {
    let bench = Bench::new();
    for stonewall in [Stonewall::Stop, Stonewall::Finish] {
        let workers = Workers { stonewall, ..Workers::threads(4) };
        let name = format!("{stonewall:?}");
        let plan = Tree { files: 400, workers, name: name.clone(), ..tree(&MAKE) };
        let result = bench.run(&plan).unwrap();
        assert!(result.workers.iter().any(|worker| worker.ops() == Ops(400)), "one was first");
        for worker in &result.workers {
            let last = bench.directory.path().join(format!("{name}.{}/99/399", worker.worker));
            let whole = worker.ops() == Ops(400) || stonewall == Stonewall::Finish;
            assert!(!whole || last.exists(), "{stonewall:?} {}", worker.worker);
            assert_eq!(worker.latencies.write.count(), worker.ops().0);
            let moved = worker.written.bytes + worker.uncounted;
            assert!(stonewall != Stonewall::Finish || moved == Bytes(4_000_000));
        }
    }
}

#[test]
fn errors_name_operation_path_and_cure() {
    let bench = Bench::new();
    let missing = bench.refusal(&tree(&[TreeStep::Stat]));
    let path = bench.path("0/0").display().to_string();
    assert_eq!(
        missing,
        format!("examining {path}: the file is missing; run the phase that writes it first")
    );
    bench.run(&tree(&MAKE)).unwrap();
    let there = bench.refusal(&tree(&MAKE));
    assert!(there.starts_with(&format!("opening {path}: something of that name")), "{there}");
    let longer =
        Tree { size: Bytes(20_000), ..tree(&[TreeStep::Open, TreeStep::Read, TreeStep::Close]) };
    assert!(bench.refusal(&longer).contains("the file ends at offset 10000"));
    let renamed = bench.refusal(&tree(&[TreeStep::RenameBack]));
    assert!(renamed.starts_with(&format!("renaming {path}.new: ")), "{renamed}");
    fs::write(bench.directory.path().join("f.0"), "").unwrap();
    let blocked = bench.refusal(&Tree { name: "f".into(), ..tree(&MAKE) });
    assert!(blocked.starts_with("opening ") && blocked.ends_with("f.0"), "{blocked}");
}

#[test]
fn an_interruption_is_obeyed() {
    let bench = Bench::new();
    bench.interrupt.store(true, Relaxed);
    assert!(matches!(bench.run(&tree(&MAKE)), Err(EngineError::Interrupted)));
    assert!(!bench.path("").exists(), "nothing was touched");
    bench.interrupt.store(false, Relaxed);
    let steps = vec![TreeStep::Create, TreeStep::Write, TreeStep::Close, TreeStep::Unlink];
    let endless = Tree { files: u64::MAX, per_directory: u64::MAX, steps, ..tree(&[]) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while bench.progress.snapshot().done == Bytes(0) {
                std::thread::yield_now();
            }
            bench.interrupt.store(true, Relaxed);
        });
        assert!(matches!(bench.run(&endless), Err(EngineError::Interrupted)));
    });
}

#[test]
fn one_failure_ends_the_work_of_all_and_is_the_one_told() {
    let bench = Bench::new();
    let directory = bench.directory.path().join("t.1/0");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("5"), "").unwrap();
    let steps = vec![TreeStep::Create, TreeStep::Close, TreeStep::Unlink];
    let (files, per_directory) = (u64::MAX, u64::MAX);
    let workers = Workers::threads(2);
    let refusal = bench.refusal(&Tree { files, per_directory, workers, ..tree(&steps) });
    assert!(refusal.contains("t.1/0/5"), "{refusal}");
}

#[test]
fn trees_that_contradict_themselves_are_refused_before_anything_is_touched() {
    use TreeStep::{Append, Close, Create, Open, Read, Write};
    let bench = Bench::new();
    let process = Workers { kind: WorkerKind::Process, ..Workers::ONE };
    let duplicates = Fill::Random { entropy: 1.0, duplicates: 0.5 };
    let trees = [
        Tree { workers: Workers::threads(0), ..tree(&MAKE) },
        Tree { workers: process, ..tree(&MAKE) },
        Tree { files: 0, ..tree(&MAKE) },
        Tree { per_directory: 0, ..tree(&MAKE) },
        Tree { record: Bytes(0), ..tree(&MAKE) },
        Tree { name: "a/b".into(), ..tree(&MAKE) },
        Tree { fill: duplicates, ..tree(&MAKE) },
        tree(&[]),
        tree(&[Create]),
        tree(&[Write]),
        tree(&[Create, Open, Close]),
        tree(&[Create, Read, Close]),
        tree(&[Open, Append, Write, Close]),
        tree(&[Open, Write, Append, Close]),
    ];
    for tree in trees {
        let refusal = bench.run(&tree).unwrap_err();
        assert!(matches!(refusal, EngineError::Tree { .. }), "{refusal}");
        assert!(!bench.path("").exists(), "{refusal}");
    }
}
