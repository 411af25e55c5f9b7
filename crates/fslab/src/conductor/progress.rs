//! How far each cell is: repeats kept, and the values its stopping rule looks at.

use std::collections::BTreeSet;

use model::{
    Nanos, Warning,
    phase::Role,
    record::{Outcome, PhaseInfo, RunRecord, TrialRecord},
};

use super::invalid;

/// One cell's repeats so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CellProgress {
    /// Repeats that are over: their trial was measured or failed.
    pub(super) repeats: u32,
    /// Trials that were measured, whatever values they gave.
    done: usize,
    /// Trials kept, whatever became of them.
    pub(super) trials: u32,
    /// Those of them that were invalid and are made again.
    pub(super) invalid: u32,
    /// Those of them that belong to the repeat to come.
    pub(super) attempts: u32,
    /// Trials that were spoiled and count all the same.
    pub(super) kept: u32,
    /// How long all trials took together.
    pub(super) elapsed: Nanos,
    /// Settings that read back otherwise in the first trial that was measured.
    pub(super) usual: Option<BTreeSet<String>>,
    /// For each measured phase, the primary metric's values in the order of repeats.
    values: Vec<Vec<f64>>,
    /// For each measured phase, what the filesystem lacks that it is about.
    lacking: Vec<Option<String>>,
}

impl CellProgress {
    /// Trials that were measured; none where the filesystem lacks what every phase is about.
    pub(super) fn measured(&self) -> usize {
        if self.lacks_all().is_some() { 0 } else { self.done }
    }

    /// The values of those phases that the filesystem can have and that gave any.
    pub(super) fn values(&self) -> Vec<Vec<f64>> {
        self.had().filter(|values| !values.is_empty()).cloned().collect()
    }

    /// The phases that the filesystem can have and that gave fewer values than trials were
    /// measured, each with how many it gave.
    pub(super) fn short<'a>(&'a self, phases: &'a [PhaseInfo]) -> Vec<(&'a str, usize)> {
        let given = self.by_phase(phases).map(|(phase, values)| (phase, values.len()));
        given.filter(|(_, values)| *values < self.done).collect()
    }

    /// The same with the names of the phases.
    pub(super) fn by_phase<'a>(
        &'a self,
        phases: &'a [PhaseInfo],
    ) -> impl Iterator<Item = (&'a str, &'a Vec<f64>)> {
        let names = measures(phases).map(|phase| phase.name.as_str());
        let all = names.zip(&self.values).zip(&self.lacking);
        all.filter(|(_, lacking)| lacking.is_none()).map(|(named, _)| named)
    }

    /// What the filesystem lacks, where that leaves no phase at all.
    pub(super) fn lacks_all(&self) -> Option<String> {
        let all: Option<Vec<&str>> = self.lacking.iter().map(Option::as_deref).collect();
        let mut all = all.filter(|all| !all.is_empty())?;
        all.dedup();
        Some(all.join(", "))
    }

    fn had(&self) -> impl Iterator<Item = &Vec<f64>> {
        let phases = self.values.iter().zip(&self.lacking);
        phases.filter(|(_, lacking)| lacking.is_none()).map(|(values, _)| values)
    }

    /// Counts a trial.
    pub(super) fn add(&mut self, phases: &[PhaseInfo], trial: &TrialRecord) {
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
                self.repeats = self.repeats.max(trial.repeat + 1);
            }
        }
        if trial.outcome != Outcome::Measured {
            return;
        }
        self.done += 1;
        let spoiled = |(_, warning): &(_, Warning)| matches!(warning, Warning::Unstable { .. });
        self.kept += u32::from(trial.warnings.iter().any(spoiled));
        self.usual.get_or_insert_with(|| invalid::misread(trial));
        for (index, phase) in measures(phases).enumerate() {
            if self.values.len() <= index {
                self.values.push(Vec::new());
                self.lacking.push(None);
            }
            let here = |(at, _): &&(Option<String>, Warning)| at.as_ref() == Some(&phase.name);
            let lacks = trial.warnings.iter().filter(here).find_map(|(_, warning)| {
                let Warning::Lacks { what, .. } = warning else { return None };
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

/// Where a stored run stands.
pub(super) fn of(record: &RunRecord) -> Vec<CellProgress> {
    let mut progress = vec![CellProgress::default(); record.cells.len()];
    for trial in &record.trials {
        progress[trial.cell].add(&record.cells[trial.cell].phases, trial);
    }
    progress
}
