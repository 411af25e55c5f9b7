//! Jobs of a JSON document as measurements.

use std::collections::BTreeMap;

use model::{
    Metric, Nanos, Value,
    record::{HistogramKind, Outcome},
};

use super::{
    OF_FSLAB, SUITE,
    document::{Disk, Entry, Options, Side},
    options, program,
    times::{self, Kind},
    version,
};
use crate::{
    imports::{ImportError, Measurement, phase},
    units::grouped,
};

/// Parts of a document.
pub(super) struct Source<'a> {
    pub(super) version: &'a str,
    pub(super) timestamp: Option<f64>,
    pub(super) global: &'a Options,
    /// Key of the entries, for error messages.
    pub(super) list: &'static str,
    pub(super) entries: &'a [Entry],
    pub(super) disks: &'a [Disk],
    /// Number of documents in the file.
    pub(super) documents: usize,
}

/// Entries of one job: its workers.
struct Job<'a> {
    name: &'a str,
    group: u64,
    workers: Vec<&'a Entry>,
}

/// Last version in which `io_bytes` is in KiB.
const KIB_UNTIL: (u32, u32) = (2, 20);

/// I/O engines that block until an operation is complete. fio uses psync by default.
const SYNCHRONOUS: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "null"];

/// Measurements of all jobs of a document, in its order.
pub(super) fn measurements(source: &Source<'_>) -> Result<Vec<Measurement>, ImportError> {
    let unit = io_unit(source)?;
    let named = source.entries.iter().map(|entry| {
        let name = (entry.jobname.as_str(), entry.groupid.to_bits());
        (name, entry)
    });
    let jobs = grouped(named);
    let job = |((name, group), workers)| Job { name, group, workers };
    let jobs: Vec<Job<'_>> = jobs.into_iter().map(job).collect();
    let measurement = |job: &Job<'_>| {
        let others = jobs.iter().filter(|other| other.group == job.group && other.name != job.name);
        let others: Vec<String> = others.map(|other| other.name.to_owned()).collect();
        self::measurement(source, job, others, unit, jobs.len() == 1)
    };
    Ok(jobs.iter().map(measurement).collect())
}

/// Bytes per unit of `io_bytes`, by the version, and checked against rate and run time.
fn io_unit(source: &Source<'_>) -> Result<f64, ImportError> {
    let mut unit = match version(source.version) {
        Some(own) if own <= KIB_UNTIL => Some(1024.0),
        Some(_) => Some(1.0),
        None => None,
    };
    let entries = source.entries.iter().enumerate().filter(|(_, entry)| entry.error == 0.0);
    for (index, entry) in entries {
        for (direction, side) in sides(entry) {
            // Numbers of short or slow jobs are rounded too coarsely.
            if side.runtime < 100.0 || side.bw < 100.0 {
                continue;
            }
            let expected = side.bw * 1024.0 * side.runtime / 1e3;
            let near = |unit: f64| (0.5..=2.0).contains(&(side.io_bytes * unit / expected));
            match unit {
                Some(unit) if near(unit) => {}
                None if near(1.0) => unit = Some(1.0),
                None if near(1024.0) => unit = Some(1024.0),
                _ => {
                    let what = format!(
                        "io_bytes is {}, but bw {} KiB/s in runtime {} ms is {expected:.0} bytes; \
                         export the results again",
                        side.io_bytes, side.bw, side.runtime
                    );
                    let place = format!("`{}[{index}].{direction}`", source.list);
                    return Err(ImportError::Contradiction { place, what });
                }
            }
        }
    }
    Ok(unit.unwrap_or(1.0))
}

/// Directions in which an entry has completed operations.
fn sides(entry: &Entry) -> impl Iterator<Item = (&'static str, &Side)> {
    let all = [
        ("read", &entry.read),
        ("write", &entry.write),
        ("trim", &entry.trim),
        ("mixed", &entry.mixed),
    ];
    let done = |(name, side): (&'static str, &'_ Side)| {
        (side.total_ios > 0.0 || side.io_bytes > 0.0).then_some(name)
    };
    all.into_iter().filter_map(move |(name, side)| {
        let side = side.as_ref()?;
        done((name, side)).map(|name| (name, side))
    })
}

fn measurement(
    source: &Source<'_>,
    job: &Job<'_>,
    others: Vec<String>,
    unit: f64,
    alone: bool,
) -> Measurement {
    let own = job.workers.iter().map(|entry| &entry.options).find(|own| !own.is_empty());
    let none = Options::new();
    let mut parameters = options::parameters(source.global, own.unwrap_or(&none));
    parameters.insert("job".into(), Value::Word(job.name.into()));
    if !others.is_empty() {
        parameters.insert("concurrent_jobs".into(), Value::Words(others));
    }
    let synchronous = is_synchronous(&parameters, source.global.is_empty() && own.is_none());
    let longest = job.workers.iter().map(|entry| runtime(entry)).fold(0.0, f64::max);
    let mut measurement = Measurement {
        started_unix: start(source, job, longest),
        elapsed: Nanos(times::whole(longest * 1e6)),
        ..Measurement::new(SUITE, program(source.version), job.name.into(), parameters)
    };
    measurement.fact("fio.version", source.version);
    measurement.fact("fio.job", job.name);
    for (name, count) in [("documents", source.documents), ("entries", job.workers.len())] {
        if count > 1 {
            measurement.fact(&format!("fio.{name}"), &count.to_string());
        }
    }
    if version(source.version).is_none() && !source.version.starts_with(OF_FSLAB) {
        measurement.not_available(None, "version of fio", "the file has another version string");
    }
    if let Some(entry) = job.workers.iter().find(|entry| entry.error != 0.0) {
        let reason = format!("fio reported error {} for job {}", entry.error, job.name);
        measurement.outcome = Outcome::Failed { reason };
        return measurement;
    }
    for (place, direction) in ["read", "write", "trim", "mixed"].into_iter().enumerate() {
        let own = job.workers.iter().flat_map(|entry| sides(entry));
        let own: Vec<&Side> =
            own.filter(|(name, _)| *name == direction).map(|(_, side)| side).collect();
        if !own.is_empty() {
            let primary = primary(&measurement.parameters);
            measurement.phases.push((place, phase(direction, "I/O", primary)));
            add_rates(&mut measurement, direction, &own, unit);
            add_latencies(&mut measurement, direction, &own, synchronous);
            add_cpu(&mut measurement, direction, job, &own);
        }
    }
    if measurement.phases.is_empty() {
        let reason = format!("job {} completed no operation", job.name);
        measurement.outcome = Outcome::Failed { reason };
        return measurement;
    }
    let named: Vec<String> = measurement.phases.iter().map(|(_, own)| own.name.clone()).collect();
    // Sync calls belong to the writes.
    let writes = named.iter().find(|name| *name == "write").unwrap_or(&named[0]).clone();
    add_sync(&mut measurement, &writes, job);
    if let (true, [disk]) = (alone, source.disks) {
        named.iter().for_each(|name| add_disk(&mut measurement, name, disk));
    }
    measurement
}

/// True if completion latency is the latency of an operation: fio measured no submission.
fn is_synchronous(parameters: &BTreeMap<String, Value>, unknown: bool) -> bool {
    let text = |name: &str| parameters.get(name).map(Value::to_string);
    let engine = text("io_engine").unwrap_or_else(|| "psync".into());
    let reduced = ["disable_slat", "disable_lat", "gtod_reduce"].iter();
    let reduced = reduced.filter_map(|name| text(name)).any(|value| value != "0");
    !unknown && !reduced && SYNCHRONOUS.contains(&engine.as_str())
}

/// Primary metric: operations per second for random I/O, otherwise bytes per second.
fn primary(parameters: &BTreeMap<String, Value>) -> Metric {
    let rw = parameters.get("rw").map(Value::to_string).unwrap_or_default();
    if rw.starts_with("rand") { Metric::OpsRate } else { Metric::Throughput }
}

/// Run time in milliseconds.
fn runtime(entry: &Entry) -> f64 {
    let of_sides = sides(entry).map(|(_, side)| side.runtime).fold(0.0, f64::max);
    entry.job_runtime.unwrap_or(of_sides).max(0.0)
}

/// Start of a job: recorded since fio 3.36, otherwise estimated by the time of the output.
fn start(source: &Source<'_>, job: &Job<'_>, longest_ms: f64) -> Option<Nanos> {
    let recorded = job.workers.iter().filter_map(|entry| entry.job_start);
    let recorded = recorded.filter(|start| *start > 0.0).fold(f64::INFINITY, f64::min);
    let start_ms = match recorded.is_finite() {
        true => recorded,
        false => source.timestamp? * 1e3 - longest_ms,
    };
    (start_ms > 0.0).then(|| Nanos(times::whole(start_ms * 1e6)))
}

fn add_rates(measurement: &mut Measurement, phase: &str, sides: &[&Side], unit: f64) {
    let sum = |of: &dyn Fn(&Side) -> f64| sides.iter().map(|side| of(side)).sum::<f64>();
    let longest = sides.iter().map(|side| side.runtime).fold(0.0, f64::max);
    if longest < 1.0 {
        return measurement.not_available(
            Some(phase),
            "rate of a job shorter than 1 ms",
            "fio measures the run time in milliseconds",
        );
    }
    let by_time = |amount: f64| amount * 1e3 / longest;
    let bytes = sum(&|side| side.io_bytes * unit);
    match sides {
        [side] => {
            let rate = side.bw_bytes.filter(|rate| *rate > 0.0);
            measurement.sample(phase, Metric::Throughput, rate.unwrap_or(by_time(bytes)));
            measurement.sample(phase, Metric::OpsRate, side.iops);
        }
        _ => {
            measurement.sample(phase, Metric::Throughput, by_time(bytes));
            measurement.sample(phase, Metric::OpsRate, by_time(sum(&|side| side.total_ios)));
            let rate = |side: &Side| side.bw_bytes.unwrap_or(side.bw * 1024.0);
            measurement.sample(phase, Metric::ThroughputWorkerSum, sum(&rate));
        }
    }
}

fn add_latencies(measurement: &mut Measurement, phase: &str, sides: &[&Side], synchronous: bool) {
    let of = |kind: Kind| times::Merged::new(sides, kind);
    let (all, completion, submission) =
        (of(Kind::Latency), of(Kind::Completion), of(Kind::Submission));
    let synchronous = synchronous && submission.max().is_none_or(|max| max == 0.0);
    let both = [(Metric::LatencyMean, all.mean()), (Metric::LatencyMax, all.max())];
    measurement.samples(phase, both);
    let latency = [
        (Metric::LatencyP50, 50.0),
        (Metric::LatencyP90, 90.0),
        (Metric::LatencyP99, 99.0),
        (Metric::LatencyP999, 99.9),
        (Metric::LatencyP9999, 99.99),
    ];
    let completed = [
        (Metric::CompletionLatencyP50, 50.0),
        (Metric::CompletionLatencyP99, 99.0),
        (Metric::CompletionLatencyP999, 99.9),
    ];
    let submitted = [(Metric::SubmissionLatencyP50, 50.0), (Metric::SubmissionLatencyP99, 99.0)];
    let all = if synchronous && !all.has_percentiles() { &completion } else { &all };
    all.add(measurement, phase, HistogramKind::All, &latency);
    if !synchronous {
        completion.add(measurement, phase, HistogramKind::Completion, &completed);
        submission.add(measurement, phase, HistogramKind::Submission, &submitted);
    }
    if sides.len() > 1 && !all.has_percentiles() && !completion.has_percentiles() {
        measurement.not_available(
            Some(phase),
            "latency percentiles of several workers",
            "each worker has its own; use group_reporting or --output-format=json+",
        );
    }
}

fn add_cpu(measurement: &mut Measurement, phase: &str, job: &Job<'_>, sides: &[&Side]) {
    let sum = |of: &dyn Fn(&Entry) -> Option<f64>| -> Option<f64> {
        job.workers.iter().map(|entry| of(entry)).sum()
    };
    let workers = job.workers.len() as f64;
    let share = |percent: Option<f64>| Some(percent? / 100.0 / workers);
    let operations: f64 = job.workers.iter().flat_map(|entry| sides_of(entry)).sum();
    let switches = sum(&|entry| entry.ctx).filter(|_| operations > 0.0 && !sides.is_empty());
    measurement.samples(
        phase,
        [
            (Metric::UserCpuUtilization, share(sum(&|entry| entry.usr_cpu))),
            (Metric::SystemCpuUtilization, share(sum(&|entry| entry.sys_cpu))),
            (Metric::ContextSwitchesPerOp, switches.map(|all| all / operations)),
            (Metric::MajorFaults, sum(&|entry| entry.majf)),
            (Metric::MinorFaults, sum(&|entry| entry.minf)),
        ],
    );
}

/// Numbers of completed operations of an entry, by direction.
fn sides_of(entry: &Entry) -> impl Iterator<Item = f64> {
    sides(entry).map(|(_, side)| side.total_ios)
}

fn add_sync(measurement: &mut Measurement, phase: &str, job: &Job<'_>) {
    let all: Vec<_> = job.workers.iter().filter_map(|entry| entry.sync.as_ref()).collect();
    let calls: f64 = all.iter().map(|sync| sync.total_ios).sum();
    if calls < 1.0 {
        return;
    }
    measurement.sample(phase, Metric::SyncCalls, calls);
    let times = times::Merged::of_sync(&all);
    let percentiles = [
        (Metric::SyncLatencyP50, 50.0),
        (Metric::SyncLatencyP99, 99.0),
        (Metric::SyncLatencyP999, 99.9),
    ];
    if let Some(max) = times.max().filter(|max| *max > 0.0) {
        measurement.sample(phase, Metric::SyncLatencyMax, max);
    }
    times.add(measurement, phase, HistogramKind::Sync, &percentiles);
}

/// Statistics of the only disk of the only job. fio counts all I/O of the disk.
fn add_disk(measurement: &mut Measurement, phase: &str, disk: &Disk) {
    measurement.fact("fio.disk", &disk.name);
    let figures = [
        (Metric::DeviceReadRequests, disk.read_ios),
        (Metric::DeviceWriteRequests, disk.write_ios),
        (Metric::DeviceBytesRead, disk.read_sectors.map(|sectors| sectors * 512.0)),
        (Metric::DeviceBytesWritten, disk.write_sectors.map(|sectors| sectors * 512.0)),
        (Metric::DeviceUtilization, disk.util.map(|percent| percent / 100.0)),
    ];
    measurement.samples(phase, figures);
}
