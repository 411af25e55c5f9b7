//! Two cells of the same: what chance and the machine make of "different" in this very run.
//!
//! A twin is a cell measured a second time under a name of its own, in random order among all
//! others. The values of both enter, twin by twin with one pair of lists for each measured phase; a
//! [`Noise`] leaves: how often twins were told apart, and how far their ratios stray.
//!
//! # What counts once
//!
//! The phases of one twin ran on the same instances in the same blocks, so they err together. The
//! binomial interval needs independent cases, and these are the twins: one counts as told apart if
//! any of its phases is, by Holm's correction within the twin, so that a twin on a steady machine
//! is so in 5 % of runs, however many phases it has.
//!
//! # When the threshold is raised
//!
//! N, the 95th percentile of the ratios over all phases (the largest of fewer than 20), also strays
//! on a steady machine: it is what chance leaves of a few medians. With one twin of 13 phases, 8
//! repeats, and 5 % of scatter the percentile lies above a threshold of 5 % in a third of runs in
//! which nothing is wrong (4000 simulated). That much the intervals of all comparisons hold
//! already. What they do not hold is a difference between twins that *is* one. So
//! [`shown_threshold`] is N only where the twins are shown to differ ([`Noise::shown`]): by a phase
//! that stands Holm's correction over all phases of all twins, or by more twins told apart than 5 %
//! explains. A noisy machine alone widens intervals; it does not move the threshold up and down
//! from run to run. [`working_threshold`] is the larger of both whatever is shown, which errs to
//! the side of silence.
//!
//! Twins share device, kernel, and hour with everything else of the run, so they hold whatever
//! noise there is, modeled or not. They cannot show that a *named* difference between two cells is
//! due to what it is named after.

use model::{Ratio, metric::Better};
use statrs::distribution::{Beta, ContinuousCDF};

use crate::{
    Absent, Comparer, Interval, Verdict,
    bootstrap::quantile,
    count,
    family::holm,
    ranks::FAMILY_ERROR,
    summary::{LEVEL, needed},
    trend::Repeat,
};

/// The share of ratios that the noise covers.
const COVERED: f64 = 0.95;

/// Ratios from which on a share of them can be beyond the noise; of fewer it is the largest, since
/// a 95th percentile would lie between the two largest and cover one less than all.
pub const FOR_PERCENTILE: u32 = 20;

/// Both lists of one measured phase of a twin, and which values are good.
pub type Phase = (Vec<Repeat>, Vec<Repeat>, Better);

/// What twins say about the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Phases of twins with enough repeats to be compared.
    pub pairs: u32,
    /// How many of them were told apart, though they are the same; without correction.
    pub differing: u32,
    /// Twins with at least one such phase.
    pub cells: u32,
    /// How many of them were told apart, by Holm's correction over the phases of each.
    pub cells_differing: u32,
    /// The share of twins told apart, from 0 to 1, with 95 % confidence. A run whose machine is
    /// steady has 0.05 or less inside.
    pub share: Interval,
    /// By how much twins differ: the 95th percentile of the ratios of their phases (the higher over
    /// the lower), less 1; the largest of them below [`FOR_PERCENTILE`] phases.
    pub ratio: Ratio,
    /// Whether the run shows that its twins differ, see the module.
    pub shown: bool,
}

/// What is expected of twins that do not differ.
const EXPECTED: f64 = FAMILY_ERROR;

/// Compares twins of one phase each, as [`of_cells`] does.
///
/// # Errors
/// As those of [`of_cells`].
pub fn noise(pairs: &[Phase], comparer: &mut Comparer, threshold: Ratio) -> Result<Noise, Absent> {
    let cells: Vec<Vec<Phase>> = pairs.iter().map(|pair| vec![pair.clone()]).collect();
    of_cells(&cells, comparer, threshold)
}

/// Compares twins, phase by phase, at the practical threshold of the run.
///
/// A phase with fewer repeats than a comparison takes, or with a value that has no logarithm, is
/// left out and not counted.
///
/// # Errors
/// [`Absent::Repeats`] if no phase is left.
pub fn of_cells(
    cells: &[Vec<Phase>],
    comparer: &mut Comparer,
    threshold: Ratio,
) -> Result<Noise, Absent> {
    let values = |side: &[Repeat]| side.iter().map(|repeat| repeat.value).collect::<Vec<f64>>();
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
            let compared = comparer.compare(&values(first), &values(second), *better, threshold);
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
        return Err(Absent::Repeats { least: most.min(needed - 1), needed });
    }
    strays.sort_by(f64::total_cmp);
    let share = binomial(cells_differing, of);
    let largest = strays[strays.len() - 1];
    let enough = count(strays.len()) >= FOR_PERCENTILE;
    let stray = if enough { quantile(&strays, COVERED) } else { largest };
    Ok(Noise {
        pairs: count(tests.len()),
        differing: count(tests.iter().filter(|(differs, _)| *differs).count()),
        cells: of,
        cells_differing,
        share,
        ratio: Ratio(stray.exp_m1()),
        shown: any_apart(&tests) || share.low > EXPECTED,
    })
}

/// Whether one of some tests, (differs, p), stands Holm's correction for all of them.
fn any_apart(tests: &[(bool, f64)]) -> bool {
    let corrected = holm(&tests.iter().map(|(_, p)| *p).collect::<Vec<f64>>());
    tests.iter().zip(corrected).any(|((differs, _), p)| *differs && p <= FAMILY_ERROR)
}

/// The threshold at which differences of a run count: the practical one, or what twins differ by if
/// that is more.
pub fn working_threshold(threshold: Ratio, noise: Option<&Noise>) -> Ratio {
    Ratio(noise.map_or(threshold.0, |noise| threshold.0.max(noise.ratio.0)))
}

/// The same, but the practical one as well where twins differ by no more than chance explains, see
/// the module.
pub fn shown_threshold(threshold: Ratio, noise: Option<&Noise>) -> Ratio {
    working_threshold(threshold, noise.filter(|noise| noise.shown))
}

/// The interval of a share by Clopper and Pearson, "The Use of Confidence or Fiducial Limits
/// Illustrated in the Case of the Binomial", Biometrika 26, 1934. `hits` is at most `of`.
pub(crate) fn binomial(hits: u32, of: u32) -> Interval {
    let tail = (1.0 - LEVEL) / 2.0;
    let (k, n) = (f64::from(hits), f64::from(of));
    // Refused only for shapes that are not above zero, where the end is 0 or 1.
    let end = |a, b, p, at_edge| Beta::new(a, b).map_or(at_edge, |beta| beta.inverse_cdf(p));
    Interval {
        low: end(k, n - k + 1.0, tail, 0.0),
        high: end(k + 1.0, n - k, 1.0 - tail, 1.0),
        level: LEVEL,
    }
}

#[cfg(test)]
mod tests;
