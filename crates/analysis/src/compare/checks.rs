//! Other ways to compare the same two cells, as a check on the first one.
//!
//! They are printed and not voted on: each rests on assumptions that the main test does without.
//! But where one of them says the opposite for certain, or comes to another ratio altogether, the
//! data are not of a kind of which one ratio tells the difference: its size is withheld, and where
//! the other ratio lies on the other side of 1, the verdict is.

use model::{Ratio, Warning};
use statrs::function::beta::checked_beta_reg;

use super::sample::{Sample, sum};
use crate::{
    bounded, count,
    summary::{LEVEL, needed},
};

/// A check says the opposite for certain below this p-value.
const CERTAIN: f64 = 0.05;

/// A way to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Welch's t test on logarithms, whose ratio is that of the geometric means: "The
    /// generalization of 'Student's' problem when several different population variances are
    /// involved", Biometrika 34, 1947. Two values on each side.
    Welch,
    /// Student's t test on the mean logarithm of the ratio in each block that both have, from six
    /// such blocks on.
    PairedT,
    /// The ratio of the medians. Its p-value comes from 4000 resamples of blocks, where each side
    /// has six values: twice the share in which the medians lie the other way round.
    MedianRatio,
}

impl Method {
    /// What it is called in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Welch => "Welch's test on logarithms",
            Self::PairedT => "Student's test on the ratios within blocks",
            Self::MedianRatio => "the ratio of the medians",
        }
    }
}

/// What another way to compare says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// Which way.
    pub method: Method,
    /// Its ratio, oriented as that of the comparison.
    pub ratio: Ratio,
    /// Its two-sided p-value; `None` if there are too few values for one, or all are the same.
    pub p: Option<f64>,
    /// Whether it differs from the ratio of the comparison by more than the threshold, or points
    /// the other way with a p-value below 5 %.
    pub disagrees: bool,
}

impl Check {
    /// What is wrong, if something is.
    pub fn warning(&self) -> Option<Warning> {
        self.disagrees.then(|| {
            let p = self.p.map_or_else(String::new, |p| format!(" with p = {}", rough(p)));
            let what = format!("{} says {:.3}{p}", self.method.name(), self.ratio.0);
            Warning::Disagree { what }
        })
    }
}

/// A p-value in a text.
fn rough(p: f64) -> String {
    if p < 0.0005 { "less than 0.001".into() } else { format!("{p:.3}") }
}

/// The logarithm of a ratio and its p-value.
type Reading = (f64, Option<f64>);

/// All checks that these samples allow, against an estimate (the logarithm of a ratio) and a
/// threshold on the same scale. The p-value of the ratio of medians is given, since a ranking finds
/// those of all its pairs at once.
pub(super) fn checks(
    (a, b): (&Sample, &Sample),
    p_of_medians: Option<f64>,
    estimate: f64,
    threshold: f64,
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
        let disagrees = opposite || (ratio - estimate).abs() > threshold;
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

/// Student's test of the mean of differences within blocks that both have.
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

/// Second minus first in each block that both have; each lists a block once, ascending.
fn shared(first: &[(u32, f64)], second: &[(u32, f64)]) -> Vec<f64> {
    let mut others = second.iter().peekable();
    let in_both = |(block, log): &(u32, f64)| {
        while others.next_if(|(other, _)| other < block).is_some() {}
        others.next_if(|(other, _)| other == block).map(|(_, other)| other - log)
    };
    first.iter().filter_map(in_both).collect()
}

/// The two-sided p-value of a difference with this squared error: with t² = difference² / error,
/// the regularized incomplete beta function I(ν / (ν + t²); ν/2, 1/2) (Abramowitz and Stegun,
/// "Handbook of Mathematical Functions", 1964, 26.5.27 and 26.7.1).
fn student(difference: f64, error: f64, freedom: f64) -> Option<f64> {
    let share = freedom / (freedom + difference * difference / error);
    if !(error > 0.0 && freedom.is_finite() && share.is_finite()) {
        return None;
    }
    checked_beta_reg(freedom / 2.0, 0.5, share).ok()
}
