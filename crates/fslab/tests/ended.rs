//! Runs that are killed after their last trial: `--resume` completes what the end has left undone.

use std::{fs, path::PathBuf};

use crate::support::Bench;

const PLAN: &str = r#"
repeats = 1
seed = 7
[storage]
directory = "."
[axes]
workload = [{ suite = "iozone", file = "256KiB", record = "64KiB", tests = ["write"] }]
"#;

/// A run that has ended, and where its file was during the run.
fn ended() -> (Bench, PathBuf) {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let said = bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let line = said.stderr.lines().find(|line| line.contains("measuring on")).unwrap();
    let working = line.rsplit(' ').next().unwrap().into();
    (bench, working)
}

#[test]
fn the_log_of_a_run_file_is_written_back() {
    let (bench, _) = ended();
    let run = rusqlite::Connection::open(bench.path("run.fslab")).unwrap();
    run.pragma_update(None, "journal_mode", "wal").unwrap();
    run.execute("UPDATE run SET value = '\"killed\"' WHERE key = 'title'", []).unwrap();
    // As a kill leaves them, before the file is closed.
    for ending in ["", "-wal", "-shm"] {
        let from = bench.path(&format!("run.fslab{ending}"));
        fs::copy(from, bench.path(&format!("killed.fslab{ending}"))).unwrap();
    }
    bench.ends(0, &["run", "--resume", "killed.fslab"]);
    assert!(!bench.path("killed.fslab-wal").exists() && !bench.path("killed.fslab-shm").exists());
    assert_eq!(store::read(&bench.path("killed.fslab")).unwrap().info.title, "killed");
}

#[test]
fn a_run_file_in_memory_gets_to_its_place() {
    let (bench, working) = ended();
    let place = bench.path("run.fslab");
    if !working.starts_with("/dev/shm") {
        return crate::support::skipped(
            "ended::a_run_file_in_memory_gets_to_its_place",
            "/dev/shm",
        );
    }
    fs::copy(&place, &working).unwrap();
    fs::remove_file(&place).unwrap();
    bench.ends(0, &["run", "--resume", "run.fslab"]);
    assert!(place.exists() && !working.exists());
    assert_eq!(store::read(&place).unwrap().trials.len(), 1);
}
