//! Warnings about written data: not durable, compressible, unwritten, or reduced.

use model::{
    Bytes, Phase, PhaseResult, Ratio, Warning,
    phase::{AccessPattern, DataPattern, Stream, TreeStep, Work},
};

use crate::runner::samples::{
    PhaseContext, float,
    moved::{durable, flushed, written_ratio, written_to_target},
    thresholds::{DIRTY, LEAST_SHRUNK, SHRUNK},
    whole,
};

pub(super) fn of(
    warnings: &mut Vec<Warning>,
    phase: &Phase,
    result: &PhaseResult,
    known: &PhaseContext,
) {
    match &phase.work {
        Work::Stream(stream) => {
            let writes = (0..stream.workers.count).any(|w| stream.direction.writes(w));
            if writes && !durable(stream) {
                warnings.push(Warning::NotDurable);
            }
            if writes && compressible(stream.data) {
                warnings.push(Warning::CompressibleData);
            }
        }
        Work::Tree(tree) if compressible(tree.set.data) && !tree.set.sizes.are_empty() => {
            warnings.push(Warning::CompressibleData);
        }
        // A replay writes only zeros.
        Work::Replay(_) => warnings.push(Warning::CompressibleData),
        Work::Sqlite(sqlite) if sqlite.updates > 0 && !sqlite.commits() => {
            warnings.push(Warning::NotDurable);
        }
        Work::Tree(_)
        | Work::Mix(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Command(_)
        | Work::Sqlite(_)
        | Work::Mail(_)
        | Work::Trace(_)
        | Work::Maintenance(_)
        | Work::Coherence(_)
        | Work::Remove { .. } => {}
    }
    let Some(written) = written_to_target(phase, result) else { return };
    if in_memory(phase, result)
        && let Some(left) = still_dirty(known)
        && float(left.0) > DIRTY * written
    {
        let written = Bytes(whole(written));
        warnings.push(Warning::UnwrittenData { left: left.min(written), written });
    }
    // I/O by other processes can only increase the ratio.
    let amplification = written_ratio(phase, result, &known.activity).map(Ratio);
    if let Some(amplification) = amplification
        && amplification < SHRUNK
        && written >= LEAST_SHRUNK
        && !overwrites(phase)
    {
        warnings.push(Warning::ReducedWrites { amplification });
    }
}

pub(super) fn compressible(data: DataPattern) -> bool {
    match data {
        DataPattern::Random { incompressible_fraction, duplicate_fraction } => {
            incompressible_fraction < 0.9 || duplicate_fraction > 0.1
        }
        DataPattern::PagePattern | DataPattern::Marks => true,
    }
}

/// Reports whether written data may be only in memory at the end of the phase.
fn in_memory(phase: &Phase, result: &PhaseResult) -> bool {
    match &phase.work {
        Work::Stream(stream) => !durable(stream) && !stream.open.direct,
        Work::Tree(tree) => !tree.end.sync && !tree.steps.contains(&TreeStep::Fsync),
        Work::Replay(replay) => !replay.durability.files && !replay.durability.writes,
        Work::Mix(_) => true,
        Work::Task(_) | Work::Command(_) => !flushed(result),
        // Data written after the last recorded sync may still be in memory.
        Work::Trace(_) => true,
        Work::Sqlite(sqlite) => !sqlite.commits(),
        Work::Layout(_)
        | Work::Mail(_)
        | Work::Maintenance(_)
        | Work::Coherence(_)
        | Work::Remove { .. } => false,
    }
}

/// Growth of dirty memory and memory in writeback from the start to the end of the phase; `None` if
/// not recorded.
fn still_dirty(known: &PhaseContext) -> Option<Bytes> {
    let grown = |values: &[u64]| Some(values.last()?.saturating_sub(*values.first()?));
    let gauges = &known.activity.gauges;
    let dirty = grown(&gauges.dirty)?;
    Some(Bytes(dirty + grown(&gauges.writeback).unwrap_or(0)))
}

/// Reports whether a phase overwrites bytes before they are synced. The devices may then write
/// fewer bytes than the phase.
fn overwrites(phase: &Phase) -> bool {
    // Replays overwrite and remove the same files repeatedly.
    let stream = match &phase.work {
        Work::Replay(_) => return true,
        Work::Stream(stream) => stream,
        // A journal is written in addition to the rows, and pages are overwritten.
        Work::Sqlite(_) | Work::Trace(_) | Work::Maintenance(_) => return true,
        Work::Tree(_)
        | Work::Mix(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Command(_)
        | Work::Mail(_)
        | Work::Coherence(_)
        | Work::Remove { .. } => return false,
    };
    let Stream { open, access_pattern, .. } = stream;
    let through = open.direct || open.sync || open.dsync;
    let again = matches!(
        access_pattern,
        AccessPattern::SameBlock | AccessPattern::Stride { .. } | AccessPattern::Trace
    );
    !through && (again || !stream.writes_once())
}
