//! The steps around the phases: what they took, and the space that the files take at the end.

use model::{Clock, Evidence, Metric, Nanos, Sample, Warning, sample::lifecycle};
use rig::{Occupancy, Space, Step};

use super::{float, idle, kept, moved::Devices, nanos, warnings::logged};

/// The samples of a step, under its name. Where the clock counts instructions none is of time.
pub(in crate::conductor) fn step(step: &Step, clock: Clock) -> Vec<Sample> {
    let idle = step.evidence.as_ref().map_or(Nanos(0), |evidence| idle(clock, evidence));
    let mut samples = timed(step, step.elapsed - idle);
    if let (Clock::Instructions, Some(program)) = (clock, step.program) {
        let all = nanos(program.user + program.system);
        samples.push(sample(step.name, Metric::ProgramInstructions, all));
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
            add(Metric::CpuShare, nanos(program.user + program.system) / elapsed);
        }
    }
    let Some(evidence) = &step.evidence else { return samples };
    if let Some(cpu) = &evidence.cpu {
        add(Metric::KernelTime, nanos(cpu.attributed()));
    }
    if let Some(devices) = Devices::under(evidence) {
        add(Metric::DeviceRead, float(devices.read.0));
        add(Metric::DeviceWritten, float(devices.written.0));
        if let Some(flushes) = devices.flushes {
            add(Metric::DeviceFlushes, float(flushes));
        }
    }
    samples
}

/// What it cost to look over a whole trial that took so long: the CPU time of all that watched, and
/// the most memory seen at any phase or step.
pub(in crate::conductor) fn looking(
    watched: Nanos,
    elapsed: Nanos,
    evidence: &[(String, Evidence)],
    clock: Clock,
) -> Vec<Sample> {
    let overheads = evidence.iter().filter_map(|(_, evidence)| evidence.overhead);
    let memory = overheads.map(|overhead| overhead.memory).max();
    let share = (elapsed.0 > 0).then(|| nanos(watched) / nanos(elapsed));
    let share = share.map(|share| sample(lifecycle::TRIAL, Metric::OverheadShare, share));
    let memory =
        memory.map(|memory| sample(lifecycle::TRIAL, Metric::OverheadMemory, float(memory.0)));
    kept(share.into_iter().chain(memory).collect(), clock)
}

/// What is wrong with a step.
pub(in crate::conductor) fn step_warnings(step: &Step) -> Vec<Warning> {
    step.evidence.iter().filter_map(logged).collect()
}

/// What a filesystem offers right after it was made.
pub(in crate::conductor) fn offered(space: Space) -> Vec<Sample> {
    let values = [
        (Metric::SpaceUsable, Some(space.usable.0)),
        (Metric::SpaceTotal, Some(space.total.0)),
        (Metric::Inodes, space.inodes),
    ];
    let told = values.into_iter().filter_map(|(metric, value)| Some((metric, float(value?))));
    told.map(|(metric, value)| sample(lifecycle::MKFS, metric, value)).collect()
}

/// What the files take after the phases.
pub(in crate::conductor) fn occupied(taken: Occupancy) -> Vec<Sample> {
    let (used, data) = (float(taken.used.0), float(taken.data.0));
    let mut samples = vec![
        sample(lifecycle::SPACE, Metric::SpaceUsed, used),
        sample(lifecycle::SPACE, Metric::SpaceData, data),
    ];
    // Where less is taken than before, something else gave space back.
    if data > 0.0 && used > 0.0 {
        samples.push(sample(lifecycle::SPACE, Metric::SpaceOverhead, used / data));
    }
    samples
}

fn sample(phase: &str, metric: Metric, value: f64) -> Sample {
    Sample { phase: phase.to_owned(), metric, worker: None, value }
}
