//! Index of the samples of a run by cell, phase, and metric.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Clock, Metric, RunRecord, SystemActivity, Warning,
    phase::{GROUP, is_later_group_of},
    record::{Outcome, TrialRecord},
    sample::lifecycle,
    warning::Severity,
};
use rayon::prelude::*;

use crate::samples::value;

/// Trials of a run by cell, and the samples of measured trials over all workers, in the order of
/// repetitions.
pub(crate) struct SampleIndex<'a> {
    pub(crate) record: &'a RunRecord,
    /// Clock of the run.
    pub(crate) clock: Clock,
    /// Values by cell and phase.
    values: Vec<BTreeMap<&'a str, Measured>>,
    trials: Vec<Vec<&'a TrialRecord>>,
}

/// Values of each metric of a phase, in the order of repetitions.
type Measured = BTreeMap<Metric, Vec<f64>>;

impl<'a> SampleIndex<'a> {
    pub(crate) fn new(record: &'a RunRecord) -> Self {
        let mut trials: Vec<Vec<&TrialRecord>> = vec![Vec::new(); record.cells.len()];
        for trial in &record.trials {
            if let Some(of_cell) = trials.get_mut(trial.cell) {
                of_cell.push(trial);
            }
        }
        let of_cell = |of_cell: &mut Vec<&'a TrialRecord>| {
            of_cell.sort_by_key(|trial| trial.repetition);
            let mut phases: BTreeMap<&str, Measured> = BTreeMap::new();
            let measured = of_cell.iter().filter(|trial| trial.outcome == Outcome::Measured);
            for sample in measured.flat_map(|trial| &trial.samples) {
                if sample.worker.is_none() {
                    let phase = phases.entry(&sample.phase).or_default();
                    phase.entry(sample.metric).or_default().push(sample.value);
                }
            }
            phases
        };
        let values = trials.par_iter_mut().map(of_cell).collect();
        Self { record, clock: Clock::of(&record.environment), values, trials }
    }

    /// Values of a metric over the measured trials of a cell, in the order of repetitions.
    pub(crate) fn values(&self, cell: usize, phase: &str, metric: Metric) -> &[f64] {
        let values = self.values[cell].get(phase).and_then(|phase| phase.get(&metric));
        values.map_or(&[], Vec::as_slice)
    }

    /// Metrics of a phase of a cell with their values, in the order of [`Metric`].
    pub(crate) fn metrics(
        &self,
        cell: usize,
        phase: &str,
    ) -> impl Iterator<Item = (Metric, &[f64])> {
        let metrics = self.values[cell].get(phase).into_iter().flatten();
        metrics.map(|(metric, values)| (*metric, values.as_slice()))
    }

    /// Like [`values`](Self::values), with the repetition of each. A round is one repetition of
    /// every open cell, so repetitions identify rounds.
    pub(crate) fn repetitions(&self, cell: usize, phase: &str, metric: Metric) -> Vec<(u32, f64)> {
        let of_trial = |trial: &TrialRecord| Some((trial.repetition, value(trial, phase, metric)?));
        self.measured(cell).filter_map(of_trial).collect()
    }

    /// Measured trials of a cell.
    pub(crate) fn measured(&self, cell: usize) -> impl Iterator<Item = &'a TrialRecord> + '_ {
        self.trials[cell].iter().copied().filter(|trial| trial.outcome == Outcome::Measured)
    }

    /// Invalid trials of a cell.
    pub(crate) fn invalid(&self, cell: usize) -> impl Iterator<Item = &'a TrialRecord> + '_ {
        let invalid = |trial: &&TrialRecord| matches!(trial.outcome, Outcome::Invalid { .. });
        self.trials[cell].iter().copied().filter(invalid)
    }

    /// System activity during a phase or step, over the measured trials of a cell. For a phase that
    /// started together with others, it is the activity of all of them.
    pub(crate) fn activity(
        &self,
        cell: usize,
        phase: &str,
    ) -> impl Iterator<Item = &'a SystemActivity> {
        let is_step = lifecycle::ALL.contains(&phase);
        let of = |trial: &'a TrialRecord| {
            let named = |is: &dyn Fn(&str) -> bool| {
                trial.activity.iter().find(|(name, _)| is(name)).map(|(_, activity)| activity)
            };
            let own = named(&|name| name == phase);
            let group = || {
                let later = named(&|name| is_later_group_of(name, phase));
                later.or_else(|| named(&|name| name == GROUP))
            };
            own.or_else(|| if is_step { None } else { group() })
        };
        self.measured(cell).filter_map(of).collect::<Vec<_>>().into_iter()
    }

    /// Number of trials of a cell except invalid ones, and the reasons of the failed ones.
    pub(crate) fn failures(&self, cell: usize) -> (usize, Vec<&'a str>) {
        let reasons = self.trials[cell].iter().filter_map(|trial| match &trial.outcome {
            Outcome::Failed { reason } => Some(reason.as_str()),
            Outcome::Measured | Outcome::Invalid { .. } => None,
        });
        let valid = |trial: &&&TrialRecord| !matches!(trial.outcome, Outcome::Invalid { .. });
        (self.trials[cell].iter().filter(valid).count(), reasons.collect())
    }

    /// Warnings of a phase over the measured trials of a cell. Warnings of a whole trial apply to
    /// all its phases. Warnings about many invalid trials are omitted: those of single trials are
    /// outdated, and [`super::points`] derives one for the cell.
    pub(crate) fn warnings(&self, cell: usize, phase: &str) -> Vec<&'a Warning> {
        let of_trial = |trial: &'a TrialRecord| {
            trial.warnings.iter().filter(move |(at, _)| at.as_deref().is_none_or(|at| at == phase))
        };
        let all = self.measured(cell).flat_map(of_trial).map(|(_, warning)| warning);
        all.filter(|warning| !matches!(warning, Warning::ManyInvalidTrials { .. })).collect()
    }
}

/// Codes of the warnings shown next to a number: sorted, without duplicates, and without severity
/// info.
pub(crate) fn codes<'a>(warnings: impl Iterator<Item = &'a Warning>) -> Vec<&'static str> {
    let shown = warnings.filter(|warning| warning.severity() > Severity::Info);
    shown.map(Warning::code).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Codes and hints of the blocking warnings, sorted, without duplicates.
pub(crate) fn barring<'a>(
    warnings: impl Iterator<Item = &'a Warning>,
) -> Vec<(&'static str, &'static str)> {
    let blocking = warnings.filter(|warning| warning.severity() == Severity::Blocking);
    let each: BTreeMap<_, _> = blocking.map(|warning| (warning.code(), warning.hint())).collect();
    each.into_iter().collect()
}
