//! Warnings about the results of a measured phase. The thresholds are in [`super::thresholds`].

mod caches;
mod machine;
mod plausible;
mod writes;

use model::{
    Clock, Metric, Phase, PhaseResult, Sample, Warning,
    phase::{Bound, Series, Work, WorkerResult},
};

pub(super) use machine::logged;
pub(in crate::runner) use plausible::across;

use super::{
    Nanos, PhaseContext, float, generator_share,
    thresholds::{CLOCK_SHARE, GENERATOR_SHARE, SHORT},
    until_durable, whole, window,
};

/// Warnings about the results of a measured phase, whose samples are `samples`.
pub(in crate::runner) fn warnings(
    phase: &Phase,
    result: &PhaseResult,
    known: &PhaseContext,
    samples: &[Sample],
) -> Vec<Warning> {
    let mut warnings = all(phase, result, known, samples);
    if known.always.clock == Clock::Instructions {
        warnings.retain(|warning| !is_of_time(warning));
        warnings.extend(machine::idle(known));
    }
    warnings
}

/// Reports whether a warning concerns times only. Instruction counts are exact, even small ones,
/// and other load does not affect them.
fn is_of_time(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::ShortPhase { .. }
            | Warning::SlowClock { .. }
            | Warning::GeneratorBound { .. }
            | Warning::NotSteadyState { .. }
            | Warning::CpuBound { .. }
            | Warning::OtherCpuLoad { .. }
            | Warning::ResourcePressure { .. }
            | Warning::CpuSteal { .. }
            | Warning::CpuThrottled { .. }
            | Warning::DeferredWork { .. }
            | Warning::ImplausibleResult { .. }
    )
}

fn all(
    phase: &Phase,
    result: &PhaseResult,
    known: &PhaseContext,
    samples: &[Sample],
) -> Vec<Warning> {
    let mut warnings = machine::of(phase, result, known, samples);
    if result.workers.is_empty() {
        return warnings;
    }
    let durable = phase.primary() == Metric::DurableThroughput;
    let judged = |worker: &WorkerResult| {
        if durable { until_durable(worker) } else { worker.loop_time }
    };
    let elapsed = window(result.workers.iter(), judged);
    if elapsed < SHORT {
        warnings.push(Warning::ShortPhase { elapsed });
    }
    timing(&mut warnings, phase, result, known);
    let unexpected: u64 = result.workers.iter().map(|worker| worker.unexpected.0).sum();
    let missing: u64 = result.workers.iter().map(|worker| worker.unlogged.0).sum();
    if missing > 0 {
        warnings.push(Warning::LogTruncated { missing });
    }
    let fact = |name| result.facts.get(name).and_then(|text| text.parse::<u64>().ok());
    let copied = fact("trace.copied_clones");
    warnings.extend(copied.map(|count| Warning::ClonesCopied { count }));
    if unexpected > 0 {
        let of = result.ops().0 + fact("trace.not_done").unwrap_or(0);
        warnings.push(Warning::UnexpectedStatus { count: unexpected, of });
    }
    caches::of(&mut warnings, phase, result, known, samples);
    writes::of(&mut warnings, phase, result, known);
    warnings.extend(plausible::of(phase, result, known, samples));
    warnings
}

/// Warnings about the duration of the loop and its steady state.
fn timing(warnings: &mut Vec<Warning>, phase: &Phase, result: &PhaseResult, known: &PhaseContext) {
    let cost = known.always.clock_cost;
    if let Some(median) = result.latencies().operations().quantile(0.5)
        && float(cost.0) > CLOCK_SHARE * float(median.0)
    {
        warnings.push(Warning::SlowClock { cost, median });
    }
    if let (Some(share), Some(nanos)) =
        (generator_share(phase, result, known.generator), known.generator)
        && share > GENERATOR_SHARE
    {
        warnings.push(Warning::GeneratorBound { share, loop_time: Nanos(whole(nanos.round())) });
    }
    if result.steady == Some(false) {
        warnings.push(Warning::SteadyStateNotReached);
    }
    let Work::Stream(stream) = &phase.work else { return };
    if !matches!(stream.bound, Bound::Time { .. }) {
        return;
    }
    let series = Series::merged(result.workers.iter().map(|worker| &worker.series));
    if let Some(drift) = analysis::steady::drift(&series)
        && !drift.within(analysis::steady::limits(known.always.profile))
    {
        warnings.push(Warning::NotSteadyState { range: drift.range, slope: drift.slope });
    }
}
