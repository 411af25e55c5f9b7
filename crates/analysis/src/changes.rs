//! Where a series of versions or dates changed its level.
//!
//! Points enter in their order, one for each version: the median over trials of ln y. [`Change`]s
//! leave, each with the index of its first point. What a point stands for, whether an unchanged
//! program changed alike, and how large the change is on the trials themselves is not known here.
//!
//! # Candidates: the divergence of both sides
//!
//! Within a window, a segment of n points is split into τ and m = n - τ where
//!
//! ```text
//! Q = (τ m / n) (2/(τ m) ΣΣ |x(i) - y(j)| - mean |x(i) - x(k)| - mean |y(j) - y(k)|)
//! ```
//!
//! is largest, with means over pairs (Matteson and James, "A Nonparametric Approach for Multiple
//! Change Point Analysis of Multivariate Data", Journal of the American Statistical Association
//! 109, 2014, with α = 1 and both sides reaching to the ends of the segment). Of all segments the
//! one with the largest Q is split first, and as long as Student's t-test tells its sides apart at
//! ten times the level of the search.
//!
//! # Which of them stay
//!
//! Windows follow each other by half their length, or start at the last candidate. The candidates
//! of all windows are then tested again, each between its neighbors, and the weakest is merged away
//! until all are below the level; then the smallest, until all are at least as large as asked for.
//! Windows, the test in place of random permutations, and the merging are changes of Fleming,
//! Kołaczkowski, and others, "Hunter: Using Change Point Detection to Hunt for Performance
//! Regressions", ICPE 2023, as Apache Otava has them. With them the answer is deterministic.
//!
//! The p-value is that of a test at a place chosen by looking for a difference, so it is too small
//! by itself: that is why the level is 0.001 and not 0.05. `docs/method/statistics.md` has how
//! often series without a change show one.

use model::Ratio;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{Absent, count};

/// Shorter series are compared version by version.
pub const POINTS_MIN: usize = 20;

/// A candidate has to pass so many times the level of the search.
const WEAK: f64 = 10.0;

/// What counts as a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The level of the t-test, within 0..1.
    pub p: f64,
    /// The least size, 0.05 for 5 % more or a 1.05th of it.
    pub least_change: Ratio,
    /// The least number of points on either side of a change; at least 2 are taken.
    pub least_side: usize,
    /// The length of a window; at least two sides are taken.
    pub window: usize,
}

impl Default for Options {
    /// p below 0.001, at least 5 %, 4 points on each side, windows of 50 points.
    fn default() -> Self {
        Self { p: 0.001, least_change: Ratio(0.05), least_side: 4, window: 50 }
    }
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first point at the new level. The point before it is the last at the old one,
    /// so the change came between the two.
    pub at: usize,
    /// p-value of Student's t-test between the two levels, up to the next changes.
    pub p: f64,
    /// How many times the metric was before what it is after, 1.1 for 10 % more.
    pub size: Ratio,
    /// Mean of the points of the old level, a logarithm.
    pub before: f64,
    /// Mean of the points of the new level, a logarithm.
    pub after: f64,
}

/// Finds the changes of a series, ascending. Cost: points times the square of the window, at most.
///
/// # Errors
/// [`Absent::Points`] below [`POINTS_MIN`] points, and [`Absent::NotFinite`].
pub fn find(points: &[f64], options: Options) -> Result<Vec<Change>, Absent> {
    if points.len() < POINTS_MIN {
        return Err(Absent::Points { points: count(points.len()), needed: count(POINTS_MIN) });
    }
    if let Some(index) = points.iter().position(|point| !point.is_finite()) {
        return Err(Absent::NotFinite { index });
    }
    // Around zero, so that equal points have a variance of exactly zero.
    let centered: Vec<f64> = points.iter().map(|point| point - points[0]).collect();
    let side = options.least_side.max(2);
    // A level that is no number lets nothing pass.
    let options = Options { p: options.p.max(0.0), ..options };
    let mut changes =
        candidates(&centered, side, options.window.max(side.saturating_mul(2)), options.p * WEAK);
    merge(&centered, &mut changes, options);
    let change = |(at, test): (usize, Test)| Change {
        at,
        p: test.p,
        size: Ratio((test.after - test.before).exp().min(f64::MAX)),
        before: test.before + points[0],
        after: test.after + points[0],
    };
    let tests = tests(&centered, &changes);
    Ok(changes.into_iter().zip(tests).map(change).collect())
}

/// The candidates of all windows, ascending, each once: a window starts where the last one found
/// something, or behind it.
fn candidates(points: &[f64], side: usize, window: usize, level: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut start = 0;
    while points.len().saturating_sub(start) / 2 >= side {
        let end = points.len().min(start.saturating_add(window));
        let own = of_window(&points[start..end], side, level);
        let last = own.last().map_or(0, |last| start + last);
        found.extend(own.into_iter().map(|at| start + at));
        start = last.max(start.saturating_add(window / 2));
    }
    found
}

/// The candidates of one window, ascending.
fn of_window(points: &[f64], side: usize, level: f64) -> Vec<usize> {
    let mut ends = vec![0, points.len()];
    let mut found = vec![best(points, side)];
    loop {
        // The segment that gains most by being split.
        let gains = found.iter().enumerate().filter_map(|(at, split)| Some((at, (*split)?)));
        let Some((at, (split, _))) = gains.max_by(|a, b| a.1.1.total_cmp(&b.1.1)) else { break };
        let (from, to) = (ends[at], ends[at + 1]);
        let place = from + split;
        if test(&points[from..place], &points[place..to]).p >= level {
            break;
        }
        ends.insert(at + 1, place);
        found[at] = best(&points[from..place], side);
        found.insert(at + 1, best(&points[place..to], side));
    }
    ends[1..ends.len() - 1].to_vec()
}

/// The place of the largest Q of a segment, and that Q; `None` if the segment is too short or does
/// not vary. Where Q grows further towards an end than a side may be short, the change lies there,
/// and a place beside it would be the wrong one: there is a candidate once the side is long enough.
fn best(points: &[f64], side: usize) -> Option<(usize, f64)> {
    let n = points.len();
    // Sums of distances within the left side, within the right one, and all.
    let distances =
        |of: f64, others: &[f64]| -> f64 { others.iter().map(|x| (x - of).abs()).sum() };
    let all: f64 = (1..n).map(|at| distances(points[at], &points[..at])).sum();
    let (mut left, mut right) = (0.0, all);
    let mean = |sum: f64, n: f64| if n > 1.0 { sum / (n * (n - 1.0) / 2.0) } else { 0.0 };
    // Q of each split, and nothing at both ends.
    let mut divergence = vec![0.0; n + 1];
    for split in 1..n {
        // The point before the split changes sides.
        let moved = points[split - 1];
        left += distances(moved, &points[..split - 1]);
        right -= distances(moved, &points[split..]);
        let (tau, m) = (split as f64, (n - split) as f64);
        let across = 2.0 / (tau * m) * (all - left - right);
        divergence[split] = tau * m / (tau + m) * (across - mean(left, tau) - mean(right, m));
    }
    let last = n.checked_sub(side)?;
    let summit = |at: &usize| {
        let q = divergence[*at];
        q > 0.0 && q >= divergence[*at - 1] && q >= divergence[*at + 1]
    };
    let best =
        (side..=last).filter(summit).max_by(|a, b| divergence[*a].total_cmp(&divergence[*b]));
    best.map(|at| (at, divergence[at]))
}

/// Takes candidates away until all that are left pass.
fn merge(points: &[f64], changes: &mut Vec<usize>, options: Options) {
    let least = options.least_change.0.ln_1p();
    let weakest = |tests: &[Test]| {
        let each = tests.iter().enumerate();
        each.filter(|(_, test)| test.p >= options.p || test.p.is_nan())
            .max_by(|a, b| a.1.p.total_cmp(&b.1.p))
            .map(|(at, _)| at)
    };
    let smallest = |tests: &[Test]| {
        let size = |test: &Test| (test.after - test.before).abs();
        let small = tests.iter().enumerate().filter(|(_, test)| size(test) < least);
        small.min_by(|a, b| size(a.1).total_cmp(&size(b.1))).map(|(at, _)| at)
    };
    loop {
        let tests = tests(points, changes);
        let Some(at) = weakest(&tests).or_else(|| smallest(&tests)) else { break };
        changes.remove(at);
    }
}

/// Each change tested between its neighbors.
fn tests(points: &[f64], changes: &[usize]) -> Vec<Test> {
    let bounds: Vec<usize> =
        [0].into_iter().chain(changes.iter().copied()).chain([points.len()]).collect();
    let of = |ends: &[usize]| test(&points[ends[0]..ends[1]], &points[ends[1]..ends[2]]);
    bounds.windows(3).map(of).collect()
}

/// Two levels and how surely they differ.
#[derive(Clone, Copy)]
struct Test {
    before: f64,
    after: f64,
    p: f64,
}

/// Student's t-test with a common variance, two-sided. A common one, since a new level of a few
/// points could hardly be told otherwise. Without variance, levels that differ do so for certain.
fn test(left: &[f64], right: &[f64]) -> Test {
    let mean = |own: &[f64]| own.iter().sum::<f64>() / own.len() as f64;
    let (before, after) = (mean(left), mean(right));
    let squares = |own: &[f64], mean: f64| own.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
    let (n, m) = (left.len() as f64, right.len() as f64);
    let freedom = n + m - 2.0;
    let variance = (squares(left, before) + squares(right, after)) / freedom;
    let error = (variance * (1.0 / n + 1.0 / m)).sqrt();
    let p = match (before - after).abs() / error {
        t if t.is_finite() => {
            StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |null| 2.0 * null.sf(t))
        }
        t if t.is_infinite() => 0.0,
        _ => 1.0,
    };
    Test { before, after, p }
}

#[cfg(test)]
mod tests;
