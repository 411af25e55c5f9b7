//! Warnings derived from the values of a cell: outliers, bimodal results, and too many invalid
//! trials.

use analysis::{
    modes,
    outliers::{self, Label},
    summary::{LEVEL, needed},
};
use model::Warning;

use crate::view::sample_index::SampleIndex;

/// A cell has too many invalid trials if more than one trial in this number is invalid.
const ONE_IN: u32 = 5;
/// Minimum number of trials, invalid ones included, for that rule. With fewer, one or two invalid
/// trials are not evidence of an unstable environment.
const TRIALS_MIN: u32 = 8;
/// Minimum number of invalid trials for which the rule applies to fewer trials.
const INVALID_MIN: u32 = 4;

/// Number of outliers; 0 if there are too few values for a confidence interval.
pub(super) fn severe(values: &[f64]) -> u32 {
    if count(values.len()) < needed(LEVEL) {
        return 0;
    }
    let labels = outliers::label(values, None);
    count(labels.iter().filter(|label| **label == Label::Severe).count())
}

/// Warnings about the values of one cell.
pub(super) fn of_values(values: &[f64]) -> Vec<Warning> {
    let severe = severe(values);
    let of = count(values.len());
    let outliers = (severe > 0).then_some(Warning::Outliers { severe, of });
    let modes = modes::find(values).map(|modes| Warning::Bimodal {
        lower: count(modes.lower.len()),
        higher: count(modes.higher.len()),
        ratio: modes.ratio,
    });
    outliers.into_iter().chain(modes).collect()
}

/// Warning about too many invalid trials: those that were rerun, and those that were counted
/// because the limit of reruns was reached. A counted one is sufficient for the warning.
pub(super) fn of_cell(sample_index: &SampleIndex, cell: usize) -> Option<Warning> {
    let invalid =
        |(_, warning): &(_, Warning)| matches!(warning, Warning::ManyInvalidTrials { .. });
    let kept =
        sample_index.measured(cell).filter(|trial| trial.warnings.iter().any(invalid)).count();
    let again = sample_index.invalid(cell).count();
    let of = count(again + sample_index.measured(cell).count());
    let invalid = count(again + kept);
    let enough = of >= TRIALS_MIN || invalid >= INVALID_MIN;
    let unstable = kept > 0 || enough && invalid * ONE_IN > of;
    unstable.then_some(Warning::ManyInvalidTrials { invalid, of })
}

/// Length as `u32`, saturating.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
