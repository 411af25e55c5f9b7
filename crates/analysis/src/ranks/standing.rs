//! Where each cell would stand if the run were made again.
//!
//! Cells enter; 4000 resamples of blocks leave as counts. Blocks are drawn with replacement and
//! jointly for all cells, so that what a block did to all of them stays together (methodology of
//! `bootstrap`). Where a block is unknown, the repeats of each cell are drawn on their own. A cell
//! that has no repeat in a resample, as may happen to one that was measured in few of the blocks,
//! stands there with the median of all its repeats.
//!
//! Repeats are put in order once. A resample is a weight for each block, and the median of a cell
//! is where the weights along its order reach half. Many resamples are made side by side, each step
//! along the order being the same for all of them, which the processor does several at a time.
//! Medians are compared as 32-bit numbers about that of the first cell.

use model::Ratio;
use wide::{f32x16, i16x16, i32x16, u32x16};

use crate::{
    bootstrap::{
        RESAMPLES,
        beside::{Beside, SIDE},
        halves::{Halves, Lanes, halved},
    },
    compare::Sample,
    count,
};

/// The share of resamples that the interval of a rank leaves out on either side.
const TAIL: f64 = 0.05;

/// What was counted over all resamples.
pub(crate) struct Standing {
    cells: usize,
    /// In how many resamples the median of one cell is at least that of another, row by row.
    at_least: Vec<u32>,
    /// How often each cell has each place, from 0, row by row, where none is shared.
    alone: Vec<u32>,
    /// First places of each cell; a shared one counts as its share.
    firsts: Vec<f64>,
    /// How often each cell has each place, from 0, row by row: the best of those it shares.
    best: Vec<u32>,
    /// The worst of those it shares.
    worst: Vec<u32>,
}

/// Weights of [`SIDE`] resamples, by unit.
type Weights = Vec<Beside>;

/// A cell made ready to be resampled.
struct Cell {
    /// Half of each logarithm about the center of all cells.
    halved: Vec<f64>,
    /// The unit that each repeat is drawn with, in the order of the logarithms.
    units: Vec<usize>,
    /// Whether each unit that is drawn is that of one repeat, so that every resample has as many
    /// repeats as there are.
    whole: bool,
    /// The median of all repeats, about the same center.
    median: f64,
}

impl Cell {
    /// The median of each resample, whose weights were drawn.
    fn medians(&self, weights: &Weights) -> [f64; SIDE] {
        let total = match (self.whole, i32::try_from(self.units.len())) {
            (true, Ok(units)) => [units; SIDE],
            (true | false, _) => self.totals(weights),
        };
        self.of_totals(weights, &total)
    }

    /// The same, where it is known how many repeats each resample has.
    fn of_totals(&self, weights: &Weights, total: &[i32; SIDE]) -> [f64; SIDE] {
        match total.iter().all(|total| i16::try_from(*total).is_ok()) {
            true => self.at_half::<i16x16>(weights, total),
            false => self.at_half::<i32x16>(weights, total),
        }
    }

    /// How many repeats each resample has.
    fn totals(&self, weights: &Weights) -> [i32; SIDE] {
        let mut total = [0; SIDE];
        for unit in &self.units {
            let weights = weights[*unit].iter().copied();
            total.iter_mut().zip(weights).for_each(|(total, weight)| *total += i32::from(weight));
        }
        total
    }

    /// The same by sums that hold all totals.
    fn at_half<L: Lanes>(&self, weights: &Weights, total: &[i32; SIDE]) -> [f64; SIDE] {
        /// So often it is asked whether all resamples have come to their half.
        const STRIDE: usize = 8;
        let weight = |unit: &usize| L::weight(&weights[*unit]);
        let mut halves = Halves::<L>::new(total);
        let (lowest, others) = self.units.split_at(self.hardly_half());
        let units = if halves.skip(lowest.iter().map(weight)) { others } else { &self.units };
        for units in units.chunks(STRIDE) {
            units.iter().map(weight).for_each(|weight| halves.pass(weight));
            if halves.done() {
                break;
            }
        }
        let mut medians = halves.medians(&self.halved);
        if total.contains(&0) {
            let none = medians.iter_mut().zip(total).filter(|(_, total)| **total == 0);
            none.for_each(|(median, _)| *median = self.median);
        }
        medians
    }

    /// How many repeats, from the lowest on, hardly any resample has half of its weight in: that is
    /// about binomial, and this some four standard deviations away.
    fn hardly_half(&self) -> usize {
        let repeats = self.units.len();
        (repeats / 2).saturating_sub(2 * repeats.isqrt())
    }
}

impl Standing {
    /// Resamples cells, each with larger logarithms being better.
    pub(crate) fn new(samples: &[&Sample]) -> Self {
        let k = samples.len();
        let mut at_least = vec![u32x16::ZERO; k * k];
        let mut standing = Self {
            cells: k,
            at_least: Vec::new(),
            alone: vec![0; k * k],
            firsts: vec![0.0; k],
            best: vec![0; k * k],
            worst: vec![0; k * k],
        };
        let (cells, blocks) = ready(samples);
        let mut rng = fastrand::Rng::with_seed(u64::from(RESAMPLES));
        let mut weights = vec![[0; SIDE]; blocks.unwrap_or(0)];
        let mut medians = vec![f32x16::ZERO; k];
        for _ in 0..RESAMPLES as usize / SIDE {
            if blocks.is_some() {
                draw(&mut weights, &mut rng);
            }
            for (cell, medians) in cells.iter().zip(&mut medians) {
                if blocks.is_none() {
                    weights.resize(cell.units.len(), [0; SIDE]);
                    draw(&mut weights, &mut rng);
                }
                *medians = f32x16::new(cell.medians(&weights).map(short));
            }
            standing.count(&medians, &mut at_least);
        }
        let all = |each: u32x16| each.to_array().iter().sum();
        standing.at_least = at_least.into_iter().map(all).collect();
        standing.add_alone();
        standing
    }

    /// Counts some resamples, and adds to how often one is at least another.
    fn count(&mut self, medians: &[f32x16], at_least: &mut [u32x16]) {
        let k = self.cells;
        let mut not_above = vec![u32x16::ZERO; k];
        let mut not_below = vec![u32x16::ZERO; k];
        for ((one, not_above), row) in
            medians.iter().zip(&mut not_above).zip(at_least.chunks_exact_mut(k.max(1)))
        {
            for ((other, not_below), sum) in medians.iter().zip(&mut not_below).zip(row) {
                // What is true has all bits set, which is -1 in sums that wrap around.
                let minus_one = one.simd_ge(*other).to_bits();
                *sum -= minus_one;
                *not_above -= minus_one;
                *not_below -= minus_one;
            }
        }
        // Without ties each is either above or below each other, and both itself.
        let all = u32x16::splat(count(k) + 1);
        let mut tied = u32x16::ZERO;
        not_above.iter().zip(&not_below).for_each(|(above, below)| tied |= (*above + *below) ^ all);
        let not_above: Vec<_> = not_above.into_iter().map(u32x16::to_array).collect();
        if tied == u32x16::ZERO {
            for (not_above, row) in not_above.iter().zip(self.alone.chunks_exact_mut(k.max(1))) {
                not_above.iter().for_each(|others| row[k - *others as usize] += 1);
            }
            return;
        }
        let not_below: Vec<_> = not_below.into_iter().map(u32x16::to_array).collect();
        for at in 0..SIDE {
            // The best is not below any, itself included.
            let first = |cell: &usize| not_above[*cell][at] as usize == k;
            let winners = (0..k).filter(first).count();
            for cell in 0..k {
                self.best[cell * k + (k - not_above[cell][at] as usize)] += 1;
                self.worst[cell * k + not_below[cell][at] as usize - 1] += 1;
                if first(&cell) {
                    self.firsts[cell] += 1.0 / winners as f64;
                }
            }
        }
    }

    /// Adds the places that are not shared to those that may be.
    fn add_alone(&mut self) {
        for (at, times) in self.alone.iter().enumerate() {
            self.best[at] += times;
            self.worst[at] += times;
        }
        let firsts = self.alone.iter().step_by(self.cells.max(1));
        self.firsts.iter_mut().zip(firsts).for_each(|(own, times)| *own += f64::from(*times));
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

/// A number of half the length, of which a processor compares twice as many at once. What is not
/// less stays so; two that differ by less than 6e-8 of their size (half of 2^-23) may become equal.
#[expect(clippy::cast_possible_truncation, reason = "meant: see above")]
fn short(value: f64) -> f32 {
    value as f32
}

/// The cells and how many units are drawn for all of them together; without a number each cell
/// draws among its own repeats.
fn ready(samples: &[&Sample]) -> (Vec<Cell>, Option<usize>) {
    let owners: Option<Vec<&[u32]>> =
        samples.iter().map(|sample| sample.owners.as_deref()).collect();
    let blocks = owners.map(|owners| {
        let mut blocks = owners.concat();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    });
    // What cells have in common would cost the digits that set them apart.
    let center = samples.first().map_or(0.0, |sample| sample.median());
    let cell = |sample: &&Sample| {
        let units: Vec<usize> = match (&blocks, &sample.owners) {
            (Some(blocks), Some(owners)) => {
                owners.iter().map(|own| blocks.partition_point(|block| block < own)).collect()
            }
            (None, _) | (_, None) => (0..sample.logs.len()).collect(),
        };
        let whole = {
            let mut units = units.clone();
            units.sort_unstable();
            units.into_iter().eq(0..blocks.as_ref().map_or(sample.logs.len(), Vec::len))
        };
        let logs = sample.logs.iter().copied();
        Cell { halved: halved(logs, center), units, whole, median: sample.median() - center }
    };
    let cells = samples.iter().map(cell).collect();
    (cells, blocks.map(|blocks| blocks.len()))
}

/// As many draws with replacement as there are units, for each resample; each weight says how often
/// its unit came.
///
/// A number of 32 bits times the number of units is cut to its upper half, so a unit is more
/// probable than another by less than units / 2^32 of its share.
fn draw(weights: &mut Weights, rng: &mut fastrand::Rng) {
    weights.fill([0; SIDE]);
    let units = weights.len() as u64;
    let mut count = |half: u64, at: usize| weights[((half * units) >> 32) as usize][at] += 1;
    for at in 0..SIDE {
        for _ in 0..units / 2 {
            let bits = rng.u64(..);
            count(bits >> 32, at);
            count(bits & u64::from(u32::MAX), at);
        }
        if !units.is_multiple_of(2) {
            count(rng.u64(..) >> 32, at);
        }
    }
}

#[cfg(test)]
mod tests;
