//! Counterpart metrics.

use model::Metric;

/// Durable throughput for accepted throughput and vice versa; `None` for other metrics.
pub(super) fn counterpart(metric: Metric) -> Option<Metric> {
    let pair = [Metric::Throughput, Metric::DurableThroughput];
    let at = pair.iter().position(|one| *one == metric)?;
    Some(pair[1 - at])
}
