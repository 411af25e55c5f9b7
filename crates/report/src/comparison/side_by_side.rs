//! Side-by-side comparison of a run with published results, or of two published sets.
//!
//! A [`SideBySide`] is formatted for a terminal, as Markdown, as JSON, or as an HTML page. Pairs
//! have the same suite, test, block size, filesystem, and metric. Confounders come first, with the
//! conclusions they prevent. There is no statistical test, because several conditions differ
//! together. A ratio of means requires that the spread of both sides is known. There is no ratio if
//! the file of only one side fits in memory. Only these charts show published and measured numbers
//! on one axis, with labels.

mod printed;
mod run;
mod show;

pub(crate) use printed::alias;

use analysis::{
    Interval,
    moments::{MeanRatio, Moments},
};
use model::{Metric, RunRecord, suggest};

use super::NOT_RECORDED;
use crate::published::{PUBLISHED, Published};
use printed::side;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A run file.
    Run(&'a RunRecord),
    /// A published set.
    Published(&'a Published),
}

/// Reason why two sources cannot be compared, with a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SideBySideError {
    /// Both sources are runs.
    #[error("neither side is published; use fslab compare RUN RUN to compare two runs")]
    TwoRuns,
    /// A published set is compared with itself.
    #[error("{name} is compared with itself; {hint}")]
    SameSet {
        /// Name of the set.
        name: String,
        /// Hint.
        hint: String,
    },
    /// The two published sets are of different suites.
    #[error("{first} and {second} are of different suites, {of_first} and {of_second}; {hint}")]
    Suites {
        /// Name of the first.
        first: String,
        /// Name of the second.
        second: String,
        /// Suite of the first.
        of_first: String,
        /// Suite of the second.
        of_second: String,
        /// Hint.
        hint: String,
    },
    /// The run has no results of the suite.
    #[error("{run} has no results of suite {suite} of {set}; measure them with {hint}")]
    NoCells {
        /// The run.
        run: String,
        /// The suite.
        suite: &'static str,
        /// The published set.
        set: String,
        /// Command that measures them.
        hint: String,
    },
    /// The sources have no common test of a filesystem.
    #[error(
        "no common tests: {first} has {of_first}; {second} has {of_second}; use --pair A=B to \
         compare filesystem A of the first with B of the second"
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
    /// A filesystem in `--pair` is unknown.
    #[error("{of} has no filesystem `{name}`; {hint}")]
    Pair {
        /// The name.
        name: String,
        /// Name of the source.
        of: String,
        /// Similar name, or all names.
        hint: String,
    },
}

/// Coordinates of a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    /// Short name of the test in the published source.
    pub(crate) test: String,
    /// Displayed name.
    pub(crate) label: String,
    /// Block size in bytes, if the test has one.
    pub(crate) block_size: Option<u64>,
    /// Filesystem, as named by the published source.
    pub(crate) filesystem: String,
    pub(crate) metric: Metric,
}

impl Key {
    fn pairs(&self, other: &Self) -> bool {
        self.test == other.test
            && self.block_size == other.block_size
            && self.filesystem == other.filesystem
            && self.metric == other.metric
    }
}

/// Kind of summary of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Center {
    Median,
    Mean,
    /// A single run.
    Single,
}

impl Center {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Mean => "mean",
            Self::Single => "one run",
        }
    }
}

/// Number with its spread and marks, in base units.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) key: Key,
    /// Filesystem, as named by its own source.
    pub(crate) named: String,
    /// Label of the workload; empty for published numbers.
    pub(crate) workload: String,
    /// Parameters and settings that distinguish the results of a study without printed numbers, by
    /// name; empty for other studies.
    pub(crate) at: Vec<(&'static str, String)>,
    pub(crate) center: Center,
    pub(crate) value: f64,
    /// 95 % confidence interval of the center.
    pub(crate) interval: Option<Interval>,
    pub(crate) n: u32,
    /// Mean and standard deviation, if known.
    pub(crate) moments: Option<Moments>,
    /// True if the file is smaller than memory; `None` if unknown or if the test does not use a
    /// single file.
    pub(crate) fits: Option<bool>,
    /// Quality notes on a published number.
    pub(crate) marks: Vec<&'static str>,
}

/// One side of the comparison.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) name: String,
    /// Description in one line.
    pub(crate) about: String,
    pub(crate) measured_by_fslab: bool,
    pub(crate) suite: &'static str,
    /// Values of the conditions of [`CONFOUNDERS`].
    pub(crate) conditions: Vec<(String, String)>,
    pub(crate) values: Vec<Value>,
}

/// Results of a run for one suite, without A/A duplicates.
pub(crate) fn of_run(run: &RunRecord, suite: &'static str) -> Side {
    run::side(run, suite)
}

/// Conditions, each with the subject of the conclusions that a difference prevents.
pub(crate) const CONFOUNDERS: [(&str, &str); 10] = [
    ("machine", "filesystems in CPU-bound tests"),
    ("memory", "filesystems in cached tests"),
    ("disk", "filesystems in disk-bound tests"),
    ("kernel", "a single filesystem, because the rest of the kernel differs too"),
    ("options", "filesystems created or mounted with other options"),
    ("caches", "reads from different sources (cache or disk)"),
    ("sizes", "different amounts of work"),
    ("timing", "times that include different writeback"),
    ("repetitions", "numbers of different precision"),
    ("program", "different sequences of system calls"),
];

/// Condition that differs or is not recorded.
#[derive(Clone, Debug)]
struct Differing {
    what: &'static str,
    first: String,
    second: String,
    prevents: &'static str,
}

/// Two numbers of the same test.
#[derive(Clone, Debug)]
struct Pair {
    first: Value,
    second: Value,
    /// Ratio of means, first over second, or the reason why there is none.
    ratio: Result<MeanRatio, String>,
}

/// Side-by-side comparison of two sources.
#[derive(Clone, Debug)]
pub struct SideBySide {
    first: Side,
    second: Side,
    differing: Vec<Differing>,
    pairs: Vec<Pair>,
    /// Names of the sides, each with the filesystems that only this side has.
    alone: Vec<(String, Vec<String>)>,
    /// Both sets, if they are editions of the published tasks, which have separate charts.
    editions: Option<(Published, Published)>,
}

/// Compares two sources. `rename` pairs a filesystem of the first with one of the second.
///
/// # Errors
/// [`SideBySideError`] if the sources cannot be compared or have no common tests.
pub fn side_by_side(
    first: Source<'_>,
    second: Source<'_>,
    rename: &[(String, String)],
) -> Result<SideBySide, SideBySideError> {
    let editions = match (first, second) {
        (Source::Run(_), Source::Run(_)) => return Err(SideBySideError::TwoRuns),
        (Source::Published(one), Source::Published(other)) => {
            same_suite(one, other)?;
            (one.suite == "tasks").then_some((*one, *other))
        }
        (Source::Run(_), Source::Published(_)) | (Source::Published(_), Source::Run(_)) => None,
    };
    let suite = match (first, second) {
        (Source::Published(set), _) | (_, Source::Published(set)) => set,
        (Source::Run(_), Source::Run(_)) => return Err(SideBySideError::TwoRuns),
    };
    let mut one = side_of(first, suite)?;
    let other = side_of(second, suite)?;
    renamed(&mut one, &other, rename)?;
    let pairs = paired(&one, &other);
    if pairs.is_empty() {
        let (of_first, of_second) = (names(&one).join(", "), names(&other).join(", "));
        let (first, second) = (one.name, other.name);
        return Err(SideBySideError::NoPairs { first, second, of_first, of_second });
    }
    let alone = alone(&one, &other, &pairs);
    Ok(SideBySide {
        differing: differing(&one, &other),
        pairs,
        alone,
        first: one,
        second: other,
        editions,
    })
}

fn same_suite(one: &Published, other: &Published) -> Result<(), SideBySideError> {
    if one.suite == other.suite && one.name != other.name {
        return Ok(());
    }
    let like = PUBLISHED.iter().find(|set| set.suite == one.suite && set.name != one.name);
    let hint = like.map_or_else(
        || "use a run file for one of them".to_owned(),
        |set| format!("{} can be compared with {}", one.full_name(), set.full_name()),
    );
    if one.name == other.name {
        return Err(SideBySideError::SameSet { name: one.full_name(), hint });
    }
    Err(SideBySideError::Suites {
        first: one.full_name(),
        second: other.full_name(),
        of_first: one.suite.into(),
        of_second: other.suite.into(),
        hint,
    })
}

fn side_of(source: Source<'_>, set: &Published) -> Result<Side, SideBySideError> {
    let run = match source {
        Source::Published(own) => return Ok(side(own)),
        Source::Run(run) => run,
    };
    let side = run::side(run, set.suite);
    if side.values.is_empty() {
        return Err(SideBySideError::NoCells {
            run: side.name,
            suite: set.suite,
            set: set.full_name(),
            hint: match set.suite {
                "tasks" => "fslab run tasks-2006".into(),
                _ => format!("fslab run {}", set.name),
            },
        });
    }
    Ok(side)
}

/// Names of the filesystems, without duplicates.
fn names(side: &Side) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for value in &side.values {
        if !names.contains(&value.key.filesystem) {
            names.push(value.key.filesystem.clone());
        }
    }
    names
}

/// Renames filesystems of the first side to those of the second: as the user requests, or if a
/// built-in plan and its study use different names.
fn renamed(
    first: &mut Side,
    second: &Side,
    rename: &[(String, String)],
) -> Result<(), SideBySideError> {
    let (own, theirs) = (names(first), names(second));
    for (from, to) in rename {
        for (name, known, of) in [(from, &own, &first.name), (to, &theirs, &second.name)] {
            if !known.contains(name) {
                let near = suggest::nearest(name, known.iter().map(String::as_str));
                return Err(SideBySideError::Pair {
                    name: name.clone(),
                    of: of.clone(),
                    hint: match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("available: {}", known.join(", ")),
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
            (true, _) => "one repetition, no spread".to_owned(),
            (false, 1) => "one published run, no spread".into(),
            (false, _) => "no published spread".into(),
        })
    };
    let (own, base) = (spread(first, one)?, spread(second, other)?);
    let cached = |fits, not| format!("{fits} fits in memory, {not} does not");
    match (one.fits, other.fits) {
        (Some(true), Some(false)) => return Err(cached("A", "B")),
        (Some(false), Some(true)) => return Err(cached("B", "A")),
        (Some(_), Some(_)) | (None, _) | (_, None) => {}
    }
    own.over(&base, 0.95).map_err(|absent| absent.to_string())
}

fn differing(first: &Side, second: &Side) -> Vec<Differing> {
    let of = |side: &Side, what: &str| {
        let found = side.conditions.iter().find(|(name, _)| name == what);
        found.map_or_else(|| NOT_RECORDED.to_owned(), |(_, text)| text.clone())
    };
    let differs = |(what, prevents): &(&'static str, &'static str)| {
        let (one, other) = (of(first, what), of(second, what));
        let unknown = one == NOT_RECORDED;
        (one != other || unknown).then_some(Differing { what, first: one, second: other, prevents })
    };
    CONFOUNDERS.iter().filter_map(differs).collect()
}

fn alone(first: &Side, second: &Side, pairs: &[Pair]) -> Vec<(String, Vec<String>)> {
    let of = |side: &Side| {
        let paired = |name: &String| pairs.iter().any(|pair| pair.first.key.filesystem == *name);
        let own: Vec<String> = names(side).into_iter().filter(|name| !paired(name)).collect();
        (!own.is_empty()).then(|| (side.name.clone(), own))
    };
    [first, second].into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests;
