use model::{
    Bytes, Cell, FilesystemLevel, FillLevel, Metric, Profile, Sample, Value, WorkloadParameters,
    phase::Role,
    record::{CellRecord, CellState, PhaseInfo, TrialRecord},
};

use super::*;
use crate::runner::CellProgress;

const MINUTE: u64 = 60_000_000_000;

fn remaining(least: u64, expected: Option<u64>, most: u64) -> Remaining {
    let extent = |minutes: u64| Extent {
        trials: usize::try_from(minutes).unwrap() + 10,
        time: Nanos(minutes * MINUTE),
    };
    Remaining { least: extent(least), expected: expected.map(extent), most: extent(most) }
}

#[test]
fn the_time_left_is_that_of_the_forecast_with_its_limit() {
    let line = |it: &Remaining| format!("{}{}", total(it), left(it));
    assert_eq!(line(&Remaining::default()), "0", "no trial has ended");
    assert_eq!(line(&remaining(8, None, 31)), "18+, 8 min to 31 min left");
    assert_eq!(line(&remaining(8, Some(12), 31)), "~22, about 12 min left, at most 31 min");
    assert_eq!(line(&remaining(8, Some(8), 8)), "18, about 8 min left");
    assert_eq!(line(&remaining(0, Some(0), 0)), "10");
    assert_eq!(roughly(Nanos(1_500_000_000)), "2 s");
    assert_eq!(roughly(Nanos(125 * MINUTE)), "2 h 05 min");
}

fn record(filesystem: &str, state: CellState) -> CellRecord {
    let parameters = [("block_size".to_owned(), Value::Size(Bytes::mib(1)))].into();
    let cell = Cell {
        filesystem: FilesystemLevel::plain(filesystem),
        workload: WorkloadParameters { suite: "iozone".into(), parameters },
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
    };
    let phase = |name: &str| PhaseInfo {
        name: name.into(),
        group: "writing".into(),
        role: Role::Measure,
        primary: Metric::Throughput,
        cache: None,
    };
    let phases = vec![phase("write"), phase("read")];
    CellRecord { id: cell.id(), cell, label: "iozone".into(), state, phases }
}

/// Progress after these values of both phases.
fn progress(record: &CellRecord, values: &[f64]) -> CellProgress {
    let mut progress = CellProgress::default();
    for (repetition, value) in (0..).zip(values) {
        let sample = |phase: &PhaseInfo| Sample {
            phase: phase.name.clone(),
            metric: phase.primary,
            worker: None,
            value: *value,
        };
        let trial = TrialRecord {
            cell: 0,
            repetition,
            attempt: 0,
            started_unix: Nanos(0),
            elapsed: Nanos(MINUTE),
            outcome: Outcome::Measured,
            samples: record.phases.iter().map(sample).collect(),
            histograms: Vec::new(),
            series: Vec::new(),
            activity: Vec::new(),
            warnings: Vec::new(),
            actions: Vec::new(),
            environment: Default::default(),
            hosts: Vec::new(),
        };
        progress.add(&record.phases, &trial);
    }
    progress
}

#[test]
fn the_scoreboard_fits_the_screen_and_names_open_cells() {
    let done = CellState::Done { reason: "converged".into() };
    let skipped = CellState::Skipped { reason: "not here".into() };
    let cells = [record("ext4", done), record("xfs", CellState::Open), record("jfs", skipped)];
    let values = [1e8, 2e8, 1.1e8, 1.2e8, 1.9e8, 1.4e8];
    let board = |values: &[f64], repetitions, rows, columns| {
        let progress: Vec<CellProgress> = cells.iter().map(|cell| progress(cell, values)).collect();
        let run = RunProgress {
            cells: &cells,
            progress: &progress,
            profile: Profile::Standard,
            repetitions,
            done: 0,
            remaining: Remaining::default(),
        };
        board::text(&run, rows, columns)
    };
    let text = board(&values, None, 24, 80);
    assert!(text.starts_with(" MiB/s"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let [head, write, read, open] = lines[..] else { panic!("{text}") };
    assert!(head.ends_with("ext4  xfs"), "{text}");
    assert!(write.ends_with(" 124 124~") && read.contains("read"), "{text}");
    assert!(open.starts_with("~ open: 1 of 2 cells (target ±3.0 %): xfs "), "{text}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    assert!(
        board(&values[..3], None, 24, 80).contains("repetition 4; confidence intervals need 6")
    );
    assert!(board(&values, Some(9), 24, 80).ends_with("1 of 2 cells, repetition 7 of 9"));
    assert_eq!(board(&values, None, 24, 40), "", "too narrow");
    assert_eq!(board(&values, None, 8, 80).lines().count(), 3, "few rows");
    assert_eq!(board(&[], None, 24, 80), "");
}
