//! Many tests at once: what is found, what may be said of one, and what the gate says.

use model::{Ratio, Warning, metric::Better, warning::Level};

use super::{GateRule, Missing, NoClaim, Paired, Tally, TestPair, missing, numbers::values};
use crate::{Comparer, Side, Size, Verdict, count, family, ranks::FAMILY_ERROR, summary::LEVEL};

/// Share of false ones among what is listed, and that of a first look.
const FALSE_DISCOVERIES: [f64; 2] = [0.05, 0.10];

/// The tests that are corrected together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Family {
    /// How many they are, over all steps.
    pub tests: u32,
    /// The share of false ones among what screening lists.
    pub q: f64,
    /// How many it lists.
    pub found: u32,
    /// The level of the intervals of what is listed.
    pub level: f64,
}

/// What a test is at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtGate {
    /// Shown worse by more than the gate allows, after Holm's correction.
    Worse,
    /// Shown not to be worse by that much, likewise.
    NotWorse,
    /// Neither.
    Undecided,
    /// Its trials failed in the second run, and did not in the first.
    Failed,
    /// The second run does not have it any more.
    Vanished,
}

/// What the gate says of a step, the better first; of a chain, the worst of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateVerdict {
    /// None is shown worse, fails now, or is gone, and at least one is shown not worse; of a strict
    /// gate, all are.
    Passed,
    /// The data do not say.
    Undecided,
    /// At least one is shown worse, or fails now.
    Failed,
    /// The runs cannot be compared.
    Refused,
}

impl GateVerdict {
    /// One word for tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Undecided => "undecided",
            Self::Refused => "refused",
        }
    }
}

/// A gate and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// What it lets through.
    pub rule: GateRule,
    /// What twins are shown to differ by, where that is more than the gate allows; the most of all
    /// steps.
    pub twins: Option<Ratio>,
    /// Whether a figure of the machine itself changed by more than the threshold in a step.
    pub machine: bool,
    /// What it says.
    pub verdict: GateVerdict,
    /// Why the runs cannot be compared, or nothing can be said; empty otherwise.
    pub refused: Vec<NoClaim>,
    /// Tests shown worse.
    pub worse: u32,
    /// Tests shown not worse.
    pub not_worse: u32,
    /// Tests that are neither, or paired but not compared.
    pub undecided: u32,
    /// Tests whose trials failed in the second run and not in the first, by cell.
    pub failed: Vec<Missing>,
    /// Tests of the first run that the second does not have, by cell.
    pub vanished: Vec<Missing>,
}

/// Whether a test is compared, by what may be claimed of, and a member of the family.
fn member(test: &TestPair) -> bool {
    test.touched && test.comparison.is_ok() && test.metric.spec().better != Better::Neither
}

/// Corrects all tests of the steps together.
pub(super) fn screen(steps: &mut [Paired], quick: bool, comparer: &mut Comparer) {
    let q = FALSE_DISCOVERIES[usize::from(quick)];
    let claimed = steps.iter_mut().filter(|step| step.refused.is_empty());
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
            // Below 95 % the list would tell more than the number next to it.
            let (level, better) = (screening.level.max(LEVEL), test.metric.spec().better);
            let (before, after) = (values(&test.repeats.0), values(&test.repeats.1));
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
    /// Whether it is told apart after Holm's correction, by a difference that may matter, and which
    /// way.
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

    /// Whether it is told apart by a difference too small to matter.
    pub fn small(&self) -> bool {
        let verdict = self.comparison.as_ref().map(|comparison| comparison.verdict);
        matches!(verdict, Ok(Verdict::Differs { size: Size::Negligible, .. }))
    }

    /// Whether it is equivalent.
    pub fn same(&self) -> bool {
        self.comparison.as_ref().is_ok_and(|test| test.verdict == Verdict::Equivalent)
    }
}

/// Counts how the tests of a step ended.
pub(super) fn tally(step: &Paired) -> Tally {
    let mut tally = Tally::default();
    for test in step.tests.iter().filter(|test| member(test)) {
        match test.headline() {
            Some(Side::Better) => tally.better += 1,
            Some(Side::Worse) => tally.worse += 1,
            None if test.same() => tally.same += 1,
            None if test.small() => tally.small += 1,
            None => tally.open += 1,
        }
    }
    tally
}

/// Holds every test against the gate.
///
/// Tests of the first run whose trials fail in the second are worse, whatever they measured; those
/// that the second run lacks may be, so the gate does not pass without them.
///
/// A test is compared with the gate's threshold added to its second side: the p-value is that of
/// "worse by just the threshold". It is taken two-sided, as the interval beside it is, and on
/// either side corrected by Holm for all tests, so that each that is called worse or not worse may
/// be. A strict gate claims one thing of all tests, that none is worse. That sentence is wrong if
/// any of them is, and is said only if each is shown not worse, so each may be tested at the whole
/// error (intersection and union: Berger, "Multiparameter Hypothesis Testing and Acceptance
/// Sampling", Technometrics 24, 1982); where one is not, the corrected ones are told.
///
/// Where twins are shown to differ by more than the gate, a test counts as worse only beyond
/// what they differ by, and none is shown not worse: nothing can be said of the gate's threshold.
pub(super) fn gate(steps: &mut [Paired], rule: GateRule, comparer: &mut Comparer) -> Gate {
    let mut gate = Gate {
        rule,
        twins: None,
        machine: steps.iter().any(|step| step.anchor.machine.iter().any(|fact| fact.differs)),
        verdict: GateVerdict::Passed,
        refused: steps.iter().flat_map(|step| step.refused.iter().cloned()).collect(),
        worse: 0,
        not_worse: 0,
        undecided: 0,
        failed: missing::failed(steps),
        vanished: missing::vanished(steps),
    };
    decide(steps, rule, comparer);
    for (at, step) in steps.iter_mut().enumerate() {
        let masked = masked(step, rule);
        let mut counts = Counts { masked: masked.is_some(), ..Counts::default() };
        gate.twins =
            gate.twins.into_iter().chain(masked).max_by(|one, two| one.0.total_cmp(&two.0));
        let claimed = step.refused.is_empty();
        for test in step.tests.iter_mut().filter(|test| claimed && test.touched) {
            test.gate = missing::lost(test).or(test.gate);
            match test.gate {
                Some(AtGate::Worse) => counts.worse += 1,
                Some(AtGate::NotWorse) => counts.not_worse += 1,
                Some(AtGate::Undecided) | None => counts.undecided += 1,
                // They are counted where they are named.
                Some(AtGate::Failed | AtGate::Vanished) => {}
            }
        }
        counts.failed = gate.failed.iter().any(|missing| missing.step == at);
        counts.vanished = gate.vanished.iter().any(|missing| missing.step == at);
        gate.worse += counts.worse;
        gate.not_worse += counts.not_worse;
        gate.undecided += counts.undecided;
        gate.verdict = gate.verdict.max(verdict(&counts, step, rule));
    }
    gate
}

/// What is known of the tests of one step.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    worse: u32,
    not_worse: u32,
    undecided: u32,
    failed: bool,
    vanished: bool,
    masked: bool,
}

/// By how much the twins of a step are shown to differ, if that is more than the gate allows.
fn masked(step: &Paired, rule: GateRule) -> Option<Ratio> {
    let noise = step.noise.filter(|noise| noise.shown)?.ratio;
    (noise.0 > rule.threshold.0).then_some(noise)
}

/// Tells for every test of the family what it is at the gate.
fn decide(steps: &mut [Paired], rule: GateRule, comparer: &mut Comparer) {
    let mut tests = Vec::new();
    for step in steps.iter_mut().filter(|step| step.refused.is_empty()) {
        let masked = masked(step, rule);
        let own = step.tests.iter_mut().filter(|test| member(test));
        tests.extend(own.map(|test| (test, masked)));
    }
    let mut p = [Vec::new(), Vec::new()];
    for (test, masked) in &tests {
        let limit = masked.unwrap_or(rule.threshold);
        let (side, own) = beyond(test, limit, comparer).unwrap_or((Side::Worse, 1.0));
        p[0].push(if side == Side::Worse { own } else { 1.0 });
        p[1].push(if side == Side::Better && masked.is_none() { own } else { 1.0 });
    }
    let jointly = rule.strict && p[1].iter().all(|p| *p <= FAMILY_ERROR);
    let [worse, not_worse] = p.map(|p| family::holm(&p));
    for (((test, _), worse), not_worse) in tests.into_iter().zip(worse).zip(not_worse) {
        test.gate = Some(match () {
            () if worse <= FAMILY_ERROR => AtGate::Worse,
            () if jointly || not_worse <= FAMILY_ERROR => AtGate::NotWorse,
            () => AtGate::Undecided,
        });
    }
}

/// What a step ends with; that of the chain is the worst of all.
fn verdict(counts: &Counts, step: &Paired, rule: GateRule) -> GateVerdict {
    // That the anchor moved is told by the data, and may be otherwise the next time.
    let moved = |why: &NoClaim| matches!(why, NoClaim::AnchorMoved { .. });
    match () {
        () if step.tests.is_empty() || !step.refused.iter().all(moved) => GateVerdict::Refused,
        // That a trial fails is no matter of how fast the machine was.
        () if counts.worse > 0 || counts.failed => GateVerdict::Failed,
        () if !step.refused.is_empty() || counts.masked => GateVerdict::Undecided,
        () if counts.not_worse == 0 || counts.vanished => GateVerdict::Undecided,
        () if rule.strict && counts.undecided > 0 => GateVerdict::Undecided,
        () => GateVerdict::Passed,
    }
}

/// Whether a comparison may decide anything: enough repeats, and methods that agree.
fn sound(test: &TestPair) -> bool {
    let stops = |warning: &Warning| warning.level() == Level::Block;
    test.comparison
        .as_ref()
        .is_ok_and(|comparison| comparison.ratios_agree && !comparison.warnings.iter().any(stops))
}

/// On which side of "worse by just the threshold" a test lies, and the p-value of that; `None`
/// where nothing is to be decided.
fn beyond(test: &TestPair, threshold: Ratio, comparer: &mut Comparer) -> Option<(Side, f64)> {
    if !sound(test) {
        return None;
    }
    let better = test.metric.spec().better;
    let raise = 1.0 + threshold.0;
    let raised = |value: &f64| if better == Better::Lower { value / raise } else { value * raise };
    let (first, second) = (values(&test.repeats.0), values(&test.repeats.1));
    let second: Vec<f64> = second.iter().map(raised).collect();
    let comparison = comparer.compare(&first, &second, better, threshold).ok()?;
    let side = if comparison.ratio.0 < 1.0 { Side::Worse } else { Side::Better };
    Some((side, comparison.p))
}
