//! How far each cell is: repeats kept, and the values its stopping rule looks at.

use model::{
    Warning,
    phase::Role,
    record::{Outcome, PhaseInfo, RunRecord, TrialRecord},
};

/// One cell's repeats so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CellProgress {
    /// Trials kept, measured or failed.
    pub(super) repeats: u32,
    /// For each measured phase, the primary metric's values in the order of repeats.
    values: Vec<Vec<f64>>,
    /// For each measured phase, what the filesystem lacks that it is about.
    lacking: Vec<Option<String>>,
}

impl CellProgress {
    /// Trials whose values are all there.
    pub(super) fn measured(&self) -> usize {
        self.had().map(Vec::len).min().unwrap_or(0)
    }

    /// The values of those phases that the filesystem can have.
    pub(super) fn values(&self) -> Vec<Vec<f64>> {
        self.had().cloned().collect()
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
        self.repeats = self.repeats.max(trial.repeat + 1);
        if trial.outcome != Outcome::Measured {
            return;
        }
        let measured = phases.iter().filter(|phase| phase.role == Role::Measure);
        for (index, phase) in measured.enumerate() {
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

/// Where a stored run stands.
pub(super) fn of(record: &RunRecord) -> Vec<CellProgress> {
    let mut progress = vec![CellProgress::default(); record.cells.len()];
    for trial in &record.trials {
        progress[trial.cell].add(&record.cells[trial.cell].phases, trial);
    }
    progress
}
