//! What is wrong with the numbers of a measured phase.

use model::{
    Bytes, Metric, Nanos, Phase, PhaseResult, Ratio, Warning,
    phase::{
        Access, Bound, Cache, Direction, Fill, Flush, FlushCall, Interface, Stream, Work,
        WorkerResult,
    },
};

use super::{Evidence, float, generator_share, until_durable, window};

/// Below this a phase says little: a scheduling hiccup of a millisecond is a tenth of it.
const SHORT: Nanos = Nanos(10_000_000);

/// Share of the median operation that reading the clock may take.
const CLOCK_SHARE: f64 = 0.02;

/// Share of the workers' time that the load generator may take.
const GENERATOR_SHARE: Ratio = Ratio(0.05);

/// Share of a cold read that must come from the device; the rest is metadata and read-ahead
/// rounding.
const COLD_SHARE: f64 = 0.95;

/// What is wrong with the numbers of a measured phase.
pub(in crate::conductor) fn warnings(
    phase: &Phase,
    result: &PhaseResult,
    evidence: &Evidence,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if result.workers.is_empty() {
        return warnings;
    }
    let durable = phase.primary() == Metric::DurableThroughput;
    let judged = |worker: &WorkerResult| {
        if durable { until_durable(worker) } else { worker.loop_time }
    };
    let elapsed = window(result.workers.iter(), judged);
    if elapsed < SHORT {
        warnings.push(Warning::Short { elapsed });
    }
    if let Some(median) = result.latencies().operations().quantile(0.5)
        && float(evidence.clock_cost.0) > CLOCK_SHARE * float(median.0)
    {
        warnings.push(Warning::Clock { cost: evidence.clock_cost, median });
    }
    if let (Some(share), Some(nanos)) =
        (generator_share(phase, result, evidence.generator), evidence.generator)
        && share > GENERATOR_SHARE
    {
        warnings.push(Warning::GeneratorBound { share, loop_time: whole(nanos) });
    }
    match &phase.work {
        Work::Stream(stream) => of_stream(&mut warnings, phase, stream, result, evidence),
        Work::Tree(tree) if compressible(tree.fill) && tree.size.0 > 0 => {
            warnings.push(Warning::Compressible);
        }
        Work::Tree(_) | Work::Remove { .. } => {}
    }
    warnings
}

fn of_stream(
    warnings: &mut Vec<Warning>,
    phase: &Phase,
    stream: &Stream,
    result: &PhaseResult,
    evidence: &Evidence,
) {
    let writes = (0..stream.workers.count).any(|worker| stream.direction.writes(worker));
    let durable = stream.flush != Flush::None
        || stream.flush_every.is_some_and(|every| every.call != FlushCall::Range)
        || stream.open.sync
        || stream.open.dsync
        || matches!(stream.interface, Interface::Vector(flags) if flags.dsync)
        || matches!(stream.interface, Interface::Ring(ring) if ring.linked_sync);
    if writes && !durable {
        warnings.push(Warning::Unsynced);
    }
    if writes && compressible(stream.fill) {
        warnings.push(Warning::Compressible);
    }
    if let (Some(device), Direction::Read, Cache::Cold) =
        (evidence.device, stream.direction, phase.cache)
    {
        let asked = if stream.moves() { distinct(stream, result) } else { Bytes(0) };
        if float(device.read.0) < COLD_SHARE * float(asked.0) {
            warnings.push(Warning::NotCold { asked, from_device: device.read });
        }
    }
}

fn compressible(fill: Fill) -> bool {
    match fill {
        Fill::Random { entropy, duplicates } => entropy < 0.9 || duplicates > 0.1,
        Fill::PagePattern => true,
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
        Access::Random => {
            let (moved, all) = (float(result.bytes().0), float(files(stream).0.max(1)));
            whole_bytes(-all * (-moved / all).exp_m1())
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
fn files(stream: &Stream) -> Bytes {
    let files = stream.files.count(stream.workers.count);
    Bytes(stream.size.0.saturating_mul(u64::from(files)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size below 2^53, and not negative"
)]
fn whole_bytes(bytes: f64) -> Bytes {
    Bytes(bytes as u64)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cost of an operation, far below 2^53"
)]
fn whole(nanos: f64) -> Nanos {
    Nanos(nanos.round() as u64)
}
