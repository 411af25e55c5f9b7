//! What the machine had to do beside the work, and where the work met a limit of its own.

use std::collections::BTreeSet;

use model::{
    Bytes, Evidence, Metric, Nanos, Phase, PhaseResult, Ratio, Sample, Warning,
    evidence::{CpuWork, KernelThread, Origin, OtherProcess},
    phase::{Cache, Work},
};

use crate::conductor::name::{
    self, Known, elapsed, float, nanos, sum,
    thresholds::{
        BACKGROUND_SHARE, BACKGROUND_TIME, CPU_BOUND, FOREIGN_CPU, FOREIGN_IO, IDLE, LOG_HARMLESS,
        LOG_LEVEL, PRESSURE_CPU, PRESSURE_MEMORY, STEAL,
    },
    value, whole,
};

pub(super) fn of(
    phase: &Phase,
    result: &PhaseResult,
    known: &Known,
    samples: &[Sample],
) -> Vec<Warning> {
    let evidence = &known.evidence;
    let mut warnings = Vec::new();
    warnings.extend(cpu_bound(phase, result, evidence));
    warnings.extend(foreign_cpu(evidence, samples));
    warnings.extend(foreign_io(evidence));
    warnings.extend(pressure(known, samples));
    if let Some(share) = value(samples, Metric::StealShare).map(Ratio).filter(|s| *s > STEAL) {
        warnings.push(Warning::Steal { share });
    }
    if let Some(events @ 1..) = evidence.throttled {
        warnings.push(Warning::Throttled { events });
    }
    warnings.extend(background(evidence));
    warnings.extend(logged(evidence));
    warnings
}

/// Whoever had as much of the processors as it can use. Warm phases are left out: that storage is
/// not their limit is what they are for.
fn cpu_bound(phase: &Phase, result: &PhaseResult, evidence: &Evidence) -> Option<Warning> {
    let moves = match &phase.work {
        Work::Stream(stream) => stream.moves(),
        Work::Tree(_)
        | Work::Mix(_)
        | Work::Replay(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Remove { .. } => true,
    };
    if phase.cache == Cache::Warm || !moves {
        return None;
    }
    let used = nanos(sum(result, |worker| worker.user_time + worker.system_time));
    let elapsed = nanos(elapsed(phase, result));
    let most = processors(evidence, result.workers.len());
    if elapsed * most > 0.0 && used / (elapsed * most) >= CPU_BOUND {
        let who = if result.workers.len() == 1 { "the worker" } else { "each worker" };
        return Some(Warning::CpuBound { who: who.into(), share: Ratio(used / (elapsed * most)) });
    }
    let window = nanos(evidence.window);
    let cpu = evidence.cpu.as_ref()?;
    let share = |thread: &KernelThread| {
        let most = if pooled(&thread.name) { f64::from(cpu.host.processors) } else { 1.0 };
        nanos(thread.time) / (window * most)
    };
    let caused = cpu.kernel.iter().filter(|thread| thread.origin.attributed());
    let busiest = caused.max_by(|one, other| share(one).total_cmp(&share(other)))?;
    let share = share(busiest);
    (share.is_finite() && share >= CPU_BOUND)
        .then(|| Warning::CpuBound { who: busiest.name.clone(), share: Ratio(share) })
}

/// Whether threads of this kind are many, so that one processor is not the most they can use:
/// workers of queues, and threads that there are for each processor.
fn pooled(name: &str) -> bool {
    ["kworker", "ksoftirqd", "kcompactd", "kswapd"].iter().any(|pool| name.starts_with(pool))
}

/// Processors that so many workers can use at once.
pub(super) fn processors(evidence: &Evidence, workers: usize) -> f64 {
    let workers = float(workers as u64);
    let there = evidence.cpu.as_ref().map(|cpu| f64::from(cpu.host.processors));
    there.filter(|processors| *processors > 0.0).map_or(workers, |there| workers.min(there))
}

fn foreign_cpu(evidence: &Evidence, samples: &[Sample]) -> Option<Warning> {
    let share = value(samples, Metric::OtherShare).map(Ratio)?;
    let named = |process: &OtherProcess| match &process.group {
        Some(group) => format!("{} ({group})", process.name),
        None => process.name.clone(),
    };
    let first = evidence.cpu.as_ref()?.others.iter().max_by_key(|process| process.time);
    let who = first.map_or_else(|| "processes that came and went".into(), named);
    (share > FOREIGN_CPU).then_some(Warning::ForeignCpu { share, who })
}

/// The lower device that moved most beyond what the devices above it explain.
///
/// What is above a device is taken to be all devices one level up: a disk may hold several images,
/// and is told once.
fn foreign_io(evidence: &Evidence) -> Option<Warning> {
    let mut known = BTreeSet::new();
    let devices: Vec<_> =
        evidence.devices.iter().filter(|device| known.insert(&device.name)).collect();
    let told = |depth: u32| !evidence.uncounted.iter().any(|device| device.depth == depth);
    let lower = devices.iter().filter(|device| device.depth > 0 && told(device.depth - 1));
    let beyond = lower.filter_map(|lower| {
        let above = || devices.iter().filter(|device| device.depth + 1 == lower.depth);
        let explained: Bytes = above().map(|device| device.read + device.written).sum();
        // Partitions do not tell of theirs; the disk does, of everybody's.
        let flushes = above().map(|device| device.flushes).sum::<Option<u64>>();
        let flushes = flushes.or(lower.flushes).unwrap_or(0);
        let allowed = FOREIGN_IO.share * float(explained.0)
            + float(FOREIGN_IO.each_flush.0) * float(flushes)
            + float(FOREIGN_IO.always.0);
        let moved = lower.read + lower.written;
        let bytes = moved - explained;
        let share = Ratio(float(bytes.0) / float(moved.0.max(1)));
        let device = lower.name.clone();
        (float(bytes.0) > allowed).then_some((bytes, Warning::ForeignIo { device, bytes, share }))
    });
    beyond.max_by_key(|(bytes, _)| *bytes).map(|(_, warning)| warning)
}

fn pressure(known: &Known, samples: &[Sample]) -> Vec<Warning> {
    let over = |metric, limit: Ratio, resource: &str| {
        let share = value(samples, metric).map(Ratio).filter(|share| *share > limit)?;
        Some(Warning::Pressure { resource: resource.into(), share })
    };
    let memory = over(Metric::PressureMemory, PRESSURE_MEMORY, "memory");
    let memory = memory.filter(|_| !known.always.memory_limited);
    let processors = over(Metric::PressureCpu, PRESSURE_CPU, "a processor");
    memory.into_iter().chain(processors).collect()
}

fn background(evidence: &Evidence) -> Option<Warning> {
    let cpu = evidence.cpu.as_ref()?;
    let time = CpuWork::of(cpu, Origin::Background);
    let limit = BACKGROUND_TIME.min(Nanos(whole(BACKGROUND_SHARE * nanos(evidence.window))));
    let threads = cpu.kernel.iter().filter(|thread| thread.origin == Origin::Background);
    let who = threads.max_by_key(|thread| thread.time)?.name.clone();
    (time > limit).then_some(Warning::Background { who, time })
}

/// What the kernel logged that is no mere notice. An error of the filesystem or its devices ends
/// the trial instead, see [`crate::conductor::verdict`].
pub(in crate::conductor::name) fn logged(evidence: &Evidence) -> Option<Warning> {
    let grave = || {
        let told = evidence.log.iter().filter(|line| !line.fatal && line.level <= LOG_LEVEL);
        told.filter(|line| !line.text.contains(LOG_HARMLESS))
    };
    let line = grave().next()?.text.clone();
    Some(Warning::KernelLog { line, lines: grave().count() as u64 })
}

/// That the processor had nothing to do for a part of the phase.
pub(super) fn idle(known: &Known) -> Option<Warning> {
    let (clock, evidence) = (known.always.clock, &known.evidence);
    let share = name::share(name::idle(clock, evidence), evidence.window);
    (share > IDLE).then_some(Warning::Idle { share })
}
