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
//! function of ln r whose steps stand at the pairwise differences, so instead of searching between
//! two points by bisection the gaps between neighboring differences are tried from both ends
//! inwards until one is not rejected. The answer is the hull of what is not rejected: exact, and
//! never narrower than the test allows. One trial of a gap costs n + m steps and a look into a
//! sorted table.
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
//! A comparison with fewer than six values on a side, or whose ratio of medians disagrees with the
//! estimate by more than δ, is inconclusive whatever its interval.

use std::collections::BTreeMap;

use model::{Ratio, Warning, metric::Better};

use crate::{
    Error, count, median,
    null::{Null, statistic},
    sorted,
    summary::{Interval, LEVEL, needed},
};

/// The level of the interval that shows equivalence: two one-sided tests at 5 % each.
const EQUIVALENCE_LEVEL: f64 = 0.90;

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
    /// There is a difference; the interval lies on both sides of δ.
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
    /// ratio tells the difference, and further repeats will not change that.
    pub ratios_agree: bool,
    /// Values on the first side.
    pub n_first: u32,
    /// Values on the second side.
    pub n_second: u32,
    /// What may be said.
    pub verdict: Verdict,
    /// [`Warning::Few`] for a side too small to carry a claim.
    pub warnings: Vec<Warning>,
}

/// Makes comparisons, and keeps the reference distributions that they share.
///
/// Cost: the first comparison of two sizes fills a table (11 ms for 10 against 10, the dearest);
/// each further one takes well under a millisecond. The draws for larger sizes come from a fixed
/// seed, so comparisons do not depend on the order in which they are made.
#[derive(Default)]
pub struct Comparer {
    nulls: BTreeMap<(usize, usize), Null>,
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
        let (a, b) = (logarithms(first, better)?, logarithms(second, better)?);
        let differences = differences(&a, &b);
        let estimate = median(&differences);
        let medians = median(&b) - median(&a);
        let delta = (1.0 + threshold.0).ln();
        let ratios_agree = (medians - estimate).abs() <= delta;
        let needed_values = needed(LEVEL);
        let sides = [count(a.len()), count(b.len())];
        let few = sides.into_iter().filter(|n| *n < needed_values);
        let warnings: Vec<Warning> =
            few.map(|n| Warning::Few { n, needed: needed_values }).collect();
        let mut comparison = Comparison {
            ratio: Ratio(estimate.exp()),
            interval: None,
            p: 1.0,
            ratio_of_medians: Ratio(medians.exp()),
            ratios_agree,
            n_first: sides[0],
            n_second: sides[1],
            verdict: Verdict::Inconclusive { needed: repeats_needed(&a, &b, threshold) },
            warnings,
        };
        if a.len() < 2 || b.len() < 2 {
            return Ok(comparison);
        }
        let null = self.null(a.len(), b.len());
        comparison.p = p_of_equality(null, &a, &b, &differences);
        let invert = |level| invert(null, &a, &b, &differences, level);
        let (wide, narrow) = (invert(LEVEL), invert(EQUIVALENCE_LEVEL));
        comparison.interval = wide;
        if let (Some(wide), Some(narrow)) = (wide, narrow)
            && comparison.warnings.is_empty()
            && ratios_agree
            && let Some(verdict) = verdict(wide, narrow, 1.0 + threshold.0)
        {
            comparison.verdict = verdict;
        }
        Ok(comparison)
    }

    fn null(&mut self, n: usize, m: usize) -> &Null {
        // The seed is a function of the sizes alone, so the order of comparisons does not matter.
        let seed = (n as u64) << 32 | m as u64;
        self.nulls.entry((n, m)).or_insert_with(|| Null::new(n, m, seed))
    }
}

/// The verdict table; `None` is its last row.
fn verdict(wide: Interval, narrow: Interval, limit: f64) -> Option<Verdict> {
    let differs = |side, size| Some(Verdict::Differs { side, size });
    let side_of = |low: f64, high: f64| match () {
        () if low > limit => Some(Size::AtLeast),
        () if low > 1.0 && high > limit => Some(Size::Uncertain),
        () if low > 1.0 => Some(Size::Negligible),
        () => None,
    };
    if let Some(size) = side_of(wide.low, wide.high) {
        return differs(Side::Better, size);
    }
    if let Some(size) = side_of(1.0 / wide.high, 1.0 / wide.low) {
        return differs(Side::Worse, size);
    }
    let inside = narrow.low >= 1.0 / limit && narrow.high <= limit;
    inside.then_some(Verdict::Equivalent)
}

/// Logarithms sorted ascending, turned so that larger is better.
fn logarithms(values: &[f64], better: Better) -> Result<Vec<f64>, Error> {
    let mut logs = sorted(values)?;
    if let Some(index) = values.iter().position(|value| *value <= 0.0) {
        return Err(Error::NotPositive { index, value: values[index] });
    }
    let sign = match better {
        Better::Lower => -1.0,
        Better::Higher | Better::Neither => 1.0,
    };
    logs.iter_mut().for_each(|value| *value = sign * value.ln());
    logs.sort_by(f64::total_cmp);
    Ok(logs)
}

/// All b(j) - a(i), ascending.
fn differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The p-value at ratio 1. Values equal across the samples put 1 on a step; the largest of the
/// p-values before, on and after the step is taken, the side of caution.
fn p_of_equality(null: &Null, a: &[f64], b: &[f64], differences: &[f64]) -> f64 {
    let at = null.p(statistic(a, b, 0.0));
    let before = differences.partition_point(|difference| *difference < 0.0);
    let after = differences.partition_point(|difference| *difference <= 0.0);
    if before == after {
        return at;
    }
    let in_gap = |gap| null.p(statistic(a, b, within(differences, gap)));
    at.max(in_gap(before)).max(in_gap(after))
}

/// A point inside gap `gap` of the differences: gap 0 lies before the first, the last after the
/// last.
fn within(differences: &[f64], gap: usize) -> f64 {
    match (gap.checked_sub(1).map(|left| differences[left]), differences.get(gap)) {
        (Some(left), Some(right)) => f64::midpoint(left, *right),
        (Some(left), None) => left + 1.0,
        (None, Some(right)) => right - 1.0,
        (None, None) => 0.0,
    }
}

/// The hull of all ratios that the test does not reject; `None` if it cannot reject any.
fn invert(null: &Null, a: &[f64], b: &[f64], differences: &[f64], level: f64) -> Option<Interval> {
    let rejected = |gap: usize| null.p(statistic(a, b, within(differences, gap))) <= 1.0 - level;
    let last = differences.len();
    if !rejected(0) || !rejected(last) {
        return None;
    }
    // Gaps between equal differences are empty, and their midpoint is a step, not a gap.
    let empty = |gap: usize| differences[gap - 1] == differences[gap];
    let kept = |gap: &usize| !empty(*gap) && !rejected(*gap);
    let estimate = median(differences);
    let low = (1..last).find(kept).map_or(estimate, |gap| differences[gap - 1]);
    let high = (1..last).rev().find(kept).map_or(estimate, |gap| differences[gap]);
    Some(Interval { low: low.min(estimate).exp(), high: high.max(estimate).exp(), level })
}

/// n ≈ 2 · 1.05 · (2.8 s / ln(1+δ))² with the pooled standard deviation s of the logarithms:
/// repeats of each at which a difference of δ is found with 80 % power at 5 %. Never fewer than one
/// more than there are, since those did not decide.
fn repeats_needed(a: &[f64], b: &[f64], threshold: Ratio) -> u32 {
    let variance = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        if n > 1.0 { squares / (n - 1.0) } else { 0.0 }
    };
    let pooled = f64::midpoint(variance(a), variance(b)).sqrt();
    let needed = 2.1 * (2.8 * pooled / (1.0 + threshold.0).ln()).powi(2);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and a saturated count is still far too many"
    )]
    let needed = needed.ceil() as u32;
    needed.max(count(a.len().max(b.len())) + 1).max(crate::summary::needed(LEVEL))
}

#[cfg(test)]
mod tests;
