//! Comparison of runs: pairs their cells, lists differences in conditions, and tests the numbers.
//!
//! Runs ([`RunRecord`]) are compared in order, each with its predecessor. The result is a [`Chain`]
//! with one step ([`Paired`]) per comparison. A step contains the differences between the
//! conditions of the two runs by [`Aspect`], the comparison of each pair of tests, the unpaired
//! cells with reasons, and the obstacles to findings. Errors, reasons, and obstacles format
//! themselves; crate `report` formats all other results.
//!
//! # Pairing
//!
//! A cell of the first run is paired by the first of these criteria that applies:
//!
//! 1. [`CompareOptions::rename`] names its filesystem: the cell has the new name and the same
//!    workload and conditions. If no names are given and each run has a single filesystem, these
//!    two filesystems are paired in the same way.
//! 2. The second run has a cell of the same identity.
//! 3. The second run has a cell with the same filesystem name, workload, and conditions, but other
//!    filesystem options.
//!
//! A/A duplicates are not paired.
//!
//! # Findings
//!
//! The conditions of two runs must differ in at most one aspect, which is then the subject of the
//! comparison. If they differ in several aspects, a difference of numbers may be due to any of
//! these aspects; it is a finding only if [`CompareOptions::allow`] names all of them. Runs without
//! differences in their conditions are repetitions of each other.
//!
//! The conditions of an imported run are unknown. A comparison with it yields findings only if
//! [`CompareOptions::allow`] contains [`Aspect::Unknown`].
//!
//! Two runs have no common blocks, so their repetitions are compared as independent samples. A
//! machine that was slower during one of the runs therefore looks like a slower filesystem.
//! [`NegativeControls`] detect this: tests that the differences cannot have affected.
//!
//! # Multiple comparisons
//!
//! The family contains all tests of all steps that may yield findings, regardless of their results.
//! The list of differing tests is screened by Benjamini–Hochberg. The confidence intervals of
//! listed tests are widened to a level that limits the fraction of intervals that do not contain
//! the true ratio (Benjamini and Yekutieli, "False discovery rate-adjusted multiple confidence
//! intervals for selected parameters", Journal of the American Statistical Association 100, 2005).
//! Findings about single tests, and the results of the gate, are Holm-adjusted.

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
    conditions::{Difference, is_imported},
    trend::Repetition,
};

/// Options of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareOptions {
    /// Pairs of names: a filesystem of the first run, and the filesystem of the second run to
    /// compare it with.
    pub rename: Vec<(String, String)>,
    /// Metrics to compare.
    pub metrics: Metrics,
    /// Equivalence margin δ; `None`: the larger margin of the profiles of the two runs.
    pub margin: Option<Ratio>,
    /// Aspects in which runs may differ at the same time.
    pub allow: Vec<Aspect>,
    /// Rule of the gate, if any.
    pub gate: Option<GateRule>,
}

/// Rule of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateRule {
    /// Largest allowed regression: 0.05 for 5 %.
    pub margin: Ratio,
    /// True if every test must be non-inferior. Otherwise one non-inferior test is enough if no
    /// test is significantly worse.
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
        /// Run that lacks the filesystem.
        which: Which,
        /// Filesystems of that run, comma-separated.
        known: String,
    },
    /// A filesystem is to be paired with two others.
    #[error("`{name}` of {which} is in two pairs; use each filesystem in one --pair only")]
    PairedTwice {
        /// Name.
        name: String,
        /// Run to which the filesystem belongs.
        which: Which,
    },
    /// The same run was given twice, without filesystems to compare with each other.
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
    /// Conditions, at least one, the most descriptive condition first.
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
        /// Program that measured the run.
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
        /// Geometric mean of the ratios of the negative controls.
        ratio: Ratio,
        /// Effective equivalence margin, which the ratio exceeds.
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
    /// True if the differences between the runs can have affected the test; otherwise the test is a
    /// negative control.
    pub affected: bool,
    /// Values in the first run, if any.
    pub before: Option<Summary>,
    /// Values in the second run, if any.
    pub after: Option<Summary>,
    /// Comparison of the second run with the first run, or the reason for withholding it.
    pub comparison: Result<Comparison, Withheld>,
    /// Confidence interval of the ratio: at 95 %, or at [`Family::level`] if screening found the
    /// test.
    pub interval: Option<Interval>,
    /// True if screening found a difference. Always false if the runs yield no findings.
    pub found: bool,
    /// p-value after Holm's adjustment over the family; 1 for a test outside the family.
    pub p_holm: f64,
    /// Result at the gate. `None` without a gate, and for tests outside the family, except for
    /// tests that failed or are missing in the second run.
    pub gate: Option<AtGate>,
    /// True if totals include the test: its metric is the primary or the requested metric, and has
    /// a direction.
    pub pooled: bool,
    /// Repetitions with their blocks, for totals over several tests.
    repetitions: (Vec<Repetition>, Vec<Repetition>),
}

/// Numbers of compared tests by result, for tests that the differences between two runs can affect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Significantly better, by a difference that may exceed the margin.
    pub better: u32,
    /// Significantly worse, by a difference that may exceed the margin.
    pub worse: u32,
    /// Equivalent.
    pub equivalent: u32,
    /// Significantly different, but by less than the margin.
    pub negligible: u32,
    /// None of these.
    pub inconclusive: u32,
}

/// Comparison of two runs.
#[derive(Clone, Debug)]
pub struct Paired {
    /// Differences between the conditions of the two runs.
    pub conditions: Conditions,
    /// Aspects in which the conditions differ; a single aspect is the subject of the comparison.
    pub aspects: Vec<AspectDifference>,
    /// Reasons that the runs yield no findings; empty if they yield findings.
    pub obstacles: Vec<FindingsObstacle>,
    /// True if a run was imported, so that its conditions are unknown. The runs yield findings only
    /// if [`CompareOptions::allow`] contains [`Aspect::Unknown`].
    pub imported: bool,
    /// True if single tests yield findings; false if a run used profile quick.
    pub headlines: bool,
    /// Nominal equivalence margin δ.
    pub margin: Ratio,
    /// Effective margin δ′, raised to the A/A noise if the duplicates differ significantly.
    pub effective_margin: Ratio,
    /// A/A noise over the duplicates of both runs; `None` without a duplicate that has enough
    /// repetitions.
    pub noise: Option<AaNoise>,
    /// Paired tests in the order of the first run.
    pub tests: Vec<TestPair>,
    /// Family of the tests of all steps.
    pub family: Family,
    /// Numbers of tests by result.
    pub tally: Tally,
    /// Geometric mean of the ratios of the affected tests that are pooled. `None` if it cannot be
    /// estimated, or if the runs yield no findings.
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
    /// Result of the gate over all steps, if any.
    pub gate: Option<Gate>,
    /// Change points of tests over all runs; empty for fewer than twenty runs.
    pub histories: Vec<History>,
}

/// Compares two runs.
///
/// # Errors
/// [`CompareError`].
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

/// Comparison of two runs, without the parts that depend on the family.
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
        imported: is_imported(first) || is_imported(second),
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

/// Differences by aspect, including filesystems that are compared under different names.
fn aspects(conditions: &Conditions, matched: &cells::Matched) -> Vec<AspectDifference> {
    let mut differences: Vec<Difference> = matched.renamed();
    differences.extend(conditions.differences.iter().cloned());
    let of = |aspect: Aspect| {
        let own = differences.iter().filter(|difference| difference.aspect == Some(aspect));
        let mut own: Vec<Difference> = own.cloned().collect();
        // For example, the release describes a kernel better than its build.
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
    // Unknown conditions are a separate obstacle.
    let own = aspects.iter().map(|differs| differs.aspect);
    let own: Vec<Aspect> = own.filter(|aspect| *aspect != Aspect::Unknown).collect();
    if own.len() > 1 && !own.iter().all(|aspect| how.allow.contains(aspect)) {
        refused.push(FindingsObstacle::Aspects { aspects: own });
    }
    for (which, run) in [(Which::First, first), (Which::Second, second)] {
        refused.extend(run.warnings.iter().filter_map(|warning| {
            if let Warning::Imported { program } = warning {
                let refused = !how.allow.contains(&Aspect::Unknown);
                let program = program.clone();
                return refused.then_some(FindingsObstacle::Imported { which, program });
            }
            let blocks = guards::blocks(warning);
            blocks.then(|| FindingsObstacle::Warned { which, warning: warning.clone() })
        }));
    }
    refused
}

/// Geometric mean of the ratios of pooled tests that were compared. `one` is true if both are the
/// same run.
fn total<'a>(tests: impl Iterator<Item = &'a TestPair>, one: bool) -> Option<Aggregate> {
    let pairing = |test: &TestPair| Pairing {
        name: format!("{} · {} · {}", test.filesystems.1, test.label, test.phase),
        first: test.repetitions.0.clone(),
        second: test.repetitions.1.clone(),
        better: test.metric.spec().better,
    };
    let tests = tests.filter(|test| test.comparison.is_ok() && test.pooled);
    let pairings: Vec<Pairing> = tests.map(pairing).collect();
    // Tests of one trial share a filesystem and a block, so blocks are drawn for all of them
    // together.
    let mean = if one { aggregate::geometric } else { aggregate::geometric_across };
    mean(&pairings, SEED).ok()
}

/// Seed of the resampling for totals.
const SEED: u64 = 2_11;

#[cfg(test)]
mod tests;
