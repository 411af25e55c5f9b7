//! Runs killed after their last trial: `--resume` completes them.

use std::{fs, path::PathBuf};

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
    // State after a kill, before the file is closed.
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
