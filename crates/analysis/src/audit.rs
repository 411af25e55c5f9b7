//! Audit of printed tables and statements: checks them for errors and contradictions.
//!
//! Printed numbers are [`Cell`]s: coordinates, a text, and a value if the text has already been
//! parsed. A [`Layout`] defines which coordinates identify a quantity (filesystem, test) and which
//! ones only its location (table). Results are values:
//!
//! - [`tables`] returns [`Finding`]s: malformed numbers ([`number`]), conflicting values,
//!   duplicated cells, missing cells of a grid, and last digits that show how many readings a mean
//!   was computed from.
//! - [`statements`] returns [`Judgment`]s of statements given as data ([`Statement`]): holds, in
//!   part, contradicted, or not testable, with the deciding numbers.
//! - [`measured`] returns [`Decision`]s of the same statements about measured numbers.
//!
//! Cells are referred to by their index in the input. The audit corrects and formats nothing. Two
//! cells can be equal by chance or because one was copied. A single pair does not show which.
//! [`Chance`] is the rate of equal cells among cells that are certainly not copies.
//!
//! Cost: n log n in the number of cells. For each statement, the cost is linear in the number of
//! cells and quadratic in the number of levels of its axis.

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

/// Coordinates with one or several levels each, which select cells.
pub type Filter = BTreeMap<String, Vec<String>>;
/// Coordinates with one level each.
pub type Location = BTreeMap<String, String>;

/// Printed number.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Coordinates: quantity and location.
    pub at: Location,
    /// Text as printed.
    pub printed: String,
    /// Value, if the text has already been parsed. Otherwise [`number::read`] parses it.
    pub value: Option<f64>,
}

/// Meaning of the coordinates of a set of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Coordinates that only describe the location of a number, such as the table. All other
    /// coordinates identify the quantity.
    pub place: Vec<String>,
    /// Coordinate that distinguishes the mean from the deviation of a quantity.
    pub statistic: Option<String>,
    /// Level of `statistic` for means, which statements refer to.
    pub mean: Option<String>,
    /// Level of `statistic` for standard deviations.
    pub deviation: Option<String>,
    /// Number of runs of each mean and deviation.
    pub runs: Option<u32>,
    /// Sets of coordinates. Cells that agree in all coordinates of a set are checked for duplicate
    /// values.
    pub repeats: Vec<Vec<String>>,
    /// Direction of the numbers. A statement can override it.
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
        /// Assumed value: the given value, else that of the confirming cell, else the most likely
        /// reading. `None` if the text cannot be read.
        reading: Option<f64>,
        /// Other possible values, most likely first.
        others: Vec<f64>,
        /// Well-formed cell of the same quantity that prints one of the readings.
        confirmed: Option<usize>,
    },
    /// A quantity is printed several times with different values.
    Conflicting {
        /// First cell.
        first: usize,
        /// Later cell.
        second: usize,
        /// Relative difference, (second - first) / first.
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
        /// Set of coordinates in which both cells agree, by its index in [`Layout::repeats`].
        shared: usize,
        /// True if both quantities are equal in every statistic, as if one was copied.
        whole: bool,
    },
    /// Rates of equal cells of one statistic, for pairs that agree in a set of coordinates and for
    /// other pairs.
    DuplicateTest(Chance),
    /// No cell has this combination of levels.
    MissingCell {
        /// Coordinates of the missing cell.
        at: Location,
    },
    /// All numbers of a statistic have endings of means of a few integers.
    Granular {
        /// Level of the statistic; empty if the layout has none.
        statistic: String,
        /// Endings.
        parts: Parts,
        /// Number of values checked.
        values: usize,
    },
}

/// Possible cause of two different values of one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// One digit differs.
    OneDigit {
        /// Position among the digits, from the left, from 0.
        position: usize,
    },
    /// Two neighboring digits are swapped.
    Swapped {
        /// Position of the first of the two digits.
        position: usize,
    },
    /// The later value is also that of another quantity.
    SecondIsOf {
        /// Cell of the other quantity.
        cell: usize,
    },
    /// The first value is also that of another quantity, so the later value is probably right.
    FirstIsOf {
        /// Cell of the other quantity.
        cell: usize,
    },
    /// Unknown cause.
    Unknown,
}

/// Equal values of one statistic among pairs of cells. Only the first cell of each quantity counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Chance {
    /// Level of the statistic; empty if the layout has none.
    pub statistic: String,
    /// Set of coordinates, by its index in [`Layout::repeats`].
    pub shared: usize,
    /// Number of equal pairs and of all pairs that agree in the set of coordinates.
    pub sharing: (u64, u64),
    /// Number of equal pairs and of all pairs that do not agree in the set of coordinates.
    pub apart: (u64, u64),
    /// Number of distinct values that several agreeing cells have. Each value counts once,
    /// regardless of the number of cells.
    pub values: u64,
    /// Expected number of equal pairs among pairs that agree in the set of coordinates. It is the
    /// larger of two estimates. One is from the rate of equal pairs among all other pairs. The
    /// other is from the number of agreeing pairs that are within 1 % of each other: values of one
    /// filesystem or test are similar, so they are equal by chance more often.
    pub expected: f64,
    /// Probability of at least this many repeated values, given the expected number of equal pairs
    /// (Poisson), Holm-adjusted over all statistics and sets of coordinates. The probability is an
    /// estimate, because values are not independent.
    pub p: f64,
}

/// p-value below which equal values are reported as duplicates.
pub const CHANCE: f64 = 0.01;

impl Finding {
    /// True if the finding is evidence against the numbers. [`Finding::DuplicateTest`] and
    /// [`Finding::Granular`] only describe them.
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

/// Checks the numbers. The findings are in this order: malformed texts, conflicting values,
/// duplicates, tests for duplicates, missing cells, and endings. Findings of one kind are in the
/// order of the cells. Duplicates that chance may explain (p-value at least [`CHANCE`]) are not
/// findings.
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

/// Checks statements against the cells. If a quantity is printed several times, its first cell
/// counts. If all deciding cells of a contradiction duplicate another quantity, the cells do not
/// contradict the statement. A statement whose result depends on the reading of a malformed cell
/// cannot be tested.
pub fn statements(cells: &[Cell], layout: &Layout, statements: &[Statement]) -> Vec<Judgment> {
    let printed = Printed::new(cells, layout);
    let repeats = repeats::find(&printed);
    judge::Judge::new(&printed, &repeats.found).all(statements)
}
