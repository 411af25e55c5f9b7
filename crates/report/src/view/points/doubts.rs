//! What makes a number doubtful although it was measured well: repeats far from the others, two
//! modes, too many invalid repeats.

use analysis::{
    modes,
    outliers::{self, Label},
    summary::{LEVEL, needed},
};
use model::Warning;

use crate::view::pool::Pool;

/// A cell is unstable if more than one in so many of its trials was invalid.
const ONE_IN: u32 = 5;
/// Below so many trials, invalid ones among them, a single one is more than a tenth already, and
/// two do not yet say that the environment is the reason;
const TRIALS_MIN: u32 = 8;
/// so many do.
const INVALID_MIN: u32 = 4;

/// How many values lie far from the others; 0 below the repeats that an interval takes.
pub(super) fn severe(values: &[f64]) -> u32 {
    if count(values.len()) < needed(LEVEL) {
        return 0;
    }
    let labels = outliers::label(values, None);
    count(labels.iter().filter(|label| **label == Label::Severe).count())
}

/// Warnings that the values of one cell earn by themselves.
pub(super) fn of_values(values: &[f64]) -> Vec<Warning> {
    let severe = severe(values);
    let of = count(values.len());
    let outliers = (severe > 0).then_some(Warning::Outliers { severe, of });
    let modes = modes::find(values).map(|modes| Warning::Modes {
        lower: count(modes.lower.len()),
        higher: count(modes.higher.len()),
        ratio: modes.ratio,
    });
    outliers.into_iter().chain(modes).collect()
}

/// The warning that a cell earns by its invalid repeats: those that were made again, and those that
/// were counted after all, since the machine spoiled too many.
pub(super) fn of_cell(pool: &Pool, cell: usize) -> Option<Warning> {
    let spoiled = |(_, warning): &(_, Warning)| matches!(warning, Warning::Unstable { .. });
    let kept = pool.measured(cell).filter(|trial| trial.warnings.iter().any(spoiled)).count();
    let again = pool.invalid(cell).count();
    let of = count(again + pool.measured(cell).count());
    let invalid = count(again + kept);
    let enough = of >= TRIALS_MIN || invalid >= INVALID_MIN;
    let unstable = kept > 0 || enough && invalid * ONE_IN > of;
    unstable.then_some(Warning::Unstable { invalid, of })
}

/// A length as a count; more than four thousand million repeats do not happen.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
