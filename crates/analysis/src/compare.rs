//! Two cells against each other: a ratio, its interval, and one of the verdicts a reader can act
//! on.
//!
//! Two lists of positive values of one metric enter; a [`Comparison`] leaves, oriented so that a
//! ratio above 1 means "the second is better", whichever way the metric points. What the method
//! needs and does not do: values are taken as they are, without block alignment, which random order
//! keeps valid and drift makes merely conservative.
//!
//! # Estimate, test, interval
//!
//! On logarithms. The ratio is Hodges–Lehmann's: the median of all ln b(j) - ln a(i). The test is
//! the Brunner–Munzel statistic against its permutation distribution. The interval is the test
//! turned around: all ratios r for which a and b/r are not told apart. The statistic is a step
//! function of ln r whose steps stand at the pairwise differences. It need not fall all the way to
//! the estimate, so bisection could end at the wrong step; instead the gaps between neighboring
//! differences are gone through from both ends inwards until one is not rejected. The answer is the
//! hull of what is not rejected: exact, and never narrower than the test allows. Gaps that cannot
//! be the end, as a bound on the statistic tells (`null::Split`), are not looked at, so that a
//! hundred values against a hundred take some tens of looks and not thousands. No list of all
//! differences is made (`differences`).
//!
//! Cells were repeated until their own intervals were narrow, which they are more often when they
//! are wrong, so the interval of the ratio is built at 96 % to hold 95 %, as those of cells are
//! ([`crate::summary::BUILT`]), and that for equivalence at 92 % to hold 90 %. Built at 95 %, equal
//! cells were called different in up to 6.9 % of simulated runs (`docs/method/calibration.md`). The
//! p-value is that of the test alone.
//!
//! # Verdict
//!
//! [L, U] is the 95 % interval, δ the practical threshold. First matching row, mirrored for worse:
//!
//! | condition | verdict |
//! | --- | --- |
//! | L > 1 + δ | better, by at least δ |
//! | 1 < L <= 1 + δ < U | better, size uncertain |
//! | 1 < L and U <= 1 + δ | better, negligible |
//! | the 90 % interval lies inside 1/(1+δ) ..= 1+δ | equivalent (two one-sided tests at 5 %) |
//! | otherwise | inconclusive; n ≈ 2.1 (2.8 s / ln(1+δ))² would decide |
//!
//! A comparison with fewer than six values on a side is inconclusive whatever its interval. Where
//! the ratio of medians disagrees with the estimate by more than δ, or with blocks one of the other
//! ways to compare does ([`Check`]), no one ratio tells the difference. If all of them still point
//! to the same side, that costs the size only: a difference that the test finds is of uncertain
//! size, and nothing is equivalent. If one points to the other side, the comparison is
//! inconclusive.

use std::{collections::BTreeMap, sync::Arc};

use model::{Ratio, Warning, metric::Better};

pub use self::checks::{Check, Method};
pub(crate) use self::sample::{Sample, sum, sums};
use self::{checks::checks, differences::Differences};
use crate::{
    Error, bounded, count,
    null::{Critical, Null, statistic},
    ranks::standing::Standing,
    summary::{BUILT, Interval, LEVEL, needed},
    trend::Repeat,
};

mod checks;
pub(crate) mod differences;
mod sample;

/// The level at which the interval is built that shows equivalence at 90 %, by two one-sided tests
/// at 5 % each, for the same reason as [`BUILT`].
const EQUIVALENCE_BUILT: f64 = 0.92;

/// Which of the two is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The second is better than the first.
    Better,
    /// The second is worse than the first.
    Worse,
}

/// How large a difference is against the practical threshold δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The whole interval lies beyond δ.
    AtLeast,
    /// There is a difference; the interval lies on both sides of δ, or ways to compare that agree
    /// about the side disagree about the size ([`Comparison::sizes_agree`]).
    Uncertain,
    /// There is a difference; the whole interval lies within δ.
    Negligible,
}

/// What may be said of two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They differ.
    Differs {
        /// Which way.
        side: Side,
        /// By how much.
        size: Size,
    },
    /// They are the same within δ.
    Equivalent,
    /// The data do not say.
    Inconclusive {
        /// About how many repeats of each would decide a difference of δ.
        needed: u32,
    },
}

/// The second of two cells against the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Hodges–Lehmann ratio, oriented: above 1 means that the second is better.
    pub ratio: Ratio,
    /// Its 95 % interval, oriented alike; `None` if a side has too few values to be tested at all.
    pub interval: Option<Interval>,
    /// Two-sided p-value of "no difference", not corrected for the number of comparisons.
    pub p: f64,
    /// Ratio of the medians, oriented alike; a cross-check.
    pub ratio_of_medians: Ratio,
    /// Whether both ratios agree within δ. If not, the shapes of the two differ so much that no one
    /// ratio tells the size of the difference, and further repeats will not change that.
    pub ratios_agree: bool,
    /// Values on the first side.
    pub n_first: u32,
    /// Values on the second side.
    pub n_second: u32,
    /// What may be said.
    pub verdict: Verdict,
    /// Other ways to compare the two; of [`Comparer::compare_repeats`] and rankings of repeats
    /// only, and of those only that the values allow.
    pub checks: Vec<Check>,
    /// [`Warning::Few`] for a side too small to carry a claim, [`Warning::Disagree`] for a check
    /// that disagrees.
    pub warnings: Vec<Warning>,
}

impl Comparison {
    /// Whether all ways to compare come to the same ratio within δ. If not, no size of the
    /// difference may be told.
    pub fn sizes_agree(&self) -> bool {
        self.ratios_agree && self.checks.iter().all(|check| !check.disagrees)
    }

    /// Whether the ratio of the medians, and every check that disagrees, point to the same side as
    /// the ratio does.
    fn one_side(&self) -> bool {
        let log = self.ratio.0.ln();
        let along = |ratio: Ratio| log * ratio.0.ln() > 0.0;
        let mut disagreeing = self.checks.iter().filter(|check| check.disagrees);
        along(self.ratio_of_medians) && disagreeing.all(|check| along(check.ratio))
    }
}

/// Makes comparisons, and keeps the reference distributions that they share.
///
/// Cost: the first comparison of two sizes fills a table (some 10 ms and 1.5 MB for 10 against 10,
/// the dearest of those that visit all splits; 160 kB and some 20 ms for 100 against 100); each
/// further one takes some 5 µs at 10 against 10 and below 0.1 ms at 100 against 100. The draws for
/// larger sizes come from a fixed seed, so comparisons depend neither on the order in which they
/// are made nor on which `Comparer` makes them: threads take one each. A clone shares the tables
/// that were filled before.
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
    /// One without any table yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compares the second list with the first, at the practical threshold δ (0.05 for 5 %). A
    /// metric without direction is read as "higher is better"; its verdict then only says which is
    /// larger.
    ///
    /// # Errors
    /// [`Error`] when a list is empty or holds a value that is not finite and positive.
    pub fn compare(
        &mut self,
        first: &[f64],
        second: &[f64],
        better: Better,
        threshold: Ratio,
    ) -> Result<Comparison, Error> {
        let (a, b) = (Sample::of_values(first, better)?, Sample::of_values(second, better)?);
        Ok(self.judge(&a, &b, threshold, None))
    }

    /// Compares as [`Comparer::compare`], and checks the outcome in other ways ([`Check`]). Blocks
    /// pair what was measured close together; where any is unknown, that check is left out. Cost:
    /// 4000 resamples, 1 to 2 ms at 100 against 100.
    ///
    /// # Errors
    /// [`Error`] when a list is empty or holds a value that is not finite and positive.
    pub fn compare_repeats(
        &mut self,
        first: &[Repeat],
        second: &[Repeat],
        better: Better,
        threshold: Ratio,
    ) -> Result<Comparison, Error> {
        let (a, b) = (Sample::of_repeats(first, better)?, Sample::of_repeats(second, better)?);
        let p_of_medians = Standing::new(&[&a, &b]).p(0, 1);
        Ok(self.judge(&a, &b, threshold, Some(p_of_medians)))
    }

    /// The interval of the ratio alone, oriented alike, at any level within 0..1: for lists of what
    /// was found ([`crate::family::Screening::level`]) and one-sided bounds. `None` if no ratio can
    /// be rejected at that level with so few values.
    ///
    /// # Errors
    /// [`Error`] when a list is empty or holds a value that is not finite and positive.
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

    /// Compares, and with the p-value of the ratio of medians also checks.
    pub(crate) fn judge(
        &mut self,
        a: &Sample,
        b: &Sample,
        threshold: Ratio,
        p_of_medians: Option<f64>,
    ) -> Comparison {
        let pairs = Differences::new(&a.logs, &b.logs);
        let estimate = pairs.median();
        let medians = b.median() - a.median();
        let delta = (1.0 + threshold.0).ln();
        let ratios_agree = (medians - estimate).abs() <= delta;
        let checks = match p_of_medians {
            Some(_) => checks((a, b), p_of_medians, estimate, delta),
            None => Vec::new(),
        };
        let sides = [count(a.logs.len()), count(b.logs.len())];
        let few = sides.into_iter().filter(|n| *n < needed(LEVEL));
        let few = few.map(|n| Warning::Few { n, needed: needed(LEVEL) });
        let mut comparison = Comparison {
            ratio: bounded(estimate),
            interval: None,
            p: 1.0,
            ratio_of_medians: bounded(medians),
            ratios_agree,
            n_first: sides[0],
            n_second: sides[1],
            verdict: Verdict::Inconclusive { needed: repeats_needed(a, b, threshold) },
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
            let limit = 1.0 + threshold.0;
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

/// The rows of the verdict table that tell a difference.
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

/// The same, of a difference about whose size ways to compare disagree.
fn of_uncertain_size(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Differs { side, .. } => Verdict::Differs { side, size: Size::Uncertain },
        Verdict::Equivalent | Verdict::Inconclusive { .. } => verdict,
    }
}

/// Whether the interval for equivalence lies within the limit on both sides. Its ends are only
/// looked for while it still may.
fn equivalent(null: &Null, a: &Sample, b: &Sample, estimate: f64, limit: f64) -> bool {
    let Some(critical) = null.critical(1.0 - EQUIVALENCE_BUILT) else {
        return false;
    };
    let inside = |log: f64| (1.0 / limit..=limit).contains(&log.exp());
    inside(estimate)
        && inside(lower(a, b, critical, estimate))
        && inside(upper(a, b, critical, estimate))
}

/// The p-value at ratio 1. Values equal across the samples put 1 on a step; the largest of the
/// p-values before, on and after the step is taken, the side of caution.
fn p_of_equality(null: &Null, a: &Sample, b: &Sample) -> f64 {
    let pairs = Differences::new(&a.logs, &b.logs);
    let p = null.p(pairs.after(0.0).statistic());
    if !pairs.has_zero() {
        return p;
    }
    p.max(null.p(statistic(&a.logs, &b.logs, 0.0))).max(null.p(pairs.before(0.0).statistic()))
}

/// The least logarithm of a ratio that the test does not reject.
fn lower(a: &Sample, b: &Sample, critical: Critical, estimate: f64) -> f64 {
    Differences::new(&a.logs, &b.logs).lower_end(critical, estimate)
}

/// The greatest; differences the other way round are the same with the other sign, to the bit.
fn upper(a: &Sample, b: &Sample, critical: Critical, estimate: f64) -> f64 {
    -Differences::new(&b.logs, &a.logs).lower_end(critical, -estimate)
}

/// The interval of all ratios that the test does not reject.
fn ends(a: &Sample, b: &Sample, critical: Critical, estimate: f64, level: f64) -> Interval {
    let (low, high) = (lower(a, b, critical, estimate), upper(a, b, critical, estimate));
    Interval { low: bounded(low).0, high: bounded(high).0, level }
}

/// n ≈ 2 · 1.05 · (2.8 s / ln(1+δ))² with the pooled standard deviation s of the logarithms:
/// repeats of each at which a difference of δ is found with 80 % power at 5 %. Never fewer than one
/// more than there are, since those did not decide.
fn repeats_needed(a: &Sample, b: &Sample, threshold: Ratio) -> u32 {
    let pooled = f64::midpoint(a.variance, b.variance).sqrt();
    let needed = 2.1 * (2.8 * pooled / (1.0 + threshold.0).ln()).powi(2);
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
