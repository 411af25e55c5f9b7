//! Bimodality: detects cells whose repetitions cluster near two values.
//!
//! Takes the values of one cell in any order. If the values form two clusters, returns [`Modes`]
//! with the repetitions of each cluster, so that a report can compare their conditions. The median
//! of such a cell represents neither cluster, which a warning states ([`Warning::Bimodal`]).
//!
//! # The split
//!
//! The logarithms are divided into two groups with the least sum of squares W about the group
//! means. The two groups are the values below and above a cut, so all cuts of the sorted values are
//! tried (Fisher, "On Grouping for Maximum Homogeneity", Journal of the American Statistical
//! Association 53, 1958). A cut must leave at least 3 values on each side and must not be between
//! equal values.
//!
//! # One or two modes
//!
//! The Bayesian information criterion decides (Schwarz, "Estimating the Dimension of a Model",
//! Annals of Statistics 6, 1978). Up to a constant, it is
//!
//! ```text
//! one normal:  n ln(T / n) + 2 ln n                                   mean, variance
//! two normals: n ln(W / n) - 2 Σ n(j) ln(n(j) / n) + 4 ln n           two means, variance, share
//! ```
//!
//! with T the sum of squares about the mean of all values. The criterion of two normals uses the
//! likelihood of the values *and* of their groups (Celeux and Govaert, "Gaussian parsimonious
//! clustering models", Pattern Recognition 28, 1995). The middle term is needed: the two halves of
//! one normal distribution have only 36 % of its variance, so without this term every cell would be
//! bimodal.
//!
//! A cell is bimodal if two normals improve the criterion by more than 10, "very strong" evidence
//! for Kass and Raftery ("Bayes Factors", Journal of the American Statistical Association 90,
//! 1995). A variance is at least (0.001)², so that values that differ only in their last digits
//! form one mode.
//!
//! [`Warning::Bimodal`]: model::Warning::Bimodal

use model::Ratio;

use crate::{count, median, outliers::LEAST_DEVIATION};

/// Minimum number of values of a mode.
const LEAST_SIDE: usize = 3;
/// Improvement of the criterion above which a cell is bimodal.
const GAIN: f64 = 10.0;

/// Two values near which the repetitions cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// Indexes of the values near the lower one, ascending.
    pub lower: Vec<usize>,
    /// Indexes of the values near the higher one, ascending.
    pub higher: Vec<usize>,
    /// Median of the higher mode relative to the lower one, above 1.
    pub ratio: Ratio,
    /// Improvement of the criterion by two modes instead of one, above 10.
    pub gain: f64,
}

/// Modes of a cell. `None` if there is one mode, if there are fewer than 6 values, or if a value
/// has no logarithm.
pub fn find(values: &[f64]) -> Option<Modes> {
    if values.len() < 2 * LEAST_SIDE || !values.iter().all(|v| v.is_finite() && *v > 0.0) {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let logs: Vec<f64> = order.iter().map(|at| values[*at].ln()).collect();
    let (cut, within) = best_cut(&logs)?;
    let gain = gain(&logs, cut, within);
    let (lower, higher) = order.split_at(cut);
    let middle = |of: &[usize]| median(&of.iter().map(|at| values[*at]).collect::<Vec<f64>>());
    let modes = |of: &[usize]| {
        let mut places = of.to_vec();
        places.sort_unstable();
        places
    };
    (gain > GAIN).then(|| Modes {
        lower: modes(lower),
        higher: modes(higher),
        ratio: Ratio(middle(higher) / middle(lower)),
        gain,
    })
}

/// Best cut of ascending logarithms: the number of values in the lower group, and the sum of
/// squares within both groups.
fn best_cut(logs: &[f64]) -> Option<(usize, f64)> {
    let cuts = LEAST_SIDE..=logs.len() - LEAST_SIDE;
    let apart = cuts.filter(|cut| logs[cut - 1] < logs[*cut]);
    let within = apart.map(|cut| (cut, squares(&logs[..cut]) + squares(&logs[cut..])));
    within.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Sum of squares about the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / f64::from(count(values.len()));
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Criterion of one normal minus that of two normals.
fn gain(logs: &[f64], cut: usize, within: f64) -> f64 {
    let n = f64::from(count(logs.len()));
    let fit = |squares: f64| n * (squares / n).max(LEAST_DEVIATION.powi(2)).ln();
    let shares = [cut, logs.len() - cut].map(|side| f64::from(count(side)));
    let groups: f64 = shares.iter().map(|side| -2.0 * side * (side / n).ln()).sum();
    let one = fit(squares(logs)) + 2.0 * n.ln();
    one - (fit(within) + groups + 4.0 * n.ln())
}

#[cfg(test)]
mod tests;
