//! Labels for outliers. Values are never removed.
//!
//! Takes the values of one cell in any order and returns a [`Label`] for each. A label marks a
//! trial that should be inspected. Estimates do not change: medians and ranks are robust to a few
//! extreme values, and extreme values may be genuine behavior of the filesystem.
//!
//! # The score
//!
//! The score is computed from logarithms: u = 0.6745 (ln y - median) / MAD. MAD is the median
//! absolute deviation. A standard deviation would not be suitable: an outlier makes it so large
//! that the score of the outlier is small. Iglewicz and Hoaglin ("How to Detect and Handle
//! Outliers", 1993) label a value above 3.5 as an outlier. Here, a value above 3.5 is a *mild*
//! outlier, and a value above 10 is a *severe* outlier.
//!
//! If most values are equal, the MAD is almost 0, and any small difference would be an outlier. The
//! MAD therefore counts as at least 0.001. If the resolution of the clock relative to the measured
//! time is larger, the MAD counts as at least this resolution.

use model::Ratio;

use crate::{
    median,
    summary::{LEVEL, needed},
};

/// Score above which a value is a mild outlier.
const MILD: f64 = 3.5;
/// Score above which a value is a severe outlier.
const SEVERE: f64 = 10.0;
/// MAD of a normal distribution in standard deviations, rounded as in Iglewicz and Hoaglin.
const MAD_OF_NORMAL: f64 = 0.6745;
/// Smallest MAD of logarithms, 0.1 % of the value.
pub(crate) const LEAST_DEVIATION: f64 = 0.001;

/// Class of a value by its distance from the median of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// Not an outlier, or not labeled because there are too few values.
    Ordinary,
    /// More than 3.5 robust standard deviations from the median.
    Mild,
    /// More than 10 robust standard deviations from the median.
    Severe,
}

/// Labels the values of one cell, in the given order.
///
/// `resolution` is the smallest measurable difference relative to a value. With fewer values than a
/// confidence interval needs (6), no value is labeled, because the MAD is unreliable. A value
/// without logarithm (not finite, zero, or negative) is ignored.
pub fn label(values: &[f64], resolution: Option<Ratio>) -> Vec<Label> {
    let scores = scores(values, resolution);
    let label = |score: f64| match score.abs() {
        score if score > SEVERE => Label::Severe,
        score if score > MILD => Label::Mild,
        _ => Label::Ordinary,
    };
    scores.into_iter().map(|score| score.map_or(Label::Ordinary, label)).collect()
}

/// Score of each value; `None` for ignored values.
fn scores(values: &[f64], resolution: Option<Ratio>) -> Vec<Option<f64>> {
    let log = |value: &f64| (value.is_finite() && *value > 0.0).then(|| value.ln());
    let logs: Vec<Option<f64>> = values.iter().map(log).collect();
    let mut known: Vec<f64> = logs.iter().copied().flatten().collect();
    if known.len() < needed(LEVEL) as usize {
        return vec![None; values.len()];
    }
    let middle = |of: &mut Vec<f64>| {
        of.sort_by(f64::total_cmp);
        median(of)
    };
    let center = middle(&mut known);
    let deviation = middle(&mut known.iter().map(|log| (log - center).abs()).collect());
    // `max` ignores a resolution that is NaN.
    let least = LEAST_DEVIATION.max(resolution.map_or(0.0, |resolution| resolution.0));
    let unit = deviation.max(least) / MAD_OF_NORMAL;
    logs.into_iter().map(|log| Some((log? - center) / unit)).collect()
}

#[cfg(test)]
mod tests;
