//! Bootstrap distribution of the rank of each cell.
//!
//! Counts the ranks of cells over 4000 resamples of blocks. Blocks are drawn with replacement, the
//! same ones for all cells, because a block affects all cells alike (as in `bootstrap`). If a block
//! is unknown, the repetitions of each cell are drawn separately. A cell that was measured in few
//! blocks may have no repetitions in a resample; the median of all its repetitions is then used.
//!
//! Repetitions are sorted once. A resample is a weight per block, and the median of a cell is the
//! value at which the weights in sorted order reach half of their sum. Many resamples are processed
//! at once with vector instructions, because all have the same sorted values. Medians are compared
//! as 32-bit numbers relative to the median of the first cell.

use model::Ratio;
use wide::{f32x16, i16x16, i32x16, u32x16};

use crate::{
    bootstrap::{
        RESAMPLES,
        halves::{Halves, Lanes, halved},
        paired::{PairedWeights, SIDE},
    },
    count,
    sample::Sample,
};

/// Fraction of resamples outside the rank interval on either side.
const TAIL: f64 = 0.05;

/// Counts over all resamples.
pub(crate) struct RankBootstrap {
    cells: usize,
    /// Number of resamples in which the median of a cell (row) is at least that of another cell
    /// (column).
    at_least: Vec<u32>,
    /// Number of resamples in which each cell (row) has each rank (column, from 0) and shares it
    /// with no other cell.
    alone: Vec<u32>,
    /// Number of resamples in which each cell is first. A shared first rank counts in part.
    firsts: Vec<f64>,
    /// Number of resamples in which each cell (row) has each rank (column, from 0). If ranks are
    /// shared, the best of them counts.
    best: Vec<u32>,
    /// As `best`, but of shared ranks the worst one counts.
    worst: Vec<u32>,
}

/// Weights of [`SIDE`] resamples, by unit.
type Weights = Vec<PairedWeights>;

/// Cell prepared for resampling.
struct Cell {
    /// Half of each logarithm relative to the center (see `ready`).
    halved: Vec<f64>,
    /// Unit of each repetition, in the order of the logarithms.
    units: Vec<usize>,
    /// True if each unit is one repetition, so that all resamples have the same number of
    /// repetitions.
    whole: bool,
    /// Median of all repetitions relative to the center.
    median: f64,
}

impl Cell {
    /// Median of each resample with the given weights.
    fn medians(&self, weights: &Weights) -> [f64; SIDE] {
        let total = match (self.whole, i32::try_from(self.units.len())) {
            (true, Ok(units)) => [units; SIDE],
            (true | false, _) => self.totals(weights),
        };
        self.of_totals(weights, &total)
    }

    /// Medians for known numbers of repetitions per resample.
    fn of_totals(&self, weights: &Weights, total: &[i32; SIDE]) -> [f64; SIDE] {
        match total.iter().all(|total| i16::try_from(*total).is_ok()) {
            true => self.at_half::<i16x16>(weights, total),
            false => self.at_half::<i32x16>(weights, total),
        }
    }

    /// Number of repetitions in each resample.
    fn totals(&self, weights: &Weights) -> [i32; SIDE] {
        let mut total = [0; SIDE];
        for unit in &self.units {
            let weights = weights[*unit].iter().copied();
            total.iter_mut().zip(weights).for_each(|(total, weight)| *total += i32::from(weight));
        }
        total
    }

    /// Medians computed with sums of type `L`, which is wide enough for all totals.
    fn at_half<L: Lanes>(&self, weights: &Weights, total: &[i32; SIDE]) -> [f64; SIDE] {
        /// Number of repetitions between two checks that all resamples have reached half of their
        /// weight.
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

    /// Number of lowest repetitions that almost never have half of the weight. Their weight is
    /// approximately binomial; its mean is about four standard deviations below the half.
    fn hardly_half(&self) -> usize {
        let repetitions = self.units.len();
        (repetitions / 2).saturating_sub(2 * repetitions.isqrt())
    }
}

impl RankBootstrap {
    /// Ranks over all resamples. Larger logarithms are better.
    pub(crate) fn new(samples: &[&Sample]) -> Self {
        let k = samples.len();
        let mut at_least = vec![u32x16::ZERO; k * k];
        let mut rank_bootstrap = Self {
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
            rank_bootstrap.count(&medians, &mut at_least);
        }
        let all = |each: u32x16| each.to_array().iter().sum();
        rank_bootstrap.at_least = at_least.into_iter().map(all).collect();
        rank_bootstrap.add_alone();
        rank_bootstrap
    }

    /// Counts the ranks of [`SIDE`] resamples and updates `at_least`.
    fn count(&mut self, medians: &[f32x16], at_least: &mut [u32x16]) {
        let k = self.cells;
        let mut not_above = vec![u32x16::ZERO; k];
        let mut not_below = vec![u32x16::ZERO; k];
        for ((one, not_above), row) in
            medians.iter().zip(&mut not_above).zip(at_least.chunks_exact_mut(k.max(1)))
        {
            for ((other, not_below), sum) in medians.iter().zip(&mut not_below).zip(row) {
                // True has all bits set, which is -1 as an integer, so subtracting it adds 1.
                let minus_one = one.simd_ge(*other).to_bits();
                *sum -= minus_one;
                *not_above -= minus_one;
                *not_below -= minus_one;
            }
        }
        // Without ties, each cell is above or below each other cell, and equal to itself.
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
            // The first cell is not below any cell, itself included.
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

    /// Adds the unshared ranks to the other counts.
    fn add_alone(&mut self) {
        for (at, times) in self.alone.iter().enumerate() {
            self.best[at] += times;
            self.worst[at] += times;
        }
        let firsts = self.alone.iter().step_by(self.cells.max(1));
        self.firsts.iter_mut().zip(firsts).for_each(|(own, times)| *own += f64::from(*times));
    }

    /// Fraction of resamples in which each cell has the best median. Tied cells share the resample.
    pub(crate) fn first(&self) -> Vec<Ratio> {
        self.firsts.iter().map(|won| Ratio(won / f64::from(RESAMPLES))).collect()
    }

    /// 90 % interval of the rank of each cell, from 1.
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

    /// Two-sided p-value of "the medians of two cells are equal": twice the fraction of resamples
    /// in which their order is reversed. The data count as one resample, so the p-value is never
    /// zero.
    pub(crate) fn p(&self, one: usize, other: usize) -> f64 {
        let at_least = |one: usize, other: usize| self.at_least[one * self.cells + other];
        let rarer = at_least(one, other).min(at_least(other, one));
        (2.0 * f64::from(rarer + 1) / f64::from(RESAMPLES + 1)).min(1.0)
    }
}

/// 32-bit number, which doubles the throughput of vector comparisons. Rounding keeps the order, but
/// numbers that differ by less than 6e-8 of their size (half of 2^-23) may become equal.
#[expect(clippy::cast_possible_truncation, reason = "meant: see above")]
fn short(value: f64) -> f32 {
    value as f32
}

/// Prepared cells and the number of units drawn jointly for all of them; `None` if each cell draws
/// its own repetitions.
fn ready(samples: &[&Sample]) -> (Vec<Cell>, Option<usize>) {
    let owners: Option<Vec<&[u32]>> =
        samples.iter().map(|sample| sample.owners.as_deref()).collect();
    let blocks = owners.map(|owners| {
        let mut blocks = owners.concat();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    });
    // Subtracting the center keeps the digits in which cells differ.
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

/// Draws as many units as there are, with replacement, for each resample. A weight is the number of
/// times its unit was drawn.
///
/// A 32-bit random number times the number of units is truncated to its upper half. The
/// probabilities of units therefore differ by less than units / 2^32 of their size.
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
