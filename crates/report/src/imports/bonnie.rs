//! Records of bonnie++ as measurements of suite `bonnie`.

use std::collections::BTreeMap;

use model::{Bytes, Metric, Value};

use super::{ImportError, Importer, Measurement, label, phase};
use crate::bonnie::{
    self, Figure, Largest, PHASES, PhaseFigures, Record, SEEKS, SUITE, short_phase,
};

/// Importer of the records of bonnie++.
pub(super) const CSV: Importer = Importer {
    name: "bonnie-csv",
    program: "bonnie++",
    title: "CSV of bonnie++ 1.03, 1.96, 1.97, 1.98, and 2.00, one record per line",
    recognized_by: "first field 1.96, 1.97, or 1.98, or 27 fields; files that no other format fits",
    cell: "name, sizes, numbers of files and seeks",
    metrics: "`throughput` and `ops_rate` by phase, `cpu_utilization`, `latency_max`",
    omitted: "numbers that bonnie++ replaced by `+++++`",
    suite: SUITE,
    method: "Rates are bytes, seeks, or files over the time of a phase, including fsync and close. \
             CPU is user plus system time of the process over elapsed time. Latency is the longest \
             single operation and not comparable, regardless of the number of repetitions.",
    // Sufficient for 3,000 records.
    longest: 1 << 20,
    is_one_configuration: false,
    recognize: |text| {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        first.split(',').count() >= 27
    },
    read,
};

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    // The parser ignores bytes that do not extend ASCII.
    let records = bonnie::read(&String::from_utf8_lossy(bytes))?;
    Ok(records.iter().map(measurement).collect())
}

/// Program of a record. The version of records exported by fslab begins with `fslab-`.
fn of_version(version: &str) -> String {
    match version.strip_prefix("fslab-") {
        Some(version) => format!("fslab {version}, bonnie++ format"),
        None => format!("bonnie++ {version}"),
    }
}

fn measurement(record: &Record) -> Measurement {
    let parameters = parameters(record);
    let label = label(&parameters, &["file_size", "files"]);
    let mut measurement = Measurement {
        name: Some(record.name.clone()),
        ..Measurement::new(SUITE, of_version(&record.version), label, parameters)
    };
    measurement.fact("bonnie.format", record.format.name());
    measurement.fact("bonnie.version", &record.version);
    measurement.fact("bonnie.name", &record.name);
    if !record.seed.is_empty() {
        measurement.fact("bonnie.seed", &record.seed);
    }
    for (at, (name, figures)) in PHASES.into_iter().zip(record.phases).enumerate() {
        if figures != PhaseFigures::default() {
            measurement.phases.push((at, phase(name, group(name), primary(at))));
        }
        add(&mut measurement, at, name, figures);
    }
    measurement
}

/// Adds the figures of a phase.
fn add(measurement: &mut Measurement, at: usize, name: &str, figures: PhaseFigures) {
    let unit = if at < SEEKS { 1024.0 } else { 1.0 };
    let mut short = false;
    for (metric, figure, unit) in
        [(primary(at), figures.rate, unit), (Metric::CpuUtilization, figures.cpu, 0.01)]
    {
        match figure {
            Figure::Empty => {}
            Figure::Short => short = true,
            Figure::Known(value) => measurement.sample(name, metric, value * unit),
        }
    }
    if short {
        measurement.warnings.push((Some(name.to_owned()), short_phase()));
    }
    if let Some(latency) = figures.latency {
        measurement.sample(name, Metric::LatencyMax, latency.seconds() * 1e9);
    }
}

/// Workload parameters in the record, with their names in the suite.
fn parameters(record: &Record) -> BTreeMap<String, Value> {
    let size = |size: u64| Value::Size(Bytes(size));
    let (largest, links) = match record.largest {
        None => (None, None),
        Some(Largest::Bytes(bytes)) => (Some(size(bytes)), None),
        Some(Largest::Link) => (None, Some(Value::Word("hard".into()))),
        Some(Largest::Symlink) => (None, Some(Value::Word("symbolic".into()))),
    };
    let known = [
        ("file_size", record.file.map(Value::Size)),
        ("block_size", record.chunk.map(Value::Size)),
        ("seeks", record.seeks.map(Value::Count)),
        ("seekers", record.seekers.map(Value::Count)),
        ("files", record.files.map(|files| Value::Count(files.saturating_mul(1024)))),
        ("small_file_size_max", largest),
        ("small_file_size_min", record.smallest.map(size)),
        ("directories", record.directories.map(Value::Count)),
        ("small_file_block_size", record.file_chunk.map(size)),
        ("links", links),
        ("workers", record.concurrency.map(Value::Count)),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Heading of a phase in the suite.
fn group(phase: &str) -> &'static str {
    match phase {
        "putc" | "put-block" | "rewrite" => "sequential output",
        "getc" | "get-block" => "sequential input",
        "seeks" => "random seeks",
        other if other.starts_with("seq-") => "sequential create",
        _ => "random create",
    }
}

fn primary(at: usize) -> Metric {
    if at < SEEKS { Metric::Throughput } else { Metric::OpsRate }
}
