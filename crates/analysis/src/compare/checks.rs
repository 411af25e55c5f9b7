//! Other methods of comparing the same two cells, which check the main test.
//!
//! Each method has assumptions that the main test does not need, so the methods do not replace its
//! result. If a method significantly contradicts the main test, or yields another ratio, no single
//! ratio describes the difference, and the size of the difference is withheld. If the ratio of a
//! method is on the other side of 1, the verdict is inconclusive.

use model::{Ratio, Warning};
use statrs::function::beta::checked_beta_reg;

use crate::{
    bounded, count,
    sample::{Sample, sum},
    summary::{LEVEL, needed},
};

/// p-value below which a check with the opposite direction contradicts the main test.
const CERTAIN: f64 = 0.05;

/// Comparison method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Welch's t-test on logarithms ("The generalization of 'Student's' problem when several
    /// different population variances are involved", Biometrika 34, 1947). Its ratio is that of the
    /// geometric means. Needs two values per side.
    Welch,
    /// Student's t-test on the mean logarithm of the ratio within each common block. Needs six
    /// common blocks.
    PairedT,
    /// Ratio of the medians. The p-value is twice the fraction of 4000 resamples of blocks in which
    /// the order of the medians is reversed. Needs six values per side.
    MedianRatio,
}

impl Method {
    /// Name in findings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Welch => "Welch's test on logarithms",
            Self::PairedT => "Student's test on the ratios within blocks",
            Self::MedianRatio => "the ratio of the medians on a log scale",
        }
    }
}

/// Result of another method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// Method.
    pub method: Method,
    /// Ratio, oriented like that of the comparison.
    pub ratio: Ratio,
    /// Two-sided p-value; `None` with too few values, or if there is no scatter.
    pub p: Option<f64>,
    /// True if the ratio differs from that of the comparison by more than the margin, or has the
    /// opposite direction with p below 5 %.
    pub disagrees: bool,
}

impl Check {
    /// Warning if the check disagrees.
    pub fn warning(&self) -> Option<Warning> {
        self.disagrees.then(|| {
            let p = self.p.map_or_else(String::new, |p| format!(" (p {})", rough(p)));
            let what = format!("{}: {:.3}{p}", self.method.name(), self.ratio.0);
            Warning::EstimatesDisagree { what }
        })
    }
}

/// Formats a p-value.
fn rough(p: f64) -> String {
    if p < 0.0005 { "< 0.001".into() } else { format!("= {p:.3}") }
}

/// Logarithm of a ratio and its p-value.
type Reading = (f64, Option<f64>);

/// Runs all checks that the samples allow, and compares them with an estimate, the logarithm of a
/// ratio. The margin is on the same scale. The p-value of the ratio of medians is an argument,
/// because a ranking computes the p-values of all pairs at once.
pub(super) fn checks(
    (a, b): (&Sample, &Sample),
    p_of_medians: Option<f64>,
    estimate: f64,
    margin: f64,
) -> Vec<Check> {
    let enough = |sample: &Sample| count(sample.logs.len()) >= needed(LEVEL);
    let p_of_medians = p_of_medians.filter(|_| enough(a) && enough(b));
    let readings = [
        (Method::Welch, welch(a, b)),
        (Method::PairedT, paired(a, b)),
        (Method::MedianRatio, Some((b.median() - a.median(), p_of_medians))),
    ];
    let check = |(method, reading): (Method, Option<Reading>)| {
        let (ratio, p) = reading?;
        let opposite = ratio * estimate < 0.0 && p.is_some_and(|p| p < CERTAIN);
        let disagrees = opposite || (ratio - estimate).abs() > margin;
        Some(Check { method, ratio: bounded(ratio), p, disagrees })
    };
    readings.into_iter().filter_map(check).collect()
}

/// Welch's test with the degrees of freedom of Welch and Satterthwaite.
fn welch(a: &Sample, b: &Sample) -> Option<Reading> {
    let (n, m) = (a.logs.len() as f64, b.logs.len() as f64);
    if n < 2.0 || m < 2.0 {
        return None;
    }
    let difference = b.mean - a.mean;
    let (of_a, of_b) = (a.variance / n, b.variance / m);
    let error = of_a + of_b;
    let freedom = error * error / (of_a * of_a / (n - 1.0) + of_b * of_b / (m - 1.0));
    Some((difference, student(difference, error, freedom)))
}

/// Student's test of the mean difference within common blocks.
fn paired(a: &Sample, b: &Sample) -> Option<Reading> {
    let differences = shared(&a.by_block(), &b.by_block());
    if count(differences.len()) < needed(LEVEL) {
        return None;
    }
    let n = differences.len() as f64;
    let mean = sum(differences.iter().copied()) / n;
    let squares = sum(differences.iter().map(|value| (value - mean).powi(2)));
    Some((mean, student(mean, squares / (n - 1.0) / n, n - 1.0)))
}

/// Second minus first value in each common block. Each list has at most one value per block, in
/// ascending order of blocks.
fn shared(first: &[(u32, f64)], second: &[(u32, f64)]) -> Vec<f64> {
    let mut others = second.iter().peekable();
    let in_both = |(block, log): &(u32, f64)| {
        while others.next_if(|(other, _)| other < block).is_some() {}
        others.next_if(|(other, _)| other == block).map(|(_, other)| other - log)
    };
    first.iter().filter_map(in_both).collect()
}

/// Two-sided p-value of a difference with this squared error: the regularized incomplete beta
/// function I(ν / (ν + t²); ν/2, 1/2) with t² = difference² / error (Abramowitz and Stegun,
/// "Handbook of Mathematical Functions", 1964, 26.5.27 and 26.7.1). `None` without scatter.
fn student(difference: f64, error: f64, freedom: f64) -> Option<f64> {
    let share = freedom / (freedom + difference * difference / error);
    if !(error > 0.0 && freedom.is_finite() && share.is_finite()) {
        return None;
    }
    checked_beta_reg(freedom / 2.0, 0.5, share).ok()
}
