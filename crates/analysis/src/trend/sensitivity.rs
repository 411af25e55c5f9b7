//! Whether what was swept matters at all: how far apart the levels lie.
//!
//! A [`Sweep`] enters, a [`Sensitivity`] leaves. Its index S is the largest median over the
//! smallest. Of levels that are all the same it is above 1 nonetheless, since one of them is the
//! largest by chance: eight with a spread of 3 % and eight repeats show 1.036 on average. So S by
//! itself says nothing, and there are two bounds beside it: what S is by chance, from permuting the
//! values within their blocks, and what S may be, from resampling blocks.
//!
//! The bound has no correction of the upward bias of S, which keeps "insensitive" on the side of
//! caution; `docs/method/statistics.md` has how often it errs.

use model::Ratio;

use super::{Level, Sweep, within::Within};
use crate::{
    Absent,
    bootstrap::{Resampler, quantile, weighted_median},
    count,
};

/// Within how much of each other levels are called alike, if nothing else is asked for: 10 %.
pub const INSENSITIVE: Ratio = Ratio(0.10);

/// The share of chance or of resamples that a bound leaves below it.
const BOUND: f64 = 0.95;

/// How far apart the levels of a sweep lie. All three are at least 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// S: the largest median of a level over the smallest.
    pub index: Ratio,
    /// The upper 95 % bound of S, by resampling blocks.
    pub upper: Ratio,
    /// The 95th percentile of S if the levels did nothing, by permuting values within blocks.
    pub chance: Ratio,
}

/// What may be said of a metric and what was swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitive {
    /// It matters, by more than the practical threshold.
    Sensitive,
    /// All levels are alike within ε.
    Insensitive,
    /// The data do not say.
    Open,
}

impl Sensitivity {
    /// Whether the levels matter, at the practical threshold δ, and are alike within ε
    /// ([`INSENSITIVE`] by default). Both can hold if ε is above δ; a difference that is shown goes
    /// first then.
    pub fn verdict(&self, threshold: Ratio, epsilon: Ratio) -> Sensitive {
        let shown = self.index.0 > self.chance.0 && self.index.0 > 1.0 + threshold.0;
        match (shown, self.upper.0 <= 1.0 + epsilon.0) {
            (true, _) => Sensitive::Sensitive,
            (false, true) => Sensitive::Insensitive,
            (false, false) => Sensitive::Open,
        }
    }
}

impl Sweep {
    /// How far apart the levels lie. The seed settles all draws. Cost: 8,000 times all values.
    ///
    /// # Errors
    /// [`Absent::Levels`] below 2 levels, [`Absent::Repeats`] when a level has too few blocks (or
    /// repeats, where blocks are unknown).
    pub fn sensitivity(&self, seed: u64) -> Result<Sensitivity, Absent> {
        if self.levels.len() < 2 {
            return Err(Absent::Levels { levels: count(self.levels.len()), needed: 2 });
        }
        let upper = self.upper(seed)?;
        let mut indices = Vec::new();
        Within::new(self, |_, value| value).each(seed, |medians| indices.push(index(medians)));
        indices.sort_by(f64::total_cmp);
        let index = index(&self.medians());
        Ok(Sensitivity { index: Ratio(index), upper, chance: Ratio(quantile(&indices, BOUND)) })
    }

    /// The upper bound of the index.
    pub(super) fn upper(&self, seed: u64) -> Result<Ratio, Absent> {
        let resampler = Resampler::new(&[self], seed)?;
        let mut indices = Vec::new();
        resampler.each(|weights| indices.push(index(&self.resampled(weights))));
        indices.sort_by(f64::total_cmp);
        Ok(Ratio(quantile(&indices, BOUND)))
    }

    /// The median of each level.
    pub(super) fn medians(&self) -> Vec<f64> {
        self.levels.iter().map(|level| crate::median(&level.values())).collect()
    }

    /// The median of each level in a resample. Repeats ascend within their level.
    pub(super) fn resampled(&self, weights: &[Vec<u32>]) -> Vec<f64> {
        let median = |(level, weights): (&Level, &Vec<u32>)| {
            let values = level.repeats.iter().map(|repeat| repeat.value);
            let total = weights.iter().copied().map(u64::from).sum();
            weighted_median(values.zip(weights.iter().copied()), 0, total)
        };
        self.levels.iter().zip(weights).map(median).collect()
    }
}

/// The largest over the smallest; the largest number there is where that is infinite.
fn index(medians: &[f64]) -> f64 {
    let most = medians.iter().copied().fold(0.0, f64::max);
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    (most / least).clamp(1.0, f64::MAX)
}

#[cfg(test)]
mod tests;
