//! Runs killed after their last trial: `--resume` completes them.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
};

use crate::support::Bench;

const PLAN: &str = r#"
repetitions = 1
seed = 7
[storage]
directory = "."
[axes]
workload = [{ suite = "iozone", file_size = "256KiB", block_size = "64KiB", tests = ["write"] }]
"#;

/// Completed run, and the path of its file during the run.
fn ended() -> (Bench, PathBuf) {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let output = bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let line = output.stderr.lines().find(|line| line.contains("measuring on")).unwrap();
    let working = line.rsplit(' ').next().unwrap().into();
    (bench, working)
}

#[test]
fn the_log_of_a_run_file_is_written_back() {
    let (bench, _) = ended();
    let run = rusqlite::Connection::open(bench.path("run.fslab")).unwrap();
    run.pragma_update(None, "journal_mode", "wal").unwrap();
    run.execute("UPDATE run SET value = '\"killed\"' WHERE key = 'title'", []).unwrap();
    // State of the files after a kill, before the run file is closed.
    for ending in ["", "-wal", "-shm"] {
        let from = bench.path(&format!("run.fslab{ending}"));
        fs::copy(from, bench.path(&format!("killed.fslab{ending}"))).unwrap();
    }
    bench.ends(0, &["run", "--resume", "killed.fslab"]);
    assert!(!bench.path("killed.fslab-wal").exists() && !bench.path("killed.fslab-shm").exists());
    assert_eq!(store::read(&bench.path("killed.fslab")).unwrap().info.title, "killed");
}

#[test]
fn a_run_file_in_memory_is_moved_to_its_final_path() {
    let (bench, working) = ended();
    let place = bench.path("run.fslab");
    if !working.starts_with("/dev/shm") {
        return crate::support::skipped(
            "ended::a_run_file_in_memory_is_moved_to_its_final_path",
            "/dev/shm",
        );
    }
    fs::copy(&place, &working).unwrap();
    fs::remove_file(&place).unwrap();
    bench.ends(0, &["run", "--resume", "run.fslab"]);
    assert!(place.exists() && !working.exists());
    assert_eq!(store::read(&place).unwrap().trials.len(), 1);
}

/// The first page of an interrupted run shows the results so far, and the run can be resumed.
#[test]
fn an_interrupted_run_prints_its_results() {
    let bench = Bench::new();
    let plan = bench.plan(
        r#"
repetitions = 40
[storage]
directory = "."
[axes]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB", tests = ["write"] }]
"#,
    );
    let mut command = bench.command(&["run", &plan, "-o", "run.fslab"]);
    let piped = || std::process::Stdio::piped();
    let mut child = command.stderr(piped()).stdout(piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let second = |line: std::io::Result<String>| line.unwrap().starts_with("[2/");
    assert!(stderr.by_ref().any(second), "two trials end");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let messages: Vec<String> = stderr.map_while(Result::ok).collect();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{messages:?}");
    let page = String::from_utf8(ended.stdout).unwrap();
    assert!(page.contains(" · 2 tests · ") && page.contains("Trust: "), "{page}");
    assert!(page.contains("report run.html, run file run.fslab"), "{page}");
    let last = messages.last().unwrap();
    assert!(last.ends_with("Continue with: fslab run --resume run.fslab"), "{messages:?}");
    assert!(bench.path("run.html").exists());
    // The run file was in memory, because the directory under test is on the same filesystem.
    assert_eq!(store::read(&bench.path("run.fslab")).unwrap().trials.len(), 2);
}
