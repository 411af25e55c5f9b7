//! Numbers computed from printed means, and the significance of their differences.
//!
//! The test is Welch's (Welch, "The generalization of 'Student's' problem when several different
//! population variances are involved", Biometrika 34, 1947), computed from means, standard
//! deviations, and numbers of runs. A mean or sum of several cells has the variance of independent
//! summands and the degrees of freedom of Satterthwaite ("An approximate distribution of estimates
//! of variance components", Biometrics Bulletin 2, 1946).

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Number with the variance of its error.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    /// Variance, and the sum of its squared parts over their degrees of freedom. `None` if a
    /// deviation or the number of runs is unknown.
    error: Option<(f64, f64)>,
}

impl Estimate {
    /// Mean or sum of at least one cell, from the value and deviation of each cell and the common
    /// number of runs.
    pub(super) fn of(cells: &[(f64, Option<f64>)], runs: Option<u32>, sum: bool) -> Self {
        let weight = if sum { 1.0 } else { 1.0 / cells.len() as f64 };
        let value = cells.iter().map(|(value, _)| value).sum::<f64>() * weight;
        let error = runs.filter(|runs| *runs > 1).and_then(|runs| {
            cells.iter().try_fold((0.0, 0.0), |(variance, squares), (_, deviation)| {
                let part = (weight * (*deviation)?).powi(2) / f64::from(runs);
                Some((variance + part, squares + part * part / f64::from(runs - 1)))
            })
        });
        Self { value, error }
    }

    /// Two-sided p-value of no difference; `None` if an error is unknown or there is no scatter.
    pub(super) fn p(&self, other: &Self) -> Option<f64> {
        let ((v1, s1), (v2, s2)) = (self.error?, other.error?);
        let variance = v1 + v2;
        if variance <= 0.0 || s1 + s2 <= 0.0 {
            return None;
        }
        let freedom = variance * variance / (s1 + s2);
        let t = (self.value - other.value).abs() / variance.sqrt();
        Some(2.0 * StudentsT::new(0.0, 1.0, freedom).ok()?.sf(t))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welch_is_that_of_scipy() {
        // scipy.stats.ttest_ind_from_stats(m1, s1, 10, m2, s2, 10, equal_var=False), SciPy 1.17.1.
        for (a, b, p) in [
            ((100476.5, 167.31), (100600.0, 231.34), WELCH[0]),
            ((3478209.0, 90000.0), (3258345.0, 358000.0), WELCH[1]),
        ] {
            let of = |(mean, deviation)| Estimate::of(&[(mean, Some(deviation))], Some(10), false);
            let got = of(a).p(&of(b)).unwrap();
            assert!((got - p).abs() < 1e-10, "{got} is not {p}");
        }
    }

    const WELCH: [f64; 2] = [0.18979955239717114, 0.0886231077870813];
}
