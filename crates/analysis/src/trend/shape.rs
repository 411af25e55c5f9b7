//! What the curve of a sweep looks like: rising, falling, flat, with a peak, or with a valley.
//!
//! # Monotone or not
//!
//! The medians of ln y, weighted by their repeats, are fitted by the closest sequence that never
//! falls, and by the closest that never rises (pool adjacent violators: Ayer, Brunk, Ewing, Reid,
//! and Silverman, "An Empirical Distribution Function for Sampling with Incomplete Information",
//! Annals of Mathematical Statistics 26, 1955). The free fit passes through all medians, so what
//! the better of both misses, as a weighted sum of squares T, is what the free fit gains.
//!
//! Its reference is T of the same direction over permutations of the residuals of that fit within
//! their blocks (as Freedman and Lane, "A Nonstochastic Interpretation of Reported Significance
//! Levels", Journal of Business & Economic Statistics 1, 1983), around a flat sequence. Of all
//! monotone sequences the flat one makes T largest (Robertson, Wright, and Dykstra, "Order
//! Restricted Statistical Inference", 1988, chapter 2), which keeps the test cautious;
//! `docs/method/statistics.md` has where it is not, with few repeats in two modes. Residuals of the
//! free fit are not taken, since with them more monotone curves were said to turn.
//!
//! # Peak or valley
//!
//! A curve that is not monotone is fitted by the closest one that rises and then falls, and the
//! closest that falls and then rises. The better one names it if its extreme median is not at an
//! end, and if the same test does not show that it misses the medians: what turns more than once is
//! left open. How sure the level is, is the share of resamples of blocks that have theirs there.

use model::Ratio;

use super::{Level, Order, Sweep, sensitivity::INSENSITIVE, within::Within};
use crate::{Absent, bootstrap::Resampler, count};

/// A curve is not monotone at a p-value below this.
const NOT_MONOTONE: f64 = 0.01;
/// A monotone curve rises or falls at a p-value below this.
const TREND: f64 = 0.05;
/// A curve has so many levels.
const LEVELS_MIN: usize = 3;
/// Sums of squares that differ by less than this share are the same but for rounding.
const ROUNDING: f64 = 1e-9;

/// What a curve looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    /// Its kind.
    pub kind: FormKind,
    /// p-value of "it never falls or never rises", by permutation within blocks.
    pub p: f64,
    /// With a peak or a valley, the share of resamples that have theirs at the same level.
    pub share: Option<Ratio>,
}

/// Kinds of curves. Nothing here is turned by the direction of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormKind {
    /// It rises with the level.
    Rising,
    /// It falls with the level.
    Falling,
    /// All levels are alike within [`INSENSITIVE`], and no trend is shown.
    Flat,
    /// It rises and then falls.
    Peak {
        /// Index of the level with the largest median, never an end.
        level: usize,
    },
    /// It falls and then rises.
    Valley {
        /// Index of the level with the smallest median, never an end.
        level: usize,
    },
    /// The data do not say, or the curve does something else.
    Open,
}

impl Sweep {
    /// What the curve looks like. The seed settles all draws. Cost: 8,000 times all values, and
    /// that of a trend.
    ///
    /// # Errors
    /// [`Absent::Levels`] below 3 levels, [`Absent::Repeats`] when a level has too few blocks (or
    /// repeats, where blocks are unknown).
    pub fn shape(&self, seed: u64) -> Result<Form, Absent> {
        if self.levels.len() < LEVELS_MIN {
            let levels = count(self.levels.len());
            return Err(Absent::Levels { levels, needed: count(LEVELS_MIN) });
        }
        let resampler = Resampler::new(&[self], seed)?;
        let weights: Vec<f64> =
            self.levels.iter().map(|level| level.repeats.len() as f64).collect();
        let medians = self.log_medians();
        let p = self.not_monotone(&medians, &weights, seed);
        if p >= NOT_MONOTONE {
            return Ok(Form { kind: self.monotone(seed)?, p, share: None });
        }
        let Some((level, sign)) = bend(&medians, &weights) else {
            return Ok(Form { kind: FormKind::Open, p, share: None });
        };
        let once = self.misfit(&medians, &weights, seed, |own| turned(own, &weights, sign));
        if once < NOT_MONOTONE {
            return Ok(Form { kind: FormKind::Open, p, share: None });
        }
        let share = self.share(resampler, |own| extreme(own, sign) == level);
        let kind = match sign > 0.0 {
            true => FormKind::Peak { level },
            false => FormKind::Valley { level },
        };
        Ok(Form { kind, p, share: Some(share) })
    }

    /// The median of ln y of each level: of an even number of values it is not the logarithm of the
    /// median.
    fn log_medians(&self) -> Vec<f64> {
        let logarithms =
            |level: &Level| level.values().into_iter().map(f64::ln).collect::<Vec<_>>();
        self.levels.iter().map(|level| crate::median(&logarithms(level))).collect()
    }

    /// The p-value of "it never falls or never rises".
    fn not_monotone(&self, medians: &[f64], weights: &[f64], seed: u64) -> f64 {
        let missed = |sign| squares(medians, &isotonic(medians, weights, sign), weights);
        let sign = if missed(1.0) <= missed(-1.0) { 1.0 } else { -1.0 };
        self.misfit(medians, weights, seed, |own| isotonic(own, weights, sign))
    }

    /// The p-value of "it is as this fit says": what the fit misses of the medians, against what it
    /// misses of its residuals, permuted within their blocks.
    fn misfit(
        &self,
        medians: &[f64],
        weights: &[f64],
        seed: u64,
        fit: impl Fn(&[f64]) -> Vec<f64>,
    ) -> f64 {
        let own = fit(medians);
        let observed = squares(medians, &own, weights);
        let all = squares(medians, &vec![0.0; medians.len()], weights);
        if observed <= all * ROUNDING * ROUNDING {
            return 1.0;
        }
        let (mut beyond, mut total) = (1u32, 1u32);
        Within::new(self, |level, value| value.ln() - own[level]).each(seed, |medians| {
            let drawn = squares(medians, &fit(medians), weights);
            beyond += u32::from(drawn >= observed * (1.0 - ROUNDING));
            total += 1;
        });
        f64::from(beyond) / f64::from(total)
    }

    /// The kind of a curve that is not shown to turn.
    fn monotone(&self, seed: u64) -> Result<FormKind, Absent> {
        let mut order = Order::new(self);
        let doubled = order.doubled_j();
        let tau = order.tau_b(doubled).unwrap_or(0.0);
        if order.p(doubled, seed).0 < TREND {
            return Ok(if tau > 0.0 { FormKind::Rising } else { FormKind::Falling });
        }
        Ok(if self.upper(seed)?.0 <= 1.0 + INSENSITIVE.0 { FormKind::Flat } else { FormKind::Open })
    }

    /// The share of resamples whose medians agree.
    fn share(&self, resampler: Resampler, agrees: impl Fn(&[f64]) -> bool) -> Ratio {
        let (mut own, mut total) = (0u32, 0u32);
        resampler.each(|weights| {
            own += u32::from(agrees(&self.resampled(weights)));
            total += 1;
        });
        Ratio(f64::from(own) / f64::from(total))
    }
}

/// Where a curve that is not monotone turns, and its sign: 1 if it rises and then falls, -1 if it
/// falls and then rises, whichever misses less. `None` if neither does, or that is at an end.
fn bend(medians: &[f64], weights: &[f64]) -> Option<(usize, f64)> {
    let missed = |sign| squares(medians, &turned(medians, weights, sign), weights);
    let (peak, valley) = (missed(1.0), missed(-1.0));
    let sign = if peak < valley { 1.0 } else { -1.0 };
    let level = extreme(medians, sign);
    let inside = level > 0 && level + 1 < medians.len();
    (inside && peak != valley).then_some((level, sign))
}

/// The closest sequence that rises and then falls; with sign -1, falls and then rises.
fn turned(medians: &[f64], weights: &[f64], sign: f64) -> Vec<f64> {
    let mut best: Option<(f64, Vec<f64>)> = None;
    for turn in 0..=medians.len() {
        let (left, right) = medians.split_at(turn);
        let (own, others) = weights.split_at(turn);
        let mut fit = isotonic(left, own, sign);
        fit.extend(isotonic(right, others, -sign));
        let missed = squares(medians, &fit, weights);
        if best.as_ref().is_none_or(|(least, _)| missed < *least) {
            best = Some((missed, fit));
        }
    }
    best.map_or_else(Vec::new, |(_, fit)| fit)
}

/// Index of the largest value, or the smallest with sign -1; the first of several.
fn extreme(values: &[f64], sign: f64) -> usize {
    let better =
        |best: usize, at: usize| if values[at] * sign > values[best] * sign { at } else { best };
    (0..values.len()).fold(0, better)
}

/// The closest sequence that never falls, or never rises with sign -1, by weighted squares.
fn isotonic(values: &[f64], weights: &[f64], sign: f64) -> Vec<f64> {
    // Mean, weight, and length of what was pooled so far; the means rise.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (value, weight) in values.iter().zip(weights) {
        let mut own = (value * sign, *weight, 1);
        while let Some(before) = pools.pop_if(|before| before.0 >= own.0) {
            let sum = before.1 + own.1;
            own = ((before.0 * before.1 + own.0 * own.1) / sum, sum, before.2 + own.2);
        }
        pools.push(own);
    }
    pools.into_iter().flat_map(|(mean, _, n)| std::iter::repeat_n(mean * sign, n)).collect()
}

/// The weighted sum of squares between values and their fit.
fn squares(values: &[f64], fit: &[f64], weights: &[f64]) -> f64 {
    let each = values.iter().zip(fit).zip(weights);
    each.map(|((value, fit), weight)| weight * (value - fit) * (value - fit)).sum()
}

#[cfg(test)]
mod tests;
