//! Trend of a metric over a swept parameter: direction, significance, and change per doubling.
//!
//! Takes the levels of a sweep as [`Level`]s with one value per trial and returns a [`Trend`]. The
//! direction of the metric and a possible peak of the curve are ignored; [`crate::scaling`] handles
//! both.
//!
//! # Significance: Jonckheere–Terpstra, within blocks
//!
//! J counts the pairs of values of two levels in which the higher level has the higher value; a tie
//! counts one half (Jonckheere, "A distribution-free k-sample test against ordered alternatives",
//! Biometrika 41, 1954; Terpstra, Indagationes Mathematicae 14, 1952). Its reference distribution
//! is computed by permuting values within each block. Differences between blocks therefore do not
//! affect the p-value. Up to 200,000 permutations are enumerated; if there are more, 20,000 are
//! drawn. The p-value is twice the smaller tail, because J is not symmetric if blocks have unequal
//! sizes.
//!
//! # Effect size: τ_b and Theil–Sen
//!
//! Kendall's τ_b follows from J: (2 J - P) / sqrt(P Q), with P pairs of different levels and Q
//! pairs of different values (Kendall, "The treatment of ties in ranking problems", Biometrika 33,
//! 1945). The Theil–Sen slope is the median slope of ln y over log2 x among all pairs of values of
//! different levels (Theil 1950; Sen, "Estimates of the Regression Coefficient Based on Kendall's
//! Tau", Journal of the American Statistical Association 63, 1968). The slope is thus a ratio per
//! doubling of x.
//!
//! [`Sensitivity`] is the spread between the levels, [`Form`] the shape of the curve.
//! [`mann_kendall`] applies to levels with one value each.

mod kendall;
mod sensitivity;
mod shape;
mod within;

pub use kendall::{Monotone, mann_kendall};
pub use sensitivity::{INSENSITIVE, Sensitive, Sensitivity};
pub use shape::{Form, FormKind};

pub(crate) use crate::sweep::positive;
pub use crate::sweep::{Level, Repetition, Sweep};

use std::collections::BTreeMap;

use model::{Ratio, metric::Better};

use crate::{
    Comparer, Comparison, Error, Interval, NotEstimable,
    bootstrap::{Resampler, expanded_interval, weighted_median},
    count,
};

/// Maximum number of permutations that are enumerated.
const PERMUTATIONS_MAX: u64 = 200_000;
/// Number of permutations that are drawn if there are more.
pub(crate) const DRAWS: u32 = 20_000;

impl Sweep {
    /// Trend of the metric over the levels. The seed determines all random draws.
    ///
    /// # Errors
    /// [`NotEstimable::Levels`] below 2 levels.
    pub fn trend(&self, seed: u64) -> Result<Trend, NotEstimable> {
        if self.levels.len() < 2 {
            return Err(NotEstimable::Levels { levels: count(self.levels.len()), needed: 2 });
        }
        let mut order = Order::new(self);
        let doubled = order.doubled_j();
        let tau_b = order.tau_b(doubled).ok_or(NotEstimable::Constant);
        let (p, exact) = order.p(doubled, seed);
        let slopes = Slopes::new(self);
        Ok(Trend {
            statistic: doubled as f64 / 2.0,
            p,
            exact,
            tau_b,
            per_doubling: Ratio(slopes.median().exp()),
            per_doubling_interval: slopes.interval(self, seed),
        })
    }

    /// Comparison of the last level with the first, at the equivalence margin δ (0.05 for 5 %).
    /// With [`Better::Higher`], the ratio is that of the last level to the first.
    ///
    /// # Errors
    /// Those of [`Comparer::compare_repetitions`], which a [`Sweep`] excludes.
    pub fn ends(
        &self,
        comparer: &mut Comparer,
        better: Better,
        margin: Ratio,
    ) -> Result<Comparison, Error> {
        let (Some(first), Some(last)) = (self.levels.first(), self.levels.last()) else {
            return Err(Error::Empty);
        };
        comparer.compare_repetitions(&first.repetitions, &last.repetitions, better, margin)
    }
}

/// Trend of a metric over the levels. The direction of the metric is ignored: a rising latency has
/// a positive τ.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// J of Jonckheere and Terpstra: number of pairs of values of two levels in which the higher
    /// level has the higher value; a tie counts one half.
    pub statistic: f64,
    /// Two-sided p-value of "no trend", by permutation within blocks.
    pub p: f64,
    /// True if all permutations were enumerated; otherwise `p` is estimated from 20,000 of them.
    pub exact: bool,
    /// Kendall's τ_b of values and levels, -1 to 1; not estimable if all values are equal.
    pub tau_b: Result<f64, NotEstimable>,
    /// Theil–Sen slope as a ratio of the metric per doubling of the level, 1.1 for 10 % more.
    pub per_doubling: Ratio,
    /// 95 % interval of the ratio per doubling, by resampling blocks.
    pub per_doubling_interval: Result<Interval, NotEstimable>,
}

/// Sorted values of a sweep, reduced to levels, ties, and blocks.
struct Order {
    /// Level of each value, by ascending value.
    labels: Vec<usize>,
    /// Ends of runs of equal values.
    runs: Vec<usize>,
    /// Indexes of the values of each block.
    blocks: Vec<Vec<usize>>,
    /// Number of values of each level counted so far; kept to save allocations.
    passed: Vec<u64>,
}

impl Order {
    fn new(sweep: &Sweep) -> Self {
        let mut all: Vec<(f64, usize, Option<u32>)> = Vec::new();
        for (label, level) in sweep.levels.iter().enumerate() {
            all.extend(
                level
                    .repetitions
                    .iter()
                    .map(|repetition| (repetition.value, label, repetition.block)),
            );
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        let mut runs: Vec<usize> =
            (1..all.len()).filter(|place| all[place - 1].0 < all[*place].0).collect();
        runs.push(all.len());
        let mut blocks: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
        for (place, (_, _, block)) in all.iter().enumerate() {
            blocks.entry(block.filter(|_| sweep.blocked())).or_default().push(place);
        }
        Self {
            labels: all.iter().map(|(_, label, _)| *label).collect(),
            runs,
            blocks: blocks.into_values().collect(),
            passed: vec![0; sweep.levels.len()],
        }
    }

    /// 2 J, an integer. Cost: number of values times number of levels.
    fn doubled_j(&mut self) -> u64 {
        self.passed.fill(0);
        let (mut from, mut doubled) = (0, 0);
        for end in &self.runs {
            let run = &self.labels[from..*end];
            for (index, label) in run.iter().enumerate() {
                doubled += 2 * self.passed[..*label].iter().sum::<u64>();
                doubled += run[..index].iter().filter(|other| *other != label).count() as u64;
            }
            run.iter().for_each(|label| self.passed[*label] += 1);
            from = *end;
        }
        doubled
    }

    /// τ_b from 2 J; `None` if all values are equal.
    fn tau_b(&self, doubled: u64) -> Option<f64> {
        let pairs = |n: f64| n * (n - 1.0) / 2.0;
        let all = pairs(self.labels.len() as f64);
        // After `doubled_j`, `passed` contains the number of values of each level.
        let levels = all - self.passed.iter().map(|n| pairs(*n as f64)).sum::<f64>();
        let starts = std::iter::once(&0).chain(&self.runs);
        let tied = starts.zip(&self.runs).map(|(from, to)| pairs((to - from) as f64));
        let values = all - tied.sum::<f64>();
        let size = (levels * values).sqrt();
        (size > 0.0).then(|| ((doubled as f64 - levels) / size).clamp(-1.0, 1.0))
    }

    /// Two-sided p-value of an observed 2 J; true if it is exact.
    fn p(&mut self, observed: u64, seed: u64) -> (f64, bool) {
        let (mut below, mut above, mut total) = (0u32, 0u32, 0u32);
        let mut see = |drawn: u64| {
            below += u32::from(drawn <= observed);
            above += u32::from(drawn >= observed);
            total += 1;
        };
        let exact = self.permutations().is_some();
        if exact {
            let mut labels: Vec<Vec<usize>> = self.by_block();
            labels.iter_mut().for_each(|block| block.sort_unstable());
            loop {
                for (block, labels) in self.blocks.iter().zip(&labels) {
                    block.iter().zip(labels).for_each(|(at, label)| self.labels[*at] = *label);
                }
                see(self.doubled_j());
                // The first block that has a next order advances; the blocks before it restart.
                let Some(at) = labels.iter_mut().position(|block| advance(block)) else { break };
                labels[..at].iter_mut().for_each(|block| block.sort_unstable());
            }
        } else {
            let mut rng = fastrand::Rng::with_seed(seed);
            see(observed);
            for _ in 0..DRAWS {
                for block in &self.blocks {
                    for end in (1..block.len()).rev() {
                        self.labels.swap(block[end], block[rng.usize(0..=end)]);
                    }
                }
                see(self.doubled_j());
            }
        }
        ((2.0 * f64::from(below.min(above)) / f64::from(total)).min(1.0), exact)
    }

    fn by_block(&self) -> Vec<Vec<usize>> {
        let labels = |block: &Vec<usize>| block.iter().map(|at| self.labels[*at]).collect();
        self.blocks.iter().map(labels).collect()
    }

    /// Number of distinct orders of labels within blocks; `None` above [`PERMUTATIONS_MAX`].
    fn permutations(&self) -> Option<u64> {
        let mut product = 1u64;
        for block in self.by_block() {
            let mut seen = vec![0u64; self.passed.len()];
            // This is a multinomial coefficient, computed value by value. Each intermediate result
            // is an integer and not smaller than the one before.
            for (index, label) in block.iter().enumerate() {
                seen[*label] += 1;
                product = product.checked_mul(index as u64 + 1)? / seen[*label];
                if product > PERMUTATIONS_MAX {
                    return None;
                }
            }
        }
        Some(product)
    }
}

/// Advances to the next order of labels in lexical order; `false` after the last order.
fn advance(labels: &mut [usize]) -> bool {
    let Some(at) = (1..labels.len()).rev().find(|at| labels[at - 1] < labels[*at]) else {
        return false;
    };
    let pivot = labels[at - 1];
    let with = (at..labels.len()).rev().find(|with| labels[*with] > pivot).unwrap_or(at);
    labels.swap(at - 1, with);
    labels[at..].reverse();
    true
}

/// Slopes between all pairs of values of different levels, ascending.
struct Slopes {
    slopes: Vec<Slope>,
    /// One value (level, repetition) of each unit. A unit is a block or, without blocks, a value.
    units: Vec<(usize, usize)>,
}

struct Slope {
    /// Difference of ln y over the difference of log2 x.
    slope: f64,
    /// Units of the two values.
    units: [u32; 2],
}

/// Number of slopes per chunk. Slopes before a chunk are counted by pair of units.
const CHUNK: usize = 512;
/// Maximum number of units for which counting is faster than passing all slopes.
const UNITS_MAX: usize = 64;

impl Slopes {
    fn new(sweep: &Sweep) -> Self {
        let mut units = Vec::new();
        let mut known: BTreeMap<u32, u32> = BTreeMap::new();
        let mut points: Vec<(f64, Vec<(f64, u32)>)> = Vec::new();
        for (at, level) in sweep.levels.iter().enumerate() {
            let mut own = Vec::new();
            for (index, repetition) in level.repetitions.iter().enumerate() {
                let next = count(units.len());
                let block = repetition.block.filter(|_| sweep.blocked());
                let unit = block.map_or(next, |block| *known.entry(block).or_insert(next));
                if unit == next {
                    units.push((at, index));
                }
                own.push((repetition.value.ln(), unit));
            }
            points.push((level.at.log2(), own));
        }
        let mut slopes = Vec::new();
        for (at, (x, from)) in points.iter().enumerate() {
            for (z, to) in &points[at + 1..] {
                for (y, one) in from {
                    let slope = |(w, other): &(f64, u32)| Slope {
                        slope: (w - y) / (z - x),
                        units: [*one, *other],
                    };
                    slopes.extend(to.iter().map(slope));
                }
            }
        }
        slopes.sort_by(|a, b| a.slope.total_cmp(&b.slope));
        Self { slopes, units }
    }

    fn median(&self) -> f64 {
        let each = self.slopes.iter().map(|slope| (slope.slope, 1));
        weighted_median(each, 0, self.slopes.len() as u64)
    }

    /// Interval of the ratio per doubling. In a resample, the weight of a slope is the product of
    /// the weights of its two values. Slopes are therefore sorted only once, for all resamples. All
    /// values of a unit have the same weight. The total weight of the slopes before a chunk thus
    /// follows from the number of these slopes per pair of units.
    fn interval(&self, sweep: &Sweep, seed: u64) -> Result<Interval, NotEstimable> {
        let resampler = Resampler::new(&[sweep], seed)?;
        let blocks = resampler.least();
        let medians = self.medians(resampler, &self.counts());
        Ok(expanded_interval(medians.into_iter().map(f64::exp).collect(), blocks))
    }

    /// Median slope of each resample. Without counts, all slopes are passed one by one.
    fn medians(&self, resampler: Resampler, counts: &[Vec<u32>]) -> Vec<f64> {
        let width = self.units.len();
        let mut medians = Vec::new();
        resampler.each(|weights| {
            let own: Vec<u32> = self.units.iter().map(|(at, index)| weights[*at][*index]).collect();
            let below = |counts: &[u32]| -> u64 {
                let of = |(row, weight): (&[u32], &u32)| {
                    weight * row.iter().zip(&own).map(|(count, weight)| count * weight).sum::<u32>()
                };
                counts.chunks(width).zip(&own).map(of).map(u64::from).sum()
            };
            let sums = weights.iter().map(|level| level.iter().copied().map(u64::from).sum());
            let sums: Vec<u64> = sums.collect();
            let all: u64 = sums.iter().sum();
            let total = (all * all - sums.iter().map(|sum| sum * sum).sum::<u64>()) / 2;
            let chunk = counts.partition_point(|counts| below(counts) <= (total - 1) / 2);
            let chunk = chunk.saturating_sub(1);
            let passed = counts.get(chunk).map_or(0, |counts| below(counts));
            let rest = self.slopes[chunk * CHUNK..].iter().map(|slope| {
                let [one, other] = slope.units;
                (slope.slope, own[one as usize] * own[other as usize])
            });
            medians.push(weighted_median(rest, passed, total));
        });
        medians
    }

    /// Number of slopes before each chunk, per pair of units; empty if there are too many units.
    fn counts(&self) -> Vec<Vec<u32>> {
        let width = self.units.len();
        if width > UNITS_MAX {
            return Vec::new();
        }
        let mut passed = vec![0; width * width];
        let mut counts = Vec::new();
        for chunk in self.slopes.chunks(CHUNK) {
            counts.push(passed.clone());
            for slope in chunk {
                passed[slope.units[0] as usize * width + slope.units[1] as usize] += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests;
