//! Names of phases and metrics as a record holds them, and as anchors have them.

use model::Metric;

/// The other of the two throughputs of a write.
pub(super) fn counterpart(metric: Metric) -> Option<Metric> {
    let pair = [Metric::Throughput, Metric::DurableThroughput];
    let at = pair.iter().position(|one| *one == metric)?;
    Some(pair[1 - at])
}

/// Letters, digits and dashes only.
pub(crate) fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(plain).collect()
}
