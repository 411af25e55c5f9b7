//! Counterpart metrics.

use model::Metric;

/// True if a primary metric is the throughput of writes without their final sync. `has` returns
/// true for a metric with values.
pub(super) fn accepted(primary: Metric, has: impl Fn(Metric) -> bool) -> bool {
    let syncs = has(Metric::EndSyncTime) && !has(Metric::ReadThroughput);
    primary == Metric::Throughput && syncs
}

/// Durable throughput for accepted throughput and vice versa; `None` for other metrics.
pub(super) fn counterpart(metric: Metric) -> Option<Metric> {
    let pair = [Metric::Throughput, Metric::DurableThroughput];
    let at = pair.iter().position(|one| *one == metric)?;
    Some(pair[1 - at])
}
