//! Explanation of a run: every question with its finding, or with the failed check.
//!
//! An explanation selects the questions of a [`View`] that match all words, and computes nothing. A
//! word without a match is an error that lists the names in the run.

use std::collections::BTreeMap;

use model::{Warning, suggest::nearest};
use serde_json::{Value, json};

use crate::{
    document::{
        Block, Document, Item, Section, Style,
        terminal::{TerminalOptions, terminal},
    },
    units::distinct,
    view::{Finding, FindingKind, View, WithheldFinding},
};

/// Version of the JSON format, increased if the meaning of a key changes.
const FORMAT: u32 = 1;

/// Word that matches no question of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no question of this run matches `{word}`; {hint}")]
pub struct UnknownWord {
    /// Word as given.
    pub word: String,
    /// Similar name, or the names in the run.
    pub hint: String,
}

/// Questions selected by words.
#[derive(Clone, Debug)]
pub struct Explanation<'a> {
    view: &'a View,
    questions: Vec<Question>,
}

/// Question about a subject.
#[derive(Clone, Debug)]
struct Question {
    kind: FindingKind,
    /// Test and workload point, or heading of several points.
    subject: String,
    /// Suites of the subject.
    suites: Vec<String>,
    answer: Answer,
}

/// Answer to a question.
#[derive(Clone, Debug)]
enum Answer {
    Found(String),
    Withheld(WithheldFinding),
}

/// Selects the questions of a run that match all words. Words are names of tests, filesystems,
/// suites, kinds of findings (`C1`), and warnings, or whole words of the question and its workload.
/// Without words, all questions are selected. For a kind without questions in this run, the reason
/// is included.
///
/// # Errors
/// [`UnknownWord`] for a word that matches no question and no name in the run.
pub fn explain<'a>(view: &'a View, words: &[String]) -> Result<Explanation<'a>, UnknownWord> {
    let mut questions = questions(view);
    let about = |question: &Question, word: &str| question.is_about(word, view);
    for word in words {
        let names = || names(view);
        if !questions.iter().any(|question| about(question, word))
            && !names().any(|name| name.eq_ignore_ascii_case(word))
        {
            return Err(unknown(word, view));
        }
    }
    let asked =
        |kind: &FindingKind| words.iter().any(|word| word.eq_ignore_ascii_case(kind.code()));
    let raised = |kind: FindingKind| questions.iter().any(|own| own.kind == kind);
    let kinds = FindingKind::ALL.iter().copied();
    let without: Vec<FindingKind> = kinds.filter(asked).filter(|kind| !raised(*kind)).collect();
    questions.retain(|question| words.iter().all(|word| about(question, word)));
    questions.extend(without.into_iter().map(|kind| not_raised(kind, view)));
    Ok(Explanation { view, questions })
}

/// Question with the reason why a kind of finding does not apply to a run.
fn not_raised(kind: FindingKind, view: &View) -> Question {
    let has = match view.filesystems.len() {
        _ if !kind.ranks() && kind != FindingKind::C12 => String::new(),
        1 => "; this run has one filesystem".to_owned(),
        many => format!("; this run has {many} filesystems"),
    };
    Question {
        kind,
        subject: "the run".into(),
        suites: Vec::new(),
        answer: Answer::Withheld(WithheldFinding {
            kind,
            test: String::new(),
            question: kind.question().into(),
            reason: format!("not applicable to this run: it requires {}{has}", kind.needs()),
            hint: String::new(),
        }),
    }
}

/// Suites of the test with this ID, of the point with this label, or named in a heading.
fn suites(view: &View, test: &str, label: &str) -> Vec<String> {
    let own = view.suites.iter().filter(|suite| {
        let mut points = suite.points.iter();
        holds(label, &suite.name)
            || points.any(|point| {
                point.label == label || point.tests.iter().any(|other| other.id == test)
            })
    });
    own.map(|suite| suite.name.clone()).collect()
}

/// All questions in the order of the report.
fn questions(view: &View) -> Vec<Question> {
    let mut subjects: BTreeMap<&str, String> = BTreeMap::new();
    for point in view.suites.iter().flat_map(|suite| &suite.points) {
        let names = point.tests.iter().map(|test| (&*test.id, &test.name));
        subjects.extend(names.map(|(id, name)| (id, format!("{name}, {}", point.label))));
    }
    let mut all = Vec::new();
    for point in &view.findings.by_point {
        let subject = |test: &str| subjects.get(test).unwrap_or(&point.label).clone();
        let found = |finding: &Finding| Question {
            kind: finding.kind,
            subject: subject(&finding.test),
            suites: suites(view, &finding.test, &point.label),
            answer: Answer::Found(finding.text.clone()),
        };
        let withheld = |open: &WithheldFinding| Question {
            kind: open.kind,
            subject: subject(&open.test),
            suites: suites(view, &open.test, &point.label),
            answer: Answer::Withheld(open.clone()),
        };
        let mut own: Vec<Question> = point.findings.iter().map(found).collect();
        own.extend(point.open.iter().chain(&point.on_request).map(withheld));
        // Subjects of a point keep the order of their first occurrence.
        let order = distinct(own.iter().map(|question| question.subject.clone()));
        own.sort_by_key(|question| {
            let subject = order.iter().position(|known| *known == question.subject);
            (subject, question.kind)
        });
        all.extend(own);
    }
    if view.facts.imported.is_none() {
        all.push(Question {
            kind: FindingKind::C22,
            subject: "the run".into(),
            suites: Vec::new(),
            answer: Answer::Found(view.findings.scope.clone()),
        });
    }
    all
}

/// Names in the run: filesystems, suites, tests, kinds of findings.
fn names(view: &View) -> impl Iterator<Item = &str> + Clone {
    let filesystems = view.filesystems.iter().map(|filesystem| filesystem.name.as_str());
    let suites = view.suites.iter().map(|suite| suite.name.as_str());
    let points = view.suites.iter().flat_map(|suite| &suite.points);
    let tests = points.flat_map(|point| point.tests.iter().map(|test| test.name.as_str()));
    let kinds = FindingKind::ALL.iter().map(|kind| kind.code());
    filesystems.chain(suites).chain(tests).chain(kinds)
}

fn unknown(word: &str, view: &View) -> UnknownWord {
    let hint = match nearest(word, names(view)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let filesystems: Vec<&str> =
                view.filesystems.iter().map(|filesystem| filesystem.name.as_str()).collect();
            let points = view.suites.iter().flat_map(|suite| &suite.points);
            let tests = points.flat_map(|point| &point.tests).map(|test| test.name.as_str());
            let tests = distinct(tests);
            format!(
                "use one of the filesystems {} or the tests {}",
                filesystems.join(", "),
                tests.join(", ")
            )
        }
    };
    UnknownWord { word: word.to_owned(), hint }
}

impl Question {
    /// True if the word is the kind or a suite of the question, or a whole word of its subject
    /// or wording. Also true if it is a filesystem or a warning that the answer names.
    fn is_about(&self, word: &str, view: &View) -> bool {
        let word = word.to_lowercase();
        let in_text = |text: &str| holds(&text.to_lowercase(), &word);
        let (about, answer) = match &self.answer {
            Answer::Found(text) => ("", text.clone()),
            Answer::Withheld(withheld) => (withheld.question.as_str(), withheld.text()),
        };
        let mut filesystems = view.filesystems.iter();
        let mut names = || {
            filesystems.any(|own| own.name.eq_ignore_ascii_case(&word))
                || Warning::examples().iter().any(|warning| warning.code() == word)
        };
        self.kind.code().eq_ignore_ascii_case(&word)
            || self.suites.iter().any(|suite| suite.eq_ignore_ascii_case(&word))
            || [&self.subject, about, self.kind.question()].into_iter().any(in_text)
            || in_text(&answer) && names()
    }
}

impl Question {
    fn item(&self) -> Item {
        let term = format!("{} {}", self.kind.code(), self.kind.question());
        match &self.answer {
            Answer::Found(text) => {
                Item { mark: "✓", term, text: text.clone(), ..Item::default() }
            }
            Answer::Withheld(withheld) => Item {
                mark: "·",
                term: format!("{term}: inconclusive"),
                text: format!("{}: {}.", withheld.question, withheld.reason),
                hint: withheld.hint.clone(),
                ..Item::default()
            },
        }
    }
}

/// True if a text contains a word that is not part of a longer name.
fn holds(text: &str, word: &str) -> bool {
    let outside = |c: char| !(c.is_alphanumeric() || ['-', '_', '/'].contains(&c));
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            before.is_none_or(outside) && after.is_none_or(outside)
        })
}

impl Explanation<'_> {
    fn answered(&self) -> usize {
        let found = |question: &&Question| matches!(question.answer, Answer::Found(_));
        self.questions.iter().filter(found).count()
    }

    /// Formats the explanation for a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        terminal(&self.document(), options)
    }

    fn document(&self) -> Document {
        let facts = &self.view.facts;
        let (all, answered) = (self.questions.len(), self.answered());
        let lead = [
            format!("plan {} · run {}", facts.plan_name, facts.run),
            if facts.ended { "" } else { "The run has not ended; findings are provisional." }
                .into(),
            format!(
                "{all} questions: {answered} answered, {} inconclusive or not applicable.",
                all - answered
            ),
        ];
        let subjects = self.questions.chunk_by(|one, other| one.subject == other.subject);
        let section = |(at, own): (usize, &[Question])| {
            let items = Block::list(Style::Bullets, own.iter().map(Question::item));
            let subject = own.first().map_or("", |question| question.subject.as_str());
            Section::new(format!("subject-{at}"), subject, items.into_iter().collect())
        };
        Document {
            title: facts.title.clone(),
            lead: lead.into_iter().map(Block::Paragraph).collect(),
            sections: subjects.enumerate().map(section).collect(),
            ..Document::default()
        }
    }

    /// Formats the explanation as JSON.
    pub fn json(&self) -> String {
        let of = |question: &Question| {
            let mut value = json!({
                "template": question.kind,
                "question": question.kind.question(),
                "subject": question.subject,
            });
            match &question.answer {
                Answer::Found(text) => {
                    value["answered"] = json!(true);
                    value["text"] = json!(text);
                }
                Answer::Withheld(withheld) => {
                    value["answered"] = json!(false);
                    value["about"] = json!(withheld.question);
                    value["reason"] = json!(withheld.reason);
                    value["hint"] = json!(withheld.hint);
                }
            }
            value
        };
        let document = json!({
            "format": FORMAT,
            "run": self.view.facts.run,
            "ended": self.view.facts.ended,
            "answered": self.answered(),
            "questions": self.questions.iter().map(of).collect::<Vec<Value>>(),
        });
        format!("{document:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use model::RunRecord;

    use super::*;
    use crate::fixture;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn all(record: &RunRecord) -> Vec<(FindingKind, bool)> {
        let view = View::new(record);
        let explanation = explain(&view, &[]).unwrap();
        let each = explanation.questions.iter();
        each.map(|question| (question.kind, matches!(question.answer, Answer::Found(_)))).collect()
    }

    #[test]
    fn words_select_questions_and_none_selects_all() {
        let view = View::new(&fixture::record());
        let every = explain(&view, &[]).unwrap().questions.len();
        let one = explain(&view, &words(&["c3", "write"])).unwrap();
        assert!(!one.questions.is_empty() && one.questions.len() < every);
        for question in &one.questions {
            assert_eq!(question.kind, FindingKind::C3);
            assert!(question.subject.starts_with("write, "), "{}", question.subject);
        }
        let of_jfs = explain(&view, &words(&["jfs"])).unwrap();
        let withheld = |question: &Question| matches!(question.answer, Answer::Withheld(_));
        assert!(!of_jfs.questions.is_empty() && of_jfs.questions.iter().all(withheld));
    }

    #[test]
    fn unknown_word_is_reported_with_a_suggestion() {
        let view = View::new(&fixture::record());
        let error = |word| explain(&view, &words(&[word])).unwrap_err().to_string();
        assert_eq!(
            error("bcachfs"),
            "no question of this run matches `bcachfs`; did you mean `bcachefs`?"
        );
        let lost = error("zebra");
        assert!(lost.contains("filesystems ext4, xfs") && lost.contains("tests write, rewrite"));
    }

    #[test]
    fn findings_withheld_for_few_repetitions_have_a_hint() {
        let mut record = fixture::record();
        record.trials.retain(|trial| trial.repetition < 3);
        record.info.ended_unix = None;
        assert!(
            all(&record)
                .iter()
                .all(|(kind, found)| !found || [FindingKind::C20, FindingKind::C22].contains(kind))
        );
        let view = View::new(&record);
        let explanation = explain(&view, &words(&["C1", "fread"])).unwrap();
        let text =
            explanation.terminal(&TerminalOptions { width: 80, color: false, detail: false });
        assert!(text.contains("The run has not ended"), "{text}");
        assert!(text.contains("n = 3, 6 needed") && text.contains("run at least 6 repetitions"));
        let value: Value = serde_json::from_str(&explanation.json()).unwrap();
        assert_eq!((&value["ended"], &value["answered"]), (&json!(false), &json!(0)));
    }

    #[test]
    fn suite_names_match_and_missing_templates_have_a_reason() {
        let mut record = fixture::record();
        let view = View::new(&record);
        let of = |view: &View, word: &str| explain(view, &words(&[word])).unwrap().questions;
        let every = of(&view, "C1");
        assert!(every.iter().all(|question| question.suites == ["iozone"]), "{every:?}");
        assert!(of(&view, "iozone").len() > every.len());
        // This word occurs only in texts of findings.
        assert!(explain(&view, &words(&["formed"])).is_err());
        assert!(record.cells.iter().any(|cell| cell.cell.filesystem.name == "jfs"));
        record.trials.retain(|trial| trial.cell < 2);
        let view = View::new(&record);
        let questions = of(&view, "C3");
        let Answer::Withheld(open) = &questions[0].answer else { panic!("{questions:?}") };
        assert!(open.reason.contains("not applicable to this run: it requires three comparable"));
    }

    #[test]
    fn only_blocking_warnings_are_listed_with_their_hint() {
        let mut record = fixture::record();
        let backing = Warning::SharedStorage { storage: "a virtual disk".into(), directory: false };
        let throttled = Warning::CpuThrottled { events: 3 };
        for trial in record.trials.iter_mut().filter(|trial| trial.cell == 0) {
            trial.warnings.push((None, backing.clone()));
            trial.warnings.push((None, throttled.clone()));
        }
        let view = View::new(&record);
        let explanation = explain(&view, &words(&["cpu-throttled", "C1"])).unwrap();
        assert!(!explanation.questions.is_empty());
        for question in &explanation.questions {
            let Answer::Withheld(open) = &question.answer else { panic!("{question:?}") };
            assert!(open.reason.contains("(cpu-throttled)"), "{open:?}");
            assert_eq!(open.hint, throttled.hint());
        }
        assert!(explanation.json().contains(throttled.hint()));
    }

    #[test]
    fn findings_of_an_unfinished_run_are_provisional() {
        let mut record = fixture::record();
        record.info.ended_unix = None;
        let view = View::new(&record);
        let findings = view.findings.by_point.iter().flat_map(|point| &point.findings);
        let (of_now, others): (Vec<_>, Vec<_>) =
            findings.partition(|finding| finding.text.starts_with("provisional: "));
        assert!(of_now.iter().any(|finding| finding.kind == FindingKind::C1));
        assert!(others.iter().all(|finding| finding.kind.is_final()));
        assert!(view.findings.heading().contains("has not ended"));
        let ended = View::new(&fixture::record()).findings;
        assert!(!ended.provisional && ended.heading() == "Findings");
    }

    #[test]
    fn lines_fit_the_terminal() {
        for record in [fixture::record(), fixture::tasks::record(), fixture::dbench::record()] {
            let view = View::new(&record);
            let options = TerminalOptions { width: 80, color: false, detail: false };
            let text = explain(&view, &[]).unwrap().terminal(&options);
            let wide = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None);
        }
    }

    #[test]
    fn parts_of_longer_names_do_not_match() {
        assert!(holds("write, iozone block_size=1mib", "write"));
        assert!(holds("write, iozone block_size=1mib", "1mib"));
        assert!(!holds("random-write, iozone", "write"));
    }
}
