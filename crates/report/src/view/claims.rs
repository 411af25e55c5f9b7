//! Sentences, each from a template with its guards: what the data say and what they leave open.
//!
//! A sentence whose guard fails is not written; its fallback is. "Fastest" always names workload, n
//! and the family it holds for; conditions stand once above the sentences.

use analysis::{Side, Size, Verdict};
use model::{Metric, Profile, Ratio, metric::Better};

use crate::{
    units::{fixed, ratio},
    view::{
        facts::{Facts, Filesystem},
        interaction::Scopes,
        points::{Entry, Family, Suite, Test, WorkPoint},
        tables::words,
    },
};

/// All sentences of a report.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    /// By workload point.
    pub(crate) by_point: Vec<PointClaims>,
    /// What the sentences hold for, and what they do not.
    pub(crate) scope: String,
}

/// The sentences about one workload point.
#[derive(Clone, Debug)]
pub(crate) struct PointClaims {
    pub(crate) label: String,
    pub(crate) claims: Vec<Claim>,
    /// What could not be decided, with the repeats it would take.
    pub(crate) open: Vec<Claim>,
}

/// One sentence.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The template it comes from, as in the method notes.
    pub(crate) template: &'static str,
    /// Anchor of the test it is about; empty for a whole point.
    pub(crate) test: String,
    pub(crate) text: String,
}

/// Writes every sentence whose guards hold.
///
/// Where which filesystem is best depends on a condition, `scopes` has it, and the sentence says
/// first for which value of it it holds.
pub(crate) fn findings(
    suites: &[Suite],
    filesystems: &[Filesystem],
    facts: &Facts,
    scopes: &Scopes,
) -> Findings {
    let points = suites.iter().flat_map(|suite| &suite.points);
    let by_point = points.map(|point| of_point(point, filesystems, facts, scopes)).collect();
    Findings {
        by_point,
        scope: format!(
            "These numbers hold for these conditions: {}. Not tested: {}.",
            facts.conditions, facts.untested
        ),
    }
}

fn of_point(
    point: &WorkPoint,
    filesystems: &[Filesystem],
    facts: &Facts,
    scopes: &Scopes,
) -> PointClaims {
    let mut claims = Vec::new();
    let mut open = Vec::new();
    for test in &point.tests {
        let writer = Writer { test, point, filesystems, facts, scope: scopes.get(&test.id) };
        if let Some(family) = &test.family {
            claims.push(writer.lead(family));
            open.extend(writer.undecided(family));
        }
    }
    claims.extend(failures(point, filesystems));
    PointClaims { label: point.label.clone(), claims, open }
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

struct Writer<'a> {
    test: &'a Test,
    point: &'a WorkPoint,
    filesystems: &'a [Filesystem],
    facts: &'a Facts,
    /// The condition without which nothing may be said, and the label of the point without it.
    scope: Option<&'a (String, String)>,
}

impl Writer<'_> {
    /// C1 for a single winner, C2 for a top group, or what quick runs may say instead.
    fn lead(&self, family: &Family) -> Claim {
        let ranking = &family.ranking;
        let (best, k) = (ranking.order[0], ranking.order.len());
        let label = self.scope.map_or(&self.point.label, |(_, label)| label);
        let workload = format!("{}, {label}", self.test.name);
        let (template, text) = if self.facts.profile == Profile::Quick {
            let text = format!(
                "{} had the best median of {k} on {workload}: {}; the profile quick makes no \
                 claim of rank.",
                self.name(family, best),
                self.value(family, best)
            );
            ("C1-quick", text)
        } else if let [_] = ranking.top[..] {
            ("C1", self.winner(family, &workload))
        } else {
            let names: Vec<String> =
                ranking.top.iter().map(|member| self.name(family, *member)).collect();
            let share = |member: &usize| {
                let share = family.first.get(*member).copied().unwrap_or(Ratio(0.0));
                fixed(share.0, 2)
            };
            let shares: Vec<String> = ranking.top.iter().map(share).collect();
            let text = format!(
                "{} formed the top group of {k} on {workload}; the data do not separate them by \
                 more than δ = {:.0} % (P(first) {}; best median {}).",
                list(&names),
                self.facts.profile.threshold().0 * 100.0,
                shares.join(", "),
                self.value(family, best)
            );
            ("C2", text)
        };
        let text = match self.scope {
            Some((condition, _)) => format!("At {condition}: {text}"),
            None => text,
        };
        Claim { template, test: self.test.id.clone(), text }
    }

    fn winner(&self, family: &Family, workload: &str) -> String {
        let (best, next) = (family.ranking.order[0], family.ranking.order[1]);
        let space = self.test.metric == Metric::SpaceUsable;
        let word = if space { "best" } else { "fastest" };
        let over = family.ranking.pair(best, next).map_or(String::new(), |pair| {
            let comparison = &pair.comparison;
            let ratio = ratio(comparison.ratio.0, comparison.interval);
            let of = match self.test.metric.spec().better {
                Better::Lower => " in speed",
                Better::Higher | Better::Neither => "",
            };
            format!(", {ratio}{of} over the next, {}", self.name(family, next))
        });
        format!(
            "{} was the {word} of {} on {workload}: {}{over}.",
            self.name(family, best),
            family.ranking.order.len(),
            self.value(family, best)
        )
    }

    /// C5 for every member of the top group that is not decided against the best.
    fn undecided(&self, family: &Family) -> Vec<Claim> {
        let best = family.ranking.order[0];
        let threshold = self.facts.profile.threshold().0 * 100.0;
        let others = family.ranking.top.iter().filter(|member| **member != best);
        let claim = |member: &usize| {
            let pair = family.ranking.pair(best, *member)?;
            let how = match pair.comparison.verdict {
                Verdict::Inconclusive { .. } if !pair.comparison.ratios_agree => {
                    "median and ratio disagree".into()
                }
                Verdict::Inconclusive { needed } => {
                    format!("about {needed} runs each would decide a {threshold:.0} % difference")
                }
                Verdict::Differs { side: Side::Worse, .. } => "median and ratio disagree".into(),
                Verdict::Differs { size: Size::AtLeast | Size::Uncertain, .. } => {
                    "the difference does not survive the correction for all pairs".into()
                }
                Verdict::Differs { size: Size::Negligible, .. } | Verdict::Equivalent => {
                    return None;
                }
            };
            let text = format!(
                "No conclusion for {} vs {} on {}, {}: ratio {}; {how}.",
                self.name(family, best),
                self.name(family, *member),
                self.test.name,
                self.point.label,
                ratio(pair.comparison.ratio.0, pair.comparison.interval)
            );
            Some(Claim { template: "C5", test: self.test.id.clone(), text })
        };
        others.filter_map(claim).collect()
    }

    fn entry(&self, family: &Family, member: usize) -> &Entry {
        &self.test.entries[family.members[member]]
    }

    fn name(&self, family: &Family, member: usize) -> String {
        self.filesystems[self.entry(family, member).filesystem].name.clone()
    }

    /// `1.873 GiB/s [1.842, 1.904] durable throughput, n = 12`.
    fn value(&self, family: &Family, member: usize) -> String {
        let Some(summary) = &self.entry(family, member).summary else {
            return String::new();
        };
        let shown = self.test.scale.shown(summary);
        let interval =
            shown.interval.map_or(String::new(), |(low, high)| format!(" [{low}, {high}]"));
        format!(
            "{} {}{interval} {}, n = {}",
            shown.value,
            self.test.scale.name,
            words(self.test.metric),
            summary.n
        )
    }
}

/// `a`, `a and b`, `a, b, and c`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [others @ .., last] => format!("{}, and {last}", others.join(", ")),
    }
}
