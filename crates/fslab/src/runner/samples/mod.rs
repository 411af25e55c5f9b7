//! Conversion of results to samples: metrics, units, and the arithmetic from counters to rates.
//!
//! Input: a phase with its [`PhaseResult`] and [`PhaseContext`]. Output: samples, histograms, and
//! warnings. This module measures nothing and does not summarize repetitions.

mod activity;
mod costs;
mod lifecycle;
mod moved;
mod rates;
#[cfg(test)]
mod tests;
mod thresholds;
mod times;
mod warnings;

use model::{
    Clock, Metric, Nanos, Phase, PhaseResult, Profile, Ratio, Sample, SystemActivity,
    phase::{Direction, Moved, Pace, Reported, Work, WorkerResult},
};

use self::thresholds::IDLE;
pub(super) use lifecycle::{available_space, monitoring_overhead, step, step_warnings, used_space};
pub(super) use times::histograms;
pub(super) use warnings::{across, warnings};

/// Properties common to all phases of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunContext {
    /// Unit of the clock.
    pub(super) clock: Clock,
    /// Time of one clock reading.
    pub(super) clock_cost: Nanos,
    /// Rate at which one CPU copies memory, in bytes per second; `None` if not measured.
    pub(super) memory_rate: Option<f64>,
    /// True if the plan limits the memory of the workload, so that memory pressure is intended.
    pub(super) memory_limited: bool,
    /// True if the storage is a directory of a mounted filesystem: the counters of its devices then
    /// include I/O by all processes.
    pub(super) shared_devices: bool,
    /// Precision profile of the run.
    pub(super) profile: Profile,
}

/// Context of a phase besides its result.
#[derive(Clone, Debug)]
pub(super) struct PhaseContext {
    /// Properties common to all phases of the run.
    pub(super) always: RunContext,
    /// System activity during the phase.
    pub(super) activity: SystemActivity,
    /// Load generator overhead in nanoseconds per operation; `None` if not measured.
    pub(super) generator: Option<f64>,
}

/// Samples of a measured phase. On an instruction clock, times become instruction counts.
pub(super) fn of_phase(phase: &Phase, result: &PhaseResult, known: &PhaseContext) -> Vec<Sample> {
    let clock = known.always.clock;
    let idle = idle(clock, &known.activity);
    let mut named = PhaseSamples { phase, clock, idle, samples: Vec::new() };
    rates::elapsed(&mut named, result);
    activity::add(&mut named, result, &known.activity);
    if !result.workers.is_empty() {
        rates::add(&mut named, result);
        times::add(&mut named, result);
        costs::add(&mut named, result, known);
        moved::add(&mut named, result, &known.activity, known.always.shared_devices);
    }
    if let Some(rate) = ticked(result) {
        named.add(Metric::ThroughputDbench, rate);
    }
    at_deadline(&mut named, result);
    for Reported { name, metric, value } in &result.reported {
        let phase = name.as_ref().map_or(phase.name.clone(), |name| phase.number(name));
        named.samples.push(Sample { phase, metric: *metric, worker: None, value: *value });
    }
    let parts = share(idle, known.activity.window) <= IDLE;
    let is_shown = |sample: &Sample| parts || !OF_PARTS.contains(&sample.metric);
    named.samples.retain(is_shown);
    kept(named.samples, clock)
}

/// Metrics of parts of a phase. They are omitted on an instruction clock with idle time, because
/// the idle time within these parts is unknown.
const OF_PARTS: [Metric; 10] = [
    Metric::LatencyMean,
    Metric::LatencyP50,
    Metric::LatencyP90,
    Metric::LatencyP99,
    Metric::LatencyP999,
    Metric::LatencyP9999,
    Metric::LatencyMax,
    Metric::LoopTime,
    Metric::EndSyncTime,
    Metric::CloseTime,
];

/// Idle CPU time within the window on an instruction clock; 0 on other clocks and if unknown. An
/// instruction clock jumps over idle time, in which no instruction is executed. Its CPU times of
/// tasks are exact. The time of interrupts is part of the interrupted task unless the kernel
/// accounts for it separately.
fn idle(clock: Clock, activity: &SystemActivity) -> Nanos {
    match &activity.cpu {
        Some(cpu) if clock == Clock::Instructions && cpu.host.processors == 1 => {
            activity.window - cpu.accounted() - cpu.host.interrupts.unwrap_or_default()
        }
        Some(_) | None => Nanos(0),
    }
}

/// Ratio of two times; 0 if the whole is 0.
fn share(part: Nanos, whole: Nanos) -> Ratio {
    Ratio(if whole.0 > 0 { nanos(part) / nanos(whole) } else { 0.0 })
}

/// Samples with metrics converted for this clock, without metrics that have no meaning on it.
fn kept(samples: Vec<Sample>, clock: Clock) -> Vec<Sample> {
    let kept =
        |sample: Sample| Some(Sample { metric: clock.convert_metric(sample.metric)?, ..sample });
    samples.into_iter().filter_map(kept).collect()
}

/// Bytes per second up to the last whole second before the end, if the workers record them.
fn ticked(result: &PhaseResult) -> Option<f64> {
    let ticks = result.workers.iter().map(|worker| worker.ticked).collect::<Option<Vec<_>>>()?;
    let elapsed = ticks.iter().map(|tick| tick.elapsed).max().filter(|time| time.0 > 0)?;
    let bytes: u64 = ticks.iter().map(|tick| tick.bytes.0).sum();
    Some(float(bytes) * 1e9 / nanos(elapsed))
}

/// Rates up to the deadline, if the workers record them.
fn at_deadline(named: &mut PhaseSamples<'_>, result: &PhaseResult) {
    let parts = result.workers.iter().map(|worker| worker.at_deadline);
    let Some(parts) = parts.collect::<Option<Vec<_>>>() else { return };
    let elapsed = parts.iter().map(|part| part.elapsed).max().filter(|time| time.0 > 0);
    let Some(elapsed) = elapsed else { return };
    let rate = |amount: u64| float(amount) * 1e9 / nanos(elapsed);
    let bytes = parts.iter().map(|part| part.moved.bytes.0).sum();
    if bytes > 0 {
        named.add(Metric::ThroughputDeadline, rate(bytes));
    }
    named.add(Metric::OpsRateDeadline, rate(parts.iter().map(|part| part.moved.ops.0).sum()));
}

/// Value of a metric over all workers.
pub(super) fn value(samples: &[Sample], metric: Metric) -> Option<f64> {
    let found = samples.iter().find(|sample| sample.metric == metric && sample.worker.is_none());
    found.map(|sample| sample.value)
}

/// Fraction of the worker time that the I/O loop itself used: load generator overhead per operation
/// over worker time per operation. `None` if not measured, and for paced operations, whose workers
/// have idle time.
fn generator_share(phase: &Phase, result: &PhaseResult, generator: Option<f64>) -> Option<Ratio> {
    let Work::Stream(stream) = &phase.work else { return None };
    let time = sum(result, |worker| worker.loop_time);
    match (stream.pace, result.ops().0) {
        (Pace::Free, 1..) if time.0 > 0 => {
            Some(Ratio(generator? * float(result.ops().0) / nanos(time)))
        }
        (
            Pace::Free
            | Pace::Think { .. }
            | Pace::Limit(_)
            | Pace::Open { .. }
            | Pace::OpenByDirection { .. },
            _,
        ) => None,
    }
}

/// Ratio of all operations to the counted operations, at least 1. CPU time, context switches, and
/// device counters also cover the ramp time and the time after a stonewall (the end of counting
/// when the first worker finishes). The rate of operations in these times is assumed to equal the
/// counted rate.
fn beyond_counting(phase: &Phase, result: &PhaseResult) -> f64 {
    // The time of a command after its last program is not that of more operations.
    if matches!(phase.work, Work::Command(_)) {
        return 1.0;
    }
    let ramp = ramp(phase);
    let counted = nanos(sum(result, |worker| worker.loop_time));
    let rest = nanos(sum(result, |worker| worker.uncounted_time + ramp));
    if counted > 0.0 { 1.0 + rest / counted } else { 1.0 }
}

/// Time before counting starts.
fn ramp(phase: &Phase) -> Nanos {
    phase.work.time_limit().map(|limit| limit.ramp).unwrap_or_default()
}

/// Reports whether the workers of a phase both read and wrote, according to `amount`.
fn mixed(result: &PhaseResult, amount: impl Fn(&Moved) -> u64) -> bool {
    let workers = &result.workers;
    workers.iter().any(|worker| amount(&worker.read) > 0)
        && workers.iter().any(|worker| amount(&worker.written) > 0)
}

/// Elapsed time for CPU utilizations. For a task, it excludes the final sync, as does the CPU time
/// of a task.
fn elapsed(phase: &Phase, result: &PhaseResult) -> Nanos {
    match phase.work.task() {
        Some(_) => window(result.workers.iter(), |worker| worker.loop_time),
        None => result.wall_time,
    }
}

/// Direction of a stream; `None` for other work.
fn direction(phase: &Phase) -> Option<Direction> {
    phase.work.stream().map(|stream| stream.direction)
}

struct PhaseSamples<'a> {
    phase: &'a Phase,
    clock: Clock,
    /// Idle time to subtract from the time of the whole phase.
    idle: Nanos,
    samples: Vec<Sample>,
}

impl PhaseSamples<'_> {
    fn add(&mut self, metric: Metric, value: f64) {
        self.samples.push(Sample { phase: self.phase.name.clone(), metric, worker: None, value });
    }
}

/// Time from the start of the first worker to the end of the last worker. `length` is the time that
/// a worker takes.
fn window<'a>(
    workers: impl Iterator<Item = &'a WorkerResult> + Clone,
    length: impl Fn(&WorkerResult) -> Nanos,
) -> Nanos {
    let start = workers.clone().map(|worker| worker.started).min().unwrap_or_default();
    let end = workers.map(|worker| worker.started + length(worker)).max();
    end.unwrap_or_default() - start
}

/// Time until all data written by a worker was synced, including data written after counting
/// stopped.
fn until_durable(worker: &WorkerResult) -> Nanos {
    worker.loop_time + worker.uncounted_time + worker.end_sync_time
}

fn sum(result: &PhaseResult, time: impl Fn(&WorkerResult) -> Nanos) -> Nanos {
    result.workers.iter().map(time).fold(Nanos(0), |sum, time| sum + time)
}

fn nanos(time: Nanos) -> f64 {
    float(time.0)
}

#[expect(clippy::cast_precision_loss, reason = "relative error 1e-16 above 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

/// Rounds a size or a time down to an integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "below 2^53, and not negative"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
