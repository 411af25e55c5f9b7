//! How far each cell is: repeats kept, and the values its stopping rule looks at.

use model::{
    phase::Role,
    record::{Outcome, PhaseInfo, RunRecord, TrialRecord},
};

/// One cell's repeats so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CellProgress {
    /// Trials kept, measured or failed.
    pub(super) repeats: u32,
    /// For each measured phase, the primary metric's values in the order of repeats.
    pub(super) values: Vec<Vec<f64>>,
}

impl CellProgress {
    /// Trials whose values are all there.
    pub(super) fn measured(&self) -> usize {
        self.values.iter().map(Vec::len).min().unwrap_or(0)
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
