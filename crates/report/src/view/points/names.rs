//! Names of phases and metrics as a record holds them, and as anchors have them.

use model::Metric;

/// The other of the two throughputs of a write.
pub(super) fn counterpart(metric: Metric) -> Option<Metric> {
    let pair = [Metric::Throughput, Metric::DurableThroughput];
    let at = pair.iter().position(|one| *one == metric)?;
    Some(pair[1 - at])
}

/// The name of a phase as the record holds it, which lives as long as the record does.
pub(super) fn phase_of<'a>(record: &'a model::record::CellRecord, name: &str) -> &'a str {
    record.phases.iter().find(|phase| phase.name == name).map_or("", |phase| &phase.name)
}

/// Letters, digits and dashes only.
pub(crate) fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(plain).collect()
}
