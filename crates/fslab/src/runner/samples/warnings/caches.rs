//! Cache warnings: the data of a phase was not where it should be, on the devices or in memory.

use model::{
    Bytes, Metric, Phase, PhaseResult, Ratio, Sample, Warning,
    phase::{AccessPattern, Cache, Direction, Stream, Work},
};

use crate::runner::samples::{
    PhaseContext, float,
    moved::Devices,
    thresholds::{COLD_SHARE, MIXED, WARM_SHARE},
    value, whole,
};

pub(super) fn of(
    warnings: &mut Vec<Warning>,
    phase: &Phase,
    result: &PhaseResult,
    known: &PhaseContext,
    samples: &[Sample],
) {
    let not_cold = not_cold(phase, result, known);
    let cached = value(samples, Metric::CacheHitRatio).map(Ratio);
    let only_reads = match &phase.work {
        Work::Stream(stream) => each_reads(stream),
        Work::Tree(_)
        | Work::Mix(_)
        | Work::Replay(_)
        | Work::Layout(_)
        | Work::Sqlite(_)
        | Work::Trace(_) => result.workers.iter().all(|worker| !worker.writes()),
        Work::Task(_) | Work::Command(_) => true,
        Work::Mail(_) | Work::Maintenance(_) | Work::Coherence(_) | Work::Remove { .. } => false,
    };
    match (phase.cache, cached) {
        (Cache::Warm, Some(cached)) if cached < WARM_SHARE => {
            warnings.push(Warning::CacheNotWarm { cached });
        }
        (Cache::Cold | Cache::Unchanged, Some(cached))
            if only_reads && not_cold.is_none() && MIXED.contains(&cached.0) =>
        {
            warnings.push(Warning::PartlyCached { cached });
        }
        (Cache::Warm | Cache::Cold | Cache::Unchanged, _) => {}
    }
    warnings.extend(not_cold);
}

fn not_cold(phase: &Phase, result: &PhaseResult, known: &PhaseContext) -> Option<Warning> {
    let Work::Stream(stream) = &phase.work else { return None };
    if !each_reads(stream) || phase.cache != Cache::Cold || !stream.moves() {
        return None;
    }
    let requested = distinct(stream, result);
    let from_device = Devices::under(&known.activity)?.read;
    (float(from_device.0) < COLD_SHARE * float(requested.0))
        .then_some(Warning::CacheNotCold { requested, from_device })
}

/// Reports whether every operation reads its block. An update also reads a block, before it writes
/// the block back.
fn each_reads(stream: &Stream) -> bool {
    match stream.direction {
        Direction::Read | Direction::Update(_) => true,
        Direction::Write | Direction::Alternate | Direction::FirstRead(_) | Direction::Mixed(_) => {
            false
        }
    }
}

/// Lower bound of the distinct bytes that a phase read, as far as its access pattern determines it.
/// A strided pass over a short file visits one block many times, random patterns visit some blocks
/// twice, and a loop limited by time or operations starts again.
fn distinct(stream: &Stream, result: &PhaseResult) -> Bytes {
    let once = stream.bound.is_one_pass();
    let records = stream.size.0 / stream.block_size.0.max(1);
    match stream.access_pattern {
        AccessPattern::SameBlock => stream.block_size,
        // In a file of at most one stride, all visits are to block 0. In a longer file, two blocks
        // are visited twice.
        AccessPattern::Stride { blocks: stride } if records <= stride => stream.block_size,
        AccessPattern::Stride { .. } if once => result.bytes() - Bytes(2 * stream.block_size.0),
        AccessPattern::Sequential
        | AccessPattern::Backward
        | AccessPattern::IozonePermutation
        | AccessPattern::Permutation
        | AccessPattern::Append => result.bytes().min(files(stream)),
        // Random drawing with replacement repeats blocks: of n blocks, m draws visit
        // n (1 - exp(-m / n)) different blocks on average.
        AccessPattern::Random | AccessPattern::Tickets => {
            let (moved, all) = (float(result.bytes().0), float(files(stream).0.max(1)));
            Bytes(whole(-all * (-moved / all).exp_m1()))
        }
        // The distribution or the trace determines which part of the file is visited.
        // The reads of a mix start at the first block, and may read only some of them.
        AccessPattern::SequentialPerDirection
        | AccessPattern::Stride { .. }
        | AccessPattern::Zipf { .. }
        | AccessPattern::Pareto { .. }
        | AccessPattern::Hotspot { .. }
        | AccessPattern::Normal { .. }
        | AccessPattern::Zones
        | AccessPattern::Skip { .. }
        | AccessPattern::Runs { .. }
        | AccessPattern::Trace => Bytes(0),
    }
}

/// Total size of the files.
pub(super) fn files(stream: &Stream) -> Bytes {
    let files = stream.files.count(stream.workers.count);
    Bytes(stream.size.0.saturating_mul(u64::from(files)))
}
