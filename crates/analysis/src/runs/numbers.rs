//! Values of a run by cell, phase, and metric.

use std::collections::BTreeMap;

use model::{
    Metric, RunRecord, Sample,
    metric::Better,
    phase::Role,
    record::{Outcome, TrialRecord},
};

use crate::{aa::Phase, trend::Repetition};

/// Values of measured trials, totals over all workers, in the order of the trials.
pub(super) struct Numbers<'a> {
    values: BTreeMap<(usize, Metric), BTreeMap<&'a str, Vec<Repetition>>>,
    /// Trials of each cell.
    pub(super) trials: Vec<Vec<&'a TrialRecord>>,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(run: &'a RunRecord) -> Self {
        let mut trials = vec![Vec::new(); run.cells.len()];
        let mut values: BTreeMap<_, BTreeMap<&str, Vec<Repetition>>> = BTreeMap::new();
        for trial in &run.trials {
            let Some(own) = trials.get_mut(trial.cell) else { continue };
            own.push(trial);
            if trial.outcome != Outcome::Measured {
                continue;
            }
            for sample in trial.samples.iter().filter(|sample| sample.worker.is_none()) {
                let Sample { phase, metric, value, .. } = sample;
                let repetition = Repetition { block: Some(trial.repetition), value: *value };
                let own = values.entry((trial.cell, *metric)).or_default();
                own.entry(phase.as_str()).or_default().push(repetition);
            }
        }
        Self { values, trials }
    }

    /// Repetitions of a cell; empty if there are none.
    pub(super) fn repetitions(&self, cell: usize, phase: &str, metric: Metric) -> &[Repetition] {
        let own = self.values.get(&(cell, metric)).and_then(|phases| phases.get(phase));
        own.map_or(&[], Vec::as_slice)
    }

    /// Metrics of a phase that have a direction.
    pub(super) fn metrics(&self, cell: usize, phase: &str) -> Vec<Metric> {
        let own =
            self.values.iter().filter(|(key, phases)| key.0 == cell && phases.contains_key(phase));
        own.map(|(key, _)| key.1).filter(|m| m.spec().better != Better::Neither).collect()
    }
}

/// Repetitions without their blocks: equal block numbers of different runs are different blocks.
pub(super) fn apart(repetitions: &[Repetition]) -> Vec<Repetition> {
    repetitions.iter().map(|repetition| Repetition { block: None, ..*repetition }).collect()
}

/// Values without blocks.
pub(super) fn values(repetitions: &[Repetition]) -> Vec<f64> {
    repetitions.iter().map(|repetition| repetition.value).collect()
}

/// Values of each cell that has an A/A duplicate and of the duplicate, by phase.
pub(super) fn aa_duplicates(run: &RunRecord) -> Vec<Vec<Phase>> {
    let numbers = Numbers::new(run);
    let mut aa_duplicates = Vec::new();
    for (aa_duplicate, record) in
        run.cells.iter().enumerate().filter(|(_, record)| record.cell.aa_duplicate)
    {
        let same = model::Cell { aa_duplicate: false, ..record.cell.clone() };
        let Some(own) = run.cells.iter().position(|record| record.cell == same) else { continue };
        let mut phases = Vec::new();
        for phase in record.phases.iter().filter(|phase| phase.role == Role::Measure) {
            let of = |cell| numbers.repetitions(cell, &phase.name, phase.primary).to_vec();
            let better = phase.primary.spec().better;
            if better != Better::Neither {
                phases.push((of(own), of(aa_duplicate), better));
            }
        }
        aa_duplicates.push(phases);
    }
    aa_duplicates
}
