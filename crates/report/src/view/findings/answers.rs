//! Findings and withheld findings.

use crate::units::capital;
use crate::view::FindingKind;

/// All findings of a report.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    /// Findings by workload point. Findings about several points come first.
    pub(crate) by_point: Vec<PointFindings>,
    /// Conditions for which the findings are valid, and conditions that were not tested (C22).
    pub(crate) scope: String,
    /// True if the run has not ended. Further repetitions may then invalidate findings.
    pub(crate) provisional: bool,
}

impl Findings {
    /// Marks all findings as provisional, except final ones ([`FindingKind::is_final`]).
    pub(crate) fn make_provisional(&mut self) {
        self.provisional = true;
        for finding in self.by_point.iter_mut().flat_map(|point| &mut point.findings) {
            if !finding.kind.is_final() {
                finding.text = format!("provisional: {}", finding.text);
            }
        }
    }

    /// Heading of the section.
    pub(crate) fn heading(&self) -> &'static str {
        if self.provisional { "Provisional findings (the run has not ended)" } else { "Findings" }
    }
}

/// Findings about one workload point, or about several points under one heading.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointFindings {
    /// Label of the point, or common subject of several points.
    pub(crate) label: String,
    pub(crate) findings: Vec<Finding>,
    /// Inconclusive questions that the report lists.
    pub(crate) open: Vec<WithheldFinding>,
    /// Withheld findings that only `fslab explain` lists.
    pub(crate) on_request: Vec<WithheldFinding>,
}

impl PointFindings {
    /// Answers about one point or subject. The report lists all withheld findings.
    pub(crate) fn new(label: impl Into<String>, answers: Vec<Answer>) -> Self {
        let mut all = Self { label: label.into(), ..Self::default() };
        all.extend(answers);
        all
    }

    /// Adds answers. The report lists the withheld findings.
    pub(crate) fn extend(&mut self, answers: impl IntoIterator<Item = Answer>) {
        for answer in answers {
            match answer {
                Answer::Found(finding) => self.findings.push(finding),
                Answer::Withheld(withheld) => self.open.push(withheld),
            }
        }
    }

    /// Adds answers. Only `fslab explain` lists the withheld findings.
    pub(crate) fn extend_on_request(&mut self, answers: impl IntoIterator<Item = Answer>) {
        for answer in answers {
            match answer {
                Answer::Found(finding) => self.findings.push(finding),
                Answer::Withheld(withheld) => self.on_request.push(withheld),
            }
        }
    }
}

/// Answer to one question.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// All checks passed.
    Found(Finding),
    /// A check failed.
    Withheld(WithheldFinding),
}

impl Answer {
    /// Finding about a test, given by its anchor.
    pub(crate) fn found(kind: FindingKind, test: &str, text: String) -> Self {
        Self::Found(Finding { kind, test: test.to_owned(), text })
    }

    /// Withheld finding about a test, given by its anchor.
    pub(crate) fn withheld(
        kind: FindingKind,
        test: &str,
        question: impl Into<String>,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Withheld(WithheldFinding {
            kind,
            test: test.to_owned(),
            question: question.into(),
            reason: reason.into(),
            hint: hint.into(),
        })
    }
}

/// Conclusion that passed all checks of its kind.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Template, such as `C1`.
    pub(crate) kind: FindingKind,
    /// Anchor of the test; empty for a finding about a whole point.
    pub(crate) test: String,
    pub(crate) text: String,
}

/// Finding that failed a check.
#[derive(Clone, Debug)]
pub(crate) struct WithheldFinding {
    /// Template, such as `C1`.
    pub(crate) kind: FindingKind,
    /// Anchor of the test; empty for a finding about a whole point.
    pub(crate) test: String,
    /// Question, such as `whether ext4 or xfs is faster on write, block_size=1MiB`.
    pub(crate) question: String,
    /// Failed check, with its numbers.
    pub(crate) reason: String,
    /// Hint, such as `add another filesystem to the plan`. May be empty.
    pub(crate) hint: String,
}

impl WithheldFinding {
    /// Question, reason, and hint as sentences.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("Inconclusive: {}. {}.", self.question, sentence(&self.reason));
        if !self.hint.is_empty() {
            text += &format!(" {}.", sentence(&self.hint));
        }
        text
    }
}

/// Capitalizes a text, unless it starts with a name (`ext4: …`) or a symbol (`n = …`).
fn sentence(text: &str) -> String {
    let mut words = text.split(' ');
    let name = words.next().is_none_or(|first| first.ends_with(':'));
    if name || words.next() == Some("=") { text.to_owned() } else { capital(text) }
}
