//! Numbers that cannot be: faster than memory, direct reads that no device delivered, random reads
//! that beat sequential ones.

use model::{
    Bytes, Metric, Phase, PhaseResult, Sample, Warning,
    phase::{Access, Cache, Direction, Interface, Stream, Work},
};

use super::{caches::files, machine::processors, writes::compressible};
use crate::conductor::name::{
    Known, float,
    moved::{Devices, read_from_target, uses_page_cache},
    thresholds::{
        BEYOND_CACHES, DIRECT_SHARE, LEAST_ASKED, MEMORY_TOLERANCE, RANDOM_FASTER, UNCACHED,
    },
    value,
};

/// Bytes of a GB, in which the sentences speak.
const GB: f64 = 1e9;

pub(super) fn of(
    phase: &Phase,
    result: &PhaseResult,
    known: &Known,
    samples: &[Sample],
) -> Vec<Warning> {
    let Work::Stream(stream) = &phase.work else { return Vec::new() };
    let memory = beyond_memory(phase, stream, result, known, samples);
    let direct = not_direct(phase, stream, result, known);
    memory.into_iter().chain(direct).map(|what| Warning::Impossible { what }).collect()
}

/// What goes through the page cache or a mapping is copied by a processor at least once. A copy
/// inside the kernel may share blocks instead, and little data may lie in the processors' caches.
fn beyond_memory(
    phase: &Phase,
    stream: &Stream,
    result: &PhaseResult,
    known: &Known,
    samples: &[Sample],
) -> Option<String> {
    let copied = uses_page_cache(phase) && !matches!(stream.interface, Interface::Copy(_));
    if !copied || visited(stream) <= BEYOND_CACHES {
        return None;
    }
    let moved = value(samples, Metric::Throughput)?;
    let gives = known.always.memory_rate? * processors(&known.evidence, result.workers.len());
    (moved > MEMORY_TOLERANCE * gives).then(|| {
        format!(
            "{:.1} GB/s through memory by {} workers, where copying gives {:.1} GB/s",
            moved / GB,
            result.workers.len(),
            gives / GB
        )
    })
}

/// Bytes that are visited one after the other before any of them is visited again, as far as the
/// order tells: what is visited often may stay in the processors' caches however large the file.
fn visited(stream: &Stream) -> Bytes {
    match stream.access {
        Access::Sequential
        | Access::Backward
        | Access::Shuffled
        | Access::Permuted
        | Access::Random
        | Access::Tickets
        | Access::Append => files(stream),
        Access::SameRecord
        | Access::Stride { .. }
        | Access::Zipf { .. }
        | Access::Pareto { .. }
        | Access::Hot { .. }
        | Access::Replay => Bytes(0),
    }
}

/// Direct reads come from the devices. Cold ones are judged by W-CACHE, and data that can be
/// compressed may rightly be short there.
fn not_direct(
    phase: &Phase,
    stream: &Stream,
    result: &PhaseResult,
    known: &Known,
) -> Option<String> {
    let judged = stream.open.direct
        && stream.direction == Direction::Read
        && phase.cache != Cache::Cold
        && !compressible(stream.fill);
    let asked = read_from_target(phase, result).filter(|asked| judged && *asked >= LEAST_ASKED)?;
    let delivered = float(Devices::under(&known.evidence)?.read.0);
    (delivered < DIRECT_SHARE * asked).then(|| {
        format!("{asked:.0} bytes read directly, of which the devices delivered {delivered:.0}")
    })
}

/// Random reads that were faster than the sequential ones of the same trial, though both came from
/// the devices: with the place of each in its list of phases.
pub(in crate::conductor) fn across(
    phases: &[Phase],
    samples: &[Sample],
) -> Vec<(Option<String>, Warning)> {
    let rate = |phase: &Phase| {
        let own: Vec<Sample> = samples.iter().filter(|s| s.phase == phase.name).cloned().collect();
        let uncached = value(&own, Metric::CachedShare)? < UNCACHED;
        value(&own, Metric::Throughput).filter(|_| uncached)
    };
    let reads = |phase: &Phase, order: fn(&Access) -> bool| match &phase.work {
        Work::Stream(stream) if stream.direction == Direction::Read && order(&stream.access) => {
            Some(alike(stream))
        }
        Work::Stream(_)
        | Work::Tree(_)
        | Work::Mix(_)
        | Work::Replay(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Remove { .. } => None,
    };
    let mut warnings = Vec::new();
    for random in phases {
        let drawn = |access: &Access| {
            matches!(access, Access::Random | Access::Permuted | Access::Shuffled | Access::Tickets)
        };
        let (Some(kind), Some(faster)) = (reads(random, drawn), rate(random)) else { continue };
        let in_order = |access: &Access| *access == Access::Sequential;
        let same = phases.iter().filter(|other| reads(other, in_order).as_ref() == Some(&kind));
        for (other, slower) in same.filter_map(|other| Some((other, rate(other)?))) {
            if faster > RANDOM_FASTER * slower {
                let what = format!(
                    "{} {:.2} times as fast as {}, with the devices delivering both",
                    random.name,
                    faster / slower,
                    other.name
                );
                warnings.push((Some(random.name.clone()), Warning::Impossible { what }));
            }
        }
    }
    warnings
}

/// A stream without its order and seed: what random and sequential reads must have in common.
fn alike(stream: &Stream) -> Stream {
    Stream { access: Access::Sequential, seed: 0, ..stream.clone() }
}
