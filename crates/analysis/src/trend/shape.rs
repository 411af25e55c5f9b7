//! Shape of the curve of a sweep: rising, falling, flat, with a peak, or with a valley.
//!
//! # Monotone or not
//!
//! The medians of ln y, weighted by their numbers of repetitions, are fitted by the closest
//! nondecreasing and by the closest nonincreasing sequence (pool adjacent violators: Ayer, Brunk,
//! Ewing, Reid, and Silverman, "An Empirical Distribution Function for Sampling with Incomplete
//! Information", Annals of Mathematical Statistics 26, 1955). T is the weighted sum of squared
//! residuals of the better one of these two fits. Example: the medians 1, 3, 2, 4 with equal
//! weights have the nondecreasing fit 1, 2.5, 2.5, 4, so T = 0.5² + 0.5² = 0.5. A curve that is
//! exactly monotone has T = 0.
//!
//! T is compared with the T of permuted data: the residuals of the better fit are permuted within
//! their blocks, added to a flat sequence, and fitted in the same direction (as Freedman and Lane,
//! "A Nonstochastic Interpretation of Reported Significance Levels", Journal of Business & Economic
//! Statistics 1, 1983). Of all monotone sequences, the flat one makes T largest (Robertson, Wright,
//! and Dykstra, "Order Restricted Statistical Inference", 1988, chapter 2), which makes the test
//! conservative. `docs/method/statistics.md` describes an exception, few bimodal repetitions.
//! Residuals from the medians of the levels are not used: with them, more monotone curves were
//! reported as not monotone.
//!
//! # Peak or valley
//!
//! A curve that is not monotone is fitted by the closest sequence that rises and then falls, and by
//! the closest sequence that falls and then rises. The better fit determines the shape if its
//! extreme median is not at an end, and if the same test does not reject this fit. The test rejects
//! both fits for curves with several turning points, which are therefore inconclusive. The
//! confidence in the level of the turning point is the fraction of resamples of blocks with the
//! same turning point.

use model::Ratio;

use super::{Level, Order, Sweep, sensitivity::INSENSITIVE, within::Within};
use crate::{NotEstimable, bootstrap::Resampler, count};

/// p-value below which a curve is not monotone.
const NOT_MONOTONE: f64 = 0.01;
/// p-value of the trend below which a monotone curve rises or falls.
const TREND: f64 = 0.05;
/// Minimum number of levels of a curve.
const LEVELS_MIN: usize = 3;
/// Relative difference up to which sums of squares count as equal.
const ROUNDING: f64 = 1e-9;

/// Shape of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    /// Kind of shape.
    pub kind: FormKind,
    /// p-value of "monotone", by permutation within blocks.
    pub p: f64,
    /// Fraction of resamples with the same turning point; `None` unless the kind is a peak or a
    /// valley.
    pub share: Option<Ratio>,
}

/// Kinds of curves. The direction of the metric is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormKind {
    /// Rises with the level.
    Rising,
    /// Falls with the level.
    Falling,
    /// All levels are within [`INSENSITIVE`] of each other, without a significant trend.
    Flat,
    /// Rises and then falls.
    Peak {
        /// Index of the level with the largest median, never the first or the last level.
        level: usize,
    },
    /// Falls and then rises.
    Valley {
        /// Index of the level with the smallest median, never the first or the last level.
        level: usize,
    },
    /// Inconclusive, or another shape.
    Inconclusive,
}

impl Sweep {
    /// Shape of the curve. The seed determines all random draws. Cost: at least 8,000 times the
    /// number of values, plus that of a trend.
    ///
    /// # Errors
    /// [`NotEstimable::Levels`] below 3 levels, [`NotEstimable::Repetitions`] if a level has too
    /// few blocks (or repetitions, if blocks are unknown).
    pub fn shape(&self, seed: u64) -> Result<Form, NotEstimable> {
        if self.levels.len() < LEVELS_MIN {
            let levels = count(self.levels.len());
            return Err(NotEstimable::Levels { levels, needed: count(LEVELS_MIN) });
        }
        let resampler = Resampler::new(&[self], seed)?;
        let weights: Vec<f64> =
            self.levels.iter().map(|level| level.repetitions.len() as f64).collect();
        let medians = self.log_medians();
        let p = self.not_monotone(&medians, &weights, seed);
        if p >= NOT_MONOTONE {
            return Ok(Form { kind: self.monotone(seed)?, p, share: None });
        }
        let Some((level, sign)) = bend(&medians, &weights) else {
            return Ok(Form { kind: FormKind::Inconclusive, p, share: None });
        };
        let once = self.misfit(&medians, &weights, seed, |own| turned(own, &weights, sign));
        if once < NOT_MONOTONE {
            return Ok(Form { kind: FormKind::Inconclusive, p, share: None });
        }
        let share = self.share(resampler, |own| extreme(own, sign) == level);
        let kind = match sign > 0.0 {
            true => FormKind::Peak { level },
            false => FormKind::Valley { level },
        };
        Ok(Form { kind, p, share: Some(share) })
    }

    /// Median of ln y of each level. For an even number of values, it differs from the logarithm of
    /// the median.
    fn log_medians(&self) -> Vec<f64> {
        let logarithms =
            |level: &Level| level.values().into_iter().map(f64::ln).collect::<Vec<_>>();
        self.levels.iter().map(|level| crate::median(&logarithms(level))).collect()
    }

    /// p-value of "monotone".
    fn not_monotone(&self, medians: &[f64], weights: &[f64], seed: u64) -> f64 {
        let missed = |sign| squares(medians, &isotonic(medians, weights, sign), weights);
        let sign = if missed(1.0) <= missed(-1.0) { 1.0 } else { -1.0 };
        self.misfit(medians, weights, seed, |own| isotonic(own, weights, sign))
    }

    /// p-value of a fit: the residual for the medians, compared with the residuals for permuted
    /// data.
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

    /// Kind of a curve without a significant turning point.
    fn monotone(&self, seed: u64) -> Result<FormKind, NotEstimable> {
        let mut order = Order::new(self);
        let doubled = order.doubled_j();
        let tau = order.tau_b(doubled).unwrap_or(0.0);
        if order.p(doubled, seed).0 < TREND {
            return Ok(if tau > 0.0 { FormKind::Rising } else { FormKind::Falling });
        }
        Ok(if self.upper(seed)?.0 <= 1.0 + INSENSITIVE.0 {
            FormKind::Flat
        } else {
            FormKind::Inconclusive
        })
    }

    /// Fraction of resamples whose medians satisfy a condition.
    fn share(&self, resampler: Resampler, agrees: impl Fn(&[f64]) -> bool) -> Ratio {
        let (mut own, mut total) = (0u32, 0u32);
        resampler.each(|weights| {
            own += u32::from(agrees(&self.resampled(weights)));
            total += 1;
        });
        Ratio(f64::from(own) / f64::from(total))
    }
}

/// Level of the turning point of a curve that is not monotone, and its sign: 1 if the curve rises
/// and then falls, -1 if it falls and then rises; the better fit is chosen. `None` if both fit
/// equally well, or if the extreme median is at an end.
fn bend(medians: &[f64], weights: &[f64]) -> Option<(usize, f64)> {
    let missed = |sign| squares(medians, &turned(medians, weights, sign), weights);
    let (peak, valley) = (missed(1.0), missed(-1.0));
    let sign = if peak < valley { 1.0 } else { -1.0 };
    let level = extreme(medians, sign);
    let inside = level > 0 && level + 1 < medians.len();
    (inside && peak != valley).then_some((level, sign))
}

/// Closest sequence that rises and then falls; with sign -1, that falls and then rises.
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

/// Index of the largest value; with sign -1, of the smallest value. The first one if several are
/// equal.
fn extreme(values: &[f64], sign: f64) -> usize {
    let better =
        |best: usize, at: usize| if values[at] * sign > values[best] * sign { at } else { best };
    (0..values.len()).fold(0, better)
}

/// Closest sequence by weighted squares that never falls; with sign -1, that never rises.
fn isotonic(values: &[f64], weights: &[f64], sign: f64) -> Vec<f64> {
    // Mean, weight, and length of each pool so far; the means are ascending.
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

/// Weighted sum of squares between values and their fit.
fn squares(values: &[f64], fit: &[f64], weights: &[f64]) -> f64 {
    let each = values.iter().zip(fit).zip(weights);
    each.map(|((value, fit), weight)| weight * (value - fit) * (value - fit)).sum()
}

#[cfg(test)]
mod tests;
