//! Counterpart metrics.

use model::Metric;

/// The other one of accepted and durable throughput.
pub(super) fn counterpart(metric: Metric) -> Option<Metric> {
    let pair = [Metric::Throughput, Metric::DurableThroughput];
    let at = pair.iter().position(|one| *one == metric)?;
    Some(pair[1 - at])
}
