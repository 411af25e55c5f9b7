//! Forecast: number of trials, duration, and detectable difference. The number of trials and the
//! duration are updated before each round, and the time left after each trial.
//!
//! The forecast is reported only; the run does not depend on it.

use std::collections::BTreeMap;

use analysis::{
    forecast::{detectable, repetitions_until, spread},
    summary::{LEVEL, needed},
};
use model::{Nanos, Ratio, record::CellState};

use super::{
    PILOT, Runner, Trials,
    events::{Detectable, Extent, Forecast, Remaining},
    stopping::pairs,
};

/// Number of repetitions at which a cell closes; all are 0 for a closed cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Closing {
    /// At its next evaluation.
    least: u32,
    /// As its spread so far suggests, or at the time limit.
    expected: u32,
    /// At its last evaluation.
    most: u32,
}

/// Repetitions at which the cells of a run close.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    /// By cell.
    pub(super) closing: Vec<Closing>,
    /// True if the expected numbers of repetitions are based on the spread of every open cell, or
    /// the plan sets them.
    known: bool,
}

impl<T: Trials> Runner<'_, T> {
    /// Updates the repetitions at which each cell is expected to close; `next` is the number at the
    /// next evaluation of each cell, 0 for a closed cell.
    pub(super) fn plan(&mut self, next: &[u32]) {
        let (_, last) = self.first_and_last();
        let mut expected = self.unlimited(next);
        if let Some(left) = self.time_left() {
            let fits = self.fitting(&expected, left);
            expected.iter_mut().for_each(|(cell, own)| *own = (*own).min(fits[cell]));
        }
        let closing = |(cell, next): (usize, &u32)| match next {
            0 => Closing::default(),
            next => Closing {
                least: *next,
                expected: expected.get(&cell).copied().unwrap_or(*next),
                most: last.max(*next),
            },
        };
        let fixed = self.settings.repetitions.is_some();
        self.outlook = Outlook {
            closing: next.iter().enumerate().map(closing).collect(),
            known: fixed || self.open().all(|cell| self.progress[cell].repetitions >= PILOT),
        };
    }

    /// Estimate of the rest of the run, from the repetitions at the start of the round and the
    /// trials so far.
    pub(super) fn remaining(&self) -> Remaining {
        let of = |repetitions: fn(&Closing) -> u32| {
            let all = || self.outlook.closing.iter().map(repetitions).enumerate();
            let time = self.time_of(all());
            let time = self.time_left().map_or(time, |left| left.min(time));
            Extent { trials: self.trials_of(all()), time }
        };
        Remaining {
            least: of(|closing| closing.least),
            expected: self.outlook.known.then(|| of(|closing| closing.expected)),
            most: of(|closing| closing.most),
        }
    }

    /// Forecast from all values so far.
    pub(super) fn expect(&self) -> Forecast {
        let pairs = pairs(&self.cells);
        let next: Vec<u32> = self.outlook.closing.iter().map(|closing| closing.least).collect();
        let left = self.time_left();
        let over_time_limit =
            left.is_some_and(|left| left < self.time_of(self.unlimited(&next).into_iter()));
        let expected: BTreeMap<usize, u32> =
            self.open().map(|cell| (cell, self.outlook.closing[cell].expected)).collect();
        let ordinary: Vec<usize> = self.open().filter(|cell| !pairs.contains_key(cell)).collect();
        let all = |repetitions: fn(&Closing) -> u32| {
            self.trials_of(self.outlook.closing.iter().map(repetitions).enumerate())
        };
        Forecast {
            least: all(|closing| closing.least),
            expected: all(|closing| closing.expected),
            most: all(|closing| closing.most),
            time: self.time_of(expected.clone().into_iter()),
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

    /// Repetitions at which each open cell is expected to close, regardless of the time limit.
    fn unlimited(&self, next: &[u32]) -> BTreeMap<usize, u32> {
        let pairs = pairs(&self.cells);
        let ordinary = self.open().filter(|cell| !pairs.contains_key(cell));
        let mut expected: BTreeMap<usize, u32> =
            ordinary.map(|cell| (cell, self.closes_at(cell).max(next[cell]))).collect();
        // The reference cell stays open until the last cell closes, and an A/A duplicate closes
        // with its original.
        let reference = pairs.first_key_value().map(|(_, first)| *first);
        if let (Some(reference), Some(last)) = (reference, expected.values().copied().max())
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
        expected
    }

    /// Rest of the time limit, if there is one.
    fn time_left(&self) -> Option<Nanos> {
        Some(self.settings.time_limit? - self.spent())
    }

    /// Number of trials if each cell gets these repetitions, invalid trials included.
    fn trials_of(&self, repetitions: impl Iterator<Item = (usize, u32)>) -> usize {
        let made = repetitions.map(|(cell, repetitions)| {
            let progress = &self.progress[cell];
            repetitions.max(progress.repetitions) + progress.invalid
        });
        made.map(|trials| trials as usize).sum()
    }

    /// Duration of the trials until each of these cells has its repetitions, based on the mean
    /// duration of the earlier trials of the cell.
    fn time_of(&self, repetitions: impl Iterator<Item = (usize, u32)>) -> Nanos {
        let mean = self.mean_duration();
        let rest = repetitions.map(|(cell, repetitions)| {
            let left = u64::from(repetitions.saturating_sub(self.progress[cell].repetitions));
            Nanos(self.own_duration(cell).unwrap_or(mean).0.saturating_mul(left))
        });
        rest.sum()
    }

    /// Repetitions of each of these cells at the time limit. The rounds are counted one after
    /// another. Within a round, the cells are counted in their order in the plan, because the
    /// random order of the trials is not used here.
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
