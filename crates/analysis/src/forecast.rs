//! What a run will be able to tell, and when its cells will close, said before it is made.
//!
//! The spread of one cell enters, most often from a pilot of few repeats; differences that can be
//! told, and numbers of repeats, leave. Nothing here knows time or cost: the conductor multiplies.
//!
//! # Formulas
//!
//! Two cells of n repeats each, whose logarithms scatter by s, are told apart at 5 % with a power
//! of 80 % where their logarithms differ by
//!
//! ```text
//! s (z(97.5 %) + z(80 %)) sqrt(2 · 1.05 / n)
//! ```
//!
//! (the usual normal approximation, as in Lehr, "Sixteen S-squared over D-squared", Statistics in
//! Medicine 11, 1992; 1.05 is what a test on ranks needs more than one on means, since its
//! efficiency relative to t is 3/π for normal values). From few repeats a standard deviation comes
//! out too small on average; it is divided by c4(n) = sqrt(2 / (n - 1)) Γ(n/2) / Γ((n - 1)/2)
//! (Holtzman, "The Unbiased Estimation of the Population Variance and Standard Deviation", American
//! Journal of Psychology 63, 1950).

use model::{Profile, Ratio};
use statrs::{
    distribution::{ContinuousCDF, Normal},
    function::gamma::ln_gamma,
};

use crate::{
    count,
    summary::{LEVEL, needed},
};

/// The power that a difference is planned for.
const POWER: f64 = 0.8;
/// What a test on ranks needs more than a test on means, of normal values: π/3.
const RANKS: f64 = 1.05;

/// The smallest difference that so many repeats of each of two cells tell with a power of 80 %, as
/// a share: 0.03 for 3 %. Infinite without repeats, or with a spread that is no number at or above
/// zero: nothing can be told.
pub fn detectable(spread: f64, repeats: u32) -> Ratio {
    let difference = spread * quantiles() * (2.0 * RANKS / f64::from(repeats)).sqrt();
    Ratio(if difference >= 0.0 { difference.exp_m1() } else { f64::INFINITY })
}

/// How many repeats of each of two cells tell a difference (0.05 for 5 %) with a power of 80 %; at
/// least as many as an interval takes, and `u32::MAX` if no number of them does.
pub fn repeats_for(spread: f64, difference: Ratio) -> u32 {
    let size = quantiles() * spread / difference.0.ln_1p();
    let repeats = (2.0 * RANKS * size.powi(2)).ceil();
    if size.is_nan() || size < 0.0 || repeats >= f64::from(u32::MAX) {
        return u32::MAX;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let repeats = repeats as u32;
    repeats.max(needed(LEVEL))
}

/// The look at which [`crate::stop::decide`] is expected to close a cell of one phase: half of all
/// cells with normal logarithms of that spread are closed by then. The last look of the profile if
/// the target is not expected to be met, or the spread is no number.
pub fn repeats_until(spread: f64, profile: Profile) -> u32 {
    let target = profile.half_width_target().0;
    let mut looks = profile.looks().iter().zip(half_widths(profile));
    let met = looks.find(|(_, width)| spread * *width <= target);
    met.map_or_else(|| profile.looks().last().copied().unwrap_or(0), |(look, _)| *look)
}

/// The standard deviation of the logarithms of one cell's values, corrected for their small number;
/// `None` below two values, or where a value has no logarithm.
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

/// What a standard deviation of n normal values is on average, over what it should be.
fn c4(n: f64) -> f64 {
    (2.0 / (n - 1.0)).sqrt() * (ln_gamma(n / 2.0) - ln_gamma((n - 1.0) / 2.0)).exp()
}

/// The quantiles of error and power together, 2.80.
fn quantiles() -> f64 {
    let normal = Normal::standard();
    normal.inverse_cdf(1.0 - (1.0 - LEVEL) / 2.0) + normal.inverse_cdf(POWER)
}

/// For each look of a profile the half-width, in standard deviations, that half of all cells have
/// reached by then: the median of the least longer side of the interval of the median over the
/// looks so far, of the wider of two looks in a row where the profile wants two. From 200,000
/// simulated sequences of normal values, `reference/stability.py`.
fn half_widths(profile: Profile) -> &'static [f64] {
    match profile {
        Profile::Quick => &[1.411, 1.079, 0.934],
        Profile::Standard => &[1.121, 0.949, 0.866, 0.772, 0.664, 0.588, 0.530],
        Profile::Rigorous => &[f64::INFINITY, 1.059, 0.968, 0.838, 0.716, 0.631, 0.564, 0.420],
    }
}

#[cfg(test)]
mod tests;
