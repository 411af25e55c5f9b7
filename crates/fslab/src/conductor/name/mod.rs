//! The one place where results become samples: names, units and the arithmetic between counters and
//! rates.
//!
//! A phase with its [`PhaseResult`] and the [`Evidence`] from around it enters; samples,
//! histograms, and warnings leave. Nothing is measured here, and nothing summarized over repeats.

mod costs;
mod rates;
#[cfg(test)]
mod tests;
mod times;
mod warnings;

use model::{
    Metric, Nanos, Phase, PhaseResult, Ratio, Sample,
    phase::{Bound, Direction, Pace, Work, WorkerResult},
};
use rig::DeviceCounters;

pub(super) use times::histograms;
pub(super) use warnings::warnings;

/// What is known of a phase beside its result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// What the devices did meanwhile; `None` where they cannot be told.
    pub(super) device: Option<DeviceCounters>,
    /// What reading the clock costs.
    pub(super) clock_cost: Nanos,
    /// Nanoseconds that the loop itself takes for an operation; `None` where that was not measured.
    pub(super) generator: Option<f64>,
}

/// The samples of a measured phase.
pub(super) fn samples(phase: &Phase, result: &PhaseResult, evidence: &Evidence) -> Vec<Sample> {
    let mut named = Named { phase, samples: Vec::new() };
    named.add(Metric::Elapsed, nanos(result.wall_time));
    if let Some(device) = evidence.device {
        named.add(Metric::DeviceRead, float(device.read.0));
        named.add(Metric::DeviceWritten, float(device.written.0));
    }
    if !result.workers.is_empty() {
        rates::add(&mut named, result);
        times::add(&mut named, result);
        costs::add(&mut named, result, evidence);
    }
    named.samples
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
    let ramp = match &phase.work {
        Work::Stream(stream) => match stream.bound {
            Bound::Time { ramp, .. } => ramp,
            Bound::Once | Bound::Ops(_) => Nanos(0),
        },
        Work::Tree(_) | Work::Remove { .. } => Nanos(0),
    };
    let counted = nanos(sum(result, |worker| worker.loop_time));
    let rest = nanos(sum(result, |worker| worker.uncounted_time + ramp));
    if counted > 0.0 { 1.0 + rest / counted } else { 1.0 }
}

/// Whether workers of this phase read or write, as far as what they did tells.
fn mixed(result: &PhaseResult) -> bool {
    let any = |moved: fn(&WorkerResult) -> u64| result.workers.iter().any(|w| moved(w) > 0);
    any(|worker| worker.read.ops.0) && any(|worker| worker.written.ops.0)
}

/// Who reads and who writes; a tree does whatever its steps say.
fn direction(phase: &Phase) -> Option<Direction> {
    match &phase.work {
        Work::Stream(stream) => Some(stream.direction),
        Work::Tree(_) | Work::Remove { .. } => None,
    }
}

struct Named<'a> {
    phase: &'a Phase,
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
