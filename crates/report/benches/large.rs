//! Duration of the report of a large run: `cargo bench -p report --bench large`.
//!
//! The run has 10,000 cells (ten filesystems at 1000 workload points: three parameters of ten
//! values each) with ten repetitions. The parameters are text, because trends over numbers have
//! additional cost (20,000 permutations per line of a sweep, `analysis::trend`). The program prints
//! seconds, the size of the page, and its peak memory, and writes the page to the file named by its
//! argument. Target: below 3 s and 10 MB on two idle cores. Seeds are fixed, so every run does the
//! same work.
#![expect(clippy::print_stdout, reason = "its output is for people")]
#![expect(clippy::disallowed_methods, reason = "it measures what a report costs")]
#![expect(clippy::unwrap_used, reason = "a measurement that fails may stop")]

use std::{collections::BTreeMap, time::Instant};

use fastrand::Rng;
use model::{
    Cell, Environment, FilesystemLevel, FillLevel, Metric, Nanos, Profile, RunRecord, Sample,
    Scale, Value, WorkloadParameters,
    phase::Role,
    record::{CellRecord, CellState, Outcome, PhaseInfo, RunInfo, TrialRecord},
};
use report::View;

const FILESYSTEMS: [&str; 10] =
    ["ext4", "xfs", "btrfs", "f2fs", "jfs", "bcachefs", "nilfs2", "ext2", "reiserfs", "zfs"];
const LEVELS: u64 = 10;
const REPETITIONS: u32 = 10;

fn main() {
    let start = Instant::now();
    let record = record();
    let samples: usize = record.trials.iter().map(|trial| trial.samples.len()).sum();
    let cells = record.cells.len();
    println!("{:6.2} s to make {samples} samples of {cells} cells", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let view = View::new(&record);
    let viewed = start.elapsed().as_secs_f64();
    println!("{viewed:6.2} s for the view");
    let start = Instant::now();
    let page = report::html(&view, &[]);
    let laid_out = start.elapsed().as_secs_f64();
    println!("{laid_out:6.2} s for the page of {:.2} MB", page.len() as f64 / 1e6);
    println!("{:6.2} s in all", viewed + laid_out);
    println!("{:6.0} MB of memory at most", peak_kib() / 1024.0);
    let file = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if let Some(file) = file {
        std::fs::write(file, page).unwrap();
    }
}

/// Run of ten filesystems that differ by a few percent, in rounds of random order.
fn record() -> RunRecord {
    let mut rng = Rng::with_seed(1);
    let mut record = RunRecord {
        info: info(),
        environment: Environment::default(),
        cells: cells(),
        trials: Vec::new(),
        warnings: Vec::new(),
    };
    let centers: Vec<f64> =
        record.cells.iter().map(|_| 4e8 * (1.0 + 0.05 * normal(&mut rng))).collect();
    for repetition in 0..REPETITIONS {
        let mut order: Vec<usize> = (0..record.cells.len()).collect();
        rng.shuffle(&mut order);
        for cell in order {
            let value = centers[cell] * (0.02 * normal(&mut rng)).exp();
            record.trials.push(trial(cell, repetition, value));
        }
    }
    record
}

fn info() -> RunInfo {
    RunInfo {
        id: "2026-11-22-101500-large".into(),
        title: "Ten filesystems at a thousand points".into(),
        plan_name: "large".into(),
        plan_text: "title = \"Ten filesystems at a thousand points\"\n".into(),
        overrides: Vec::new(),
        scale: Scale::parse("1/1").unwrap(),
        profile: Profile::Standard,
        study: None,
        repetitions: Some(REPETITIONS),
        seed: 1,
        storage: "made up".into(),
        started_unix: Nanos(1_795_293_060_000_000_000),
        ended_unix: Some(Nanos(1_795_300_000_000_000_000)),
        program: "fslab".into(),
    }
}

fn cells() -> Vec<CellRecord> {
    let mut cells = Vec::new();
    for [pattern, engine, mix] in points() {
        for name in FILESYSTEMS {
            let parameters = BTreeMap::from([
                ("pattern".to_owned(), Value::Word(format!("p{pattern}"))),
                ("engine".to_owned(), Value::Word(format!("e{engine}"))),
                ("mix".to_owned(), Value::Word(format!("m{mix}"))),
            ]);
            let cell = Cell {
                filesystem: FilesystemLevel::plain(name),
                workload: WorkloadParameters { suite: "io".into(), parameters },
                scheduler: None,
                fill_level: FillLevel(0),
                settings: BTreeMap::default(),
                options: Default::default(),
                aa_duplicate: false,
            };
            cells.push(CellRecord {
                id: cell.id(),
                label: format!("io pattern=p{pattern} engine=e{engine} mix=m{mix}"),
                state: CellState::Done { reason: "converged".into() },
                phases: vec![PhaseInfo {
                    name: "randread".into(),
                    group: "reading".into(),
                    role: Role::Measure,
                    primary: Metric::Throughput,
                    cache: None,
                }],
                cell,
            });
        }
    }
    cells
}

/// All combinations of the levels of three parameters.
fn points() -> impl Iterator<Item = [u64; 3]> {
    (0..LEVELS * LEVELS * LEVELS)
        .map(|point| [point / (LEVELS * LEVELS), point / LEVELS % LEVELS, point % LEVELS])
}

fn trial(cell: usize, repetition: u32, value: f64) -> TrialRecord {
    let sample =
        Sample { phase: "randread".into(), metric: Metric::Throughput, worker: None, value };
    TrialRecord {
        cell,
        repetition,
        attempt: 0,
        started_unix: Nanos(1_795_293_060_000_000_000),
        elapsed: Nanos(500_000_000),
        outcome: Outcome::Measured,
        samples: vec![sample],
        histograms: Vec::new(),
        series: Vec::new(),
        activity: Vec::new(),
        warnings: Vec::new(),
        actions: Vec::new(),
        environment: Environment::default(),
        hosts: Vec::new(),
    }
}

fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

/// Peak memory of the process in KiB (`VmHWM` of proc_pid_status(5)).
fn peak_kib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
