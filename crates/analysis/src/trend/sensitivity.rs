//! Sensitivity of a metric to the swept parameter: spread of the levels.
//!
//! Computes a [`Sensitivity`] of a [`Sweep`]. Its index S is the largest median of a level over the
//! smallest. S is above 1 even if the levels are equal, because one of the medians is the largest
//! by chance: with eight equal levels, a spread of 3 %, and eight repetitions, S is 1.036 on
//! average. S is therefore reported with two bounds. The first is the S that chance explains, from
//! permutations of the values within their blocks. The second is an upper confidence bound, from
//! resampling blocks.
//!
//! The upper bound does not correct the upward bias of S, so the verdict "insensitive" is given too
//! rarely rather than too often. `docs/method/statistics.md` lists its error rates.

use model::Ratio;

use super::{Level, Sweep, within::Within};
use crate::{
    NotEstimable,
    bootstrap::{Resampler, quantile, weighted_median},
    count,
};

/// Default tolerance ε: levels within 10 % of each other count as insensitive.
pub const INSENSITIVE: Ratio = Ratio(0.10);

/// Fraction of permutations or resamples that are below a bound.
const BOUND: f64 = 0.95;

/// Spread of the levels of a sweep. All three values are at least 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// S: the largest median of a level over the smallest.
    pub index: Ratio,
    /// Upper 95 % bound of S, by resampling blocks.
    pub upper: Ratio,
    /// 95th percentile of S without an effect of the levels, by permuting values within blocks.
    pub chance: Ratio,
}

/// Verdict on the effect of a swept parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitive {
    /// The levels differ significantly, and by more than the equivalence margin.
    Sensitive,
    /// All levels are within the tolerance ε of each other.
    Insensitive,
    /// Inconclusive.
    Inconclusive,
}

impl Sensitivity {
    /// Verdict at the equivalence margin δ and the tolerance ε ([`INSENSITIVE`] by default). If ε
    /// is above δ, the levels can be both sensitive and insensitive; they then count as sensitive.
    pub fn verdict(&self, margin: Ratio, epsilon: Ratio) -> Sensitive {
        let shown = self.index.0 > self.chance.0 && self.index.0 > 1.0 + margin.0;
        match (shown, self.upper.0 <= 1.0 + epsilon.0) {
            (true, _) => Sensitive::Sensitive,
            (false, true) => Sensitive::Insensitive,
            (false, false) => Sensitive::Inconclusive,
        }
    }
}

impl Sweep {
    /// Spread of the levels. The seed determines all random draws. Cost: 8,000 times the number of
    /// values.
    ///
    /// # Errors
    /// [`NotEstimable::Levels`] below 2 levels, [`NotEstimable::Repetitions`] if a level has too
    /// few blocks (or repetitions, if blocks are unknown).
    pub fn sensitivity(&self, seed: u64) -> Result<Sensitivity, NotEstimable> {
        if self.levels.len() < 2 {
            return Err(NotEstimable::Levels { levels: count(self.levels.len()), needed: 2 });
        }
        let upper = self.upper(seed)?;
        let mut indices = Vec::new();
        Within::new(self, |_, value| value).each(seed, |medians| indices.push(index(medians)));
        indices.sort_by(f64::total_cmp);
        let index = index(&self.medians());
        Ok(Sensitivity { index: Ratio(index), upper, chance: Ratio(quantile(&indices, BOUND)) })
    }

    /// Upper bound of the index.
    pub(super) fn upper(&self, seed: u64) -> Result<Ratio, NotEstimable> {
        let resampler = Resampler::new(&[self], seed)?;
        let mut indices = Vec::new();
        resampler.each(|weights| indices.push(index(&self.resampled(weights))));
        indices.sort_by(f64::total_cmp);
        Ok(Ratio(quantile(&indices, BOUND)))
    }

    /// Median of each level.
    pub(super) fn medians(&self) -> Vec<f64> {
        self.levels.iter().map(|level| crate::median(&level.values())).collect()
    }

    /// Median of each level in a resample. Repetitions must be ascending within their level.
    pub(super) fn resampled(&self, weights: &[Vec<u32>]) -> Vec<f64> {
        let median = |(level, weights): (&Level, &Vec<u32>)| {
            let values = level.repetitions.iter().map(|repetition| repetition.value);
            let total = weights.iter().copied().map(u64::from).sum();
            weighted_median(values.zip(weights.iter().copied()), 0, total)
        };
        self.levels.iter().zip(weights).map(median).collect()
    }
}

/// Largest value over the smallest, limited to the largest finite number.
fn index(medians: &[f64]) -> f64 {
    let most = medians.iter().copied().fold(0.0, f64::max);
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    (most / least).clamp(1.0, f64::MAX)
}

#[cfg(test)]
mod tests;
