//! Output of run comparisons: terminal, Markdown, and JSON.
//!
//! The input is a [`Chain`] of `analysis::runs` and its runs. Findings are derived there; this
//! module formats them, with templates C11 ("… regressed by …"), C5 (inconclusive, with the
//! repetitions needed), and C12 (all tests).

mod headline;
mod json;
mod phrases;
mod show;
pub mod side_by_side;
mod statements;

use crate::view::FindingKind;
use analysis::{
    Side, Size, Verdict,
    changes::Change,
    runs::{AtGate, Chain, Gate, GateVerdict, History, Missing, Paired, TestPair},
};
use model::RunRecord;

pub use json::json;
pub(crate) use show::mail;
pub use show::{html, markdown, terminal};
pub(crate) use statements::statements_section;
pub use statements::{StudyAudit, StudyError, study_of};

use crate::{
    units::{capital, fixed, one_line},
    view::metric_label,
};

/// Text of a condition that a source did not record.
pub(crate) const NOT_RECORDED: &str = "not recorded";

/// Result mark of a test, in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Worse,
    Better,
    /// Found by screening (false discovery rate), but not significant after Holm's adjustment.
    PossiblyWorse,
    PossiblyBetter,
    Inconclusive,
    /// Significant, but below the margin.
    Negligible,
    Equivalent,
    NegativeControl,
    /// The test has no comparison, or the runs yield no findings.
    NotCompared,
}

impl Mark {
    fn of(test: &TestPair, step: &Paired) -> Self {
        let Ok(comparison) = &test.comparison else { return Self::NotCompared };
        if !test.affected {
            return Self::NegativeControl;
        }
        if !step.obstacles.is_empty() {
            return Self::NotCompared;
        }
        let headline = test.headline().filter(|_| step.headlines);
        match (headline, comparison.verdict) {
            (Some(Side::Better), _) => Self::Better,
            (Some(Side::Worse), _) => Self::Worse,
            (None, Verdict::Equivalent) => Self::Equivalent,
            (None, Verdict::Differs { size: Size::Negligible, .. }) => Self::Negligible,
            (None, Verdict::Differs { side, .. }) if test.found => match side {
                Side::Better => Self::PossiblyBetter,
                Side::Worse => Self::PossiblyWorse,
            },
            (None, Verdict::Differs { .. } | Verdict::Inconclusive { .. }) => Self::Inconclusive,
        }
    }

    /// Sign and word, readable without color.
    const fn label(self) -> &'static str {
        match self {
            Self::Better => "▲ better",
            Self::Worse => "▼ worse",
            Self::PossiblyBetter => "△ possibly better",
            Self::PossiblyWorse => "▽ possibly worse",
            Self::Equivalent => "= equivalent",
            Self::Negligible => "≈ negligible",
            Self::Inconclusive => "? inconclusive",
            Self::NegativeControl => "· negative control",
            Self::NotCompared => "– not compared",
        }
    }

    /// Result of a test as text; the result at the gate, if there is a gate.
    fn result(self, test: &TestPair) -> String {
        let label = match (test.gate, self) {
            (None, _) | (Some(AtGate::NonInferior), Self::Better) => self.label(),
            (Some(AtGate::NonInferior), _) => "= non-inferior",
            (Some(AtGate::Worse), _) => "▼ worse",
            (Some(AtGate::Inconclusive), _) => "? inconclusive",
            (Some(AtGate::Failed), _) => "▼ failed",
            (Some(AtGate::Missing), _) => "▼ missing",
        };
        label.into()
    }

    fn sign(self) -> &'static str {
        self.label().split(' ').next().unwrap_or_default()
    }

    /// Class of the color of the mark in charts.
    const fn class(self) -> &'static str {
        match self {
            Self::Better | Self::PossiblyBetter => "better",
            Self::Worse | Self::PossiblyWorse => "worse",
            Self::Equivalent
            | Self::Negligible
            | Self::Inconclusive
            | Self::NegativeControl
            | Self::NotCompared => "even",
        }
    }
}

/// Finding, or inconclusive question.
#[derive(Clone, Debug)]
struct ComparisonFinding {
    kind: FindingKind,
    mark: Mark,
    text: String,
}

/// One comparison as text.
#[derive(Clone, Debug)]
struct RenderedComparison<'a> {
    step: &'a Paired,
    /// `B vs. A: kernel 6.1 -> 6.12`.
    title: String,
    /// Names of both runs.
    names: (String, String),
    /// Aspects that differ, as text; empty if the runs repeat the same conditions.
    aspects: String,
    /// Reasons for withholding all findings.
    obstacles: Vec<String>,
    /// Findings, regressions first.
    headlines: Vec<ComparisonFinding>,
    /// Further findings of the screening.
    listed: Vec<ComparisonFinding>,
    /// Inconclusive tests.
    open: Vec<ComparisonFinding>,
    /// Numbers of tests by result, mean over all tests, equivalence margin, and negative controls.
    notes: Vec<String>,
}

impl<'a> RenderedComparison<'a> {
    fn new(step: &'a Paired, names: (&str, &str)) -> Self {
        let aspects = phrases::aspects(&step.aspects);
        let aspects = aspects.as_str();
        let is_imported = step.imported;
        let about = match (aspects, step.tests.is_empty()) {
            (_, true) => "no common tests".to_owned(),
            ("", false) if is_imported => "conditions not recorded".to_owned(),
            ("", false) => "repetition under the same conditions".to_owned(),
            (aspects, false) if is_imported => format!("{aspects}; other conditions not recorded"),
            (aspects, false) => aspects.to_owned(),
        };
        let (first, second) = names;
        let of = |mark: Mark| {
            step.tests
                .iter()
                .filter(move |test| test.comparison.is_ok() && Mark::of(test, step) == mark)
        };
        let changed = |mark: Mark, kind| {
            let sentence = move |test: &TestPair| ComparisonFinding {
                kind,
                mark,
                text: phrases::changed(test, step, aspects, names),
            };
            of(mark).map(sentence)
        };
        let open = of(Mark::Inconclusive).map(|test| ComparisonFinding {
            kind: FindingKind::C5,
            mark: Mark::Inconclusive,
            text: phrases::open(test, step),
        });
        Self {
            step,
            title: format!("{second} vs. {first}: {about}"),
            names: (first.to_owned(), second.to_owned()),
            obstacles: step.obstacles.iter().map(|why| phrases::obstacle(why, names)).collect(),
            headlines: changed(Mark::Worse, FindingKind::C11)
                .chain(changed(Mark::Better, FindingKind::C11))
                .collect(),
            listed: changed(Mark::PossiblyWorse, FindingKind::C11)
                .chain(changed(Mark::PossiblyBetter, FindingKind::C11))
                .collect(),
            open: open.collect(),
            notes: phrases::notes(step),
            aspects: aspects.to_owned(),
        }
    }

    /// Introduction to the findings of the screening: their false discovery rate.
    fn listing(&self) -> String {
        let family = &self.step.family;
        let quick = if self.step.headlines { "" } else { " Profile quick has no other findings." };
        format!(
            "False discovery rate {}: about {:.0} % of the {} listed tests may be false \
             positives.{quick}",
            fixed(family.q, 2),
            family.q * 100.0,
            self.listed.len()
        )
    }

    /// Sentence on the confidence level of the intervals in findings.
    fn level(&self) -> String {
        format!(
            "Confidence level of the intervals: {} %, for a false coverage rate of {:.0} %.",
            fixed(self.step.family.level * 100.0, 2),
            self.step.family.q * 100.0
        )
    }
}

/// Name of a run in tables: A to Z, then R27, R28, and so on.
fn name(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'A' + index).to_string(),
        Ok(_) | Err(_) => format!("R{}", index + 1),
    }
}

/// All comparisons as text.
fn rendered(chain: &Chain) -> Vec<RenderedComparison<'_>> {
    let steps = chain.steps.iter().enumerate();
    steps.map(|(at, step)| RenderedComparison::new(step, (&name(at), &name(at + 1)))).collect()
}

/// Run in one line: `2026-11-21-203100-k3x9 (ext4 and xfs)`.
fn named(run: &RunRecord) -> String {
    one_line(&format!("{} ({})", run.info.id, run.info.title))
}

/// Result line of a gate.
pub fn verdict(gate: &Gate) -> String {
    let limit = phrases::limit(gate.rule.margin.0);
    let strict = if gate.rule.strict { ", strict" } else { "" };
    let tests = |missing: &[Missing]| missing.iter().map(|missing| missing.tests).sum::<u32>();
    let all = gate.worse
        + gate.non_inferior
        + gate.inconclusive
        + tests(&gate.failed)
        + tests(&gate.missing);
    let mut counts = format!(
        "; {} of {} non-inferior, {} inconclusive",
        gate.non_inferior,
        phrases::tests(all),
        gate.inconclusive
    );
    counts += match (gate.inconclusive, gate.rule.strict) {
        (0, _) => "",
        (_, false) => " (accepted if any test of the step is conclusive)",
        (_, true) => " (not accepted)",
    };
    let lost = [(&gate.failed, "newly failing"), (&gate.missing, "missing")];
    let lost = lost.into_iter().filter(|(missing, _)| !missing.is_empty());
    let lost = lost
        .map(|(missing, what)| format!(", {} {what} ({})", tests(missing), phrases::some(missing)));
    let lost: String = lost.collect();
    let reason = gate.obstacles.first().map(ToString::to_string);
    let result = match (gate.verdict, reason) {
        (GateVerdict::Passed, _) => format!("passed{counts}{lost}"),
        // No test was counted, because the runs yield no findings except failed trials.
        (GateVerdict::Failed, Some(reason)) => {
            format!("failed{lost}; other tests are inconclusive: {reason}")
        }
        (GateVerdict::Failed, None) => format!(
            "failed; {} of {} significantly worse by more than {limit}{counts}{lost}",
            gate.worse,
            phrases::tests(all)
        ),
        (GateVerdict::Inconclusive, Some(reason)) => format!("inconclusive: {reason}"),
        (GateVerdict::Inconclusive, None) => format!("inconclusive{counts}{lost}"),
        (GateVerdict::NotComparable, reason) => {
            let reason = reason.unwrap_or_else(|| "the runs have no common cells".into());
            format!("the runs are not comparable: {reason}")
        }
    };
    let noise = gate.aa_noise.map_or(String::new(), |noise| {
        let noise = phrases::limit(noise.0);
        format!(
            "; A/A duplicates differ by {noise}, more than the gate, so worse means worse by more \
             than {noise}"
        )
    });
    let machine = match gate.machine {
        true => "; the machine itself changed by more than the equivalence margin",
        false => "",
    };
    format!("gate {limit}{strict}: {result}{noise}{machine}")
}

/// Newly failing tests, then significantly worse tests, with the names of the runs.
fn regressions(chain: &Chain) -> Vec<String> {
    let steps = chain.steps.iter().enumerate();
    let worse = steps.flat_map(|(at, step)| {
        let own = step.tests.iter().filter(|test| test.gate == Some(AtGate::Worse));
        own.map(move |test| format!("{} vs. {}: {}", name(at + 1), name(at), phrases::named(test)))
    });
    let gate = chain.gate.iter();
    let failed = gate.flat_map(|gate| &gate.failed).map(|missing| {
        let at = missing.step;
        format!("{} vs. {}: {}", name(at + 1), name(at), phrases::missing(missing))
    });
    failed.chain(worse).collect()
}

/// Change points of tests over many runs, one line per test.
fn histories(chain: &Chain) -> Vec<String> {
    let lines = |history: &History| {
        let place = |change: &Change| {
            // The previous run with results of the test.
            let before = history.runs.iter().rev().find(|run| **run < change.at);
            format!(
                "between {} and {} to ×{}",
                name(before.copied().unwrap_or_default()),
                name(change.at),
                fixed(change.size.0, 3)
            )
        };
        let (metric, phase) = (metric_label(history.metric), &history.phase);
        let test = format!("{metric} of {}, {phase}", history.name);
        let changes: Vec<String> = history.changes.iter().map(place).collect();
        let changed = (!changes.is_empty())
            .then(|| format!("{} changed {}.", capital(&test), changes.join(", ")));
        let withheld = history.withheld.iter().map(|withheld| {
            format!("Withheld: {test}, {}: {}.", place(&withheld.change), withheld.reason)
        });
        changed.into_iter().chain(withheld).collect::<Vec<_>>()
    };
    chain.histories.iter().flat_map(lines).collect()
}

#[cfg(test)]
mod tests;
