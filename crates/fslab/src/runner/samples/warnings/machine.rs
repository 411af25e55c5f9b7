//! Warnings about other load on the machine and about bottlenecks of the workload.

use std::collections::BTreeSet;

use model::{
    Bytes, Metric, Nanos, Phase, PhaseResult, Ratio, Sample, SystemActivity, Warning,
    activity::{CpuActivity, KernelThread, Origin, OtherProcess},
    phase::{Cache, Stream},
};

use crate::runner::samples::{
    self, PhaseContext, elapsed, float, nanos, sum,
    thresholds::{
        BACKGROUND_SHARE, BACKGROUND_TIME, CPU_BOUND, IDLE, LOG_HARMLESS, LOG_LEVEL, OTHER_CPU,
        OTHER_IO, PRESSURE_CPU, PRESSURE_MEMORY, STEAL,
    },
    value, whole,
};

pub(super) fn of(
    phase: &Phase,
    result: &PhaseResult,
    known: &PhaseContext,
    samples: &[Sample],
) -> Vec<Warning> {
    let activity = &known.activity;
    let mut warnings = Vec::new();
    warnings.extend(cpu_bound(phase, result, activity));
    warnings.extend(other_cpu(activity, samples));
    warnings.extend(other_io(activity));
    warnings.extend(pressure(known, samples));
    if let Some(share) = value(samples, Metric::StealFraction).map(Ratio).filter(|s| *s > STEAL) {
        warnings.push(Warning::CpuSteal { share });
    }
    if let Some(events @ 1..) = activity.throttled {
        warnings.push(Warning::CpuThrottled { events });
    }
    warnings.extend(background(activity));
    warnings.extend(logged(activity));
    warnings
}

/// Warning about workers or kernel threads that used all CPU time that they can use. Warm phases
/// are excluded, because they measure the CPU cost by design.
fn cpu_bound(phase: &Phase, result: &PhaseResult, activity: &SystemActivity) -> Option<Warning> {
    let moves = phase.work.stream().is_none_or(Stream::moves);
    if phase.cache == Cache::Warm || !moves {
        return None;
    }
    let used = nanos(sum(result, |worker| worker.user_time + worker.system_time));
    let elapsed = nanos(elapsed(phase, result));
    let most = processors(activity, result.workers.len());
    if elapsed * most > 0.0 && used / (elapsed * most) >= CPU_BOUND {
        let who = if result.workers.len() == 1 { "the worker" } else { "each worker" };
        return Some(Warning::CpuBound { who: who.into(), share: Ratio(used / (elapsed * most)) });
    }
    let window = nanos(activity.window);
    let cpu = activity.cpu.as_ref()?;
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

/// Reports whether several kernel threads have this name, so that together they can use more than
/// one CPU: workqueue workers, per-CPU threads, and per-node threads.
fn pooled(name: &str) -> bool {
    ["kworker", "ksoftirqd", "kcompactd", "kswapd"].iter().any(|pool| name.starts_with(pool))
}

/// CPUs that this number of workers can use at once.
pub(super) fn processors(activity: &SystemActivity, workers: usize) -> f64 {
    let workers = float(workers as u64);
    let there = activity.cpu.as_ref().map(|cpu| f64::from(cpu.host.processors));
    there.filter(|processors| *processors > 0.0).map_or(workers, |there| workers.min(there))
}

fn other_cpu(activity: &SystemActivity, samples: &[Sample]) -> Option<Warning> {
    let share = value(samples, Metric::OtherCpuUtilization).map(Ratio)?;
    let named = |process: &OtherProcess| match &process.group {
        Some(group) => format!("{} ({group})", process.name),
        None => process.name.clone(),
    };
    let first = activity.cpu.as_ref()?.others.iter().max_by_key(|process| process.time);
    let who = first.map_or_else(|| "short-lived processes".into(), named);
    (share > OTHER_CPU).then_some(Warning::OtherCpuLoad { share, who })
}

/// Warning about the lower device with the most I/O that the devices above it do not explain.
///
/// All devices at the next smaller depth count as devices above it, because a disk may store
/// several images. Each device is evaluated once.
fn other_io(activity: &SystemActivity) -> Option<Warning> {
    let mut known = BTreeSet::new();
    let devices: Vec<_> =
        activity.devices.iter().filter(|device| known.insert(&device.name)).collect();
    let counted =
        |depth: u32| !activity.without_counters.iter().any(|device| device.depth == depth);
    let lower = devices.iter().filter(|device| device.depth > 0 && counted(device.depth - 1));
    let beyond = lower.filter_map(|lower| {
        let above = || devices.iter().filter(|device| device.depth + 1 == lower.depth);
        let explained: Bytes = above().map(|device| device.read + device.written).sum();
        // If a device above has no flush counter, as a partition, the flushes of the lower device
        // are used.
        let flushes = above().map(|device| device.flushes).sum::<Option<u64>>();
        let flushes = flushes.or(lower.flushes).unwrap_or(0);
        let allowed = OTHER_IO.share * float(explained.0)
            + float(OTHER_IO.each_flush.0) * float(flushes)
            + float(OTHER_IO.always.0);
        let moved = lower.read + lower.written;
        let bytes = moved - explained;
        let share = Ratio(float(bytes.0) / float(moved.0.max(1)));
        let device = lower.name.clone();
        (float(bytes.0) > allowed).then_some((bytes, Warning::OtherIoLoad { device, bytes, share }))
    });
    beyond.max_by_key(|(bytes, _)| *bytes).map(|(_, warning)| warning)
}

fn pressure(known: &PhaseContext, samples: &[Sample]) -> Vec<Warning> {
    let over = |metric, limit: Ratio, resource: &str| {
        let share = value(samples, metric).map(Ratio).filter(|share| *share > limit)?;
        Some(Warning::ResourcePressure { resource: resource.into(), share })
    };
    let memory = over(Metric::PsiMemorySome, PRESSURE_MEMORY, "memory");
    let memory = memory.filter(|_| !known.always.memory_limited);
    let processors = over(Metric::PsiCpuSome, PRESSURE_CPU, "a CPU");
    memory.into_iter().chain(processors).collect()
}

fn background(activity: &SystemActivity) -> Option<Warning> {
    let cpu = activity.cpu.as_ref()?;
    let time = CpuActivity::of(cpu, Origin::Deferred);
    let limit = BACKGROUND_TIME.min(Nanos(whole(BACKGROUND_SHARE * nanos(activity.window))));
    let threads = cpu.kernel.iter().filter(|thread| thread.origin == Origin::Deferred);
    let who = threads.max_by_key(|thread| thread.time)?.name.clone();
    (time > limit).then_some(Warning::DeferredWork { who, time })
}

/// Warning about kernel messages that are more severe than a notice. An error of the filesystem or
/// its devices is not included, because it fails the trial (`runner::trial::verdict`).
pub(in crate::runner::samples) fn logged(activity: &SystemActivity) -> Option<Warning> {
    let grave = || {
        let lines = activity.log.iter().filter(|line| !line.fatal && line.level <= LOG_LEVEL);
        lines.filter(|line| !line.text.contains(LOG_HARMLESS))
    };
    let line = grave().next()?.text.clone();
    Some(Warning::KernelMessage { line, lines: grave().count() as u64 })
}

/// Warning about idle time of an icount guest during a phase.
pub(super) fn idle(known: &PhaseContext) -> Option<Warning> {
    let (clock, activity) = (known.always.clock, &known.activity);
    let share = samples::share(samples::idle(clock, activity), activity.window);
    (share > IDLE).then_some(Warning::GuestIdle { share })
}
