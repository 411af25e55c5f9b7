//! Documents of runs of suite `stream`, imported again.

use model::{
    Bytes, Histogram, Metric, Nanos, Sample, Value,
    record::{HistogramKind, Outcome, PhaseHistogram},
};

use super::*;
use crate::{
    fixture,
    imports::{self, Importing, assemble},
};

/// Run with a cell that reads, a cell that writes, and a mixed cell, with three repetitions each.
fn run() -> RunRecord {
    let mut run = fixture::record();
    run.cells.truncate(3);
    run.trials.clear();
    let directions = ["read", "write", "mixed"];
    for (index, (cell, direction)) in run.cells.iter_mut().zip(directions).enumerate() {
        let text = |text: &str| Value::Word(text.into());
        cell.cell.workload.suite = SUITES[0].into();
        cell.cell.workload.parameters = [
            ("direction", text(direction)),
            ("access_pattern", text("permutation")),
            ("io_engine", text("pread")),
            ("block_size", Value::Size(Bytes::kib(4))),
            ("file_size", Value::Size(Bytes::mib(64))),
            ("read_fraction", Value::Fraction(0.7)),
            ("end_fsync", text("fsync")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        cell.phases.truncate(1);
        cell.phases[0].name = direction.into();
        cell.phases[0].primary = Metric::Throughput;
        for repetition in 0..3 {
            run.trials.push(trial(index, repetition, direction));
        }
    }
    run
}

fn trial(cell: usize, repetition: u32, phase: &str) -> TrialRecord {
    let mut trial = fixture::record().trials[0].clone();
    let histogram = |from: u64| {
        let mut histogram = Histogram::new();
        (from..from + 16_384).for_each(|value| histogram.record(value * 7));
        histogram
    };
    // The second repetition is the median.
    let factor = [0.9, 1.0, 1.2][usize::try_from(repetition).unwrap()];
    let sample = |(metric, value): (Metric, f64)| Sample {
        phase: phase.into(),
        metric,
        worker: None,
        value,
    };
    let mut samples = vec![
        (Metric::Throughput, 123_456_789.25 * factor),
        (Metric::OpsRate, 30_140.817_688 * factor),
        (Metric::LoopTime, 543_581_234.0 / factor),
        (Metric::UserCpuUtilization, 0.125),
        (Metric::SystemCpuUtilization, 0.5),
    ];
    match phase {
        "write" => samples.push((Metric::DurableThroughput, 61_728_394.5 * factor)),
        "mixed" => samples.extend([
            (Metric::ReadThroughput, 86_419_752.5 * factor),
            (Metric::WriteThroughput, 37_037_036.75 * factor),
            (Metric::ReadOpsRate, 21_098.5 * factor),
            (Metric::WriteOpsRate, 9_042.25 * factor),
        ]),
        _ => {}
    }
    trial.cell = cell;
    trial.repetition = repetition;
    trial.outcome = Outcome::Measured;
    trial.samples = samples.into_iter().map(sample).collect();
    let kinds = match phase {
        "mixed" => &[HistogramKind::All, HistogramKind::Read, HistogramKind::Write][..],
        _ => &[HistogramKind::All],
    };
    let times = |kind: &HistogramKind| PhaseHistogram {
        phase: phase.into(),
        kind: *kind,
        histogram: histogram(1000),
    };
    trial.histograms = kinds.iter().map(times).collect();
    trial
}

fn imported(text: &str) -> RunRecord {
    let importer = imports::recognize(text.as_bytes());
    assert_eq!(importer.name, "fio-json");
    let importing =
        Importing { id: "again".into(), source: "again", now: Nanos(1), facts: Vec::new() };
    assemble(importer.read(text.as_bytes()).unwrap(), importing)
}

#[test]
fn rates_of_an_imported_document_are_those_of_the_median_repetition() {
    for bins in [false, true] {
        let text = fio(&run(), if bins { FioFormat::JsonPlus } else { FioFormat::Json }).unwrap();
        let again = imported(&text);
        assert_eq!((again.cells.len(), again.trials.len()), (3, 3), "{text}");
        for (index, phase, metric, expected) in [
            (0, "read", Metric::Throughput, 123_456_789.25),
            (0, "read", Metric::OpsRate, 30_140.817_688),
            // As in fio, the time of writes includes the final sync.
            (1, "write", Metric::Throughput, 61_728_394.5),
            (1, "write", Metric::OpsRate, 15_070.408_844),
            (2, "read", Metric::OpsRate, 21_098.5),
            (2, "write", Metric::Throughput, 37_037_036.75),
            (2, "write", Metric::SystemCpuUtilization, 0.5),
        ] {
            let found = value(&again.trials[index], phase, metric).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-6, "{phase} {metric:?}: {found}");
        }
        let histogram = &run().trials[0].histograms[0].histogram;
        for (metric, q) in [(Metric::LatencyP50, 0.5), (Metric::LatencyP999, 0.999)] {
            let expected = histogram.quantile(q).unwrap().seconds() * 1e9;
            assert_eq!(value(&again.trials[0], "read", metric), Some(expected));
        }
        let histograms = &again.trials[0].histograms;
        assert_eq!(histograms.len(), usize::from(bins));
        if bins {
            let buckets = |own: &Histogram| own.buckets().collect::<Vec<_>>();
            assert_eq!(buckets(&histograms[0].histogram), buckets(histogram));
        }
        let fact = again.trials[0].environment.get("fio.version").unwrap();
        assert!(fact.starts_with("fslab-"), "{fact}");
        assert!(again.info.program.ends_with(", fio format"), "{}", again.info.program);
    }
}

#[test]
fn documents_have_the_layout_of_fio() {
    let text = fio(&run(), FioFormat::Json).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "{");
    assert!(lines[1].starts_with("  \"fio version\" : \"fslab-"), "{}", lines[1]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let job = &document["jobs"][1];
    assert_eq!(job["job options"]["rw"], "randwrite");
    assert_eq!(job["job options"]["ioengine"], "psync");
    assert_eq!(job["job options"]["end_fsync"], "1");
    assert_eq!(document["jobs"][2]["job options"]["rwmixread"], "70");
    assert_eq!(document["fslab"]["jobs"][0]["repetitions"], 3);
    assert_eq!(document["fslab"]["jobs"][0]["repetition"], 1);
    // Every key that programs read in each direction.
    let keys = [
        "/io_bytes",
        "/bw",
        "/bw_bytes",
        "/iops",
        "/runtime",
        "/total_ios",
        "/clat_ns/mean",
        "/clat_ns/percentile/99.000000",
        "/lat_ns/mean",
        "/lat_ns/stddev",
        "/slat_ns/N",
    ];
    for key in keys {
        assert!(job["write"].pointer(key).is_some(), "{key}");
    }
    assert_eq!(job["read"]["total_ios"], 0);
    assert!(text.contains("\n      \"iops\" : ") || text.contains("\n        \"iops\" : "));
}

#[test]
fn runs_of_other_suites_are_not_documents_of_fio() {
    assert_eq!(
        fio(&fixture::record(), FioFormat::Json),
        Err(NotInLayout::OtherSuite { suites: &["stream", "fio"], program: "fio" })
    );
    let mut empty = run();
    empty.trials.clear();
    assert_eq!(fio(&empty, FioFormat::Json), Err(NotInLayout::NothingMeasured("stream")));
}

#[test]
fn latencies_of_operations_with_a_rate_are_service_times() {
    let mut run = run();
    let values = |value: u64| {
        let mut histogram = Histogram::new();
        histogram.record(value);
        histogram
    };
    for trial in &mut run.trials {
        let phase = trial.samples[0].phase.clone();
        let own =
            |kind, value| PhaseHistogram { phase: phase.clone(), kind, histogram: values(value) };
        trial.histograms.push(own(HistogramKind::ServiceTime, 100));
        if phase == "mixed" {
            trial.histograms.push(own(HistogramKind::ServiceTimeOfReads, 101));
            trial.histograms.push(own(HistogramKind::ServiceTimeOfWrites, 102));
        }
    }
    let document = fio(&run, FioFormat::Json).unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let max = |job: usize, side: &str| document["jobs"][job][side]["lat_ns"]["max"].clone();
    let found = [max(0, "read"), max(1, "write"), max(2, "read"), max(2, "write")];
    assert_eq!(found, [100, 100, 101, 102]);
}

#[test]
fn a_direction_of_a_mixed_section_has_no_latency_of_the_other_one() {
    let mut run = run();
    for trial in &mut run.trials {
        let phase = trial.samples[0].phase.clone();
        for (kind, value) in [(HistogramKind::Submission, 5), (HistogramKind::Completion, 77)] {
            let mut histogram = Histogram::new();
            histogram.record(value);
            trial.histograms.push(PhaseHistogram { phase: phase.clone(), kind, histogram });
        }
    }
    let text = fio(&run, FioFormat::Json).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let job = |at: usize, direction: &str| document["jobs"][at][direction].clone();
    assert_eq!(job(0, "read")["slat_ns"]["mean"], 5.0);
    assert_eq!(job(0, "read")["clat_ns"]["mean"], 77.0);
    for direction in ["read", "write"] {
        let mixed = job(2, direction);
        assert_eq!(mixed["slat_ns"]["N"], 0);
        assert_eq!(mixed["clat_ns"]["mean"], mixed["lat_ns"]["mean"]);
        assert_ne!(mixed["lat_ns"]["mean"], 77.0);
    }
}
