//! Runs against each other: which of their cells belong together, what differed beside them, and
//! what their numbers say.
//!
//! [`RunRecord`]s enter in order; a [`Chain`] of adjacent comparisons leaves, two runs being the
//! shortest chain. Each step is a [`Paired`]: what differed by [`Way`], every paired test with its
//! comparison, what was not paired and why, and whether claims may be made at all. Nothing is
//! formatted here beyond the reasons, and no run is read.
//!
//! # What is paired
//!
//! Filesystems that [`Pairs::rename`] names, then cells of the same identity, then the same
//! workload under the same conditions with the filesystem of the same name made with other options,
//! and, where each run has a single filesystem, the same workload. Twins pair with nothing.
//!
//! # What may be claimed
//!
//! What two runs differ in must belong to one way; it is then what the numbers compare. Where they
//! differ in two ways at once, a difference of numbers is one of both together, and is claimed only
//! if [`Pairs::allow`] names them all. No way is a repeat of the same. Runs share no blocks, so
//! values are taken as they are, and a machine that was slower on one of the two days looks like a
//! slower filesystem. What guards against that is the [`Anchor`]: tests that what differed cannot
//! have touched.
//!
//! # How many comparisons
//!
//! The family is all tests of all steps that may be claimed of, boring ones included. The list is
//! screened by Benjamini and Hochberg, and its intervals are widened to the level at which the
//! share of listed intervals that miss is kept (Benjamini and Yekutieli, "False discovery
//! rate-adjusted multiple confidence intervals for selected parameters", Journal of the American
//! Statistical Association 100, 2005). What is said of a single test, and what the gate says, is
//! corrected by Holm.

mod anchor;
mod cells;
mod family;
mod guards;
mod history;
mod missing;
mod numbers;

use model::{Metric, Profile, Ratio, RunRecord, Warning};

pub use crate::conditions::Way;
pub use anchor::{Anchor, MachineFact, Untouched};
pub use cells::{By, Lone, Why};
pub use family::{AtGate, Family, Gate, GateVerdict};
pub use guards::Withheld;
pub use history::{Doubted, History};
pub use missing::Missing;

use crate::{
    Comparer, Comparison, Conditions, Interval, Summary,
    aggregate::{self, Aggregate, Pairing},
    conditions::Difference,
    trend::Repeat,
    twins::{self, Noise},
};

/// What to compare, and what to leave undecided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// Filesystems by name: that of the first run is compared with that of the second.
    pub rename: Vec<(String, String)>,
    /// Which metrics of each test.
    pub metrics: Metrics,
    /// The practical threshold δ; `None`: the larger of those of the runs' profiles.
    pub threshold: Option<Ratio>,
    /// Ways that may differ together.
    pub allow: Vec<Way>,
    /// The gate, if there is one.
    pub gate: Option<GateRule>,
}

/// What a gate lets through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateRule {
    /// How much worse is too much: 0.05 for 5 %.
    pub threshold: Ratio,
    /// Whether every test has to be shown not worse, instead of none shown worse.
    pub strict: bool,
}

/// Which metrics of a test are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metrics {
    /// The one it is judged by.
    #[default]
    Primary,
    /// This one, where it was measured.
    One(Metric),
    /// Every one that has a direction.
    All,
}

/// The first or the second of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// The first.
    First,
    /// The second.
    Second,
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::First => "the first run",
            Self::Second => "the second run",
        })
    }
}

/// Why runs are not compared at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A single run has nothing to be compared with.
    #[error("there is only one run; name at least two")]
    One,
    /// A filesystem to be paired is not there.
    #[error("{which} has no filesystem `{name}`; it has {known}")]
    NoSuchFilesystem {
        /// The name.
        name: String,
        /// Which run lacks it.
        which: Which,
        /// What it has, separated by commas.
        known: String,
    },
    /// A filesystem is to be paired with two others.
    #[error("`{name}` of {which} is named in two pairs; a filesystem is compared with one other")]
    PairedTwice {
        /// The name.
        name: String,
        /// Which run it is of.
        which: Which,
    },
    /// They are one run, and none of its filesystems is compared with another.
    #[error(
        "the same run twice ({id}), which says nothing about itself; --pair A=B compares two of \
         its filesystems"
    )]
    Same {
        /// The name of the run.
        id: String,
    },
    /// No test has values of the metric that was asked for.
    #[error("no test of these runs has values of {}", .0.name())]
    NoValues(Metric),
}

/// What differed in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayDiffers {
    /// The way.
    pub way: Way,
    /// The conditions, at least one, the one that names the way best first.
    pub differences: Vec<Difference>,
}

/// Why nothing may be claimed of two runs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoClaim {
    /// They differ in several ways at once.
    #[error(
        "they differ in {} ways at once ({}), so that every difference is one of all together",
        ways.len(),
        names(ways)
    )]
    Ways {
        /// The ways.
        ways: Vec<Way>,
    },
    /// One was not measured by this program.
    #[error("{which} was imported from {program}, and its conditions are not known")]
    Imported {
        /// Which of the two.
        which: Which,
        /// The program that measured it.
        program: String,
    },
    /// One bears a warning that blocks claims.
    #[error("{which} bears {}: {}", warning.code(), warning.message())]
    Warned {
        /// Which of the two.
        which: Which,
        /// The warning.
        warning: Warning,
    },
    /// What could not have changed has changed.
    #[error(
        "the tests that what differed cannot have touched changed as well (×{:.3}), by more than {:.1} %: \
         measure both anew, close together",
        ratio.0,
        threshold.0 * 100.0
    )]
    AnchorMoved {
        /// By how much: the geometric mean of their ratios.
        ratio: Ratio,
        /// The threshold it was held against.
        threshold: Ratio,
    },
}

/// Names of ways, separated by commas, as `--allow` takes them.
fn names(ways: &[Way]) -> String {
    ways.iter().map(|way| way.name()).collect::<Vec<_>>().join(",")
}

/// One test of two paired cells.
#[derive(Clone, Debug)]
pub struct TestPair {
    /// Index of the cell in the first run.
    pub first: usize,
    /// Index of the cell in the second run.
    pub second: usize,
    /// By what the cells were paired.
    pub by: By,
    /// Names of the filesystem in either run.
    pub filesystems: (String, String),
    /// The workload, with the conditions that the plan sets beside it.
    pub label: String,
    /// The phase.
    pub phase: String,
    /// What is compared.
    pub metric: Metric,
    /// Whether what differed can have touched it; if not, it is part of the anchor.
    pub touched: bool,
    /// The values in the first run, if there are any.
    pub before: Option<Summary>,
    /// The values in the second run, likewise.
    pub after: Option<Summary>,
    /// The second against the first, or why there is no comparison.
    pub comparison: Result<Comparison, Withheld>,
    /// The interval of the ratio: at 95 %, and widened where the test was found.
    pub interval: Option<Interval>,
    /// Whether screening found a difference. Always false where no claims may be made.
    pub found: bool,
    /// p-value after Holm's correction for the family; 1 for what is in none.
    pub p_holm: f64,
    /// What it is at the gate; `None` without a gate or outside the family.
    pub gate: Option<AtGate>,
    /// Whether totals take it: what the test is judged by, or the metric that was asked for, and
    /// with a direction.
    pub pooled: bool,
    /// The repeats with their blocks, for what is computed of several tests.
    repeats: (Vec<Repeat>, Vec<Repeat>),
}

/// How the tests of a comparison ended; all counts add up to the tests of the family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Told apart as better, by a difference that may matter.
    pub better: u32,
    /// Told apart as worse, likewise.
    pub worse: u32,
    /// Equivalent.
    pub same: u32,
    /// Different, but by less than the threshold for certain.
    pub small: u32,
    /// Everything else.
    pub open: u32,
}

/// Two runs, compared.
#[derive(Clone, Debug)]
pub struct Paired {
    /// What differed between their conditions.
    pub conditions: Conditions,
    /// The ways in which they differed; a single one is what the numbers compare.
    pub ways: Vec<WayDiffers>,
    /// Why no claims may be made; empty if they may.
    pub refused: Vec<NoClaim>,
    /// Whether single tests may be spoken of: not of a first look.
    pub headlines: bool,
    /// The practical threshold δ that was asked for.
    pub threshold: Ratio,
    /// The threshold that is used, δ′: raised to what the twins differ by if they are shown to.
    pub working: Ratio,
    /// What the twins of both runs differ by, if there are enough.
    pub noise: Option<Noise>,
    /// The paired tests in the order of the first run.
    pub tests: Vec<TestPair>,
    /// The family that its tests belong to.
    pub family: Family,
    /// How its tests ended.
    pub tally: Tally,
    /// All touched tests together, each by one metric; `None` if it cannot be told, or no claims
    /// may be made.
    pub total: Option<Aggregate>,
    /// What should not have changed.
    pub anchor: Anchor,
    /// Cells of the first run that are paired with none.
    pub only_first: Vec<Lone>,
    /// Cells of the second run that are paired with none.
    pub only_second: Vec<Lone>,
}

/// Runs in order, each compared with the one before it.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The comparisons, one fewer than runs.
    pub steps: Vec<Paired>,
    /// What the gate says of all of them, if there is one.
    pub gate: Option<Gate>,
    /// Where tests changed over many runs; empty below twenty.
    pub histories: Vec<History>,
}

/// Compares two runs.
///
/// # Errors
/// [`Refused::NoSuchFilesystem`].
pub fn pair(first: &RunRecord, second: &RunRecord, how: &Pairs) -> Result<Paired, Refused> {
    chain(&[first, second], how)?.steps.pop().ok_or(Refused::One)
}

/// Compares runs in the order given, each with the one before it.
///
/// # Errors
/// [`Refused`].
pub fn chain(runs: &[&RunRecord], how: &Pairs) -> Result<Chain, Refused> {
    if runs.len() < 2 {
        return Err(Refused::One);
    }
    let mut comparer = Comparer::new();
    let steps = runs.windows(2).map(|two| step(two[0], two[1], how, &mut comparer));
    let mut steps = steps.collect::<Result<Vec<_>, _>>()?;
    if let Metrics::One(metric) = how.metrics {
        let mut tests = steps.iter().flat_map(|step| &step.tests).peekable();
        let known = |test: &TestPair| test.before.is_some() || test.after.is_some();
        if tests.peek().is_some() && !tests.any(known) {
            return Err(Refused::NoValues(metric));
        }
    }
    family::screen(&mut steps, quick(runs), &mut comparer);
    for step in &mut steps {
        step.tally = family::tally(step);
    }
    let gate = how.gate.map(|rule| family::gate(&mut steps, rule, &mut comparer));
    let working = steps.iter().map(|step| step.working.0).fold(0.0, f64::max);
    let histories = history::histories(runs, how, Ratio(working), &steps);
    Ok(Chain { steps, gate, histories })
}

/// Whether one of the runs was a first look.
fn quick(runs: &[&RunRecord]) -> bool {
    runs.iter().any(|run| run.info.profile == Profile::Quick)
}

/// One comparison without what depends on the family.
fn step(
    first: &RunRecord,
    second: &RunRecord,
    how: &Pairs,
    comparer: &mut Comparer,
) -> Result<Paired, Refused> {
    let one = first.info.id == second.info.id;
    if one && how.rename.is_empty() {
        return Err(Refused::Same { id: first.info.id.clone() });
    }
    let mut conditions = Conditions::of(first, second);
    let matched = cells::matched(first, second, how)?;
    conditions.shared = matched.shared(first);
    let ways = ways(&conditions, &matched);
    let profile = |run: &RunRecord| run.info.profile.threshold().0;
    let threshold = how.threshold.unwrap_or(Ratio(profile(first).max(profile(second))));
    let mut controls = numbers::twins(first);
    if !one {
        controls.extend(numbers::twins(second));
    }
    let noise = twins::of_cells(&controls, comparer, threshold).ok();
    let working = twins::shown_threshold(threshold, noise.as_ref());
    let only_options = matches!(&ways[..], [one] if one.way == Way::Filesystem);
    let untouched = |pair: &cells::Match| only_options && pair.untouched(first, &conditions);
    let tests = guards::tests(first, second, &matched.pairs, how.metrics, &untouched);
    let mut tests: Vec<TestPair> = tests;
    for test in &mut tests {
        guards::compare(test, working, comparer);
    }
    let anchor = anchor::anchor(first, second, &tests, working);
    let mut refused = no_claims(first, second, &ways, how);
    refused.extend(anchor.refusal(working));
    let touched = || tests.iter().filter(|test| test.touched);
    Ok(Paired {
        headlines: !quick(&[first, second]),
        total: refused.is_empty().then(|| total(touched(), one)).flatten(),
        refused,
        conditions,
        ways,
        threshold,
        working,
        noise,
        tests,
        anchor,
        family: Family::default(),
        tally: Tally::default(),
        only_first: matched.only_first,
        only_second: matched.only_second,
    })
}

/// What differed, by way. Filesystems that are compared with others count as differing.
fn ways(conditions: &Conditions, matched: &cells::Matched) -> Vec<WayDiffers> {
    let mut differences: Vec<Difference> = matched.renamed();
    differences.extend(conditions.differences.iter().cloned());
    let of = |way: Way| {
        let own = differences.iter().filter(|difference| difference.way == Some(way));
        let mut own: Vec<Difference> = own.cloned().collect();
        // The release tells more of a kernel than what it was built with.
        own.sort_by_key(|difference| !LEADING.contains(&difference.what.as_str()));
        (!own.is_empty()).then_some(WayDiffers { way, differences: own })
    };
    Way::ALL.into_iter().filter_map(of).collect()
}

/// Conditions that name their way best.
const LEADING: [&str; 6] =
    ["kernel.release", "cpu.model", "run.storage", "filesystem", "backing.fstype", "run.program"];

fn no_claims(
    first: &RunRecord,
    second: &RunRecord,
    ways: &[WayDiffers],
    how: &Pairs,
) -> Vec<NoClaim> {
    let mut refused = Vec::new();
    let own: Vec<Way> = ways.iter().map(|differs| differs.way).collect();
    if own.len() > 1 && !own.iter().all(|way| how.allow.contains(way)) {
        refused.push(NoClaim::Ways { ways: own });
    }
    for (which, run) in [(Which::First, first), (Which::Second, second)] {
        refused.extend(run.warnings.iter().filter_map(|warning| {
            if let Warning::Imported { program } = warning {
                return Some(NoClaim::Imported { which, program: program.clone() });
            }
            let blocks = guards::blocks(warning);
            blocks.then(|| NoClaim::Warned { which, warning: warning.clone() })
        }));
    }
    refused
}

/// The geometric mean over tests that have values on both sides; `one` if both are of one run.
fn total<'a>(tests: impl Iterator<Item = &'a TestPair>, one: bool) -> Option<Aggregate> {
    let pairing = |test: &TestPair| Pairing {
        name: format!("{} · {} · {}", test.filesystems.1, test.label, test.phase),
        first: test.repeats.0.clone(),
        second: test.repeats.1.clone(),
        better: test.metric.spec().better,
    };
    let tests = tests.filter(|test| test.comparison.is_ok() && test.pooled);
    let pairings: Vec<Pairing> = tests.map(pairing).collect();
    // The tests of one trial share its filesystem and its block: each run is drawn as a whole.
    let mean = if one { aggregate::geometric } else { aggregate::geometric_across };
    mean(&pairings, SEED).ok()
}

/// What the draws of the totals start from.
const SEED: u64 = 2_11;

#[cfg(test)]
mod tests;
