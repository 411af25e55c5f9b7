//! Mann–Kendall trend test for series with one value at each point.
//!
//! If there are several values at each point, [`super::Sweep::trend`] is more powerful: on the
//! medians of four levels, this test cannot yield a p-value below 0.083, and on those of five
//! levels not below 0.017.
//!
//! S is the number of pairs that rise minus the number of pairs that fall (Mann, "Nonparametric
//! Tests Against Trend", Econometrica 13, 1945). For up to 10 values without ties, the p-value is
//! exact: all orders of n values are counted by their inversions. Otherwise S is approximated as
//! normal with the variance
//!
//! ```text
//! (n (n - 1) (2n + 5) - Σ t (t - 1) (2t + 5)) / 18,   t equal values each
//! ```
//!
//! In this case S is first moved towards zero by 1, the correction for continuity (Kendall, "Rank
//! Correlation Methods", 4th edition, 1970, sections 4.8 and 4.9, also for ties). The effect size
//! is τ_b.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::{NotEstimable, count};

/// Minimum length of a series.
const POINTS_MIN: usize = 8;
/// Maximum number of values without ties for an exact p-value.
const EXACT_MAX: usize = 10;

/// Result of the Mann–Kendall test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Monotone {
    /// Kendall's τ_b of values and indexes, -1 to 1; above zero if values rise.
    pub tau: f64,
    /// Two-sided p-value of "no trend".
    pub p: f64,
}

/// Tests values in the given order, one value per point.
///
/// # Errors
/// [`NotEstimable::Points`] below 8 values, [`NotEstimable::NotFinite`], and
/// [`NotEstimable::Constant`] if all values are equal.
pub fn mann_kendall(values: &[f64]) -> Result<Monotone, NotEstimable> {
    let n = values.len();
    if n < POINTS_MIN {
        return Err(NotEstimable::Points { points: count(n), needed: count(POINTS_MIN) });
    }
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(NotEstimable::NotFinite { index });
    }
    let (mut rising, mut falling) = (0u64, 0u64);
    for (place, value) in values.iter().enumerate() {
        rising += values[place + 1..].iter().filter(|later| *later > value).count() as u64;
        falling += values[place + 1..].iter().filter(|later| *later < value).count() as u64;
    }
    let untied = rising + falling;
    if untied == 0 {
        return Err(NotEstimable::Constant);
    }
    let s = rising as f64 - falling as f64;
    let length = n as f64;
    let pairs = length * (length - 1.0) / 2.0;
    let tau = (s / (pairs * untied as f64).sqrt()).clamp(-1.0, 1.0);
    let p = match n <= EXACT_MAX && untied as f64 == pairs {
        true => exact(n, rising.min(falling)),
        false => approximate(values, s),
    };
    Ok(Monotone { tau, p })
}

/// Twice the fraction of orders of `n` values with at most this many inversions. Orders are counted
/// by their inversions while the values are inserted one after the other: the k-th value adds 0 to
/// k - 1 inversions.
fn exact(n: usize, inversions: u64) -> f64 {
    let mut orders = vec![1u64];
    for next in 1..n {
        let mut longer = vec![0; orders.len() + next];
        for (own, aspects) in orders.iter().enumerate() {
            longer[own..=own + next].iter_mut().for_each(|sum| *sum += aspects);
        }
        orders = longer;
    }
    let all: u64 = orders.iter().sum();
    let tail: u64 = orders.iter().zip(0..=inversions).map(|(aspects, _)| aspects).sum();
    (2.0 * tail as f64 / all as f64).min(1.0)
}

/// p-value by the normal approximation, with ties and the correction for continuity.
fn approximate(values: &[f64], s: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tied| term(tied.len() as f64)).sum();
    let variance = (term(values.len() as f64) - ties) / 18.0;
    let z = (s.abs() - 1.0).max(0.0) / variance.sqrt();
    (2.0 * Normal::standard().sf(z)).min(1.0)
}

#[cfg(test)]
mod tests;
