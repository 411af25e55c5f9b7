//! Runs for tests of reports. They are measured once with small files and extended with generated
//! values, which do not depend on the machine.

use std::{fs, path::Path};

use model::{Nanos, RunRecord, record::CellRecord};
use store::Store;

use crate::support::Bench;

const PLAN: &str = r#"
title = "small"
repetitions = 1
aa_control = "none"
seed = 5
[storage]
directory = "data"
[axes]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = ["64KiB", "256KiB"], tests = ["write", "read"] }]
"#;

/// Measured run in a directory, with two block sizes.
pub(crate) fn measured(bench: &Bench) -> RunRecord {
    fs::create_dir(bench.path("data")).unwrap();
    let plan = bench.plan(PLAN);
    bench.ends(0, &["run", &plan, "-q", "-o", "measured.fslab"]);
    store::read(&bench.path("measured.fslab")).unwrap()
}

/// Run with one cell per workload and filesystem, and this many repetitions. Each filesystem is
/// slower than the previous one; the last one is skipped.
pub(crate) fn grown(record: &RunRecord, filesystems: &[String], repetitions: u32) -> RunRecord {
    let mut grown = RunRecord { cells: Vec::new(), trials: Vec::new(), ..record.clone() };
    let wide = record.cells.len();
    for name in filesystems {
        for cell in &record.cells {
            let mut cell: CellRecord = cell.clone();
            cell.cell.filesystem.name.clone_from(name);
            cell.id = cell.cell.id();
            grown.cells.push(cell);
        }
    }
    for repetition in 0..repetitions {
        for trial in &record.trials {
            for level in 0..filesystems.len().saturating_sub(1) {
                let mut trial = trial.clone();
                trial.cell += level * wide;
                trial.repetition = repetition;
                let slower = 1.0 - 0.04 * level as f64;
                for sample in &mut trial.samples {
                    let spread = 1.0 + 0.003 * f64::from((repetition * 7) % 5);
                    sample.value *= slower.max(0.1) * spread;
                }
                grown.trials.push(trial);
            }
        }
    }
    let skipped = filesystems.len().saturating_sub(1) * wide;
    for cell in &mut grown.cells[skipped..] {
        cell.state = model::record::CellState::Skipped { reason: "no such kernel".into() };
        cell.phases.clear();
    }
    grown
}

/// Stores a run as a run file.
pub(crate) fn keep(record: &RunRecord, path: &Path) {
    let (cells, environment) = (&record.cells, &record.environment);
    let made = Store::create(path, &record.info, cells, environment, &record.warnings);
    let mut store = made.unwrap();
    for trial in &record.trials {
        store.trial(trial, None).unwrap();
    }
    store.finish(record.info.ended_unix.unwrap_or(Nanos(1))).unwrap();
}
