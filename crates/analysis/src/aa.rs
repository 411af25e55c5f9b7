//! A/A control: differences between identical cells estimate the noise of a run.
//!
//! An A/A duplicate is a cell measured a second time under another name, in random order among all
//! other cells. Input is the values of both cells for each measured phase. The result is an
//! [`AaNoise`]: the number of duplicates that differ significantly, and the spread of their ratios.
//!
//! # Independent cases
//!
//! The phases of one duplicate ran on the same filesystem instances in the same blocks, so their
//! errors are correlated. The binomial interval needs independent cases, so a duplicate counts as
//! one case. It differs if any of its phases differs after Holm's adjustment over its phases. On a
//! steady machine, a duplicate differs in 5 % of runs, regardless of its number of phases.
//!
//! # Raised margin
//!
//! N is the 95th percentile of the ratios over all phases. With fewer than 20 phases, N is the
//! largest ratio. N is computed from few medians, so it also varies on a steady machine: with one
//! duplicate of 13 phases, 8 repetitions, and 5 % of scatter, N exceeds a margin of 5 % in a third
//! of undisturbed runs (4000 simulated).
//!
//! The confidence intervals of all comparisons already include this scatter. They do not include a
//! real difference between duplicates. [`shown_margin`] therefore uses N only if the duplicates
//! differ significantly ([`AaNoise::shown`]): either a phase differs after Holm's adjustment over
//! all phases of all duplicates, or more duplicates differ than the expected 5 % explains. On a
//! noisy but steady machine, intervals are thus wide, but all runs have the same margin.
//! [`effective_margin`] always uses the larger of N and the nominal margin, which is conservative.
//!
//! Duplicates are measured on the same device and kernel and at the same time as the rest of the
//! run, so their differences include all kinds of noise. Duplicates cannot show the cause of a
//! difference between two other cells.

use model::{Ratio, metric::Better};
use statrs::distribution::{Beta, ContinuousCDF};

use crate::{
    Comparer, Interval, NotEstimable, Verdict,
    bootstrap::quantile,
    count,
    family::holm,
    ranks::FAMILY_ERROR,
    summary::{LEVEL, needed},
    trend::Repetition,
};

/// Fraction of ratios that are at most the noise.
const COVERED: f64 = 0.95;

/// Minimum number of ratios for a 95th percentile. With fewer ratios, the noise is the largest
/// ratio: an interpolated percentile would be below it and would cover all ratios but one.
pub const FOR_PERCENTILE: u32 = 20;

/// Values of the original cell and of its A/A duplicate in one measured phase, and the direction of
/// the metric.
pub type Phase = (Vec<Repetition>, Vec<Repetition>, Better);

/// Result of the A/A control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AaNoise {
    /// Number of phases that were compared because they have enough repetitions.
    pub pairs: u32,
    /// Number of these phases that differ significantly, unadjusted.
    pub differing: u32,
    /// Number of duplicates with at least one compared phase.
    pub cells: u32,
    /// Number of duplicates that differ significantly, Holm-adjusted over the phases of each.
    pub cells_differing: u32,
    /// Fraction of duplicates that differ, 0 to 1, with its 95 % interval. For a steady machine,
    /// the interval includes a value of at most 0.05.
    pub share: Interval,
    /// Noise: the 95th percentile of the ratios of phases (the higher value over the lower one),
    /// less 1. Below [`FOR_PERCENTILE`] phases, the largest ratio, less 1.
    pub ratio: Ratio,
    /// True if the duplicates differ significantly, as defined in the module documentation.
    pub shown: bool,
}

/// Expected fraction of duplicates that differ on a steady machine.
const EXPECTED: f64 = FAMILY_ERROR;

/// Compares duplicates that have one phase each, like [`of_cells`].
///
/// # Errors
/// As for [`of_cells`].
pub fn noise(
    pairs: &[Phase],
    comparer: &mut Comparer,
    margin: Ratio,
) -> Result<AaNoise, NotEstimable> {
    let cells: Vec<Vec<Phase>> = pairs.iter().map(|pair| vec![pair.clone()]).collect();
    of_cells(&cells, comparer, margin)
}

/// Compares A/A duplicates phase by phase at the equivalence margin of the run.
///
/// A phase with too few repetitions for a comparison, or with a value that has no logarithm, is
/// skipped.
///
/// # Errors
/// [`NotEstimable::Repetitions`] if no phase can be compared.
pub fn of_cells(
    cells: &[Vec<Phase>],
    comparer: &mut Comparer,
    margin: Ratio,
) -> Result<AaNoise, NotEstimable> {
    let values =
        |side: &[Repetition]| side.iter().map(|repetition| repetition.value).collect::<Vec<f64>>();
    let needed = needed(LEVEL);
    let (mut strays, mut tests, mut most) = (Vec::new(), Vec::new(), 0);
    let (mut of, mut cells_differing) = (0, 0);
    for phases in cells {
        let mut own = Vec::new();
        for (first, second, better) in phases {
            let least = count(first.len().min(second.len()));
            most = most.max(least);
            if least < needed {
                continue;
            }
            let compared = comparer.compare(&values(first), &values(second), *better, margin);
            let Ok(comparison) = compared else { continue };
            strays.push(comparison.ratio.0.ln().abs());
            let differs = matches!(comparison.verdict, Verdict::Differs { .. });
            own.push((differs, comparison.p));
        }
        of += u32::from(!own.is_empty());
        cells_differing += u32::from(any_apart(&own));
        tests.extend(own);
    }
    if strays.is_empty() {
        return Err(NotEstimable::Repetitions { least: most.min(needed - 1), needed });
    }
    strays.sort_by(f64::total_cmp);
    let share = binomial(cells_differing, of);
    let largest = strays[strays.len() - 1];
    let enough = count(strays.len()) >= FOR_PERCENTILE;
    let stray = if enough { quantile(&strays, COVERED) } else { largest };
    Ok(AaNoise {
        pairs: count(tests.len()),
        differing: count(tests.iter().filter(|(differs, _)| *differs).count()),
        cells: of,
        cells_differing,
        share,
        ratio: Ratio(stray.exp_m1()),
        shown: any_apart(&tests) || share.low > EXPECTED,
    })
}

/// True if a test, (differs, p), differs and is significant after Holm's adjustment over all tests.
fn any_apart(tests: &[(bool, f64)]) -> bool {
    let corrected = holm(&tests.iter().map(|(_, p)| *p).collect::<Vec<f64>>());
    tests.iter().zip(corrected).any(|((differs, _), p)| *differs && p <= FAMILY_ERROR)
}

/// Effective equivalence margin δ′: the nominal margin, or the A/A noise if that is larger.
pub fn effective_margin(margin: Ratio, noise: Option<&AaNoise>) -> Ratio {
    Ratio(noise.map_or(margin.0, |noise| margin.0.max(noise.ratio.0)))
}

/// Effective margin if the duplicates differ significantly ([`AaNoise::shown`]), else the nominal
/// margin.
pub fn shown_margin(margin: Ratio, noise: Option<&AaNoise>) -> Ratio {
    effective_margin(margin, noise.filter(|noise| noise.shown))
}

/// Confidence interval of a fraction by Clopper and Pearson, "The Use of Confidence or Fiducial
/// Limits Illustrated in the Case of the Binomial", Biometrika 26, 1934. `hits` is at most `of`.
pub(crate) fn binomial(hits: u32, of: u32) -> Interval {
    let tail = (1.0 - LEVEL) / 2.0;
    let (k, n) = (f64::from(hits), f64::from(of));
    // The distribution exists unless a shape is 0; the end of the interval is then 0 or 1.
    let end = |a, b, p, at_edge| Beta::new(a, b).map_or(at_edge, |beta| beta.inverse_cdf(p));
    Interval {
        low: end(k, n - k + 1.0, tail, 0.0),
        high: end(k + 1.0, n - k, 1.0 - tail, 1.0),
        level: LEVEL,
    }
}

#[cfg(test)]
mod tests;
