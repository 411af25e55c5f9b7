//! Entry of a job.

use model::{
    Histogram, Metric, Value,
    phase::Role,
    record::{HistogramKind, PhaseHistogram},
};

use super::{Job, layout::Node, name};
use crate::samples::value;

/// Percentiles of fio by default, in percent.
pub(super) const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// I/O engines with a counterpart: name in fslab, name in fio, and true if synchronous.
const ENGINES: [(&str, &str, bool); 6] = [
    ("pread", "psync", true),
    ("read", "sync", true),
    ("preadv2", "pvsync2", true),
    ("mmap", "mmap", true),
    ("null", "null", true),
    ("io_uring", "io_uring", false),
];

/// Rates of one direction: bytes and operations per second, and the time that they include in
/// nanoseconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Rates {
    pub(super) bytes: f64,
    pub(super) operations: f64,
    pub(super) time: f64,
}

impl Rates {
    pub(super) fn is_used(self) -> bool {
        self.operations > 0.0
    }

    /// Total bytes and operations.
    pub(super) fn totals(self) -> (u64, u64) {
        let seconds = self.time / 1e9;
        (whole(self.bytes * seconds), whole(self.operations * seconds))
    }
}

/// Entry of JSON.
pub(super) fn entry(job: &Job<'_>, bins: bool) -> Node {
    debug_assert_eq!(job.phase.role, Role::Measure);
    let sample = |metric| value(job.trial, &job.phase.name, metric);
    let [read, write] = rates(job);
    let longest = milliseconds(read.time.max(write.time));
    let percent = |metric| Node::Float(sample(metric).unwrap_or_default() * 100.0);
    let count = |metric| Node::Int(whole(sample(metric).unwrap_or_default()));
    let switches = [Metric::VoluntaryContextSwitches, Metric::InvoluntaryContextSwitches];
    let switches = switches.iter().filter_map(|metric| sample(*metric)).sum();
    Node::object([
        ("jobname", Node::Text(name(job))),
        ("groupid", Node::Int(job.group.try_into().unwrap_or(u64::MAX))),
        ("job_start", Node::Int(job.trial.started_unix.0 / 1_000_000)),
        ("error", Node::Int(0)),
        ("eta", Node::Int(0)),
        ("elapsed", Node::Int(longest.div_ceil(1000))),
        ("job options", options(job)),
        ("read", side(job, read, HistogramKind::Read, bins)),
        ("write", side(job, write, HistogramKind::Write, bins)),
        ("trim", side(job, Rates::default(), HistogramKind::Write, bins)),
        ("sync", sync(job, bins)),
        ("job_runtime", Node::Int(longest)),
        ("usr_cpu", percent(Metric::UserCpuUtilization)),
        ("sys_cpu", percent(Metric::SystemCpuUtilization)),
        ("ctx", Node::Int(whole(switches))),
        ("majf", count(Metric::MajorFaults)),
        ("minf", count(Metric::MinorFaults)),
    ])
}

/// Rates of the reads and of the writes. Their time is that of the counted operations at the rate:
/// the loop times of several workers differ from it by the skew of their starts.
pub(super) fn rates(job: &Job<'_>) -> [Rates; 2] {
    let kinds = [HistogramKind::Read, HistogramKind::Write];
    let mut rates = measured_rates(job);
    for (own, kind) in rates.iter_mut().zip(kinds) {
        let [.., latency] = latencies(job, *own, kind);
        if let Some(latency) = latency {
            own.time = latency.count() as f64 / own.operations * 1e9;
        }
    }
    rates
}

/// Rates as they were measured. The time of writes includes the final sync, as in fio, if the
/// repetition has a durable throughput.
fn measured_rates(job: &Job<'_>) -> [Rates; 2] {
    let sample = |metric| value(job.trial, &job.phase.name, metric);
    let known = |metric| sample(metric).unwrap_or_default();
    let bytes = known(Metric::Throughput);
    let operations = known(Metric::OpsRate);
    let time = sample(Metric::LoopTime).unwrap_or_else(|| known(Metric::Elapsed));
    let direction = match &job.section {
        Some(section) => Some(section.direction().to_owned()),
        None => job.cell.cell.workload.parameters.get("direction").map(Value::to_string),
    };
    match direction.as_deref() {
        Some("write") => {
            let durable = sample(Metric::DurableThroughput).filter(|own| *own > 0.0 && bytes > 0.0);
            let ratio = durable.map_or(1.0, |durable| durable / bytes);
            let write =
                Rates { bytes: bytes * ratio, operations: operations * ratio, time: time / ratio };
            [Rates::default(), write]
        }
        Some("mixed" | "separate") => {
            let part = |bytes, operations| Rates {
                bytes: known(bytes),
                operations: known(operations),
                time,
            };
            [
                part(Metric::ReadThroughput, Metric::ReadOpsRate),
                part(Metric::WriteThroughput, Metric::WriteOpsRate),
            ]
        }
        _ => [Rates { bytes, operations, time }, Rates::default()],
    }
}

/// Results of one direction.
fn side(job: &Job<'_>, rates: Rates, kind: HistogramKind, bins: bool) -> Node {
    let is_used = rates.is_used();
    let [submission, completion, latency] = latencies(job, rates, kind);
    let (bytes, operations) = rates.totals();
    Node::object([
        ("io_bytes", Node::Int(bytes)),
        ("io_kbytes", Node::Int(bytes / 1024)),
        ("bw_bytes", Node::Int(whole(rates.bytes))),
        ("bw", Node::Int(whole(rates.bytes) / 1024)),
        ("iops", Node::Float(rates.operations)),
        ("runtime", Node::Int(if is_used { milliseconds(rates.time) } else { 0 })),
        ("total_ios", Node::Int(operations)),
        ("short_ios", Node::Int(0)),
        ("drop_ios", Node::Int(0)),
        ("slat_ns", times(submission, false, bins)),
        ("clat_ns", times(completion, true, bins)),
        ("lat_ns", times(latency, false, bins)),
    ])
}

/// Histograms of submissions, completions, and whole operations of one direction. A mixed section
/// has submissions and completions of both directions together. Those of one direction are unknown:
/// as for a synchronous engine, there are no submissions, and completions are whole operations.
pub(super) fn latencies<'a>(
    job: &Job<'a>,
    rates: Rates,
    kind: HistogramKind,
) -> [Option<&'a Histogram>; 3] {
    let histogram = |kind| if rates.is_used() { histogram(job, kind) } else { None };
    let served = if kind == HistogramKind::Write {
        HistogramKind::ServiceTimeOfWrites
    } else {
        HistogramKind::ServiceTimeOfReads
    };
    // Workloads of one direction have one histogram for all operations.
    let latency = histogram(served)
        .or_else(|| histogram(HistogramKind::ServiceTime))
        .or_else(|| histogram(kind))
        .or_else(|| histogram(HistogramKind::All));
    let both = [HistogramKind::Read, HistogramKind::Write];
    let mixed = both.iter().all(|kind| histogram(*kind).is_some());
    match (histogram(HistogramKind::Submission), histogram(HistogramKind::Completion)) {
        (submission, Some(completion)) if !mixed => [submission, Some(completion), latency],
        (_, Some(_) | None) => [None, latency, latency],
    }
}

fn sync(job: &Job<'_>, bins: bool) -> Node {
    let histogram = histogram(job, HistogramKind::Sync);
    let count = histogram.map_or(0, Histogram::count);
    Node::object([("total_ios", Node::Int(count)), ("lat_ns", times(histogram, true, bins))])
}

fn histogram<'a>(job: &Job<'a>, kind: HistogramKind) -> Option<&'a Histogram> {
    let own = |own: &&PhaseHistogram| own.phase == job.phase.name && own.kind == kind;
    let found = job.trial.histograms.iter().find(own).map(|own| &own.histogram);
    found.filter(|histogram| histogram.count() > 0)
}

/// Distribution of a latency; zeros without values.
fn times(histogram: Option<&Histogram>, percentiles: bool, bins: bool) -> Node {
    let limit = |time: fn(&Histogram) -> Option<model::Nanos>| {
        histogram.and_then(time).map_or(0, |time| time.0)
    };
    let mean = histogram.and_then(Histogram::mean).map_or(0.0, |mean| mean.seconds() * 1e9);
    let mut entries = vec![
        ("min".to_owned(), Node::Int(limit(Histogram::min))),
        ("max".to_owned(), Node::Int(limit(Histogram::max))),
        ("mean".to_owned(), Node::Float(mean)),
        ("stddev".to_owned(), Node::Float(histogram.map_or(0.0, |own| deviation(own, mean)))),
        ("N".to_owned(), Node::Int(histogram.map_or(0, Histogram::count))),
    ];
    if let (Some(histogram), true) = (histogram, percentiles) {
        let value = |percent: f64| {
            let time = histogram.quantile(percent / 100.0).map_or(0, |time| time.0);
            (format!("{percent:.6}"), Node::Int(time))
        };
        entries.push(("percentile".into(), Node::Object(PERCENTILES.map(value).into())));
    }
    if let (Some(histogram), true) = (histogram, bins) {
        let bins = histogram.buckets();
        let bins = bins.map(|(lowest, count)| (lowest.0.to_string(), Node::Int(count)));
        entries.push(("bins".into(), Node::Object(bins.collect())));
    }
    Node::Object(entries)
}

/// Standard deviation from the counters of a histogram.
pub(super) fn deviation(histogram: &Histogram, mean: f64) -> f64 {
    let squares = histogram.buckets().map(|(lowest, count)| {
        let distance = lowest.seconds() * 1e9 - mean;
        distance * distance * count as f64
    });
    (squares.sum::<f64>() / histogram.count().max(1) as f64).sqrt()
}

/// Options of the job that have a counterpart in fio.
fn options(job: &Job<'_>) -> Node {
    if let Some(section) = &job.section {
        let text = |(name, value): &(String, String)| (name.clone(), Node::Text(value.clone()));
        return Node::Object(section.options.iter().map(text).collect());
    }
    let parameters = &job.cell.cell.workload.parameters;
    let text = |name: &str| parameters.get(name).map(Value::to_string).unwrap_or_default();
    let is_set = |name: &str| text(name) == "true";
    let size = |name: &str| match parameters.get(name) {
        Some(Value::Size(size)) => size.0.to_string(),
        _ => String::new(),
    };
    let seconds = |name: &str| match parameters.get(name) {
        Some(Value::Time(time)) if time.0 > 0 => format!("{}ms", time.0.div_ceil(1_000_000)),
        _ => String::new(),
    };
    let pattern = text("access_pattern");
    let random = ["random", "permutation", "zipf", "pareto"].contains(&pattern.as_str());
    let sequential = pattern == "sequential";
    let rw = match (random, sequential, text("direction").as_str()) {
        (true, _, "read") => "randread",
        (true, _, "write") => "randwrite",
        (true, _, "mixed") => "randrw",
        (_, true, "read") => "read",
        (_, true, "write") => "write",
        (_, true, "mixed") => "rw",
        _ => "",
    };
    let flag = |set: bool| if set { "1".to_owned() } else { String::new() };
    let engine = text("io_engine");
    let engine = ENGINES.iter().find(|(own, ..)| *own == engine);
    let is_asynchronous = engine.is_some_and(|(_, _, synchronous)| !synchronous);
    let distribution = match pattern.as_str() {
        "zipf" => format!("zipf:{}", text("zipf_theta")),
        "pareto" => format!("pareto:{}", text("pareto_h")),
        _ => String::new(),
    };
    let mix = match parameters.get("read_fraction") {
        Some(Value::Fraction(share)) if rw.ends_with("rw") => whole(share * 100.0).to_string(),
        _ => String::new(),
    };
    let workers = Some(text("workers")).filter(|workers| workers != "1").unwrap_or_default();
    let depth = if is_asynchronous { text("queue_depth") } else { String::new() };
    let options = [
        ("rw", rw.to_owned()),
        ("ioengine", engine.map_or_else(String::new, |(_, name, _)| (*name).to_owned())),
        ("bs", size("block_size")),
        ("size", size("file_size")),
        ("iodepth", depth),
        ("direct", flag(is_set("direct"))),
        ("numjobs", workers),
        ("rwmixread", mix),
        ("norandommap", flag(pattern == "random")),
        ("random_distribution", distribution),
        ("runtime", seconds("runtime")),
        ("time_based", flag(!seconds("runtime").is_empty())),
        ("ramp_time", seconds("ramp_time")),
        ("end_fsync", flag(rw.ends_with("write") && text("end_fsync") != "none")),
    ];
    let set = options.into_iter().filter(|(_, value)| !value.is_empty());
    Node::Object(set.map(|(name, value)| (name.to_owned(), Node::Text(value))).collect())
}

/// Milliseconds, at least 1.
pub(super) fn milliseconds(nanos: f64) -> u64 {
    whole(nanos / 1e6).max(1)
}

/// Nearest integer; 0 for negative numbers.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}
