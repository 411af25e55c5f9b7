//! Counterpart metrics and anchors.

use model::Metric;

/// The other one of accepted and durable throughput.
pub(super) fn counterpart(metric: Metric) -> Option<Metric> {
    let pair = [Metric::Throughput, Metric::DurableThroughput];
    let at = pair.iter().position(|one| *one == metric)?;
    Some(pair[1 - at])
}

/// Text as part of an anchor: lower-case letters, digits, and dashes only.
pub(crate) fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(plain).collect()
}
