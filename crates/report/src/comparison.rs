//! Runs against each other, told: as text for a terminal, as Markdown for a comment, as JSON.
//!
//! A [`Chain`] of `analysis::runs` enters with the runs it was made of; text leaves. What may be
//! said was decided there; here sentences get their words, and numbers their units. Every sentence
//! is of template C11 ("… regressed by …"), C5 (what is not decided, and the repeats it would
//! take), or C12 (all tests together).

pub mod beside;
mod json;
mod markdown;
mod terminal;
mod words;

use analysis::{
    Side, Size, Verdict,
    changes::Change,
    runs::{AtGate, Chain, Gate, GateVerdict, History, Missing, Paired, TestPair},
};
use model::RunRecord;

pub use json::json;
pub use markdown::markdown;
pub use terminal::terminal;

use crate::{
    units::{capital, fixed, one_line},
    view::words as metric_words,
};

/// What a reader sees of a test at one glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Better,
    Worse,
    /// Found by screening, but no headline.
    MaybeBetter,
    MaybeWorse,
    Same,
    /// Told apart, by less than the threshold for certain.
    Small,
    Open,
    /// It is part of the anchor.
    Anchor,
    /// No claims may be made of these runs.
    NoClaim,
}

impl Mark {
    fn of(test: &TestPair, step: &Paired) -> Self {
        let Ok(comparison) = &test.comparison else { return Self::NoClaim };
        if !test.touched {
            return Self::Anchor;
        }
        if !step.refused.is_empty() {
            return Self::NoClaim;
        }
        let headline = test.headline().filter(|_| step.headlines);
        match (headline, comparison.verdict) {
            (Some(Side::Better), _) => Self::Better,
            (Some(Side::Worse), _) => Self::Worse,
            (None, Verdict::Equivalent) => Self::Same,
            (None, Verdict::Differs { size: Size::Negligible, .. }) => Self::Small,
            (None, Verdict::Differs { side, .. }) if test.found => match side {
                Side::Better => Self::MaybeBetter,
                Side::Worse => Self::MaybeWorse,
            },
            (None, Verdict::Differs { .. } | Verdict::Inconclusive { .. }) => Self::Open,
        }
    }

    /// Sign and word, so that neither color nor sign has to be seen.
    const fn words(self) -> &'static str {
        match self {
            Self::Better => "▲ better",
            Self::Worse => "▼ worse",
            Self::MaybeBetter => "△ maybe better",
            Self::MaybeWorse => "▽ maybe worse",
            Self::Same => "= same",
            Self::Small => "≈ small",
            Self::Open => "? open",
            Self::Anchor => "· anchor",
            Self::NoClaim => "– no claim",
        }
    }

    /// The color of a terminal, as in `ESC [ … m`: blue and yellow are told apart by all eyes.
    const fn color(self) -> Option<&'static str> {
        match self {
            Self::Better | Self::MaybeBetter => Some("34"),
            Self::Worse | Self::MaybeWorse => Some("33"),
            Self::Same | Self::Small | Self::Open | Self::Anchor | Self::NoClaim => None,
        }
    }
}

/// A sentence.
#[derive(Clone, Debug)]
struct Sentence {
    template: &'static str,
    mark: Mark,
    text: String,
}

/// One comparison in words.
#[derive(Clone, Debug)]
struct Told<'a> {
    step: &'a Paired,
    /// `B against A: kernel 6.1 -> 6.12`.
    title: String,
    /// The ways in words; empty for a repeat.
    ways: String,
    /// What stands above the numbers: what may not be claimed, and why.
    refused: Vec<String>,
    /// Headlines, regressions first.
    headlines: Vec<Sentence>,
    /// What screening found beyond them.
    listed: Vec<Sentence>,
    /// What is not decided.
    open: Vec<Sentence>,
    /// How many are the same, all together, thresholds, anchor.
    notes: Vec<String>,
}

impl<'a> Told<'a> {
    fn new(step: &'a Paired, names: (&str, &str)) -> Self {
        let ways = words::ways(&step.ways);
        let ways = ways.as_str();
        let about = match (ways, step.tests.is_empty()) {
            (_, true) => "nothing to compare",
            ("", false) => "a repeat under the same conditions",
            (ways, false) => ways,
        };
        let (first, second) = names;
        let of = |mark: Mark| {
            step.tests
                .iter()
                .filter(move |test| test.comparison.is_ok() && Mark::of(test, step) == mark)
        };
        let changed = |mark: Mark, template| {
            let sentence = move |test: &TestPair| Sentence {
                template,
                mark,
                text: words::changed(test, step, ways, names),
            };
            of(mark).map(sentence)
        };
        let open = of(Mark::Open).map(|test| Sentence {
            template: "C5",
            mark: Mark::Open,
            text: words::open(test, step),
        });
        Self {
            step,
            title: format!("{second} against {first}: {about}"),
            refused: step.refused.iter().map(|why| words::refusal(why, names)).collect(),
            headlines: changed(Mark::Worse, "C11").chain(changed(Mark::Better, "C11")).collect(),
            listed: changed(Mark::MaybeWorse, "C11-listed")
                .chain(changed(Mark::MaybeBetter, "C11-listed"))
                .collect(),
            open: open.collect(),
            notes: words::notes(step),
            ways: ways.to_owned(),
        }
    }

    /// The heading of what screening found.
    fn listing(&self) -> String {
        let family = &self.step.family;
        let quick = if self.step.headlines {
            ""
        } else {
            " A first look (profile quick) makes no more of it."
        };
        format!(
            "Listed by screening of {} tests: of these, about {:.0} % may be false.{quick}",
            family.tests,
            family.q * 100.0
        )
    }

    /// That nothing was found, if so; `None` where there is something to tell, or nothing at all.
    fn nothing(&self) -> Option<String> {
        let quiet = self.headlines.is_empty() && self.listed.is_empty();
        let own = || self.step.tests.iter().filter(|test| test.touched && test.comparison.is_ok());
        let tests = own().count();
        let apart = |test: &TestPair| test.interval.is_some_and(|interval| !interval.contains(1.0));
        let what = match own().any(apart) {
            true => format!("No difference that counts (from {} on)", words::least(self.step)),
            false => "No difference".into(),
        };
        (quiet && self.refused.is_empty() && tests > 0)
            .then(|| format!("{what} was found in {tests} tests."))
    }

    /// Under which level the intervals of sentences stand.
    fn level(&self) -> String {
        format!(
            "Intervals of listed tests are at {} %, so that of all that are listed {:.0} % hold.",
            fixed(self.step.family.level * 100.0, 2),
            (1.0 - self.step.family.q) * 100.0
        )
    }
}

/// Letters of runs in tables: A … Z, then by number.
fn name(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'A' + index).to_string(),
        Ok(_) | Err(_) => format!("R{}", index + 1),
    }
}

/// All comparisons in words.
fn told(chain: &Chain) -> Vec<Told<'_>> {
    let steps = chain.steps.iter().enumerate();
    steps.map(|(at, step)| Told::new(step, (&name(at), &name(at + 1)))).collect()
}

/// A run in one line: `2026-11-21-203100-k3x9 (ext4 or what)`.
fn named(run: &RunRecord) -> String {
    one_line(&format!("{} ({})", run.info.id, run.info.title))
}

/// The closing line of a gate.
pub fn verdict(gate: &Gate) -> String {
    let limit = words::limit(gate.rule.threshold.0);
    let strict = if gate.rule.strict { ", strict" } else { "" };
    let masked = gate.twins.map_or(String::new(), |twins| {
        format!(
            "; twins differ by {}, more than the gate: nothing can be said of {limit}, and worse \
             counts from there on",
            words::limit(twins.0)
        )
    });
    let machine = match gate.machine {
        true => "; the machine itself changed by more than the threshold",
        false => "",
    };
    let tests = |missing: &[Missing]| missing.iter().map(|missing| missing.tests).sum::<u32>();
    let lost = tests(&gate.failed) + tests(&gate.vanished);
    let all = gate.worse + gate.not_worse + gate.undecided + lost;
    let counts = format!(
        "{} of {all} tests shown not worse by {limit}, {} undecided{}{}",
        gate.not_worse,
        gate.undecided,
        match (gate.undecided, gate.rule.strict) {
            (0, _) => "",
            (_, false) => ", which pass as long as one of a step is decided",
            (_, true) => ", which do not pass",
        },
        if gate.not_worse > 0 { "; not worse is ok in column gate" } else { "" }
    );
    let lost = [
        (&gate.failed, "fail now and did not before"),
        (&gate.vanished, "of the first run are not in the second"),
    ];
    let lost = lost.into_iter().filter(|(missing, _)| !missing.is_empty());
    let lost = lost.map(|(missing, what)| {
        format!("; {} tests {what} ({})", tests(missing), words::some(missing))
    });
    let lost: String = lost.collect();
    let why = gate.refused.first().map(ToString::to_string);
    let words = match gate.verdict {
        GateVerdict::Passed => format!("passed; {counts}"),
        // Nothing was counted, since nothing may be claimed but that trials fail.
        GateVerdict::Failed if why.is_some() => {
            format!("failed{lost}; of the rest nothing is decided: {}", why.unwrap_or_default())
        }
        GateVerdict::Failed => {
            format!(
                "failed; {} of {all} tests shown worse by more than {limit}, {counts}{lost}",
                gate.worse
            )
        }
        GateVerdict::Undecided => match why {
            Some(why) => format!("undecided: {why}"),
            None => format!("undecided; {counts}{lost}"),
        },
        GateVerdict::Refused => {
            let why = why.unwrap_or_else(|| "no cell of one run is paired with the other's".into());
            format!("the runs cannot be compared: {why}")
        }
    };
    format!("gate {limit}{strict}: {words}{masked}{machine}")
}

/// What a test is at the gate, in a word for tables.
fn at_gate(test: &TestPair) -> &'static str {
    match test.gate {
        Some(AtGate::Worse) => "worse",
        Some(AtGate::NotWorse) => "ok",
        Some(AtGate::Undecided) => "?",
        Some(AtGate::Failed) => "fails",
        Some(AtGate::Vanished) => "gone",
        None => "",
    }
}

/// The tests that fail now and those shown worse at the gate, with the step they are of.
fn regressions(chain: &Chain) -> Vec<String> {
    let steps = chain.steps.iter().enumerate();
    let worse = steps.flat_map(|(at, step)| {
        let own = step.tests.iter().filter(|test| test.gate == Some(AtGate::Worse));
        own.map(move |test| {
            format!("{} against {}: {}", name(at + 1), name(at), words::named(test))
        })
    });
    let gate = chain.gate.iter();
    let failed = gate.flat_map(|gate| &gate.failed).map(|missing| {
        let at = missing.step;
        format!("{} against {}: {}", name(at + 1), name(at), words::missing(missing))
    });
    failed.chain(worse).collect()
}

/// Where tests changed over many runs, a line each.
fn histories(chain: &Chain) -> Vec<String> {
    let lines = |history: &History| {
        let place = |change: &Change| {
            // The run before it that has numbers of the test.
            let before = history.runs.iter().rev().find(|run| **run < change.at);
            format!(
                "between {} and {} to ×{}",
                name(before.copied().unwrap_or_default()),
                name(change.at),
                fixed(change.size.0, 3)
            )
        };
        let (metric, phase) = (metric_words(history.metric), &history.phase);
        let test = format!("{metric} of {}, {phase}", history.name);
        let changes: Vec<String> = history.changes.iter().map(place).collect();
        let told = (!changes.is_empty())
            .then(|| format!("{} changed {}.", capital(&test), changes.join(", ")));
        let doubted = history.doubted.iter().map(|doubted| {
            format!("No claim: {test}, {}: {}.", place(&doubted.change), doubted.why)
        });
        told.into_iter().chain(doubted).collect::<Vec<_>>()
    };
    chain.histories.iter().flat_map(lines).collect()
}

#[cfg(test)]
mod tests;
