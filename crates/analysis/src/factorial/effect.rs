//! Sizes of effects: ratios between the levels of a factor, and ratios of effects.

use model::Ratio;

use super::{
    Source,
    design::{Cholesky, Design, Sums},
};
use crate::{Interval, moments, summary::LEVEL};

/// Size of an effect, with a 95 % interval from Student's t distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Index of the level that is compared with the first level of its factor. For an interaction,
    /// 1: the ratio is that of the effect of one factor at the second level of the other to its
    /// effect at the first level.
    pub level: usize,
    /// Ratio of the metric, averaged over the levels of all other factors (geometric mean).
    pub ratio: Ratio,
    /// Interval of the ratio. It assumes that the residuals of ln y are normal.
    pub interval: Interval,
}

/// Effects of a term: one per level of a factor except the first, and one for an interaction of two
/// factors with two levels. Empty for other interactions. `mean` is the residual mean square, and
/// `freedom` its degrees of freedom.
pub(super) fn effects(
    design: &Design,
    sums: &Sums,
    term: usize,
    (mean, freedom): (f64, f64),
) -> Vec<Effect> {
    let (order, own) = design.order(term, false);
    let Some(cholesky) = Cholesky::new(&sums.gram, &order) else { return Vec::new() };
    let Ok(quantile) = moments::quantile(LEVEL, freedom) else { return Vec::new() };
    let solution = cholesky.solve(&order, &sums.right);
    let coefficients = cholesky.coefficients(&order, &solution, order.len());
    let coefficients: Vec<f64> = coefficients[own.clone()].iter().map(|it| it.1).collect();
    let effect = |(level, contrast): (usize, Vec<f64>)| {
        let log: f64 = contrast.iter().zip(&coefficients).map(|(a, b)| a * b).sum();
        let half = quantile * (mean * cholesky.variance(own.start, &contrast)).sqrt();
        let interval = Interval { low: (log - half).exp(), high: (log + half).exp(), level: LEVEL };
        Effect { level, ratio: Ratio(log.exp()), interval }
    };
    contrasts(design.sources()[term], own.len()).into_iter().map(effect).collect()
}

/// Weights of the columns of a term by level. The levels of a factor are coded by columns that sum
/// to zero, so the last level has -1 in each column.
fn contrasts(source: Source, columns: usize) -> Vec<(usize, Vec<f64>)> {
    match source {
        // The columns of two levels are 1 and -1, so the products of two such columns differ by 4
        // between the sums of the equal and of the different levels.
        Source::Interaction(..) if columns == 1 => vec![(1, vec![4.0])],
        Source::Interaction(..) => Vec::new(),
        Source::Main(_) => (1..=columns)
            .map(|level| {
                let mut weights = vec![if level == columns { -1.0 } else { 0.0 }; columns];
                if level < columns {
                    weights[level] = 1.0;
                }
                weights[0] -= 1.0;
                (level, weights)
            })
            .collect(),
    }
}
