//! Adjustment of p-values for multiple comparisons.
//!
//! The p-values of a family can be in any order; results are in the same order. A family contains
//! all results that a finding or table covers, also those that are not significant.
//!
//! Holm's adjustment is for findings about single results ("best", "regressed"): the probability
//! that *any* finding is false stays below the level. Benjamini–Hochberg is for lists: on average,
//! at most a fraction q of the listed results is false. A NaN counts as 1, a p-value below 0 as 0,
//! and a p-value above 1 as 1.

/// Result of screening a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Screening {
    /// True for each result that was found.
    pub found: Vec<bool>,
    /// Smallest q at which each result is found.
    pub adjusted: Vec<f64>,
    /// Confidence level for the intervals of the found results: 1 - k q / m, with k of m results
    /// found. Example: 2 of 20 results at q = 5 % need a level of 99.5 %. On average, at most a
    /// fraction q of these intervals then does not contain the true value (Benjamini and Yekutieli,
    /// "False discovery rate-adjusted multiple confidence intervals for selected parameters",
    /// Journal of the American Statistical Association 100, 2005). 1 if no result was found.
    pub level: f64,
}

/// p-values after Holm's step-down adjustment. The i-th smallest of m p-values is multiplied by m -
/// i + 1. An adjusted p-value is at least as large as those of smaller p-values.
///
/// Source: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
/// Statistics 6, 1979.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut adjusted = vec![0.0; p.len()];
    let mut floor = 0.0f64;
    for (step, index) in order.into_iter().enumerate() {
        floor = floor.max(valid(p[index]) * (p.len() - step) as f64).min(1.0);
        adjusted[index] = floor;
    }
    adjusted
}

/// Results found at a false discovery rate q from 0 to 1. With p-values in ascending order, these
/// are the first k, for the largest k with p(k) <= k q / m.
///
/// Source: Benjamini and Hochberg, "Controlling the false discovery rate: a practical and powerful
/// approach to multiple testing", Journal of the Royal Statistical Society B 57, 1995.
pub fn benjamini_hochberg(p: &[f64], q: f64) -> Screening {
    let m = p.len() as f64;
    let mut adjusted = vec![1.0; p.len()];
    let mut ceiling = 1.0f64;
    for (place, index) in ascending(p).into_iter().enumerate().rev() {
        ceiling = ceiling.min(valid(p[index]) * m / (place + 1) as f64);
        adjusted[index] = ceiling;
    }
    let found: Vec<bool> = adjusted.iter().map(|share| *share <= q).collect();
    let k = found.iter().filter(|found| **found).count() as f64;
    Screening { found, adjusted, level: if k > 0.0 { 1.0 - k * q / m } else { 1.0 } }
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| valid(p[*a]).total_cmp(&valid(p[*b])));
    order
}

fn valid(p: f64) -> f64 {
    if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests;
