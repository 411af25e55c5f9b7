//! Power analysis: detectable differences and expected numbers of repetitions.
//!
//! Input is the spread of one cell, usually from a pilot run. The caller converts numbers of
//! repetitions to time and cost.
//!
//! # Formulas
//!
//! Two cells of n repetitions each, whose logarithms scatter by s, differ significantly at 5 % with
//! a power of 80 % if their logarithms differ by
//!
//! ```text
//! s (z(97.5 %) + z(80 %)) sqrt(2 · 1.05 / n)
//! ```
//!
//! This is the usual normal approximation, as in Lehr, "Sixteen S-squared over D-squared",
//! Statistics in Medicine 11, 1992. A rank test needs 1.05 times as many repetitions as a t-test,
//! because its relative efficiency is 3/π for normal values. Example: with s = 0.03 and n = 10, the
//! logarithms must differ by 0.03 · 2.80 · 0.458 = 0.0385, a difference of 3.9 %.
//!
//! The standard deviation of few repetitions is biased low, so it is divided by
//! c4(n) = sqrt(2 / (n - 1)) Γ(n/2) / Γ((n - 1)/2) (Holtzman, "The Unbiased Estimation of the
//! Population Variance and Standard Deviation", American Journal of Psychology 63, 1950).

use model::{Profile, Ratio};
use statrs::{
    distribution::{ContinuousCDF, Normal},
    function::gamma::ln_gamma,
};

use crate::{
    count,
    summary::{LEVEL, needed},
};

/// Planned power.
const POWER: f64 = 0.8;
/// Number of repetitions that a rank test needs relative to a test of means, for normal values:
/// π/3.
const RANKS: f64 = 1.05;

/// Smallest difference that this number of repetitions per cell detects with a power of 80 %: 0.03
/// for 3 %. Infinite without repetitions, or if the spread is negative or not a number.
pub fn detectable(spread: f64, repetitions: u32) -> Ratio {
    let difference = spread * quantiles() * (2.0 * RANKS / f64::from(repetitions)).sqrt();
    Ratio(if difference >= 0.0 { difference.exp_m1() } else { f64::INFINITY })
}

/// Number of repetitions per cell that detect a difference (0.05 for 5 %) with a power of 80 %. It
/// is at least the number that a confidence interval needs, and `u32::MAX` if no number suffices.
pub fn repetitions_for(spread: f64, difference: Ratio) -> u32 {
    let size = quantiles() * spread / difference.0.ln_1p();
    let repetitions = (2.0 * RANKS * size.powi(2)).ceil();
    if size.is_nan() || size < 0.0 || repetitions >= f64::from(u32::MAX) {
        return u32::MAX;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let repetitions = repetitions as u32;
    repetitions.max(needed(LEVEL))
}

/// Number of repetitions at which [`crate::stop::decide`] is expected to close a cell with one
/// phase: the first interim analysis by which half of all cells with normal logarithms of this
/// spread are closed. The last interim analysis of the profile if the target is not expected to be
/// met, or if the spread is not a number.
pub fn repetitions_until(spread: f64, profile: Profile) -> u32 {
    let target = profile.half_width_target().0;
    let mut analyses = profile.interim_analyses().iter().zip(half_widths(profile));
    let met = analyses.find(|(_, width)| spread * *width <= target);
    met.map_or_else(
        || profile.interim_analyses().last().copied().unwrap_or(0),
        |(analysis, _)| *analysis,
    )
}

/// Standard deviation of the logarithms of one cell's values, corrected for small samples. `None`
/// below two values, or if a value has no logarithm.
pub fn spread(values: &[f64]) -> Option<f64> {
    if values.len() < 2 || !values.iter().all(|value| value.is_finite() && *value > 0.0) {
        return None;
    }
    let n = f64::from(count(values.len()));
    let logs = || values.iter().map(|value| value.ln());
    let mean = logs().sum::<f64>() / n;
    let squares: f64 = logs().map(|log| (log - mean).powi(2)).sum();
    Some((squares / (n - 1.0)).sqrt() / c4(n))
}

/// Expected standard deviation of n normal values relative to the true one.
fn c4(n: f64) -> f64 {
    (2.0 / (n - 1.0)).sqrt() * (ln_gamma(n / 2.0) - ln_gamma((n - 1.0) / 2.0)).exp()
}

/// Sum of the normal quantiles of significance level and power, 2.80.
fn quantiles() -> f64 {
    let normal = Normal::standard();
    normal.inverse_cdf(1.0 - (1.0 - LEVEL) / 2.0) + normal.inverse_cdf(POWER)
}

/// Half-widths, in standard deviations, that half of all cells have reached by each interim
/// analysis of a profile. The half-width of a cell is the longer side of the interval of the
/// median, the smallest one up to the analysis. If the profile requires two consecutive analyses to
/// meet the target, the wider interval of two counts. Medians of 200,000 simulated sequences of
/// normal values, `reference/stability.py`.
fn half_widths(profile: Profile) -> &'static [f64] {
    match profile {
        Profile::Quick => &[1.411, 1.079, 0.934],
        Profile::Standard => &[1.121, 0.949, 0.866, 0.772, 0.664, 0.588, 0.530],
        Profile::Rigorous => &[f64::INFINITY, 1.059, 0.968, 0.838, 0.716, 0.631, 0.564, 0.420],
    }
}

#[cfg(test)]
mod tests;
