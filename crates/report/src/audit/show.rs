//! Output of an audit: terminal, Markdown, JSON.

use analysis::audit::{Cause, Fact, Finding, Judged, Judgment, LocationResult, Ruling, Statement};
use serde_json::{Value, json};

use super::{Audit, text::ruling};
use crate::{
    document::{
        Block, Document, Item, Section, Style,
        markdown::markdown,
        terminal::{TerminalOptions, terminal},
    },
    units::slug,
};

/// Maximum number of findings per kind, and of locations per part, without `detail`.
const LISTED: usize = 40;
const LOCATIONS: usize = 1;

/// Version of the JSON format. It changes if a field is removed or changes its meaning.
const SCHEMA: u32 = 1;

/// Heading of a kind of findings, and the function that selects them.
type Kind = (&'static str, fn(&Finding) -> bool);

/// Kinds of findings in order.
const KINDS: [Kind; 6] = [
    ("Malformed numbers", |finding| matches!(finding, Finding::Malformed { .. })),
    ("Conflicting values", |finding| matches!(finding, Finding::Conflicting { .. })),
    ("Duplicated cells", |finding| matches!(finding, Finding::Duplicated { .. })),
    ("Duplicate-value test", |finding| matches!(finding, Finding::DuplicateTest(_))),
    ("Missing cells", |finding| matches!(finding, Finding::MissingCell { .. })),
    ("Last digits", |finding| matches!(finding, Finding::Granular { .. })),
];

impl Audit {
    fn sections(&self, all: bool) -> Vec<Section> {
        let most = if all { usize::MAX } else { LISTED };
        let section = |(name, of): &Kind| {
            let found = self.findings.iter().filter(|finding| of(finding));
            let count = found.clone().count();
            let mut lines: Vec<String> = found.take(most).map(|f| self.sentence(f)).collect();
            if count > most {
                lines.push(format!("and {} more, see --format json", count - most));
            }
            Some(Section::new(
                slug(name),
                format!("{name} ({count})"),
                vec![Block::bullets(lines)?],
            ))
        };
        KINDS.iter().filter_map(section).collect()
    }

    /// Number of statements per ruling.
    fn tally(&self) -> String {
        let all = [Ruling::Holds, Ruling::InPart, Ruling::Contradicted, Ruling::NotTestable];
        let count = |wanted: Ruling| {
            let of = self.judgments.iter().filter(|judgment| judgment.ruling == wanted).count();
            let label = if wanted == Ruling::Holds { "hold" } else { ruling(wanted) };
            (of > 0).then(|| format!("{of} {label}"))
        };
        let counts: Vec<String> = all.into_iter().filter_map(count).collect();
        format!("Statements ({}): {}", self.judgments.len(), counts.join(", "))
    }

    /// Numbers of cells, of findings, and of statements that are contradicted or hold in part, in
    /// one line.
    fn summary(&self) -> String {
        let doubtful = self.findings.iter().filter(|finding| finding.doubtful()).count();
        let plural = if doubtful == 1 { "" } else { "s" };
        let cells = self.table.cells.len();
        let cells = format!("{cells} cell{}", if cells == 1 { "" } else { "s" });
        let mut text = format!("{cells}: {doubtful} finding{plural}");
        let mut noun = " statement";
        for wanted in [Ruling::Contradicted, Ruling::InPart] {
            let of = self.judgments.iter().filter(|judgment| judgment.ruling == wanted).count();
            if of > 0 {
                let plural = if of == 1 || noun.is_empty() { "" } else { "s" };
                text.push_str(&format!(", {of}{noun}{plural} {}", ruling(wanted)));
                noun = "";
            }
        }
        text
    }

    pub(crate) fn judgment_lines(&self, judgment: &Judgment, most: usize) -> Vec<String> {
        let judged = |part: &Judged| self.judged(part, most);
        judgment
            .parts
            .iter()
            .flat_map(|part| {
                let mut lines = judged(part);
                let rest = lines.split_off(1);
                vec![format!("{}; {}", lines[0], rest.join("; ")).trim_end_matches("; ").to_owned()]
            })
            .collect()
    }

    pub(crate) fn statements(&self) -> impl Iterator<Item = (&Statement, &Judgment)> {
        self.statements.iter().zip(&self.judgments)
    }

    /// Formats the audit for a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        let locations = if options.detail { usize::MAX } else { LOCATIONS };
        terminal(&self.document(options.detail, locations), options)
    }

    /// Formats the audit as GitHub-flavored Markdown.
    pub fn markdown(&self) -> String {
        markdown(&self.document(true, LOCATIONS))
    }

    fn document(&self, all: bool, locations: usize) -> Document {
        let source = self.source.iter().map(|(name, text)| Item::named(name, text));
        let summary = Block::Paragraph(self.summary());
        let statement = |(statement, judgment): (&Statement, &Judgment)| Item {
            term: format!("{} {}", statement.id, ruling(judgment.ruling)),
            text: statement.text.clone(),
            lines: self.judgment_lines(judgment, locations),
            ..Item::default()
        };
        let statements = Block::list(Style::Bullets, self.statements().map(statement));
        let skipped = self.skipped.iter().map(|(text, reason)| Item::named(text, reason));
        let skipped = Block::list(Style::Bullets, skipped);
        let head = format!("Not checked ({})", self.skipped.len());
        let section =
            |id: &str, title, list: Option<Block>| Some(Section::new(id, title, vec![list?]));
        let mut sections = self.sections(all);
        sections.extend(section("statements", self.tally(), statements));
        sections.extend(section("not-checked", head, skipped));
        Document {
            title: format!("Audit of {}", self.title),
            lead: Block::list(Style::Facts, source).into_iter().chain([summary]).collect(),
            sections,
            ..Document::default()
        }
    }

    /// Formats the audit as JSON, with all findings and locations, and cells by their coordinates.
    /// Findings that are not evidence against the numbers are under `observations`.
    pub fn json(&self) -> String {
        let (findings, observations): (Vec<&Finding>, Vec<&Finding>) =
            self.findings.iter().partition(|finding| finding.doubtful());
        let values = |all: Vec<&Finding>| -> Vec<Value> {
            all.into_iter().map(|finding| self.finding_json(finding)).collect()
        };
        let statements: Vec<Value> = self
            .statements()
            .map(|(statement, judgment)| {
                let parts: Vec<Value> =
                    judgment.parts.iter().map(|part| self.part_json(part)).collect();
                json!({
                    "id": statement.id,
                    "text": statement.text,
                    "ruling": ruling(judgment.ruling),
                    "parts": parts,
                })
            })
            .collect();
        let source: serde_json::Map<String, Value> =
            self.source.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
        let skip = |(text, reason): &(String, String)| json!({ "text": text, "reason": reason });
        let skipped: Vec<Value> = self.skipped.iter().map(skip).collect();
        let document = json!({
            "schema": SCHEMA,
            "audit": self.title,
            "measured_by_fslab": false,
            "source": source,
            "unit": self.unit,
            "cells": self.table.cells.len(),
            "found": self.found(),
            "findings": values(findings),
            "observations": values(observations),
            "statements": statements,
            "skipped": skipped,
        });
        format!("{document:#}\n")
    }

    fn cell_json(&self, cell: usize) -> Value {
        let cell = &self.table.cells[cell];
        json!({ "location": cell.at, "printed": cell.printed })
    }

    fn finding_json(&self, finding: &Finding) -> Value {
        let text = self.sentence(finding);
        match finding {
            Finding::Malformed { cell, reading, others, confirmed, .. } => json!({
                "kind": "malformed",
                "cell": self.cell_json(*cell),
                "reading": reading,
                "others": others,
                "confirmed_by": confirmed.map(|cell| self.cell_json(cell)),
                "text": text,
            }),
            Finding::Conflicting { first, second, difference, reason } => {
                let (name, cell) = cause(reason);
                json!({
                    "kind": "conflicting",
                    "first": self.cell_json(*first),
                    "second": self.cell_json(*second),
                    "difference": difference,
                    "reason": name,
                    "reason_cell": cell.map(|cell| self.cell_json(cell)),
                    "text": text,
                })
            }
            Finding::Duplicated { first, second, shared, whole } => json!({
                "kind": "duplicated",
                "first": self.cell_json(*first),
                "second": self.cell_json(*second),
                "shared": self.layout.repeats[*shared],
                "whole_cell": whole,
                "text": text,
            }),
            Finding::DuplicateTest(chance) => json!({
                "kind": "duplicate_test",
                "statistic": chance.statistic,
                "shared": self.layout.repeats[chance.shared],
                "sharing": { "equal": chance.sharing.0, "pairs": chance.sharing.1 },
                "expected": chance.expected,
                "apart": { "equal": chance.apart.0, "pairs": chance.apart.1 },
                "p": chance.p,
                "text": text,
            }),
            Finding::MissingCell { at } => {
                json!({ "kind": "missing", "location": at, "text": text })
            }
            Finding::Granular { statistic, parts, values } => json!({
                "kind": "last_digits",
                "statistic": statistic,
                "means_of": parts.of,
                "truncated": parts.cut,
                "values": values,
                "text": text,
            }),
        }
    }

    pub(crate) fn part_json(&self, part: &Judged) -> Value {
        let locations: Vec<Value> = part.places.iter().map(|at| self.location_json(at)).collect();
        json!({
            "ruling": ruling(part.ruling),
            "within_noise": part.within_noise(),
            "not_tested": part.absent,
            "locations": locations,
        })
    }

    fn location_json(&self, at: &LocationResult) -> Value {
        let levels = |levels: &[(String, f64)]| -> Vec<Value> {
            levels.iter().map(|(name, value)| json!({ "level": name, "value": value })).collect()
        };
        let fact = match &at.fact {
            Fact::Ranked(all) => json!({ "ranked": levels(all) }),
            Fact::Steps(all) => json!({ "steps": levels(all) }),
            Fact::Gains(all) => json!({ "gains": levels(all) }),
            Fact::Factor(one, other, ratio) => {
                json!({ "better": one, "other": other, "ratio": ratio })
            }
            Fact::Change(from, to) => json!({ "from": from, "to": to }),
            Fact::Number(value, cell) => {
                json!({ "value": value, "quoted_is": cell.map(|cell| self.cell_json(cell)) })
            }
            Fact::Count(found) => json!({ "count": found }),
        };
        json!({ "location": at.at, "holds": at.holds, "p": at.p, "numbers": fact })
    }
}

fn cause(cause: &Cause) -> (&'static str, Option<usize>) {
    match cause {
        Cause::OneDigit { .. } => ("one_digit", None),
        Cause::Swapped { .. } => ("swapped_digits", None),
        Cause::SecondIsOf { cell } => ("second_is_of", Some(*cell)),
        Cause::FirstIsOf { cell } => ("first_is_of", Some(*cell)),
        Cause::Unknown => ("unknown", None),
    }
}
