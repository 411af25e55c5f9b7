//! What a run can answer: every question with its sentence, or with what is missing for one.
//!
//! A [`View`] and words enter, an [`Explanation`] leaves: the questions that all words are about,
//! with the answers that the view has found. Nothing is computed here. A word that no question
//! knows is an error that names what the run is about.

use std::collections::BTreeMap;

use model::suggest::nearest;
use serde_json::{Value, json};

use crate::{
    TerminalOptions,
    terminal::Page,
    view::{Claim, View, Withheld},
};

/// Version of the JSON; a key that changes its meaning raises it.
const FORMAT: u32 = 1;

/// What each template of a sentence answers.
const TEMPLATES: [(&str, &str); 18] = [
    ("C1", "which filesystem is best"),
    ("C2", "which filesystems form the top group"),
    ("C3", "which filesystem is last"),
    ("C4", "which filesystems are the same"),
    ("C5", "which of two is better"),
    ("C6", "what a parameter changes"),
    ("C7", "whether a parameter does not matter"),
    ("C8", "where it peaks"),
    ("C9", "how far it scales"),
    ("C10", "whether it still rises"),
    ("C12", "what all workloads say together"),
    ("C14", "what is sustained"),
    ("C16", "what durability costs"),
    ("C17", "where the variation comes from"),
    ("C18", "which factor matters"),
    ("C20", "whether runs failed"),
    ("C21", "what limits it"),
    ("C22", "what the numbers hold for"),
];

/// A word that no question of a run knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this run says nothing of `{word}`; {cure}")]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// What was meant, or what the run is about.
    pub cure: String,
}

/// The questions that some words are about.
#[derive(Clone, Debug)]
pub struct Explanation<'a> {
    view: &'a View,
    questions: Vec<Question>,
}

/// One question.
#[derive(Clone, Debug)]
struct Question {
    template: &'static str,
    /// What it is about: a test at a point, or several points.
    subject: String,
    /// The suites it is about.
    suites: Vec<String>,
    answer: Answer,
}

/// What a question is answered with.
#[derive(Clone, Debug)]
enum Answer {
    Said(String),
    Withheld(Withheld),
}

/// The questions of a run that all words are about: names of tests, filesystems, suites,
/// templates, and warnings, or whole words of the question and its workload. Without words, all
/// questions. For a template that the run has no question of, why not.
///
/// # Errors
/// [`UnknownWord`] for a word that stands in no question and names nothing in the run.
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
    let asked = |template: &&str| words.iter().any(|word| word.eq_ignore_ascii_case(template));
    let raised = |template: &str| questions.iter().any(|own| own.template == template);
    let templates = TEMPLATES.iter().map(|(template, _)| *template);
    let without: Vec<&str> = templates.filter(asked).filter(|template| !raised(template)).collect();
    questions.retain(|question| words.iter().all(|word| about(question, word)));
    questions.extend(without.into_iter().map(|template| not_raised(template, view)));
    Ok(Explanation { view, questions })
}

/// Why a run has no question of a kind at all.
fn not_raised(template: &'static str, view: &View) -> Question {
    let filesystems = match view.filesystems.len() {
        1 => "one filesystem".to_owned(),
        many => format!("{many} filesystems"),
    };
    let needs = match template {
        "C3" => format!(
            "it needs three filesystems with numbers that carry a claim; this run has {filesystems}"
        ),
        "C12" => format!(
            "it needs two filesystems and three workloads of one suite; this run has {filesystems}"
        ),
        "C1" | "C2" | "C4" | "C5" => format!(
            "it needs two filesystems with numbers that carry a claim and, for C2 and C5, a top \
             group of several; this run has {filesystems}"
        ),
        "C6" | "C7" | "C8" => "it needs a numeric parameter with several values".into(),
        "C9" | "C10" => "it needs several numbers of clients".into(),
        "C14" | "C17" => "it needs phases whose rate was kept over at least 100 intervals".into(),
        "C16" => "it needs writes whose durable and accepted throughput were both measured".into(),
        "C18" => "it needs conditions that the plan varies, two values of each or more".into(),
        "C20" => "no repeat failed".into(),
        _ => "this run was not measured by fslab, or measured nothing that it is about".into(),
    };
    Question {
        template,
        subject: "the run".into(),
        suites: Vec::new(),
        answer: Answer::Withheld(Withheld {
            template,
            test: String::new(),
            about: asks(template).into(),
            missing: format!("there is no such question here: {needs}"),
            cure: String::new(),
        }),
    }
}

/// Suites that something is about: those of its test or point, or of its heading.
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
        let said = |claim: &Claim| Question {
            template: claim.template,
            subject: subject(&claim.test),
            suites: suites(view, &claim.test, &point.label),
            answer: Answer::Said(claim.text.clone()),
        };
        let withheld = |open: &Withheld| Question {
            template: open.template,
            subject: subject(&open.test),
            suites: suites(view, &open.test, &point.label),
            answer: Answer::Withheld(open.clone()),
        };
        let mut own: Vec<Question> = point.claims.iter().map(said).collect();
        own.extend(point.open.iter().chain(&point.unsaid).map(withheld));
        // Stable: the subjects of a point in the order in which they are first spoken of.
        let mut order: Vec<String> = Vec::new();
        for question in &own {
            if !order.contains(&question.subject) {
                order.push(question.subject.clone());
            }
        }
        own.sort_by_key(|question| {
            let subject = order.iter().position(|known| *known == question.subject);
            (subject, place(question.template))
        });
        all.extend(own);
    }
    if view.facts.imported.is_none() {
        all.push(Question {
            template: "C22",
            subject: "the run".into(),
            suites: Vec::new(),
            answer: Answer::Said(view.findings.scope.clone()),
        });
    }
    all
}

fn place(template: &str) -> usize {
    TEMPLATES.iter().position(|(known, _)| *known == template).unwrap_or(TEMPLATES.len())
}

fn asks(template: &str) -> &'static str {
    TEMPLATES.iter().find(|(known, _)| *known == template).map_or("", |(_, asks)| asks)
}

/// Names of what the run is about.
fn names(view: &View) -> impl Iterator<Item = &str> {
    let filesystems = view.filesystems.iter().map(|filesystem| filesystem.name.as_str());
    let suites = view.suites.iter().map(|suite| suite.name.as_str());
    let points = view.suites.iter().flat_map(|suite| &suite.points);
    let tests = points.flat_map(|point| point.tests.iter().map(|test| test.name.as_str()));
    let templates = TEMPLATES.iter().map(|(template, _)| *template);
    filesystems.chain(suites).chain(tests).chain(templates)
}

fn unknown(word: &str, view: &View) -> UnknownWord {
    let cure = match nearest(word, names(view)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let filesystems: Vec<&str> =
                view.filesystems.iter().map(|filesystem| filesystem.name.as_str()).collect();
            let mut tests: Vec<&str> = Vec::new();
            for test in view.suites.iter().flat_map(|suite| &suite.points).flat_map(|p| &p.tests) {
                if !tests.contains(&test.name.as_str()) {
                    tests.push(&test.name);
                }
            }
            format!(
                "it is about the filesystems {} and the tests {}",
                filesystems.join(", "),
                tests.join(", ")
            )
        }
    };
    UnknownWord { word: word.to_owned(), cure }
}

impl Question {
    /// Whether a word is its template, its suite, or a whole word of its question, test, or
    /// workload; or names a filesystem or a warning that its answer speaks of.
    fn is_about(&self, word: &str, view: &View) -> bool {
        let word = word.to_lowercase();
        let in_text = |text: &str| holds(&text.to_lowercase(), &word);
        let (about, answer) = match &self.answer {
            Answer::Said(text) => ("", text.clone()),
            Answer::Withheld(withheld) => (withheld.about.as_str(), withheld.text()),
        };
        let mut filesystems = view.filesystems.iter();
        let names =
            word.starts_with("w-") || filesystems.any(|own| own.name.eq_ignore_ascii_case(&word));
        self.template.eq_ignore_ascii_case(&word)
            || self.suites.iter().any(|suite| suite.eq_ignore_ascii_case(&word))
            || [&self.subject, about, asks(self.template)].into_iter().any(in_text)
            || names && in_text(&answer)
    }
}

/// Whether a text has a word with nothing of a longer name around it.
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
        let said = |question: &&Question| matches!(question.answer, Answer::Said(_));
        self.questions.iter().filter(said).count()
    }

    /// All of it for a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        let mut page = Page::new(options);
        let facts = &self.view.facts;
        let title = page.styled("1", &facts.title);
        page.line(&title);
        page.wrapped("", "  ", &format!("plan {} · run {}", facts.plan_name, facts.run));
        if !facts.ended {
            page.wrapped("", "  ", "The run has not ended: answers may still change.");
        }
        let (all, answered) = (self.questions.len(), self.answered());
        page.wrapped(
            "",
            "  ",
            &format!("{all} questions: {answered} answered, {} not.", all - answered),
        );
        let mut subject = "";
        for question in &self.questions {
            if question.subject != subject {
                subject = &question.subject;
                page.heading(subject);
            }
            let first = format!("{} {}", question.template, asks(question.template));
            match &question.answer {
                Answer::Said(text) => {
                    page.wrapped("  ✓ ", "    ", &first);
                    page.wrapped("    ", "    ", text);
                }
                Answer::Withheld(withheld) => {
                    page.wrapped("  · ", "    ", &format!("{first}: not answered"));
                    let text = format!("{}: {}.", withheld.about, withheld.missing);
                    page.wrapped("    ", "    ", &text);
                    if !withheld.cure.is_empty() {
                        page.wrapped("    → ", "      ", &withheld.cure);
                    }
                }
            }
        }
        page.text
    }

    /// All of it for programs.
    pub fn json(&self) -> String {
        let of = |question: &Question| {
            let mut value = json!({
                "template": question.template,
                "question": asks(question.template),
                "subject": question.subject,
            });
            match &question.answer {
                Answer::Said(text) => {
                    value["answered"] = json!(true);
                    value["text"] = json!(text);
                }
                Answer::Withheld(withheld) => {
                    value["answered"] = json!(false);
                    value["about"] = json!(withheld.about);
                    value["missing"] = json!(withheld.missing);
                    value["cure"] = json!(withheld.cure);
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
    use model::{RunRecord, Warning};

    use super::*;
    use crate::fixture;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn all(record: &RunRecord) -> Vec<(&'static str, bool)> {
        let view = View::new(record);
        let explanation = explain(&view, &[]).unwrap();
        let each = explanation.questions.iter();
        each.map(|question| (question.template, matches!(question.answer, Answer::Said(_))))
            .collect()
    }

    #[test]
    fn words_choose_questions_and_none_chooses_all() {
        let view = View::new(&fixture::record());
        let every = explain(&view, &[]).unwrap().questions.len();
        let one = explain(&view, &words(&["c3", "write"])).unwrap();
        assert!(!one.questions.is_empty() && one.questions.len() < every);
        for question in &one.questions {
            assert_eq!(question.template, "C3");
            assert!(question.subject.starts_with("write, "), "{}", question.subject);
        }
        let of_jfs = explain(&view, &words(&["jfs"])).unwrap();
        let withheld = |question: &Question| matches!(question.answer, Answer::Withheld(_));
        assert!(!of_jfs.questions.is_empty() && of_jfs.questions.iter().all(withheld));
    }

    #[test]
    fn a_word_that_nobody_knows_is_told_with_what_was_meant() {
        let view = View::new(&fixture::record());
        let error = |word| explain(&view, &words(&[word])).unwrap_err().to_string();
        assert_eq!(
            error("bcachfs"),
            "this run says nothing of `bcachfs`; did you mean `bcachefs`?"
        );
        let lost = error("zebra");
        assert!(lost.contains("filesystems ext4, xfs") && lost.contains("tests write, rewrite"));
    }

    #[test]
    fn what_too_few_repeats_withhold_is_told_with_its_cure() {
        let mut record = fixture::record();
        record.trials.retain(|trial| trial.repeat < 3);
        record.info.ended_unix = None;
        assert!(
            all(&record).iter().all(|(template, said)| !said || ["C20", "C22"].contains(template))
        );
        let view = View::new(&record);
        let explanation = explain(&view, &words(&["C1", "fread"])).unwrap();
        let text =
            explanation.terminal(&TerminalOptions { width: 80, color: false, detail: false });
        assert!(text.contains("The run has not ended"), "{text}");
        assert!(text.contains("n = 3, 6 are needed") && text.contains("→ at least 6 repeats"));
        let value: Value = serde_json::from_str(&explanation.json()).unwrap();
        assert_eq!((&value["ended"], &value["answered"]), (&json!(false), &json!(0)));
    }

    #[test]
    fn a_suite_is_known_and_a_kind_that_is_not_asked_says_why() {
        let mut record = fixture::record();
        let view = View::new(&record);
        let of = |view: &View, word: &str| explain(view, &words(&[word])).unwrap().questions;
        let every = of(&view, "C1");
        assert!(every.iter().all(|question| question.suites == ["iozone"]), "{every:?}");
        assert!(of(&view, "iozone").len() > every.len());
        // It stands in sentences only.
        assert!(explain(&view, &words(&["formed"])).is_err());
        assert!(record.cells.iter().any(|cell| cell.cell.filesystem.name == "jfs"));
        record.trials.retain(|trial| trial.cell < 2);
        let view = View::new(&record);
        let questions = of(&view, "C3");
        let Answer::Withheld(open) = &questions[0].answer else { panic!("{questions:?}") };
        assert!(open.missing.contains("no such question here: it needs three filesystems"));
    }

    #[test]
    fn only_what_bars_a_claim_is_named_with_its_cure() {
        let mut record = fixture::record();
        let backing = Warning::Backing { what: "a virtual disk".into() };
        let throttled = Warning::Throttled { events: 3 };
        for trial in record.trials.iter_mut().filter(|trial| trial.cell == 0) {
            trial.warnings.push((None, backing.clone()));
            trial.warnings.push((None, throttled.clone()));
        }
        let view = View::new(&record);
        let explanation = explain(&view, &words(&["w-throttle", "C1"])).unwrap();
        assert!(!explanation.questions.is_empty());
        for question in &explanation.questions {
            let Answer::Withheld(open) = &question.answer else { panic!("{question:?}") };
            assert!(open.missing.contains("(W-THROTTLE)"), "{open:?}");
            assert_eq!(open.cure, throttled.cure());
        }
        assert!(explanation.json().contains(throttled.cure()));
    }

    #[test]
    fn sentences_of_a_run_that_goes_on_are_provisional() {
        let mut record = fixture::record();
        record.info.ended_unix = None;
        let view = View::new(&record);
        let claims = view.findings.by_point.iter().flat_map(|point| &point.claims);
        let lasting = ["C20", "C21", "C22"];
        let (of_now, others): (Vec<_>, Vec<_>) =
            claims.partition(|claim| claim.text.starts_with("so far: "));
        assert!(of_now.iter().any(|claim| claim.template == "C1"));
        assert!(others.iter().all(|claim| lasting.contains(&claim.template)));
        assert!(view.findings.heading().contains("has not ended"));
        let ended = View::new(&fixture::record()).findings;
        assert!(!ended.provisional && ended.heading() == "Findings");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for record in [fixture::record(), fixture::tasks::record(), fixture::dbench::record()] {
            let view = View::new(&record);
            let options = TerminalOptions { width: 80, color: false, detail: false };
            let text = explain(&view, &[]).unwrap().terminal(&options);
            let wide = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None);
        }
    }

    #[test]
    fn a_name_within_a_longer_one_is_not_meant() {
        assert!(holds("write, iozone record=1mib", "write"));
        assert!(holds("write, iozone record=1mib", "1mib"));
        assert!(!holds("random-write, iozone", "write"));
    }
}
