//! Check of the statements of a study against the results of a run.
//!
//! Results of the run get the coordinates of the printed numbers, and [`analysis::audit::measured`]
//! decides each statement of the article. In a run at another scale, each block size represents the
//! block size of the study multiplied by the scale.

use analysis::audit::{Decision, Measured, REPETITIONS, Statement, Verdict, measured};
use model::{Bytes, Metric, RunRecord};
use serde_json::{Value as Json, json};

use super::side_by_side::{Side, Value, alias, of_run};
use crate::{
    audit::{Audit, Statements, Table},
    document::{
        Block, Document, Item, Section, Style,
        markdown::markdown,
        terminal::{TerminalOptions, terminal},
    },
    published::{
        SUFFIX,
        audit::{AUDITED, Audited},
    },
};

/// Version of the JSON format. It changes if a field is removed or changes its meaning.
const SCHEMA: u32 = 1;

/// Title of the statements in a report.
const STATEMENTS: &str = "Statements of the study";

/// Locations listed per statement without `detail`.
const LOCATIONS: usize = 1;

/// Verdicts in the order of the report, with their headings and identifiers.
const VERDICTS: [(Verdict, &str, &str); 4] = [
    (Verdict::DoesNotHold, "Does not hold", "does-not-hold"),
    (Verdict::Holds, "Holds", "holds"),
    (Verdict::Undecided, "Undecided", "undecided"),
    (Verdict::NotTestable, "Not testable", "not-testable"),
];

/// Reason why the statements of a study cannot be checked against a run, with a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// The study does not exist or has no statements.
    #[error("there are no statements of `{name}`; available: {known}")]
    Unknown {
        /// Name as given.
        name: String,
        /// Studies with statements.
        known: String,
    },
    /// The run has no results of the suite.
    #[error("the run has no results of suite {suite}; measure them with fslab run {study}")]
    NoResults {
        /// Suite of the study.
        suite: &'static str,
        /// Name of the study.
        study: &'static str,
    },
    /// The tests, sizes, or filesystems of the run differ from those of the study.
    #[error(
        "the run has suite {suite}, but no test, size, and filesystem of the study; measure them \
         with fslab run {study}"
    )]
    Other {
        /// Suite of the study.
        suite: &'static str,
        /// Name of the study.
        study: &'static str,
    },
    /// Every test has a single repetition, so no spread is known.
    #[error("every test of the run has one repetition; {REPETITIONS} are required")]
    Repetitions,
}

/// Statements of a study with their verdicts for a run.
#[derive(Clone, Debug)]
pub struct StudyAudit {
    run: String,
    study: &'static str,
    conditions: Vec<(String, String)>,
    audit: Audit,
    decisions: Vec<Decision>,
}

impl StudyAudit {
    /// Checks the statements of a study against a run. `study` is the name of the study with or
    /// without `@published`.
    ///
    /// # Errors
    /// [`StudyError`] if the study has no statements, or the run has no results that correspond to
    /// its numbers.
    pub fn new(run: &RunRecord, study: &str) -> Result<Self, StudyError> {
        let name = study.strip_suffix(SUFFIX).unwrap_or(study);
        let set = AUDITED.iter().find(|set| set.name == name).ok_or_else(|| {
            let known: Vec<&str> = AUDITED.iter().map(|set| set.name).collect();
            StudyError::Unknown { name: study.into(), known: known.join(", ") }
        })?;
        let (printed, statements) = set.parts();
        let suite = set.suite;
        let side = of_run(run, suite);
        let numbers = numbers(&side, run, &printed);
        if numbers.is_empty() {
            return Err(match side.values.iter().any(|value| value.moments.is_some()) {
                _ if side.values.is_empty() => StudyError::NoResults { suite, study: set.name },
                true => StudyError::Other { suite, study: set.name },
                false => StudyError::Repetitions,
            });
        }
        let layout = statements.layout(&printed);
        let decisions = measured(&numbers, &layout, &statements.statements);
        Ok(Self::of(set, &side, &numbers, &printed, statements, decisions))
    }

    fn of(
        set: &Audited,
        side: &Side,
        numbers: &[Measured],
        printed: &Table,
        statements: Statements,
        decisions: Vec<Decision>,
    ) -> Self {
        let cell = |own: &Measured| analysis::audit::Cell {
            at: own.at.clone(),
            printed: own.moments.mean.to_string(),
            value: Some(own.moments.mean),
        };
        let cells = numbers.iter().map(cell).collect();
        let columns = match (printed.columns.as_slice(), numbers.first()) {
            ([], Some(own)) => own.at.keys().cloned().collect(),
            (columns, _) => columns.to_vec(),
        };
        let table = Table { columns, ignored: Vec::new(), cells };
        let judgments = decisions.iter().map(|one| one.judgment.clone()).collect();
        Self {
            run: side.name.clone(),
            study: set.name,
            conditions: side.conditions.clone(),
            audit: Audit::of_measured(table, statements, judgments),
            decisions,
        }
    }

    /// True if a statement does not hold on the run.
    pub fn found(&self) -> bool {
        self.count(Verdict::DoesNotHold) > 0
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.decisions.iter().filter(|one| one.verdict == verdict).count()
    }

    fn all(&self) -> impl Iterator<Item = (&Statement, &Decision)> {
        self.audit.statements().map(|(statement, _)| statement).zip(&self.decisions)
    }

    /// Number of statements by verdict, in one sentence.
    fn headline(&self) -> String {
        let tested = self.decisions.len() - self.count(Verdict::NotTestable);
        let of = |verdict| self.count(verdict);
        let plural = if tested == 1 { "" } else { "s" };
        format!(
            "{} of {tested} testable statement{plural} hold on this run, {} do not, {} are \
             undecided",
            of(Verdict::Holds),
            of(Verdict::DoesNotHold),
            of(Verdict::Undecided)
        )
    }

    /// Formats the result for a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        terminal(&self.document(if options.detail { usize::MAX } else { LOCATIONS }), options)
    }

    /// Formats the result as GitHub-flavored Markdown.
    pub fn markdown(&self) -> String {
        markdown(&self.document(LOCATIONS))
    }

    fn document(&self, locations: usize) -> Document {
        let section = |(verdict, title, id): &(Verdict, &str, &str)| {
            let own = self.all().filter(|(_, one)| one.verdict == *verdict);
            let item = |(statement, decision)| self.item(statement, decision, locations);
            let list = Block::list(Style::Bullets, own.map(item))?;
            let title = format!("{title} ({})", self.count(*verdict));
            Some(Section::new(*id, title, vec![list]))
        };
        let conditions = self.conditions.iter().map(|(name, text)| Item::named(name, text));
        let note = "Machine, disk, kernel, and workload differ from those of the study. A verdict \
                    is about this run and its filesystems, and does not correct the article. The \
                    error rate of all verdicts together is 5 %. More repetitions decide more \
                    statements.";
        let conditions = Block::list(Style::Facts, conditions);
        let run = Section::new("run", "Conditions of the run", conditions.into_iter().collect());
        let mut sections: Vec<Section> = VERDICTS.iter().filter_map(section).collect();
        sections.push(run);
        Document {
            title: format!("Statements of {} on {}", self.study, self.run),
            headline: self.headline(),
            lead: vec![Block::Note(note.into())],
            sections,
            ..Document::default()
        }
    }

    /// Section of a report: each statement with its verdict, in the order of the study.
    pub(crate) fn section(&self) -> Section {
        let item = |(statement, decision): (&Statement, &Decision)| {
            let title = VERDICTS.iter().find(|(own, ..)| *own == decision.verdict);
            let verdict = title.map_or_else(String::new, |(_, title, _)| title.to_lowercase());
            let mut item = self.item(statement, decision, LOCATIONS);
            item.text = format!("{verdict}: {}", statement.text);
            item
        };
        let lead = format!(
            "{}. The verdicts are about this run and do not correct the article; \
             `fslab audit RUN --detail` shows all numbers.",
            self.headline()
        );
        let list = Block::list(Style::Bullets, self.all().map(item));
        let blocks = std::iter::once(Block::Paragraph(lead)).chain(list).collect();
        Section::new("statements", STATEMENTS, blocks)
    }

    fn item(&self, statement: &Statement, decision: &Decision, locations: usize) -> Item {
        let mut lines = self.audit.judgment_lines(&decision.judgment, locations);
        lines.extend(share(decision));
        let missing = decision.missing.iter();
        lines.extend(missing.map(|(axis, levels)| format!("without {axis} {levels}: no results")));
        Item { term: statement.id.clone(), text: statement.text.clone(), lines, ..Item::default() }
    }

    /// Formats the result as JSON.
    pub fn json(&self) -> String {
        let statement = |(statement, one): (&Statement, &Decision)| -> Json {
            let parts = one.judgment.parts.iter().map(|part| self.audit.part_json(part));
            json!({
                "id": statement.id,
                "text": statement.text,
                "verdict": verdict_id(one.verdict),
                "share_of_draws": one.share,
                "missing": one.missing,
                "parts": parts.collect::<Vec<Json>>(),
            })
        };
        let conditions: serde_json::Map<String, Json> =
            self.conditions.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
        let document = json!({
            "schema": SCHEMA,
            "run": self.run,
            "study": self.study,
            "measured_by_fslab": true,
            "conditions": conditions,
            "statements": self.all().map(statement).collect::<Vec<Json>>(),
        });
        format!("{document:#}\n")
    }
}

fn verdict_id(verdict: Verdict) -> &'static str {
    VERDICTS.iter().find(|(own, ..)| *own == verdict).map_or("", |(_, _, id)| id)
}

/// Share of the draws in which an undecided statement holds; `None` for other statements.
fn share(decision: &Decision) -> Option<String> {
    let share = decision.share.filter(|_| decision.verdict == Verdict::Undecided)?;
    Some(format!("holds in {:.0} % of the draws from the uncertainty of the means", share * 100.0))
}

/// Results of the run with the coordinates of the printed numbers. If several workloads have the
/// same coordinates, such as two methods of the tasks, the first one is used.
fn numbers(side: &Side, run: &RunRecord, printed: &Table) -> Vec<Measured> {
    let mut numbers: Vec<Measured> = Vec::new();
    for value in &side.values {
        let metric = metrics(side.suite, value.key.metric);
        let (Some(moments), Some((metric, factor))) = (value.moments, metric) else { continue };
        let Some(levels) = levels(side.suite, value, run, metric, printed) else { continue };
        let at = levels.into_iter().map(|(name, level)| (name.to_owned(), level)).collect();
        if numbers.iter().any(|known| known.at == at) {
            continue;
        }
        let moments = analysis::moments::Moments {
            mean: moments.mean * factor,
            deviation: moments.deviation * factor,
            n: moments.n,
        };
        numbers.push(Measured { at, moments });
    }
    numbers
}

/// Level of coordinate `metric` in the study, and factor from base units to its unit; `None` if the
/// study has no such metric.
fn metrics(suite: &str, metric: Metric) -> Option<(&'static str, f64)> {
    const KIB: f64 = 1.0 / 1024.0;
    match (suite, metric) {
        ("iozone", Metric::Throughput) => Some(("throughput_mean", KIB)),
        ("tasks", Metric::Elapsed) => Some(("seconds", 1e-9)),
        ("bonnie", Metric::Throughput) => Some(("rate", KIB)),
        ("bonnie", Metric::OpsRate) => Some(("rate", 1.0)),
        ("bonnie", Metric::LatencyMax) => Some(("latency_us", 1e-3)),
        ("dbench", Metric::Throughput) | ("small-files", Metric::OpsRate) => Some(("rate", 1.0)),
        ("tasks" | "bonnie", Metric::CpuUtilization) => Some(("cpu_percent", 100.0)),
        _ => None,
    }
}

/// Coordinates of a result; `None` if the study printed numbers, but not this one.
fn levels(
    suite: &str,
    value: &Value,
    run: &RunRecord,
    metric: &str,
    printed: &Table,
) -> Option<Vec<(&'static str, String)>> {
    let (test, filesystem) = (value.key.test.clone(), value.key.filesystem.clone());
    let metric = ("metric", metric.to_owned());
    let known = |axis: &str, level: &str| {
        printed.cells.iter().any(|cell| cell.at.get(axis).is_some_and(|own| own == level))
    };
    let levels = match suite {
        "iozone" => {
            let block = value.key.block_size?;
            let of = |cell: &analysis::audit::Cell| cell.at.get("record_size_kib").cloned();
            let stands = |level: &String| {
                let size = level.parse().map(|kib: u64| Bytes(kib * 1024).scaled(run.info.scale));
                size.is_ok_and(|size| size.0 == block)
            };
            let record = printed.cells.iter().filter_map(of).find(stands)?;
            vec![("filesystem", filesystem), ("record_size_kib", record), ("test", test), metric]
        }
        "tasks" => {
            let edition = ("edition", "2006".to_owned());
            vec![("filesystem", filesystem), ("test_id", test), edition, metric]
        }
        "bonnie" => {
            let name = alias(suite, &filesystem).to_owned();
            vec![("configuration", name), ("phase", test), metric]
        }
        // The study printed no numbers.
        _ => {
            let name = alias(suite, &filesystem).to_owned();
            let mut levels = vec![("filesystem", name), ("test", test), metric];
            levels.extend(value.at.iter().cloned());
            return Some(levels);
        }
    };
    levels.iter().all(|(axis, level)| known(axis, level)).then_some(levels)
}

/// Section of a report with the statements of the study of a run, or with the reason why they
/// cannot be checked. `None` if the study has no statements.
pub(crate) fn statements_section(run: &RunRecord) -> Option<Section> {
    let reason = |error: StudyError| {
        Section::new("statements", STATEMENTS, vec![Block::Paragraph(format!("{error}."))])
    };
    let audit = StudyAudit::new(run, study_of(run)?);
    Some(audit.map_or_else(reason, |audit| audit.section()))
}

/// Study of a run, if it has statements.
pub fn study_of(run: &RunRecord) -> Option<&'static str> {
    let name = run.info.study?.name();
    AUDITED.iter().find(|set| set.name == name).map(|set| set.name)
}

#[cfg(test)]
mod tests;
