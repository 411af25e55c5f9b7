//! What a question is answered with: a sentence, or what is missing for one.

/// All sentences of a report.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    /// By workload point; what holds for many points first.
    pub(crate) by_point: Vec<PointClaims>,
    /// What the sentences hold for, and what they do not.
    pub(crate) scope: String,
    /// The run has not ended, so that more repeats may take sentences back.
    pub(crate) provisional: bool,
}

/// Sentences that more repeats do not take back: what failed, and what was busy.
const LASTING: [&str; 3] = ["C20", "C21", "C22"];

impl Findings {
    /// Says of each sentence that rests on intervals that it is one of a run that goes on.
    pub(crate) fn make_provisional(&mut self) {
        self.provisional = true;
        for claim in self.by_point.iter_mut().flat_map(|point| &mut point.claims) {
            if !LASTING.contains(&claim.template) {
                claim.text = format!("so far: {}", claim.text);
            }
        }
    }

    /// What stands above them.
    pub(crate) fn heading(&self) -> &'static str {
        if self.provisional { "Findings so far (the run has not ended)" } else { "Findings" }
    }
}

/// The answers about one workload point, or about several under one heading.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointClaims {
    /// The heading.
    pub(crate) label: String,
    /// What is said.
    pub(crate) claims: Vec<Claim>,
    /// What could not be decided, with the repeats it would take.
    pub(crate) open: Vec<Withheld>,
    /// Questions that a report does not raise where it has no answer, and `fslab explain` does.
    pub(crate) unsaid: Vec<Withheld>,
}

impl PointClaims {
    /// Answers under a heading; all that is withheld is told as open.
    pub(crate) fn new(label: impl Into<String>, answers: Vec<Answer>) -> Self {
        let mut all = Self { label: label.into(), ..Self::default() };
        all.extend(answers);
        all
    }

    /// Adds answers.
    pub(crate) fn extend(&mut self, answers: impl IntoIterator<Item = Answer>) {
        for answer in answers {
            match answer {
                Answer::Said(claim) => self.claims.push(claim),
                Answer::Withheld(withheld) => self.open.push(withheld),
            }
        }
    }

    /// Adds answers of which what is withheld is told only when asked for.
    pub(crate) fn extend_quietly(&mut self, answers: impl IntoIterator<Item = Answer>) {
        for answer in answers {
            match answer {
                Answer::Said(claim) => self.claims.push(claim),
                Answer::Withheld(withheld) => self.unsaid.push(withheld),
            }
        }
    }
}

/// The answer to one question.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// All guards hold.
    Said(Claim),
    /// A guard fails.
    Withheld(Withheld),
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

/// A question whose sentence may not be written.
#[derive(Clone, Debug)]
pub(crate) struct Withheld {
    /// The template of the sentence.
    pub(crate) template: &'static str,
    /// Anchor of the test it is about; empty for a whole point.
    pub(crate) test: String,
    /// The question in words, such as `whether ext4 or xfs is faster on write, record=1MiB`.
    pub(crate) about: String,
    /// Which guard failed, with its numbers.
    pub(crate) missing: String,
    /// What would supply it, such as `about 14 more repeats of each`; empty where nothing would.
    pub(crate) cure: String,
}

impl Withheld {
    /// All of it in one sentence.
    pub(crate) fn text(&self) -> String {
        let cure = if self.cure.is_empty() { String::new() } else { format!("; {}", self.cure) };
        format!("No conclusion on {}: {}{cure}.", self.about, self.missing)
    }
}
