//! Samples of lifecycle steps: their cost, and the space that the files use.

use model::{Clock, Metric, Nanos, Sample, SystemActivity, Warning, sample::lifecycle};
use rig::{Space, SpaceUsage, Step};

use super::{float, idle, kept, moved::Devices, nanos, warnings::logged};

/// Samples of a step, whose name is used as the phase. On an instruction clock, times become
/// instruction counts.
pub(in crate::runner) fn step(step: &Step, clock: Clock) -> Vec<Sample> {
    let idle = step.activity.as_ref().map_or(Nanos(0), |activity| idle(clock, activity));
    let mut samples = timed(step, step.elapsed - idle);
    if let (Clock::Instructions, Some(program)) = (clock, step.program) {
        let all = nanos(program.user + program.system);
        samples.push(sample(step.name, Metric::ProcessInstructions, all));
    }
    kept(samples, clock)
}

fn timed(step: &Step, elapsed: Nanos) -> Vec<Sample> {
    let elapsed = nanos(elapsed);
    let mut samples = vec![sample(step.name, Metric::Elapsed, elapsed)];
    let mut add = |metric, value| samples.push(sample(step.name, metric, value));
    if let Some(program) = step.program {
        add(Metric::UserTime, nanos(program.user));
        add(Metric::SystemTime, nanos(program.system));
        if elapsed > 0.0 {
            add(Metric::CpuUtilization, nanos(program.user + program.system) / elapsed);
        }
    }
    let Some(activity) = &step.activity else { return samples };
    if let Some(cpu) = &activity.cpu {
        add(Metric::KernelThreadTime, nanos(cpu.attributed()));
    }
    if let Some(devices) = Devices::under(activity) {
        add(Metric::DeviceBytesRead, float(devices.read.0));
        add(Metric::DeviceBytesWritten, float(devices.written.0));
        if let Some(flushes) = devices.flushes {
            add(Metric::DeviceFlushRequests, float(flushes));
        }
    }
    samples
}

/// Monitoring overhead of a whole trial: CPU time of all monitors (`watched`) over the duration of
/// the trial, and the maximum memory in any phase or step.
pub(in crate::runner) fn monitoring_overhead(
    watched: Nanos,
    elapsed: Nanos,
    activity: &[(String, SystemActivity)],
    clock: Clock,
) -> Vec<Sample> {
    let overheads = activity.iter().filter_map(|(_, activity)| activity.overhead);
    let memory = overheads.map(|overhead| overhead.memory).max();
    let share = (elapsed.0 > 0).then(|| nanos(watched) / nanos(elapsed));
    let share =
        share.map(|share| sample(lifecycle::TRIAL, Metric::MonitoringCpuUtilization, share));
    let memory =
        memory.map(|memory| sample(lifecycle::TRIAL, Metric::MonitoringMemory, float(memory.0)));
    kept(share.into_iter().chain(memory).collect(), clock)
}

/// Warnings of a step.
pub(in crate::runner) fn step_warnings(step: &Step) -> Vec<Warning> {
    step.activity.iter().filter_map(logged).collect()
}

/// Space that a new filesystem provides.
pub(in crate::runner) fn available_space(space: Space) -> Vec<Sample> {
    let values = [
        (Metric::SpaceAvailable, Some(space.available.0)),
        (Metric::DeviceSize, Some(space.device_size.0)),
        (Metric::Inodes, space.inodes),
    ];
    let known = values.into_iter().filter_map(|(metric, value)| Some((metric, float(value?))));
    known.map(|(metric, value)| sample(lifecycle::MKFS, metric, value)).collect()
}

/// Space that the files use after the phases.
pub(in crate::runner) fn used_space(taken: SpaceUsage) -> Vec<Sample> {
    let (used, data) = (float(taken.used.0), float(taken.data.0));
    let mut samples = vec![
        sample(lifecycle::SPACE, Metric::SpaceUsed, used),
        sample(lifecycle::SPACE, Metric::ApparentSize, data),
    ];
    // If the used space decreased, another process released space.
    if data > 0.0 && used > 0.0 {
        samples.push(sample(lifecycle::SPACE, Metric::SpaceAmplification, used / data));
    }
    samples
}

fn sample(phase: &str, metric: Metric, value: f64) -> Sample {
    Sample { phase: phase.to_owned(), metric, worker: None, value }
}
