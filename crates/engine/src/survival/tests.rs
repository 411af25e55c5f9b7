use std::sync::atomic::AtomicBool;

use model::phase::{
    Access, Amount, Bound, Direction, FlushCall, FlushEvery, Interface, Presence, Workers,
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
        };
        run(stream, &context).map(drop)
    }

    fn file(&self, name: &str) -> File {
        let path = self.directory.path().join(name);
        File::options().read(true).write(true).open(path).unwrap()
    }
}

/// 100 random writes over 16 blocks, a flush after every 7.
fn overwrites() -> Stream {
    let mut plan = stream(Interface::Offset, Direction::Write, 16);
    plan.access = Access::Random;
    plan.bound = Bound::Ops(100);
    let call = FlushCall::Fdatasync;
    plan.flush_every = Some(FlushEvery { after: Amount::Ops(7), call });
    plan
}

#[test]
fn what_was_flushed_is_known_and_found() {
    let bench = Bench::new();
    let mut plan = overwrites();
    plan.workers = Workers::threads(2);
    bench.run(&plan).unwrap();
    let survival = survival(&bench.state()).unwrap();
    assert_eq!((survival.done, survival.durable), (200, 196));
    assert!(survival.blocks > 16, "{survival:?}");
    assert_eq!((survival.lost, survival.torn), (0, 0));
}

#[test]
fn what_is_lost_old_or_elsewhere_is_told() {
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
    let told = survival(&bench.state()).unwrap();
    let difference = Difference::Misplaced { belongs: 0 };
    assert_eq!((told.lost, told.losses[0].difference), (1, difference));
    assert_eq!(told.losses[0].offset, Bytes(4096));
    file.write_all_at(&vec![0; 4096], 4096).unwrap();
    assert_eq!(survival(&bench.state()).unwrap().losses[0].difference, Difference::Hole);
    file.write_all_at(&second, 4096).unwrap();
    assert_eq!(survival(&bench.state()).unwrap().lost, 0);
    // Cut off behind the first block: everything else is gone.
    file.set_len(4096).unwrap();
    let told = survival(&bench.state()).unwrap();
    assert_eq!(told.lost, told.blocks - 1);
}

#[test]
fn an_older_write_than_the_last_durable_one_is_stale() {
    let bench = Bench::new();
    let mut plan = overwrites();
    plan.access = Access::Sequential;
    plan.bound = Bound::Ops(16);
    let call = FlushCall::Fsync;
    plan.flush_every = Some(FlushEvery { after: Amount::Ops(16), call });
    bench.run(&plan).unwrap();
    let old = std::fs::read(bench.directory.path().join("f.0")).unwrap();
    plan.bound = Bound::Ops(32);
    bench.run(&plan).unwrap();
    assert_eq!(survival(&bench.state()).unwrap().lost, 0);
    bench.file("f.0").write_all_at(&old[..4096], 0).unwrap();
    let told = survival(&bench.state()).unwrap();
    let difference = Difference::Stale { found: 0, durable: 17 };
    assert_eq!((told.lost, told.losses[0].difference), (1, difference));
}

#[test]
fn appends_are_judged_from_where_they_began() {
    let bench = Bench::new();
    let mut plan = overwrites();
    (plan.access, plan.bound) = (Access::Append, Bound::Ops(10));
    bench.run(&plan).unwrap();
    bench.run(&plan).unwrap();
    let survival = survival(&bench.state()).unwrap();
    assert_eq!((survival.done, survival.durable, survival.blocks), (10, 7, 7));
    assert_eq!(survival.lost, 0);
}

#[test]
fn a_state_must_be_one_and_a_stream_must_have_headers() {
    let bench = Bench::new();
    std::fs::write(bench.state(), b"nothing of the kind").unwrap();
    let text = survival(&bench.state()).unwrap_err().to_string();
    assert!(text.contains("the state file ") && text.ends_with("/state"), "{text}");
    std::fs::remove_file(bench.state()).unwrap();
    let mut plan = overwrites();
    plan.record = Bytes(32);
    assert!(matches!(bench.run(&plan), Err(EngineError::Stream { .. })));
    let mut plan = overwrites();
    plan.workers = Workers::threads(2);
    plan.files = model::phase::Files::Shared("f".into());
    plan.open.presence = Presence::Any;
    assert!(matches!(bench.run(&plan), Err(EngineError::Stream { .. })));
}

/// A layout, and all writes after it lost: nothing of the layout may pass for what was written.
#[test]
fn a_layout_does_not_pass_for_what_came_after_it() {
    let bench = Bench::new();
    let mut layout = overwrites();
    layout.access = Access::Sequential;
    layout.bound = Bound::Once;
    layout.flush_every = Some(FlushEvery { after: Amount::Ops(1), call: FlushCall::Fsync });
    bench.run(&layout).unwrap();
    let old = std::fs::read(bench.directory.path().join("f.0")).unwrap();
    bench.run(&overwrites()).unwrap();
    bench.file("f.0").write_all_at(&old, 0).unwrap();
    let told = survival(&bench.state()).unwrap();
    assert_eq!((told.blocks, told.lost), (told.lost, told.blocks), "{told:?}");
}

#[test]
fn streams_that_cannot_be_judged_are_refused() {
    let bench = Bench::new();
    let refused = |change: &dyn Fn(&mut Stream)| {
        let mut plan = overwrites();
        change(&mut plan);
        matches!(bench.run(&plan), Err(EngineError::Stream { .. }))
    };
    assert!(refused(&|plan| plan.flush_every = None));
    assert!(refused(&|plan| plan.interface = Interface::Null));
    assert!(refused(&|plan| {
        plan.workers = Workers::threads(3);
        plan.files = Files::Shared("f".into());
        plan.direction = Direction::FirstRead(1);
    }));
    std::fs::write(bench.directory.path().join("f.0"), b"not a block").unwrap();
    assert!(refused(&|plan| (plan.access, plan.bound) = (Access::Append, Bound::Ops(3))));
}

#[test]
fn an_existing_file_becomes_no_crash_state() {
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
fn a_state_file_that_was_replaced_is_not_removed() {
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

/// Reads of /proc/self/mem at low addresses fail with EIO, as those of a bad block do.
#[test]
fn blocks_that_cannot_be_read_are_lost_and_the_others_are_judged() {
    let bench = Bench::new();
    let mut plan = overwrites();
    plan.workers = Workers::threads(2);
    bench.run(&plan).unwrap();
    let sound = survival(&bench.state()).unwrap();
    let file = bench.directory.path().join("f.0");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/proc/self/mem", &file).unwrap();
    let found = survival(&bench.state()).unwrap();
    assert_eq!((found.blocks, found.durable), (sound.blocks, sound.durable));
    assert_eq!((found.lost, found.unreadable), (found.lost, found.lost));
    assert!(found.lost > 0 && found.lost < found.blocks, "{found:?}");
    let difference = Difference::Unreadable { errno: libc::EIO };
    assert!(found.losses.iter().all(|loss| loss.difference == difference && loss.path == file));
}
