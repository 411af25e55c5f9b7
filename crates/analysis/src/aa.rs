//! A/A control: differences between identical cells estimate the noise of a run.
//!
//! An A/A duplicate is a cell measured a second time under another name, in random order among all
//! others. Input is the values of both cells, one pair of lists per measured phase; the result is
//! an [`AaNoise`]: the number of duplicates that differ significantly, and the spread of their
//! ratios.
//!
//! # Independent cases
//!
//! The phases of one duplicate ran on the same instances in the same blocks, so their errors are
//! correlated. The binomial interval needs independent cases, which are the duplicates: one counts
//! as different if any of its phases differs, with Holm's adjustment within the duplicate. On a
//! steady machine it does so in 5 % of runs, regardless of the number of phases.
//!
//! # Raised margin
//!
//! N, the 95th percentile of the ratios over all phases (the largest of fewer than 20), also varies
//! on a steady machine, because it is computed from few medians. With one duplicate of 13 phases, 8
//! repetitions, and 5 % of scatter, the percentile exceeds a margin of 5 % in a third of
//! undisturbed runs (4000 simulated). The intervals of all comparisons already include that noise.
//! They do not include a real difference between duplicates. [`shown_margin`] therefore uses N only
//! if the duplicates differ significantly ([`AaNoise::shown`]): a phase after Holm's adjustment
//! over all phases of all duplicates, or more duplicates than 5 % explains. A noisy machine widens
//! intervals but does not shift the margin from run to run. [`effective_margin`] is always the
//! larger of both, which is conservative.
//!
//! Duplicates share device, kernel, and time with the rest of the run, so they include all noise,
//! modeled or not. They cannot show that a difference between two cells is caused by the factor it
//! is attributed to.

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

/// Fraction of ratios that the noise covers.
const COVERED: f64 = 0.95;

/// Number of ratios from which the percentile can be below the largest one. Of fewer, the largest
/// is used, because a 95th percentile would be between the two largest and cover one less than all.
pub const FOR_PERCENTILE: u32 = 20;

/// Both lists of one measured phase of an A/A duplicate, and the direction of the metric.
pub type Phase = (Vec<Repetition>, Vec<Repetition>, Better);

/// Result of the A/A control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AaNoise {
    /// Phases of duplicates with enough repetitions for a comparison.
    pub pairs: u32,
    /// Number of phases that differ significantly, unadjusted.
    pub differing: u32,
    /// Duplicates with at least one such phase.
    pub cells: u32,
    /// Number of duplicates that differ significantly, Holm-adjusted over the phases of each.
    pub cells_differing: u32,
    /// Fraction of duplicates that differ, 0 to 1, with its 95 % interval. For a steady machine,
    /// the interval includes a value of at most 0.05.
    pub share: Interval,
    /// Noise: the 95th percentile of the ratios of phases (the higher over the lower), less 1; the
    /// largest ratio below [`FOR_PERCENTILE`] phases.
    pub ratio: Ratio,
    /// True if the duplicates differ significantly, see the module.
    pub shown: bool,
}

/// Expected fraction of differing duplicates.
const EXPECTED: f64 = FAMILY_ERROR;

/// Compares duplicates of one phase each, like [`of_cells`].
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
/// [`NotEstimable::Repetitions`] if no phase is left.
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

/// True if one of the tests, (differs, p), is significant after Holm's adjustment over all of them.
fn any_apart(tests: &[(bool, f64)]) -> bool {
    let corrected = holm(&tests.iter().map(|(_, p)| *p).collect::<Vec<f64>>());
    tests.iter().zip(corrected).any(|((differs, _), p)| *differs && p <= FAMILY_ERROR)
}

/// Effective equivalence margin δ′: the nominal margin, or the A/A noise if that is larger.
pub fn effective_margin(margin: Ratio, noise: Option<&AaNoise>) -> Ratio {
    Ratio(noise.map_or(margin.0, |noise| margin.0.max(noise.ratio.0)))
}

/// The same, but the nominal margin if the duplicates do not differ significantly, see the module.
pub fn shown_margin(margin: Ratio, noise: Option<&AaNoise>) -> Ratio {
    effective_margin(margin, noise.filter(|noise| noise.shown))
}

/// Interval of a fraction by Clopper and Pearson, "The Use of Confidence or Fiducial Limits
/// Illustrated in the Case of the Binomial", Biometrika 26, 1934. `hits` is at most `of`.
pub(crate) fn binomial(hits: u32, of: u32) -> Interval {
    let tail = (1.0 - LEVEL) / 2.0;
    let (k, n) = (f64::from(hits), f64::from(of));
    // Fails only for shapes that are not above zero, for which the end is 0 or 1.
    let end = |a, b, p, at_edge| Beta::new(a, b).map_or(at_edge, |beta| beta.inverse_cdf(p));
    Interval {
        low: end(k, n - k + 1.0, tail, 0.0),
        high: end(k + 1.0, n - k, 1.0 - tail, 1.0),
        level: LEVEL,
    }
}

#[cfg(test)]
mod tests;
