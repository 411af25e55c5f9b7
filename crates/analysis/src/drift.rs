//! Whether all cells of a run moved together: over its blocks, over time, or after one another.
//!
//! The values of the cells enter with the place of their trials in the run, a [`Drift`] leaves. It
//! is about the run, not about any cell: what it finds is the machine warming up, the disk filling
//! up, or one filesystem leaving work behind for the next.
//!
//! # Residuals
//!
//! ln y less the cell's median, turned so that above zero is better. What several cells (phases)
//! measured in one trial is no independent evidence, so a trial counts once, with the median of its
//! residuals.
//!
//! # Tests
//!
//! All on the ranks of residuals over the whole run (aligned ranks: Hodges and Lehmann, "Rank
//! Methods for Combination of Independent Experiments in Analysis of Variance", Annals of
//! Mathematical Statistics 33, 1962):
//!
//! - over blocks Kruskal and Wallis' H ("Use of Ranks in One-Criterion Variance Analysis", Journal
//!   of the American Statistical Association 47, 1952);
//! - over the order of trials Spearman's ρ (American Journal of Psychology 15, 1904);
//! - after each group (filesystem) the sum of ranks, against the trials after any other group, with
//!   Holm's correction over the groups.
//!
//! Their reference is the permutation of residuals among the trials of each cell. The tables of H
//! and ρ would be wrong here: the median was taken out of each cell, so its residuals hang
//! together. With three blocks the χ² table told blocks apart at 5 % in 12 % of runs without drift.
//! Where each block has one trial only, H says nothing (p is 1), and ρ has to do.
//!
//! # Size
//!
//! Theil and Sen's slope of the medians of the blocks (see [`crate::trend`]), times the way from
//! the first block to the last. Its interval resamples blocks.

use std::collections::BTreeMap;

use model::{Ratio, metric::Better};
use rayon::prelude::*;

use crate::{
    Absent, Interval,
    bootstrap::{RESAMPLES, expanded_interval, weighted_median},
    count, holm,
    summary::{LEVEL, needed},
};

/// Below this p-value the blocks of a run are called apart.
pub const FIRES: f64 = 0.01;
/// Below this p-value a drift is suspected.
const SUSPECTED: f64 = 0.25;
/// Blocks it takes to speak of drift.
const LEAST_BLOCKS: u32 = 3;
/// Permutations at most, and at least; in between as many as make [`WORK`] steps.
const DRAWS: usize = 4999;
const LEAST_DRAWS: usize = 399;
const WORK: usize = 4_000_000;
/// Permutations are drawn in so many streams of their own, which run side by side on any number of
/// processors and come to the same.
const STREAMS: usize = 8;

/// One value and where in the run it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The block of the trial.
    pub block: u32,
    /// Which trial of the run it was; values of one trial have the same.
    pub order: usize,
    /// The group (filesystem) of the trial before, below the number of groups; `None` if there was
    /// none, or nothing can carry over from it.
    pub after: Option<usize>,
    /// The value in its base unit.
    pub value: f64,
}

/// The values of one cell and phase.
#[derive(Clone, Debug, PartialEq)]
pub struct OfCell {
    /// Which values are good.
    pub better: Better,
    /// The values, in any order.
    pub repeats: Vec<Placed>,
}

/// How the cells of a run moved together.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// Blocks that were looked at.
    pub blocks: u32,
    /// How far from the first block to the last, as a share: -0.03 where all got 3 % worse.
    pub size: Ratio,
    /// Its 95 % interval; `None` with too few blocks for one.
    pub interval: Option<Interval>,
    /// p-value of "blocks do not matter".
    pub p: f64,
    /// Residuals over the order of trials.
    pub order: Spearman,
    /// One for each group that enough trials came after, by group.
    pub carry: Vec<Carry>,
}

impl Drift {
    /// Whether blocks differ by more than chance has them (p below [`FIRES`]), and by enough to
    /// matter: more than half of the working threshold.
    pub fn fires(&self, threshold: Ratio) -> bool {
        self.p < FIRES && self.size.0.abs() > threshold.0 / 2.0
    }
}

impl Drift {
    /// Whether the run may have drifted, so that blocks which only one of two cells has may not
    /// count for it. Blocks or order of trials have a p-value below 25 %: a test that decides
    /// whether values may be pooled has to be made at a level far above the usual ones (Bancroft,
    /// "On biases in estimation due to the use of preliminary tests of significance", The Annals of
    /// Mathematical Statistics 15, 1944). Of runs that did not drift, some four in ten are
    /// suspected, and lose what their longer cells know beyond their shorter ones.
    pub fn suspected(&self) -> bool {
        self.p < SUSPECTED || self.order.p < SUSPECTED
    }
}

/// Spearman's rank correlation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spearman {
    /// Within -1..=1; above zero where results got better.
    pub rho: f64,
    /// Two-sided p-value of "order does not matter".
    pub p: f64,
}

/// What trials right after one group were like, against those after any other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carry {
    /// The group that had been measured before.
    pub group: usize,
    /// By how much trials after it differ, as a share: -0.03 where they are 3 % worse.
    pub size: Ratio,
    /// Two-sided p-value of "no difference", by Holm over the groups.
    pub p: f64,
}

/// Looks for drift in a run of so many groups. The seed settles all draws.
///
/// A cell with a single value, or with one that has no logarithm, takes no part.
///
/// # Errors
/// [`Absent::Repeats`] below 3 blocks or 6 trials, [`Absent::Constant`] if no value differs from
/// its cell's median.
pub fn of_run(cells: &[OfCell], groups: usize, seed: u64) -> Result<Drift, Absent> {
    let trials = trials(cells);
    let blocks = by_block(&trials);
    if count(blocks.len()) < LEAST_BLOCKS {
        return Err(Absent::Repeats { least: count(blocks.len()), needed: LEAST_BLOCKS });
    }
    if count(trials.len()) < needed(LEVEL) {
        return Err(Absent::Repeats { least: count(trials.len()), needed: needed(LEVEL) });
    }
    let residuals: Vec<f64> = trials.iter().map(|trial| trial.residual).collect();
    let ranks = ranks(&residuals);
    let (tests, ranks) = Tests::new(&trials, groups, &ranks).ok_or(Absent::Constant)?;
    let found = tests.statistics(&ranks);
    let p = permuted(&tests, &found, &ranks, seed);
    let slopes = Slopes::new(&blocks);
    let carry: Vec<(usize, f64)> =
        tests.tested.iter().copied().zip(p[2..].iter().copied()).collect();
    let corrected = holm(&carry.iter().map(|(_, p)| *p).collect::<Vec<f64>>());
    Ok(Drift {
        blocks: count(blocks.len()),
        size: Ratio(slopes.size()),
        interval: slopes.interval(seed),
        p: p[0],
        order: Spearman { rho: tests.rho(found[1]), p: p[1] },
        carry: carry
            .par_iter()
            .zip(corrected)
            .map(|((group, _), p)| Carry { group: *group, size: after(&trials, *group), p })
            .collect(),
    })
}

/// A trial with the median of its residuals.
#[derive(Clone, Debug)]
struct Trial {
    /// The first cell that was measured in it: trials of the same are exchangeable.
    cell: usize,
    block: u32,
    after: Option<usize>,
    residual: f64,
}

/// The trials in the order of the run.
fn trials(cells: &[OfCell]) -> Vec<Trial> {
    let mut trials: Vec<(usize, Trial)> = Vec::new();
    for (cell, of_cell) in cells.iter().enumerate() {
        let values = of_cell.repeats.iter().map(|repeat| repeat.value);
        if of_cell.repeats.len() < 2 || !values.clone().all(|v| v.is_finite() && v > 0.0) {
            continue;
        }
        let sign = match of_cell.better {
            Better::Lower => -1.0,
            Better::Higher | Better::Neither => 1.0,
        };
        let logs: Vec<f64> = values.map(f64::ln).collect();
        let center = middle(logs.clone());
        let residuals = logs.iter().map(|log| sign * (log - center));
        trials.extend(of_cell.repeats.iter().zip(residuals).map(|(repeat, residual)| {
            let Placed { block, order, after, .. } = *repeat;
            (order, Trial { cell, block, after, residual })
        }));
    }
    trials.par_sort_by_key(|(order, _)| *order);
    let settled = |values: &[(usize, Trial)]| {
        let residual = middle(values.iter().map(|(_, trial)| trial.residual).collect());
        Trial { residual, ..values[0].1 }
    };
    trials.chunk_by(|one, other| one.0 == other.0).map(settled).collect()
}

/// The median of values in any order, of which there is at least one.
fn middle(mut values: Vec<f64>) -> f64 {
    let (upper, odd) = (values.len() / 2, !values.len().is_multiple_of(2));
    let (lower, upper, _) = values.select_nth_unstable_by(upper, f64::total_cmp);
    let upper = *upper;
    match lower.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if !odd => f64::midpoint(lower, upper),
        Some(_) | None => upper,
    }
}

/// The median residual of each block.
fn by_block(trials: &[Trial]) -> Vec<(f64, f64)> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        blocks.entry(trial.block).or_default().push(trial.residual);
    }
    blocks.into_iter().map(|(block, residuals)| (f64::from(block), middle(residuals))).collect()
}

/// How much better trials after a group are than those after any other, as a share.
fn after(trials: &[Trial], group: usize) -> Ratio {
    let of = |own: bool| {
        let trials = trials.iter().filter(|t| t.after.is_some_and(|g| (g == group) == own));
        middle(trials.map(|trial| trial.residual).collect())
    };
    Ratio((of(true) - of(false)).exp_m1())
}

/// The ranks of values, from 1, the mean of their places where they are equal.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    // The order of equal ones does not matter.
    order.par_sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    for run in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = f64::midpoint(from as f64 + 1.0, (from + run.len()) as f64);
        run.iter().for_each(|at| ranks[*at] = rank);
        from += run.len();
    }
    ranks
}

/// What is computed again for each permutation. Trials stand cell by cell, so that what is permuted
/// lies together.
struct Tests {
    /// What is known of each trial but its rank.
    trials: Vec<Place>,
    /// How many trials each cell has.
    cells: Vec<usize>,
    /// The number of trials in each block.
    sizes: Vec<f64>,
    /// The groups that are tested: those with enough trials after them, and after any other.
    tested: Vec<usize>,
    /// For each of them, and for all other trials, the sum of ranks about their middle to expect.
    expected: Vec<f64>,
    /// Half-way along the order, and among the ranks.
    center: f64,
    /// The sum of squares of ranks about their mean.
    squares: f64,
}

/// Where a trial was measured.
#[derive(Clone, Copy)]
struct Place {
    /// In the order of the run, from its middle.
    order: f64,
    /// The place of its block among the blocks.
    block: usize,
    /// The place, among the groups that are tested, of that which it came after; their number if it
    /// came after none of them.
    after: usize,
}

impl Tests {
    /// The tests, and the ranks in the order of their trials. `None` if all ranks are equal.
    fn new(trials: &[Trial], groups: usize, ranks: &[f64]) -> Option<(Self, Vec<f64>)> {
        let n = trials.len() as f64;
        let center = f64::midpoint(n, 1.0);
        let squares: f64 = ranks.iter().map(|rank| (rank - center).powi(2)).sum();
        let mut names: Vec<u32> = trials.iter().map(|trial| trial.block).collect();
        names.sort_unstable();
        names.dedup();
        let tested = tested(trials, groups);
        let mut by_cell: Vec<usize> = (0..trials.len()).collect();
        by_cell.sort_by_key(|at| trials[*at].cell);
        let place = |at: &usize| {
            let trial = &trials[*at];
            let after = trial.after.and_then(|group| tested.iter().position(|own| *own == group));
            let block = names.partition_point(|name| *name < trial.block);
            let order = *at as f64 + 1.0 - center;
            Place { order, block, after: after.unwrap_or(tested.len()) }
        };
        let cells = by_cell.chunk_by(|one, other| trials[*one].cell == trials[*other].cell);
        let cells: Vec<usize> = cells.map(<[usize]>::len).collect();
        let ranks: Vec<f64> = by_cell.iter().map(|at| ranks[*at]).collect();
        let mut tests = Self {
            trials: by_cell.iter().map(place).collect(),
            cells,
            sizes: vec![0.0; names.len()],
            expected: vec![0.0; tested.len() + 1],
            tested,
            center,
            squares,
        };
        let mut from = 0;
        for length in &tests.cells {
            let own = from..from + length;
            let sum: f64 = ranks[own.clone()].iter().sum();
            let mean = sum / *length as f64 - center;
            for place in &tests.trials[own] {
                tests.sizes[place.block] += 1.0;
                tests.expected[place.after] += mean;
            }
            from += length;
        }
        (squares > 0.0).then_some((tests, ranks))
    }

    /// H, the covariance with the order, and for each group that is tested how far its
    /// sum of ranks is from what is to be expected.
    fn statistics(&self, ranks: &[f64]) -> Vec<f64> {
        let mut blocks = vec![0.0; self.sizes.len()];
        let mut after = vec![0.0; self.tested.len() + 1];
        let mut covariance = 0.0;
        for (place, rank) in self.trials.iter().zip(ranks) {
            let rank = rank - self.center;
            blocks[place.block] += rank;
            after[place.after] += rank;
            covariance += place.order * rank;
        }
        let between: f64 = blocks.iter().zip(&self.sizes).map(|(sum, n)| sum * sum / n).sum();
        let h = (ranks.len() as f64 - 1.0) * between / self.squares;
        let groups = after.iter().zip(&self.expected).take(self.tested.len());
        [h, covariance].into_iter().chain(groups.map(|(sum, expected)| sum - expected)).collect()
    }

    /// In how many of so many permutations within cells each statistic is at least as far from zero
    /// as found.
    fn as_far(&self, found: &[f64], mut ranks: Vec<f64>, draws: usize, seed: u64) -> Vec<u32> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut as_far = vec![0; found.len()];
        for _ in 0..draws {
            let mut others = ranks.as_mut_slice();
            for length in &self.cells {
                let (cell, rest) = others.split_at_mut(*length);
                (1..cell.len()).rev().for_each(|end| cell.swap(end, rng.usize(0..=end)));
                others = rest;
            }
            for ((as_far, found), drawn) in
                as_far.iter_mut().zip(found).zip(self.statistics(&ranks))
            {
                // Sums in another order end in other last digits.
                *as_far += u32::from(drawn.abs() >= found.abs() * (1.0 - 1e-9));
            }
        }
        as_far
    }

    /// ρ from its covariance: the order has no ties.
    fn rho(&self, covariance: f64) -> f64 {
        let n = self.trials.len() as f64;
        (covariance / (self.squares * n * (n * n - 1.0) / 12.0).sqrt()).clamp(-1.0, 1.0)
    }
}

/// The groups that enough trials came after, as well as after any other.
fn tested(trials: &[Trial], groups: usize) -> Vec<usize> {
    let mut after = vec![0; groups];
    for group in trials.iter().filter_map(|trial| trial.after) {
        if let Some(own) = after.get_mut(group) {
            *own += 1;
        }
    }
    let known = trials.iter().filter(|trial| trial.after.is_some()).count();
    let enough = |trials: usize| trials >= needed(LEVEL) as usize;
    (0..groups).filter(|group| enough(after[*group]) && enough(known - after[*group])).collect()
}

/// The share of permutations within cells, the one found among them, in which each statistic is at
/// least as far from zero.
fn permuted(tests: &Tests, found: &[f64], ranks: &[f64], seed: u64) -> Vec<f64> {
    let draws = (WORK / ranks.len()).clamp(LEAST_DRAWS, DRAWS);
    let as_far = |stream: usize| {
        let own = (stream..draws).step_by(STREAMS).len();
        tests.as_far(found, ranks.to_vec(), own, seed.wrapping_add(stream as u64))
    };
    let streams: Vec<Vec<u32>> = (0..STREAMS).into_par_iter().map(as_far).collect();
    let share = |at: usize| {
        let as_far: u32 = streams.iter().map(|stream| stream[at]).sum();
        f64::from(as_far + 1) / (draws as f64 + 1.0)
    };
    (0..found.len()).map(share).collect()
}

/// Slopes between the medians of all pairs of blocks, ascending, with the places of both.
struct Slopes {
    slopes: Vec<(f64, usize, usize)>,
    blocks: usize,
    /// From the first block to the last.
    way: f64,
}

impl Slopes {
    /// The blocks ascend and are at least two.
    fn new(blocks: &[(f64, f64)]) -> Self {
        let mut slopes = Vec::new();
        for (to, (x, y)) in blocks.iter().enumerate() {
            let slope = |(from, (z, w)): (usize, &(f64, f64))| ((y - w) / (x - z), from, to);
            slopes.extend(blocks[..to].iter().enumerate().map(slope));
        }
        slopes.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { slopes, blocks: blocks.len(), way: blocks[blocks.len() - 1].0 - blocks[0].0 }
    }

    fn size(&self) -> f64 {
        let each = self.slopes.iter().map(|(slope, ..)| (*slope, 1));
        (weighted_median(each, 0, self.slopes.len() as u64) * self.way).exp_m1()
    }

    fn interval(&self, seed: u64) -> Option<Interval> {
        if count(self.blocks) < needed(LEVEL) {
            return None;
        }
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut sizes = Vec::new();
        while count(sizes.len()) < RESAMPLES {
            let mut weights = vec![0u32; self.blocks];
            (0..self.blocks).for_each(|_| weights[rng.usize(0..self.blocks)] += 1);
            let weigh =
                |(slope, from, to): &(f64, usize, usize)| (*slope, weights[*from] * weights[*to]);
            let total = self.slopes.iter().map(|slope| u64::from(weigh(slope).1)).sum();
            // A resample of one block alone, one in 7776 with six, has no slope.
            if total > 0 {
                let median = weighted_median(self.slopes.iter().map(weigh), 0, total);
                sizes.push((median * self.way).exp_m1());
            }
        }
        Some(expanded_interval(sizes, count(self.blocks)))
    }
}

#[cfg(test)]
mod tests;
