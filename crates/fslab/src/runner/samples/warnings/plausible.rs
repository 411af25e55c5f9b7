//! Implausible results: faster than memory, direct reads that no device delivered, random reads
//! faster than sequential reads.

use model::{
    Bytes, Metric, Phase, PhaseResult, Sample, Warning,
    phase::{AccessPattern, Cache, Direction, IoEngineKind, Stream, Work},
};

use super::{caches::files, machine::processors, writes::compressible};
use crate::runner::samples::{
    PhaseContext, float,
    moved::{Devices, read_from_target, uses_page_cache},
    thresholds::{
        BEYOND_CACHES, DIRECT_SHARE, LEAST_ASKED, MEMORY_TOLERANCE, RANDOM_FASTER, UNCACHED,
    },
    value,
};

/// Bytes per GB, the unit of the messages.
const GB: f64 = 1e9;

pub(super) fn of(
    phase: &Phase,
    result: &PhaseResult,
    known: &PhaseContext,
    samples: &[Sample],
) -> Vec<Warning> {
    let Work::Stream(stream) = &phase.work else { return Vec::new() };
    let memory = beyond_memory(phase, stream, result, known, samples);
    let direct = not_direct(phase, stream, result, known);
    memory.into_iter().chain(direct).map(|what| Warning::ImplausibleResult { what }).collect()
}

/// Description of a throughput that exceeds the memory rate. A CPU copies all data of the page
/// cache or a mapping at least once. Not evaluated: copies inside the kernel, which may share
/// blocks, and small files, which may fit in the CPU caches.
fn beyond_memory(
    phase: &Phase,
    stream: &Stream,
    result: &PhaseResult,
    known: &PhaseContext,
    samples: &[Sample],
) -> Option<String> {
    let copied = uses_page_cache(phase) && !matches!(stream.io_engine, IoEngineKind::Copy(_));
    if !copied || visited(stream) <= BEYOND_CACHES {
        return None;
    }
    let moved = value(samples, Metric::Throughput)?;
    let gives = known.always.memory_rate? * processors(&known.activity, result.workers.len());
    (moved > MEMORY_TOLERANCE * gives).then(|| {
        format!(
            "{:.1} GB/s through memory by {} workers; one copy loop reaches {:.1} GB/s",
            moved / GB,
            result.workers.len(),
            gives / GB
        )
    })
}

/// Bytes visited before any byte is visited again, as far as the access pattern determines it.
/// Blocks that are visited often may stay in the CPU caches even if the file is large.
fn visited(stream: &Stream) -> Bytes {
    match stream.access_pattern {
        AccessPattern::Sequential
        | AccessPattern::Backward
        | AccessPattern::IozonePermutation
        | AccessPattern::Permutation
        | AccessPattern::Random
        | AccessPattern::Tickets
        | AccessPattern::Append => files(stream),
        AccessPattern::SameBlock
        | AccessPattern::SequentialPerDirection
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

/// Description of direct reads that the devices did not deliver. Cold reads are covered by
/// `cache-not-cold`, and compressible data may need fewer bytes.
fn not_direct(
    phase: &Phase,
    stream: &Stream,
    result: &PhaseResult,
    known: &PhaseContext,
) -> Option<String> {
    let judged = stream.open.direct
        && stream.direction == Direction::Read
        && phase.cache != Cache::Cold
        && !compressible(stream.data);
    let asked = read_from_target(phase, result).filter(|asked| judged && *asked >= LEAST_ASKED)?;
    let delivered = float(Devices::under(&known.activity)?.read.0);
    (delivered < DIRECT_SHARE * asked).then(|| {
        format!("{asked:.0} bytes of direct reads, of which the devices delivered {delivered:.0}")
    })
}

/// Warnings about random reads that were faster than the sequential reads of the same trial
/// although both came from the devices. Each warning has the name of the phase with random reads.
pub(in crate::runner) fn across(
    phases: &[Phase],
    samples: &[Sample],
) -> Vec<(Option<String>, Warning)> {
    let rate = |phase: &Phase| {
        let own: Vec<Sample> = samples.iter().filter(|s| s.phase == phase.name).cloned().collect();
        let uncached = value(&own, Metric::CacheHitRatio)? < UNCACHED;
        value(&own, Metric::Throughput).filter(|_| uncached)
    };
    let reads = |phase: &Phase, order: fn(&AccessPattern) -> bool| {
        let own =
            |stream: &&Stream| stream.direction == Direction::Read && order(&stream.access_pattern);
        phase.work.stream().filter(own).map(alike)
    };
    let mut warnings = Vec::new();
    for random in phases {
        let drawn = |access: &AccessPattern| {
            matches!(
                access,
                AccessPattern::Random
                    | AccessPattern::Permutation
                    | AccessPattern::IozonePermutation
                    | AccessPattern::Tickets
            )
        };
        let (Some(kind), Some(faster)) = (reads(random, drawn), rate(random)) else { continue };
        let in_order = |access: &AccessPattern| *access == AccessPattern::Sequential;
        let same = phases.iter().filter(|other| reads(other, in_order).as_ref() == Some(&kind));
        for (other, slower) in same.filter_map(|other| Some((other, rate(other)?))) {
            if faster > RANDOM_FASTER * slower {
                let what = format!(
                    "{} was {:.2} times as fast as {}, although both were read from the devices",
                    random.name,
                    faster / slower,
                    other.name
                );
                warnings.push((Some(random.name.clone()), Warning::ImplausibleResult { what }));
            }
        }
    }
    warnings
}

/// Stream without its access pattern and seed: the properties that random and sequential reads must
/// share.
fn alike(stream: &Stream) -> Stream {
    Stream { access_pattern: AccessPattern::Sequential, seed: 0, ..stream.clone() }
}
