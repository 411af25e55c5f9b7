//! Submissions and collections of completions: of fio and of fslab, each traced by strace.

use std::{fs, process::Command};

use super::FIO;
use crate::support::Bench;

/// Options of queues. Buffered I/O completes in io_submit(2), so the calls are always the same.
const QUEUES: [&str; 7] = [
    "iodepth=4",
    "iodepth=4\niodepth_batch=2",
    "iodepth=8\niodepth_batch_complete_min=4",
    "iodepth=8\niodepth_batch_complete=3\niodepth_batch_complete_max=6",
    "iodepth=4\niodepth_batch_complete_min=9",
    "iodepth=8\niodepth_low=2",
    "iodepth=8\niodepth_low=2\niodepth_batch=4\niodepth_batch_complete_min=3\n\
     iodepth_batch_complete_max=8",
];

pub(super) fn compare() {
    for options in QUEUES {
        let job = format!("[job]\nrw=write\nsize=96k\nbs=4k\nioengine=libaio\n{options}\n");
        let bench = Bench::new();
        let theirs = calls(&bench, "theirs", &[FIO, "job.fio"], &job);
        let ours = calls(&bench, "ours", &[env!("CARGO_BIN_EXE_fslab"), "fio", "job.fio"], &job);
        assert!(theirs.len() >= 8, "{options}: {theirs:?}");
        assert_eq!(ours, theirs, "{options}");
    }
}

/// Calls up to the last submission, such as `submit 1` and `collect 1..4: 2`. After it, fio waits
/// for all operations in flight together.
fn calls(bench: &Bench, name: &str, program: &[&str], job: &str) -> Vec<String> {
    let directory = bench.path(name);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("job.fio"), job).unwrap();
    let trace = bench.path(&format!("{name}.trace"));
    let output = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=io_submit,io_getevents", "-o"])
        .arg(&trace)
        .args(program)
        .current_dir(&directory)
        .env("FSLAB_STATE", bench.state())
        .output()
        .unwrap();
    assert!(output.status.success(), "{program:?}: {output:?}");
    let text = fs::read_to_string(&trace).unwrap();
    let mut found: Vec<String> = text.lines().filter_map(call).collect();
    let last = found.iter().rposition(|call| call.starts_with("submit"));
    found.truncate(last.map_or(0, |last| last + 1));
    found
}

fn call(line: &str) -> Option<String> {
    let (_, result) = line.rsplit_once(" = ")?;
    let (name, arguments) = line.split_once('(')?;
    let mut arguments = arguments.split(", ").skip(1);
    if name.ends_with("io_submit") {
        return Some(format!("submit {result}"));
    }
    let (least, most) = (arguments.next()?, arguments.next()?);
    Some(format!("collect {least}..{most}: {result}"))
}
