//! What the first blocks let expect of the rest: trials, time, and what will be told apart.
//!
//! The values of the first blocks enter; a [`Forecast`] leaves. Nothing is decided by it: it is
//! said, and the run goes on as it would have.

use std::collections::BTreeMap;

use analysis::{
    forecast::{detectable, repeats_until, spread},
    summary::{LEVEL, needed},
};
use model::{Nanos, Ratio, record::CellState};

use super::{
    Conductor, Trials,
    events::{Detectable, Forecast},
    looks::pairs,
};

impl<T: Trials> Conductor<'_, T> {
    /// The forecast from all values so far.
    pub(super) fn expect(&self) -> Forecast {
        let pairs = pairs(&self.cells);
        let ordinary: Vec<usize> = self.open().filter(|cell| !pairs.contains_key(cell)).collect();
        let looks: BTreeMap<usize, u32> =
            ordinary.iter().map(|cell| (*cell, self.closes_at(*cell))).collect();
        let mut expected = looks.clone();
        // The anchor waits for the last one, and twins are as many as their firsts.
        let anchor = pairs.first_key_value().map(|(_, first)| *first);
        if let (Some(anchor), Some(last)) = (anchor, looks.values().copied().max())
            && let Some(own) = expected.get_mut(&anchor)
        {
            *own = last;
        }
        for (twin, first) in &pairs {
            let open = self.cells[*twin].state == CellState::Open;
            if let Some(own) = expected.get(first).copied().filter(|_| open) {
                expected.insert(*twin, own);
            }
        }
        let wanted = self.time_of(&expected);
        let left = self.settings.budget.map(|budget| budget - self.spent());
        let over_budget = left.is_some_and(|left| left < wanted);
        if let Some(left) = left.filter(|_| over_budget) {
            let fits = self.fitting(&expected, left);
            expected.iter_mut().for_each(|(cell, own)| *own = (*own).min(fits[cell]));
        }
        let all = |repeats: &dyn Fn(usize) -> u32| {
            let made = self
                .progress
                .iter()
                .enumerate()
                .map(|(cell, progress)| repeats(cell).max(progress.repeats) + progress.invalid);
            made.sum::<u32>() as usize
        };
        let of_open = |repeats: u32| {
            move |cell: usize| if self.cells[cell].state == CellState::Open { repeats } else { 0 }
        };
        let (first, last) = self.first_and_last();
        Forecast {
            least: all(&of_open(first)),
            expected: all(&|cell| expected.get(&cell).copied().unwrap_or(0)),
            most: all(&of_open(last)),
            time: self.time_of(&expected),
            over_budget,
            detectable: self.detectable(&expected, &ordinary),
            cells: ordinary
                .iter()
                .map(|cell| {
                    let record = &self.cells[*cell];
                    let name = record.cell.filesystem.name.clone();
                    (name, record.label.clone(), expected[cell])
                })
                .collect(),
        }
    }

    /// How long the trials take until each of these cells has its repeats, if they take as long as
    /// those of their cells did.
    fn time_of(&self, repeats: &BTreeMap<usize, u32>) -> Nanos {
        let rest = repeats.iter().map(|(cell, repeats)| {
            let left = u64::from(repeats.saturating_sub(self.progress[*cell].repeats));
            Nanos(self.expected(*cell).0.saturating_mul(left))
        });
        rest.sum()
    }

    /// The repeats that each of these cells has when the time is used up: block by block, and
    /// within one in the order of cells, which stands for the random one.
    fn fitting(&self, wanted: &BTreeMap<usize, u32>, left: Nanos) -> BTreeMap<usize, u32> {
        let mut made: BTreeMap<usize, u32> =
            wanted.keys().map(|cell| (*cell, self.progress[*cell].repeats)).collect();
        let mut spent = Nanos(0);
        loop {
            let before = spent;
            for (cell, wanted) in wanted {
                let Some(own) = made.get_mut(cell).filter(|own| **own < *wanted) else { continue };
                spent = Nanos(spent.0.saturating_add(self.expected(*cell).0));
                // As the conductor, which ends the run before the first trial that does not fit.
                if spent > left {
                    return made;
                }
                *own += 1;
            }
            // Trials that are expected to take no time do not end.
            if spent == before {
                return made;
            }
        }
    }

    /// Repeats of a cell at its first and at its last look.
    pub(super) fn first_and_last(&self) -> (u32, u32) {
        let looks = self.settings.profile.looks();
        let (first, last) = (looks.first().copied(), looks.last().copied());
        let fixed = self.settings.repeats;
        (fixed.or(first).unwrap_or(0), fixed.or(last).unwrap_or(0))
    }

    /// The repeats at which a cell is expected to close: when the last of its tests is known.
    fn closes_at(&self, cell: usize) -> u32 {
        let (first, _) = self.first_and_last();
        if self.settings.repeats.is_some() {
            return first;
        }
        let values = self.progress[cell].values();
        let spreads = values.iter().filter_map(|values| spread(values));
        spreads.map(|spread| repeats_until(spread, self.settings.profile)).max().unwrap_or(first)
    }

    /// The smallest difference that can be told in each test at those repeats; of tests that get
    /// too few for an interval, none can.
    fn detectable(&self, repeats: &BTreeMap<usize, u32>, cells: &[usize]) -> Option<Detectable> {
        let mut tests: Vec<(Ratio, String)> = Vec::new();
        for cell in cells {
            let record = &self.cells[*cell];
            for (phase, values) in self.progress[*cell].by_phase(&record.phases) {
                let Some(spread) = spread(values).filter(|_| repeats[cell] >= needed(LEVEL)) else {
                    continue;
                };
                let name = &record.cell.filesystem.name;
                let at = format!("{name} · {} · {phase}", record.label);
                tests.push((detectable(spread, repeats[cell]), at));
            }
        }
        tests.sort_by(|one, other| one.0.0.total_cmp(&other.0.0));
        let (worst, at) = tests.last()?.clone();
        Some(Detectable { median: tests[tests.len() / 2].0, worst, at })
    }
}
