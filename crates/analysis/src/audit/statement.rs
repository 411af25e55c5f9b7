//! Sentences about tables as data, and what becomes of them.

use model::metric::Better;

use super::{Filter, Place};

/// A sentence of a text, in parts that can each be held against the cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// A short name, unique within its list.
    pub id: String,
    /// What it says, in words of whoever wrote it down.
    pub says: String,
    /// Its parts; all of them must hold.
    pub parts: Vec<Part>,
}

/// One part of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What is claimed.
    pub claim: Claim,
    /// The cells it is about. The mean is meant where no statistic is named, and the first place
    /// where a thing is printed.
    pub about: Filter,
    /// Coordinates for each combination of whose levels the claim is made anew. Over all others
    /// the cells are combined.
    pub each: Vec<String>,
    /// How cells are combined.
    pub by: By,
    /// Where it has to hold.
    pub need: Need,
    /// Whether the opposite is claimed.
    pub not: bool,
    /// Which way is better; `None` for the way of the layout.
    pub better: Option<Better>,
}

/// How the cells of one level are combined into one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The arithmetic mean.
    Mean,
    /// The sum.
    Sum,
}

/// Where a part has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Everywhere; if only somewhere, it holds in part.
    All,
    /// Everywhere without exception; a single one contradicts it.
    Every,
    /// In more than half of all places.
    Most,
    /// Somewhere.
    Some,
}

/// One end of a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The best first.
    Best,
    /// The worst first.
    Worst,
}

/// A level, by name or by its rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The best of all.
    Best,
    /// The worst of all.
    Worst,
    /// This one.
    Level(String),
}

/// Which way numbers went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// By a share between these, 0.1 for +10 %.
    Between(f64, f64),
    /// They became larger.
    Rises,
    /// They became smaller.
    Falls,
    /// They became better.
    Improves,
    /// They became worse.
    Worsens,
}

/// What can be claimed. Ratios between levels are oriented: 2 means twice as good.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// These levels, in any order, are the best or the worst of an axis; a tie with another level
    /// is no lead.
    Extreme {
        /// The axis.
        axis: String,
        /// The levels.
        levels: Vec<String>,
        /// Which end.
        end: End,
        /// The least ratio to the next level.
        margin: f64,
    },
    /// These levels follow each other in this order.
    Order {
        /// The axis.
        axis: String,
        /// The levels: best first, but worst first from the worst.
        levels: Vec<String>,
        /// Whether no other level comes before them, from which end; `None` if others may stand
        /// anywhere.
        from: Option<End>,
    },
    /// One level is better than another by a factor.
    Factor {
        /// The axis.
        axis: String,
        /// The better one.
        from: Who,
        /// The other.
        to: Who,
        /// Least and most factor.
        range: (f64, f64),
    },
    /// The number changes from one level to another, as a share of the first.
    Change {
        /// The axis.
        axis: String,
        /// From this level.
        from: String,
        /// To this one.
        to: String,
        /// How.
        way: Way,
    },
    /// One level is better than another by so many units of the numbers.
    Difference {
        /// The axis.
        axis: String,
        /// The better one.
        from: String,
        /// The other.
        to: String,
        /// Least and most units.
        range: (f64, f64),
    },
    /// The number changes one way at every step of the axis.
    Monotone {
        /// The axis; its levels in order of their numbers, or as they came if one is no number.
        axis: String,
        /// Upwards, else downwards.
        rises: bool,
    },
    /// The number hardly changes over the axis.
    Insensitive {
        /// The axis.
        axis: String,
        /// The largest spread, (largest - smallest) / smallest.
        within: f64,
    },
    /// Levels have about the same number.
    Equal {
        /// The axis.
        axis: String,
        /// The levels; all if empty.
        levels: Vec<String>,
        /// The largest spread, (largest - smallest) / smallest.
        within: f64,
    },
    /// All of some levels are better than all of some others.
    Above {
        /// The axis.
        axis: String,
        /// The better ones.
        upper: Vec<String>,
        /// The others.
        lower: Vec<String>,
    },
    /// One level gains the largest share between two levels of another axis.
    GainsMost {
        /// The axis of the level.
        among: String,
        /// The level.
        level: String,
        /// The other axis.
        axis: String,
        /// From this level of it.
        from: String,
        /// To this one.
        to: String,
    },
    /// A number that the text gives for cells.
    Quoted {
        /// The number.
        value: f64,
        /// The largest share by which it may be off.
        within: f64,
    },
    /// How many levels an axis has.
    Count {
        /// The axes; numbers of levels are multiplied.
        axes: Vec<String>,
        /// How many there are of each combination.
        times: u64,
        /// The number that the text gives.
        value: u64,
    },
}

/// What a statement comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The cells say so too.
    Holds,
    /// It is true of some places or some parts.
    InPart,
    /// The cells say otherwise.
    Contradicted,
    /// There are no cells to hold it against, or they cannot be trusted, or may be read so
    /// that they say something else.
    NotTestable,
}

/// A statement and what it comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgment {
    /// Its short name.
    pub id: String,
    /// All parts together.
    pub ruling: Ruling,
    /// Each part, in order.
    pub parts: Vec<Judged>,
}

/// A part and what it comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// All places together.
    pub ruling: Ruling,
    /// Every place where it was looked for, in the order of the cells.
    pub places: Vec<AtPlace>,
    /// Why nothing could be tested.
    pub absent: Option<String>,
}

/// What was found at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct AtPlace {
    /// Levels of [`Part::each`].
    pub at: Place,
    /// Whether it holds here; `None` where what speaks against it are cells that are wholly those
    /// of another thing.
    pub holds: Option<bool>,
    /// The numbers that decide.
    pub fact: Fact,
    /// Welch's two-sided p-value of the difference that decides: the least certain one where the
    /// claim holds, the most certain one against it where it does not. `None` without deviations
    /// and numbers of runs. Not corrected for the number of comparisons.
    pub p: Option<f64>,
}

/// The numbers that decide.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// Levels with their numbers, best first.
    Ranked(Vec<(String, f64)>),
    /// The better level, the other, and their ratio, oriented.
    Factor(String, String, f64),
    /// The numbers at both levels.
    Change(f64, f64),
    /// Levels in their order, with their numbers.
    Steps(Vec<(String, f64)>),
    /// What each level gains, largest first, as shares.
    Gains(Vec<(String, f64)>),
    /// The number of the cells, and a cell that prints the quoted one instead.
    Number(f64, Option<usize>),
    /// How many there are.
    Count(u64),
}

/// A difference with a larger p-value is within noise.
pub const NOISE: f64 = 0.05;

impl Judged {
    /// Whether what decides does not exceed the noise: for a part that holds, somewhere; for one
    /// that does not hold everywhere, in every place that speaks against it. `None` where that
    /// cannot be told.
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
