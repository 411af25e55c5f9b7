//! Forecast after the pilot rounds: number of trials, duration, and detectable difference.
//!
//! The forecast is reported only; the run does not depend on it.

use std::collections::BTreeMap;

use analysis::{
    forecast::{detectable, repetitions_until, spread},
    summary::{LEVEL, needed},
};
use model::{Nanos, Ratio, record::CellState};

use super::{
    Runner, Trials,
    events::{Detectable, Forecast},
    stopping::pairs,
};

impl<T: Trials> Runner<'_, T> {
    /// Forecast from all values so far.
    pub(super) fn expect(&self) -> Forecast {
        let pairs = pairs(&self.cells);
        let ordinary: Vec<usize> = self.open().filter(|cell| !pairs.contains_key(cell)).collect();
        let looks: BTreeMap<usize, u32> =
            ordinary.iter().map(|cell| (*cell, self.closes_at(*cell))).collect();
        let mut expected = looks.clone();
        // The reference cell stays open until the last cell closes, and an A/A duplicate closes
        // with its original.
        let reference = pairs.first_key_value().map(|(_, first)| *first);
        if let (Some(reference), Some(last)) = (reference, looks.values().copied().max())
            && let Some(own) = expected.get_mut(&reference)
        {
            *own = last;
        }
        for (aa_duplicate, first) in &pairs {
            let open = self.cells[*aa_duplicate].state == CellState::Open;
            if let Some(own) = expected.get(first).copied().filter(|_| open) {
                expected.insert(*aa_duplicate, own);
            }
        }
        let wanted = self.time_of(&expected);
        let left = self.settings.time_limit.map(|limit| limit - self.spent());
        let over_time_limit = left.is_some_and(|left| left < wanted);
        if let Some(left) = left.filter(|_| over_time_limit) {
            let fits = self.fitting(&expected, left);
            expected.iter_mut().for_each(|(cell, own)| *own = (*own).min(fits[cell]));
        }
        let all = |repetitions: &dyn Fn(usize) -> u32| {
            let made = self.progress.iter().enumerate().map(|(cell, progress)| {
                repetitions(cell).max(progress.repetitions) + progress.invalid
            });
            made.sum::<u32>() as usize
        };
        let of_open = |repetitions: u32| {
            move |cell: usize| {
                if self.cells[cell].state == CellState::Open { repetitions } else { 0 }
            }
        };
        let (first, last) = self.first_and_last();
        Forecast {
            least: all(&of_open(first)),
            expected: all(&|cell| expected.get(&cell).copied().unwrap_or(0)),
            most: all(&of_open(last)),
            time: self.time_of(&expected),
            over_time_limit,
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

    /// Duration of the trials until each of these cells has its repetitions, based on the mean
    /// duration of the earlier trials of the cell.
    fn time_of(&self, repetitions: &BTreeMap<usize, u32>) -> Nanos {
        let rest = repetitions.iter().map(|(cell, repetitions)| {
            let left = u64::from(repetitions.saturating_sub(self.progress[*cell].repetitions));
            Nanos(self.expected(*cell).0.saturating_mul(left))
        });
        rest.sum()
    }

    /// Repetitions of each of these cells at the time limit. Cells are counted round by round, and
    /// in the order of the cells within a round, in place of the random order.
    fn fitting(&self, wanted: &BTreeMap<usize, u32>, left: Nanos) -> BTreeMap<usize, u32> {
        let mut made: BTreeMap<usize, u32> =
            wanted.keys().map(|cell| (*cell, self.progress[*cell].repetitions)).collect();
        let mut spent = Nanos(0);
        loop {
            let before = spent;
            for (cell, wanted) in wanted {
                let Some(own) = made.get_mut(cell).filter(|own| **own < *wanted) else { continue };
                spent = Nanos(spent.0.saturating_add(self.expected(*cell).0));
                // Like the runner, which stops before the first trial that would exceed the limit.
                if spent > left {
                    return made;
                }
                *own += 1;
            }
            // Trials with an expected duration of 0 would never end the loop.
            if spent == before {
                return made;
            }
        }
    }

    /// Repetitions of a cell at its first and its last evaluation.
    pub(super) fn first_and_last(&self) -> (u32, u32) {
        let looks = self.settings.profile.interim_analyses();
        let (first, last) = (looks.first().copied(), looks.last().copied());
        let fixed = self.settings.repetitions;
        (fixed.or(first).unwrap_or(0), fixed.or(last).unwrap_or(0))
    }

    /// Number of repetitions at which a cell is expected to close: the largest over its tests.
    fn closes_at(&self, cell: usize) -> u32 {
        let (first, _) = self.first_and_last();
        if self.settings.repetitions.is_some() {
            return first;
        }
        let values = self.progress[cell].values();
        let spreads = values.iter().filter_map(|values| spread(values));
        spreads
            .map(|spread| repetitions_until(spread, self.settings.profile))
            .max()
            .unwrap_or(first)
    }

    /// Detectable difference of each test at those repetitions, without tests that get too few for
    /// a confidence interval.
    fn detectable(
        &self,
        repetitions: &BTreeMap<usize, u32>,
        cells: &[usize],
    ) -> Option<Detectable> {
        let mut tests: Vec<(Ratio, String)> = Vec::new();
        for cell in cells {
            let record = &self.cells[*cell];
            for (phase, values) in self.progress[*cell].by_phase(&record.phases) {
                let Some(spread) = spread(values).filter(|_| repetitions[cell] >= needed(LEVEL))
                else {
                    continue;
                };
                let name = &record.cell.filesystem.name;
                let at = format!("{name} · {} · {phase}", record.label);
                tests.push((detectable(spread, repetitions[cell]), at));
            }
        }
        tests.sort_by(|one, other| one.0.0.total_cmp(&other.0.0));
        let (worst, at) = tests.last()?.clone();
        Some(Detectable { median: tests[tests.len() / 2].0, worst, at })
    }
}
