//! The samples of a run by cell, phase and metric, looked up once for each number of the report.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Clock, Evidence, Metric, RunRecord, Sample, Warning,
    record::{Outcome, TrialRecord},
    warning::Level,
};
use rayon::prelude::*;

/// Samples of all workers together, of measured trials, by repeat.
pub(crate) struct Pool<'a> {
    /// The run that they are of.
    pub(crate) record: &'a RunRecord,
    /// What its clock counted.
    pub(crate) clock: Clock,
    /// By cell and phase.
    values: Vec<BTreeMap<&'a str, Measured>>,
    trials: Vec<Vec<&'a TrialRecord>>,
}

/// The values of each metric of a phase, in the order of repeats.
type Measured = BTreeMap<Metric, Vec<f64>>;

impl<'a> Pool<'a> {
    pub(crate) fn new(record: &'a RunRecord) -> Self {
        let mut trials: Vec<Vec<&TrialRecord>> = vec![Vec::new(); record.cells.len()];
        for trial in &record.trials {
            if let Some(of_cell) = trials.get_mut(trial.cell) {
                of_cell.push(trial);
            }
        }
        let of_cell = |of_cell: &mut Vec<&'a TrialRecord>| {
            of_cell.sort_by_key(|trial| trial.repeat);
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

    /// The values of a metric over the measured trials of a cell, in the order of repeats.
    pub(crate) fn values(&self, cell: usize, phase: &str, metric: Metric) -> &[f64] {
        let values = self.values[cell].get(phase).and_then(|phase| phase.get(&metric));
        values.map_or(&[], Vec::as_slice)
    }

    /// Each metric of a phase that was measured in a cell with its values, in the order of metrics.
    pub(crate) fn metrics(
        &self,
        cell: usize,
        phase: &str,
    ) -> impl Iterator<Item = (Metric, &[f64])> {
        let metrics = self.values[cell].get(phase).into_iter().flatten();
        metrics.map(|(metric, values)| (*metric, values.as_slice()))
    }

    /// The same with the repeat each is from. One block of a run is one repeat of every open cell,
    /// so repeats are blocks.
    pub(crate) fn repeats(&self, cell: usize, phase: &str, metric: Metric) -> Vec<(u32, f64)> {
        let own = |sample: &&Sample| {
            sample.phase == phase && sample.metric == metric && sample.worker.is_none()
        };
        let of_trial = |trial: &'a TrialRecord| {
            trial.samples.iter().filter(own).map(|sample| (trial.repeat, sample.value))
        };
        self.measured(cell).flat_map(of_trial).collect()
    }

    /// The measured trials of a cell.
    pub(crate) fn measured(&self, cell: usize) -> impl Iterator<Item = &'a TrialRecord> + '_ {
        self.trials[cell].iter().copied().filter(|trial| trial.outcome == Outcome::Measured)
    }

    /// The invalid trials of a cell.
    pub(crate) fn invalid(&self, cell: usize) -> impl Iterator<Item = &'a TrialRecord> + '_ {
        let invalid = |trial: &&TrialRecord| matches!(trial.outcome, Outcome::Invalid { .. });
        self.trials[cell].iter().copied().filter(invalid)
    }

    /// What the machine did during a phase or step, over the measured trials of a cell.
    pub(crate) fn evidence(&self, cell: usize, phase: &str) -> impl Iterator<Item = &'a Evidence> {
        let all = self.measured(cell).flat_map(|trial| &trial.evidence);
        all.filter(move |(at, _)| at == phase).map(|(_, evidence)| evidence)
    }

    /// All trials of a cell but the invalid ones, and the reasons of those that failed.
    pub(crate) fn failures(&self, cell: usize) -> (usize, Vec<&'a str>) {
        let reasons = self.trials[cell].iter().filter_map(|trial| match &trial.outcome {
            Outcome::Failed { reason } => Some(reason.as_str()),
            Outcome::Measured | Outcome::Invalid { .. } => None,
        });
        let valid = |trial: &&&TrialRecord| !matches!(trial.outcome, Outcome::Invalid { .. });
        (self.trials[cell].iter().filter(valid).count(), reasons.collect())
    }

    /// Warnings of a phase of a cell over its measured trials; those of a whole trial count for
    /// each of its phases. How many trials were spoiled is not among them: each trial tells what
    /// was known then, the whole is told of the cell.
    pub(crate) fn warnings(&self, cell: usize, phase: &str) -> Vec<&'a Warning> {
        let of_trial = |trial: &'a TrialRecord| {
            trial.warnings.iter().filter(move |(at, _)| at.as_deref().is_none_or(|at| at == phase))
        };
        let all = self.measured(cell).flat_map(of_trial).map(|(_, warning)| warning);
        all.filter(|warning| !matches!(warning, Warning::Unstable { .. })).collect()
    }
}

/// The codes of warnings that stand at a number, each once, in alphabetical order. What is merely
/// worth knowing does not.
pub(crate) fn codes<'a>(warnings: impl Iterator<Item = &'a Warning>) -> Vec<&'static str> {
    let grave = warnings.filter(|warning| warning.level() > Level::Info);
    grave.map(Warning::code).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The codes of warnings that bar a claim with their cures, each once, in alphabetical order.
pub(crate) fn barring<'a>(
    warnings: impl Iterator<Item = &'a Warning>,
) -> Vec<(&'static str, &'static str)> {
    let grave = warnings.filter(|warning| warning.level() == Level::Block);
    let each: BTreeMap<_, _> = grave.map(|warning| (warning.code(), warning.cure())).collect();
    each.into_iter().collect()
}
