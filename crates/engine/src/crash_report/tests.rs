use std::sync::atomic::AtomicBool;

use model::phase::{
    AccessPattern, Bound, Direction, FileCreation, IoEngineKind, SyncCall, SyncEvery, SyncInterval,
    Workers,
};
use tempfile::TempDir;

use super::*;
use crate::{Context, Progress, io::conformance::stream, run};

struct Bench {
    directory: TempDir,
    state: TempDir,
    kept: std::cell::OnceCell<CrashState>,
}

impl Bench {
    fn new() -> Self {
        let (directory, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        Self { directory, state, kept: std::cell::OnceCell::new() }
    }

    fn state(&self) -> PathBuf {
        self.state.path().join("state")
    }

    fn run(&self, stream: &Stream) -> Result<(), EngineError> {
        let state = self.kept.get_or_init(|| CrashState::create(&self.state()).unwrap());
        let context = Context {
            directory: self.directory.path(),
            progress: &Progress::default(),
            interrupt: &AtomicBool::new(false),
            state: Some(state),
            worker_command: &[],
            start: None,
        };
        run(stream, &context).map(drop)
    }

    fn file(&self, name: &str) -> File {
        let path = self.directory.path().join(name);
        File::options().read(true).write(true).open(path).unwrap()
    }
}

/// 100 random writes to 16 blocks, with a sync after every 7.
fn overwrites() -> Stream {
    let mut plan = stream(IoEngineKind::Offset, Direction::Write, 16);
    plan.access_pattern = AccessPattern::Random;
    plan.bound = Bound::Ops(100);
    let call = SyncCall::Fdatasync;
    plan.sync_every = Some(SyncEvery { after: SyncInterval::Ops(7), call, before_next: false });
    plan
}

#[test]
fn synced_blocks_are_known_and_intact() {
    let bench = Bench::new();
    let mut plan = overwrites();
    plan.workers = Workers::threads(2);
    bench.run(&plan).unwrap();
    let crash_report = crash_report(&bench.state()).unwrap();
    assert_eq!((crash_report.done, crash_report.durable), (200, 196));
    assert!(crash_report.blocks > 16, "{crash_report:?}");
    assert_eq!((crash_report.lost, crash_report.torn), (0, 0));
}

#[test]
fn lost_stale_and_misplaced_blocks_are_reported() {
    let bench = Bench::new();
    bench.run(&overwrites()).unwrap();
    let file = bench.file("f.0");
    let block = |index: u64| {
        let mut bytes = vec![0; 4096];
        file.read_exact_at(&mut bytes, index * 4096).unwrap();
        bytes
    };
    let (first, second) = (block(0), block(1));
    file.write_all_at(&first, 4096).unwrap();
    let reported = crash_report(&bench.state()).unwrap();
    let difference = Difference::Misplaced { belongs: 0 };
    assert_eq!((reported.lost, reported.losses[0].difference), (1, difference));
    assert_eq!(reported.losses[0].offset, Bytes(4096));
    file.write_all_at(&vec![0; 4096], 4096).unwrap();
    assert_eq!(crash_report(&bench.state()).unwrap().losses[0].difference, Difference::Hole);
    file.write_all_at(&second, 4096).unwrap();
    assert_eq!(crash_report(&bench.state()).unwrap().lost, 0);
    // Truncated after the first block: all others are lost.
    file.set_len(4096).unwrap();
    let reported = crash_report(&bench.state()).unwrap();
    assert_eq!(reported.lost, reported.blocks - 1);
}

#[test]
fn an_older_write_than_the_last_durable_one_is_stale() {
    let bench = Bench::new();
    let mut plan = overwrites();
    plan.access_pattern = AccessPattern::Sequential;
    plan.bound = Bound::Ops(16);
    let call = SyncCall::Fsync;
    plan.sync_every = Some(SyncEvery { after: SyncInterval::Ops(16), call, before_next: false });
    bench.run(&plan).unwrap();
    let old = std::fs::read(bench.directory.path().join("f.0")).unwrap();
    plan.bound = Bound::Ops(32);
    bench.run(&plan).unwrap();
    assert_eq!(crash_report(&bench.state()).unwrap().lost, 0);
    bench.file("f.0").write_all_at(&old[..4096], 0).unwrap();
    let reported = crash_report(&bench.state()).unwrap();
    let difference = Difference::Stale { found: 0, durable: 17 };
    assert_eq!((reported.lost, reported.losses[0].difference), (1, difference));
}

#[test]
fn appends_are_verified_from_their_start() {
    let bench = Bench::new();
    let mut plan = overwrites();
    (plan.access_pattern, plan.bound) = (AccessPattern::Append, Bound::Ops(10));
    bench.run(&plan).unwrap();
    bench.run(&plan).unwrap();
    let crash_report = crash_report(&bench.state()).unwrap();
    assert_eq!((crash_report.done, crash_report.durable, crash_report.blocks), (10, 7, 7));
    assert_eq!(crash_report.lost, 0);
}

#[test]
fn the_state_must_be_valid_and_the_stream_must_have_headers() {
    let bench = Bench::new();
    std::fs::write(bench.state(), b"nothing of the kind").unwrap();
    let text = crash_report(&bench.state()).unwrap_err().to_string();
    assert!(text.starts_with("cannot read or write the crash state "), "{text}");
    std::fs::remove_file(bench.state()).unwrap();
    let mut plan = overwrites();
    plan.block_size = Bytes(32);
    assert!(matches!(bench.run(&plan), Err(EngineError::Stream { .. })));
    let mut plan = overwrites();
    plan.workers = Workers::threads(2);
    plan.files = model::phase::FileSharing::Shared("f".into());
    plan.open.creation = FileCreation::Any;
    assert!(matches!(bench.run(&plan), Err(EngineError::Stream { .. })));
}

/// Layout followed by writes that were all lost: blocks of the layout must not count as written
/// data.
#[test]
fn blocks_of_a_layout_do_not_count_as_later_writes() {
    let bench = Bench::new();
    let mut layout = overwrites();
    layout.access_pattern = AccessPattern::Sequential;
    layout.bound = Bound::Once;
    layout.sync_every =
        Some(SyncEvery { after: SyncInterval::Ops(1), call: SyncCall::Fsync, before_next: false });
    bench.run(&layout).unwrap();
    let old = std::fs::read(bench.directory.path().join("f.0")).unwrap();
    bench.run(&overwrites()).unwrap();
    bench.file("f.0").write_all_at(&old, 0).unwrap();
    let reported = crash_report(&bench.state()).unwrap();
    assert_eq!((reported.blocks, reported.lost), (reported.lost, reported.blocks), "{reported:?}");
}

#[test]
fn streams_that_cannot_be_verified_are_rejected() {
    let bench = Bench::new();
    let refused = |change: &dyn Fn(&mut Stream)| {
        let mut plan = overwrites();
        change(&mut plan);
        matches!(bench.run(&plan), Err(EngineError::Stream { .. }))
    };
    assert!(refused(&|plan| plan.sync_every = None));
    assert!(refused(&|plan| plan.io_engine = IoEngineKind::Null));
    assert!(refused(&|plan| {
        plan.workers = Workers::threads(3);
        plan.files = FileSharing::Shared("f".into());
        plan.direction = Direction::FirstRead(1);
    }));
    std::fs::write(bench.directory.path().join("f.0"), b"not a block").unwrap();
    assert!(refused(
        &|plan| (plan.access_pattern, plan.bound) = (AccessPattern::Append, Bound::Ops(3))
    ));
}

#[test]
fn an_existing_file_is_not_overwritten_by_a_crash_state() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("notes"), "mine").unwrap();
    std::os::unix::fs::symlink(at("notes"), at("link")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
    for name in ["notes", "link", "dangling"] {
        let refused = CrashState::create(&at(name)).unwrap_err();
        assert!(matches!(refused, EngineError::StateExists { .. }), "{name}: {refused:?}");
    }
    assert_eq!(std::fs::read(at("notes")).unwrap(), b"mine");
    assert!(!at("nowhere").exists());
}

#[test]
fn a_replaced_state_file_is_not_removed() {
    let bench = Bench::new();
    bench.run(&overwrites()).unwrap();
    let state = bench.kept.get().unwrap();
    std::fs::rename(bench.state(), bench.state.path().join("saved")).unwrap();
    std::fs::write(bench.state(), "mine").unwrap();
    state.remove().unwrap();
    assert_eq!(std::fs::read(bench.state()).unwrap(), b"mine");
    std::fs::rename(bench.state.path().join("saved"), bench.state()).unwrap();
    state.remove().unwrap();
    assert!(!bench.state().exists());
}

/// Reads of /proc/self/mem at low addresses fail with EIO, like reads of a bad block.
#[test]
fn unreadable_blocks_are_lost_and_the_others_are_verified() {
    let bench = Bench::new();
    let mut plan = overwrites();
    plan.workers = Workers::threads(2);
    bench.run(&plan).unwrap();
    let sound = crash_report(&bench.state()).unwrap();
    let file = bench.directory.path().join("f.0");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/proc/self/mem", &file).unwrap();
    let found = crash_report(&bench.state()).unwrap();
    assert_eq!((found.blocks, found.durable), (sound.blocks, sound.durable));
    assert_eq!((found.lost, found.unreadable), (found.lost, found.lost));
    assert!(found.lost > 0 && found.lost < found.blocks, "{found:?}");
    let difference = Difference::Unreadable { errno: libc::EIO };
    assert!(found.losses.iter().all(|loss| loss.difference == difference && loss.path == file));
}

#[test]
fn states_with_implausibly_large_counts_are_rejected() {
    let bench = Bench::new();
    bench.run(&overwrites()).unwrap();
    let refused = |limits| match crash_report_within(&bench.state(), limits) {
        Err(EngineError::State { source, .. }) => source.to_string().contains("implausibly large"),
        Ok(_) | Err(_) => false,
    };
    let blocks = overwrites().size.0 / Verifier::new(&overwrites(), 0).block_size() as u64;
    assert!(!refused(Limits { blocks, ops: 200 }));
    assert!(refused(Limits { blocks: blocks - 1, ops: 200 }), "a file with more blocks");
    assert!(refused(Limits { blocks, ops: 99 }), "a worker with more operations");
}
