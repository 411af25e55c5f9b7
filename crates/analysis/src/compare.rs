//! Comparison of two cells: ratio, confidence interval, and verdict.
//!
//! Input is two lists of positive values of one metric. In a [`Comparison`], a ratio above 1 means
//! "the second is better", for metrics of either direction. Values are not aligned by block: random
//! order keeps the test valid, and drift only makes it conservative.
//!
//! # Estimate, test, interval
//!
//! All computations use logarithms. The ratio is the Hodges–Lehmann estimate, the median of all ln
//! b(j) - ln a(i). The test is the Brunner–Munzel statistic with its permutation distribution. The
//! interval inverts the test: it contains all ratios r for which a and b/r do not differ
//! significantly. Example: the interval of a ratio of 1.20 contains 1.15 if the test does not
//! distinguish a from b / 1.15.
//!
//! As a function of ln r, the statistic changes only at the pairwise differences ln b(j) - ln a(i).
//! It is constant in the gap between two neighboring differences, so one test per gap is
//! sufficient. The gaps are tested from both ends inwards until the test does not reject one. The
//! interval therefore extends from the smallest to the largest ratio that is not rejected.
//! Bisection would be faster, but could end at a wrong gap, because the statistic is not always
//! monotonic.
//!
//! A bound on the statistic (`null::Split`) rules out many gaps without a test, so that 100 against
//! 100 values take tens of evaluations instead of thousands. The differences are never listed
//! (`differences`).
//!
//! The stopping rule ends a cell when its confidence interval is narrow. Cells whose interval is
//! too narrow by chance therefore end early. For this reason, the interval of the ratio is computed
//! at 96 % to cover 95 %, like those of cells ([`crate::summary::BUILT`]), and the equivalence
//! interval at 92 % to cover 90 %. At 95 %, equal cells differed in up to 6.9 % of simulated runs
//! (`docs/method/calibration.md`). The p-value is that of the test alone.
//!
//! # Verdict
//!
//! [L, U] is the 95 % interval, δ the equivalence margin. The first matching row applies. A second
//! cell that is worse has the same rows for the inverse ratio:
//!
//! | condition | verdict |
//! | --- | --- |
//! | L > 1 + δ | better, by at least δ |
//! | 1 < L <= 1 + δ < U | better, size uncertain |
//! | 1 < L and U <= 1 + δ | better, negligible |
//! | 1/(1+δ) <= 90 % interval <= 1+δ | equivalent (two one-sided tests at 5 %) |
//! | otherwise | inconclusive; n ≈ 2.1 (2.8 s / ln(1+δ))² values per cell would suffice |
//!
//! A comparison with fewer than six values on a side is always inconclusive. If the ratio of
//! medians differs from the estimate by more than δ, or if another method disagrees ([`Check`]), no
//! single ratio describes the difference. If all methods have the same direction, a significant
//! difference is reported with uncertain size, and no cells are equivalent. If a method has the
//! other direction, the comparison is inconclusive.

use std::{collections::BTreeMap, sync::Arc};

use model::{Ratio, Warning, metric::Better};

pub use self::checks::{Check, Method};
use self::{checks::checks, differences::Differences};
use crate::{
    Error, bounded, count,
    null::{Critical, Null, statistic},
    rank_bootstrap::RankBootstrap,
    sample::Sample,
    summary::{BUILT, Interval, LEVEL, needed},
    sweep::Repetition,
};

mod checks;
pub(crate) mod differences;

/// Nominal level of the equivalence interval, which then covers 90 % (two one-sided tests at 5 %
/// each). It is higher for the same reason as [`BUILT`].
const EQUIVALENCE_BUILT: f64 = 0.92;

/// Direction of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The second is better than the first.
    Better,
    /// The second is worse than the first.
    Worse,
}

/// Size of a difference relative to the equivalence margin δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The whole interval is beyond δ.
    AtLeast,
    /// The difference is significant. The interval includes δ, or methods that agree about the
    /// direction disagree about the size ([`Comparison::sizes_agree`]).
    Uncertain,
    /// The difference is significant, and the whole interval is within δ.
    Negligible,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Significantly different.
    Differs {
        /// Direction: the second cell relative to the first.
        side: Side,
        /// Size of the difference.
        size: Size,
    },
    /// Equivalent within δ.
    Equivalent,
    /// Neither a difference nor equivalence is shown.
    Inconclusive {
        /// Approximate repetitions per cell that would detect a difference of δ.
        needed: u32,
    },
}

/// Comparison of a second cell with a first one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Hodges–Lehmann ratio; above 1 means that the second cell is better.
    pub ratio: Ratio,
    /// 95 % interval of the ratio; `None` if a side has too few values for the test.
    pub interval: Option<Interval>,
    /// Two-sided p-value of "no difference", not adjusted for multiple comparisons.
    pub p: f64,
    /// Ratio of the medians in the same direction, as a cross-check.
    pub ratio_of_medians: Ratio,
    /// True if both ratios agree within δ. If not, the two distributions have different shapes, and
    /// no single ratio describes the difference. More repetitions will not change this.
    pub ratios_agree: bool,
    /// Number of values of the first cell.
    pub n_first: u32,
    /// Number of values of the second cell.
    pub n_second: u32,
    /// Verdict.
    pub verdict: Verdict,
    /// Results of other methods, as far as the values allow. Empty except for
    /// [`Comparer::compare_repetitions`] and rankings of repetitions.
    pub checks: Vec<Check>,
    /// [`Warning::TooFewRepetitions`] for a side with too few values,
    /// [`Warning::EstimatesDisagree`] for a check that disagrees.
    pub warnings: Vec<Warning>,
}

impl Comparison {
    /// True if all methods agree about the ratio within δ. Otherwise the size of the difference is
    /// not reported.
    pub fn sizes_agree(&self) -> bool {
        self.ratios_agree && self.checks.iter().all(|check| !check.disagrees)
    }

    /// True if the ratio of medians and every disagreeing check have the same direction as the
    /// ratio.
    fn one_side(&self) -> bool {
        let log = self.ratio.0.ln();
        let along = |ratio: Ratio| log * ratio.0.ln() > 0.0;
        let mut disagreeing = self.checks.iter().filter(|check| check.disagrees);
        along(self.ratio_of_medians) && disagreeing.all(|check| along(check.ratio))
    }
}

/// Compares cells and caches the reference distributions that comparisons share.
///
/// Cost: the first comparison of two sizes fills a table. This takes about 10 ms and 1.5 MB for 10
/// against 10 values, the largest table with all splits, and about 20 ms and 160 kB for
/// 100 against 100 values. Each further comparison takes about 5 µs for 10 against 10 values, and
/// less than 0.1 ms for 100 against 100 values.
///
/// Tables of larger sizes are drawn with a fixed seed, so all `Comparer`s give the same results, in
/// any order of comparisons. Use one `Comparer` per thread. A clone shares the tables filled
/// before.
#[derive(Clone, Default)]
pub struct Comparer {
    nulls: BTreeMap<(usize, usize), Arc<Null>>,
}

impl std::fmt::Debug for Comparer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparer").field("sizes", &self.nulls.keys()).finish()
    }
}

impl Comparer {
    /// New comparer without tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compares the second list with the first at the equivalence margin δ (0.05 for 5 %). A metric
    /// without direction is treated as "higher is better": "better" then only means larger.
    ///
    /// # Errors
    /// [`Error`] if a list is empty or has a value that is not finite and positive.
    pub fn compare(
        &mut self,
        first: &[f64],
        second: &[f64],
        better: Better,
        margin: Ratio,
    ) -> Result<Comparison, Error> {
        let (a, b) = (Sample::of_values(first, better)?, Sample::of_values(second, better)?);
        Ok(self.judge(&a, &b, margin, None))
    }

    /// Compares as [`Comparer::compare`] and checks the result with other methods ([`Check`]).
    /// Blocks pair values that were measured close together. The check of block pairs is omitted if
    /// any block is unknown. Cost: 4000 resamples, 1 to 2 ms for 100 against 100 values.
    ///
    /// # Errors
    /// [`Error`] if a list is empty or has a value that is not finite and positive.
    pub fn compare_repetitions(
        &mut self,
        first: &[Repetition],
        second: &[Repetition],
        better: Better,
        margin: Ratio,
    ) -> Result<Comparison, Error> {
        let (a, b) =
            (Sample::of_repetitions(first, better)?, Sample::of_repetitions(second, better)?);
        let p_of_medians = RankBootstrap::new(&[&a, &b]).p(0, 1);
        Ok(self.judge(&a, &b, margin, Some(p_of_medians)))
    }

    /// Interval of the ratio alone, at any level between 0 and 1, for lists of found differences
    /// ([`crate::family::Screening::level`]) and one-sided bounds. `None` if too few values make
    /// rejection impossible at that level.
    ///
    /// # Errors
    /// [`Error`] if a list is empty or has a value that is not finite and positive.
    pub fn interval(
        &mut self,
        first: &[f64],
        second: &[f64],
        better: Better,
        level: f64,
    ) -> Result<Option<Interval>, Error> {
        let (a, b) = (Sample::of_values(first, better)?, Sample::of_values(second, better)?);
        if a.logs.len() < 2 || b.logs.len() < 2 {
            return Ok(None);
        }
        let estimate = Differences::new(&a.logs, &b.logs).median();
        let critical = self.null(a.logs.len(), b.logs.len()).critical(1.0 - level);
        Ok(critical.map(|critical| ends(&a, &b, critical, estimate, level)))
    }

    /// Compares two samples. If the p-value of the ratio of medians is given, also runs the checks.
    pub(crate) fn judge(
        &mut self,
        a: &Sample,
        b: &Sample,
        margin: Ratio,
        p_of_medians: Option<f64>,
    ) -> Comparison {
        let pairs = Differences::new(&a.logs, &b.logs);
        let estimate = pairs.median();
        let medians = b.median() - a.median();
        let delta = (1.0 + margin.0).ln();
        let ratios_agree = (medians - estimate).abs() <= delta;
        let checks = match p_of_medians {
            Some(_) => checks((a, b), p_of_medians, estimate, delta),
            None => Vec::new(),
        };
        let sides = [count(a.logs.len()), count(b.logs.len())];
        let few = sides.into_iter().filter(|n| *n < needed(LEVEL));
        let few = few.map(|n| Warning::TooFewRepetitions { n, needed: needed(LEVEL) });
        let mut comparison = Comparison {
            ratio: bounded(estimate),
            interval: None,
            p: 1.0,
            ratio_of_medians: bounded(medians),
            ratios_agree,
            n_first: sides[0],
            n_second: sides[1],
            verdict: Verdict::Inconclusive { needed: repetitions_needed(a, b, margin) },
            warnings: few.chain(checks.iter().filter_map(Check::warning)).collect(),
            checks,
        };
        if sides.contains(&1) {
            return comparison;
        }
        let null = self.null(a.logs.len(), b.logs.len());
        comparison.p = p_of_equality(null, a, b);
        let critical = null.critical(1.0 - BUILT);
        comparison.interval = critical.map(|critical| ends(a, b, critical, estimate, LEVEL));
        if let Some(wide) = comparison.interval
            && sides.into_iter().all(|n| n >= needed(LEVEL))
        {
            let limit = 1.0 + margin.0;
            let found = differs(wide, limit);
            let verdict = match comparison.sizes_agree() {
                true => found.or_else(|| {
                    let same = equivalent(null, a, b, estimate, limit);
                    same.then_some(Verdict::Equivalent)
                }),
                false => found.filter(|_| comparison.one_side()).map(of_uncertain_size),
            };
            comparison.verdict = verdict.unwrap_or(comparison.verdict);
        }
        comparison
    }

    fn null(&mut self, n: usize, m: usize) -> &Null {
        // The seed is a function of the sizes alone, so the order of comparisons does not matter.
        let (n, m) = (n.min(m), n.max(m));
        let seed = (n as u64) << 32 | m as u64;
        self.nulls.entry((n, m)).or_insert_with(|| Arc::new(Null::new(n, m, seed)))
    }
}

/// Rows of the verdict table for a significant difference.
fn differs(wide: Interval, limit: f64) -> Option<Verdict> {
    let size_of = |low: f64, high: f64| match () {
        () if low > limit => Some(Size::AtLeast),
        () if low > 1.0 && high > limit => Some(Size::Uncertain),
        () if low > 1.0 => Some(Size::Negligible),
        () => None,
    };
    let better = size_of(wide.low, wide.high).map(|size| (Side::Better, size));
    let worse = || Some((Side::Worse, size_of(1.0 / wide.high, 1.0 / wide.low)?));
    better.or_else(worse).map(|(side, size)| Verdict::Differs { side, size })
}

/// Replaces the size by `Uncertain`, because methods disagree about it.
fn of_uncertain_size(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Differs { side, .. } => Verdict::Differs { side, size: Size::Uncertain },
        Verdict::Equivalent | Verdict::Inconclusive { .. } => verdict,
    }
}

/// True if the equivalence interval is within the limit on both sides. The upper end is computed
/// only if the lower end is within the limit.
fn equivalent(null: &Null, a: &Sample, b: &Sample, estimate: f64, limit: f64) -> bool {
    let Some(critical) = null.critical(1.0 - EQUIVALENCE_BUILT) else {
        return false;
    };
    let inside = |log: f64| (1.0 / limit..=limit).contains(&log.exp());
    inside(estimate)
        && inside(lower(a, b, critical, estimate))
        && inside(upper(a, b, critical, estimate))
}

/// p-value at ratio 1. If values of the two samples are equal, ratio 1 is a step of the statistic.
/// The largest of the p-values before, on, and after the step is used, which is conservative.
fn p_of_equality(null: &Null, a: &Sample, b: &Sample) -> f64 {
    let pairs = Differences::new(&a.logs, &b.logs);
    let p = null.p(pairs.after(0.0).statistic());
    if !pairs.has_zero() {
        return p;
    }
    p.max(null.p(statistic(&a.logs, &b.logs, 0.0))).max(null.p(pairs.before(0.0).statistic()))
}

/// Smallest logarithm of a ratio that the test does not reject.
fn lower(a: &Sample, b: &Sample, critical: Critical, estimate: f64) -> f64 {
    Differences::new(&a.logs, &b.logs).lower_end(critical, estimate)
}

/// Largest logarithm of a ratio that the test does not reject: the lower end for swapped samples,
/// whose differences are bit-identical with the opposite sign.
fn upper(a: &Sample, b: &Sample, critical: Critical, estimate: f64) -> f64 {
    -Differences::new(&b.logs, &a.logs).lower_end(critical, -estimate)
}

/// Interval of all ratios that the test does not reject.
fn ends(a: &Sample, b: &Sample, critical: Critical, estimate: f64, level: f64) -> Interval {
    let (low, high) = (lower(a, b, critical, estimate), upper(a, b, critical, estimate));
    Interval { low: bounded(low).0, high: bounded(high).0, level }
}

/// Repetitions per cell that detect a difference of δ with 80 % power at 5 %: n ≈ 2 · 1.05 · (2.8 s
/// / ln(1+δ))² with the pooled standard deviation s of the logarithms. At least one more than
/// measured, because the measured repetitions were inconclusive.
fn repetitions_needed(a: &Sample, b: &Sample, margin: Ratio) -> u32 {
    let pooled = f64::midpoint(a.variance, b.variance).sqrt();
    let needed = 2.1 * (2.8 * pooled / (1.0 + margin.0).ln()).powi(2);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and a saturated count is still far too many"
    )]
    let needed = needed.ceil() as u32;
    needed.max(count(a.logs.len().max(b.logs.len())).saturating_add(1)).max(self::needed(LEVEL))
}

#[cfg(test)]
mod tests;
