//! Descriptors of a replay.

use std::{
    fs::{self, File},
    path::Path,
    thread,
};

use model::phase::{FileCall, TraceOrder, TraceTiming};

use crate::{Bench, as_program};

/// Descriptors of all threads of this process that are open below a directory.
fn open_below(directory: &Path) -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let tables = threads.filter_map(|thread| fs::read_dir(thread.path().join("fd")).ok());
    let links = tables.flatten().flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter(|target| target.starts_with(directory)).count()
}

/// Records a test, and replays it without the operations that close files.
fn replays_without_close(test: &str, workers: usize) {
    let bench = Bench::new();
    let mut recording = bench.record_test(test);
    for task in &mut recording.tasks {
        task.ops.retain(|op| ![FileCall::Close, FileCall::Release].contains(&op.call));
    }
    fs::write(bench.file(), trace::bytes(&recording).unwrap()).unwrap();
    let (result, place) = bench.replay(TraceOrder::Resources, TraceTiming::Asap);
    assert_eq!(result.workers.len(), workers);
    assert!(place.path().join("fslab-trace/first").exists());
    assert_eq!(open_below(place.path()), 0);
}

#[test]
fn files_that_a_worker_left_open_are_closed() {
    let test = "descriptors::files_that_a_worker_left_open_are_closed";
    let Some(root) = as_program() else { return replays_without_close(test, 1) };
    drop(File::create(root.join("first")).unwrap());
    drop(File::open(&root).unwrap());
}

#[test]
fn files_that_several_workers_left_open_are_closed() {
    let test = "descriptors::files_that_several_workers_left_open_are_closed";
    let Some(root) = as_program() else { return replays_without_close(test, 2) };
    let first = File::create(root.join("first")).unwrap();
    let copy = first.try_clone().unwrap();
    thread::scope(|scope| {
        // The other worker uses a descriptor of this one.
        scope.spawn(|| copy.set_len(3).unwrap());
        first.sync_all().unwrap();
    });
}
