//! Statements about tables, given as data, and their results.

use model::metric::Better;

use super::{Filter, Location};

/// Statement of a text, in parts that are checked separately.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Short name, unique within its list.
    pub id: String,
    /// Original text.
    pub text: String,
    /// Parts; all of them must hold.
    pub parts: Vec<Part>,
}

/// Part of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Claim.
    pub claim: Claim,
    /// Filter of the cells that the claim is about. Without a statistic, it selects the means.
    /// Without a location, it selects the first cell of each quantity.
    pub about: Filter,
    /// Coordinates: the claim is checked separately for each combination of their levels. Cells are
    /// combined over all other coordinates.
    pub each: Vec<String>,
    /// Method of combining several cells.
    pub by: By,
    /// Locations at which the claim must hold.
    pub need: Need,
    /// True if the opposite of the claim is stated.
    pub not: bool,
    /// Direction of the numbers; `None` for that of the layout.
    pub better: Option<Better>,
}

/// Method of combining the cells of one level into one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Arithmetic mean.
    Mean,
    /// Sum.
    Sum,
}

/// Locations at which a part must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All. If the claim holds only at some locations, the part holds in part.
    All,
    /// All without exception. A single location at which the claim does not hold contradicts the
    /// part.
    Every,
    /// More than half.
    Most,
    /// At least one.
    Some,
}

/// End of a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Best first.
    Best,
    /// Worst first.
    Worst,
}

/// Level, by name or by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Best of all.
    Best,
    /// Worst of all.
    Worst,
    /// Named level.
    Level(String),
}

/// Direction of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChangeKind {
    /// Relative change between these bounds, 0.1 for +10 %.
    Between(f64, f64),
    /// Larger.
    Rises,
    /// Smaller.
    Falls,
    /// Better.
    Improves,
    /// Worse.
    Worsens,
}

/// Claim about levels of an axis. Ratios between levels are oriented: 2 means twice as good.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// These levels, in any order, are the best or the worst of an axis. A tie with another level
    /// contradicts the claim.
    Extreme {
        /// Axis.
        axis: String,
        /// Levels.
        levels: Vec<String>,
        /// End of the ranking.
        end: End,
        /// Minimum ratio to the next level.
        margin: f64,
    },
    /// These levels have this order.
    Order {
        /// Axis.
        axis: String,
        /// Levels: best first, or worst first if `from` is the worst.
        levels: Vec<String>,
        /// End of the ranking at which these levels are; `None` if other levels may be before and
        /// after them.
        from: Option<End>,
    },
    /// One level is better than another by a factor.
    Factor {
        /// Axis.
        axis: String,
        /// Better level.
        from: Who,
        /// Other level.
        to: Who,
        /// Smallest and largest factor.
        range: (f64, f64),
    },
    /// Relative change of the number from one level to another.
    Change {
        /// Axis.
        axis: String,
        /// First level.
        from: String,
        /// Second level.
        to: String,
        /// Direction.
        trend: ChangeKind,
    },
    /// One level is better than another by a difference in the unit of the numbers.
    Difference {
        /// Axis.
        axis: String,
        /// Better level.
        from: String,
        /// Other level.
        to: String,
        /// Smallest and largest difference.
        range: (f64, f64),
    },
    /// The number changes in one direction at every step of the axis.
    Monotone {
        /// Axis. Its levels are in the order of their numbers, or in input order if one of them is
        /// not a number.
        axis: String,
        /// True for upwards.
        rises: bool,
    },
    /// The number is almost constant over the axis.
    Insensitive {
        /// Axis.
        axis: String,
        /// Largest spread, (largest - smallest) / smallest.
        within: f64,
    },
    /// These levels have approximately the same number.
    Equal {
        /// Axis.
        axis: String,
        /// Levels; empty for all levels of the axis.
        levels: Vec<String>,
        /// Largest spread, (largest - smallest) / smallest.
        within: f64,
    },
    /// Each of some levels is better than each of some other levels.
    Above {
        /// Axis.
        axis: String,
        /// Better levels.
        upper: Vec<String>,
        /// Other levels.
        lower: Vec<String>,
    },
    /// One level has the largest relative gain between two levels of another axis.
    GainsMost {
        /// Axis of the level.
        among: String,
        /// Level.
        level: String,
        /// Other axis.
        axis: String,
        /// First level of the other axis.
        from: String,
        /// Second level of the other axis.
        to: String,
    },
    /// The text quotes a number for cells.
    Quoted {
        /// Number.
        value: f64,
        /// Largest relative error of the quoted number.
        within: f64,
    },
    /// The text states a number of combinations of levels.
    Count {
        /// Axes, whose numbers of levels are multiplied.
        axes: Vec<String>,
        /// Factor by which the product is multiplied.
        times: u64,
        /// Number in the text.
        value: u64,
    },
}

/// Result of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The cells confirm the statement.
    Holds,
    /// The statement holds for some locations or some parts.
    InPart,
    /// The cells contradict the statement.
    Contradicted,
    /// Cells are missing or doubtful, or the result depends on the reading of a text.
    NotTestable,
}

/// Statement with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgment {
    /// Short name.
    pub id: String,
    /// Ruling over all parts.
    pub ruling: Ruling,
    /// Parts in order.
    pub parts: Vec<Judged>,
}

/// Part with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Ruling over all locations.
    pub ruling: Ruling,
    /// All locations checked, in the order of the cells.
    pub places: Vec<LocationResult>,
    /// Reason that nothing could be tested.
    pub absent: Option<String>,
}

/// Result at one location.
#[derive(Clone, Debug, PartialEq)]
pub struct LocationResult {
    /// Levels of [`Part::each`].
    pub at: Location,
    /// True if the claim holds here. `None` if it does not hold and the deciding cells duplicate
    /// those of another quantity.
    pub holds: Option<bool>,
    /// Deciding numbers.
    pub fact: Fact,
    /// Welch's two-sided p-value of the deciding difference. If the claim holds, the largest
    /// p-value of all deciding differences, else the smallest. `None` without deviations and
    /// numbers of runs. Not adjusted for multiple comparisons.
    pub p: Option<f64>,
}

/// Deciding numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// Levels with their numbers, best first.
    Ranked(Vec<(String, f64)>),
    /// Better level, other level, and their ratio, oriented.
    Factor(String, String, f64),
    /// Numbers at both levels.
    Change(f64, f64),
    /// Levels in their order, with their numbers.
    Steps(Vec<(String, f64)>),
    /// Relative gain of each level, largest first.
    Gains(Vec<(String, f64)>),
    /// Number of the cells, and another cell that prints the quoted number if the claim does not
    /// hold.
    Number(f64, Option<usize>),
    /// Number of levels.
    Count(u64),
}

/// p-value above which a difference is within noise.
pub const NOISE: f64 = 0.05;

impl Judged {
    /// True if the deciding difference is within noise. If the part holds, one such location is
    /// sufficient. If it does not hold everywhere, the differences at all contradicting locations
    /// must be within noise. `None` if unknown.
    pub fn within_noise(&self) -> Option<bool> {
        let of = |held: bool| {
            let places = self.places.iter().filter(move |place| place.holds == Some(held));
            places.filter_map(|place| place.p).map(|p| p > NOISE)
        };
        match self.ruling {
            Ruling::Holds => of(true).reduce(|one, other| one || other),
            Ruling::InPart | Ruling::Contradicted => of(false).reduce(|one, other| one && other),
            Ruling::NotTestable => None,
        }
    }
}
