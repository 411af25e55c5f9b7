//! What became of written data.

use model::{
    Bytes, Metric, Phase, PhaseResult, Ratio, Sample, Warning,
    phase::{Access, Fill, Stream, TreeStep, Work},
};

use crate::conductor::name::{
    Known, float,
    moved::{durable, flushed, written_to_target},
    thresholds::{DIRTY, LEAST_SHRUNK, SHRUNK},
    value, whole,
};

pub(super) fn of(
    warnings: &mut Vec<Warning>,
    phase: &Phase,
    result: &PhaseResult,
    known: &Known,
    samples: &[Sample],
) {
    match &phase.work {
        Work::Stream(stream) => {
            let writes = (0..stream.workers.count).any(|w| stream.direction.writes(w));
            if writes && !durable(stream) {
                warnings.push(Warning::Unsynced);
            }
            if writes && compressible(stream.fill) {
                warnings.push(Warning::Compressible);
            }
        }
        Work::Tree(tree) if compressible(tree.set.fill) && !tree.set.sizes.are_empty() => {
            warnings.push(Warning::Compressible);
        }
        // All that a replay writes is zeros.
        Work::Replay(_) => warnings.push(Warning::Compressible),
        Work::Tree(_) | Work::Mix(_) | Work::Layout(_) | Work::Task(_) | Work::Remove { .. } => {}
    }
    let Some(written) = written_to_target(phase, result) else { return };
    if in_memory(phase, result)
        && let Some(left) = still_dirty(known)
        && float(left.0) > DIRTY * written
    {
        let written = Bytes(whole(written));
        warnings.push(Warning::Dirty { left: left.min(written), written });
    }
    let amplification = value(samples, Metric::WriteAmplification).map(Ratio);
    if let Some(amplification) = amplification
        && amplification < SHRUNK
        && written >= LEAST_SHRUNK
        && !overwrites(phase)
    {
        warnings.push(Warning::Shrunk { amplification });
    }
}

pub(super) fn compressible(fill: Fill) -> bool {
    match fill {
        Fill::Random { entropy, duplicates } => entropy < 0.9 || duplicates > 0.1,
        Fill::PagePattern | Fill::Marks => true,
    }
}

/// Whether what was written may be in memory only when the phase ends.
fn in_memory(phase: &Phase, result: &PhaseResult) -> bool {
    match &phase.work {
        Work::Stream(stream) => !durable(stream) && !stream.open.direct,
        Work::Tree(tree) => !tree.end.sync && !tree.steps.contains(&TreeStep::Fsync),
        Work::Replay(replay) => !replay.durability.files && !replay.durability.writes,
        Work::Mix(_) => true,
        Work::Task(_) => !flushed(result),
        Work::Layout(_) | Work::Remove { .. } => false,
    }
}

/// How much more memory waits for being written back, or is being, at the end than at the start;
/// `None` where that was not seen.
fn still_dirty(known: &Known) -> Option<Bytes> {
    let grown = |values: &[u64]| Some(values.last()?.saturating_sub(*values.first()?));
    let gauges = &known.evidence.gauges;
    let dirty = grown(&gauges.dirty)?;
    Some(Bytes(dirty + grown(&gauges.writeback).unwrap_or(0)))
}

/// Whether a phase writes some bytes again before they are flushed, so that the devices have a
/// right to write less.
fn overwrites(phase: &Phase) -> bool {
    // Replays write the same files over and over, and remove them.
    let stream = match &phase.work {
        Work::Replay(_) => return true,
        Work::Stream(stream) => stream,
        Work::Tree(_) | Work::Mix(_) | Work::Layout(_) | Work::Task(_) | Work::Remove { .. } => {
            return false;
        }
    };
    let Stream { open, access, .. } = stream;
    let through = open.direct || open.sync || open.dsync;
    let again = matches!(access, Access::SameRecord | Access::Stride { .. } | Access::Replay);
    !through && (again || !stream.writes_once())
}
