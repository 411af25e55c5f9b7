//! Layouts of other programs: the cells that they show, and the reason if there are none.

use model::{RunRecord, record::CellRecord};
use thiserror::Error;

use crate::units::one_line;

/// Reason that a run cannot be written in the layout of another program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotInLayout {
    /// The run has no cells of the suites that the layout can show.
    #[error(
        "the run has no cells of suite {}, and only these make an output in the layout of \
         {program}; run a plan with `suite = \"{}\"`, or print this run with --format csv",
        .suites.join(" or "), .suites[0]
    )]
    OtherSuite {
        /// Suites, the usual one first.
        suites: &'static [&'static str],
        /// Program whose layout it is.
        program: &'static str,
    },
    /// No repetition was completed.
    #[error(
        "no repetition of suite {0} was measured to its end; `fslab report` without --format \
         prints the reason"
    )]
    NothingMeasured(&'static str),
}

/// Cells of some suites with their indexes, without A/A duplicates.
///
/// # Errors
/// [`NotInLayout::OtherSuite`] if there are none.
pub(crate) fn cells_of<'a>(
    record: &'a RunRecord,
    suites: &'static [&'static str],
    program: &'static str,
) -> Result<Vec<(usize, &'a CellRecord)>, NotInLayout> {
    let is_own = |own: &CellRecord| {
        suites.contains(&own.cell.workload.suite.as_str()) && !own.cell.aa_duplicate
    };
    let cells = record.cells.iter().enumerate();
    let own: Vec<_> = cells.filter(|(_, cell)| is_own(cell)).collect();
    if own.is_empty() { Err(NotInLayout::OtherSuite { suites, program }) } else { Ok(own) }
}

/// Program that measured, without its commit: `fslab 0.1.0`.
pub(crate) fn program(record: &RunRecord) -> String {
    one_line(record.info.program.split(" (").next().unwrap_or_default())
}
