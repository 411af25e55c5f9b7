//! The values of a run by cell, phase, and metric.

use std::collections::BTreeMap;

use model::{
    Metric, RunRecord, Sample,
    metric::Better,
    phase::Role,
    record::{Outcome, TrialRecord},
};

use crate::{trend::Repeat, twins::Phase};

/// Values of all workers together, of measured trials, in the order the trials were made.
pub(super) struct Numbers<'a> {
    values: BTreeMap<(usize, Metric), BTreeMap<&'a str, Vec<Repeat>>>,
    /// The trials of each cell.
    pub(super) trials: Vec<Vec<&'a TrialRecord>>,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(run: &'a RunRecord) -> Self {
        let mut trials = vec![Vec::new(); run.cells.len()];
        let mut values: BTreeMap<_, BTreeMap<&str, Vec<Repeat>>> = BTreeMap::new();
        for trial in &run.trials {
            let Some(own) = trials.get_mut(trial.cell) else { continue };
            own.push(trial);
            if trial.outcome != Outcome::Measured {
                continue;
            }
            for sample in trial.samples.iter().filter(|sample| sample.worker.is_none()) {
                let Sample { phase, metric, value, .. } = sample;
                let repeat = Repeat { block: Some(trial.repeat), value: *value };
                let own = values.entry((trial.cell, *metric)).or_default();
                own.entry(phase.as_str()).or_default().push(repeat);
            }
        }
        Self { values, trials }
    }

    /// The repeats of a cell; empty if there are none.
    pub(super) fn repeats(&self, cell: usize, phase: &str, metric: Metric) -> &[Repeat] {
        let own = self.values.get(&(cell, metric)).and_then(|phases| phases.get(phase));
        own.map_or(&[], Vec::as_slice)
    }

    /// The metrics of a phase that have a direction.
    pub(super) fn metrics(&self, cell: usize, phase: &str) -> Vec<Metric> {
        let own =
            self.values.iter().filter(|(key, phases)| key.0 == cell && phases.contains_key(phase));
        own.map(|(key, _)| key.1).filter(|m| m.spec().better != Better::Neither).collect()
    }
}

/// Repeats without blocks: a block of one run is none of the other, whatever their numbers.
pub(super) fn apart(repeats: &[Repeat]) -> Vec<Repeat> {
    repeats.iter().map(|repeat| Repeat { block: None, ..*repeat }).collect()
}

/// The values alone.
pub(super) fn values(repeats: &[Repeat]) -> Vec<f64> {
    repeats.iter().map(|repeat| repeat.value).collect()
}

/// Every cell of a run that was measured twice: its values and those of its twin, phase by phase.
pub(super) fn twins(run: &RunRecord) -> Vec<Vec<Phase>> {
    let numbers = Numbers::new(run);
    let mut twins = Vec::new();
    for (twin, record) in run.cells.iter().enumerate().filter(|(_, record)| record.cell.twin) {
        let same = model::Cell { twin: false, ..record.cell.clone() };
        let Some(own) = run.cells.iter().position(|record| record.cell == same) else { continue };
        let mut phases = Vec::new();
        for phase in record.phases.iter().filter(|phase| phase.role == Role::Measure) {
            let of = |cell| numbers.repeats(cell, &phase.name, phase.primary).to_vec();
            let better = phase.primary.spec().better;
            if better != Better::Neither {
                phases.push((of(own), of(twin), better));
            }
        }
        twins.push(phases);
    }
    twins
}
