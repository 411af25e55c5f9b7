//! Comparison of runs: pairs their cells, lists differences in conditions, and tests the numbers.
//!
//! [`RunRecord`]s are compared in order, each with its predecessor; the result is a [`Chain`], for
//! two runs with one step. A step is a [`Paired`]: differences by [`Aspect`], every paired test
//! with its comparison, unpaired cells with the reason, and obstacles to findings. Only the reasons
//! are formatted here.
//!
//! # Pairing
//!
//! Filesystems that [`CompareOptions::rename`] names come first, then cells of the same identity,
//! then the same workload under the same conditions with the filesystem of the same name and other
//! options, and, if each run has a single filesystem, the same workload. A/A duplicates are not
//! paired.
//!
//! # Findings
//!
//! The differences between two runs must belong to one aspect, which is then the subject of the
//! comparison. If they differ in two aspects, a difference of numbers may be due to either, and is
//! a finding only if [`CompareOptions::allow`] names them all. Without differences, the runs are
//! repetitions of each other. Runs have no common blocks, so values are not aligned, and a machine
//! that was slower on one of the two days looks like a slower filesystem. [`NegativeControls`]
//! guard against that: tests that the differences cannot have affected.
//!
//! # Multiple comparisons
//!
//! The family is all tests of all steps that may yield findings, including unremarkable ones. The
//! list is screened by Benjamini–Hochberg, and its intervals are widened to the level that bounds
//! the fraction of listed intervals that do not cover (Benjamini and Yekutieli, "False discovery
//! rate-adjusted multiple confidence intervals for selected parameters", Journal of the American
//! Statistical Association 100, 2005). Findings about single tests, and the gate, are
//! Holm-adjusted.

mod cells;
mod family;
mod guards;
mod history;
mod missing;
mod negative_controls;
mod numbers;

use model::{Metric, Profile, Ratio, RunRecord, Warning};

pub use crate::conditions::Aspect;
pub use cells::{PairedBy, Unpaired, UnpairedReason};
pub use family::{AtGate, Family, Gate, GateVerdict};
pub use guards::Withheld;
pub use history::{History, WithheldChange};
pub use missing::Missing;
pub use negative_controls::{MachineFact, NegativeControls, UnaffectedTests};

use crate::{
    Comparer, Comparison, Conditions, Interval, Summary,
    aa::{self, AaNoise},
    aggregate::{self, Aggregate, Pairing},
    conditions::Difference,
    trend::Repetition,
};

/// Options of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareOptions {
    /// Filesystems by name: that of the first run is compared with that of the second.
    pub rename: Vec<(String, String)>,
    /// Metrics to compare.
    pub metrics: Metrics,
    /// Equivalence margin δ; `None`: the larger of those of the runs' profiles.
    pub margin: Option<Ratio>,
    /// Aspects that may differ together.
    pub allow: Vec<Aspect>,
    /// Gate, if any.
    pub gate: Option<GateRule>,
}

/// Rule of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateRule {
    /// Largest allowed regression: 0.05 for 5 %.
    pub margin: Ratio,
    /// True if every test must be non-inferior, instead of none significantly worse.
    pub strict: bool,
}

/// Metrics of a test that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metrics {
    /// Primary metric.
    #[default]
    Primary,
    /// This metric, if measured.
    One(Metric),
    /// Every metric with a direction.
    All,
}

/// First or second of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// First run.
    First,
    /// Second run.
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

/// Reason that runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Only one run.
    #[error("one run is given and a comparison needs two; add another run file")]
    One,
    /// A filesystem to be paired does not exist.
    #[error("{which} has no filesystem `{name}`; use one of {known}")]
    NoSuchFilesystem {
        /// Name.
        name: String,
        /// Run that lacks it.
        which: Which,
        /// Filesystems of that run, comma-separated.
        known: String,
    },
    /// A filesystem is to be paired with two others.
    #[error("`{name}` of {which} is in two pairs; use each filesystem in one --pair only")]
    PairedTwice {
        /// Name.
        name: String,
        /// Run it belongs to.
        which: Which,
    },
    /// Both are the same run, and none of its filesystems is compared with another.
    #[error(
        "both runs are {id}; use two different runs, or compare two filesystems of one run with \
         --pair A=B"
    )]
    Same {
        /// Name of the run.
        id: String,
    },
    /// No test has values of the requested metric.
    #[error("no test of these runs has values of {}; use another --metric", .0.name())]
    NoValues(Metric),
}

/// Differences in one aspect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AspectDifference {
    /// Aspect.
    pub aspect: Aspect,
    /// Conditions, at least one, the most descriptive one first.
    pub differences: Vec<Difference>,
}

/// Reason that two runs yield no findings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FindingsObstacle {
    /// The runs differ in several aspects.
    #[error(
        "the runs differ in {} aspects ({}); differences cannot be attributed to one of them",
        aspects.len(),
        names(aspects)
    )]
    Aspects {
        /// Aspects.
        aspects: Vec<Aspect>,
    },
    /// One run was imported.
    #[error("{which} was imported from {program}; its conditions are unknown")]
    Imported {
        /// Imported run.
        which: Which,
        /// Program that measured it.
        program: String,
    },
    /// One run has a blocking warning.
    #[error("{which} has the warning {}: {}", warning.code(), warning.message())]
    Warned {
        /// Run with the warning.
        which: Which,
        /// Warning.
        warning: Warning,
    },
    /// The negative controls changed.
    #[error(
        "the negative controls changed, too (×{:.3}, more than {:.1} %); measure both runs again in \
         close succession",
        ratio.0,
        margin.0 * 100.0
    )]
    NegativeControlsChanged {
        /// Geometric mean of their ratios.
        ratio: Ratio,
        /// Margin exceeded.
        margin: Ratio,
    },
}

/// Comma-separated names of aspects, as for `--allow-differences`.
fn names(aspects: &[Aspect]) -> String {
    aspects.iter().map(|aspect| aspect.name()).collect::<Vec<_>>().join(",")
}

/// Test of two paired cells.
#[derive(Clone, Debug)]
pub struct TestPair {
    /// Index of the cell in the first run.
    pub first: usize,
    /// Index of the cell in the second run.
    pub second: usize,
    /// Criterion by which the cells were paired.
    pub by: PairedBy,
    /// Name of the filesystem in each run.
    pub filesystems: (String, String),
    /// Workload, with the conditions that the plan sets.
    pub label: String,
    /// Phase.
    pub phase: String,
    /// Metric compared.
    pub metric: Metric,
    /// True if the differences can have affected the test; otherwise it is a negative control.
    pub affected: bool,
    /// Values in the first run, if any.
    pub before: Option<Summary>,
    /// Values in the second run, if any.
    pub after: Option<Summary>,
    /// Second run relative to the first, or the reason for withholding the comparison.
    pub comparison: Result<Comparison, Withheld>,
    /// Interval of the ratio: at 95 %, wider if the test is listed.
    pub interval: Option<Interval>,
    /// True if screening found a difference. Always false if the runs yield no findings.
    pub found: bool,
    /// p-value after Holm's adjustment over the family; 1 for tests in no family.
    pub p_holm: f64,
    /// Result at the gate; `None` without a gate or outside the family.
    pub gate: Option<AtGate>,
    /// True if totals include it: the primary or the requested metric, with a direction.
    pub pooled: bool,
    /// Repetitions with their blocks, for totals over several tests.
    repetitions: (Vec<Repetition>, Vec<Repetition>),
}

/// Numbers of tests by result; they add up to the size of the family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Significantly better, by a difference that may exceed the margin.
    pub better: u32,
    /// Significantly worse, likewise.
    pub worse: u32,
    /// Equivalent.
    pub equivalent: u32,
    /// Significantly different, but by less than the margin.
    pub negligible: u32,
    /// All others.
    pub inconclusive: u32,
}

/// Comparison of two runs.
#[derive(Clone, Debug)]
pub struct Paired {
    /// Differences between their conditions.
    pub conditions: Conditions,
    /// Aspects in which they differ; a single one is the subject of the comparison.
    pub aspects: Vec<AspectDifference>,
    /// Obstacles to findings; empty if there are none.
    pub obstacles: Vec<FindingsObstacle>,
    /// True if single tests yield findings: not for profile quick.
    pub headlines: bool,
    /// Nominal equivalence margin δ.
    pub margin: Ratio,
    /// Effective margin δ′, raised to the A/A noise if the duplicates differ significantly.
    pub effective_margin: Ratio,
    /// A/A noise of both runs, with enough duplicates.
    pub noise: Option<AaNoise>,
    /// Paired tests in the order of the first run.
    pub tests: Vec<TestPair>,
    /// Family of its tests.
    pub family: Family,
    /// Numbers of tests by result.
    pub tally: Tally,
    /// Total over all affected tests, each by one metric; `None` if it cannot be estimated, or if
    /// the runs yield no findings.
    pub total: Option<Aggregate>,
    /// Negative controls.
    pub negative_controls: NegativeControls,
    /// Unpaired cells of the first run.
    pub only_first: Vec<Unpaired>,
    /// Unpaired cells of the second run.
    pub only_second: Vec<Unpaired>,
}

/// Runs in order, each compared with its predecessor.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Comparisons, one fewer than runs.
    pub steps: Vec<Paired>,
    /// Result of the gate over all of them, if any.
    pub gate: Option<Gate>,
    /// Change points of tests over many runs; empty below twenty.
    pub histories: Vec<History>,
}

/// Compares two runs.
///
/// # Errors
/// [`CompareError::NoSuchFilesystem`].
pub fn pair(
    first: &RunRecord,
    second: &RunRecord,
    how: &CompareOptions,
) -> Result<Paired, CompareError> {
    chain(&[first, second], how)?.steps.pop().ok_or(CompareError::One)
}

/// Compares runs in the given order, each with its predecessor.
///
/// # Errors
/// [`CompareError`].
pub fn chain(runs: &[&RunRecord], how: &CompareOptions) -> Result<Chain, CompareError> {
    if runs.len() < 2 {
        return Err(CompareError::One);
    }
    let mut comparer = Comparer::new();
    let steps = runs.windows(2).map(|two| step(two[0], two[1], how, &mut comparer));
    let mut steps = steps.collect::<Result<Vec<_>, _>>()?;
    if let Metrics::One(metric) = how.metrics {
        let mut tests = steps.iter().flat_map(|step| &step.tests).peekable();
        let known = |test: &TestPair| test.before.is_some() || test.after.is_some();
        if tests.peek().is_some() && !tests.any(known) {
            return Err(CompareError::NoValues(metric));
        }
    }
    family::screen(&mut steps, quick(runs), &mut comparer);
    for step in &mut steps {
        step.tally = family::tally(step);
    }
    let gate = how.gate.map(|rule| family::gate(&mut steps, rule, &mut comparer));
    let working = steps.iter().map(|step| step.effective_margin.0).fold(0.0, f64::max);
    let histories = history::histories(runs, how, Ratio(working), &steps);
    Ok(Chain { steps, gate, histories })
}

/// True if one of the runs used profile quick.
fn quick(runs: &[&RunRecord]) -> bool {
    runs.iter().any(|run| run.info.profile == Profile::Quick)
}

/// One comparison, without the parts that depend on the family.
fn step(
    first: &RunRecord,
    second: &RunRecord,
    how: &CompareOptions,
    comparer: &mut Comparer,
) -> Result<Paired, CompareError> {
    let one = first.info.id == second.info.id;
    if one && how.rename.is_empty() {
        return Err(CompareError::Same { id: first.info.id.clone() });
    }
    let mut conditions = Conditions::between(first, second);
    let matched = cells::matched(first, second, how)?;
    conditions.shared = matched.shared(first);
    let aspects = aspects(&conditions, &matched);
    let profile = |run: &RunRecord| run.info.profile.equivalence_margin().0;
    let margin = how.margin.unwrap_or(Ratio(profile(first).max(profile(second))));
    let mut controls = numbers::aa_duplicates(first);
    if !one {
        controls.extend(numbers::aa_duplicates(second));
    }
    let noise = aa::of_cells(&controls, comparer, margin).ok();
    let effective_margin = aa::shown_margin(margin, noise.as_ref());
    let only_options = matches!(&aspects[..], [one] if one.aspect == Aspect::Filesystem);
    let unaffected = |pair: &cells::Match| only_options && pair.unaffected(first, &conditions);
    let tests = guards::tests(first, second, &matched.pairs, how.metrics, &unaffected);
    let mut tests: Vec<TestPair> = tests;
    for test in &mut tests {
        guards::compare(test, effective_margin, comparer);
    }
    let negative_controls =
        negative_controls::negative_controls(first, second, &tests, effective_margin);
    let mut obstacles = obstacles_to_findings(first, second, &aspects, how);
    obstacles.extend(negative_controls.obstacle(effective_margin));
    let affected = || tests.iter().filter(|test| test.affected);
    Ok(Paired {
        headlines: !quick(&[first, second]),
        total: obstacles.is_empty().then(|| total(affected(), one)).flatten(),
        obstacles,
        conditions,
        aspects,
        margin,
        effective_margin,
        noise,
        tests,
        negative_controls,
        family: Family::default(),
        tally: Tally::default(),
        only_first: matched.only_first,
        only_second: matched.only_second,
    })
}

/// Differences by aspect. Filesystems that are compared with others count as differences.
fn aspects(conditions: &Conditions, matched: &cells::Matched) -> Vec<AspectDifference> {
    let mut differences: Vec<Difference> = matched.renamed();
    differences.extend(conditions.differences.iter().cloned());
    let of = |aspect: Aspect| {
        let own = differences.iter().filter(|difference| difference.aspect == Some(aspect));
        let mut own: Vec<Difference> = own.cloned().collect();
        // The release describes a kernel better than its build does.
        own.sort_by_key(|difference| !LEADING.contains(&difference.what.as_str()));
        (!own.is_empty()).then_some(AspectDifference { aspect, differences: own })
    };
    Aspect::ALL.into_iter().filter_map(of).collect()
}

/// Conditions that describe their aspect best.
const LEADING: [&str; 6] =
    ["kernel.release", "cpu.model", "run.storage", "filesystem", "backing.fstype", "run.program"];

fn obstacles_to_findings(
    first: &RunRecord,
    second: &RunRecord,
    aspects: &[AspectDifference],
    how: &CompareOptions,
) -> Vec<FindingsObstacle> {
    let mut refused = Vec::new();
    let own: Vec<Aspect> = aspects.iter().map(|differs| differs.aspect).collect();
    if own.len() > 1 && !own.iter().all(|aspect| how.allow.contains(aspect)) {
        refused.push(FindingsObstacle::Aspects { aspects: own });
    }
    for (which, run) in [(Which::First, first), (Which::Second, second)] {
        refused.extend(run.warnings.iter().filter_map(|warning| {
            if let Warning::Imported { program } = warning {
                return Some(FindingsObstacle::Imported { which, program: program.clone() });
            }
            let blocks = guards::blocks(warning);
            blocks.then(|| FindingsObstacle::Warned { which, warning: warning.clone() })
        }));
    }
    refused
}

/// Geometric mean over tests with values on both sides; `one` if both are of one run.
fn total<'a>(tests: impl Iterator<Item = &'a TestPair>, one: bool) -> Option<Aggregate> {
    let pairing = |test: &TestPair| Pairing {
        name: format!("{} · {} · {}", test.filesystems.1, test.label, test.phase),
        first: test.repetitions.0.clone(),
        second: test.repetitions.1.clone(),
        better: test.metric.spec().better,
    };
    let tests = tests.filter(|test| test.comparison.is_ok() && test.pooled);
    let pairings: Vec<Pairing> = tests.map(pairing).collect();
    // The tests of one trial share its filesystem and its block: each run is drawn as a whole.
    let mean = if one { aggregate::geometric } else { aggregate::geometric_across };
    mean(&pairings, SEED).ok()
}

/// Seed of the draws of totals.
const SEED: u64 = 2_11;

#[cfg(test)]
mod tests;
