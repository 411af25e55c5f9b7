//! Findings C1 to C5 about the filesystems of one test: fastest filesystem, top group, slowest
//! filesystem, equivalent filesystems, and inconclusive comparisons.

use crate::view::FindingKind;
use analysis::{
    Ranking, Side, Size, Verdict,
    ranks::Pair,
    summary::{LEVEL, needed},
};
use model::{Ratio, metric::Better};

use super::{
    Answer, PointFindings, TestContext, WithheldFinding, disagreement, list,
    obstacle::{Obstacle, too_few},
};
use crate::{
    units::{distinct, fixed, grouped, ratio},
    view::{
        points::{Entry, Family},
        raw,
        tables::metric_label,
    },
};

/// Minimum number of filesystems for C3. With two, C1 implies the slowest one.
const FOR_SLOWEST: usize = 3;

/// Adds the findings about the filesystems of one test.
pub(super) fn answers(context: &TestContext, findings: &mut PointFindings) {
    // A metric without a direction has no best filesystem.
    if context.test.metric.spec().better == Better::Neither {
        let name = context.test.metric.name();
        let question = format!("{} on {}", best_of(context), context.workload());
        let reason = format!("{name} is informational: neither more nor less is better");
        findings.on_request.push(context.withheld(
            FindingKind::C1,
            question,
            reason,
            String::new(),
        ));
        return;
    }
    findings.extend(raw::answer(context));
    let Some(family) = &context.test.family else {
        findings.on_request.push(no_family(context));
        return;
    };
    let writer = Writer { context, family, ranking: &family.ranking };
    let (lead, no_winner) = writer.lead();
    findings.extend([lead]);
    findings.on_request.extend(no_winner);
    findings.extend(writer.undecided());
    findings.extend_on_request([writer.slowest(), writer.equivalent()].into_iter().flatten());
    findings.on_request.extend(writer.unranked());
}

/// Withheld C1 of a test with fewer than two comparable filesystems.
fn no_family(context: &TestContext) -> WithheldFinding {
    let question = format!("{} on {}", best_of(context), context.workload());
    let measured = context.test.entries.iter().any(|entry| entry.summary.is_some());
    if let ([only], true) = (context.filesystems, measured) {
        let reason = format!("the plan has one filesystem, {}", only.name);
        return context.withheld(
            FindingKind::C1,
            question,
            reason,
            "add another to the plan".into(),
        );
    }
    let entries = context.entries().into_iter();
    let reasons = grouped(
        entries.filter_map(|entry| Some((Obstacle::of(entry)?.reason(entry), context.name(entry)))),
    );
    let reason = |(reason, names): (String, Vec<&str>)| format!("{}: {reason}", names.join(", "));
    let reasons: Vec<String> = reasons.into_iter().map(reason).collect();
    let few = context.entries().iter().any(|entry| too_few(entry).is_some());
    let hint = match few {
        true => format!("run at least {} repetitions of each filesystem", needed(LEVEL)),
        false => hints(context),
    };
    let reason = match reasons.is_empty() {
        true => "fewer than two filesystems were measured".into(),
        false => format!("fewer than two filesystems are comparable ({})", reasons.join("; ")),
    };
    context.withheld(FindingKind::C1, question, reason, hint)
}

/// Hints for all filesystems of a test that are not ranked, without duplicates.
pub(super) fn hints(context: &TestContext) -> String {
    let entries = context.entries().into_iter();
    let hints = entries.filter_map(|entry| Some(Obstacle::of(entry)?.hint()));
    distinct(hints.filter(|hint| !hint.is_empty())).join("; ")
}

/// Subject of C1, such as `fastest filesystem`.
fn best_of(context: &TestContext) -> &'static str {
    context.by_quantity(
        "filesystem with the most available space",
        "filesystem with the fewest guest instructions",
        "fastest filesystem",
    )
}

/// Subject of C3, such as `slowest filesystem`.
fn worst_of(context: &TestContext) -> &'static str {
    context.by_quantity(
        "filesystem with the least available space",
        "filesystem with the most guest instructions",
        "slowest filesystem",
    )
}

/// Predicate of C5, such as `is faster`.
fn is_better(context: &TestContext) -> &'static str {
    context.by_quantity("has more available space", "uses fewer guest instructions", "is faster")
}

struct Writer<'a> {
    context: &'a TestContext<'a>,
    family: &'a Family,
    ranking: &'a Ranking,
}

impl Writer<'_> {
    /// C1 for a single winner, or C2 for a top group, together with the withheld C1. If the test
    /// contradicts the order of the medians in the top group, C1 is withheld.
    fn lead(&self) -> (Answer, Option<WithheldFinding>) {
        let context = self.context;
        let k = self.ranking.order.len();
        let workload = self.workload();
        let mut withheld_winner = None;
        let (kind, text) = if let Some(pair) = self.reversed(&self.ranking.top) {
            let question = format!("{} on {workload}", best_of(context));
            let withheld =
                context.withheld(FindingKind::C1, question, self.opposite(pair), String::new());
            return (Answer::Withheld(withheld), None);
        } else if let [_] = self.ranking.top[..] {
            (FindingKind::C1, self.winner(&workload))
        } else {
            withheld_winner = Some(self.no_winner(&workload));
            (FindingKind::C2, self.top_group(k, &workload))
        };
        (context.found(kind, self.scoped(text)), withheld_winner)
    }

    /// Test and workload point, without the condition that [`Writer::scoped`] puts first.
    fn workload(&self) -> String {
        let label = self.context.scope.map_or(&self.context.point.label, |(_, label)| label);
        format!("{}, {label}", self.context.test.name)
    }

    fn scoped(&self, text: String) -> String {
        match self.context.scope {
            Some((condition, _)) => format!("At {condition}: {text}"),
            None => text,
        }
    }

    /// First pair of these members whose significant difference contradicts the order of their
    /// medians.
    fn reversed(&self, among: &[usize]) -> Option<&Pair> {
        let within = |pair: &&Pair| among.contains(&pair.better) && among.contains(&pair.other);
        self.ranking.pairs.iter().filter(within).find(|pair| pair.is_contradictory())
    }

    /// Reason for withholding a finding because of a pair that contradicts the order of the
    /// medians.
    fn opposite(&self, pair: &Pair) -> String {
        let comparison = &pair.comparison;
        format!(
            "medians and test disagree: {} has the better median, but {} is significantly better \
             (ratio {}{})",
            self.name(pair.better),
            self.name(pair.other),
            ratio(comparison.ratio.0, comparison.interval),
            self.rounds(pair).map_or(String::new(), |rounds| format!(", {rounds}"))
        )
    }

    /// `in the 8 rounds both completed`, if not all values of both were compared. After alignment,
    /// the rounds are those that all filesystems completed.
    fn rounds(&self, pair: &Pair) -> Option<String> {
        let all = |member| self.entry(member).values.len();
        let (of, n) = (all(pair.better).max(all(pair.other)), pair.comparison.n_first);
        let both = if self.family.aligned { "all" } else { "both" };
        (of > n as usize).then(|| format!("in the {n} rounds {both} completed"))
    }

    fn top_group(&self, k: usize, workload: &str) -> String {
        let top = &self.ranking.top;
        let share = |member: &usize| {
            let share = self.ranking.first.get(*member).copied().unwrap_or(Ratio(0.0));
            fixed(share.0, 2)
        };
        let shares: Vec<String> = top.iter().map(share).collect();
        format!(
            "{} form the top group of {k} filesystems on {workload}: no significant difference \
             from the best, or less than {} (probability of rank 1: {}; best median {}).",
            list(&self.names(top)),
            self.context.facts.margin.label(),
            shares.join(", "),
            self.value(self.ranking.order[0])
        )
    }

    fn winner(&self, workload: &str) -> String {
        let (best, next) = (self.ranking.order[0], self.ranking.order[1]);
        let lead = self.ranking.pair(best, next).map_or(String::new(), |pair| {
            let comparison = &pair.comparison;
            let (next, ratio) = (self.name(next), ratio(comparison.ratio.0, comparison.interval));
            if let Some(why) = disagreement(comparison) {
                return format!(
                    "; the lead over {next} is not quantified because estimates disagree: \
                     {ratio}, but {why}"
                );
            }
            let rounds = self.rounds(pair).map_or(String::new(), |rounds| format!(" {rounds}"));
            self.context.by_quantity(
                format!("; space {ratio} relative to the runner-up, {next}{rounds}"),
                format!("; the runner-up, {next}, used {ratio} as many{rounds}"),
                format!("; speed {ratio} relative to the runner-up, {next}{rounds}"),
            )
        });
        let verb = self.context.by_quantity(
            "had the most available space",
            "used the fewest guest instructions",
            "was the fastest",
        );
        format!(
            "{} {verb} of {} filesystems on {workload}: {}{lead}.",
            self.name(best),
            self.ranking.order.len(),
            self.value(best)
        )
    }

    /// Withheld C1 of a top group with several members.
    fn no_winner(&self, workload: &str) -> WithheldFinding {
        let best = self.ranking.order[0];
        let others: Vec<usize> =
            self.ranking.top.iter().copied().filter(|member| *member != best).collect();
        let open = others.iter().filter_map(|member| self.ranking.pair(best, *member));
        let hint = self.more(open);
        let question = format!(
            "whether {} is the only {} on {workload}",
            self.name(best),
            best_of(self.context)
        );
        let reason = format!(
            "no significant difference between {} and {}, or less than {}",
            self.name(best),
            list(&self.names(&others)),
            self.context.facts.margin.label()
        );
        self.context.withheld(FindingKind::C1, question, reason, hint)
    }

    /// Hint for inconclusive pairs: the largest number of repetitions that any pair needs. Pairs
    /// whose estimates disagree are excluded, because further repetitions do not resolve the
    /// disagreement. Empty if no pair remains.
    fn more<'p>(&self, pairs: impl Iterator<Item = &'p Pair>) -> String {
        let needs = pairs.filter_map(|pair| match pair.comparison.verdict {
            Verdict::Inconclusive { needed } if disagreement(&pair.comparison).is_none() => {
                Some((needed, pair.comparison.n_first.min(pair.comparison.n_second)))
            }
            Verdict::Inconclusive { .. } | Verdict::Equivalent | Verdict::Differs { .. } => None,
        });
        needs.max().map_or(String::new(), |(needed, n)| {
            let margin = self.context.facts.margin.percent();
            let more = match needed.saturating_sub(n) {
                0 => String::new(),
                more => format!(" ({more} more)"),
            };
            format!("about {needed} repetitions each{more} would detect a difference of {margin}")
        })
    }

    /// Withheld C5 for each member of the top group, unless its difference from the best is
    /// equivalent or negligible.
    fn undecided(&self) -> Vec<Answer> {
        let best = self.ranking.order[0];
        let others = self.ranking.top.iter().filter(|member| **member != best);
        let open = |member: &usize| {
            let pair = self.ranking.pair(best, *member)?;
            let why = match pair.comparison.verdict {
                Verdict::Inconclusive { .. } => disagreement(&pair.comparison)
                    .map_or(String::new(), |why| format!(", but {why}")),
                Verdict::Differs { side: Side::Worse, .. } => {
                    ", but medians and test disagree".into()
                }
                Verdict::Differs { size: Size::AtLeast | Size::Uncertain, .. } => {
                    ", not significant after adjustment for multiple comparisons".into()
                }
                Verdict::Differs { size: Size::Negligible, .. } | Verdict::Equivalent => {
                    return None;
                }
            };
            let question = format!(
                "whether {} or {} {} on {}",
                self.name(best),
                self.name(*member),
                is_better(self.context),
                self.context.workload(),
            );
            let ratio = ratio(pair.comparison.ratio.0, pair.comparison.interval);
            let hint = self.more(std::iter::once(pair));
            let reason = format!("ratio {ratio}{why}");
            Some(Answer::Withheld(self.context.withheld(FindingKind::C5, question, reason, hint)))
        };
        others.filter_map(open).collect()
    }

    /// C3: the only member of the bottom group. `None` if fewer than [`FOR_SLOWEST`] filesystems
    /// are compared, or if the difference from the best has no lower bound.
    fn slowest(&self) -> Option<Answer> {
        let context = self.context;
        if self.ranking.order.len() < FOR_SLOWEST {
            return None;
        }
        let question = format!("{} on {}", worst_of(context), self.workload());
        let best = self.ranking.order[0];
        let bottom = &self.ranking.bottom;
        if let Some(pair) = self.reversed(bottom) {
            let withheld =
                context.withheld(FindingKind::C3, question, self.opposite(pair), String::new());
            return Some(Answer::Withheld(withheld));
        }
        let [last] = bottom[..] else {
            let last = *bottom.first()?;
            let pairs = bottom.iter().filter_map(|member| self.ranking.pair(last, *member));
            let names = list(&self.names(bottom));
            let reason = format!("no significant difference between {names}");
            let hint = self.more(pairs);
            return Some(Answer::Withheld(context.withheld(
                FindingKind::C3,
                question,
                reason,
                hint,
            )));
        };
        let pair = self.ranking.pair(best, last)?;
        let comparison = &pair.comparison;
        let lead = comparison.interval.map(|interval| interval.low).filter(|low| *low > 1.0)?;
        // The lower end of the interval is rounded down, because the text says "at least".
        let percent = (1000.0 * (1.0 - 1.0 / lead)).floor() / 10.0;
        let percent = fixed(percent, if percent < 10.0 { 1 } else { 0 });
        let best = self.name(best);
        let gap = match disagreement(comparison) {
            // Without an effect size if its estimates disagree.
            Some(_) => context.by_quantity(
                format!("; {best} had the most"),
                format!("; {best} used the fewest"),
                format!("; the fastest was {best}"),
            ),
            None => context.by_quantity(
                format!(", at least {percent} % less than {best}, which had the most"),
                format!("; {best}, which used the fewest, used at least {percent} % fewer"),
                format!(", at least {percent} % slower than the fastest, {best}"),
            ),
        };
        let verb = context.by_quantity(
            "had the least available space",
            "used the most guest instructions",
            "was the slowest",
        );
        let text = format!(
            "{} {verb} of {} filesystems on {}: {}{gap}{}.",
            self.name(last),
            self.ranking.order.len(),
            self.workload(),
            self.value(last),
            self.rounds(pair).map_or(String::new(), |rounds| format!(" {rounds}")),
        );
        Some(context.found(FindingKind::C3, self.scoped(text)))
    }

    /// C4: all pairs that are equivalent within the margin, in one finding.
    fn equivalent(&self) -> Option<Answer> {
        let context = self.context;
        let within = context.facts.margin.percent();
        let question = format!("equivalent filesystems within ±{within} on {}", self.workload());
        let pairs = &self.ranking.pairs;
        let equivalent = pairs.iter().filter(|pair| pair.comparison.verdict == Verdict::Equivalent);
        let pair =
            |pair: &Pair| format!("{} and {}", self.name(pair.better), self.name(pair.other));
        let text = match &equivalent.collect::<Vec<_>>()[..] {
            [] => {
                let open =
                    |pair: &&Pair| matches!(pair.comparison.verdict, Verdict::Inconclusive { .. });
                let inconclusive = pairs.iter().filter(open).count();
                let reason = format!(
                    "none of {} pairs is equivalent; {inconclusive} {} inconclusive",
                    pairs.len(),
                    if inconclusive == 1 { "is" } else { "are" }
                );
                let hint = self.more(pairs.iter());
                return Some(Answer::Withheld(context.withheld(
                    FindingKind::C4,
                    question,
                    reason,
                    hint,
                )));
            }
            [one] => format!(
                "{} were equivalent within ±{within} on {} (ratio {}; n = {} and {}).",
                pair(one),
                self.workload(),
                ratio(one.comparison.ratio.0, one.comparison.interval),
                one.comparison.n_second,
                one.comparison.n_first
            ),
            several => {
                let each: Vec<String> = several.iter().copied().map(pair).collect();
                format!("Equivalent within ±{within} on {}: {}.", self.workload(), each.join("; "))
            }
        };
        Some(context.found(FindingKind::C4, self.scoped(text)))
    }

    /// Withheld ranks of the filesystems that are not compared.
    fn unranked(&self) -> Vec<WithheldFinding> {
        let entries = self.context.entries().into_iter();
        let open = |entry: &Entry| {
            let obstacle = Obstacle::of(entry)?;
            let (reason, hint) = (obstacle.reason(entry), obstacle.hint());
            let name = self.context.name(entry);
            let question = format!("rank of {name} on {}", self.context.workload());
            Some(self.context.withheld(FindingKind::C1, question, reason, hint))
        };
        entries.filter_map(open).collect()
    }

    fn entry(&self, member: usize) -> &Entry {
        &self.context.test.entries[self.family.members[member]]
    }

    fn name(&self, member: usize) -> String {
        self.context.name(self.entry(member)).to_owned()
    }

    fn names(&self, members: &[usize]) -> Vec<String> {
        members.iter().map(|member| self.name(*member)).collect()
    }

    /// `1.873 GiB/s [1.842, 1.904] durable throughput, n = 12`.
    fn value(&self, member: usize) -> String {
        let Some(summary) = &self.entry(member).summary else {
            return String::new();
        };
        let test = self.context.test;
        let shown = test.scale.shown(summary);
        let interval =
            shown.interval.map_or(String::new(), |(low, high)| format!(" [{low}, {high}]"));
        format!(
            "{} {}{interval} {}, n = {}",
            shown.value,
            test.scale.name,
            metric_label(test.metric),
            summary.n
        )
    }
}
