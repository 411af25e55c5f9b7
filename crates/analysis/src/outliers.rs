//! Values that lie far from the others of their cell: labeled, never left out.
//!
//! The values of one cell enter in any order, a [`Label`] for each leaves. A label colors a point
//! and asks for a look at the trial; no estimate changes, since medians and ranks resist a few wild
//! values anyway, and what is far out may well be what the filesystem does.
//!
//! # The score
//!
//! On logarithms: u = 0.6745 (ln y - median) / MAD, with the median absolute deviation in place of
//! a standard deviation, which an outlier would widen until it hides. Above 3.5 a value is called
//! an outlier by Iglewicz and Hoaglin ("How to Detect and Handle Outliers", 1993); that is *mild*
//! here, and *severe* begins at 10. The MAD counts as at least 0.001, or as the resolution of the
//! clock over the time measured if that is coarser: where most values are equal, a difference that
//! nobody can read off is no outlier.

use model::Ratio;

use crate::{
    median,
    summary::{LEVEL, needed},
};

/// Above this score a value is a mild outlier.
const MILD: f64 = 3.5;
/// Above this score it is a severe one.
const SEVERE: f64 = 10.0;
/// The MAD of a normal distribution in standard deviations, as Iglewicz and Hoaglin round it.
const MAD_OF_NORMAL: f64 = 0.6745;
/// The least deviation of logarithms that is taken seriously, a thousandth of the value.
pub(crate) const LEAST_DEVIATION: f64 = 0.001;

/// How far a value lies from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// Among the others, or not judged.
    Ordinary,
    /// More than 3.5 robust standard deviations away.
    Mild,
    /// More than 10 of them.
    Severe,
}

/// Labels the values of one cell, in the order given.
///
/// `resolution` is the smallest difference the measurement can tell, relative to a value. Nothing
/// is labeled with fewer values than an interval takes (6), since their deviations say little. A
/// value without logarithm (not finite, zero, or negative) takes no part and is not judged.
pub fn label(values: &[f64], resolution: Option<Ratio>) -> Vec<Label> {
    let scores = scores(values, resolution);
    let label = |score: f64| match score.abs() {
        score if score > SEVERE => Label::Severe,
        score if score > MILD => Label::Mild,
        _ => Label::Ordinary,
    };
    scores.into_iter().map(|score| score.map_or(Label::Ordinary, label)).collect()
}

/// The score of each value; `None` for what is not judged.
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
    // A resolution that is no number loses against the least deviation.
    let least = LEAST_DEVIATION.max(resolution.map_or(0.0, |resolution| resolution.0));
    let unit = deviation.max(least) / MAD_OF_NORMAL;
    logs.into_iter().map(|log| Some((log? - center) / unit)).collect()
}

#[cfg(test)]
mod tests;
