//! Multiple comparisons: screening, findings about single tests, and the gate.
//!
//! Screening lists the tests whose values differ between two runs. The gate is the check of `fslab
//! compare --gate MARGIN`: it fails if a test became worse by more than the margin. In a chain of
//! runs, each run is compared with its predecessor, and the tests of all comparisons form one
//! family.

use model::{Ratio, Warning, metric::Better, warning::Severity};

use super::{
    FindingsObstacle, GateRule, Missing, Paired, Tally, TestPair, missing, numbers::values,
};
use crate::{Comparer, Side, Size, Verdict, count, family, ranks::FAMILY_ERROR, summary::LEVEL};

/// False discovery rates of the list of differing tests: the default rate, and the rate for profile
/// quick.
const FALSE_DISCOVERIES: [f64; 2] = [0.05, 0.10];

/// Tests that are adjusted together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Family {
    /// Number of tests over all comparisons of the chain.
    pub tests: u32,
    /// False discovery rate of the list of tests with a difference.
    pub q: f64,
    /// Number of listed tests.
    pub found: u32,
    /// Confidence level of the intervals in the list.
    pub level: f64,
}

/// Result of a test at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtGate {
    /// Significantly worse by more than the gate's margin after Holm's adjustment. The A/A noise
    /// replaces the margin if it is significant and larger.
    Worse,
    /// Non-inferior by the gate's margin, Holm-adjusted unless the gate is strict.
    NonInferior,
    /// Neither worse nor non-inferior.
    Inconclusive,
    /// The trials failed in the second run, but not in the first.
    Failed,
    /// Missing in the second run.
    Missing,
}

/// Result of the gate for one comparison of two runs. The variants are ordered from best to worst;
/// a chain of comparisons has its worst result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateVerdict {
    /// No test is significantly worse, newly failing, or missing, and at least one test is
    /// non-inferior. For a strict gate, all tests are non-inferior.
    Passed,
    /// No test is significantly worse or newly failing, but the gate does not pass: too few tests
    /// are non-inferior, tests are missing, the negative controls changed, the A/A noise is too
    /// large, or a run was imported and its conditions are unknown.
    Inconclusive,
    /// At least one test is significantly worse or newly failing.
    Failed,
    /// The runs cannot be compared.
    NotComparable,
}

impl GateVerdict {
    /// Name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
            Self::NotComparable => "refused",
        }
    }
}

/// Gate with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// Rule of the gate.
    pub rule: GateRule,
    /// Largest A/A noise of all comparisons that is significant and exceeds the gate's margin, if
    /// any.
    pub aa_noise: Option<Ratio>,
    /// True if a machine benchmark changed by more than the equivalence margin between two runs.
    pub machine: bool,
    /// Verdict over all comparisons.
    pub verdict: GateVerdict,
    /// Reasons that runs yield no findings; empty if all yield findings.
    pub obstacles: Vec<FindingsObstacle>,
    /// Number of significantly worse tests.
    pub worse: u32,
    /// Number of non-inferior tests.
    pub non_inferior: u32,
    /// Number of tests that are neither worse nor non-inferior, including paired tests that were
    /// not compared.
    pub inconclusive: u32,
    /// Tests whose trials failed in the second run but not in the first, by cell.
    pub failed: Vec<Missing>,
    /// Tests of the first run that the second does not have, by cell.
    pub missing: Vec<Missing>,
}

/// True if a test can belong to the family: the differences between the runs can affect the test,
/// its values were compared, and its metric has a direction.
fn member(test: &TestPair) -> bool {
    test.affected && test.comparison.is_ok() && test.metric.spec().better != Better::Neither
}

/// Adjusts the tests of all comparisons together. Runs with obstacles to findings are excluded.
pub(super) fn screen(steps: &mut [Paired], quick: bool, comparer: &mut Comparer) {
    let q = FALSE_DISCOVERIES[usize::from(quick)];
    let claimed = steps.iter_mut().filter(|step| step.obstacles.is_empty());
    let mut members: Vec<&mut TestPair> =
        claimed.flat_map(|step| &mut step.tests).filter(|test| member(test)).collect();
    let p = |test: &TestPair| test.comparison.as_ref().map_or(1.0, |comparison| comparison.p);
    let raw: Vec<f64> = members.iter().map(|test| p(test)).collect();
    let screening = family::benjamini_hochberg(&raw, q);
    let holm = family::holm(&raw);
    for ((test, found), holm) in members.iter_mut().zip(&screening.found).zip(holm) {
        test.p_holm = holm;
        test.found = *found;
        if *found {
            // At a false discovery rate of 10 %, the level is below 95 % if more than half of the
            // tests are found. Intervals of listed tests must not be narrower than those of other
            // tests.
            let (level, better) = (screening.level.max(LEVEL), test.metric.spec().better);
            let (before, after) = (values(&test.repetitions.0), values(&test.repetitions.1));
            let wide = comparer.interval(&before, &after, better, level);
            test.interval = wide.ok().flatten().or(test.interval);
        }
    }
    let found = screening.found.iter().filter(|found| **found).count();
    let level = if found > 0 { screening.level.max(LEVEL) } else { LEVEL };
    let family = Family { tests: count(raw.len()), q, found: count(found), level };
    steps.iter_mut().for_each(|step| step.family = family);
}

impl TestPair {
    /// Direction of a difference that is significant after Holm's adjustment and not negligible.
    pub fn headline(&self) -> Option<Side> {
        let Ok(comparison) = &self.comparison else { return None };
        match comparison.verdict {
            Verdict::Differs { side, size: Size::AtLeast | Size::Uncertain }
                if self.p_holm <= FAMILY_ERROR =>
            {
                Some(side)
            }
            Verdict::Differs { .. } | Verdict::Equivalent | Verdict::Inconclusive { .. } => None,
        }
    }

    /// True if the difference is significant but negligible.
    pub fn is_negligible(&self) -> bool {
        let verdict = self.comparison.as_ref().map(|comparison| comparison.verdict);
        matches!(verdict, Ok(Verdict::Differs { size: Size::Negligible, .. }))
    }

    /// True if the cells are equivalent.
    pub fn is_equivalent(&self) -> bool {
        self.comparison.as_ref().is_ok_and(|test| test.verdict == Verdict::Equivalent)
    }
}

/// Counts the results of the tests of one comparison.
pub(super) fn tally(step: &Paired) -> Tally {
    let mut tally = Tally::default();
    for test in step.tests.iter().filter(|test| member(test)) {
        match test.headline() {
            Some(Side::Better) => tally.better += 1,
            Some(Side::Worse) => tally.worse += 1,
            None if test.is_equivalent() => tally.equivalent += 1,
            None if test.is_negligible() => tally.negligible += 1,
            None => tally.inconclusive += 1,
        }
    }
    tally
}

/// Evaluates the gate for every test.
///
/// A test of the first run whose trials fail in the second run counts as worse, regardless of its
/// values. A test that is missing in the second run could be worse, so the gate does not pass with
/// a missing test.
///
/// The values of the second run are improved by the gate's margin and then compared with those of
/// the first run. The p-value is therefore that of the hypothesis "worse by exactly the margin".
/// The test is two-sided, like the confidence interval.
///
/// The p-values of losses above the margin are Holm-adjusted over all tests, and so are those of
/// losses below the margin. Each single result is therefore valid. A strict gate makes only one
/// statement: no test is worse by more than the margin. This statement is made only if each test is
/// non-inferior at the full, unadjusted level (intersection-union test: Berger, "Multiparameter
/// Hypothesis Testing and Acceptance Sampling", Technometrics 24, 1982). Otherwise the adjusted
/// results are reported.
///
/// If A/A duplicates differ significantly by more than the gate's margin, differences of the size
/// of the margin cannot be resolved. A test is then worse only if its loss exceeds the A/A noise,
/// and no test is non-inferior.
pub(super) fn gate(steps: &mut [Paired], rule: GateRule, comparer: &mut Comparer) -> Gate {
    let mut gate = Gate {
        rule,
        aa_noise: None,
        machine: steps
            .iter()
            .any(|step| step.negative_controls.machine.iter().any(|fact| fact.differs)),
        verdict: GateVerdict::Passed,
        obstacles: steps.iter().flat_map(|step| step.obstacles.iter().cloned()).collect(),
        worse: 0,
        non_inferior: 0,
        inconclusive: 0,
        failed: missing::failed(steps),
        missing: missing::find(steps),
    };
    decide(steps, rule, comparer);
    for (at, step) in steps.iter_mut().enumerate() {
        let masked = masked(step, rule);
        let mut counts = Counts { masked: masked.is_some(), ..Counts::default() };
        gate.aa_noise =
            gate.aa_noise.into_iter().chain(masked).max_by(|one, two| one.0.total_cmp(&two.0));
        let claimed = step.obstacles.is_empty();
        for test in step.tests.iter_mut().filter(|test| claimed && test.affected) {
            test.gate = missing::lost(test).or(test.gate);
            match test.gate {
                Some(AtGate::Worse) => counts.worse += 1,
                Some(AtGate::NonInferior) => counts.non_inferior += 1,
                Some(AtGate::Inconclusive) | None => counts.inconclusive += 1,
                // Counted below, from the lists of failed and missing tests.
                Some(AtGate::Failed | AtGate::Missing) => {}
            }
        }
        counts.failed = gate.failed.iter().any(|missing| missing.step == at);
        counts.missing = gate.missing.iter().any(|missing| missing.step == at);
        gate.worse += counts.worse;
        gate.non_inferior += counts.non_inferior;
        gate.inconclusive += counts.inconclusive;
        gate.verdict = gate.verdict.max(verdict(&counts, step, rule));
    }
    gate
}

/// Results of the tests of one comparison.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    worse: u32,
    non_inferior: u32,
    inconclusive: u32,
    failed: bool,
    missing: bool,
    masked: bool,
}

/// A/A noise of a comparison, if it is significant and exceeds the gate's margin.
fn masked(step: &Paired, rule: GateRule) -> Option<Ratio> {
    let noise = step.noise.filter(|noise| noise.shown)?.ratio;
    (noise.0 > rule.margin.0).then_some(noise)
}

/// Sets the result at the gate for every test of the family.
fn decide(steps: &mut [Paired], rule: GateRule, comparer: &mut Comparer) {
    let mut tests = Vec::new();
    for step in steps.iter_mut().filter(|step| step.obstacles.is_empty()) {
        let masked = masked(step, rule);
        let own = step.tests.iter_mut().filter(|test| member(test));
        tests.extend(own.map(|test| (test, masked)));
    }
    let mut p = [Vec::new(), Vec::new()];
    for (test, masked) in &tests {
        let limit = masked.unwrap_or(rule.margin);
        let (side, own) = beyond(test, limit, comparer).unwrap_or((Side::Worse, 1.0));
        p[0].push(if side == Side::Worse { own } else { 1.0 });
        p[1].push(if side == Side::Better && masked.is_none() { own } else { 1.0 });
    }
    let jointly = rule.strict && p[1].iter().all(|p| *p <= FAMILY_ERROR);
    let [worse, non_inferior] = p.map(|p| family::holm(&p));
    for (((test, _), worse), non_inferior) in tests.into_iter().zip(worse).zip(non_inferior) {
        test.gate = Some(match () {
            () if worse <= FAMILY_ERROR => AtGate::Worse,
            () if jointly || non_inferior <= FAMILY_ERROR => AtGate::NonInferior,
            () => AtGate::Inconclusive,
        });
    }
}

/// Verdict on one comparison of two runs.
fn verdict(counts: &Counts, step: &Paired, rule: GateRule) -> GateVerdict {
    // A change of the negative controls makes the verdict inconclusive, because it depends on the
    // data and may not recur in new runs.
    // Unknown conditions of an imported run may be the same.
    let open = |reason: &FindingsObstacle| {
        use FindingsObstacle::{Imported, NegativeControlsChanged};
        matches!(reason, NegativeControlsChanged { .. } | Imported { .. })
    };
    match () {
        () if step.tests.is_empty() || !step.obstacles.iter().all(open) => {
            GateVerdict::NotComparable
        }
        // Checked before the obstacles: failures do not depend on the speed of the machine.
        () if counts.worse > 0 || counts.failed => GateVerdict::Failed,
        () if !step.obstacles.is_empty() || counts.masked => GateVerdict::Inconclusive,
        () if counts.non_inferior == 0 || counts.missing => GateVerdict::Inconclusive,
        () if rule.strict && counts.inconclusive > 0 => GateVerdict::Inconclusive,
        () => GateVerdict::Passed,
    }
}

/// True if a comparison has no blocking warning, such as too few repetitions, and its two estimates
/// of the ratio agree.
fn sound(test: &TestPair) -> bool {
    let stops = |warning: &Warning| warning.severity() == Severity::Blocking;
    test.comparison
        .as_ref()
        .is_ok_and(|comparison| comparison.ratios_agree && !comparison.warnings.iter().any(stops))
}

/// Comparison of the first run with the second run improved by `margin`. The side is `Worse` if the
/// loss exceeds the margin; the p-value is that of "worse by exactly the margin". `None` if the
/// comparison of the unchanged values is not decisive.
fn beyond(test: &TestPair, margin: Ratio, comparer: &mut Comparer) -> Option<(Side, f64)> {
    if !sound(test) {
        return None;
    }
    let better = test.metric.spec().better;
    let raise = 1.0 + margin.0;
    let raised = |value: &f64| if better == Better::Lower { value / raise } else { value * raise };
    let (first, second) = (values(&test.repetitions.0), values(&test.repetitions.1));
    let second: Vec<f64> = second.iter().map(raised).collect();
    let comparison = comparer.compare(&first, &second, better, margin).ok()?;
    let side = if comparison.ratio.0 < 1.0 { Side::Worse } else { Side::Better };
    Some((side, comparison.p))
}
