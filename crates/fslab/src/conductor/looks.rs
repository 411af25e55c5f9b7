//! Which cells are still open: looks, twins, the anchor, and the budget.
//!
//! Between blocks each open cell is looked at, and closed when [`analysis::stop`] says that it has
//! enough. Two kinds of cells follow others: a **twin** closes with the cell it is a second of, and
//! the **anchor**, which is the cell that has the first twin, stays open as long as any other cell
//! does, so that late and thin blocks are connected with the first ones.

use std::collections::BTreeMap;

use analysis::stop::{self, Decision};
use model::{
    Cell, Nanos, Profile, Warning,
    record::{CellRecord, CellState},
};

use super::{Conductor, Trials, events::Event};

/// What the rule of the anchor says besides.
const ANCHOR: &str = "; as the anchor it was open as long as any other cell";

/// What closed a twin.
const TWIN: &str = "twin: measured as often as the cell it is a second of, and closed with it";

/// Each twin and the cell that it is a second of, in the order of the twins.
pub(super) fn pairs(cells: &[CellRecord]) -> BTreeMap<usize, usize> {
    let twins = cells.iter().enumerate().filter(|(_, record)| record.cell.twin);
    let first = |twin: &CellRecord| {
        let alike = |record: &CellRecord| {
            !record.cell.twin && Cell { twin: true, ..record.cell.clone() } == twin.cell
        };
        cells.iter().position(alike)
    };
    twins.filter_map(|(index, twin)| Some((index, first(twin)?))).collect()
}

/// The rule that closes a cell when the time is used up, and the warnings of its open phases.
fn over_budget(values: &[Vec<f64>], profile: Profile) -> (String, Vec<Warning>) {
    match stop::over_budget(values, profile) {
        Decision::Enough { rule, warnings } => (rule, warnings),
        Decision::More { .. } => (String::from("budget"), Vec::new()),
    }
}

impl<T: Trials> Conductor<'_, T> {
    /// Looks at every open cell, closes those that have enough, and says how many trials there will
    /// be until the others are looked at again.
    pub(super) fn look(&mut self) -> anyhow::Result<()> {
        let pairs = pairs(&self.cells);
        let anchor = pairs.first_key_value().map(|(_, first)| *first);
        let mut next = vec![0; self.cells.len()];
        let ordinary = |cell: &usize| !pairs.contains_key(cell) && anchor != Some(*cell);
        for cell in (0..self.cells.len()).filter(ordinary) {
            next[cell] = self.decide(cell, None)?;
        }
        if let Some(anchor) = anchor {
            let others = next.iter().copied().max().filter(|look| *look > 0);
            next[anchor] = self.decide(anchor, others)?;
        }
        for (twin, first) in &pairs {
            next[*twin] = self.follow(*twin, *first, next[*first])?;
        }
        let trials = next
            .iter()
            .zip(&self.progress)
            .map(|(next, progress)| next.max(&progress.repeats) + progress.invalid);
        let trials = trials.sum::<u32>() as usize;
        (self.watch.observer)(&Event::Planned { trials });
        Ok(())
    }

    /// Closes a cell that has enough repeats; else the number of repeats at its next look, which is
    /// 0 for a cell that gets none. The anchor is held open while others are, until `others`.
    fn decide(&mut self, cell: usize, others: Option<u32>) -> anyhow::Result<u32> {
        if self.cells[cell].state != CellState::Open {
            return Ok(0);
        }
        if let Some(what) = self.progress[cell].lacks_all() {
            let reason = format!("the filesystem or the kernel does not have {what}");
            self.set_state(cell, CellState::Skipped { reason })?;
            return Ok(0);
        }
        if let Some(others) = others {
            return Ok(others);
        }
        let values = self.progress[cell].values();
        let decision = stop::decide(&values, self.settings.profile, self.settings.repeats);
        match self.bounded(cell, decision) {
            Decision::More { next_look } => Ok(next_look),
            Decision::Enough { mut rule, .. } => {
                rule.push_str(&self.without_values(cell));
                if self.is_anchor(cell) {
                    rule.push_str(ANCHOR);
                }
                self.done(cell, rule, &[])?;
                Ok(0)
            }
        }
    }

    /// The rule asks for values, and a phase may not give one in each trial. So a cell is closed at
    /// the latest when its repeats are as many as those of its last look, whatever they gave.
    fn bounded(&self, cell: usize, decision: Decision) -> Decision {
        let repeats = self.progress[cell].repeats;
        let (_, last) = self.first_and_last();
        let rule = match (&decision, self.settings.repeats) {
            (Decision::Enough { .. }, _) => return decision,
            (Decision::More { .. }, _) if repeats < last => return decision,
            (Decision::More { .. }, Some(_)) => {
                format!("fixed: {repeats} repeats, as the plan sets")
            }
            (Decision::More { .. }, None) => {
                let profile = self.settings.profile.name();
                format!("cap: {repeats} repeats, the most that profile {profile} makes")
            }
        };
        Decision::Enough { rule, warnings: Vec::new() }
    }

    /// What the rule says of phases that gave a value in none of the trials, or not in all.
    fn without_values(&self, cell: usize) -> String {
        let (record, progress) = (&self.cells[cell], &self.progress[cell]);
        let told = progress.short(&record.phases).into_iter().map(|(phase, given)| match given {
            0 => format!("; no sample of {phase}"),
            given => format!("; {given} samples of {phase} in {} trials", progress.measured()),
        });
        told.collect()
    }

    /// Closes a twin whose first is closed; else its next look is that of the first.
    fn follow(&mut self, twin: usize, first: usize, next: u32) -> anyhow::Result<u32> {
        if self.cells[twin].state != CellState::Open {
            return Ok(0);
        }
        match &self.cells[first].state {
            CellState::Open => return Ok(next),
            CellState::Skipped { reason } => {
                let reason = reason.clone();
                self.set_state(twin, CellState::Skipped { reason })?;
            }
            CellState::Done { .. } | CellState::Failed { .. } => {
                self.done(twin, TWIN.into(), &[])?;
            }
        }
        Ok(0)
    }

    fn is_anchor(&self, cell: usize) -> bool {
        pairs(&self.cells).first_key_value().is_some_and(|(_, first)| *first == cell)
    }

    /// Whether one more trial of a cell is expected to end after the time of the run is used up.
    pub(super) fn exceeds_budget(&self, cell: usize) -> bool {
        let Some(budget) = self.settings.budget else { return false };
        self.spent() + self.expected(cell) > budget
    }

    /// The time of all trials so far. Of trials that are made side by side each takes its part.
    pub(super) fn spent(&self) -> Nanos {
        let all: Nanos = self.progress.iter().map(|progress| progress.elapsed).sum();
        Nanos(all.0 / self.trials.side_by_side() as u64)
    }

    /// How long the next trial of a cell takes: the mean of its trials, or of all trials where it
    /// has none; nothing where there is no trial at all.
    pub(super) fn expected(&self, cell: usize) -> Nanos {
        let mean = |elapsed: Nanos, trials: u32| elapsed.0.checked_div(u64::from(trials));
        let own = &self.progress[cell];
        let trials = self.progress.iter().map(|progress| progress.trials).sum();
        let elapsed = own.elapsed.0 / self.trials.side_by_side() as u64;
        let own = mean(Nanos(elapsed), own.trials);
        Nanos(own.or_else(|| mean(self.spent(), trials)).unwrap_or(0))
    }

    /// Closes every open cell with what it has.
    pub(super) fn close_for_budget(&mut self) -> anyhow::Result<()> {
        let pairs = pairs(&self.cells);
        let open: Vec<usize> = self.open().collect();
        for cell in open {
            if self.progress[cell].measured() == 0 {
                let reason = "the time for the run was used up before its first trial; set a \
                              larger `budget`, or measure less";
                self.set_state(cell, CellState::Skipped { reason: reason.into() })?;
                continue;
            }
            if pairs.contains_key(&cell) {
                self.done(cell, TWIN.into(), &[])?;
                continue;
            }
            let (rule, _) = over_budget(&self.progress[cell].values(), self.settings.profile);
            let rule = rule + &self.without_values(cell);
            let phases = self.progress[cell].by_phase(&self.cells[cell].phases);
            let told = phases.flat_map(|(phase, values)| {
                let (_, warnings) =
                    over_budget(std::slice::from_ref(values), self.settings.profile);
                let own = warnings.into_iter().filter(|told| *told == Warning::OverBudget);
                own.map(|warning| (phase.to_owned(), warning))
            });
            let told: Vec<_> = told.collect();
            self.done(cell, rule, &told)?;
        }
        Ok(())
    }

    /// Closes a cell by a rule; the warnings hold for numbers of its phases.
    fn done(
        &mut self,
        cell: usize,
        rule: String,
        warnings: &[(String, Warning)],
    ) -> anyhow::Result<()> {
        let record = &self.cells[cell];
        (self.watch.observer)(&Event::CellDone {
            filesystem: &record.cell.filesystem.name,
            label: &record.label,
            twin: record.cell.twin,
            rule: &rule,
        });
        let state = CellState::Done { rule };
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
