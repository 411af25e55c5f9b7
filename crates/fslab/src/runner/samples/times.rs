//! Latencies of operations and of their parts.

use model::{
    Histogram, Metric, PhaseResult,
    phase::WorkerResult,
    record::{HistogramKind, PhaseHistogram},
};

use super::{PhaseSamples, float, mixed, nanos};

/// Minimum number of values above a percentile (`docs/method/statistics.md`).
const BEYOND: f64 = 10.0;

/// Tolerance for the rounding of `1 - q`, so that exactly the required number of values is
/// sufficient.
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
const SERVICE: [(Metric, f64); 3] = [
    (Metric::ServiceTimeP50, 0.5),
    (Metric::ServiceTimeP99, 0.99),
    (Metric::ServiceTimeP999, 0.999),
];
const SUBMIT: [(Metric, f64); 2] =
    [(Metric::SubmissionLatencyP50, 0.5), (Metric::SubmissionLatencyP99, 0.99)];
const COMPLETE: [(Metric, f64); 2] =
    [(Metric::CompletionLatencyP50, 0.5), (Metric::CompletionLatencyP99, 0.99)];
const FLUSH: [(Metric, f64); 3] = [
    (Metric::SyncLatencyP50, 0.5),
    (Metric::SyncLatencyP99, 0.99),
    (Metric::SyncLatencyP999, 0.999),
];

pub(super) fn add(named: &mut PhaseSamples<'_>, result: &PhaseResult) {
    let latencies = result.latencies();
    let operations = latencies.operations();
    percentiles(named, &operations, &OPERATIONS);
    if let (Some(mean), Some(max)) = (operations.mean(), operations.max()) {
        named.add(Metric::LatencyMean, nanos(mean));
        named.add(Metric::LatencyMax, nanos(max));
    }
    if mixed(result, |moved| moved.ops.0)
        && latencies.by_kind.is_empty()
        && latencies.by_call.is_empty()
    {
        percentiles(named, &latencies.read, &READS);
        percentiles(named, &latencies.write, &WRITES);
    }
    percentiles(named, &latencies.service, &SERVICE);
    percentiles(named, &latencies.submit, &SUBMIT);
    percentiles(named, &latencies.complete, &COMPLETE);
    if let Some(max) = latencies.flush.max() {
        named.add(Metric::SyncCalls, float(latencies.flush.count()));
        percentiles(named, &latencies.flush, &FLUSH);
        named.add(Metric::SyncLatencyMax, nanos(max));
    }
    let longest = |time: fn(&WorkerResult) -> model::Nanos| {
        nanos(result.workers.iter().map(time).max().unwrap_or_default())
    };
    named.add(Metric::LoopTime, longest(|worker| worker.loop_time));
    named.add(Metric::EndSyncTime, longest(|worker| worker.end_sync_time));
    named.add(Metric::CloseTime, longest(|worker| worker.close_time));
}

fn percentiles(named: &mut PhaseSamples<'_>, times: &Histogram, wanted: &[(Metric, f64)]) {
    let enough = |quantile: f64| float(times.count()) * (1.0 - quantile) >= BEYOND - ROUNDING;
    for (metric, quantile) in wanted {
        if let (true, Some(value)) = (enough(*quantile), times.quantile(*quantile)) {
            named.add(*metric, nanos(value));
        }
    }
}

/// All nonempty histograms of a measured phase.
pub(in crate::runner) fn histograms(phase: &str, result: &PhaseResult) -> Vec<PhaseHistogram> {
    let latencies = result.latencies();
    let all = latencies.operations();
    let apart = latencies.each();
    let every = HistogramKind::ALL
        .into_iter()
        .zip(std::iter::once(&all).chain(apart.iter().map(|(_, histogram)| *histogram)));
    let kinds = latencies.by_kind.iter().map(|(op, histogram)| (HistogramKind::Op(*op), histogram));
    let calls = latencies.by_call.iter();
    let calls = calls.map(|(call, histogram)| (HistogramKind::Call(*call), histogram));
    let kinds = kinds.chain(calls);
    // A replay has a histogram for each type of operation instead of those for reads and writes.
    let halves = |kind: &HistogramKind| matches!(kind, HistogramKind::Read | HistogramKind::Write);
    let whole = latencies.by_kind.is_empty() && latencies.by_call.is_empty();
    let every = every.filter(|(kind, _)| whole || !halves(kind));
    let filled = every.chain(kinds).filter(|(_, histogram)| histogram.count() > 0);
    filled
        .map(|(kind, histogram)| PhaseHistogram {
            phase: phase.to_owned(),
            kind,
            histogram: histogram.clone(),
        })
        .collect()
}
