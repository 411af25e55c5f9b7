use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use model::{
    Ops,
    phase::{Naming, Sizes, Spread, Tree, TreeStep, Workers},
};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use super::*;
use crate::{Progress, run_tree};

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

    fn run(&self, layout: &Layout) -> Result<PhaseResult, EngineError> {
        run_layout(layout, &self.context())
    }

    fn entries(&self) -> BTreeMap<String, u64> {
        entries(self.directory.path())
    }
}

/// All entries below a directory: paths, and sizes of files; the largest number for other types.
fn entries(directory: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (name, status) = (entry.file_name().into_string().unwrap(), entry.metadata().unwrap());
        found.insert(name.clone(), if status.is_file() { status.len() } else { u64::MAX });
        if status.is_dir() {
            let below = entries(&entry.path());
            found.extend(below.into_iter().map(|(path, size)| (format!("{name}/{path}"), size)));
        }
    }
    found
}

/// Empty files, seven per directory, for three owners.
fn layout() -> Layout {
    let set = Set {
        name: "t".into(),
        sharing: Sharing::Private,
        files: 50,
        spread: Spread::Directories { each: 7 },
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(Bytes(0)),
        block_size: Bytes(4096),
        data: DataPattern::default(),
        seed: 11,
    };
    Layout { set, item: Item::File, owners: 3 }
}

#[test]
fn a_layout_equals_the_entries_that_tree_steps_create() {
    let namings =
        [Naming::Numbers, Naming::Padded { length: 30 }, Naming::Ordered, Naming::Scrambled];
    let sizes = [
        Sizes::Fixed(Bytes(0)),
        Sizes::Fixed(Bytes(5000)),
        Sizes::Uniform { min: Bytes(0), max: Bytes(9000) },
        Sizes::LogNormal { mean: Bytes(6000), sigma: 1.5 },
    ];
    for sharing in [Sharing::Private, Sharing::Directory, Sharing::File] {
        for spread in [Spread::Flat, Spread::Directories { each: 7 }] {
            for (naming, sizes) in namings.into_iter().zip(sizes) {
                let set = Set { sharing, spread, naming, sizes, ..layout().set };
                let (ours, theirs) = (Bench::new(), Bench::new());
                let made = ours.run(&Layout { set: set.clone(), ..layout() }).unwrap();
                let steps = vec![TreeStep::Create, TreeStep::Write, TreeStep::Close];
                let count = if sharing == Sharing::File { 1 } else { 3 };
                let tree = Tree { workers: Workers::threads(count), ..Tree::new(set, steps) };
                let written = run_tree(&tree, &theirs.context()).unwrap();
                let reported = format!("{sharing:?} {spread:?} {naming:?}");
                assert_eq!(ours.entries(), theirs.entries(), "{reported}");
                assert_eq!(
                    (made.ops(), made.bytes()),
                    (written.ops(), written.bytes()),
                    "{reported}"
                );
                assert_eq!(made.ops(), Ops(50 * u64::from(count)), "{reported}");
            }
        }
    }
}

#[test]
fn threads_report_their_operations_and_times() {
    let bench = Bench::new();
    let set = Set { sizes: Sizes::Fixed(Bytes(10_000)), ..layout().set };
    let result = bench.run(&Layout { set, ..layout() }).unwrap();
    let cpus = sched_getaffinity(None).unwrap().count();
    assert_eq!(result.workers.len(), cpus.min(24) as usize, "24 directories");
    let total = Bytes(1_500_000);
    assert_eq!((result.ops(), result.bytes()), (Ops(150), total));
    for worker in &result.workers {
        assert_eq!((worker.read.ops, worker.written.ops), (Ops(0), worker.ops()));
        assert_eq!(worker.latencies.write.count(), 0, "single entries are not timed");
        assert_eq!(worker.series.ops.iter().sum::<u64>(), worker.ops().0);
        assert!(result.wall_time >= worker.loop_time);
    }
    let snapshot = bench.progress.snapshot();
    assert_eq!((snapshot.ops, snapshot.done, snapshot.total), (Ops(150), total, total));
}

#[test]
fn files_are_the_same_with_mknod_and_open() {
    let (nodes, opens) = (Bench::new(), Bench::new());
    let layout = layout();
    let work = Work::new(&layout, nodes.directory.path());
    assert!(work.nodes, "all filesystems used for tests support mknod");
    driver::run(&work, &nodes.context()).unwrap();
    let work = Work { nodes: false, ..Work::new(&layout, opens.directory.path()) };
    driver::run(&work, &opens.context()).unwrap();
    assert_eq!(nodes.entries(), opens.entries());
    for bench in [nodes, opens] {
        use std::os::unix::fs::PermissionsExt;
        let status = fs::metadata(bench.directory.path().join("t.2/7/49")).unwrap();
        assert_eq!(status.permissions().mode() & 0o7777, 0o600);
    }
}

#[test]
fn entries_may_be_directories_or_symbolic_links() {
    let set = Set { sharing: Sharing::Directory, naming: Naming::Ordered, ..layout().set };
    for item in [Item::Directory, Item::Symlink] {
        let bench = Bench::new();
        // Sizes apply to files only.
        let set = Set { sizes: Sizes::Fixed(Bytes(5000)), ..set.clone() };
        let result = bench.run(&Layout { item, set, ..layout() }).unwrap();
        assert_eq!((result.ops(), result.bytes()), (Ops(150), Bytes(0)));
        let entries = bench.entries();
        assert_eq!(entries.len(), 1 + 8 + 150);
        assert!(entries.values().all(|size| *size == u64::MAX));
        let one = entries.keys().find(|path| path.starts_with("t/00000/1-0000000003")).unwrap();
        let path = bench.directory.path().join(one);
        match item {
            Item::Symlink => assert_eq!(fs::read_link(path).unwrap(), Path::new("target")),
            Item::Directory | Item::File => assert_eq!(fs::read_dir(path).unwrap().count(), 0),
        }
    }
}

#[test]
fn an_existing_entry_is_an_error_with_its_path() {
    let bench = Bench::new();
    fs::create_dir_all(bench.directory.path().join("t.1/3")).unwrap();
    fs::write(bench.directory.path().join("t.1/3/23"), "").unwrap();
    let text = bench.run(&layout()).unwrap_err().to_string();
    assert!(text.contains("/t.1/3/23: the name already exists; "), "{text}");
}

#[test]
fn an_interrupt_ends_a_layout() {
    let bench = Bench::new();
    bench.interrupt.store(true, Relaxed);
    assert!(matches!(bench.run(&layout()), Err(EngineError::Interrupted)));
    assert_eq!(bench.entries().len(), 0);

    let bench = Bench::new();
    let set = Set { files: 1 << 40, ..layout().set };
    let layout = Layout { set, ..layout() };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| bench.run(&layout));
        while bench.progress.snapshot().ops < Ops(100) {
            std::thread::yield_now();
        }
        bench.interrupt.store(true, Relaxed);
        assert!(matches!(running.join().unwrap(), Err(EngineError::Interrupted)));
    });
}

#[test]
fn invalid_layouts_are_rejected() {
    let refusal = |layout: &Layout| Bench::new().run(layout).unwrap_err().to_string();
    let with = |set| Layout { set, ..layout() };
    for (layout, text) in [
        (Layout { owners: 0, ..layout() }, "owners is 0; set it to at least 1"),
        (with(Set { files: 0, ..layout().set }), "files is 0; "),
        (with(Set { name: "a/b".into(), ..layout().set }), "the name of the file set is invalid; "),
        (
            with(Set { sizes: Sizes::Fixed(Bytes(1)), block_size: Bytes(0), ..layout().set }),
            "block_size is 0; ",
        ),
        (
            with(Set {
                data: DataPattern::Random { incompressible_fraction: 2.0, duplicate_fraction: 0.0 },
                ..layout().set
            }),
            "incompressible_fraction is out of range; ",
        ),
        (
            with(Set {
                data: DataPattern::Random { incompressible_fraction: 1.0, duplicate_fraction: 0.5 },
                ..layout().set
            }),
            "file sets do not support duplicates; ",
        ),
    ] {
        assert!(refusal(&layout).contains(text), "{text}");
    }
}

/// Small tmpfs, unmounted on drop.
struct Small(TempDir);

impl Small {
    fn new(options: &std::ffi::CStr) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let directory = TempDir::new().unwrap();
        mount("tmpfs", directory.path(), "tmpfs", MountFlags::empty(), options).ok()?;
        Some(Self(directory))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        unmount(self.0.path(), UnmountFlags::DETACH).unwrap();
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "reports that the test is skipped")]
fn a_full_filesystem_is_reported_with_the_file() {
    for (options, operation) in
        [(c"nr_inodes=40,size=1m", "creating the file"), (c"size=64k,nr_inodes=1000", "writing")]
    {
        let Some(small) = Small::new(options) else {
            eprintln!("skipped: needs root");
            return;
        };
        let interrupt = AtomicBool::new(false);
        let progress = Progress::default();
        let directory = small.0.path();
        let context = Context {
            directory,
            progress: &progress,
            interrupt: &interrupt,
            state: None,
            worker_command: &[],
            start: None,
        };
        let sizes = Sizes::Fixed(Bytes(if operation == "writing" { 5000 } else { 0 }));
        let set = Set { sizes, spread: Spread::Flat, ..layout().set };
        // One owner, so that no other thread reaches the limit first while it creates its
        // directory.
        let layout = Layout { set, owners: 1, ..layout() };
        let text = run_layout(&layout, &context).unwrap_err().to_string();
        let begin = format!("{operation} {}/t.0/", directory.display());
        assert!(text.starts_with(&begin), "{text}");
        assert!(text.contains(": the filesystem is full"), "{text}");
    }
}
