//! Drift: trends common to all cells of a run, over blocks, over the order of trials, or after a
//! group.
//!
//! Input is the values of the cells with the positions of their trials in the run; the result is a
//! [`Drift`]. A drift is a property of the run, not of a cell: the machine warms up, the disk fills
//! up, or one filesystem leaves work behind for the next.
//!
//! # Residuals
//!
//! A residual is ln y minus the median of the cell, signed so that above zero is better. Several
//! cells (phases) measured in one trial are not independent, so each trial has one residual, the
//! median over its phases.
//!
//! # Tests
//!
//! All tests use the ranks of residuals over the whole run (aligned ranks: Hodges and Lehmann,
//! "Rank Methods for Combination of Independent Experiments in Analysis of Variance", Annals of
//! Mathematical Statistics 33, 1962):
//!
//! - over blocks, H of Kruskal and Wallis ("Use of Ranks in One-Criterion Variance Analysis",
//!   Journal of the American Statistical Association 47, 1952);
//! - over the order of trials, Spearman's ρ (American Journal of Psychology 15, 1904);
//! - after each group (filesystem), the sum of ranks of the trials that follow the group, compared
//!   with the trials that follow any other group, with Holm's adjustment over the groups.
//!
//! The reference distribution permutes residuals among the trials of each cell. The usual tables of
//! H and ρ would be wrong: the residuals of a cell are correlated, because its median was
//! subtracted. With three blocks and without drift, the χ² table gave p < 5 % in 12 % of runs. If
//! each block has only one trial, p of H is 1, and only ρ can detect a drift.
//!
//! # Size
//!
//! The size of a drift is the Theil–Sen slope of the medians of the blocks (see [`crate::trend`]),
//! times the distance from the first block to the last. Its interval resamples blocks.

use std::collections::BTreeMap;

use model::{Ratio, metric::Better};
use rayon::prelude::*;

use crate::{
    Interval, NotEstimable,
    bootstrap::{RESAMPLES, expanded_interval, weighted_median},
    count, holm,
    summary::{LEVEL, needed},
};

/// Significance level of block differences.
pub const SIGNIFICANCE: f64 = 0.01;
/// p-value below which a drift is suspected.
const SUSPECTED: f64 = 0.25;
/// Minimum number of blocks for an analysis.
const LEAST_BLOCKS: u32 = 3;
/// Maximum and minimum number of permutations. Between these limits, the number of permutations
/// times the number of trials is [`WORK`].
const DRAWS: usize = 4999;
const LEAST_DRAWS: usize = 399;
const WORK: usize = 4_000_000;
/// Number of independent random streams of permutations. The streams run in parallel; the result
/// does not depend on the number of CPUs.
const STREAMS: usize = 8;

/// Value with its position in the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PositionedValue {
    /// Block of the trial.
    pub block: u32,
    /// Index of the trial in the run, equal for all values of one trial.
    pub order: usize,
    /// Group (filesystem) of the previous trial, as an index below the number of groups. `None`
    /// without a previous trial, or if carry-over is impossible.
    pub after: Option<usize>,
    /// Value in its base unit.
    pub value: f64,
}

/// Values of one cell and phase.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSeries {
    /// Direction of the metric.
    pub better: Better,
    /// Values, in any order.
    pub repetitions: Vec<PositionedValue>,
}

/// Common trend of the cells of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// Blocks evaluated.
    pub blocks: u32,
    /// Relative change from the first block to the last: -0.03 if all cells became 3 % worse.
    pub size: Ratio,
    /// 95 % interval of the change; `None` with too few blocks.
    pub interval: Option<Interval>,
    /// p-value of "blocks do not differ".
    pub p: f64,
    /// Correlation of residuals with the order of trials.
    pub order: Spearman,
    /// Carry-over of each group that enough trials follow, by group.
    pub carry_over: Vec<CarryOver>,
}

impl Drift {
    /// True if blocks differ significantly (p below [`SIGNIFICANCE`]) by more than half of the
    /// effective margin.
    pub fn is_detected(&self, margin: Ratio) -> bool {
        self.p < SIGNIFICANCE && self.size.0.abs() > margin.0 / 2.0
    }
}

impl Drift {
    /// True if the run may have drifted, so that cells can only be compared in the blocks that all
    /// of them have. The condition is a p-value below 25 % for blocks or for the order of trials.
    /// This level is far above the usual ones, because overlooking a drift would bias the
    /// comparisons (Bancroft, "On biases in estimation due to the use of preliminary tests of
    /// significance", The Annals of Mathematical Statistics 15, 1944). About four in ten runs
    /// without drift are suspected as well; in these runs, cells with more repetitions than others
    /// lose the additional repetitions.
    pub fn suspected(&self) -> bool {
        self.p < SUSPECTED || self.order.p < SUSPECTED
    }
}

/// Spearman's rank correlation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spearman {
    /// Coefficient from -1 to 1; above zero if results improved.
    pub rho: f64,
    /// Two-sided p-value of "order does not matter".
    pub p: f64,
}

/// Comparison of the trials right after one group with those after any other group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CarryOver {
    /// Group of the previous trial.
    pub group: usize,
    /// Relative difference of the trials after this group: -0.03 if they are 3 % worse.
    pub size: Ratio,
    /// Two-sided p-value of "no difference", Holm-adjusted over the groups.
    pub p: f64,
}

/// Tests a run for drift. `groups` is the number of groups; the seed determines all random draws.
///
/// A cell with a single value, or with a value that has no logarithm, is skipped.
///
/// # Errors
/// [`NotEstimable::Repetitions`] below 3 blocks or 6 trials, [`NotEstimable::Constant`] if all
/// residuals are equal.
pub fn of_run(cells: &[CellSeries], groups: usize, seed: u64) -> Result<Drift, NotEstimable> {
    let trials = trials(cells);
    let blocks = by_block(&trials);
    if count(blocks.len()) < LEAST_BLOCKS {
        return Err(NotEstimable::Repetitions { least: count(blocks.len()), needed: LEAST_BLOCKS });
    }
    if count(trials.len()) < needed(LEVEL) {
        return Err(NotEstimable::Repetitions {
            least: count(trials.len()),
            needed: needed(LEVEL),
        });
    }
    let residuals: Vec<f64> = trials.iter().map(|trial| trial.residual).collect();
    let ranks = ranks(&residuals);
    let (tests, ranks) = Tests::new(&trials, groups, &ranks).ok_or(NotEstimable::Constant)?;
    let found = tests.statistics(&ranks);
    let p = permuted(&tests, &found, &ranks, seed);
    let slopes = Slopes::new(&blocks);
    let carry_over: Vec<(usize, f64)> =
        tests.tested.iter().copied().zip(p[2..].iter().copied()).collect();
    let corrected = holm(&carry_over.iter().map(|(_, p)| *p).collect::<Vec<f64>>());
    Ok(Drift {
        blocks: count(blocks.len()),
        size: Ratio(slopes.size()),
        interval: slopes.interval(seed),
        p: p[0],
        order: Spearman { rho: tests.rho(found[1]), p: p[1] },
        carry_over: carry_over
            .par_iter()
            .zip(corrected)
            .map(|((group, _), p)| CarryOver { group: *group, size: after(&trials, *group), p })
            .collect(),
    })
}

/// Trial with the median of its residuals.
#[derive(Clone, Debug)]
struct Trial {
    /// First cell measured in the trial. Trials of the same cell are exchangeable.
    cell: usize,
    block: u32,
    after: Option<usize>,
    residual: f64,
}

/// Trials in the order of the run.
fn trials(cells: &[CellSeries]) -> Vec<Trial> {
    let mut trials: Vec<(usize, Trial)> = Vec::new();
    for (cell, of_cell) in cells.iter().enumerate() {
        let values = of_cell.repetitions.iter().map(|repetition| repetition.value);
        if of_cell.repetitions.len() < 2 || !values.clone().all(|v| v.is_finite() && v > 0.0) {
            continue;
        }
        let sign = match of_cell.better {
            Better::Lower => -1.0,
            Better::Higher | Better::Neither => 1.0,
        };
        let logs: Vec<f64> = values.map(f64::ln).collect();
        let center = middle(logs.clone());
        let residuals = logs.iter().map(|log| sign * (log - center));
        trials.extend(of_cell.repetitions.iter().zip(residuals).map(|(repetition, residual)| {
            let PositionedValue { block, order, after, .. } = *repetition;
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

/// Median of values in any order. Requires at least one value.
fn middle(mut values: Vec<f64>) -> f64 {
    let (upper, odd) = (values.len() / 2, !values.len().is_multiple_of(2));
    let (lower, upper, _) = values.select_nth_unstable_by(upper, f64::total_cmp);
    let upper = *upper;
    match lower.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if !odd => f64::midpoint(lower, upper),
        Some(_) | None => upper,
    }
}

/// Number and median residual of each block.
fn by_block(trials: &[Trial]) -> Vec<(f64, f64)> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        blocks.entry(trial.block).or_default().push(trial.residual);
    }
    blocks.into_iter().map(|(block, residuals)| (f64::from(block), middle(residuals))).collect()
}

/// Relative difference of the trials after a group from those after any other group; positive is
/// better.
fn after(trials: &[Trial], group: usize) -> Ratio {
    let of = |own: bool| {
        let trials = trials.iter().filter(|t| t.after.is_some_and(|g| (g == group) == own));
        middle(trials.map(|trial| trial.residual).collect())
    };
    Ratio((of(true) - of(false)).exp_m1())
}

/// Ranks of values, from 1; equal values have their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    // The order of equal values does not matter.
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

/// Data that all permutations use. Trials are sorted by cell, so that a permutation affects
/// contiguous ranges.
struct Tests {
    /// Positions of the trials; their ranks are kept separately.
    trials: Vec<TrialPosition>,
    /// Number of trials per cell.
    cells: Vec<usize>,
    /// Number of trials per block.
    sizes: Vec<f64>,
    /// Groups with enough trials after them, and enough trials after other groups.
    tested: Vec<usize>,
    /// Expected rank sum relative to the middle rank, for each tested group and, last, for all
    /// other trials.
    expected: Vec<f64>,
    /// Middle of the order and of the ranks.
    center: f64,
    /// Sum of squares of ranks about their mean.
    squares: f64,
}

/// Position of a trial.
#[derive(Clone, Copy)]
struct TrialPosition {
    /// Order in the run, relative to its middle.
    order: f64,
    /// Index of its block.
    block: usize,
    /// Index, among the tested groups, of the group before the trial; the number of tested groups
    /// if there is none.
    after: usize,
}

impl Tests {
    /// Tests, and the ranks in the order of `trials`. `None` if all ranks are equal.
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
            TrialPosition { order, block, after: after.unwrap_or(tested.len()) }
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

    /// Statistics of all tests: H, the covariance with the order, and, for each tested group, the
    /// deviation of its rank sum from the expectation.
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

    /// Number of permutations within cells in which each statistic is at least as far from zero as
    /// the observed one.
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
                // The tolerance covers rounding: sums in another order differ in the last digits.
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

/// Groups with enough trials after them, and enough trials after other groups.
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

/// p-value of each statistic: the fraction of permutations within cells, including the observed
/// order, in which the statistic is at least as far from zero as the observed one.
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

/// Slopes between the medians of all pairs of blocks, ascending, with the indexes of both blocks.
struct Slopes {
    slopes: Vec<(f64, usize, usize)>,
    blocks: usize,
    /// Distance from the first block to the last.
    aspect: f64,
}

impl Slopes {
    /// Slopes of at least two blocks, which are ascending.
    fn new(blocks: &[(f64, f64)]) -> Self {
        let mut slopes = Vec::new();
        for (to, (x, y)) in blocks.iter().enumerate() {
            let slope = |(from, (z, w)): (usize, &(f64, f64))| ((y - w) / (x - z), from, to);
            slopes.extend(blocks[..to].iter().enumerate().map(slope));
        }
        slopes.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { slopes, blocks: blocks.len(), aspect: blocks[blocks.len() - 1].0 - blocks[0].0 }
    }

    fn size(&self) -> f64 {
        let each = self.slopes.iter().map(|(slope, ..)| (*slope, 1));
        (weighted_median(each, 0, self.slopes.len() as u64) * self.aspect).exp_m1()
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
            // A resample of a single block (one in 7776 with six blocks) has no slope.
            if total > 0 {
                let median = weighted_median(self.slopes.iter().map(weigh), 0, total);
                sizes.push((median * self.aspect).exp_m1());
            }
        }
        Some(expanded_interval(sizes, count(self.blocks)))
    }
}

#[cfg(test)]
mod tests;
