use expect_test::expect_file;
use model::{
    Bytes, Cell, Environment, FilesystemLevel, FillLevel, Histogram, Nanos, Sample, SystemActivity,
    Warning, WorkloadParameters,
    activity::{CpuActivity, KernelThread, Unavailable},
    record::{CellRecord, CellState, Outcome, PhaseHistogram, TrialRecord},
};

use super::*;
use crate::fixture;

/// Run of one workload in a directory: open loop of reads and writes, with syncs.
fn record(repetitions: u32) -> RunRecord {
    let mut record = fixture::record();
    record.cells.clear();
    record.trials.clear();
    record.info.storage = "the directory /srv/data on ext4".into();
    record.environment.set("clock.cost_ns", "24");
    record.warnings =
        vec![Warning::FitsInMemory { working_set: Bytes::gib(1), memory: Bytes::gib(16) }];
    let phase = |name: &str, role| PhaseInfo {
        name: name.into(),
        group: "mixed".into(),
        role,
        primary: Metric::Throughput,
        cache: None,
    };
    let cell = Cell {
        filesystem: FilesystemLevel::plain("directory"),
        workload: WorkloadParameters { suite: "stream".into(), parameters: Default::default() },
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
    };
    record.cells.push(CellRecord {
        id: cell.id(),
        label: "stream".into(),
        state: CellState::Done { reason: "as the plan sets".into() },
        phases: vec![phase("layout", Role::Prepare), phase("mixed", Role::Measure)],
        cell,
    });
    record.trials.extend((0..repetitions).map(trial));
    record
}

fn samples(repetition: u32) -> Vec<Sample> {
    let drift = 1.0 + f64::from(repetition) / 200.0;
    let sample = |(metric, value): (Metric, f64)| Sample {
        phase: "mixed".into(),
        metric,
        worker: None,
        value: value * drift,
    };
    let metrics = [
        (Metric::Throughput, 40e6),
        (Metric::ReadThroughput, 28e6),
        (Metric::WriteThroughput, 12e6),
        (Metric::DurableThroughput, 11.5e6),
        (Metric::OpsRate, 9766.0),
        (Metric::ReadOpsRate, 6836.0),
        (Metric::WriteOpsRate, 2930.0),
        (Metric::UserTime, 3e7),
        (Metric::SystemTime, 2.6e8),
        (Metric::UserTimePerOp, 310.0),
        (Metric::SystemTimePerOp, 2650.0),
        (Metric::ContextSwitchesPerOp, 1.02),
        (Metric::UserCpuUtilization, 0.003),
        (Metric::SystemCpuUtilization, 0.026),
        (Metric::DeviceBytesRead, 2e8),
        (Metric::DeviceBytesWritten, 1.4e8),
        (Metric::CacheHitRatio, 0.28),
        (Metric::SyncCalls, 200.0),
        (Metric::StartSkew, 41_000.0),
        (Metric::EndSkew, 82_000.0),
        (Metric::AttributedCpuTimePerOp, 3310.0),
        (Metric::OtherCpuUtilization, 0.004),
        (Metric::UnattributedFraction, 0.021),
        (Metric::MinorFaults, 412.0),
        (Metric::MajorFaults, 3.0),
        (Metric::PsiCpuSome, 0.01),
        (Metric::PsiIoSome, 0.83),
        (Metric::DeviceReadRequests, 48_830.0),
        (Metric::DeviceWriteRequests, 2411.0),
        (Metric::DeviceUtilization, 0.88),
        (Metric::DeviceQueueLength, 3.1),
        (Metric::ReadAmplification, 1.02),
        (Metric::WriteAmplification, 1.31),
        (Metric::MonitoringCpuUtilization, 0.0012),
        (Metric::MonitoringMemory, 12.5e6),
    ];
    metrics.map(sample).into()
}

fn trial(repetition: u32) -> TrialRecord {
    let times = |of, nanos: u64, count: u64| {
        let mut histogram = Histogram::new();
        for step in 0..count {
            histogram.record(nanos + nanos * (step % 100) / 20 + 97 * u64::from(repetition));
        }
        PhaseHistogram { phase: "mixed".into(), kind: of, histogram }
    };
    TrialRecord {
        cell: 0,
        repetition,
        attempt: 0,
        started_unix: Nanos(0),
        elapsed: Nanos(1),
        outcome: Outcome::Measured,
        samples: samples(repetition),
        histograms: vec![
            times(HistogramKind::All, 81_000, 97_660),
            times(HistogramKind::Read, 92_000, 68_360),
            times(HistogramKind::Write, 31_000, 29_300),
            times(HistogramKind::ServiceTime, 61_000, 97_660),
            times(HistogramKind::Sync, 1_210_000, 200),
        ],
        series: Vec::new(),
        activity: vec![("mixed".into(), seen())],
        warnings: Vec::new(),
        actions: Vec::new(),
        environment: Environment::default(),
        hosts: Vec::new(),
    }
}

/// System activity with attributed kernel threads and unavailable values: memory pressure and flush
/// requests have no samples either.
fn seen() -> SystemActivity {
    let thread = |origin, time| KernelThread { origin, name: "k".into(), time: Nanos(time) };
    let kernel = vec![
        thread(Origin::Journal, 310_000_000),
        thread(Origin::Writeback, 204_000_000),
        thread(Origin::Other, 17_000_000),
    ];
    SystemActivity {
        window: Nanos(10_000_000_000),
        cpu: Some(CpuActivity { kernel, ..CpuActivity::default() }),
        unavailable: vec![Unavailable {
            what: "flush count of vda".into(),
            why: "requires Linux 5.5".into(),
        }],
        ..SystemActivity::default()
    }
}

fn subject() -> Subject {
    Subject {
        name: "oltp-8k".into(),
        title: "Database pages: random 8 KiB, O_DIRECT, 70 % reads, four workers".into(),
        source: "project default".into(),
        parameters: vec![("file_size".into(), "4GiB".into()), ("runtime".into(), "30s".into())],
    }
}

fn plain(width: usize) -> TerminalOptions {
    TerminalOptions { width, color: false, detail: false }
}

#[test]
fn one_repetition_and_several_match_the_golden_files() {
    let one = bench(&record(1), &subject(), &plain(80));
    let several = bench(&record(8), &subject(), &plain(80));
    expect_file!["../../golden/bench.txt"].assert_eq(&format!("{one}\n{several}"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [80, 120] {
        for line in bench(&record(8), &subject(), &plain(width)).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn color_changes_nothing_else() {
    let options = TerminalOptions { color: true, ..plain(80) };
    let mut colored = bench(&record(1), &subject(), &options);
    assert!(colored.contains("\u{1b}[1m"));
    for code in ["\u{1b}[1;33m", "\u{1b}[1m", "\u{1b}[0m"] {
        colored = colored.replace(code, "");
    }
    assert_eq!(colored, bench(&record(1), &subject(), &plain(80)));
}

#[test]
fn a_failed_trial_has_a_reason_and_no_numbers() {
    let mut record = record(1);
    record.trials[0].outcome = Outcome::Failed { reason: "mixed: write: no space".into() };
    let text = bench(&record, &subject(), &plain(80));
    assert!(text.contains("mixed: write: no space") && !text.contains("rates"), "{text}");
}

#[test]
fn a_durable_write_is_headed_by_its_durable_throughput() {
    let mut record = record(1);
    let text = |record: &RunRecord| bench(record, &subject(), &plain(80));
    let at = |text: &str, words: &str| text.find(words).unwrap_or_else(|| panic!("{text}"));
    assert!(!text(&record).contains("accepted"), "a mixed workload is judged by all its bytes");
    record.cells[0].phases[1].primary = Metric::DurableThroughput;
    let text = text(&record);
    assert!(at(&text, "    durable throughput ") < at(&text, "    accepted throughput "));
}

/// Loops that end by time overwrite blocks before the sync and have no durable throughput.
#[test]
fn a_write_without_durable_throughput_has_accepted_throughput() {
    let mut record = record(1);
    let samples = &mut record.trials[0].samples;
    let rates = [Metric::ReadThroughput, Metric::WriteThroughput, Metric::DurableThroughput];
    samples.retain(|sample| !rates.contains(&sample.metric));
    let read = bench(&record, &subject(), &plain(80));
    assert!(read.contains("    throughput ") && !read.contains("accepted"), "{read}");
    let samples = &mut record.trials[0].samples;
    samples.push(Sample { metric: Metric::EndSyncTime, value: 4e7, ..samples[0].clone() });
    let written = bench(&record, &subject(), &plain(80));
    assert!(written.contains("    accepted throughput ") && !written.contains("durable"));
}
