//! Numbers beside each other of which at least one side is published and not measured by fslab.
//!
//! Two sources enter, a run or a published set each; a [`Beside`] leaves, laid out as text for a
//! terminal, as Markdown, as JSON, or as an HTML page. Pairs share suite, test, filesystem, and
//! metric. What else differs is told first, with what it forbids to conclude. There is no verdict
//! in any of it: machine, disk, and kernel always differ together with whatever is looked for. A
//! ratio is one of means, which stand at both numbers, and is there only where the spread of both
//! is known and both sides' work fits into memory, or neither side's does. Only here do published
//! numbers share an axis with measured ones, each labelled, to be read and not to be judged.

mod run;
mod show;

use analysis::{
    Interval,
    moments::{MeanRatio, Moments},
};
use model::{Metric, RunRecord, suggest};

use crate::published::{
    PUBLISHED, Published,
    beside::{alias, side},
};

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A run file.
    Run(&'a RunRecord),
    /// A published set.
    Published(&'a Published),
}

/// Why two sources cannot stand beside each other. The text says what would help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BesideError {
    /// Both are runs.
    #[error("neither side is published; fslab compare RUN RUN compares runs by statistics")]
    TwoRuns,
    /// Two published sets of different suites.
    #[error("{first} and {second} are of different suites, {of_first} and {of_second}; {cure}")]
    Suites {
        /// Name of the first.
        first: String,
        /// Name of the second.
        second: String,
        /// Suite of the first.
        of_first: String,
        /// Suite of the second.
        of_second: String,
        /// What could be compared.
        cure: String,
    },
    /// The run has nothing of the suite.
    #[error("{run} has no numbers of suite {suite}, which {set} is of; measure some with {cure}")]
    NoCells {
        /// The run.
        run: String,
        /// The suite.
        suite: &'static str,
        /// The published set.
        set: String,
        /// A command that would.
        cure: String,
    },
    /// No test on any filesystem is in both.
    #[error(
        "no test of a filesystem is in both: {first} has {of_first}; {second} has {of_second}; \
             --pair A=B takes one for the other"
    )]
    NoPairs {
        /// Name of the first.
        first: String,
        /// Name of the second.
        second: String,
        /// Filesystems of the first.
        of_first: String,
        /// Filesystems of the second.
        of_second: String,
    },
    /// A name to pair that is not there.
    #[error("there is no filesystem `{name}` in {of}; {cure}")]
    Pair {
        /// The name.
        name: String,
        /// Where it was looked for.
        of: String,
        /// The name that may have been meant, or all.
        cure: String,
    },
}

/// What a number is of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    /// As the source calls it, in one word.
    pub(crate) test: String,
    /// For people.
    pub(crate) label: String,
    /// Record length in bytes, where tests have one.
    pub(crate) record: Option<u64>,
    /// In the words of the published source.
    pub(crate) filesystem: String,
    pub(crate) metric: Metric,
}

impl Key {
    fn pairs(&self, other: &Self) -> bool {
        self.test == other.test
            && self.record == other.record
            && self.filesystem == other.filesystem
            && self.metric == other.metric
    }
}

/// What a value is a summary by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Center {
    Median,
    Mean,
    /// A single run.
    Single,
}

impl Center {
    /// Its word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Mean => "mean",
            Self::Single => "one run",
        }
    }
}

/// A number with all that belongs to it, in base units.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) key: Key,
    /// The filesystem as its own source calls it.
    pub(crate) named: String,
    /// Parameters that the run varies; empty for published numbers.
    pub(crate) workload: String,
    pub(crate) center: Center,
    pub(crate) value: f64,
    /// Of the center, 95 %.
    pub(crate) interval: Option<Interval>,
    pub(crate) n: u32,
    /// Where a spread is known.
    pub(crate) moments: Option<Moments>,
    /// Whether the file that was worked on is smaller than the memory; `None` where it is not told
    /// or where no one file is worked on.
    pub(crate) fits: Option<bool>,
    /// Warnings, or doubts about what was printed.
    pub(crate) marks: Vec<&'static str>,
}

/// One side in full.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) name: String,
    /// In a line: what it is.
    pub(crate) about: String,
    pub(crate) measured_by_fslab: bool,
    pub(crate) suite: &'static str,
    /// By the words of [`FORBIDS`].
    pub(crate) conditions: Vec<(String, String)>,
    pub(crate) values: Vec<Value>,
}

/// Conditions in their order, and what a difference in each forbids to conclude.
pub(crate) const FORBIDS: [(&str, &str); 10] = [
    ("machine", "that a test bound by the processor differs by its filesystem"),
    ("memory", "that what ran in the cache differs by its filesystem"),
    ("disk", "that a test bound by the disk differs by its filesystem"),
    ("kernel", "that one filesystem changed, and not all that is around it in the kernel"),
    ("options", "that a filesystem of the same name was made and mounted alike"),
    ("caches", "that both read from the same place"),
    ("sizes", "that both did the same amount of work"),
    ("timing", "that both include the same writing back"),
    ("repeats", "that both are equally sure"),
    ("program", "that both made the same calls"),
];

/// A condition that differs.
#[derive(Clone, Debug)]
struct Differing {
    what: &'static str,
    first: String,
    second: String,
    forbids: &'static str,
}

/// Two numbers for one thing.
#[derive(Clone, Debug)]
struct Pair {
    first: Value,
    second: Value,
    /// The first over the second, of means; or why there is none.
    ratio: Result<MeanRatio, String>,
}

/// Two sources beside each other.
#[derive(Clone, Debug)]
pub struct Beside {
    first: Side,
    second: Side,
    differing: Vec<Differing>,
    pairs: Vec<Pair>,
    /// Filesystems of one side alone, with the name of the side.
    alone: Vec<(String, Vec<String>)>,
    /// Whether the two are published editions of tasks, whose charts are there.
    editions: Option<(Published, Published)>,
}

/// Puts two sources beside each other. `rename` takes a filesystem of the first for one of the
/// second.
///
/// # Errors
/// [`BesideError`] where nothing is there to be paired.
pub fn beside(
    first: Source<'_>,
    second: Source<'_>,
    rename: &[(String, String)],
) -> Result<Beside, BesideError> {
    let editions = match (first, second) {
        (Source::Run(_), Source::Run(_)) => return Err(BesideError::TwoRuns),
        (Source::Published(one), Source::Published(other)) => {
            same_suite(one, other)?;
            (one.suite == "tasks").then_some((*one, *other))
        }
        (Source::Run(_), Source::Published(_)) | (Source::Published(_), Source::Run(_)) => None,
    };
    let suite = match (first, second) {
        (Source::Published(set), _) | (_, Source::Published(set)) => set,
        (Source::Run(_), Source::Run(_)) => return Err(BesideError::TwoRuns),
    };
    let mut one = side_of(first, suite)?;
    let other = side_of(second, suite)?;
    renamed(&mut one, &other, rename)?;
    let pairs = paired(&one, &other);
    if pairs.is_empty() {
        let (of_first, of_second) = (names(&one).join(", "), names(&other).join(", "));
        let (first, second) = (one.name, other.name);
        return Err(BesideError::NoPairs { first, second, of_first, of_second });
    }
    let alone = alone(&one, &other, &pairs);
    Ok(Beside {
        differing: differing(&one, &other),
        pairs,
        alone,
        first: one,
        second: other,
        editions,
    })
}

fn same_suite(one: &Published, other: &Published) -> Result<(), BesideError> {
    if one.suite == other.suite && one.name != other.name {
        return Ok(());
    }
    let like = PUBLISHED.iter().find(|set| set.suite == one.suite && set.name != one.name);
    let cure = like.map_or_else(
        || "give a run file for one of them".to_owned(),
        |set| format!("{} goes with {}", one.full_name(), set.full_name()),
    );
    Err(BesideError::Suites {
        first: one.full_name(),
        second: other.full_name(),
        of_first: one.suite.into(),
        of_second: other.suite.into(),
        cure,
    })
}

fn side_of(source: Source<'_>, set: &Published) -> Result<Side, BesideError> {
    let run = match source {
        Source::Published(own) => return Ok(side(own)),
        Source::Run(run) => run,
    };
    let side = run::side(run, set.suite);
    if side.values.is_empty() {
        return Err(BesideError::NoCells {
            run: side.name,
            suite: set.suite,
            set: set.full_name(),
            cure: match set.suite {
                "tasks" => "fslab run tasks-2006".into(),
                _ => format!("fslab run {}", set.name),
            },
        });
    }
    Ok(side)
}

/// Names of filesystems, each once.
fn names(side: &Side) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for value in &side.values {
        if !names.contains(&value.key.filesystem) {
            names.push(value.key.filesystem.clone());
        }
    }
    names
}

/// Gives filesystems of the first side the names of the second: those that were asked for, and
/// those that ready plans call otherwise than their studies do.
fn renamed(
    first: &mut Side,
    second: &Side,
    rename: &[(String, String)],
) -> Result<(), BesideError> {
    let (own, theirs) = (names(first), names(second));
    for (from, to) in rename {
        for (name, known, of) in [(from, &own, &first.name), (to, &theirs, &second.name)] {
            if !known.contains(name) {
                let near = suggest::nearest(name, known.iter().map(String::as_str));
                return Err(BesideError::Pair {
                    name: name.clone(),
                    of: of.clone(),
                    cure: match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("there are {}", known.join(", ")),
                    },
                });
            }
        }
    }
    for value in &mut first.values {
        let name = value.key.filesystem.clone();
        let asked = rename.iter().find(|(from, _)| *from == name).map(|(_, to)| to.as_str());
        let known = |name: &str| theirs.iter().any(|own| own == name);
        let plan = Some(alias(first.suite, &name)).filter(|alias| known(alias) && !known(&name));
        if let Some(to) = asked.or(plan) {
            value.key.filesystem = to.to_owned();
        }
    }
    Ok(())
}

fn paired(first: &Side, second: &Side) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for other in &second.values {
        for one in first.values.iter().filter(|one| one.key.pairs(&other.key)) {
            let ratio = ratio(first, second, one, other);
            pairs.push(Pair { first: one.clone(), second: other.clone(), ratio });
        }
    }
    pairs
}

fn ratio(first: &Side, second: &Side, one: &Value, other: &Value) -> Result<MeanRatio, String> {
    let spread = |side: &Side, value: &Value| {
        value.moments.ok_or_else(|| match (side.measured_by_fslab, value.n) {
            (true, _) => "one repeat, so no spread".to_owned(),
            (false, 1) => "one printed run, no spread".into(),
            (false, _) => "no spread is printed".into(),
        })
    };
    let (own, base) = (spread(first, one)?, spread(second, other)?);
    let held = |fits, not| format!("{fits} fits into memory, {not} not");
    match (one.fits, other.fits) {
        (Some(true), Some(false)) => return Err(held("A", "B")),
        (Some(false), Some(true)) => return Err(held("B", "A")),
        (Some(_), Some(_)) | (None, _) | (_, None) => {}
    }
    own.over(&base, 0.95).map_err(|absent| absent.to_string())
}

fn differing(first: &Side, second: &Side) -> Vec<Differing> {
    let of = |side: &Side, what: &str| {
        let found = side.conditions.iter().find(|(name, _)| name == what);
        found.map_or_else(|| "not told".to_owned(), |(_, text)| text.clone())
    };
    let differs = |(what, forbids): &(&'static str, &'static str)| {
        let (one, other) = (of(first, what), of(second, what));
        let untold = one == "not told";
        (one != other || untold).then_some(Differing { what, first: one, second: other, forbids })
    };
    FORBIDS.iter().filter_map(differs).collect()
}

fn alone(first: &Side, second: &Side, pairs: &[Pair]) -> Vec<(String, Vec<String>)> {
    let lone = |side: &Side| {
        let paired = |name: &String| pairs.iter().any(|pair| pair.first.key.filesystem == *name);
        let own: Vec<String> = names(side).into_iter().filter(|name| !paired(name)).collect();
        (!own.is_empty()).then(|| (side.name.clone(), own))
    };
    [first, second].into_iter().filter_map(lone).collect()
}

#[cfg(test)]
mod tests;
