//! Trees of directories, renames in a ring, blocks that entries determine, and selected entries.

use model::{
    Nanos,
    phase::{DirectoryTree, EntryCount, Selection},
};

use super::*;

const CREATE: [TreeStep; 3] = [TreeStep::OpenCreate, TreeStep::WriteBlock, TreeStep::Close];
const VERIFY: [TreeStep; 4] =
    [TreeStep::Open, TreeStep::ReadBlock, TreeStep::VerifyBlock, TreeStep::Close];

/// Six files of 100 bytes in a tree of three directories.
fn mdtest(steps: &[TreeStep]) -> Tree {
    let mut tree = tree(steps);
    tree.set.files = 6;
    tree.set.sharing = Sharing::Directory;
    tree.set.spread =
        Spread::Tree(DirectoryTree { depth: 1, branching: 2, each: 2, leaves_only: false });
    tree.set.naming = Naming::Mdtest { directories: false };
    tree.set.sizes = Sizes::Fixed(Bytes(100));
    tree.set.block_size = Bytes(100);
    tree
}

/// Steps on the directories of the tree.
fn directories(steps: &[TreeStep]) -> Tree {
    let mut tree = mdtest(steps);
    tree.set.files = 3;
    tree.set.naming = Naming::TreeDirectories;
    tree.set.sizes = EMPTY;
    tree
}

fn of_workers(count: u32, tree: Tree) -> Tree {
    Tree { workers: Workers::threads(count), ..tree }
}

impl Bench {
    fn in_tree(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join("t").join(name)
    }

    /// Number of entries in a directory of the tree.
    fn entries(&self, name: &str) -> usize {
        fs::read_dir(self.in_tree(name)).unwrap().count()
    }
}

#[test]
fn directories_are_created_from_the_root_and_removed_from_the_leaves() {
    let bench = Bench::new();
    let made = bench.run(&directories(&[TreeStep::Mkdir])).unwrap();
    assert_eq!(made.ops(), Ops(3));
    bench.run(&mdtest(&CREATE)).unwrap();
    for (directory, entries) in [
        ("mdtest_tree.0", 4),
        ("mdtest_tree.0/mdtest_tree.1", 2),
        ("mdtest_tree.0/mdtest_tree.2", 2),
    ] {
        assert_eq!(bench.entries(directory), entries, "{directory}");
    }
    assert!(bench.in_tree("mdtest_tree.0/mdtest_tree.2/file.mdtest.0.5").exists());
    bench.run(&mdtest(&[TreeStep::Unlink])).unwrap();
    let gone = Tree { order: TreeOrder::Descending, ..directories(&[TreeStep::Rmdir]) };
    bench.run(&gone).unwrap();
    assert_eq!(bench.entries(""), 0);
}

#[test]
fn a_ring_of_renames_moves_each_entry_to_the_place_before() {
    let bench = Bench::new();
    bench.run(&directories(&[TreeStep::Mkdir])).unwrap();
    bench.run(&mdtest(&CREATE)).unwrap();
    let path = |entry: usize| {
        let directory = ["", "/mdtest_tree.1", "/mdtest_tree.2"][entry / 2];
        bench.in_tree(&format!("mdtest_tree.0{directory}/file.mdtest.0.{entry}"))
    };
    let inode = |entry| fs::metadata(path(entry)).unwrap().ino();
    let before: Vec<u64> = (0..6).map(inode).collect();
    let moved = bench.run(&mdtest(&[TreeStep::RenameRing])).unwrap();
    assert_eq!(moved.ops(), Ops(6));
    let after: Vec<u64> = (0..6).map(inode).collect();
    // The first one is now next to the last one, which keeps its name.
    let expected: Vec<u64> = [1, 2, 3, 4, 0, 5].map(|entry: usize| before[entry]).to_vec();
    assert_eq!(after, expected);
    let mut one = mdtest(&[TreeStep::RenameRing]);
    one.set.files = 1;
    bench.run(&one).unwrap();
    assert_eq!(inode(0), after[0]);
}

#[test]
fn blocks_are_verified_by_other_workers() {
    let bench = Bench::new();
    bench.run(&directories(&[TreeStep::Mkdir])).unwrap();
    bench.run(&of_workers(3, mdtest(&CREATE))).unwrap();
    let shifted = |shift| {
        let selection = Selection { shift, ..Selection::default() };
        Tree { selection, ..of_workers(3, mdtest(&VERIFY)) }
    };
    let result = bench.run(&shifted(1)).unwrap();
    assert_eq!(result.workers.iter().map(|own| own.read.bytes).sum::<Bytes>(), Bytes(1800));
    // A part of the block is a valid block.
    let mut part = shifted(0);
    part.set.block_size = Bytes(10);
    bench.run(&part).unwrap();
    let path = bench.in_tree("mdtest_tree.0/file.mdtest.1.0");
    let mut data = fs::read(&path).unwrap();
    data[99] ^= 1;
    fs::write(&path, data).unwrap();
    let error = bench.refusal(&shifted(0));
    assert!(error.contains("file.mdtest.1.0"), "{error}");
    // Without this step, nothing is compared.
    let steps = VERIFY.into_iter().filter(|step| *step != TreeStep::VerifyBlock).collect();
    bench.run(&Tree { steps, ..shifted(0) }).unwrap();
}

#[test]
fn one_worker_can_visit_the_entries_of_all() {
    let bench = Bench::new();
    bench.run(&directories(&[TreeStep::Mkdir])).unwrap();
    let selection = Selection { owners: 3, ..Selection::default() };
    let made = bench.run(&Tree { selection, ..mdtest(&CREATE) }).unwrap();
    assert_eq!(made.ops(), Ops(18));
    bench.run(&of_workers(3, mdtest(&VERIFY))).unwrap();
    let mut private = Tree { selection, ..mdtest(&CREATE) };
    private.set.sharing = Sharing::Private;
    assert!(bench.refusal(&private).contains("use sharing directory"));
}

#[test]
fn after_a_time_limit_all_workers_have_the_same_number_of_entries() {
    let bench = Bench::new();
    let mut many = mdtest(&CREATE);
    many.set.files = 1 << 30;
    many.set.spread =
        Spread::Tree(DirectoryTree { depth: 0, branching: 1, each: 1 << 30, leaves_only: false });
    let mut root = directories(&[TreeStep::Mkdir]);
    root.set.files = 1;
    root.set.spread = many.set.spread;
    bench.run(&root).unwrap();
    let with = |count, steps: &[TreeStep]| {
        let selection = Selection { count, ..Selection::default() };
        Tree { selection, steps: steps.to_vec(), ..of_workers(2, many.clone()) }
    };
    let error = bench.refusal(&with(EntryCount::Stored, &[TreeStep::Stat]));
    assert!(error.contains("t.count"), "{error}");
    let made = bench.run(&with(EntryCount::Until(Nanos(30_000_000)), &CREATE)).unwrap();
    let counts: Vec<u64> = made.workers.iter().map(|own| own.written.ops.0).collect();
    assert!(counts[0] == counts[1] && counts[0] > 0, "{counts:?}");
    assert_eq!(bench.entries("mdtest_tree.0") as u64, counts[0] * 2);
    let found = bench.run(&with(EntryCount::Stored, &[TreeStep::Stat])).unwrap();
    assert_eq!(found.ops().0, counts[0] * 2);
    bench.run(&with(EntryCount::Stored, &[TreeStep::Unlink])).unwrap();
    assert_eq!(bench.entries("mdtest_tree.0"), 0);
}

#[test]
fn a_worker_that_has_all_entries_before_the_time_limit_does_not_wait() {
    let bench = Bench::new();
    bench.run(&directories(&[TreeStep::Mkdir])).unwrap();
    let count = EntryCount::Until(Nanos(3_600_000_000_000));
    let selection = Selection { count, ..Selection::default() };
    let made = bench.run(&Tree { selection, ..of_workers(2, mdtest(&CREATE)) }).unwrap();
    assert_eq!(made.ops(), Ops(12));
    let text = fs::read_to_string(bench.directory.path().join("t.count")).unwrap();
    assert_eq!(text, "6");
}

#[test]
fn invalid_trees_of_directories_are_rejected() {
    let bench = Bench::new();
    let spread = |depth, branching, each| {
        Spread::Tree(DirectoryTree { depth, branching, each, leaves_only: false })
    };
    let with = |steps: &[TreeStep], change: &dyn Fn(&mut Tree)| {
        let mut tree = mdtest(steps);
        change(&mut tree);
        bench.refusal(&tree)
    };
    for spread in [spread(0, 0, 1), spread(0, 1, 0), spread(65, 1, 1), spread(40, 9, 1)] {
        let error = with(&CREATE, &|tree| tree.set.spread = spread);
        assert!(error.starts_with("invalid workload: "), "{spread:?}: {error}");
    }
    let verify = [TreeStep::Open, TreeStep::VerifyBlock, TreeStep::Close];
    assert!(with(&verify, &|_| ()).contains("was not read"));
    let flat = with(&[TreeStep::Mkdir], &|tree| {
        tree.set.naming = Naming::TreeDirectories;
        tree.set.spread = Spread::Flat;
    });
    assert!(flat.contains("there is no tree"), "{flat}");
    let random = with(&[TreeStep::RenameRing], &|tree| tree.order = TreeOrder::Random);
    assert!(random.contains("use order creation"), "{random}");
    let limit = with(&CREATE, &|tree| {
        tree.selection.count = EntryCount::Until(Nanos(1));
        tree.order = TreeOrder::Random;
    });
    assert!(limit.contains("remove the time limit"), "{limit}");
}
