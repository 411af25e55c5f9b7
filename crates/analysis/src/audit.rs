//! Audit of printed tables and statements: checks them for errors and contradictions.
//!
//! Printed numbers are [`Cell`]s: coordinates, the text, and a value if the text has been read
//! already. A [`Layout`] defines which coordinates identify a quantity (filesystem, test) and which
//! only its location (table). Results are values:
//!
//! - [`tables`] returns [`Finding`]s: malformed numbers ([`number`]), conflicting values,
//!   duplicated cells, missing cells of a grid, and last digits that reveal the number of readings
//!   behind the means.
//! - [`statements`] returns [`Judgment`]s of statements given as data ([`Statement`]): holds, in
//!   part, contradicted, or not testable, with the deciding numbers.
//! - [`measured`] returns [`Decision`]s of the same statements about measured numbers.
//!
//! Cells are referred to by their index in the input. Nothing is corrected or formatted. Chance and
//! copying cannot be distinguished with certainty: [`Chance`] states the rate of equal cells that
//! are certainly not copies.
//!
//! Cost: n log n in the number of cells, and per statement linear in the cells and quadratic in the
//! levels of its axis.

mod digits;
mod estimate;
mod judge;
mod measured;
pub mod number;
mod printed;
mod ranks;
mod readings;
mod repeats;
mod statement;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::metric::Better;

pub use digits::Parts;
pub use measured::{DRAWS, Decision, Measured, REPETITIONS, Verdict, measured};
pub use statement::{
    By, ChangeKind, Claim, End, Fact, Judged, Judgment, LocationResult, NOISE, Need, Part, Ruling,
    Statement, Who,
};

use printed::Printed;

/// Coordinates with the levels that a statement covers, one or several.
pub type Filter = BTreeMap<String, Vec<String>>;
/// Coordinates and their levels.
pub type Location = BTreeMap<String, String>;

/// Printed number.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Coordinates: quantity and location.
    pub at: Location,
    /// Text as printed.
    pub printed: String,
    /// Value if the text has been read already; otherwise [`number::read`] reads it.
    pub value: Option<f64>,
}

/// Meaning of the coordinates of a set of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Coordinates that only describe the location of a number, such as the table. All others
    /// identify the quantity.
    pub place: Vec<String>,
    /// Coordinate that distinguishes means and deviations of a quantity.
    pub statistic: Option<String>,
    /// Level for means, which statements refer to.
    pub mean: Option<String>,
    /// Level for standard deviations.
    pub deviation: Option<String>,
    /// Number of runs behind the means and deviations.
    pub runs: Option<u32>,
    /// Sets of coordinates; cells with the same levels are checked for duplicate values.
    pub repeats: Vec<Vec<String>>,
    /// Direction of the numbers, unless a statement sets it.
    pub better: Better,
}

/// Anomaly of printed numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The text is not a well-formed number.
    Malformed {
        /// Cell.
        cell: usize,
        /// Errors of the text.
        faults: Vec<number::Fault>,
        /// Assumed value: the given value, else that printed in the other cell, else all digits;
        /// `None` if it cannot be read.
        reading: Option<f64>,
        /// Other possible values, most likely first.
        others: Vec<f64>,
        /// Cell of the same quantity that prints one of the readings.
        confirmed: Option<usize>,
    },
    /// A quantity is printed twice with different values.
    Conflicting {
        /// First cell.
        first: usize,
        /// Later cell.
        second: usize,
        /// (second - first) / first.
        difference: f64,
        /// Possible cause.
        reason: Cause,
    },
    /// Cells of two quantities have the same value with many digits.
    Duplicated {
        /// First cell.
        first: usize,
        /// Other cell.
        second: usize,
        /// Common set of coordinates, by its index in [`Layout::repeats`].
        shared: usize,
        /// True if every statistic of both quantities is equal, as if a whole cell was copied.
        whole: bool,
    },
    /// Rate of equal cells of one statistic, with and without common coordinates.
    DuplicateTest(Chance),
    /// The grid of all levels has no cell here.
    MissingCell {
        /// Coordinates of the missing cell.
        at: Location,
    },
    /// All numbers of a statistic have endings of means of a few integers.
    Granular {
        /// Level of the statistic; empty without one.
        statistic: String,
        /// Endings.
        parts: Parts,
        /// Number of values checked.
        values: usize,
    },
}

/// Possible cause of two values of one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// One digit differs.
    OneDigit {
        /// Position among the digits, from the left, from 0.
        position: usize,
    },
    /// Two neighboring digits are swapped.
    Swapped {
        /// Position of the first one.
        position: usize,
    },
    /// The later value is that of a cell of another quantity.
    SecondIsOf {
        /// That cell.
        cell: usize,
    },
    /// The first value is that of a cell of another quantity, so the later one is probably right.
    FirstIsOf {
        /// That cell.
        cell: usize,
    },
    /// Unknown cause.
    Unknown,
}

/// Equal values of one statistic among pairs of cells; each quantity counts once.
#[derive(Clone, Debug, PartialEq)]
pub struct Chance {
    /// Level of the statistic; empty without one.
    pub statistic: String,
    /// Set of coordinates, by its index in [`Layout::repeats`].
    pub shared: usize,
    /// Equal pairs, and all pairs, with common coordinates.
    pub sharing: (u64, u64),
    /// Equal pairs, and all pairs, without common coordinates.
    pub apart: (u64, u64),
    /// Distinct values that occur in more than one cell with common coordinates; a value counts
    /// once, regardless of the number of cells.
    pub values: u64,
    /// Expected number of equal pairs with common coordinates. The larger of two estimates: the
    /// rate of pairs without common coordinates, and the rate extrapolated from pairs within 1 % of
    /// each other, because values of one filesystem or test are similar.
    pub expected: f64,
    /// Probability of at least this many repeated values given the expected number of equal pairs
    /// (Poisson), Holm-adjusted over all statistics and sets of coordinates. Values are not
    /// independent, so it is an estimate.
    pub p: f64,
}

/// p-value below which equal values are reported as duplicates.
pub const CHANCE: f64 = 0.01;

impl Finding {
    /// True if the finding is evidence against the numbers. Endings and counts only describe them;
    /// duplicates that chance explains are left to the caller, who has the [`Chance`].
    pub fn doubtful(&self) -> bool {
        match self {
            Self::Malformed { .. }
            | Self::Conflicting { .. }
            | Self::Duplicated { .. }
            | Self::MissingCell { .. } => true,
            Self::DuplicateTest(_) | Self::Granular { .. } => false,
        }
    }
}

/// Checks the numbers: malformed texts, conflicting values, duplicates (with their [`Chance`]; only
/// those that chance does not explain, by [`CHANCE`]), missing cells, and endings, in this order,
/// and each in the order of the cells.
pub fn tables(cells: &[Cell], layout: &Layout) -> Vec<Finding> {
    let printed = Printed::new(cells, layout);
    let repeats = repeats::find(&printed);
    let mut findings = printed.malformed.clone();
    findings.extend(repeats::differing(&printed, &repeats.found));
    findings.extend(repeats.found);
    findings.extend(repeats.chances.into_iter().map(Finding::DuplicateTest));
    findings.extend(printed.missing_cells().into_iter().map(|at| Finding::MissingCell { at }));
    findings.extend(digits::granular(&printed));
    findings
}

/// Checks statements against the cells. The first value of a quantity counts. Cells that duplicate
/// those of another quantity neither contradict nor confirm. A statement whose result depends on
/// the reading of a malformed cell cannot be tested.
pub fn statements(cells: &[Cell], layout: &Layout, statements: &[Statement]) -> Vec<Judgment> {
    let printed = Printed::new(cells, layout);
    let repeats = repeats::find(&printed);
    judge::Judge::new(&printed, &repeats.found).all(statements)
}
