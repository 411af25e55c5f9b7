//! Streams of calls on metadata.

use model::phase::{FileOrder, FileSharing, NameCall, SeveralFiles, SpaceCall};

use super::*;

fn calls(call: NameCall, open: u32) -> Stream {
    let names = (0..3).map(|file| format!("f.{{worker}}.{file}")).collect();
    let mut plan = stream(IoEngineKind::Name(call), Direction::Read, 1);
    plan.files = FileSharing::Several(SeveralFiles {
        names,
        directories: Vec::new(),
        order: FileOrder::RoundRobin,
        turn: 1,
        open,
    });
    plan.workers = threads(2, Stonewall::Off);
    plan
}

fn names(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.path("")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("f.")).collect();
    names.sort_unstable();
    names
}

#[test]
fn each_file_is_created_examined_and_removed_by_one_operation() {
    for open in [1, 3] {
        let bench = Bench::new();
        for call in [NameCall::Create, NameCall::Stat, NameCall::Unlink] {
            let result = bench.run(&calls(call, open)).unwrap();
            assert!(result.workers.iter().all(|own| own.read.ops == Ops(3)), "{call:?}");
            assert!(result.workers.iter().all(|own| own.latencies.read.count() == 3));
            let expected = if call == NameCall::Unlink { 0 } else { 6 };
            assert_eq!(names(&bench).len(), expected, "{call:?}");
        }
    }
}

#[test]
fn a_missing_file_fails_with_its_name() {
    let bench = Bench::new();
    for (call, verb) in [(NameCall::Stat, "f.0.0"), (NameCall::Unlink, "f.0.0")] {
        let mut plan = calls(call, 3);
        plan.workers = threads(1, Stonewall::Off);
        let error = bench.run(&plan).unwrap_err();
        assert!(error.to_string().contains(verb), "{call:?}: {error}");
    }
}

#[test]
fn space_is_allocated_and_truncated_block_by_block() {
    let bench = Bench::new();
    let len = || fs::metadata(bench.path("file")).unwrap().len();
    let mut plan = stream(IoEngineKind::Space(SpaceCall::Allocate), Direction::Write, 4);
    plan.files = FileSharing::One("file".into());
    plan.open.creation = FileCreation::Any;
    let block = plan.block_size.0;
    let result = bench.run(&plan).unwrap();
    assert_eq!((result.ops(), len()), (Ops(4), 4 * block));
    plan.io_engine = IoEngineKind::Space(SpaceCall::Truncate);
    assert_eq!(bench.run(&plan).unwrap().ops(), Ops(4));
    assert_eq!(len(), 3 * block, "the offset of the last block");
    plan.direction = Direction::Read;
    assert!(bench.run(&plan).unwrap_err().to_string().contains("ftruncate has no reads"));
}
