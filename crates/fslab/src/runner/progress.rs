//! Progress of each cell: stored repetitions, and the values that the stopping rule evaluates.

use std::collections::BTreeSet;

use model::{
    Nanos, Warning,
    phase::Role,
    record::{Outcome, PhaseInfo, RunRecord, TrialRecord},
};

use super::invalid;

/// Progress of one cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CellProgress {
    /// Completed repetitions: the trial was measured or failed.
    pub(crate) repetitions: u32,
    /// Measured trials, with or without values.
    done: usize,
    /// Stored trials of any outcome.
    pub(super) trials: u32,
    /// Invalid trials that were rerun.
    pub(super) invalid: u32,
    /// Invalid trials of the repetition in progress.
    pub(super) attempts: u32,
    /// Trials with a disturbance that count nevertheless.
    pub(super) kept: u32,
    /// Total duration of all trials.
    pub(super) elapsed: Nanos,
    /// Settings that were not applied in the first measured trial.
    pub(super) usual: Option<BTreeSet<String>>,
    /// Values of the primary metric of each measured phase, in the order of repetitions.
    values: Vec<Vec<f64>>,
    /// For each measured phase, the feature that the filesystem does not support.
    lacking: Vec<Option<String>>,
}

impl CellProgress {
    /// Number of measured trials; 0 if the filesystem supports none of the phases.
    pub(super) fn measured(&self) -> usize {
        if self.unsupported_feature().is_some() { 0 } else { self.done }
    }

    /// Values of the supported phases that have any.
    pub(super) fn values(&self) -> Vec<Vec<f64>> {
        self.had().filter(|values| !values.is_empty()).cloned().collect()
    }

    /// Supported phases with fewer values than measured trials, each with the number of its values.
    pub(super) fn short<'a>(&'a self, phases: &'a [PhaseInfo]) -> Vec<(&'a str, usize)> {
        let given = self.by_phase(phases).map(|(phase, values)| (phase, values.len()));
        given.filter(|(_, values)| *values < self.done).collect()
    }

    /// The values of each supported phase with its name.
    pub(crate) fn by_phase<'a>(
        &'a self,
        phases: &'a [PhaseInfo],
    ) -> impl Iterator<Item = (&'a str, &'a Vec<f64>)> {
        let names = measures(phases).map(|phase| phase.name.as_str());
        let all = names.zip(&self.values).zip(&self.lacking);
        all.filter(|(_, lacking)| lacking.is_none()).map(|(named, _)| named)
    }

    /// Unsupported feature, if no phase is supported.
    pub(super) fn unsupported_feature(&self) -> Option<String> {
        let all: Option<Vec<&str>> = self.lacking.iter().map(Option::as_deref).collect();
        let mut all = all.filter(|all| !all.is_empty())?;
        all.dedup();
        Some(all.join(", "))
    }

    fn had(&self) -> impl Iterator<Item = &Vec<f64>> {
        let phases = self.values.iter().zip(&self.lacking);
        phases.filter(|(_, lacking)| lacking.is_none()).map(|(values, _)| values)
    }

    /// Adds a trial.
    pub(crate) fn add(&mut self, phases: &[PhaseInfo], trial: &TrialRecord) {
        self.trials += 1;
        self.elapsed = self.elapsed + trial.elapsed;
        match trial.outcome {
            Outcome::Invalid { .. } => {
                self.invalid += 1;
                self.attempts += 1;
                return;
            }
            Outcome::Failed { .. } | Outcome::Measured => {
                self.attempts = 0;
                self.repetitions = self.repetitions.max(trial.repetition + 1);
            }
        }
        if trial.outcome != Outcome::Measured {
            return;
        }
        self.done += 1;
        let disturbed =
            |(_, warning): &(_, Warning)| matches!(warning, Warning::ManyInvalidTrials { .. });
        self.kept += u32::from(trial.warnings.iter().any(disturbed));
        self.usual.get_or_insert_with(|| invalid::misread(trial));
        for (index, phase) in measures(phases).enumerate() {
            if self.values.len() <= index {
                self.values.push(Vec::new());
                self.lacking.push(None);
            }
            let here = |(at, _): &&(Option<String>, Warning)| at.as_ref() == Some(&phase.name);
            let lacks = trial.warnings.iter().filter(here).find_map(|(_, warning)| {
                let Warning::NotSupported { what, .. } = warning else { return None };
                Some(what)
            });
            if let Some(what) = lacks {
                self.lacking[index] = Some(what.clone());
                continue;
            }
            let sample = trial.samples.iter().find(|sample| {
                sample.phase == phase.name
                    && sample.metric == phase.primary
                    && sample.worker.is_none()
            });
            self.values[index].extend(sample.map(|sample| sample.value));
        }
    }
}

fn measures(phases: &[PhaseInfo]) -> impl Iterator<Item = &PhaseInfo> {
    phases.iter().filter(|phase| phase.role == Role::Measure)
}

/// Progress of each cell of a stored run.
pub(super) fn of(record: &RunRecord) -> Vec<CellProgress> {
    let mut progress = vec![CellProgress::default(); record.cells.len()];
    for trial in &record.trials {
        progress[trial.cell].add(&record.cells[trial.cell].phases, trial);
    }
    progress
}
