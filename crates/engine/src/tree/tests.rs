use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use model::{
    Ops,
    phase::{
        Calls, DataPattern, IoPriority, Naming, Pin, Set, Sharing, Sizes, Spread, Stonewall,
        TreeEnd, TreeOrder, WorkerKind, Workers,
    },
};
use tempfile::TempDir;

use super::*;
use crate::Progress;

mod hierarchy;
mod mounted;
mod names;
mod rings;

/// Directory under test and context of a phase.
struct Bench {
    directory: TempDir,
    progress: Progress,
    interrupt: AtomicBool,
}

impl Bench {
    fn new() -> Self {
        Self::at(TempDir::new().unwrap())
    }

    fn at(directory: TempDir) -> Self {
        let interrupt = AtomicBool::new(false);
        Self { directory, progress: Progress::default(), interrupt }
    }

    fn run(&self, tree: &Tree) -> Result<PhaseResult, EngineError> {
        let context = Context {
            directory: self.directory.path(),
            progress: &self.progress,
            interrupt: &self.interrupt,
            state: None,
            worker_command: &[],
            start: None,
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

/// Ten files of 10000 bytes in blocks of 4 KiB, four per directory.
fn tree(steps: &[TreeStep]) -> Tree {
    let set = Set {
        name: "t".into(),
        sharing: Sharing::Private,
        files: 10,
        spread: Spread::Directories { each: 4 },
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(Bytes(10_000)),
        block_size: Bytes::kib(4),
        data: DataPattern::default(),
        seed: 7,
    };
    Tree::new(set, steps.to_vec())
}

const EMPTY: Sizes = Sizes::Fixed(Bytes(0));

/// More entries than can be processed, all in one directory.
fn endless(steps: Vec<TreeStep>) -> Tree {
    let mut endless = Tree { steps, ..tree(&[]) };
    endless.set.files = u64::MAX;
    endless.set.spread = Spread::Directories { each: u64::MAX };
    endless
}

const MAKE: [TreeStep; 3] = [TreeStep::Create, TreeStep::Write, TreeStep::Close];

#[test]
fn files_are_at_the_documented_paths_and_have_their_size() {
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
fn each_step_has_its_documented_effect() {
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
    assert_eq!(mode & 0o777, 0o640);

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
fn steps_may_repeat_and_files_may_be_empty() {
    use TreeStep::{Append, Close, Create, Open, Read, Unlink, Write};
    let bench = Bench::new();
    let whole = [Create, Write, Append, Close, Open, Read, Close, Unlink, Create, Close];
    let result = bench.run(&tree(&whole)).unwrap();
    let worker = &result.workers[0];
    assert_eq!((worker.written.bytes, worker.read.bytes), (Bytes(140_960), Bytes(140_960)));
    assert_eq!((worker.written.ops, worker.read.ops), (Ops(10), Ops(0)), "a file counts once");
    assert_eq!(bench.length("2/8"), Some(0));
    let mut empty = tree(&[Create, Close]);
    (empty.set.sizes, empty.set.block_size, empty.set.name) = (EMPTY, Bytes(0), "e".into());
    assert_eq!(bench.run(&empty).unwrap().ops(), Ops(10));
}

#[test]
fn blocks_are_unique_and_incompressible() {
    let bench = Bench::new();
    let workers = Workers::threads(2);
    let mut plan = Tree { workers, ..tree(&MAKE) };
    (plan.set.files, plan.set.sizes) = (300, Sizes::Fixed(Bytes(8192)));
    bench.run(&plan).unwrap();
    let mut blocks = BTreeSet::new();
    for worker in ["t.0", "t.1"] {
        for file in 0..300 {
            let path = bench.directory.path().join(format!("{worker}/{}/{file}", file / 4));
            for block in fs::read(path).unwrap().chunks(4096) {
                assert!(block.iter().filter(|byte| **byte == 0).count() < 64, "random data");
                assert!(blocks.insert(block.to_vec()), "a block occurred twice");
            }
        }
    }
    assert_eq!(blocks.len(), 2 * 300 * 2);
}

#[test]
fn the_fraction_of_random_bytes_is_respected() {
    let bench = Bench::new();
    let fill = DataPattern::Random { incompressible_fraction: 0.25, duplicate_fraction: 0.0 };
    let mut plan = tree(&MAKE);
    plan.set.data = fill;
    bench.run(&plan).unwrap();
    let bytes = fs::read(bench.path("1/6")).unwrap();
    assert!(bytes[1024..4096].iter().all(|byte| *byte == 0));
    assert!(bytes[16..1024].iter().filter(|byte| **byte == 0).count() < 64);
    (plan.set.data, plan.set.name) = (DataPattern::PagePattern, "p".into());
    bench.run(&plan).unwrap();
    let bytes = fs::read(bench.directory.path().join("p.0/0/0")).unwrap();
    assert_eq!((&bytes[..9], &bytes[4096..4105]), (&b"        \0"[..], &b"        \0"[..]));
}

#[test]
fn a_random_order_has_every_file_once() {
    let bench = Bench::new();
    let mut make = tree(&[TreeStep::Create, TreeStep::Close]);
    (make.order, make.set.files, make.set.sizes) = (TreeOrder::Random, 500, EMPTY);
    assert_eq!(bench.run(&make).unwrap().ops(), Ops(500));
    let inode =
        |file: u64| fs::metadata(bench.path(&format!("{}/{file}", file / 4))).unwrap().ino();
    let inodes: Vec<_> = (0..500).map(inode).collect();
    assert!(!inodes.is_sorted(), "not created in numeric order");
    let remove = Tree { steps: vec![TreeStep::Unlink], ..make };
    assert_eq!(bench.run(&remove).unwrap().ops(), Ops(500));
}

#[test]
fn workers_have_private_directories() {
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
fn a_stonewall_stops_the_counting_and_optionally_the_work() {
    let bench = Bench::new();
    for stonewall in [Stonewall::Stop, Stonewall::Finish] {
        let workers = Workers { stonewall, ..Workers::threads(4) };
        let name = format!("{stonewall:?}");
        let mut plan = Tree { workers, ..tree(&MAKE) };
        (plan.set.files, plan.set.name) = (400, name.clone());
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
fn errors_have_operation_path_and_hint() {
    let bench = Bench::new();
    let nowhere = bench.refusal(&tree(&[TreeStep::Stat]));
    let root = bench.path("").display().to_string();
    assert_eq!(
        nowhere,
        format!(
            "opening {}: the file or its directory is missing; run the phase that writes it first",
            root.trim_end_matches('/')
        )
    );
    assert!(!bench.path("").exists(), "reading creates nothing");
    fs::create_dir(bench.path("")).unwrap();
    let missing = bench.refusal(&tree(&[TreeStep::Stat]));
    let path = bench.path("0/0").display().to_string();
    assert_eq!(
        missing,
        format!("examining {path}: the file is missing; run the phase that writes it first")
    );
    bench.run(&tree(&MAKE)).unwrap();
    let there = bench.refusal(&tree(&MAKE));
    assert!(there.starts_with(&format!("opening {path}: the name already exists")), "{there}");
    let mut longer = tree(&[TreeStep::OpenRead, TreeStep::Read, TreeStep::Close]);
    longer.set.sizes = Sizes::Fixed(Bytes(20_000));
    assert!(bench.refusal(&longer).contains("the file ends at offset 10000"));
    let renamed = bench.refusal(&tree(&[TreeStep::RenameBack]));
    assert!(renamed.starts_with(&format!("renaming {path}.new: ")), "{renamed}");
    fs::write(bench.directory.path().join("f.0"), "").unwrap();
    let mut plan = tree(&MAKE);
    plan.set.name = "f".into();
    let blocked = bench.refusal(&plan);
    assert!(blocked.starts_with("opening ") && blocked.ends_with("f.0"), "{blocked}");
}

#[test]
fn a_tree_can_be_interrupted() {
    let bench = Bench::new();
    bench.interrupt.store(true, Relaxed);
    assert!(matches!(bench.run(&tree(&MAKE)), Err(EngineError::Interrupted)));
    assert!(!bench.path("").exists(), "nothing was created");
    bench.interrupt.store(false, Relaxed);
    let steps = vec![TreeStep::Create, TreeStep::Write, TreeStep::Close, TreeStep::Unlink];
    let endless = endless(steps);
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
fn one_failure_stops_all_workers_and_is_reported() {
    let bench = Bench::new();
    let directory = bench.directory.path().join("t.1/0");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("5"), "").unwrap();
    let steps = vec![TreeStep::Create, TreeStep::Close, TreeStep::Unlink];
    let workers = Workers::threads(2);
    let refusal = bench.refusal(&Tree { workers, ..endless(steps) });
    assert!(refusal.contains("t.1/0/5"), "{refusal}");
}

/// Tree with a modification.
fn with(steps: &[TreeStep], change: impl FnOnce(&mut Tree)) -> Tree {
    let mut tree = tree(steps);
    change(&mut tree);
    tree
}

#[test]
fn invalid_trees_are_rejected_before_any_change() {
    use TreeStep::{
        Append, Close, Create, Fetch, LinkFirst, MakeParent, Open, OpenRead, Read, RenameAcross,
        Stat, Unlink, Write,
    };
    let bench = Bench::new();
    let ends = TreeEnd { remove_directories: true, sync: false };
    let trees = [
        with(&MAKE, |tree| tree.workers.count = 0),
        with(&MAKE, |tree| tree.workers.kind = WorkerKind::Process),
        with(&MAKE, |tree| tree.calls = Calls::Ring { depth: 0 }),
        with(&MAKE, |tree| tree.passes = 0),
        with(&MAKE, |tree| tree.set.files = 0),
        with(&MAKE, |tree| tree.set.spread = Spread::Directories { each: 0 }),
        with(&MAKE, |tree| tree.set.block_size = Bytes(0)),
        with(&MAKE, |tree| tree.set.name = "a/b".into()),
        with(&MAKE, |tree| {
            tree.set.data =
                DataPattern::Random { incompressible_fraction: 1.0, duplicate_fraction: 0.5 }
        }),
        with(&MAKE, |tree| tree.set.sizes = Sizes::Uniform { min: Bytes(2), max: Bytes(1) }),
        with(&MAKE, |tree| tree.set.sizes = Sizes::LogNormal { mean: Bytes(1), sigma: 5.0 }),
        with(&MAKE, |tree| {
            (tree.set.sharing, tree.workers.count) = (Sharing::File, 2);
        }),
        with(&[Unlink], |tree| {
            (tree.end, tree.workers.stonewall) = (ends, Stonewall::Stop);
        }),
        with(&[RenameAcross], |tree| tree.end = ends),
        with(&[LinkFirst], |tree| tree.order = TreeOrder::Random),
        with(&[MakeParent, Create, Close], |tree| tree.order = TreeOrder::Random),
        with(&[Unlink, Create, Close], |tree| {
            (tree.order, tree.set.spread) = (TreeOrder::Listed, Spread::Flat);
            tree.set.files = 8_388_609;
        }),
        tree(&[]),
        tree(&[Create]),
        tree(&[Write]),
        tree(&[Fetch, Stat]),
        tree(&[Create, Open, Close]),
        tree(&[Create, Read, Close]),
        tree(&[OpenRead, Write, Close]),
        tree(&[Open, Append, Write, Close]),
        tree(&[Open, Write, Append, Close]),
    ];
    for tree in trees {
        let refusal = bench.run(&tree).unwrap_err();
        assert!(matches!(refusal, EngineError::Tree { .. }), "{refusal}");
        assert_eq!(fs::read_dir(bench.directory.path()).unwrap().count(), 0, "{refusal}");
    }
}

#[test]
fn workers_share_a_directory_or_all_entries() {
    use TreeStep::{Close, OpenRead, Read, RenameAcross, Stat, Unlink};
    let bench = Bench::new();
    let make = with(&MAKE, |tree| {
        (tree.set.sharing, tree.workers) = (Sharing::Directory, Workers::threads(3));
    });
    assert_eq!(bench.run(&make).unwrap().ops(), Ops(30));
    let path = |name: &str| bench.directory.path().join("t").join(name);
    assert_eq!(fs::metadata(path("2/1-9")).unwrap().len(), 10_000);
    for order in [TreeOrder::Creation, TreeOrder::Random, TreeOrder::Listed] {
        let look = Tree { order, steps: vec![Stat], passes: 2, ..make.clone() };
        assert_eq!(bench.run(&look).unwrap().ops(), Ops(60), "{order:?}");
    }
    let across = Tree { steps: vec![RenameAcross], ..make.clone() };
    bench.run(&across).unwrap();
    assert!(path("across/2-9").exists());
    fs::remove_dir_all(path("across")).unwrap();
    bench.run(&make).unwrap();
    let mut remove = Tree { order: TreeOrder::Listed, steps: vec![Unlink], ..make.clone() };
    remove.end.remove_directories = true;
    fs::write(path("else"), "").unwrap();
    let refusal = bench.refusal(&remove);
    assert!(refusal.starts_with("removing the directory ") && refusal.contains("is not empty"));
    fs::remove_file(path("else")).unwrap();
    // A worker may still list a directory that another one removes.
    for _ in 0..100 {
        bench.run(&make).unwrap();
        bench.run(&remove).unwrap();
        assert!(!path("").exists(), "the last one removes the directory of all");
    }

    let alone = with(&MAKE, |tree| tree.set.sharing = Sharing::File);
    bench.run(&alone).unwrap();
    assert!(path("2/9").exists());
    let mut all = Tree { steps: vec![OpenRead, Read, Close], ..alone };
    all.workers = Workers::threads(3);
    for order in [TreeOrder::Creation, TreeOrder::Random, TreeOrder::Listed] {
        all.order = order;
        assert_eq!(bench.run(&all).unwrap().bytes(), Bytes(300_000), "{order:?}");
    }
}

#[test]
fn each_pass_covers_all_entries() {
    use TreeStep::{Close, Create, Unlink};
    let bench = Bench::new();
    for order in [TreeOrder::Creation, TreeOrder::Random] {
        let again = Tree { passes: 3, order, ..tree(&[Create, Close, Unlink]) };
        let result = bench.run(&again).unwrap();
        assert_eq!((result.ops(), result.workers[0].latencies.write.count()), (Ops(30), 30));
    }
}

#[test]
fn work_after_the_last_entry_counts_as_sync_time() {
    let bench = Bench::new();
    let mut make = tree(&MAKE);
    let plain = bench.run(&make).unwrap();
    assert_eq!(plain.workers[0].end_sync_time, model::Nanos(0));
    (make.set.name, make.end.sync) = ("s".into(), true);
    let result = bench.run(&make).unwrap();
    let worker = &result.workers[0];
    assert!(worker.end_sync_time > model::Nanos(0));
    assert_eq!(worker.latencies.write.count(), 10);
    assert!(result.wall_time >= worker.loop_time + worker.end_sync_time);
    fs::write(bench.directory.path().join("s.0/else"), "").unwrap();
    (make.steps, make.end) =
        (vec![TreeStep::Unlink], TreeEnd { remove_directories: true, sync: false });
    let refusal = bench.refusal(&make);
    assert!(refusal.contains("s.0: the directory is not empty; "), "{refusal}");
}

#[test]
fn names_that_are_too_long_are_reported_with_a_hint() {
    let bench = Bench::new();
    let long = with(&MAKE, |tree| tree.set.naming = Naming::Padded { length: 300 });
    let refusal = bench.refusal(&long);
    assert!(refusal.contains("the name is too long") && refusal.contains("0/0____"), "{refusal}");
    fs::remove_dir_all(bench.path("")).unwrap();
}

#[test]
fn probing_leaves_no_files() {
    let bench = Bench::new();
    let directory = bench.directory.path();
    match probe(directory, "t", &TreeStep::ALL) {
        Ok(()) | Err(EngineError::Unsupported { .. }) => {}
        Err(other) => panic!("{other}"),
    }
    assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
    probe(&directory.join("nowhere"), "t", &TreeStep::ALL).unwrap();
}
