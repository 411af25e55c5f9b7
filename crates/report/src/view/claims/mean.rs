//! C12: what the workloads of a suite say together about each filesystem against the first of the
//! plan.

use analysis::{
    Repeat, Side, Size, Verdict,
    aggregate::{self, Aggregate, Pairing},
    blocks,
};
use model::metric::{Better, Unit};
use rayon::prelude::*;

use super::{Answer, Claim, PointClaims, Withheld};
use crate::{
    units::ratio,
    view::{
        facts::Filesystem,
        interaction::Scopes,
        points::{Suite, Test, WorkPoint},
    },
};

/// Workloads below which a mean says less than its parts.
const WORKLOADS_MIN: usize = 3;
/// Names of missing cells that are listed.
const NAMED: usize = 4;

/// One sentence for each filesystem but the first; `None` where a suite has too few workloads for a
/// mean, or the plan one filesystem.
pub(super) fn of_suite(suite: &Suite, run: &Run) -> Option<PointClaims> {
    let tests: Vec<(&WorkPoint, &Test)> = suite
        .points
        .iter()
        .flat_map(|point| point.tests.iter().map(move |test| (point, test)))
        .filter(|(_, test)| test.metric.spec().better != Better::Neither)
        .collect();
    if run.filesystems.len() < 2 || tests.len() < WORKLOADS_MIN {
        return None;
    }
    let mut claims = PointClaims::new(format!("all workloads of {}", suite.name), Vec::new());
    let others = (1..run.filesystems.len()).into_par_iter();
    let mean = |other| Mean { suite, run, tests: &tests, other }.answer();
    claims.extend_quietly(others.map(mean).collect::<Vec<_>>());
    Some(claims)
}

/// What holds for all suites.
pub(super) struct Run<'a> {
    pub(super) filesystems: &'a [Filesystem],
    pub(super) scopes: &'a Scopes,
    pub(super) seed: u64,
    /// The run may have drifted: each pair counts in the blocks that both have.
    pub(super) suspected: bool,
}

/// One filesystem against the first.
struct Mean<'a> {
    suite: &'a Suite,
    run: &'a Run<'a>,
    tests: &'a [(&'a WorkPoint, &'a Test)],
    other: usize,
}

impl Mean<'_> {
    fn answer(&self) -> Answer {
        let (mut pairs, mut missing) = (Vec::new(), Vec::new());
        let (mut wins, mut losses) = (0, 0);
        for (point, test) in self.tests {
            let name = format!("{}, {}", test.name, point.label);
            let ranked = |index| test.entry(index).filter(|entry| entry.ranked);
            let (Some(first), Some(second)) = (ranked(0), ranked(self.other)) else {
                missing.push(name);
                continue;
            };
            let both = [first.repeats.as_slice(), second.repeats.as_slice()];
            let comparable = blocks::comparable(&both, self.run.suspected);
            let Some(Ok([first, second])) = comparable.map(<[Vec<Repeat>; 2]>::try_from) else {
                missing.push(format!("{name} (too few blocks in common)"));
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
            let why = "which filesystem is best depends on the conditions of the workload";
            return self.withheld(why, "read the sentences under each condition");
        }
        if pairs.len() < WORKLOADS_MIN {
            let why =
                format!("only {} workloads have numbers of both that carry a claim", pairs.len());
            return self.withheld(&why, "");
        }
        match aggregate::geometric(&pairs, self.run.seed) {
            Ok(found) => Answer::Said(Claim {
                template: "C12",
                test: String::new(),
                text: self.text(&found, (wins, losses), &missing),
            }),
            Err(absent) => self.withheld(&absent.to_string(), ""),
        }
    }

    fn text(
        &self,
        found: &Aggregate,
        (wins, losses): (usize, usize),
        missing: &[String],
    ) -> String {
        let (name, first) = (&self.run.filesystems[self.other].name, &self.run.filesystems[0].name);
        let all = found.each.len();
        let each = |at: usize| {
            let (name, ratio) = &found.each[at];
            format!("×{:.2} ({name})", ratio.0)
        };
        let fragile = found.fragile.map_or(String::new(), |at| {
            let name = &found.each[at].0;
            format!(" It is fragile: without {name} it is on the other side of 1.")
        });
        let like = found.like_these.map_or(String::new(), |ends| {
            format!(", of workloads like these [{:.2}, {:.2}]", ends.low, ends.high)
        });
        let missing = match missing {
            [] => String::new(),
            few if few.len() <= NAMED => format!(" Not in it: {}.", few.join("; ")),
            [first, ..] => format!(" Not in it: {first}, and {} others.", missing.len() - 1),
        };
        let mut tests = self.suite.points.iter().flat_map(|point| &point.tests);
        let what = match tests.any(|test| test.metric.spec().unit == Unit::Instructions) {
            true => "how many times fewer guest instructions",
            false => "speed",
        };
        format!(
            "On {all} workloads of {} {name} was {} relative to {first} (geometric mean of {what} \
             over these workloads{like}; wins {wins}, ties {}, losses {losses}; range {} to {}).\
             {fragile}{missing}",
            self.suite.name,
            ratio(found.ratio.0, Some(found.interval)),
            all - wins - losses,
            each(found.least),
            each(found.most)
        )
    }

    fn withheld(&self, missing: &str, cure: &str) -> Answer {
        Answer::Withheld(Withheld {
            template: "C12",
            test: String::new(),
            about: format!(
                "how {} compares to {} over all workloads of {}",
                self.run.filesystems[self.other].name,
                self.run.filesystems[0].name,
                self.suite.name
            ),
            missing: missing.into(),
            cure: cure.into(),
        })
    }
}

/// Which way a filesystem is told apart from the first, if it is.
fn verdict(test: &Test, other: usize) -> Option<Side> {
    let family = test.family.as_ref()?;
    let member = |filesystem: usize| {
        family.members.iter().position(|at| test.entries[*at].filesystem == filesystem)
    };
    let (first, other) = (member(0)?, member(other)?);
    let pair = family.ranking.pair(first, other).filter(|pair| pair.separated())?;
    // A pair is oriented by medians; a verdict against that is none.
    match pair.comparison.verdict {
        // Told apart, by less than what matters.
        Verdict::Differs { size: Size::Negligible, .. } => None,
        Verdict::Differs { side: Side::Better, .. } if pair.better == other => Some(Side::Better),
        Verdict::Differs { side: Side::Better, .. } => Some(Side::Worse),
        Verdict::Differs { side: Side::Worse, .. }
        | Verdict::Equivalent
        | Verdict::Inconclusive { .. } => None,
    }
}
