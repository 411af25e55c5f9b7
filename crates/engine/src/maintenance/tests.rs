use std::{fs, sync::atomic::AtomicBool};

use model::phase::TimeLimit;

use super::*;
use crate::{Progress, Start, StartGate};

const MS: u64 = 1_000_000;

fn maintenance(action: Action, every: u64, count: u64) -> Maintenance {
    let time = TimeLimit { ramp: Nanos(0), run: Nanos(60_000 * MS) };
    Maintenance { action, at: Nanos(0), every: Nanos(every * MS), count, may_fail: false, time }
}

fn run(maintenance: &Maintenance, start: Option<Start<'_>>) -> Result<PhaseResult, EngineError> {
    let directory = tempfile::tempdir().unwrap();
    for index in 0..2 {
        let tree = directory.path().join(Action::tree(index)).join("a/b");
        fs::create_dir_all(tree).unwrap();
    }
    let context = Context {
        directory: directory.path(),
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
        start,
    };
    let result = run_maintenance(maintenance, &context);
    let left = fs::read_dir(directory.path()).unwrap().count();
    let removes = maintenance.action == Action::Remove;
    assert_eq!(left, if removes { 0 } else { 2 });
    result
}

#[test]
fn actions_start_at_their_times_and_are_listed() {
    let result = run(&maintenance(Action::Sync, 20, 4), None).unwrap();
    let worker = &result.workers[0];
    assert_eq!((worker.events.len(), worker.written.ops.0), (4, 4));
    for (index, event) in (0..).zip(&worker.events) {
        assert!(event.begun >= worker.started + Nanos(index * 20 * MS), "{:?}", worker.events);
    }
    assert_eq!(worker.latencies.write.count(), 4);
}

#[test]
fn each_removal_takes_one_tree_and_a_missing_one_is_an_error() {
    assert_eq!(run(&maintenance(Action::Remove, 0, 2), None).unwrap().workers[0].events.len(), 2);
    let error = run(&maintenance(Action::Remove, 0, 3), None);
    assert!(matches!(error, Err(EngineError::Maintenance { action: "remove", .. })));
}

#[test]
fn a_program_must_succeed_and_ends_with_its_group() {
    let program = |words: &[&str]| Action::Run(words.iter().map(|it| (*it).to_owned()).collect());
    assert!(run(&maintenance(program(&["test", "-d", "{target}"]), 0, 1), None).is_ok());
    let error = run(&maintenance(program(&["false"]), 0, 1), None);
    assert!(matches!(error, Err(EngineError::Maintenance { action: "run", .. })));
    let may = Maintenance { may_fail: true, ..maintenance(program(&["false"]), 0, 3) };
    let result = run(&may, None).unwrap();
    let worker = &result.workers[0];
    assert_eq!((worker.events.len(), worker.written.ops.0), (3, 0), "failures do not count");
    assert!(worker.events.iter().all(|event| event.error.contains("exit status: 1")));
    let gate = StartGate::new(1);
    gate.close();
    let start = Start { background: true, ..Start::at(&gate) };
    let result = run(&maintenance(program(&["sleep", "1000"]), 0, 0), Some(start)).unwrap();
    assert!(result.workers[0].events.is_empty(), "it was killed");
}

#[test]
fn actions_of_other_filesystems_are_not_supported() {
    let tmpfs = tempfile::tempdir_in("/dev/shm").unwrap();
    for action in [Action::Snapshot, Action::Scrub] {
        let error = Target::new(&action, tmpfs.path());
        assert!(matches!(error, Err(EngineError::Unsupported { .. })), "{action:?}");
    }
}
