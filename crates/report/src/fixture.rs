//! Artificial runs for tests.
//!
//! The run of this module has five filesystems and a skipped one, two block sizes, thirteen tests,
//! eight repetitions, and one failed trial. It is deterministic and contains all cases that a
//! report must show: clear winners, ties, a wide interval, warnings, and missing results.

pub(crate) mod bonnie;
pub(crate) mod dbench;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod schema;
pub(crate) mod smallfile;
pub(crate) mod tasks;
pub(crate) mod together;

use std::collections::BTreeMap;

use model::{
    Bytes, Cell, Environment, FilesystemLevel, FillLevel, Histogram, Metric, Nanos, Profile,
    RunRecord, Sample, Scale, Value, Warning, WorkloadParameters,
    phase::Role,
    record::{
        CellRecord, CellState, HistogramKind, Outcome, PhaseHistogram, PhaseInfo, RunInfo,
        TrialRecord,
    },
    sample::lifecycle,
};

/// Name, true for a write test, and base throughput in MiB/s.
pub(crate) const TESTS: [(&str, bool, f64); 13] = [
    ("write", true, 412.0),
    ("rewrite", true, 430.0),
    ("read", false, 1890.0),
    ("reread", false, 1905.0),
    ("random-read", false, 1210.0),
    ("random-write", true, 355.0),
    ("backward-read", false, 930.0),
    ("record-rewrite", true, 2800.0),
    ("strided-read", false, 1010.0),
    ("fwrite", true, 401.0),
    ("frewrite", true, 418.0),
    ("fread", false, 1780.0),
    ("freread", false, 1795.0),
];

/// Name, relative speed, and relative spread of each filesystem. The speed is 0 for the skipped
/// one.
const FILESYSTEMS: [(&str, f64, f64); 6] = [
    ("ext4", 1.0, 0.01),
    ("xfs", 1.09, 0.012),
    ("btrfs", 0.81, 0.02),
    ("f2fs", 0.995, 0.011),
    ("jfs", 0.0, 0.0),
    ("bcachefs", 0.62, 0.05),
];

/// Lifecycle steps of a filesystem without setup.
const STEPS: [&str; 4] = [lifecycle::MKFS, lifecycle::MOUNT, lifecycle::UMOUNT, lifecycle::FSCK];

const START: u64 = 1_795_293_060_000_000_000;
const REPETITIONS: u32 = 8;

/// Run with two block sizes.
pub(crate) fn record() -> RunRecord {
    with_records(&[Bytes::mib(1), Bytes::mib(4)], "ext4-or-what")
}

/// Run with these block sizes and this plan name.
pub(crate) fn with_records(sizes: &[Bytes], plan_name: &str) -> RunRecord {
    let mut record = RunRecord {
        info: info(plan_name),
        environment: environment(),
        cells: Vec::new(),
        trials: Vec::new(),
        warnings: vec![
            Warning::SharedStorage {
                storage: "an image file on a loop device".into(),
                directory: false,
            },
            Warning::PlanOverridden { what: "--scale 1/64".into() },
        ],
    };
    for size in sizes {
        for (name, ..) in FILESYSTEMS {
            record.cells.push(cell(name, *size));
        }
    }
    let mut rng = fastrand::Rng::with_seed(2009);
    for repetition in 0..REPETITIONS {
        for index in 0..record.cells.len() {
            if record.cells[index].cell.filesystem.name != "jfs" {
                record.trials.push(trial(&record, index, repetition, &mut rng));
            }
        }
    }
    // One repetition of bcachefs with the first block size fails.
    if let Some(trial) = record.trials.iter_mut().find(|trial| trial.cell == 5) {
        trial.outcome =
            Outcome::Failed { reason: "random-write: write: No space left on device (28)".into() };
    }
    record
}

fn info(plan_name: &str) -> RunInfo {
    RunInfo {
        id: "2026-11-21-203100-k3x9".into(),
        title: "Five filesystems & one that is <not> here".into(),
        plan_name: plan_name.into(),
        plan_text:
            "title = \"Five filesystems & one that is <not> here\"\nprofile = \"standard\"\n\n\
                    [axes]\nfilesystem = [\"ext4\", \"xfs\", \"btrfs\", \"f2fs\", \"jfs\", \
                    \"bcachefs\"]\nworkload = [{ suite = \"iozone\", file = \"16GiB\", record = \
                    [\"1MiB\", \"4MiB\"] }]\n"
                .into(),
        overrides: vec![("scale".into(), "1/64".into())],
        scale: Scale::parse("1/64").unwrap(),
        profile: Profile::Standard,
        repetitions: None,
        seed: 42,
        study: model::Study::from_name(plan_name),
        storage: "image file of 1GiB (preallocated) on a loop device".into(),
        started_unix: Nanos(START),
        ended_unix: Some(Nanos(START + 5_025_000_000_000)),
        program: "fslab 0.1.0 (abcdef0)".into(),
    }
}

fn environment() -> Environment {
    let mut environment = Environment::default();
    for (name, value) in [
        ("kernel.release", "6.18.2"),
        ("cpu.model", "Example CPU 8-Core"),
        ("memory.total_bytes", "17179869184"),
        ("memory.limit_bytes", "134217728"),
        ("device.loop3.queue.scheduler", "none"),
        ("tool.mkfs.xfs", "mkfs.xfs version 6.17"),
    ] {
        environment.set(name, value);
    }
    environment
}

fn cell(name: &str, size: Bytes) -> CellRecord {
    let parameters = BTreeMap::from([
        ("file_size".to_owned(), Value::Size(Bytes::mib(256))),
        ("block_size".to_owned(), Value::Size(size)),
        ("cache".to_owned(), Value::Word("cold".into())),
    ]);
    let mut filesystem = FilesystemLevel::plain(name);
    if name == "f2fs" {
        filesystem.mount = "compress_algorithm=zstd".into();
    }
    let workload = WorkloadParameters { suite: "iozone".into(), parameters };
    let cell = Cell {
        filesystem,
        workload,
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
    };
    let skipped = name == "jfs";
    let phase = |(name, writes, _): &(&str, bool, f64)| PhaseInfo {
        name: (*name).into(),
        group: if *writes { "writing" } else { "reading" }.into(),
        role: Role::Measure,
        primary: if *writes { Metric::DurableThroughput } else { Metric::Throughput },
        cache: None,
    };
    let reason = "the running kernel 6.18.2 does not support jfs; install linux-modules-extra, or use --guest auto";
    CellRecord {
        id: cell.id(),
        label: format!("iozone block_size={size}"),
        state: match skipped {
            true => CellState::Skipped { reason: reason.into() },
            false => CellState::Done { reason: "converged".into() },
        },
        phases: if skipped { Vec::new() } else { TESTS.iter().map(phase).collect() },
        cell,
    }
}

/// Random value around 1 with this relative spread. The sum of three uniform values has a
/// bell-shaped distribution.
fn around(spread: f64, rng: &mut fastrand::Rng) -> f64 {
    1.0 + spread * (rng.f64() + rng.f64() + rng.f64() - 1.5) * 1.4
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made-up times")]
fn whole(nanos: f64) -> u64 {
    nanos as u64
}

fn trial(
    record: &RunRecord,
    index: usize,
    repetition: u32,
    rng: &mut fastrand::Rng,
) -> TrialRecord {
    let cell = &record.cells[index].cell;
    let (_, speed, spread) =
        FILESYSTEMS.into_iter().find(|(name, ..)| *name == cell.filesystem.name).unwrap();
    let size = cell.workload.size("block_size");
    // Larger blocks are faster.
    let gain = 1.0 + 0.08 * (size.0 as f64 / Bytes::MIB as f64).log2();
    let (mut samples, mut histograms) = (Vec::new(), Vec::new());
    let mut add = |phase: &str, metric, value| {
        samples.push(Sample { phase: phase.into(), metric, worker: None, value });
    };
    for (number, (name, writes, base)) in TESTS.into_iter().enumerate() {
        // The order of the filesystems differs between tests, by a fixed pattern.
        let pattern = 1.0 + 0.12 * (((index % 6) * 7 + number * 5) % 11) as f64 / 11.0;
        let rate = base * Bytes::MIB as f64 * speed * gain * pattern * around(spread, rng);
        if writes {
            add(name, Metric::DurableThroughput, rate);
            add(name, Metric::Throughput, rate * 1.35 * around(0.03, rng));
        } else {
            add(name, Metric::Throughput, rate);
        }
        let service = size.0 as f64 / rate * 1e9;
        let mut histogram = Histogram::new();
        for _ in 0..256 {
            histogram.record(whole(service * around(0.2, rng)));
        }
        histograms.push(PhaseHistogram {
            phase: name.to_owned(),
            kind: HistogramKind::All,
            histogram,
        });
    }
    for (step, millis) in STEPS.into_iter().zip([31.0, 4.2, 12.0, 55.0]) {
        add(step, Metric::Elapsed, millis / speed * 1e6 * around(0.05, rng));
    }
    add(lifecycle::MKFS, Metric::SpaceAvailable, 1e9 * (0.9 + 0.08 * speed));
    add(lifecycle::MKFS, Metric::DeviceBytesWritten, 4e6 / speed);
    let cold = Warning::CacheNotCold { requested: Bytes::mib(256), from_device: Bytes::mib(200) };
    TrialRecord {
        cell: index,
        repetition,
        attempt: 0,
        started_unix: Nanos(START + u64::from(repetition) * 600_000_000_000),
        elapsed: Nanos(30_000_000_000),
        outcome: Outcome::Measured,
        samples,
        histograms,
        series: Vec::new(),
        activity: Vec::new(),
        warnings: if index == 2 { vec![(Some("read".into()), cold)] } else { Vec::new() },
        actions: Vec::new(),
        environment: Environment::default(),
        hosts: Vec::new(),
    }
}
