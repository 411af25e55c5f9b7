//! Trees by io_uring have the same effect as by synchronous calls.

use std::path::{Path, PathBuf};

use TreeStep::{
    Allocate, Close, Create, Fsync, GetXattr, Link, Mkdir, Open, OpenRead, PunchHole, Read, Rename,
    RenameAcross, RenameBack, Rmdir, SetXattr, Stat, StatMissing, Symlink, Unlink, UnlinkLink,
    Write,
};

use super::{mounted::Mounted, *};
use crate::io::conformance::uring_is_available;

/// Files of one block each, by io_uring with this queue depth.
fn ring(depth: u32, steps: &[TreeStep]) -> Tree {
    with(steps, |tree| {
        tree.calls = Calls::Ring { depth };
        tree.set.block_size = Bytes(10_000);
    })
}

/// Entries below a directory: path, type and mode, length, links, content, attribute.
fn found(root: &Path, at: &Path, into: &mut Vec<String>) {
    let mut names: Vec<PathBuf> =
        fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names {
        let status = fs::symlink_metadata(&path).unwrap();
        let mut value = [0; 64];
        let value = match rustix::fs::lgetxattr(&path, "user.fslab", &mut value[..]) {
            Ok(len) => value[..len].to_vec(),
            Err(_) => Vec::new(),
        };
        let content = if status.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let content = twox_hash::XxHash3_64::oneshot(&content);
        let (mode, links) = (status.mode(), status.nlink());
        let len = if status.is_dir() { 0 } else { status.len() };
        let name = path.strip_prefix(root).unwrap().display();
        into.push(format!("{name} {mode:o} {len} {links} {content:x} {value:?}"));
        if status.is_dir() {
            found(root, &path, into);
        }
    }
}

fn left(bench: &Bench) -> Vec<String> {
    let mut all = Vec::new();
    found(bench.directory.path(), bench.directory.path(), &mut all);
    all
}

/// Phases from an empty directory to all kinds of entries, and back to only directories.
const PHASES: [&[TreeStep]; 12] = [
    &[Create, Write, Fsync, Close],
    &[OpenRead, Read, Close, Stat],
    &[Stat, StatMissing, Link],
    &[SetXattr, GetXattr],
    &[Open, PunchHole, Close],
    &[Rename, StatMissing],
    &[RenameBack, UnlinkLink],
    &[Open, Write, Close, OpenRead, Read, Close],
    &[RenameAcross],
    &[Create, Allocate, Close],
    &[Unlink, Symlink],
    &[Unlink, Mkdir],
];

/// Runs the same phases by both kinds of calls and compares the results.
fn same(depth: u32, change: impl Fn(&mut Tree)) {
    let (plain, ringed) = (Bench::new(), Bench::new());
    for steps in PHASES.iter().chain([&&[Rmdir][..]]) {
        let mut through = ring(depth, steps);
        // Written data must not depend on other operations.
        through.set.data = DataPattern::PagePattern;
        change(&mut through);
        let one_by_one = Tree { calls: Calls::Syscall, ..through.clone() };
        let (ours, theirs) = (ringed.run(&through), plain.run(&one_by_one));
        if let Err(EngineError::Unsupported { what, .. }) = &theirs {
            assert!(ours.unwrap_err().to_string().starts_with(what));
            continue;
        }
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        assert_eq!((ours.ops(), ours.bytes()), (theirs.ops(), theirs.bytes()), "{steps:?}");
        assert_eq!(ours.latencies().operations().count(), ours.ops().0);
        for (our, their) in ours.workers.iter().zip(&theirs.workers) {
            assert_eq!((our.read, our.written), (their.read, their.written), "{steps:?}");
            assert_eq!(our.series.ops.iter().sum::<u64>(), our.ops().0);
            assert_eq!(our.series.bytes.iter().sum::<u64>(), our.bytes().0);
        }
        assert_eq!(left(&ringed), left(&plain), "depth {depth}, {steps:?}");
    }
}

#[test]
fn the_final_state_is_that_of_synchronous_calls() {
    if !uring_is_available() {
        return;
    }
    for depth in [1, 3, 64] {
        for spread in [Spread::Flat, Spread::Directories { each: 7 }] {
            for (sharing, workers) in
                [(Sharing::Private, 2), (Sharing::Directory, 3), (Sharing::File, 1)]
            {
                same(depth, |tree| {
                    (tree.set.spread, tree.set.sharing, tree.set.files) = (spread, sharing, 40);
                    tree.set.sizes = Sizes::Uniform { min: Bytes(0), max: Bytes(10_000) };
                    tree.set.naming = Naming::Scrambled;
                    tree.workers = Workers::threads(workers);
                });
            }
        }
        same(depth, |tree| (tree.order, tree.set.files) = (TreeOrder::Random, 100));
    }
}

#[test]
fn passes_are_sequential_and_the_final_work_follows_all_entries() {
    if !uring_is_available() {
        return;
    }
    let bench = Bench::new();
    for (depth, order) in [(1, TreeOrder::Creation), (64, TreeOrder::Random)] {
        let mut again = Tree { passes: 5, order, ..ring(depth, &[Create, Write, Close, Unlink]) };
        again.end = TreeEnd { remove_directories: true, sync: false };
        let result = bench.run(&again).unwrap();
        let worker = &result.workers[0];
        assert_eq!((result.ops(), worker.latencies.write.count()), (Ops(50), 50));
        assert!(worker.end_sync_time > model::Nanos(0));
        assert_eq!(left(&bench), [""; 0], "all were removed before their directories");
        let snapshot = bench.progress.snapshot();
        assert_eq!((snapshot.done, snapshot.total), (Bytes(500_000), Bytes(500_000)));
    }
}

#[test]
fn blocks_in_flight_are_unique() {
    if !uring_is_available() {
        return;
    }
    let bench = Bench::new();
    let mut make = ring(16, &[Create, Write, Close]);
    (make.set.files, make.set.sizes) = (300, Sizes::Fixed(Bytes(8192)));
    bench.run(&make).unwrap();
    let mut blocks = BTreeSet::new();
    for file in 0..300 {
        for block in fs::read(bench.path(&format!("{}/{file}", file / 4))).unwrap().chunks(4096) {
            assert!(block.iter().filter(|byte| **byte == 0).count() < 64, "random data");
            assert!(blocks.insert(block.to_vec()), "a block occurred twice");
        }
    }
}

#[test]
fn the_failed_link_is_reported() {
    if !uring_is_available() {
        return;
    }
    for depth in [1, 3, 64] {
        let bench = Bench::new();
        let refusal = |steps: &[TreeStep]| bench.refusal(&ring(depth, steps));
        let path = |name: &str| bench.path(name).display().to_string();
        bench.run(&ring(depth, &[Create, Write, Close])).unwrap();
        fs::remove_file(bench.path("1/6")).unwrap();
        let missing = refusal(&[OpenRead, Read, Close]);
        assert!(missing.starts_with(&format!("opening {}: the file", path("1/6"))), "{missing}");
        let missing = refusal(&[StatMissing, Stat, SetXattr]);
        assert!(missing.starts_with(&format!("examining {}: the file", path("1/6"))), "{missing}");
        fs::write(bench.path("1/6"), [7; 100]).unwrap();
        let short = refusal(&[Stat, OpenRead, Read, Close, Stat]);
        assert!(short.contains("the file ends at offset 100") && short.contains(&path("1/6")));
        fs::write(bench.path("2/9.none"), "").unwrap();
        let there = refusal(&[Stat, StatMissing, Stat]);
        let expected = format!("examining {}: the name already exists", path("2/9.none"));
        assert!(there.starts_with(&expected), "{there}");
        fs::create_dir(bench.path("0/2.link")).unwrap();
        let there = refusal(&[Stat, Link]);
        assert!(
            there.starts_with(&format!("linking {}: the name already exists", path("0/2"))),
            "{there}"
        );
        let there = refusal(&[Create, Close, Unlink]);
        assert!(
            there.starts_with(&format!("opening {}: the name already exists", path("0/0"))),
            "{there}"
        );
        assert_eq!(bench.length("0/0"), Some(10_000), "later steps were not executed");
        let renamed = refusal(&[RenameBack]);
        assert!(renamed.starts_with("renaming ") && renamed.contains(".new: "), "{renamed}");
        // Nothing in flight would create an entry any more.
        fs::remove_dir_all(bench.path("")).unwrap();
    }
}

#[test]
fn a_write_to_a_full_filesystem_is_reported_with_its_cause() {
    let Some(mounted) = Mounted::memory("size=1m") else { return };
    if !uring_is_available() {
        return;
    }
    let bench = mounted.bench();
    let mut large = ring(3, &[Create, Write, Close]);
    (large.set.sizes, large.set.block_size) = (Sizes::Fixed(Bytes(300_000)), Bytes(300_000));
    let refusal = bench.refusal(&large);
    assert!(refusal.starts_with("writing ") && refusal.contains("the filesystem is full"));
    assert!(refusal.contains(" at offset "), "{refusal}");
    fs::remove_dir_all(bench.path("")).unwrap();
}

#[test]
fn an_interruption_waits_for_operations_in_flight() {
    if !uring_is_available() {
        return;
    }
    let bench = Bench::new();
    let mut endless = endless(vec![Create, Write, Close, Unlink]);
    (endless.calls, endless.set.block_size) = (Calls::Ring { depth: 32 }, Bytes(10_000));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while bench.progress.snapshot().done == Bytes(0) {
                std::thread::yield_now();
            }
            bench.interrupt.store(true, Relaxed);
        });
        assert!(matches!(bench.run(&endless), Err(EngineError::Interrupted)));
    });
    assert_eq!(fs::read_dir(bench.path("0")).unwrap().count(), 0, "all chains completed");
}

#[test]
fn a_stonewall_and_a_failure_reach_all_workers() {
    if !uring_is_available() {
        return;
    }
    let bench = Bench::new();
    for stonewall in [Stonewall::Stop, Stonewall::Finish] {
        let mut make = ring(5, &[Create, Write, Close]);
        make.workers = Workers { stonewall, ..Workers::threads(3) };
        (make.set.files, make.set.name) = (200, format!("{stonewall:?}"));
        let result = bench.run(&make).unwrap();
        assert!(result.workers.iter().any(|worker| worker.ops() == Ops(200)), "one was first");
        for worker in &result.workers {
            let last =
                bench.directory.path().join(format!("{}.{}/49/199", make.set.name, worker.worker));
            let whole = worker.ops() == Ops(200) || stonewall == Stonewall::Finish;
            assert!(!whole || last.exists(), "{stonewall:?} {}", worker.worker);
            assert_eq!(worker.latencies.write.count(), worker.ops().0);
        }
    }
    let directory = bench.directory.path().join("t.1/0");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("5"), "").unwrap();
    let mut endless = endless(vec![Create, Close, Unlink]);
    (endless.calls, endless.workers) = (Calls::Ring { depth: 4 }, Workers::threads(2));
    let refusal = bench.refusal(&endless);
    assert!(refusal.contains("t.1/0/5"), "{refusal}");
}

#[test]
fn trees_unsupported_by_io_uring_are_rejected_before_any_change() {
    use TreeStep::{
        Append, Chmod, Chown, Fetch, FsyncDirectory, LinkFirst, List, MakeParent, Mknod, SetTimes,
        SymlinkFirst, Truncate,
    };
    let bench = Bench::new();
    let steps: [&[TreeStep]; 12] = [
        &[MakeParent],
        &[Create, Append, Close],
        &[Stat, Fetch],
        &[FsyncDirectory],
        &[Chmod],
        &[Chown],
        &[SetTimes],
        &[Truncate],
        &[LinkFirst],
        &[SymlinkFirst],
        &[Mknod],
        &[List],
    ];
    let trees = steps.map(|steps| ring(4, steps)).into_iter().chain([
        ring(0, &[Stat]),
        ring(4097, &[Stat]),
        ring(4096, &[Stat; 9]),
        Tree { order: TreeOrder::Listed, ..ring(4, &[Stat]) },
        Tree { calls: Calls::Ring { depth: 4 }, ..tree(&MAKE) },
        with(&MAKE, |tree| {
            tree.calls = Calls::Ring { depth: 4 };
            tree.set.sizes = Sizes::LogNormal { mean: Bytes(4000), sigma: 1.0 };
        }),
    ]);
    for tree in trees {
        let refusal = bench.run(&tree).unwrap_err();
        assert!(matches!(refusal, EngineError::Tree { .. }), "{refusal}");
        let hints = ["io_engine syscall", "a number from 1 to 4096"];
        assert!(hints.iter().any(|hint| refusal.to_string().contains(hint)), "{refusal}");
        assert_eq!(fs::read_dir(bench.directory.path()).unwrap().count(), 0, "{refusal}");
    }
}

#[test]
fn files_without_transfers_may_have_any_size() {
    if !uring_is_available() {
        return;
    }
    let bench = Bench::new();
    bench.run(&ring(64, &[Create, Close])).unwrap();
    let mut look = ring(64, &[Stat, OpenRead, Close]);
    (look.set.sizes, look.passes) = (Sizes::Fixed(Bytes(u64::MAX)), 2);
    assert_eq!(bench.run(&look).unwrap().ops(), Ops(20));
}
