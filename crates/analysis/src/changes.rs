//! Change points of a series of versions or dates.
//!
//! Input is one point per version in order: the median over trials of ln y. The result is
//! [`Change`]s with the index of the first point at the new level.
//!
//! # Candidates: the divergence of the two sides
//!
//! Within a window, a segment of n points is split into τ and m = n - τ at the maximum of
//!
//! ```text
//! Q = (τ m / n) (2/(τ m) ΣΣ |x(i) - y(j)| - mean |x(i) - x(k)| - mean |y(j) - y(k)|)
//! ```
//!
//! with means over pairs (Matteson and James, "A Nonparametric Approach for Multiple Change Point
//! Analysis of Multivariate Data", Journal of the American Statistical Association 109, 2014, with
//! α = 1 and both sides extending to the ends of the segment). Example: the points 1, 1, 2, 2 are
//! split in the middle. All distances between the sides are 1, all distances within a side are 0,
//! so Q = (4/4) (2/4 · 4 - 0 - 0) = 2. The segment with the largest Q is split first. Splitting
//! stops when Student's t-test between the two sides is not significant at ten times the level of
//! the search.
//!
//! # Selection
//!
//! A window starts at the last candidate of the previous window, but at least half a window after
//! the start of the previous window. The candidates of all windows are tested again, each between
//! its neighbors. As long as a p-value is above the level, the least significant candidate is
//! removed. Then, as long as a change is below the requested size, the smallest change is removed.
//! The windows, the t-test instead of random permutations, and this selection are from Fleming,
//! Kołaczkowski, and others, "Hunter: Using Change Point Detection to Hunt for Performance
//! Regressions", ICPE 2023, as implemented in Apache Otava. They make the result deterministic.
//!
//! The test is made at a position that was chosen for its large difference, so the p-value is too
//! small. The level is therefore 0.001 instead of 0.05. `docs/method/statistics.md` lists the rate
//! of false change points.

use model::Ratio;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{NotEstimable, count};

/// Minimum length of a series. Shorter series are compared version by version.
pub const POINTS_MIN: usize = 20;

/// Factor by which the level of candidates is above that of changes.
const WEAK: f64 = 10.0;

/// Criteria for a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Level of the t-test, between 0 and 1.
    pub p: f64,
    /// Minimum size of a change: 0.05 stands for a factor of 1.05 upwards or downwards.
    pub least_change: Ratio,
    /// Minimum number of points on either side of a change; values below 2 count as 2.
    pub least_side: usize,
    /// Length of a window in points; at least twice `least_side` is used.
    pub window: usize,
}

impl Default for Options {
    /// p below 0.001, at least 5 %, 4 points on each side, windows of 50 points.
    fn default() -> Self {
        Self { p: 0.001, least_change: Ratio(0.05), least_side: 4, window: 50 }
    }
}

/// Change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first point at the new level. The change happened between this point and the
    /// previous one.
    pub at: usize,
    /// p-value of Student's t-test between the two levels, each up to the next change.
    pub p: f64,
    /// Ratio of the metric after the change to the metric before the change, 1.1 for 10 % more.
    pub size: Ratio,
    /// Mean of the points of the old level, a logarithm.
    pub before: f64,
    /// Mean of the points of the new level, a logarithm.
    pub after: f64,
}

/// Finds the changes of a series, ascending. Cost: at most the number of points times the square of
/// the window.
///
/// # Errors
/// [`NotEstimable::Points`] below [`POINTS_MIN`] points, and [`NotEstimable::NotFinite`].
pub fn find(points: &[f64], options: Options) -> Result<Vec<Change>, NotEstimable> {
    if points.len() < POINTS_MIN {
        return Err(NotEstimable::Points {
            points: count(points.len()),
            needed: count(POINTS_MIN),
        });
    }
    if let Some(index) = points.iter().position(|point| !point.is_finite()) {
        return Err(NotEstimable::NotFinite { index });
    }
    // Centered, so that equal points have a variance of exactly zero.
    let centered: Vec<f64> = points.iter().map(|point| point - points[0]).collect();
    let side = options.least_side.max(2);
    // With a level that is not a number, no candidate passes.
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

/// Candidates of all windows, ascending and unique.
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

/// Candidates of one window, ascending.
fn of_window(points: &[f64], side: usize, level: f64) -> Vec<usize> {
    let mut ends = vec![0, points.len()];
    let mut found = vec![best(points, side)];
    loop {
        // Next split: the segment with the largest Q.
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

/// Position and value of the largest Q of a segment. `None` if the segment is too short or does not
/// vary. Both sides of a split have a minimum length. If Q is largest closer to an end than this
/// length, the segment is not split, because any other position would be wrong. The change becomes
/// a candidate when there are enough points after it.
fn best(points: &[f64], side: usize) -> Option<(usize, f64)> {
    let n = points.len();
    // Sums of distances within the left side, within the right side, and overall.
    let distances =
        |of: f64, others: &[f64]| -> f64 { others.iter().map(|x| (x - of).abs()).sum() };
    let all: f64 = (1..n).map(|at| distances(points[at], &points[..at])).sum();
    let (mut left, mut right) = (0.0, all);
    let mean = |sum: f64, n: f64| if n > 1.0 { sum / (n * (n - 1.0) / 2.0) } else { 0.0 };
    // Q of each split, zero at both ends.
    let mut divergence = vec![0.0; n + 1];
    for split in 1..n {
        // The point before the split moves from the right side to the left side.
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

/// Removes candidates until all remaining ones are significant and large enough.
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

/// Test of each change between its neighbors.
fn tests(points: &[f64], changes: &[usize]) -> Vec<Test> {
    let bounds: Vec<usize> =
        [0].into_iter().chain(changes.iter().copied()).chain([points.len()]).collect();
    let of = |ends: &[usize]| test(&points[ends[0]..ends[1]], &points[ends[1]..ends[2]]);
    bounds.windows(3).map(of).collect()
}

/// Two levels and the significance of their difference.
#[derive(Clone, Copy)]
struct Test {
    before: f64,
    after: f64,
    p: f64,
}

/// Student's t-test with a common variance, two-sided. Separate variances would rarely make a new
/// level of a few points significant. If neither side varies, p is 0 for different levels.
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
