//! The Brunner–Munzel statistic and its permutation distribution.
//!
//! # The statistic
//!
//! For samples x (n values) and y (m values), the placement P(k) is the number of y below x(k), and
//! Q(l) is the number of x below y(l). A tie counts one half. Example: for x = 1, 4, 6 and y = 2,
//! 3, 5, P is 0, 2, 3 and Q is 1, 1, 2. A placement is also the rank among all values minus the
//! rank within the sample: 6 has rank 6 of all values and rank 3 of x, so P is 3. With the
//! variances of the placements (divisors n - 1 and m - 1), the statistic is
//!
//! ```text
//! W = n m (mean rank of y - mean rank of x) / ((n + m) sqrt(n var P + m var Q))
//! ```
//!
//! (Brunner and Munzel, "The nonparametric Behrens–Fisher problem", Biometrical Journal 42, 2000.)
//! If the samples do not overlap, the variance is zero; W is then infinite, the most extreme value.
//!
//! # Reference distribution
//!
//! The n + m values can be split into samples of n and m values in many ways. W is compared with
//! the W of all these splits (Neubert and Brunner, "A studentized permutation test for the
//! non-parametric Behrens–Fisher problem", Computational Statistics & Data Analysis 51, 2007).
//! Without ties, W depends only on ranks. One distribution therefore applies to all pairs of
//! samples of the same sizes, also if one sample is shifted. It is computed once. A confidence
//! interval, which tests many shifts, is therefore affordable.
//!
//! Ties within one sample do not change W. The distribution is the one without ties; the test is
//! still exact. Swapping x and y does not change |W|, so one table applies to both orders of two
//! sizes.

use std::cmp::Ordering;

/// Maximum number of splits that are enumerated.
const SPLITS_MAX: u64 = 200_000;
/// Number of splits that are drawn at random if there are more.
const DRAWS: u64 = 20_000;
/// Relative difference up to which two values of |W| count as equal.
const ROUNDING: f64 = 1e-9;

/// Distribution of |W| over splits for two sample sizes.
pub(crate) struct Null {
    /// |W| of every evaluated split, ascending.
    sizes: Vec<f64>,
    /// True if all splits were enumerated.
    exact: bool,
}

impl Null {
    /// Distribution for samples of `n` and `m` values, at least 2 each.
    pub(crate) fn new(n: usize, m: usize, seed: u64) -> Self {
        let splits = binomial(n + m, n);
        let mut sizes = Vec::new();
        let mut positions: Vec<usize> = (0..n).collect();
        if let Some(splits) = splits.filter(|splits| *splits <= SPLITS_MAX) {
            sizes.reserve_exact(usize::try_from(splits).unwrap_or(0));
            loop {
                sizes.push(of_split(&positions, m).abs());
                if !advance(&mut positions, n + m) {
                    break;
                }
            }
        } else {
            let mut rng = fastrand::Rng::with_seed(seed);
            for _ in 0..DRAWS {
                draw(&mut positions, n + m, &mut rng);
                sizes.push(of_split(&positions, m).abs());
            }
        }
        sizes.sort_unstable_by(f64::total_cmp);
        Self { sizes, exact: splits.is_some_and(|splits| splits <= SPLITS_MAX) }
    }

    /// Two-sided p-value of an observed W. If splits were drawn at random, the observed one counts
    /// as one of them, so that p is never zero and the test keeps its level.
    pub(crate) fn p(&self, statistic: f64) -> f64 {
        let size = statistic.abs() * (1.0 - ROUNDING);
        let below = self.sizes.partition_point(|drawn| *drawn < size);
        let beyond = (self.sizes.len() - below) as f64;
        let total = self.sizes.len() as f64;
        self.share(beyond, total)
    }

    /// Critical value: p is at most `error` for |W| above it, the inverse of [`Null::p`]. `None` if
    /// no W is extreme enough.
    pub(crate) fn critical(&self, error: f64) -> Option<Critical> {
        let total = self.sizes.len() as f64;
        let (mut allowed, mut refused) = (None, self.sizes.len());
        let mut from = 0;
        while from < refused {
            let middle = usize::midpoint(from, refused);
            if self.share(middle as f64, total) <= error {
                (allowed, from) = (Some(middle), middle + 1);
            } else {
                refused = middle;
            }
        }
        // `allowed` splits may be at least as extreme as W, so W must be above the next one.
        let next = self.sizes.len().checked_sub(allowed? + 1)?;
        let size = self.sizes[next];
        size.is_finite().then_some(Critical(size))
    }

    fn share(&self, beyond: f64, total: f64) -> f64 {
        if self.exact { beyond / total } else { (beyond + 1.0) / (total + 1.0) }
    }
}

/// Critical value of |W|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Critical(f64);

impl Critical {
    /// Critical value for tests, without a table.
    #[cfg(test)]
    pub(crate) fn of(size: f64) -> Self {
        Self(size)
    }

    /// True if W exceeds the critical value.
    pub(crate) fn rejects(self, statistic: f64) -> bool {
        statistic.abs() * (1.0 - ROUNDING) > self.0
    }
}

/// Two samples of n and m values, without ties between the samples. Only the terms of W are kept:
/// the number of pairs in which y is below x, and the variance under the root.
///
/// # Bounds of W after further pairs
///
/// A pair turns when y falls below x. With each turning pair, one P grows from p to p + 1, and one
/// n - Q from r to r + 1, with p < m and r < n. If g pairs have turned, the sum of squared
/// deviations of P grows by at most 2m - 1 - (2g + 1) / n, and that of Q by at most
/// 2n - 1 - (2g + 1) / m. Both bounds fall as g grows. A W that is far enough above the critical
/// value therefore stays above it for a known number of further pairs, in any order, and these
/// points can be skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    n: usize,
    m: usize,
    /// Number of pairs in which y is below x.
    pub(crate) below: usize,
    statistic: f64,
    /// Variance under the root, computed from doubled placements.
    variance: f64,
}

impl Split {
    /// Split of two ascending samples. A pair counts as y below x if `turned` is true for y - x. If
    /// `turned` is true for a difference, it must be true for all smaller ones. Cost: linear in the
    /// lengths.
    pub(crate) fn new(x: &[f64], y: &[f64], turned: impl Fn(f64) -> bool) -> Self {
        let (n, m) = (x.len(), y.len());
        // The sums are computed with integers, which are associative and allow parallel execution.
        let (mut of_x, mut of_y) = ((0, 0), (0, 0));
        let mut below = 0;
        for (index, own) in x.iter().enumerate() {
            while below < m && turned(y[below] - own) {
                of_y = (of_y.0 + index, of_y.1 + index * index);
                below += 1;
            }
            of_x = (of_x.0 + below, of_x.1 + below * below);
        }
        let pairs = of_x.0;
        of_y = (of_y.0 + (m - below) * n, of_y.1 + (m - below) * n * n);
        let doubled = |(sum, squares): (usize, usize)| Moments {
            sum: 2.0 * sum as f64,
            squares: 4.0 * squares as f64,
        };
        let (of_x, of_y) = (doubled(of_x), doubled(of_y));
        let variance = pooled(n as f64, m as f64, of_x, of_y);
        Self { n, m, below: pairs, statistic: studentized(n, m, of_x, of_y), variance }
    }

    /// Statistic W.
    pub(crate) fn statistic(self) -> f64 {
        self.statistic
    }

    /// Number of further pairs that can turn, in any order, while W stays above the critical value.
    /// 0 if half of the pairs or more have turned.
    pub(crate) fn ahead(self, critical: Critical) -> usize {
        let (n, m, below) = (self.n as f64, self.m as f64, self.below as f64);
        let growth = n / (n - 1.0) * (2.0 * m - 1.0 - (2.0 * below + 1.0) / n)
            + m / (m - 1.0) * (2.0 * n - 1.0 - (2.0 * below + 1.0) / m);
        let growth = 4.0 * growth.max(0.0);
        let above = |further: usize| {
            let excess = n * m - 2.0 * (below + further as f64);
            let root = critical.0 * (self.variance + further as f64 * growth).sqrt();
            // Twice the rounding tolerance, so that no point at the critical value is skipped.
            excess * (1.0 - 2.0 * ROUNDING) > root
        };
        last_true((self.n * self.m / 2).saturating_sub(self.below), above)
    }

    /// Number of pairs that can have turned, for any data, while W is above the critical value.
    /// Placements of x are between 0 and m, so the sum of their squares is at most m times their
    /// sum; the same applies to y with n.
    pub(crate) fn certain(n: usize, m: usize, critical: Critical) -> usize {
        let (x, y) = (n as f64, m as f64);
        let above = |turned: usize| {
            let g = turned as f64;
            let variance =
                x / (x - 1.0) * (y * g - g * g / x) + y / (y - 1.0) * (x * g - g * g / y);
            (x * y - 2.0 * g) * (1.0 - 2.0 * ROUNDING) > 2.0 * critical.0 * variance.sqrt()
        };
        last_true(n * m / 2, above)
    }
}

/// Largest number up to `most` for which a monotonic condition is true. The condition must be true
/// for 0.
fn last_true(most: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut yes, mut no) = (0, most + 1);
    while yes + 1 < no {
        let middle = usize::midpoint(yes, no);
        if holds(middle) { yes = middle } else { no = middle }
    }
    yes
}

/// W of two ascending samples after `shift` is added to every x. Positive if y tends to be larger.
/// Both samples have at least 2 values. Cost: linear in their lengths.
pub(crate) fn statistic(x: &[f64], y: &[f64], shift: f64) -> f64 {
    let shifted = |value: &f64| value + shift;
    let of_x = Moments::of(x, y, |a, b| shifted(a).total_cmp(b));
    let of_y = Moments::of(y, x, |a, b| a.total_cmp(&shifted(b)));
    studentized(x.len(), y.len(), of_x, of_y)
}

/// Sum and sum of squares of placements, which are doubled so that halves become integers.
#[derive(Clone, Copy)]
struct Moments {
    sum: f64,
    squares: f64,
}

impl Moments {
    fn of(own: &[f64], others: &[f64], order: impl Fn(&f64, &f64) -> Ordering) -> Self {
        let (mut below, mut up_to) = (0, 0);
        let mut moments = Self { sum: 0.0, squares: 0.0 };
        for value in own {
            while below < others.len() && order(value, &others[below]) == Ordering::Greater {
                below += 1;
            }
            up_to = up_to.max(below);
            while up_to < others.len() && order(value, &others[up_to]) == Ordering::Equal {
                up_to += 1;
            }
            let placement = (below + up_to) as f64;
            moments.sum += placement;
            moments.squares += placement * placement;
        }
        moments
    }

    /// Variance with divisor n - 1.
    fn variance(self, n: f64) -> f64 {
        ((self.squares - self.sum * self.sum / n) / (n - 1.0)).max(0.0)
    }
}

/// Term under the root of W, computed from doubled placements.
fn pooled(n: f64, m: f64, of_x: Moments, of_y: Moments) -> f64 {
    n * of_x.variance(n) + m * of_y.variance(m)
}

fn studentized(n: usize, m: usize, of_x: Moments, of_y: Moments) -> f64 {
    let (n, m) = (n as f64, m as f64);
    // The difference of the mean ranks is that of the mean placements plus half the difference of
    // the sizes.
    let difference = of_y.sum / m - of_x.sum / n + (m - n);
    let variance = pooled(n, m, of_x, of_y);
    // Placements are doubled, so a variance below 1e-6 is rounding error.
    if variance > 1e-6 {
        n * m * difference / ((n + m) * variance.sqrt())
    } else if difference.abs() < ROUNDING {
        0.0
    } else {
        f64::INFINITY.copysign(difference)
    }
}

/// W of samples whose x are at these ascending positions among n + m distinct sorted values.
fn of_split(positions: &[usize], m: usize) -> f64 {
    let mut of_x = Moments { sum: 0.0, squares: 0.0 };
    let mut of_y = of_x;
    let mut previous = 0;
    let mut runs = |x_below: usize, y_below: usize| {
        let (run, placement) = ((y_below - previous) as f64, 2.0 * x_below as f64);
        of_y.sum += run * placement;
        of_y.squares += run * placement * placement;
        previous = y_below;
    };
    for (x_below, position) in positions.iter().enumerate() {
        let y_below = position - x_below;
        runs(x_below, y_below);
        let placement = 2.0 * y_below as f64;
        of_x.sum += placement;
        of_x.squares += placement * placement;
    }
    runs(positions.len(), m);
    studentized(positions.len(), m, of_x, of_y)
}

/// Advances to the next set of positions in lexical order; `false` after the last set.
fn advance(positions: &mut [usize], total: usize) -> bool {
    let n = positions.len();
    let Some(at) = (0..n).rev().find(|at| positions[*at] < total - n + at) else {
        return false;
    };
    positions[at] += 1;
    for later in at + 1..n {
        positions[later] = positions[later - 1] + 1;
    }
    true
}

/// Random set of positions by selection sampling; all sets are equally likely.
fn draw(positions: &mut [usize], total: usize, rng: &mut fastrand::Rng) {
    let n = positions.len();
    let mut taken = 0;
    for candidate in 0..total {
        if rng.usize(0..total - candidate) < n - taken {
            positions[taken] = candidate;
            taken += 1;
        }
    }
}

/// n over k; `None` if it needs more than 64 bits.
fn binomial(n: usize, k: usize) -> Option<u64> {
    let mut product = 1u64;
    for i in 0..k.min(n - k) {
        product = product.checked_mul((n - i) as u64)? / (i as u64 + 1);
    }
    Some(product)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(values: &[f64]) -> Vec<f64> {
        crate::sorted(values).unwrap()
    }

    #[test]
    fn the_published_pain_scores_give_the_published_statistic() {
        // Brunner and Munzel (2000), section 5: pain scores under two treatments; W = 3.1375.
        let y = [1., 2., 1., 1., 1., 1., 1., 1., 1., 1., 2., 4., 1., 1.];
        let n = [3., 3., 4., 3., 1., 2., 3., 1., 1., 5., 4.];
        let w = statistic(&sorted(&y), &sorted(&n), 0.0);
        assert!((w - 3.137_467).abs() < 1e-6, "{w}");
    }

    #[test]
    fn splits_are_all_visited_once() {
        let mut positions = vec![0, 1, 2];
        let mut seen = vec![positions.clone()];
        while advance(&mut positions, 6) {
            seen.push(positions.clone());
        }
        seen.dedup();
        assert_eq!((seen.len(), binomial(6, 3)), (20, Some(20)));
    }

    #[test]
    fn the_least_p_is_two_splits_out_of_all() {
        let null = Null::new(8, 8, 1);
        assert!((null.p(f64::INFINITY) - 2.0 / 12870.0).abs() < 1e-12);
        assert_eq!(null.p(0.0), 1.0);
    }

    #[test]
    fn drawn_splits_agree_with_the_limit_distribution() {
        // n = m = 30 is beyond enumeration; |W| > 2.0 has about 5 % under Student's t with 58
        // degrees.
        let p = Null::new(30, 30, 7).p(2.0017);
        assert!((p - 0.05).abs() < 0.008, "{p}");
    }

    #[test]
    fn large_sizes_do_not_overflow() {
        assert_eq!(binomial(100, 50), None);
        assert!(Null::new(50, 50, 1).p(f64::INFINITY) < 1e-3);
    }

    proptest! {
        #[test]
        fn the_fast_form_over_splits_is_the_statistic(
            mask in prop::collection::vec(any::<bool>(), 6..24)
        ) {
            let ranks = |own: bool| -> Vec<f64> {
                (0..mask.len()).filter(|i| mask[*i] == own).map(|i| i as f64).collect()
            };
            let (x, y) = (ranks(true), ranks(false));
            prop_assume!(x.len() >= 2 && y.len() >= 2);
            let positions: Vec<usize> = (0..mask.len()).filter(|i| mask[*i]).collect();
            let (fast, slow) = (of_split(&positions, y.len()), statistic(&x, &y, 0.0));
            prop_assert!(fast == slow || (fast - slow).abs() < 1e-9, "{fast} {slow}");
        }

        #[test]
        fn swapping_the_samples_turns_the_sign(
            x in prop::collection::vec(0u8..30, 2..12), y in prop::collection::vec(0u8..30, 2..12)
        ) {
            let real = |v: &[u8]| sorted(&v.iter().map(|i| f64::from(*i)).collect::<Vec<_>>());
            let (x, y) = (real(&x), real(&y));
            let (one, other) = (statistic(&x, &y, 0.0), statistic(&y, &x, 0.0));
            prop_assert!(one == -other || (one + other).abs() < 1e-9, "{one} {other}");
        }
    }
}
