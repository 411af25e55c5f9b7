//! Summary of one cell: the median over its trials with a confidence interval.
//!
//! Values may be in any order. The [`Summary`] includes warnings. [`crate::stop`] decides whether
//! the interval is narrow enough, and [`crate::compare`] compares cells.
//!
//! # The interval
//!
//! The interval is interpolated between order statistics (Hettmansperger and Sheather, "Confidence
//! intervals based on interpolated order statistics", Statistics & Probability Letters 4, 1986).
//! With the values sorted as x(1) … x(n), the interval from x(k) to x(n-k+1) covers the median with
//! probability
//!
//! ```text
//! γ(k) = 1 - 2 P(Bin(n, 1/2) <= k - 1)
//! ```
//!
//! for every distribution. With the largest k such that γ(k) >= level, the ends of the interval
//! are:
//!
//! ```text
//! I     = (γ(k) - level) / (γ(k) - γ(k+1))
//! λ     = (n - k) I / (k + (n - 2k) I)
//! lower = (1 - λ) x(k)     + λ x(k+1)
//! upper = (1 - λ) x(n-k+1) + λ x(n-k)
//! ```
//!
//! If k + 1 > n/2, there is no inner order statistic, so the interval is [x(k), x(n-k+1)]. At 95 %,
//! six values are needed: five reach only 93.75 %.
//!
//! Example: n = 10 at a level of 95 %. γ(2) = 1002/1024 = 0.9785 and γ(3) = 912/1024 = 0.8906, so k
//! = 2. Then I = 0.3244 and λ = 8 · 0.3244 / (2 + 6 · 0.3244) = 0.6577. For the values 1, 2 … 10,
//! the interval is [2.658, 8.342].

use model::{Ratio, Warning};

use crate::{Error, count, median, sorted};

/// Confidence level of every reported interval.
pub const LEVEL: f64 = 0.95;

/// Nominal level of the interval of a cell, chosen so that its coverage is [`LEVEL`]. The stopping
/// rule evaluates the interval several times and stops when it is narrow, which favors intervals
/// that are too narrow. In simulations with and without the rule, intervals at a nominal level of
/// 95 % had a coverage of 90.5 to 95.4 %, and intervals at 96 % a coverage of 92.1 to 96.8 %
/// (`docs/method/calibration.md`).
pub const BUILT: f64 = 0.96;

/// Confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end, in the unit of the values.
    pub low: f64,
    /// Upper end, in the unit of the values.
    pub high: f64,
    /// Confidence level, between 0 and 1.
    pub level: f64,
}

impl Interval {
    /// True if the value is in the closed interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Summary of one metric over the trials of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of values, at least 1.
    pub n: u32,
    /// Median, in the unit of the values.
    pub median: f64,
    /// Confidence interval of the median; `None` if there are too few values for its level.
    pub interval: Option<Interval>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// [`Warning::TooFewRepetitions`] if there is no interval.
    pub warnings: Vec<Warning>,
}

impl Summary {
    /// Summary of the values of a cell. The nominal level of its interval is [`BUILT`], the
    /// coverage [`LEVEL`]. Cost: one sort.
    ///
    /// # Errors
    /// [`Error::Empty`] and [`Error::NotFinite`].
    pub fn new(values: &[f64]) -> Result<Self, Error> {
        let mut summary = Self::at_level(values, BUILT)?;
        if let Some(interval) = &mut summary.interval {
            interval.level = LEVEL;
        }
        Ok(summary)
    }

    /// Summary with an interval of exactly this level, between 0 and 1 exclusive. Use it only if
    /// the number of values does not depend on the values. With the stopping rule, the number
    /// depends on them.
    ///
    /// # Errors
    /// [`Error::Empty`] and [`Error::NotFinite`].
    ///
    /// # Panics
    /// If the level is not between 0 and 1.
    pub fn at_level(values: &[f64], level: f64) -> Result<Self, Error> {
        assert!(level > 0.0 && level < 1.0, "a confidence level lies within 0..1");
        let sorted = sorted(values)?;
        let interval = interval(&sorted, level);
        let few = Warning::TooFewRepetitions { n: count(sorted.len()), needed: needed(level) };
        Ok(Self {
            n: count(sorted.len()),
            median: median(&sorted),
            interval,
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            warnings: if interval.is_none() { vec![few] } else { Vec::new() },
        })
    }

    /// Longer side of the interval relative to the median, which the stopping rule compares with
    /// the target of the profile. `None` without an interval, or if the median is not positive.
    pub fn half_width(&self) -> Option<Ratio> {
        let interval = self.interval?;
        let side = (interval.high - self.median).max(self.median - interval.low);
        (self.median > 0.0).then(|| Ratio(side / self.median))
    }
}

/// Smallest number n of values for which an interval of the median exists: 1 - 2^(1-n) >= level.
pub fn needed(level: f64) -> u32 {
    let mut n = 1;
    let mut tail = 1.0;
    while 1.0 - tail < level && n < 1024 {
        n += 1;
        tail /= 2.0;
    }
    n
}

/// Interpolated interval as defined in the module documentation. The values must be ascending and
/// not empty.
fn interval(sorted: &[f64], level: f64) -> Option<Interval> {
    let n = sorted.len();
    let (k, reached, next) = order(n, level)?;
    let (low, high) = (sorted[k - 1], sorted[n - k]);
    if 2 * (k + 1) > n {
        return Some(Interval { low, high, level });
    }
    let (n, k_real) = (n as f64, k as f64);
    let share = (reached - level) / (reached - next);
    let weight = (n - k_real) * share / (k_real + (n - 2.0 * k_real) * share);
    let mix = |outer: f64, inner: f64| outer + weight * (inner - outer);
    Some(Interval {
        low: mix(low, sorted[k]),
        high: mix(high, sorted[sorted.len() - k - 1]),
        level,
    })
}

/// Largest k with γ(k) >= level, followed by γ(k) and γ(k+1); `None` if γ(1) is below the level.
///
/// The binomial terms are computed as logarithms, because 2^-n underflows `f64` at n = 1075.
fn order(n: usize, level: f64) -> Option<(usize, f64, f64)> {
    let mut ln_term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = ln_term.exp();
    let mut reached = 1.0 - 2.0 * tail;
    if reached < level {
        return None;
    }
    for k in 1..=n {
        ln_term += ((n - k + 1) as f64 / k as f64).ln();
        tail += ln_term.exp();
        let next = 1.0 - 2.0 * tail;
        if next < level {
            return Some((k, reached, next));
        }
        reached = next;
    }
    None
}

#[cfg(test)]
mod tests;
