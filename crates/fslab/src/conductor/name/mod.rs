//! The one place where results become samples: names, units and the arithmetic between counters and
//! rates.
//!
//! A phase with its [`PhaseResult`] and what is [`Known`] beside it enters; samples, histograms,
//! and warnings leave. Nothing is measured here, and nothing summarized over repeats.

mod costs;
mod evidence;
mod lifecycle;
mod moved;
mod rates;
#[cfg(test)]
mod tests;
mod thresholds;
mod times;
mod warnings;

use model::{
    Clock, Evidence, Metric, Nanos, Phase, PhaseResult, Profile, Ratio, Sample,
    phase::{Bound, Direction, Moved, Pace, Replay, Stream, Until, Work, WorkerResult},
};

use self::thresholds::IDLE;
pub(super) use lifecycle::{looking, occupied, offered, step, step_warnings};
pub(super) use times::histograms;
pub(super) use warnings::{across, warnings};

/// What holds for all phases of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Always {
    /// What the clock counts.
    pub(super) clock: Clock,
    /// What reading the clock costs.
    pub(super) clock_cost: Nanos,
    /// Bytes per second that one processor copies from memory; `None` where that was not measured.
    pub(super) memory_rate: Option<f64>,
    /// Whether the plan limits the memory of the workload, so that waiting for it is meant.
    pub(super) memory_limited: bool,
    /// How sure the run wants to be.
    pub(super) profile: Profile,
}

/// What is known of a phase beside its result.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// What holds for all phases of the run.
    pub(super) always: Always,
    /// What the machine did meanwhile.
    pub(super) evidence: Evidence,
    /// Nanoseconds that the loop itself takes for an operation; `None` where that was not measured.
    pub(super) generator: Option<f64>,
}

/// The samples of a measured phase. Where the clock counts instructions none of them is of time.
pub(super) fn samples(phase: &Phase, result: &PhaseResult, known: &Known) -> Vec<Sample> {
    let clock = known.always.clock;
    let idle = idle(clock, &known.evidence);
    let mut named = Named { phase, clock, idle, samples: Vec::new() };
    rates::elapsed(&mut named, result);
    evidence::add(&mut named, result, &known.evidence);
    if !result.workers.is_empty() {
        rates::add(&mut named, result);
        times::add(&mut named, result);
        costs::add(&mut named, result, known);
        moved::add(&mut named, result, &known.evidence);
    }
    if let Some(rate) = ticked(result) {
        named.add(Metric::ThroughputTick, rate);
    }
    let parts = share(idle, known.evidence.window) <= IDLE;
    let told = |sample: &Sample| parts || !OF_PARTS.contains(&sample.metric);
    named.samples.retain(told);
    kept(named.samples, clock)
}

/// Times of parts of a phase, of which it is not known how much of it the processor was idle.
const OF_PARTS: [Metric; 10] = [
    Metric::LatencyMean,
    Metric::LatencyP50,
    Metric::LatencyP90,
    Metric::LatencyP99,
    Metric::LatencyP999,
    Metric::LatencyP9999,
    Metric::LatencyMax,
    Metric::LoopTime,
    Metric::FlushTime,
    Metric::CloseTime,
];

/// How long the processor had nothing to do within a window where a clock counts instructions: it
/// jumps then, and no instruction is executed. What tasks have used is exact there, and interrupts
/// count as those of the task that they interrupt unless the kernel accounts them apart. By other
/// clocks, and where it is not known, nothing.
fn idle(clock: Clock, evidence: &Evidence) -> Nanos {
    match &evidence.cpu {
        Some(cpu) if clock == Clock::Instructions && cpu.host.processors == 1 => {
            evidence.window - cpu.known() - cpu.host.interrupts.unwrap_or_default()
        }
        Some(_) | None => Nanos(0),
    }
}

/// A time as a part of another; of none, nothing.
fn share(part: Nanos, whole: Nanos) -> Ratio {
    Ratio(if whole.0 > 0 { nanos(part) / nanos(whole) } else { 0.0 })
}

/// Samples under the names under which they are kept; without those that mean nothing by this
/// clock.
fn kept(samples: Vec<Sample>, clock: Clock) -> Vec<Sample> {
    let kept = |sample: Sample| Some(Sample { metric: clock.keeps(sample.metric)?, ..sample });
    samples.into_iter().filter_map(kept).collect()
}

/// Bytes a second until the last whole second before the end, where workers keep that.
fn ticked(result: &PhaseResult) -> Option<f64> {
    let ticks = result.workers.iter().map(|worker| worker.ticked).collect::<Option<Vec<_>>>()?;
    let elapsed = ticks.iter().map(|tick| tick.elapsed).max().filter(|time| time.0 > 0)?;
    let bytes: u64 = ticks.iter().map(|tick| tick.bytes.0).sum();
    Some(float(bytes) * 1e9 / nanos(elapsed))
}

/// The value of a metric over all workers.
pub(super) fn value(samples: &[Sample], metric: Metric) -> Option<f64> {
    let found = samples.iter().find(|sample| sample.metric == metric && sample.worker.is_none());
    found.map(|sample| sample.value)
}

/// Part of the workers' time that the loop itself took: its cost for an operation over the workers'
/// time for an operation. `None` where that was not measured, and where operations are paced, since
/// workers then have time to spare.
fn generator_share(phase: &Phase, result: &PhaseResult, generator: Option<f64>) -> Option<Ratio> {
    let Work::Stream(stream) = &phase.work else { return None };
    let time = sum(result, |worker| worker.loop_time);
    match (stream.pace, result.ops().0) {
        (Pace::Free, 1..) if time.0 > 0 => {
            Some(Ratio(generator? * float(result.ops().0) / nanos(time)))
        }
        (Pace::Free | Pace::Think { .. } | Pace::Limit(_) | Pace::Open { .. }, _) => None,
    }
}

/// How much more the workers did than what was counted, as a factor of at least 1: CPU time,
/// context switches, and device counters cover the ramp-up and what followed a stonewall as well.
/// Work is taken to be as frequent there as in the counted part.
fn beyond_counting(phase: &Phase, result: &PhaseResult) -> f64 {
    let ramp = ramp(phase);
    let counted = nanos(sum(result, |worker| worker.loop_time));
    let rest = nanos(sum(result, |worker| worker.uncounted_time + ramp));
    if counted > 0.0 { 1.0 + rest / counted } else { 1.0 }
}

/// What comes before the counting.
fn ramp(phase: &Phase) -> Nanos {
    match &phase.work {
        Work::Stream(Stream { bound: Bound::Time { ramp, .. }, .. })
        | Work::Replay(Replay { until: Until::Time { ramp, .. }, .. }) => *ramp,
        Work::Stream(_)
        | Work::Tree(_)
        | Work::Mix(_)
        | Work::Replay(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Remove { .. } => Nanos(0),
    }
}

/// Whether workers of this phase both read and wrote, by the amount named.
fn mixed(result: &PhaseResult, amount: impl Fn(&Moved) -> u64) -> bool {
    let workers = &result.workers;
    workers.iter().any(|worker| amount(&worker.read) > 0)
        && workers.iter().any(|worker| amount(&worker.written) > 0)
}

/// How long the work took as the shares of its CPU time are told over it: of a task without the
/// flush that follows, which its CPU time does not cover either.
fn elapsed(phase: &Phase, result: &PhaseResult) -> Nanos {
    match &phase.work {
        Work::Task(_) => window(result.workers.iter(), |worker| worker.loop_time),
        Work::Stream(_)
        | Work::Tree(_)
        | Work::Mix(_)
        | Work::Replay(_)
        | Work::Layout(_)
        | Work::Remove { .. } => result.wall_time,
    }
}

/// Who reads and who writes; a tree does whatever its steps say.
fn direction(phase: &Phase) -> Option<Direction> {
    match &phase.work {
        Work::Stream(stream) => Some(stream.direction),
        Work::Tree(_)
        | Work::Mix(_)
        | Work::Replay(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Remove { .. } => None,
    }
}

struct Named<'a> {
    phase: &'a Phase,
    clock: Clock,
    /// What is to be taken off the time of the whole phase.
    idle: Nanos,
    samples: Vec<Sample>,
}

impl Named<'_> {
    fn add(&mut self, metric: Metric, value: f64) {
        self.samples.push(Sample { phase: self.phase.name.clone(), metric, worker: None, value });
    }
}

/// From the first worker's start to the last worker's end.
fn window<'a>(
    workers: impl Iterator<Item = &'a WorkerResult> + Clone,
    length: impl Fn(&WorkerResult) -> Nanos,
) -> Nanos {
    let start = workers.clone().map(|worker| worker.started).min().unwrap_or_default();
    let end = workers.map(|worker| worker.started + length(worker)).max();
    end.unwrap_or_default() - start
}

/// Until all that a worker wrote was flushed, what it wrote after the counting had stopped
/// included.
fn until_durable(worker: &WorkerResult) -> Nanos {
    worker.loop_time + worker.uncounted_time + worker.flush_time
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

/// A size or a time again, rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "below 2^53, and not negative"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
