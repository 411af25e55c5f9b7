use std::sync::atomic::AtomicBool;

use model::phase::WorkerShare;

use super::*;
use crate::Progress;

const MS: u64 = 1_000_000;

fn coherence(change: Change, workers: u32) -> Coherence {
    Coherence {
        change,
        changes: 5,
        interval: Nanos(20 * MS),
        poll_interval: Nanos(MS),
        timeout: Nanos(10_000 * MS),
        workers: Workers::threads(workers),
    }
}

fn run(coherence: &Coherence) -> (Result<PhaseResult, EngineError>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let context = Context {
        directory: directory.path(),
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
        start: None,
    };
    let result = run_coherence(coherence, &context);
    let names = fs::read_dir(directory.path().join(coherence.change.name()));
    let names = names.into_iter().flatten();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    (result, names)
}

#[test]
fn each_change_is_seen_once_by_each_waiting_worker() {
    for change in Change::ALL {
        let (result, names) = run(&coherence(change, 3));
        let result = result.unwrap();
        let ops: Vec<u64> = result.workers.iter().map(|worker| worker.read.ops.0).collect();
        assert_eq!(ops, [0, 5, 5], "{change:?}");
        let latencies = &result.workers[1].latencies.read;
        assert_eq!(latencies.count(), 5);
        let written = match change {
            Change::Create | Change::Rename => vec!["0.new", "1.new", "2.new", "3.new", "4.new"],
            Change::Append | Change::Overwrite => vec!["0", "1", "2", "3", "4"],
            Change::Unlink => vec![],
        };
        assert_eq!(names, written, "{change:?}");
        // The last change starts 100 ms after the start.
        assert!(result.wall_time >= Nanos(100 * MS));
    }
}

#[test]
fn a_change_that_is_not_seen_in_time_is_an_error() {
    // The phase runs the waiting worker of another host only, so no worker makes the change.
    let share = WorkerShare { first: 1, count: 1, shift: 0 };
    let workers = Workers { share: Some(share), ..Workers::threads(2) };
    for change in Change::ALL {
        let one = Coherence { timeout: Nanos(30 * MS), workers, ..coherence(change, 2) };
        let Err(EngineError::Coherence { source, .. }) = run(&one).0 else {
            panic!("{change:?} was seen")
        };
        assert_eq!(source.kind(), io::ErrorKind::TimedOut, "{change:?}: {source}");
    }
}

#[test]
fn on_several_hosts_only_the_other_hosts_wait() {
    let share = WorkerShare { first: 0, count: 2, shift: 0 };
    let workers = Workers { share: Some(share), ..Workers::threads(4) };
    let result = run(&Coherence { workers, ..coherence(Change::Rename, 2) }).0.unwrap();
    let ops: Vec<u64> = result.workers.iter().map(|worker| worker.read.ops.0).collect();
    assert_eq!(ops, [0, 0]);
}

#[test]
fn one_worker_is_rejected() {
    let error = run(&coherence(Change::Create, 1)).0.unwrap_err().to_string();
    assert!(error.contains("workers is 1"), "{error}");
}
