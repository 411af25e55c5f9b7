//! The Brunner–Munzel statistic and its permutation distribution.
//!
//! # The statistic
//!
//! For samples x (n values) and y (m values) let P(k) be the number of y below x(k), a tie counting
//! one half, and Q(l) the number of x below y(l). These placements are overall rank minus rank
//! within the own sample, so with their means and variances (divisor n - 1 and m - 1)
//!
//! ```text
//! W = n m (mean rank of y - mean rank of x) / ((n + m) sqrt(n var P + m var Q))
//! ```
//!
//! (Brunner and Munzel, "The nonparametric Behrens–Fisher problem", Biometrical Journal 42, 2000.)
//! Samples that do not overlap have no variance; W is then infinite, the most extreme value there
//! is.
//!
//! # Its reference
//!
//! W is referred to all splits of the pooled values (Neubert and Brunner, "A studentized
//! permutation test for the non-parametric Behrens–Fisher problem", Computational Statistics & Data
//! Analysis 51, 2007). Without ties W depends on ranks alone, so one distribution serves every pair
//! of samples of the same two sizes and every shift of them: it is made once for each pair of sizes
//! and then only looked up. That is what makes inverting the test affordable. Ties inside one
//! sample leave W as it is; the reference then is that of ties broken at random, which is still
//! exact.

use std::cmp::Ordering;

/// Up to so many splits all of them are visited.
const SPLITS_MAX: u64 = 200_000;
/// Above, so many splits are drawn.
const DRAWS: u64 = 20_000;
/// Two values of |W| that differ by less than this share are the same but for rounding.
const ROUNDING: f64 = 1e-9;

/// The distribution of |W| over splits for two sample sizes.
pub(crate) struct Null {
    /// |W| of every split visited, ascending.
    sizes: Vec<f64>,
    /// Whether all splits were visited.
    exact: bool,
}

impl Null {
    /// The distribution for samples of `n` and `m` values, at least 2 each.
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
        sizes.sort_by(f64::total_cmp);
        Self { sizes, exact: splits.is_some_and(|splits| splits <= SPLITS_MAX) }
    }

    /// The two-sided p-value of an observed W. With drawn splits the observed one counts as one of
    /// them, so that p is never zero and the test keeps its level.
    pub(crate) fn p(&self, statistic: f64) -> f64 {
        let size = statistic.abs() * (1.0 - ROUNDING);
        let below = self.sizes.partition_point(|drawn| *drawn < size);
        let beyond = (self.sizes.len() - below) as f64;
        let total = self.sizes.len() as f64;
        if self.exact { beyond / total } else { (beyond + 1.0) / (total + 1.0) }
    }
}

/// W of two samples, each sorted ascending, after `shift` is added to every x. Positive when y
/// tends to be larger. Both have at least 2 values. Linear in their lengths.
pub(crate) fn statistic(x: &[f64], y: &[f64], shift: f64) -> f64 {
    let shifted = |value: &f64| value + shift;
    let of_x = Moments::of(x, y, |a, b| shifted(a).total_cmp(b));
    let of_y = Moments::of(y, x, |a, b| a.total_cmp(&shifted(b)));
    studentized(x.len(), y.len(), of_x, of_y)
}

/// Sum and sum of squares of doubled placements, so that halves stay whole.
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

    /// Their variance with divisor n - 1.
    fn variance(self, n: f64) -> f64 {
        ((self.squares - self.sum * self.sum / n) / (n - 1.0)).max(0.0)
    }
}

fn studentized(n: usize, m: usize, of_x: Moments, of_y: Moments) -> f64 {
    let (n, m) = (n as f64, m as f64);
    // Mean ranks differ by the mean placements and by half the difference of the sizes.
    let difference = of_y.sum / m - of_x.sum / n + (m - n);
    let variance = n * of_x.variance(n) + m * of_y.variance(m);
    // Placements are doubled: below 1e-6 only rounding is left of a variance.
    if variance > 1e-6 {
        n * m * difference / ((n + m) * variance.sqrt())
    } else if difference.abs() < ROUNDING {
        0.0
    } else {
        f64::INFINITY.copysign(difference)
    }
}

/// W when x stands at these positions (ascending) among n + m distinct values in order.
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

/// The next set of positions in lexical order; `false` after the last.
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

/// A random set of positions, each equally likely (selection sampling).
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

/// n over k; `None` above 64 bits.
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
