//! Times of operations and of the segments around them.

use model::{
    Histogram, Metric, PhaseResult,
    phase::WorkerResult,
    record::{Times, TimesOf},
};

use super::{Named, float, mixed, nanos};

/// A percentile needs this many values beyond it (`docs/method/statistics.md`).
const BEYOND: f64 = 10.0;

/// Rounding of `1 - q` must not hide a percentile that has exactly as many values as it needs.
const ROUNDING: f64 = 1e-6;

const OPERATIONS: [(Metric, f64); 5] = [
    (Metric::LatencyP50, 0.5),
    (Metric::LatencyP90, 0.9),
    (Metric::LatencyP99, 0.99),
    (Metric::LatencyP999, 0.999),
    (Metric::LatencyP9999, 0.9999),
];
const READS: [(Metric, f64); 3] = [
    (Metric::ReadLatencyP50, 0.5),
    (Metric::ReadLatencyP99, 0.99),
    (Metric::ReadLatencyP999, 0.999),
];
const WRITES: [(Metric, f64); 3] = [
    (Metric::WriteLatencyP50, 0.5),
    (Metric::WriteLatencyP99, 0.99),
    (Metric::WriteLatencyP999, 0.999),
];
const SERVICE: [(Metric, f64); 3] =
    [(Metric::ServiceP50, 0.5), (Metric::ServiceP99, 0.99), (Metric::ServiceP999, 0.999)];
const SUBMIT: [(Metric, f64); 2] = [(Metric::SubmitP50, 0.5), (Metric::SubmitP99, 0.99)];
const COMPLETE: [(Metric, f64); 2] = [(Metric::CompleteP50, 0.5), (Metric::CompleteP99, 0.99)];
const FLUSH: [(Metric, f64); 3] =
    [(Metric::FlushCallP50, 0.5), (Metric::FlushCallP99, 0.99), (Metric::FlushCallP999, 0.999)];

pub(super) fn add(named: &mut Named<'_>, result: &PhaseResult) {
    let latencies = result.latencies();
    let operations = latencies.operations();
    percentiles(named, &operations, &OPERATIONS);
    if let (Some(mean), Some(max)) = (operations.mean(), operations.max()) {
        named.add(Metric::LatencyMean, nanos(mean));
        named.add(Metric::LatencyMax, nanos(max));
    }
    if mixed(result, |moved| moved.ops.0) && latencies.by_kind.is_empty() {
        percentiles(named, &latencies.read, &READS);
        percentiles(named, &latencies.write, &WRITES);
    }
    percentiles(named, &latencies.service, &SERVICE);
    percentiles(named, &latencies.submit, &SUBMIT);
    percentiles(named, &latencies.complete, &COMPLETE);
    if let Some(max) = latencies.flush.max() {
        named.add(Metric::FlushCalls, float(latencies.flush.count()));
        percentiles(named, &latencies.flush, &FLUSH);
        named.add(Metric::FlushCallMax, nanos(max));
    }
    let longest = |time: fn(&WorkerResult) -> model::Nanos| {
        nanos(result.workers.iter().map(time).max().unwrap_or_default())
    };
    named.add(Metric::LoopTime, longest(|worker| worker.loop_time));
    named.add(Metric::FlushTime, longest(|worker| worker.flush_time));
    named.add(Metric::CloseTime, longest(|worker| worker.close_time));
}

fn percentiles(named: &mut Named<'_>, times: &Histogram, wanted: &[(Metric, f64)]) {
    let enough = |quantile: f64| float(times.count()) * (1.0 - quantile) >= BEYOND - ROUNDING;
    for (metric, quantile) in wanted {
        if let (true, Some(value)) = (enough(*quantile), times.quantile(*quantile)) {
            named.add(*metric, nanos(value));
        }
    }
}

/// All histograms of a measured phase that are worth keeping: those with values.
pub(in crate::conductor) fn histograms(phase: &str, result: &PhaseResult) -> Vec<Times> {
    let latencies = result.latencies();
    let all = latencies.operations();
    let apart = latencies.each();
    let every = TimesOf::ALL
        .into_iter()
        .zip(std::iter::once(&all).chain(apart.iter().map(|(_, histogram)| *histogram)));
    let kinds = latencies.by_kind.iter().map(|(op, histogram)| (TimesOf::Op(*op), histogram));
    // Reads and writes of a replay are told by kind.
    let halves = |of: &TimesOf| matches!(of, TimesOf::Read | TimesOf::Write);
    let whole = latencies.by_kind.is_empty();
    let every = every.filter(|(of, _)| whole || !halves(of));
    let filled = every.chain(kinds).filter(|(_, histogram)| histogram.count() > 0);
    filled
        .map(|(of, histogram)| Times { phase: phase.to_owned(), of, histogram: histogram.clone() })
        .collect()
}
