//! Many comparisons at once: p-values that hold for the whole family, and what to make of those
//! that were found.
//!
//! p-values of one family enter, in any order, and leave in that order. A family is all that one
//! sentence or table talks about, also what looked boring. Holm's correction is for headlines
//! ("best", "regressed"): the chance that *any* of the claims is false stays below the level.
//! Benjamini and Hochberg's is for lists to look through: of what is found, at most a share q is
//! false on average. A p-value that is no number counts as 1, one outside 0..=1 as the nearer end.

/// What a search through a family found.
#[derive(Clone, Debug, PartialEq)]
pub struct Screening {
    /// Whether each is found.
    pub found: Vec<bool>,
    /// The least share q at which each is found.
    pub adjusted: Vec<f64>,
    /// The confidence level at which intervals of what was found have to be shown, so that on
    /// average at most a share q of them misses: 1 - k q / m with k of m found (Benjamini and
    /// Yekutieli, "False discovery rate-adjusted multiple confidence intervals for selected
    /// parameters", Journal of the American Statistical Association 100, 2005). 1 if none is found.
    pub level: f64,
}

/// p-values after Holm's step-down correction: the i-th smallest of m is multiplied by m - i + 1,
/// and none may fall below a smaller one's.
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

/// Which of a family are found at a false discovery rate q, within 0..=1: with the p-values
/// ascending, the first k for the largest k with p(k) <= k q / m.
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
