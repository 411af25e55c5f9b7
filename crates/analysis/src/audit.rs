//! Whether printed tables and sentences agree with each other and with themselves.
//!
//! Numbers that somebody has printed enter as [`Cell`]s: coordinates, the text, and a value if
//! somebody has read the text already. A [`Layout`] says which coordinates tell *what* a number is
//! (filesystem, test) and which only *where* it stands (table). What leaves are values:
//!
//! - [`tables`] gives [`Finding`]s: texts that are no well-formed numbers ([`number`]), one thing
//!   printed twice with different values, cells that repeat the value of another, holes of a grid,
//!   and last digits that tell of how many readings the numbers are means.
//! - [`statements`] gives [`Judgment`]s of sentences that were written down as data
//!   ([`Statement`]): holds, in part, contradicted, or not testable, with the numbers that decide.
//!
//! Cells are named by their index in the slice that entered. Nothing is corrected and nothing is
//! formatted for people. What is equal by chance and what was copied cannot be told apart for
//! certain: [`Chance`] says how often cells are equal where nobody would have copied.
//!
//! Cost: n log n in the number of cells, and for each statement linear in the cells and quadratic
//! in the levels of the axis it speaks of.

mod digits;
mod estimate;
mod judge;
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
pub use statement::{
    AtPlace, By, Claim, End, Fact, Judged, Judgment, NOISE, Need, Part, Ruling, Statement, Way, Who,
};

use printed::Printed;

/// Coordinates with the levels that a statement is about; one level or several.
pub type Filter = BTreeMap<String, Vec<String>>;
/// Coordinates and their levels.
pub type Place = BTreeMap<String, String>;

/// One printed number.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its coordinates: what it is and where it stands.
    pub at: Place,
    /// The text as printed.
    pub printed: String,
    /// What somebody has read it as; without it the text is read by [`number::read`].
    pub value: Option<f64>,
}

/// What the coordinates of a set of cells mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Coordinates that only say where a number stands, such as the table. All others together are
    /// what it is.
    pub place: Vec<String>,
    /// The coordinate that tells means and deviations of one thing apart.
    pub statistic: Option<String>,
    /// Its level for means, which statements speak of.
    pub mean: Option<String>,
    /// Its level for standard deviations.
    pub deviation: Option<String>,
    /// Of how many runs the means and deviations are.
    pub runs: Option<u32>,
    /// Sets of coordinates, cells that share which are looked at for repeated values.
    pub repeats: Vec<Vec<String>>,
    /// Which way is better, where a statement does not say.
    pub better: Better,
}

/// What is odd about printed numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A text is no well-formed number.
    Malformed {
        /// The cell.
        cell: usize,
        /// What is wrong with it.
        faults: Vec<number::Fault>,
        /// What it is taken for: the value that came with it, else what the other cell prints, else
        /// all its digits; `None` if it cannot be read.
        reading: Option<f64>,
        /// What else it may mean, likeliest first.
        others: Vec<f64>,
        /// A cell for the same thing that prints one of the readings.
        confirmed: Option<usize>,
    },
    /// One thing is printed twice with different values.
    Differs {
        /// The cell that comes first.
        first: usize,
        /// The later one.
        second: usize,
        /// (second - first) / first.
        difference: f64,
        /// How that may have come about.
        why: Why,
    },
    /// Two cells for different things have one value, though it has many digits.
    Repeats {
        /// The cell that comes first.
        first: usize,
        /// The other.
        second: usize,
        /// The set of coordinates that both share, by its index in [`Layout::repeats`].
        shared: usize,
        /// Whether every statistic of both things is the same, as when a whole cell was copied.
        whole: bool,
    },
    /// How often cells of one statistic are equal, where they share coordinates and where not.
    Repeated(Chance),
    /// The grid of all levels has no cell here.
    Hole {
        /// The coordinates of what is missing.
        at: Place,
    },
    /// All numbers of a statistic end as means of so many whole numbers do.
    Granular {
        /// Level of the statistic; empty without one.
        statistic: String,
        /// What the endings are.
        parts: Parts,
        /// How many numbers were looked at.
        values: usize,
    },
}

/// How one thing may have come to have two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// One digit is another.
    OneDigit {
        /// Its position among the digits, from the left, from 0.
        position: usize,
    },
    /// Two neighboring digits are swapped.
    Swapped {
        /// Position of the first of the two.
        position: usize,
    },
    /// The later value is that of a cell for something else.
    SecondIsOf {
        /// That cell.
        cell: usize,
    },
    /// The first value is itself that of a cell for something else, so the later one is likely the
    /// right one.
    FirstIsOf {
        /// That cell.
        cell: usize,
    },
    /// Nothing that can be seen.
    Unknown,
}

/// Equal values of one statistic among pairs of cells, each thing counted once.
#[derive(Clone, Debug, PartialEq)]
pub struct Chance {
    /// Level of the statistic; empty without one.
    pub statistic: String,
    /// The set of coordinates, by its index in [`Layout::repeats`].
    pub shared: usize,
    /// Equal pairs, and all pairs, among those that share the coordinates.
    pub sharing: (u64, u64),
    /// The same among those that do not.
    pub apart: (u64, u64),
    /// Different values that stand in more than one cell of those that share the coordinates: what
    /// one value in many cells says is said once.
    pub values: u64,
    /// How many of the sharing pairs would be equal by chance. The larger of two estimates: as many
    /// in proportion as of the pairs that do not share the coordinates; and as many as those pairs
    /// say that are within 1 % of each other, since values of one filesystem or test are alike.
    pub expected: f64,
    /// Probability of at least so many repeated values where so many equal pairs are expected
    /// (Poisson), corrected by Holm's method for all statistics and sets of coordinates looked at.
    /// Values are not independent of each other, so it is an estimate.
    pub p: f64,
}

/// What is equal less likely than this by chance is told as repeated.
pub const CHANCE: f64 = 0.01;

impl Finding {
    /// Whether it speaks against the numbers. Endings and counts only describe them; values that
    /// repeat no more than chance would are told by the caller, who knows the [`Chance`].
    pub fn doubtful(&self) -> bool {
        match self {
            Self::Malformed { .. }
            | Self::Differs { .. }
            | Self::Repeats { .. }
            | Self::Hole { .. } => true,
            Self::Repeated(_) | Self::Granular { .. } => false,
        }
    }
}

/// Looks for everything that can be seen in the numbers alone: malformed texts, values that differ,
/// values that repeat (with their [`Chance`]; only those that chance does not explain, by
/// [`CHANCE`]), holes, and endings; in this order, and within each in that of the cells.
pub fn tables(cells: &[Cell], layout: &Layout) -> Vec<Finding> {
    let printed = Printed::new(cells, layout);
    let repeats = repeats::find(&printed);
    let mut findings = printed.malformed.clone();
    findings.extend(repeats::differing(&printed, &repeats.found));
    findings.extend(repeats.found);
    findings.extend(repeats.chances.into_iter().map(Finding::Repeated));
    findings.extend(printed.holes().into_iter().map(|at| Finding::Hole { at }));
    findings.extend(digits::granular(&printed));
    findings
}

/// Judges statements by the cells, where one thing is printed twice by its first value. Cells that
/// are wholly those of another thing neither contradict nor confirm. What comes to something else
/// with another reading of a malformed cell cannot be tested.
pub fn statements(cells: &[Cell], layout: &Layout, statements: &[Statement]) -> Vec<Judgment> {
    let printed = Printed::new(cells, layout);
    let repeats = repeats::find(&printed);
    judge::Judge::new(&printed, &repeats.found).all(statements)
}
