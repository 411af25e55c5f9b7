//! Sentences, each from a template with its guards: what the data say and what they leave open.
//!
//! A sentence whose guard fails is not written; what is missing for it is kept instead
//! ([`Withheld`]), and told where a reader would look for it, or when asked for. "Fastest" always
//! names workload, n and the family it holds for; conditions stand once above the sentences. What
//! is compared over filesystems is in [`ranked`], what one filesystem does in [`single`], and what
//! the workloads say together in [`mean`].

mod answers;
mod mean;
mod phases;
mod ranked;
mod single;

use analysis::Comparison;
use model::{Metric, metric::Unit};

pub(crate) use answers::{Answer, Claim, Findings, PointClaims, Withheld};

use crate::view::{
    facts::{Facts, Filesystem},
    interaction::Scopes,
    points::{Entry, Suite, Test, WorkPoint},
    pool::Pool,
};

/// What sentences about one test are made from.
pub(super) struct About<'a> {
    pub(super) test: &'a Test,
    pub(super) point: &'a WorkPoint,
    pub(super) filesystems: &'a [Filesystem],
    pub(super) facts: &'a Facts,
    pub(super) pool: &'a Pool<'a>,
    /// The condition without which nothing may be said of filesystems, and the label of the point
    /// without it.
    pub(super) scope: Option<&'a (String, String)>,
    /// The run may have drifted.
    pub(super) suspected: bool,
}

impl About<'_> {
    /// `write, iozone record=1MiB`.
    pub(super) fn workload(&self) -> String {
        format!("{}, {}", self.test.name, self.point.label)
    }

    /// The name of the filesystem of an entry.
    pub(super) fn name(&self, entry: &Entry) -> &str {
        &self.filesystems[entry.filesystem].name
    }

    /// Entries in the order of the filesystems.
    pub(super) fn entries(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.test.entries.iter().collect();
        entries.sort_by_key(|entry| entry.filesystem);
        entries
    }

    /// What the better one of two is.
    pub(super) fn better(&self) -> &'static str {
        self.degree("better", "cheaper", "faster")
    }

    /// One of three words: where more space is better, where fewer instructions are, and where it
    /// is a matter of speed.
    pub(super) fn degree(
        &self,
        space: &'static str,
        instructions: &'static str,
        speed: &'static str,
    ) -> &'static str {
        let metric = self.test.metric;
        if metric == Metric::SpaceUsable {
            space
        } else if metric.spec().unit == Unit::Instructions {
            instructions
        } else {
            speed
        }
    }

    pub(super) fn said(&self, template: &'static str, text: String) -> Answer {
        Answer::Said(Claim { template, test: self.test.id.clone(), text })
    }

    pub(super) fn withheld(
        &self,
        template: &'static str,
        about: String,
        missing: String,
        cure: String,
    ) -> Withheld {
        Withheld { template, test: self.test.id.clone(), about, missing, cure }
    }
}

/// Writes every sentence whose guards hold, and keeps what the others lack.
///
/// Where which filesystem is best depends on a condition, `scopes` has it, and the sentence says
/// first for which value of it it holds. With the record comes whether its run may have drifted.
pub(crate) fn findings(
    suites: &[Suite],
    filesystems: &[Filesystem],
    facts: &Facts,
    scopes: &Scopes,
    (pool, suspected): (&Pool, bool),
) -> Findings {
    let means = suites.iter().filter(|_| facts.imported.is_none());
    let run = mean::Run { filesystems, scopes, seed: pool.record.info.seed, suspected };
    let mut by_point: Vec<PointClaims> =
        means.filter_map(|suite| mean::of_suite(suite, &run)).collect();
    for point in suites.iter().flat_map(|suite| &suite.points) {
        let mut claims = PointClaims::new(point.label.clone(), Vec::new());
        for test in point.tests.iter().filter(|_| facts.imported.is_none()) {
            let scope = scopes.get(&test.id);
            let about = About { test, point, filesystems, facts, pool, scope, suspected };
            ranked::answers(&about, &mut claims);
            single::answers(&about, &mut claims);
            phases::answers(&about, &mut claims);
        }
        claims.claims.extend(failures(point, filesystems));
        by_point.push(claims);
    }
    Findings {
        by_point,
        scope: format!(
            "These numbers hold for these conditions: {}. Not tested: {}.",
            facts.conditions, facts.untested
        ),
        provisional: false,
    }
}

/// C20, once for each filesystem: a repeat that fails takes all tests of its cell with it.
fn failures(point: &WorkPoint, filesystems: &[Filesystem]) -> Vec<Claim> {
    let entries = point.tests.first().map_or(&[][..], |test| test.entries.as_slice());
    let failed = entries.iter().filter_map(|entry| Some((entry, entry.failed.as_ref()?)));
    let claim = |(entry, (failed, all, reason)): (&Entry, &(usize, usize, String))| Claim {
        template: "C20",
        test: String::new(),
        text: format!(
            "{} failed {failed} of {all} runs of {} ({reason}); its speed there is not ranked.",
            filesystems[entry.filesystem].name, point.label
        ),
    };
    failed.map(claim).collect()
}

/// Why no number of repeats would tell the size of a difference, if that is so: `the ratio of the
/// medians says ×4.40 (W-ASSUME)`.
pub(crate) fn disagreement(comparison: &Comparison) -> Option<String> {
    other_way(comparison, |ratio| ratio)
}

/// The same of the first against the second.
pub(crate) fn disagreement_turned(comparison: &Comparison) -> Option<String> {
    other_way(comparison, |ratio| 1.0 / ratio)
}

fn other_way(comparison: &Comparison, turn: impl Fn(f64) -> f64) -> Option<String> {
    let told = |name: &str, ratio: model::Ratio| {
        format!("{name} says {} (W-ASSUME)", crate::units::ratio(turn(ratio.0), None))
    };
    if !comparison.ratios_agree {
        return Some(told(
            analysis::compare::Method::MedianRatio.name(),
            comparison.ratio_of_medians,
        ));
    }
    let check = comparison.checks.iter().find(|check| check.disagrees)?;
    Some(told(check.method.name(), check.ratio))
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
