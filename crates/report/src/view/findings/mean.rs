//! Finding C12: geometric mean over the workloads of a suite, of each filesystem relative to the
//! first one of the plan.

use crate::view::FindingKind;
use analysis::{
    Repetition, Side, Size, Verdict,
    aggregate::{self, Aggregate, Pairing},
    blocks,
};
use model::metric::{Better, Unit};
use rayon::prelude::*;

use super::{Answer, PointFindings};
use crate::{
    units::{count, ratio},
    view::{
        facts::Filesystem,
        interaction::Scopes,
        points::{Suite, Test, WorkPoint},
    },
};

/// Minimum number of workloads for a mean.
const WORKLOADS_MIN: usize = 3;
/// Maximum number of excluded workloads that are listed by name.
const NAMED: usize = 4;

/// One answer per filesystem except the first. `None` if the suite has fewer than [`WORKLOADS_MIN`]
/// tests with a direction, or if the plan has one filesystem.
pub(super) fn of_suite(suite: &Suite, run: &Run) -> Option<PointFindings> {
    let tests: Vec<(&WorkPoint, &Test)> = suite
        .points
        .iter()
        .flat_map(|point| point.tests.iter().map(move |test| (point, test)))
        .filter(|(_, test)| test.metric.spec().better != Better::Neither)
        .collect();
    if run.filesystems.len() < 2 || tests.len() < WORKLOADS_MIN {
        return None;
    }
    let mut findings = PointFindings::new(format!("all workloads of {}", suite.name), Vec::new());
    let mut compared = (0..run.filesystems.len()).filter(|at| !run.filesystems[*at].is_raw);
    let first = compared.next()?;
    let others: Vec<usize> = compared.collect();
    let mean = |other| Mean { suite, run, tests: &tests, first, other }.answer();
    findings.extend_on_request(others.into_par_iter().map(mean).collect::<Vec<_>>());
    Some(findings)
}

/// Input common to all suites.
pub(super) struct Run<'a> {
    pub(super) filesystems: &'a [Filesystem],
    pub(super) scopes: &'a Scopes,
    pub(super) seed: u64,
    /// True if the run may have drifted. Pairs are then compared in common rounds only.
    pub(super) suspected: bool,
}

/// Comparison of one filesystem with the first.
struct Mean<'a> {
    suite: &'a Suite,
    run: &'a Run<'a>,
    tests: &'a [(&'a WorkPoint, &'a Test)],
    /// Index of the first filesystem.
    first: usize,
    other: usize,
}

impl Mean<'_> {
    fn answer(&self) -> Answer {
        let (mut pairs, mut missing) = (Vec::new(), Vec::new());
        let (mut wins, mut losses) = (0, 0);
        for (point, test) in self.tests {
            let name = format!("{}, {}", test.name, point.label);
            let ranked = |index| test.entry(index).filter(|entry| entry.ranked);
            let (Some(first), Some(second)) = (ranked(self.first), ranked(self.other)) else {
                missing.push(name);
                continue;
            };
            let both = [first.repetitions.as_slice(), second.repetitions.as_slice()];
            let comparable = blocks::comparable(&both, self.run.suspected);
            let Some(Ok([first, second])) = comparable.map(<[Vec<Repetition>; 2]>::try_from) else {
                missing.push(format!("{name} (too few common rounds)"));
                continue;
            };
            match verdict(test, self.other) {
                Some(Side::Better) => wins += 1,
                Some(Side::Worse) => losses += 1,
                None => {}
            }
            pairs.push(Pairing { name, first, second, better: test.metric.spec().better });
        }
        if self.tests.iter().any(|(_, test)| self.run.scopes.contains_key(&test.id)) {
            let why = "the ranking of filesystems depends on the conditions of the workload";
            return self.withheld(why, "read the findings for each condition");
        }
        if pairs.len() < WORKLOADS_MIN {
            let why = format!("only {} workloads have usable results of both", pairs.len());
            return self.withheld(&why, "");
        }
        match aggregate::geometric(&pairs, self.run.seed) {
            Ok(found) => {
                Answer::found(FindingKind::C12, "", self.text(&found, (wins, losses), &missing))
            }
            Err(absent) => self.withheld(&absent.to_string(), ""),
        }
    }

    fn text(
        &self,
        found: &Aggregate,
        (wins, losses): (usize, usize),
        missing: &[String],
    ) -> String {
        let (name, first) =
            (&self.run.filesystems[self.other].name, &self.run.filesystems[self.first].name);
        let all = found.each.len();
        let each = |at: usize| {
            let (name, ratio) = &found.each[at];
            format!("×{:.2} ({name})", ratio.0)
        };
        let fragile = found.fragile.map_or(String::new(), |at| {
            let name = &found.each[at].0;
            format!(" Not robust: reversed without {name}.")
        });
        let like = found.similar_workloads.map_or(String::new(), |ends| {
            format!("; similar workloads [{:.2}, {:.2}]", ends.low, ends.high)
        });
        let missing = match missing {
            [] => String::new(),
            few if few.len() <= NAMED => format!(" Excluded: {}.", few.join("; ")),
            [first, ..] => format!(" Excluded: {first}, and {} others.", missing.len() - 1),
        };
        let mut tests = self.suite.points.iter().flat_map(|point| &point.tests);
        let ratio = ratio(found.ratio.0, Some(found.interval));
        let effect = match tests.any(|test| test.metric.spec().unit == Unit::Instructions) {
            true => format!("{first} used {ratio} as many guest instructions as {name}"),
            false => format!("{name} had speed {ratio} relative to {first}"),
        };
        format!(
            "Over {all} workloads of {}, {effect} (geometric mean{like}); {}, {}, {}; \
             range {} to {}.{fragile}{missing}",
            self.suite.name,
            count(wins, "win"),
            count(all - wins - losses, "tie"),
            if losses == 1 { "1 loss".to_owned() } else { format!("{losses} losses") },
            each(found.least),
            each(found.most)
        )
    }

    fn withheld(&self, reason: &str, hint: &str) -> Answer {
        let question = format!(
            "mean of {} relative to {} over all workloads of {}",
            self.run.filesystems[self.other].name, self.run.filesystems[0].name, self.suite.name
        );
        Answer::withheld(FindingKind::C12, "", question, reason, hint)
    }
}

/// Direction of a significant difference from the first filesystem; `None` for a tie: a difference
/// that is not significant, or smaller than δ.
fn verdict(test: &Test, other: usize) -> Option<Side> {
    let family = test.family.as_ref()?;
    let member = |filesystem: usize| {
        family.members.iter().position(|at| test.entries[*at].filesystem == filesystem)
    };
    let (first, other) = (member(0)?, member(other)?);
    let pair = family.ranking.pair(first, other).filter(|pair| pair.is_significant())?;
    // Pairs are oriented by medians. A test result that contradicts the medians is a tie.
    match pair.comparison.verdict {
        Verdict::Differs { size: Size::Negligible, .. } => None,
        Verdict::Differs { side: Side::Better, .. } if pair.better == other => Some(Side::Better),
        Verdict::Differs { side: Side::Better, .. } => Some(Side::Worse),
        Verdict::Differs { side: Side::Worse, .. }
        | Verdict::Equivalent
        | Verdict::Inconclusive { .. } => None,
    }
}
