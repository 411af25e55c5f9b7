//! C1 to C5: which filesystem is best at one test, which is last, which are the same, and which
//! comparisons are open.

use analysis::{
    Ranking, Side, Size, Verdict,
    ranks::Pair,
    summary::{LEVEL, needed},
};
use model::{Ratio, metric::Better};

use super::{About, Answer, PointClaims, Withheld, disagreement, list};
use crate::{
    units::{fixed, ratio},
    view::{
        points::{Entry, Family, Status},
        tables::words,
    },
};

/// Filesystems that it takes to speak of the slowest: of two, the other is the slower one.
const FOR_SLOWEST: usize = 3;

/// All answers about the filesystems of one test.
pub(super) fn answers(about: &About, claims: &mut PointClaims) {
    // Evidence without direction is no contest.
    if about.test.metric.spec().better == Better::Neither {
        return;
    }
    let Some(family) = &about.test.family else {
        claims.unsaid.push(no_family(about));
        return;
    };
    let writer = Writer { about, family, ranking: &family.ranking };
    let (lead, beside) = writer.lead();
    claims.extend([lead]);
    claims.unsaid.extend(beside);
    claims.extend(writer.undecided());
    claims.extend_quietly([writer.slowest(), writer.equivalent()].into_iter().flatten());
    claims.unsaid.extend(writer.unranked());
}

/// Why nothing is compared.
fn no_family(about: &About) -> Withheld {
    let question = format!("which filesystem is {} on {}", superlative(about), about.workload());
    if let [only] = about.filesystems {
        let missing = format!("the plan has one filesystem, {}", only.name);
        return about.withheld("C1", question, missing, "add another to the plan".into());
    }
    let reasons: Vec<String> = about
        .entries()
        .into_iter()
        .filter_map(|entry| Some(format!("{}: {}", about.name(entry), barred(entry)?.0)))
        .collect();
    let few = about.entries().iter().any(|entry| too_few(entry).is_some());
    let cure = match few {
        true => format!("at least {} repeats of each", needed(LEVEL)),
        false => cures(about),
    };
    let missing = match reasons.is_empty() {
        true => "fewer than two filesystems were measured".into(),
        false => format!("fewer than two filesystems may be compared ({})", reasons.join("; ")),
    };
    about.withheld("C1", question, missing, cure)
}

/// Why a filesystem is not ranked, and what would help.
pub(super) fn barred(entry: &Entry) -> Option<(String, String)> {
    if let Status::Nothing(reason) = &entry.status {
        return Some((reason.clone(), String::new()));
    }
    if entry.failed.is_some() {
        return Some((entry.failed_repeats(), "a repeat that fails is a result".into()));
    }
    if let Some(more) = too_few(entry) {
        let n = entry.values.len();
        let cure = format!("{more} more repeats");
        return Some((format!("n = {n}, {} are needed", needed(LEVEL)), cure));
    }
    let codes: Vec<&str> = entry.barring.iter().map(|(code, _)| *code).collect();
    let cures: Vec<&str> = entry.barring.iter().map(|(_, cure)| *cure).collect();
    let missing = format!("no claim is made from it ({})", codes.join(", "));
    (!entry.ranked).then(|| (missing, cures.join("; ")))
}

/// What would help all filesystems of a test that are not ranked, each cure once.
pub(super) fn cures(about: &About) -> String {
    let mut all: Vec<String> = Vec::new();
    for (_, cure) in about.entries().into_iter().filter_map(barred) {
        if !cure.is_empty() && !all.contains(&cure) {
            all.push(cure);
        }
    }
    all.join("; ")
}

/// Repeats that it lacks for an interval, if it lacks any.
fn too_few(entry: &Entry) -> Option<u32> {
    let summary = entry.summary.as_ref()?;
    needed(LEVEL).checked_sub(summary.n).filter(|more| *more > 0)
}

fn superlative(about: &About) -> &'static str {
    about.degree("best", "cheapest", "fastest")
}

struct Writer<'a> {
    about: &'a About<'a>,
    family: &'a Family,
    ranking: &'a Ranking,
}

impl Writer<'_> {
    /// C1 for a single winner, or C2 for a top group with what a winner lacks.
    fn lead(&self) -> (Answer, Option<Withheld>) {
        let about = self.about;
        let k = self.ranking.order.len();
        let workload = self.workload();
        let mut beside = None;
        let (template, text) = if let Some(pair) = self.reversed(&self.ranking.top) {
            let question = format!("which filesystem is {} on {workload}", superlative(about));
            let withheld = about.withheld("C1", question, self.opposite(pair), String::new());
            return (Answer::Withheld(withheld), None);
        } else if let [_] = self.ranking.top[..] {
            ("C1", self.winner(&workload))
        } else {
            beside = Some(self.no_winner(&workload));
            ("C2", self.top_group(k, &workload))
        };
        (about.said(template, self.scoped(text)), beside)
    }

    /// The test and its point, without the condition that the sentence names first.
    fn workload(&self) -> String {
        let label = self.about.scope.map_or(&self.about.point.label, |(_, label)| label);
        format!("{}, {label}", self.about.test.name)
    }

    fn scoped(&self, text: String) -> String {
        match self.about.scope {
            Some((condition, _)) => format!("At {condition}: {text}"),
            None => text,
        }
    }

    /// A pair of some members that is told apart against the order.
    fn reversed(&self, among: &[usize]) -> Option<&Pair> {
        let within = |pair: &&Pair| among.contains(&pair.better) && among.contains(&pair.other);
        self.ranking.pairs.iter().filter(within).find(|pair| pair.reversed())
    }

    /// What such a pair says.
    fn opposite(&self, pair: &Pair) -> String {
        let comparison = &pair.comparison;
        format!(
            "order and comparison disagree: {} has the better median, and {} is told apart from it \
             as the better one (ratio {}{})",
            self.name(pair.better),
            self.name(pair.other),
            ratio(comparison.ratio.0, comparison.interval),
            self.blocks(pair).map_or(String::new(), |blocks| format!(", {blocks}"))
        )
    }

    /// `in the 8 blocks that both have`, where a pair was not compared by all values of both.
    fn blocks(&self, pair: &Pair) -> Option<String> {
        let all = |member| self.entry(member).values.len();
        let (of, n) = (all(pair.better).max(all(pair.other)), pair.comparison.n_first);
        let both = if self.family.aligned { "all" } else { "both" };
        (of > n as usize).then(|| format!("in the {n} blocks that {both} have"))
    }

    fn top_group(&self, k: usize, workload: &str) -> String {
        let top = &self.ranking.top;
        let share = |member: &usize| {
            let share = self.ranking.first.get(*member).copied().unwrap_or(Ratio(0.0));
            fixed(share.0, 2)
        };
        let shares: Vec<String> = top.iter().map(share).collect();
        format!(
            "{} formed the top group of {k} on {workload}; the data do not separate them by more \
             than {} (P(first) {}; best median {}).",
            list(&self.names(top)),
            self.about.facts.threshold.words(),
            shares.join(", "),
            self.value(self.ranking.order[0])
        )
    }

    fn winner(&self, workload: &str) -> String {
        let (best, next) = (self.ranking.order[0], self.ranking.order[1]);
        let over = self.ranking.pair(best, next).map_or(String::new(), |pair| {
            let comparison = &pair.comparison;
            if let Some(why) = disagreement(comparison) {
                return format!(
                    "; ahead of the next, {}, by how much is not told: ratio {}, and {why}",
                    self.name(next),
                    ratio(comparison.ratio.0, comparison.interval)
                );
            }
            let ratio = ratio(comparison.ratio.0, comparison.interval);
            let of = match self.about.test.metric.spec().better {
                Better::Lower => self.about.degree("", " in instructions", " in speed"),
                Better::Higher | Better::Neither => "",
            };
            let blocks = self.blocks(pair).map_or(String::new(), |blocks| format!(" {blocks}"));
            format!(", {ratio}{of} over the next, {}{blocks}", self.name(next))
        });
        format!(
            "{} was the {} of {} on {workload}: {}{over}.",
            self.name(best),
            superlative(self.about),
            self.ranking.order.len(),
            self.value(best)
        )
    }

    /// Why the top group has several members.
    fn no_winner(&self, workload: &str) -> Withheld {
        let best = self.ranking.order[0];
        let others: Vec<usize> =
            self.ranking.top.iter().copied().filter(|member| *member != best).collect();
        let open = others.iter().filter_map(|member| self.ranking.pair(best, *member));
        let cure = self.more(open);
        let question = format!(
            "whether {} alone is {} on {workload}",
            self.name(best),
            superlative(self.about)
        );
        let missing = format!(
            "{} {} not told apart from it, or only by less than {}",
            list(&self.names(&others)),
            if others.len() == 1 { "is" } else { "are" },
            self.about.facts.threshold.words()
        );
        self.about.withheld("C1", question, missing, cure)
    }

    /// What would decide open pairs: the largest number of repeats that any of them needs. Nothing
    /// for those that repeats do not decide, since two ways to compare them disagree.
    fn more<'p>(&self, pairs: impl Iterator<Item = &'p Pair>) -> String {
        let needs = pairs.filter_map(|pair| match pair.comparison.verdict {
            Verdict::Inconclusive { needed } if disagreement(&pair.comparison).is_none() => {
                Some((needed, pair.comparison.n_first.min(pair.comparison.n_second)))
            }
            Verdict::Inconclusive { .. } | Verdict::Equivalent | Verdict::Differs { .. } => None,
        });
        needs.max().map_or(String::new(), |(needed, n)| {
            let threshold = self.about.facts.threshold.percent();
            let more = match needed.saturating_sub(n) {
                0 => String::new(),
                more => format!(" ({more} more)"),
            };
            format!("about {needed} repeats each would decide a {threshold} difference{more}")
        })
    }

    /// C5 for every member of the top group that is not decided against the best.
    fn undecided(&self) -> Vec<Answer> {
        let best = self.ranking.order[0];
        let others = self.ranking.top.iter().filter(|member| **member != best);
        let open = |member: &usize| {
            let pair = self.ranking.pair(best, *member)?;
            let why = match pair.comparison.verdict {
                Verdict::Inconclusive { .. } => disagreement(&pair.comparison)
                    .map_or(String::new(), |why| format!(", and {why}")),
                Verdict::Differs { side: Side::Worse, .. } => {
                    ", and order and comparison disagree".into()
                }
                Verdict::Differs { size: Size::AtLeast | Size::Uncertain, .. } => {
                    ", a difference that does not survive the correction for all pairs".into()
                }
                Verdict::Differs { size: Size::Negligible, .. } | Verdict::Equivalent => {
                    return None;
                }
            };
            let about = format!(
                "whether {} or {} is {} on {}",
                self.name(best),
                self.name(*member),
                self.about.better(),
                self.about.workload(),
            );
            let ratio = ratio(pair.comparison.ratio.0, pair.comparison.interval);
            let cure = self.more(std::iter::once(pair));
            let missing = format!("ratio {ratio}{why}");
            Some(Answer::Withheld(self.about.withheld("C5", about, missing, cure)))
        };
        others.filter_map(open).collect()
    }

    /// C3: a last one that all others are told apart from.
    fn slowest(&self) -> Option<Answer> {
        let about = self.about;
        if self.ranking.order.len() < FOR_SLOWEST {
            return None;
        }
        let word = about.degree("last", "dearest", "slowest");
        let question = format!("which filesystem is the {word} on {}", self.workload());
        let best = self.ranking.order[0];
        let bottom = &self.ranking.bottom;
        if let Some(pair) = self.reversed(bottom) {
            let withheld = about.withheld("C3", question, self.opposite(pair), String::new());
            return Some(Answer::Withheld(withheld));
        }
        let [last] = bottom[..] else {
            let last = *bottom.first()?;
            let pairs = bottom.iter().filter_map(|member| self.ranking.pair(last, *member));
            let missing = format!("{} are not told apart", list(&self.names(bottom)));
            let cure = self.more(pairs);
            return Some(Answer::Withheld(about.withheld("C3", question, missing, cure)));
        };
        let pair = self.ranking.pair(best, last)?;
        let comparison = &pair.comparison;
        let lead = comparison.interval.map(|interval| interval.low).filter(|low| *low > 1.0)?;
        // The interval tells by how much at least; never more than it says.
        let behind = (1000.0 * (1.0 - 1.0 / lead)).floor() / 10.0;
        let by = match disagreement(comparison) {
            // Ways to compare that disagree about the size: none is told.
            Some(_) => String::new(),
            None => format!("at least {} % ", fixed(behind, if behind < 10.0 { 1 } else { 0 })),
        };
        let text = format!(
            "{} was the {word} of {} on {}, {by}behind the best, {}{}: {}.",
            self.name(last),
            self.ranking.order.len(),
            self.workload(),
            self.name(best),
            self.blocks(pair).map_or(String::new(), |blocks| format!(", {blocks}")),
            self.value(last)
        );
        Some(about.said("C3", self.scoped(text)))
    }

    /// C4: all pairs that are the same within the threshold, in one sentence.
    fn equivalent(&self) -> Option<Answer> {
        let about = self.about;
        let within = about.facts.threshold.percent();
        let question =
            format!("which filesystems are the same within ±{within} on {}", self.workload());
        let pairs = &self.ranking.pairs;
        let same = pairs.iter().filter(|pair| pair.comparison.verdict == Verdict::Equivalent);
        let pair =
            |pair: &Pair| format!("{} and {}", self.name(pair.better), self.name(pair.other));
        let text = match &same.collect::<Vec<_>>()[..] {
            [] => {
                let open =
                    |pair: &&Pair| matches!(pair.comparison.verdict, Verdict::Inconclusive { .. });
                let undecided = pairs.iter().filter(open).count();
                let missing = format!(
                    "of {} pairs none is shown to be the same, and {undecided} {} open",
                    pairs.len(),
                    if undecided == 1 { "is" } else { "are" }
                );
                let cure = self.more(pairs.iter());
                return Some(Answer::Withheld(about.withheld("C4", question, missing, cure)));
            }
            [one] => format!(
                "{} were equivalent within ±{within} on {}: ratio {}, n = {} and {}.",
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
        Some(about.said("C4", self.scoped(text)))
    }

    /// Filesystems that the family lacks.
    fn unranked(&self) -> Vec<Withheld> {
        let entries = self.about.entries().into_iter();
        let open = |entry: &Entry| {
            let (missing, cure) = barred(entry)?;
            let name = self.about.name(entry);
            let question = format!("where {name} stands on {}", self.about.workload());
            Some(self.about.withheld("C1", question, missing, cure))
        };
        entries.filter_map(open).collect()
    }

    fn entry(&self, member: usize) -> &Entry {
        &self.about.test.entries[self.family.members[member]]
    }

    fn name(&self, member: usize) -> String {
        self.about.name(self.entry(member)).to_owned()
    }

    fn names(&self, members: &[usize]) -> Vec<String> {
        members.iter().map(|member| self.name(*member)).collect()
    }

    /// `1.873 GiB/s [1.842, 1.904] durable throughput, n = 12`.
    fn value(&self, member: usize) -> String {
        let Some(summary) = &self.entry(member).summary else {
            return String::new();
        };
        let test = self.about.test;
        let shown = test.scale.shown(summary);
        let interval =
            shown.interval.map_or(String::new(), |(low, high)| format!(" [{low}, {high}]"));
        format!(
            "{} {}{interval} {}, n = {}",
            shown.value,
            test.scale.name,
            words(test.metric),
            summary.n
        )
    }
}
