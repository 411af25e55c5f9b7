//! Where each cell would stand if the run were made again.
//!
//! Cells enter; 4000 resamples of blocks leave as counts. Blocks are drawn with replacement and
//! jointly for all cells, so that what a block did to all of them stays together (methodology of
//! `bootstrap`). Where a block is unknown, the repeats of each cell are drawn on their own. A cell
//! that has no repeat in a resample, as may happen to one that was measured in few of the blocks,
//! stands there with the median of all its repeats.
//!
//! Repeats are put in order once. A resample is a weight for each block, and the median of a cell
//! is where the weights along its order reach half.

use model::Ratio;

use crate::{bootstrap::RESAMPLES, compare::Sample, count};

/// The share of resamples that the interval of a rank leaves out on either side.
const TAIL: f64 = 0.05;

/// What was counted over all resamples.
pub(crate) struct Standing {
    cells: usize,
    /// In how many resamples the median of one cell is at least that of another, row by row.
    at_least: Vec<u32>,
    /// First places of each cell; a shared one counts as its share.
    firsts: Vec<f64>,
    /// How often each cell has each place, from 0, row by row: the best of those it shares.
    best: Vec<u32>,
    /// The worst of those it shares.
    worst: Vec<u32>,
}

/// A cell made ready to be resampled.
struct Cell<'a> {
    logs: &'a [f64],
    /// The unit that each repeat is drawn with, in the order of the logarithms.
    units: Vec<usize>,
    /// Whether each unit has exactly one repeat.
    whole: bool,
    /// How many of the first repeats are summed up at once, which goes faster than one after the
    /// other: somewhat less than half, so that the median rarely lies among them. 0 if not whole.
    head: usize,
    /// For each unit all bits if it is one of these, else none.
    in_head: Vec<u32>,
    /// The median of all repeats.
    median: f64,
}

impl Cell<'_> {
    /// The median of a resample.
    fn median(&self, weights: &[u32]) -> f64 {
        let total = match self.whole {
            true => weights.len(),
            false => self.units.iter().map(|unit| weights[*unit] as usize).sum(),
        };
        if total == 0 {
            return self.median;
        }
        let (mut passed, mut at) = (weights[self.units[0]] as usize, 0);
        let head: u32 = weights.iter().zip(&self.in_head).map(|(weight, own)| weight & own).sum();
        if self.head > 0 && 2 * (head as usize) < total {
            (passed, at) = (head as usize, self.head - 1);
        }
        while 2 * passed < total {
            at += 1;
            passed += weights[self.units[at]] as usize;
        }
        let low = self.logs[at];
        // Half of an even number: the upper one of the middle two is the next that was drawn.
        if 2 * passed == total {
            at += 1;
            while weights[self.units[at]] == 0 {
                at += 1;
            }
        }
        f64::midpoint(low, self.logs[at])
    }
}

impl Standing {
    /// Resamples cells, each with larger logarithms being better.
    pub(crate) fn new(samples: &[&Sample]) -> Self {
        let k = samples.len();
        let mut standing = Self {
            cells: k,
            at_least: vec![0; k * k],
            firsts: vec![0.0; k],
            best: vec![0; k * k],
            worst: vec![0; k * k],
        };
        let (cells, blocks) = ready(samples);
        let mut rng = fastrand::Rng::with_seed(u64::from(RESAMPLES));
        let mut weights = vec![0; blocks.unwrap_or(0)];
        let mut medians = vec![0.0; k];
        for _ in 0..RESAMPLES {
            if blocks.is_some() {
                draw(&mut weights, &mut rng);
            }
            for (cell, median) in cells.iter().zip(&mut medians) {
                if blocks.is_none() {
                    weights.clear();
                    weights.resize(cell.units.len(), 0);
                    draw(&mut weights, &mut rng);
                }
                *median = cell.median(&weights);
            }
            standing.count(&medians);
        }
        standing
    }

    fn count(&mut self, medians: &[f64]) {
        let k = self.cells;
        let mut winners = 0;
        for (cell, own) in medians.iter().enumerate() {
            let (mut not_above, mut not_below) = (0, 0);
            let row = &mut self.at_least[cell * k..(cell + 1) * k];
            for (other, count) in medians.iter().zip(row) {
                *count += u32::from(own >= other);
                not_above += usize::from(own >= other);
                not_below += usize::from(own <= other);
            }
            self.best[cell * k + (k - not_above)] += 1;
            self.worst[cell * k + not_below - 1] += 1;
            winners += u32::from(not_above == k);
        }
        let best = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for (cell, own) in medians.iter().enumerate() {
            if *own >= best {
                self.firsts[cell] += 1.0 / f64::from(winners);
            }
        }
    }

    /// How often each cell has the best median; ties share the place.
    pub(crate) fn first(&self) -> Vec<Ratio> {
        self.firsts.iter().map(|won| Ratio(won / f64::from(RESAMPLES))).collect()
    }

    /// The middle 90 % of the places of each cell, from 1.
    pub(crate) fn places(&self) -> Vec<(u32, u32)> {
        let row = |counts: &[u32], cell: usize, share: f64| {
            let mut passed = 0;
            let reached = |counted: &u32| {
                passed += counted;
                f64::from(passed) >= share * f64::from(RESAMPLES)
            };
            let own = &counts[cell * self.cells..(cell + 1) * self.cells];
            count(own.iter().position(reached).unwrap_or(self.cells - 1)) + 1
        };
        let of = |cell| (row(&self.best, cell, TAIL), row(&self.worst, cell, 1.0 - TAIL));
        (0..self.cells).map(of).collect()
    }

    /// Two-sided p-value of "the medians of two cells are equal": twice the share of resamples in
    /// which they lie the other way round. The data count as one resample, so it is never zero.
    pub(crate) fn p(&self, one: usize, other: usize) -> f64 {
        let at_least = |one: usize, other: usize| self.at_least[one * self.cells + other];
        let rarer = at_least(one, other).min(at_least(other, one));
        (2.0 * f64::from(rarer + 1) / f64::from(RESAMPLES + 1)).min(1.0)
    }
}

/// The cells and how many units are drawn for all of them together; without a number each cell
/// draws among its own repeats.
fn ready<'a>(samples: &[&'a Sample]) -> (Vec<Cell<'a>>, Option<usize>) {
    let owners: Option<Vec<&[u32]>> =
        samples.iter().map(|sample| sample.owners.as_deref()).collect();
    let blocks = owners.map(|owners| {
        let mut blocks = owners.concat();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    });
    let cell = |sample: &&'a Sample| {
        let units: Vec<usize> = match (&blocks, &sample.owners) {
            (Some(blocks), Some(owners)) => {
                owners.iter().map(|own| blocks.partition_point(|block| block < own)).collect()
            }
            (None, _) | (_, None) => (0..sample.logs.len()).collect(),
        };
        let mut seen = units.clone();
        seen.sort_unstable();
        seen.dedup();
        let all = blocks.as_ref().map_or(units.len(), Vec::len);
        let whole = seen.len() == units.len() && units.len() == all;
        let head = if whole { (all / 2).saturating_sub(all.isqrt()) } else { 0 };
        let mut in_head = vec![0; if whole { all } else { 0 }];
        units[..head].iter().for_each(|unit| in_head[*unit] = u32::MAX);
        Cell { logs: &sample.logs, units, whole, head, in_head, median: sample.median() }
    };
    let cells = samples.iter().map(cell).collect();
    (cells, blocks.map(|blocks| blocks.len()))
}

/// As many draws with replacement as there are units; each weight says how often its unit came.
fn draw(weights: &mut [u32], rng: &mut fastrand::Rng) {
    weights.fill(0);
    for _ in 0..weights.len() {
        weights[rng.usize(0..weights.len())] += 1;
    }
}

#[cfg(test)]
mod tests;
