//! Whether a phase found its data where it should: on the devices, or in memory.

use model::{
    Bytes, Metric, Phase, PhaseResult, Ratio, Sample, Warning,
    phase::{Access, Bound, Cache, Direction, Stream, Work},
};

use crate::conductor::name::{
    Known, float,
    moved::Devices,
    thresholds::{COLD_SHARE, MIXED, WARM_SHARE},
    value, whole,
};

pub(super) fn of(
    warnings: &mut Vec<Warning>,
    phase: &Phase,
    result: &PhaseResult,
    known: &Known,
    samples: &[Sample],
) {
    let not_cold = not_cold(phase, result, known);
    let cached = value(samples, Metric::CachedShare).map(Ratio);
    let only_reads = match &phase.work {
        Work::Stream(stream) => each_reads(stream),
        Work::Tree(_) | Work::Mix(_) | Work::Replay(_) | Work::Layout(_) => {
            result.workers.iter().all(|worker| !worker.writes())
        }
        Work::Task(_) => true,
        Work::Remove { .. } => false,
    };
    match (phase.cache, cached) {
        (Cache::Warm, Some(cached)) if cached < WARM_SHARE => {
            warnings.push(Warning::NotWarm { cached });
        }
        (Cache::Cold | Cache::AsLeft, Some(cached))
            if only_reads && not_cold.is_none() && MIXED.contains(&cached.0) =>
        {
            warnings.push(Warning::Mixed { cached });
        }
        (Cache::Warm | Cache::Cold | Cache::AsLeft, _) => {}
    }
    warnings.extend(not_cold);
}

fn not_cold(phase: &Phase, result: &PhaseResult, known: &Known) -> Option<Warning> {
    let Work::Stream(stream) = &phase.work else { return None };
    if !each_reads(stream) || phase.cache != Cache::Cold || !stream.moves() {
        return None;
    }
    let asked = distinct(stream, result);
    let from_device = Devices::under(&known.evidence)?.read;
    (float(from_device.0) < COLD_SHARE * float(asked.0))
        .then_some(Warning::NotCold { asked, from_device })
}

/// Whether every operation reads its record: an update does so, too, before it writes it back, and
/// finds it in memory or not like any reader.
fn each_reads(stream: &Stream) -> bool {
    match stream.direction {
        Direction::Read | Direction::Update(_) => true,
        Direction::Write | Direction::Alternate | Direction::FirstRead(_) | Direction::Mixed(_) => {
            false
        }
    }
}

/// Bytes of different records that a phase read at least, as far as its order tells: a strided pass
/// over a short file visits one record often, drawn orders visit some records twice, and a loop
/// that is bound by time or operations starts over.
fn distinct(stream: &Stream, result: &PhaseResult) -> Bytes {
    let once = stream.bound == Bound::Once;
    let records = stream.size.0 / stream.record.0.max(1);
    match stream.access {
        Access::SameRecord => stream.record,
        // Up to one stride all visits are to record 0; beyond, two records are visited twice.
        Access::Stride { records: stride } if records <= stride => stream.record,
        Access::Stride { .. } if once => result.bytes() - Bytes(2 * stream.record.0),
        Access::Sequential
        | Access::Backward
        | Access::Shuffled
        | Access::Permuted
        | Access::Append => result.bytes().min(files(stream)),
        // What is drawn with or without replacement differs by the share of draws that repeat an
        // earlier one, m of n records drawn: n (1 - exp(-m / n)) are different on average.
        Access::Random | Access::Tickets => {
            let (moved, all) = (float(result.bytes().0), float(files(stream).0.max(1)));
            Bytes(whole(-all * (-moved / all).exp_m1()))
        }
        // How much of the file is visited is up to the law or the list.
        Access::Stride { .. }
        | Access::Zipf { .. }
        | Access::Pareto { .. }
        | Access::Hot { .. }
        | Access::Replay => Bytes(0),
    }
}

/// The size of all files.
pub(super) fn files(stream: &Stream) -> Bytes {
    let files = stream.files.count(stream.workers.count);
    Bytes(stream.size.0.saturating_mul(u64::from(files)))
}
