//! Stopping rule: open cells, A/A duplicates, the reference cell, and the time limit.
//!
//! Between rounds each open cell is evaluated and closed if [`analysis::stop`] reports enough
//! repetitions. Three kinds of cells depend on other cells. An **A/A duplicate** closes with its
//! original. The **reference cell**, which is the original of the first A/A duplicate, stays open
//! as long as any other cell, so that late rounds with few cells can be compared with the first
//! rounds. Cells of **workloads that run together** and of their members alone close together,
//! because they are compared with each other.

use std::collections::BTreeMap;

use analysis::stop::{self, Decision};
use model::{
    Cell, Nanos, Profile, Warning,
    plan::together::{ONLY, SUITE},
    record::{CellRecord, CellState},
    units::plural,
};

use super::{Runner, Trials, events::Event};

/// Text added to the reason that closes the reference cell.
const REFERENCE: &str = "; kept open as reference cell";

/// Reason that closes an A/A duplicate.
const AA_DUPLICATE: &str = "A/A duplicate: closed with its original";

/// Index of each A/A duplicate with the index of its original, in the order of the A/A duplicates.
pub(super) fn pairs(cells: &[CellRecord]) -> BTreeMap<usize, usize> {
    let aa_duplicates = cells.iter().enumerate().filter(|(_, record)| record.cell.aa_duplicate);
    let first = |aa_duplicate: &CellRecord| {
        let alike = |record: &CellRecord| {
            !record.cell.aa_duplicate
                && Cell { aa_duplicate: true, ..record.cell.clone() } == aa_duplicate.cell
        };
        cells.iter().position(alike)
    };
    aa_duplicates.filter_map(|(index, aa_duplicate)| Some((index, first(aa_duplicate)?))).collect()
}

/// Reason that closes a cell at the time limit, and the warnings of its open phases.
fn over_time_limit(values: &[Vec<f64>], profile: Profile) -> (String, Vec<Warning>) {
    match stop::at_time_limit(values, profile) {
        Decision::Enough { rule, warnings } => (rule, warnings),
        Decision::More { .. } => (String::from("time limit"), Vec::new()),
    }
}

/// Cells of the same members: those in which all run, and those in which one of them runs alone.
/// Each list has at least two cells. A/A duplicates are not included.
pub(super) fn partners(cells: &[CellRecord]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Cell, Vec<usize>)> = Vec::new();
    for (index, record) in cells.iter().enumerate() {
        if record.cell.workload.suite != SUITE || record.cell.aa_duplicate {
            continue;
        }
        let mut cell = record.cell.clone();
        cell.workload.parameters.remove(ONLY);
        match groups.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, group)) => group.push(index),
            None => groups.push((cell, vec![index])),
        }
    }
    groups.into_iter().map(|(_, group)| group).filter(|group| group.len() > 1).collect()
}

impl<T: Trials> Runner<'_, T> {
    /// Evaluates every open cell, closes those with enough repetitions, and reports the progress.
    pub(super) fn evaluate(&mut self) -> anyhow::Result<()> {
        let pairs = pairs(&self.cells);
        let reference = pairs.first_key_value().map(|(_, first)| *first);
        let mut next = vec![0; self.cells.len()];
        let ordinary = |cell: &usize| !pairs.contains_key(cell) && reference != Some(*cell);
        let partners = partners(&self.cells);
        for cell in (0..self.cells.len()).filter(ordinary) {
            let own = partners.iter().find(|group| group.contains(&cell));
            let others = own.into_iter().flatten().filter(|other| **other != cell);
            let others = others.filter_map(|other| self.needs(*other)).max();
            next[cell] = self.decide(cell, others)?;
        }
        if let Some(reference) = reference {
            let others = next.iter().copied().max().filter(|look| *look > 0);
            next[reference] = self.decide(reference, others)?;
        }
        for (aa_duplicate, first) in &pairs {
            next[*aa_duplicate] = self.follow(*aa_duplicate, *first, next[*first])?;
        }
        self.plan(&next);
        self.report_progress();
        Ok(())
    }

    /// Closes a cell that has enough repetitions and returns 0. Otherwise returns the number of
    /// repetitions at the next evaluation of the cell. `others` is the latest of the next
    /// evaluations of other open cells that keep this one open.
    fn decide(&mut self, cell: usize, others: Option<u32>) -> anyhow::Result<u32> {
        if self.cells[cell].state != CellState::Open {
            return Ok(0);
        }
        if let Some(what) = self.progress[cell].unsupported_feature() {
            let reason = format!("{what} is not supported by this filesystem or kernel");
            self.set_state(cell, CellState::Skipped { reason })?;
            return Ok(0);
        }
        if let Some(others) = others {
            return Ok(others);
        }
        match self.decision(cell) {
            Decision::More { next_analysis } => Ok(next_analysis),
            Decision::Enough { mut rule, .. } => {
                rule.push_str(&self.without_values(cell));
                if self.is_reference(cell) {
                    rule.push_str(REFERENCE);
                }
                self.done(cell, rule, &[])?;
                Ok(0)
            }
        }
    }

    fn decision(&self, cell: usize) -> Decision {
        let values = self.progress[cell].values();
        let decision = stop::decide(&values, self.settings.profile, self.settings.repetitions);
        self.bounded(cell, decision)
    }

    /// Repetitions at the next evaluation of an open cell that needs more; otherwise `None`.
    fn needs(&self, cell: usize) -> Option<u32> {
        match (&self.cells[cell].state, self.decision(cell)) {
            (CellState::Open, Decision::More { next_analysis }) => Some(next_analysis),
            _ => None,
        }
    }

    /// Closes a cell that has the maximum number of repetitions, even if the stopping rule requires
    /// more values. The rule counts values, and a phase may have trials without a value.
    fn bounded(&self, cell: usize, decision: Decision) -> Decision {
        let repetitions = self.progress[cell].repetitions;
        let (_, last) = self.first_and_last();
        let rule = match (&decision, self.settings.repetitions) {
            (Decision::Enough { .. }, _) => return decision,
            (Decision::More { .. }, _) if repetitions < last => return decision,
            (Decision::More { .. }, Some(_)) => {
                format!("fixed: {}", plural(repetitions, "repetition"))
            }
            (Decision::More { .. }, None) => {
                let profile = self.settings.profile.name();
                format!("limit: {repetitions} repetitions, the maximum of profile {profile}")
            }
        };
        Decision::Enough { rule, warnings: Vec::new() }
    }

    /// Part of the reason about phases without a value in some or all trials.
    fn without_values(&self, cell: usize) -> String {
        let (record, progress) = (&self.cells[cell], &self.progress[cell]);
        let missing =
            progress.short(&record.phases).into_iter().map(|(phase, given)| match given {
                0 => format!("; {phase}: no sample"),
                given => format!("; {phase}: {given} samples in {} trials", progress.measured()),
            });
        missing.collect()
    }

    /// Closes an A/A duplicate if its original is closed, and returns 0. Otherwise returns `next`,
    /// the next evaluation of the original.
    fn follow(&mut self, aa_duplicate: usize, first: usize, next: u32) -> anyhow::Result<u32> {
        if self.cells[aa_duplicate].state != CellState::Open {
            return Ok(0);
        }
        match &self.cells[first].state {
            CellState::Open => return Ok(next),
            CellState::Skipped { reason } => {
                let reason = reason.clone();
                self.set_state(aa_duplicate, CellState::Skipped { reason })?;
            }
            CellState::Done { .. } | CellState::Failed { .. } => {
                self.done(aa_duplicate, AA_DUPLICATE.into(), &[])?;
            }
        }
        Ok(0)
    }

    fn is_reference(&self, cell: usize) -> bool {
        pairs(&self.cells).first_key_value().is_some_and(|(_, first)| *first == cell)
    }

    /// Reports whether one more trial of a cell is expected to end after the time limit.
    pub(super) fn exceeds_time_limit(&self, cell: usize) -> bool {
        let Some(limit) = self.settings.time_limit else { return false };
        self.spent() + self.expected(cell) > limit
    }

    /// Time of all trials so far, divided by the number of concurrent trials.
    pub(super) fn spent(&self) -> Nanos {
        let all: Nanos = self.progress.iter().map(|progress| progress.elapsed).sum();
        Nanos(all.0 / self.trials.concurrency() as u64)
    }

    /// Expected duration of the next trial of a cell: the mean of the cell's trials. For a cell
    /// without trials, the mean of all trials; without any trial, 0.
    pub(super) fn expected(&self, cell: usize) -> Nanos {
        self.own_duration(cell).unwrap_or_else(|| self.mean_duration())
    }

    /// Mean duration of the trials of a cell, if it has any.
    pub(super) fn own_duration(&self, cell: usize) -> Option<Nanos> {
        let own = &self.progress[cell];
        let elapsed = own.elapsed.0 / self.trials.concurrency() as u64;
        elapsed.checked_div(u64::from(own.trials)).map(Nanos)
    }

    /// Mean duration of all trials; 0 if there are none.
    pub(super) fn mean_duration(&self) -> Nanos {
        let trials: u32 = self.progress.iter().map(|progress| progress.trials).sum();
        Nanos(self.spent().0.checked_div(u64::from(trials)).unwrap_or(0))
    }

    /// Closes every open cell at the time limit. Cells without a measured trial are skipped.
    pub(super) fn close_at_time_limit(&mut self) -> anyhow::Result<()> {
        let pairs = pairs(&self.cells);
        let open: Vec<usize> = self.open().collect();
        for cell in open {
            if self.progress[cell].measured() == 0 {
                let reason = "the run reached its time limit before the first trial; raise \
                              `time_limit` or measure less";
                self.set_state(cell, CellState::Skipped { reason: reason.into() })?;
                continue;
            }
            if pairs.contains_key(&cell) {
                self.done(cell, AA_DUPLICATE.into(), &[])?;
                continue;
            }
            let (rule, _) = over_time_limit(&self.progress[cell].values(), self.settings.profile);
            let rule = rule + &self.without_values(cell);
            let phases = self.progress[cell].by_phase(&self.cells[cell].phases);
            let late = phases.flat_map(|(phase, values)| {
                let (_, warnings) =
                    over_time_limit(std::slice::from_ref(values), self.settings.profile);
                let own =
                    warnings.into_iter().filter(|warning| *warning == Warning::TimeLimitReached);
                own.map(|warning| (phase.to_owned(), warning))
            });
            let late: Vec<_> = late.collect();
            self.done(cell, rule, &late)?;
        }
        Ok(())
    }

    /// Closes a cell with a reason. The warnings apply to values of its phases.
    fn done(
        &mut self,
        cell: usize,
        rule: String,
        warnings: &[(String, Warning)],
    ) -> anyhow::Result<()> {
        let record = &self.cells[cell];
        (self.observer.notify)(&Event::CellDone {
            filesystem: &record.cell.filesystem.name,
            label: &record.label,
            aa_duplicate: record.cell.aa_duplicate,
            reason: &rule,
        });
        let state = CellState::Done { reason: rule };
        self.store.close(cell, &state, warnings)?;
        self.cells[cell].state = state;
        Ok(())
    }

    fn set_state(&mut self, cell: usize, state: CellState) -> anyhow::Result<()> {
        self.store.cell_state(cell, &state)?;
        self.cells[cell].state = state;
        Ok(())
    }
}
