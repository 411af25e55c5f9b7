//! Findings: conclusions from templates, each with the checks it must pass.
//!
//! A finding that fails a check is withheld ([`WithheldFinding`]) with the reason and a hint.
//! Withheld findings are shown in the report or by `fslab explain`. A finding about the fastest
//! filesystem states the workload, the number of compared filesystems, and n. The conditions of all
//! findings are stated once ([`Findings::scope`]). [`ranked`] compares filesystems, [`single`] and
//! [`phases`] describe one filesystem at a time, and [`mean`] aggregates the workloads of a suite.

mod answers;
mod kind;
mod mean;
mod obstacle;
mod phases;
mod ranked;
mod single;

use analysis::Comparison;
use model::{Metric, metric::Unit};

pub(crate) use answers::{Answer, Finding, Findings, PointFindings, WithheldFinding};
pub(crate) use kind::FindingKind;
pub(crate) use obstacle::obstacles;

use crate::view::{
    facts::{Facts, Filesystem},
    interaction::Scopes,
    points::{Entry, Suite, Test, WorkPoint},
    sample_index::SampleIndex,
};

/// Input of the findings about one test.
pub(super) struct TestContext<'a> {
    pub(super) test: &'a Test,
    pub(super) point: &'a WorkPoint,
    pub(super) filesystems: &'a [Filesystem],
    pub(super) facts: &'a Facts,
    pub(super) sample_index: &'a SampleIndex<'a>,
    /// Condition that each comparison of filesystems must name because the ranking depends on it,
    /// and the label of the point without it. `None` if there is no such condition.
    pub(super) scope: Option<&'a (String, String)>,
    /// True if the run may have drifted.
    pub(super) suspected: bool,
}

impl TestContext<'_> {
    /// Test and workload point: `write, iozone block_size=1MiB`.
    pub(super) fn workload(&self) -> String {
        format!("{}, {}", self.test.name, self.point.label)
    }

    /// Name of the filesystem of an entry.
    pub(super) fn name(&self, entry: &Entry) -> &str {
        &self.filesystems[entry.filesystem].name
    }

    /// Entries in the order of the filesystems.
    pub(super) fn entries(&self) -> Vec<&Entry> {
        self.test.in_plan_order()
    }

    /// One of three values, by the quantity of the test: available space, guest instructions, or
    /// speed.
    pub(super) fn by_quantity<T>(&self, space: T, instructions: T, speed: T) -> T {
        let metric = self.test.metric;
        if metric == Metric::SpaceAvailable {
            space
        } else if metric.spec().unit == Unit::Instructions {
            instructions
        } else {
            speed
        }
    }

    pub(super) fn found(&self, kind: FindingKind, text: String) -> Answer {
        Answer::found(kind, &self.test.id, text)
    }

    pub(super) fn withheld(
        &self,
        kind: FindingKind,
        question: String,
        reason: String,
        hint: String,
    ) -> WithheldFinding {
        WithheldFinding { kind, test: self.test.id.clone(), question, reason, hint }
    }
}

/// Derives all findings of a run and the withheld ones.
///
/// If the ranking of filesystems depends on a condition, `scopes` contains the condition, and each
/// finding starts with its value. `suspected` is true if the run may have drifted.
pub(crate) fn findings(
    suites: &[Suite],
    filesystems: &[Filesystem],
    facts: &Facts,
    scopes: &Scopes,
    (sample_index, suspected): (&SampleIndex, bool),
) -> Findings {
    let means = suites.iter().filter(|_| facts.imported.is_none());
    let run = mean::Run { filesystems, scopes, seed: sample_index.record.info.seed, suspected };
    let mut by_point: Vec<PointFindings> =
        means.filter_map(|suite| mean::of_suite(suite, &run)).collect();
    for point in suites.iter().flat_map(|suite| &suite.points) {
        let mut findings = PointFindings::new(point.label.clone(), Vec::new());
        for test in point.tests.iter().filter(|_| facts.imported.is_none()) {
            let scope = scopes.get(&test.id);
            let context =
                TestContext { test, point, filesystems, facts, sample_index, scope, suspected };
            ranked::answers(&context, &mut findings);
            single::answers(&context, &mut findings);
            phases::answers(&context, &mut findings);
        }
        findings.findings.extend(failures(point, filesystems));
        by_point.push(findings);
    }
    Findings {
        by_point,
        scope: format!(
            "Valid for these conditions: {}. Not tested: {}.",
            facts.conditions, facts.untested
        ),
        provisional: false,
    }
}

/// C20, one per filesystem with failed repetitions. A failed repetition excludes the cell from the
/// rankings of all its tests, so the first test of the point represents all.
fn failures(point: &WorkPoint, filesystems: &[Filesystem]) -> Vec<Finding> {
    let entries = point.tests.first().map_or(&[][..], |test| test.entries.as_slice());
    let failed = entries.iter().filter_map(|entry| Some((entry, entry.failed.as_ref()?)));
    let finding = |(entry, (failed, all, reason)): (&Entry, &(usize, usize, String))| Finding {
        kind: FindingKind::C20,
        test: String::new(),
        text: format!(
            "{} failed {failed} of {} of {} ({reason}) and is not ranked there.",
            filesystems[entry.filesystem].name,
            crate::units::count(*all, "repetition"),
            point.label
        ),
    };
    failed.map(finding).collect()
}

/// Estimate that disagrees with the effect size of a comparison, if any: `the ratio of the medians
/// gives ×4.40 (estimates-disagree)`. Further repetitions do not resolve the disagreement.
pub(crate) fn disagreement(comparison: &Comparison) -> Option<String> {
    estimate_against(comparison, |ratio| ratio)
}

/// Like [`disagreement`], with the inverse of the ratio.
pub(crate) fn inverse_disagreement(comparison: &Comparison) -> Option<String> {
    estimate_against(comparison, |ratio| 1.0 / ratio)
}

fn estimate_against(comparison: &Comparison, turn: impl Fn(f64) -> f64) -> Option<String> {
    let estimate = |name: &str, ratio: model::Ratio| {
        format!("{name} gives {} (estimates-disagree)", crate::units::ratio(turn(ratio.0), None))
    };
    if !comparison.ratios_agree {
        return Some(estimate(
            analysis::compare::Method::MedianRatio.name(),
            comparison.ratio_of_medians,
        ));
    }
    let check = comparison.checks.iter().find(|check| check.disagrees)?;
    Some(estimate(check.method.name(), check.ratio))
}

/// `a`, `a and b`, `a, b, and c`.
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [others @ .., last] => format!("{}, and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests;
