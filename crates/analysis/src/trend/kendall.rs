//! Mann and Kendall's test: do values in a row rise or fall, with one value at each place.
//!
//! With several values at each place [`super::Sweep::trend`] tells more: on the medians of four
//! levels this test cannot get below p = 0.083, on those of five not below 0.017.
//!
//! S counts the pairs that rise minus those that fall (Mann, "Nonparametric Tests Against Trend",
//! Econometrica 13, 1945). Up to 10 values without ties, p is exact: all orders of n values are
//! counted by their inversions. Otherwise S is taken as normal with the variance
//!
//! ```text
//! (n (n - 1) (2n + 5) - Σ t (t - 1) (2t + 5)) / 18,   t equal values each
//! ```
//!
//! and is moved towards zero by 1, the correction for continuity (Kendall, "Rank Correlation
//! Methods", 4th edition, 1970, sections 4.8 and 4.9; ties as there). The effect is τ_b.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::{Absent, count};

/// Fewer values than these are no series.
const POINTS_MIN: usize = 8;
/// Up to so many values without ties, p is exact.
const EXACT_MAX: usize = 10;

/// Whether values in a row rise or fall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Monotone {
    /// Kendall's τ_b of values and places, within -1..=1; above zero where values rise.
    pub tau: f64,
    /// Two-sided p-value of "no trend".
    pub p: f64,
}

/// Tests values in their order, one at each place.
///
/// # Errors
/// [`Absent::Points`] below 8 values, [`Absent::NotFinite`], and [`Absent::Constant`] if all values
/// are equal.
pub fn mann_kendall(values: &[f64]) -> Result<Monotone, Absent> {
    let n = values.len();
    if n < POINTS_MIN {
        return Err(Absent::Points { points: count(n), needed: count(POINTS_MIN) });
    }
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(Absent::NotFinite { index });
    }
    let (mut rising, mut falling) = (0u64, 0u64);
    for (place, value) in values.iter().enumerate() {
        rising += values[place + 1..].iter().filter(|later| *later > value).count() as u64;
        falling += values[place + 1..].iter().filter(|later| *later < value).count() as u64;
    }
    let untied = rising + falling;
    if untied == 0 {
        return Err(Absent::Constant);
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

/// Twice the share of orders of `n` values with at most so many inversions. How many orders have
/// each number of inversions is counted by putting the values in one after the other: the k-th
/// takes part in 0 to k - 1 inversions.
fn exact(n: usize, inversions: u64) -> f64 {
    let mut orders = vec![1u64];
    for next in 1..n {
        let mut longer = vec![0; orders.len() + next];
        for (own, ways) in orders.iter().enumerate() {
            longer[own..=own + next].iter_mut().for_each(|sum| *sum += ways);
        }
        orders = longer;
    }
    let all: u64 = orders.iter().sum();
    let tail: u64 = orders.iter().zip(0..=inversions).map(|(ways, _)| ways).sum();
    (2.0 * tail as f64 / all as f64).min(1.0)
}

/// By the normal distribution, with ties and the correction for continuity.
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
