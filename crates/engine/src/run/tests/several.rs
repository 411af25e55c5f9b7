//! Several files of each worker.

use model::phase::{
    Aio, Allocation, Bound, FileHandling, FileOrder, FileSharing, PassStart, SeveralFiles,
    SyncCall, SyncEvery, SyncInterval, WorkLimit,
};

use super::*;

const ENGINES: [IoEngineKind; 5] = [
    IoEngineKind::Offset,
    IoEngineKind::Position,
    IoEngineKind::Vector(CallFlags { nowait: false, hipri: false, dsync: false, uncached: false }),
    IoEngineKind::Mmap(Advice::Normal),
    IoEngineKind::Aio(Aio::of(4, 1)),
];

fn engines() -> Vec<IoEngineKind> {
    let mut all = ENGINES.to_vec();
    if uring_is_available() {
        all.push(IoEngineKind::Ring(Ring { fixed_buffers: false, ..Ring::of(4) }));
    }
    all
}

fn files(count: usize) -> SeveralFiles {
    SeveralFiles {
        names: (0..count).map(|file| format!("f.{{worker}}.{file}")).collect(),
        directories: Vec::new(),
        order: FileOrder::RoundRobin,
        turn: 1,
        open: u32::try_from(count).unwrap(),
    }
}

/// Write of files with 8 blocks each.
fn write(io_engine: IoEngineKind, files: SeveralFiles) -> Stream {
    let mut plan = stream(io_engine, Direction::Write, 8);
    plan.data = DataPattern::default();
    plan.files = FileSharing::Several(files);
    plan.file_handling =
        Some(FileHandling { allocate: Allocation::Native, ..FileHandling::default() });
    plan
}

fn read_of(plan: &Stream) -> Stream {
    let mut read = plan.clone();
    (read.direction, read.verify) = (Direction::Read, true);
    read.open.creation = FileCreation::Existing;
    read
}

#[test]
fn all_engines_write_and_verify_several_files() {
    for io_engine in engines() {
        for open in [1, 2, 3] {
            let bench = Bench::new();
            let own = SeveralFiles { open, ..files(3) };
            let mut plan = write(io_engine, own);
            plan.workers = threads(2, Stonewall::Off);
            plan.end_sync = EndSync::Fsync;
            assert_eq!(bench.run(&plan).unwrap().ops(), Ops(48), "{io_engine:?}");
            for name in ["f.0.0", "f.0.1", "f.0.2", "f.1.0", "f.1.1", "f.1.2"] {
                assert_eq!(fs::metadata(bench.path(name)).unwrap().len(), 8 * 4096);
            }
            let mut read = read_of(&plan);
            assert_eq!(bench.run(&read).unwrap().ops(), Ops(48), "{io_engine:?}");
            read.access_pattern = AccessPattern::Permutation;
            assert_eq!(bench.run(&read).unwrap().ops(), Ops(48), "{io_engine:?}");
            fs::copy(bench.path("f.1.2"), bench.path("f.1.1")).unwrap();
            let refusal = bench.refusal(&read);
            assert!(refusal.contains("f.1.1"), "{io_engine:?}: {refusal}");
            remove(&plan.files, 2, &bench.context()).unwrap();
            assert_eq!(fs::read_dir(bench.directory.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn passes_open_the_files_again() {
    for io_engine in engines() {
        if matches!(io_engine, IoEngineKind::Mmap(_)) {
            continue;
        }
        for (open, pass_start) in [(2, PassStart::Reopen), (1, PassStart::Reopen)] {
            let bench = Bench::new();
            let mut plan = write(io_engine, SeveralFiles { open, ..files(2) });
            let handling = plan.file_handling.as_mut().unwrap();
            (handling.pass_start, handling.invalidate) = (pass_start, true);
            plan.bound = Bound::Amount(WorkLimit { ops: 40, ..WorkLimit::UNLIMITED });
            assert_eq!(bench.run(&plan).unwrap().ops(), Ops(40), "{io_engine:?} {open}");
            assert_eq!(bench.run(&read_of(&plan)).unwrap().ops(), Ops(40));
        }
    }
}

#[test]
fn layouts_create_only_missing_files() {
    let bench = Bench::new();
    let mut plan = write(IoEngineKind::Offset, SeveralFiles { open: 1, ..files(3) });
    plan.open.creation = FileCreation::Complete;
    plan.end_sync = EndSync::Fsync;
    fs::write(bench.path("f.0.1"), vec![7; 8 * 4096]).unwrap();
    assert_eq!(bench.run(&plan).unwrap().ops(), Ops(16));
    assert!(fs::read(bench.path("f.0.1")).unwrap().iter().all(|byte| *byte == 7));
    assert_eq!(fs::read(bench.path("f.0.2")).unwrap().len(), 8 * 4096);
    assert_eq!(bench.run(&plan).unwrap().ops(), Ops(0));
    for name in ["f.0.0", "f.0.2"] {
        let path = bench.path(name);
        assert!(crate::is_written_by_fslab(&path, Bytes(4096)).unwrap(), "{name}");
    }
}

#[test]
fn directories_are_used_in_turn_by_workers() {
    let bench = Bench::new();
    for directory in ["one", "two"] {
        fs::create_dir(bench.path(directory)).unwrap();
    }
    let directories = vec!["one".to_owned(), "two".to_owned()];
    let names = vec!["f.{worker}".to_owned()];
    let mut plan = write(IoEngineKind::Offset, SeveralFiles { directories, names, ..files(1) });
    plan.workers = threads(3, Stonewall::Off);
    bench.run(&plan).unwrap();
    for name in ["one/f.0", "two/f.1", "one/f.2"] {
        assert!(bench.path(name).is_file(), "{name}");
    }
    assert_eq!(plan.files.count(3), 3);
}

#[test]
fn errors_name_the_file() {
    for io_engine in engines() {
        let bench = Bench::new();
        let plan = write(io_engine, files(3));
        bench.run(&plan).unwrap();
        fs::remove_file(bench.path("f.0.1")).unwrap();
        let refusal = bench.refusal(&read_of(&plan));
        assert!(refusal.contains("f.0.1"), "{io_engine:?}: {refusal}");
        fs::create_dir(bench.path("f.0.1")).unwrap();
        let refusal = bench.refusal(&plan);
        assert!(refusal.contains("f.0.1"), "{io_engine:?}: {refusal}");
    }
}

#[test]
fn patterns_and_engines_of_one_file_are_rejected() {
    let bench = Bench::new();
    let mut plan = write(IoEngineKind::Offset, files(2));
    plan.access_pattern = AccessPattern::Append;
    assert!(bench.refusal(&plan).contains("one file"));
    let plan = Stream { file_handling: None, ..write(IoEngineKind::Stdio, files(2)) };
    assert!(bench.refusal(&plan).contains("one file"));
    let mut plan = write(IoEngineKind::Offset, SeveralFiles { open: 1, ..files(2) });
    plan.sync_every =
        Some(SyncEvery { after: SyncInterval::Ops(1), call: SyncCall::Fsync, before_next: true });
    assert!(bench.refusal(&plan).contains("all files are open"));
}
