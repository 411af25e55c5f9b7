//! An audit for a terminal, as Markdown, and as JSON.

use analysis::audit::{AtPlace, Fact, Finding, Judged, Judgment, Ruling, Statement, Why};
use serde_json::{Value, json};

use super::{
    Audit,
    words::{plain, ruling},
};
use crate::{formats::markdown::escaped, terminal::Page, terminal::TerminalOptions};

/// Findings of one kind, and places with their numbers of one part, that are listed without
/// `detail`.
const LISTED: usize = 40;
const PLACES: usize = 1;

/// Version of the JSON. It changes when a field goes or means something else.
const SCHEMA: u32 = 1;

/// A heading and its lines.
struct Section {
    heading: String,
    lines: Vec<String>,
}

/// What findings of a kind are called, and which they are.
type Kind = (&'static str, fn(&Finding) -> bool);

/// The kinds of findings, in their order.
const KINDS: [Kind; 6] = [
    ("Malformed numbers", |finding| matches!(finding, Finding::Malformed { .. })),
    ("Printed twice with different values", |finding| matches!(finding, Finding::Differs { .. })),
    ("Cells that repeat another", |finding| matches!(finding, Finding::Repeats { .. })),
    ("How often values repeat", |finding| matches!(finding, Finding::Repeated(_))),
    ("Holes", |finding| matches!(finding, Finding::Hole { .. })),
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
                lines.push(format!("and {} more; --format json has all", count - most));
            }
            (count > 0).then(|| Section { heading: format!("{name} ({count})"), lines })
        };
        KINDS.iter().filter_map(section).collect()
    }

    /// How many statements came to what.
    fn tally(&self) -> String {
        let all = [Ruling::Holds, Ruling::InPart, Ruling::Contradicted, Ruling::NotTestable];
        let count = |wanted: Ruling| {
            let of = self.judgments.iter().filter(|judgment| judgment.ruling == wanted).count();
            let words = if wanted == Ruling::Holds { "hold" } else { ruling(wanted) };
            (of > 0).then(|| format!("{of} {words}"))
        };
        let counts: Vec<String> = all.into_iter().filter_map(count).collect();
        format!("Statements ({}): {}", self.judgments.len(), counts.join(", "))
    }

    /// What was looked at, and what against it was found, in one line.
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

    fn judgment_lines(&self, judgment: &Judgment, most: usize) -> Vec<String> {
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

    fn statements(&self) -> impl Iterator<Item = (&Statement, &Judgment)> {
        self.statements.iter().zip(&self.judgments)
    }

    /// For a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        let mut page = Page::new(options);
        let title = page.styled("1", &format!("Audit of {}", plain(&self.title)));
        page.line(&title);
        for (name, text) in &self.source {
            page.wrapped(&format!("{}: ", plain(name)), "  ", &plain(text));
        }
        page.wrapped("", "  ", &self.summary());
        for section in self.sections(options.detail) {
            page.heading(&section.heading);
            section.lines.iter().for_each(|line| page.wrapped("- ", "  ", line));
        }
        if !self.judgments.is_empty() {
            page.heading(&self.tally());
        }
        let most = if options.detail { usize::MAX } else { PLACES };
        for (statement, judgment) in self.statements() {
            let head = format!("{} {}: ", plain(&statement.id), ruling(judgment.ruling));
            page.wrapped(&head, "  ", &plain(&statement.says));
            let parts = self.judgment_lines(judgment, most);
            parts.iter().for_each(|line| page.wrapped("  - ", "    ", line));
        }
        if !self.left_out.is_empty() {
            page.heading(&format!("Not looked at ({})", self.left_out.len()));
        }
        for (says, why) in &self.left_out {
            page.wrapped("- ", "  ", &format!("{}: {}", plain(says), plain(why)));
        }
        page.text
    }

    /// As GitHub-flavored Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# Audit of {}\n\n", safe(&self.title));
        for (name, value) in &self.source {
            text.push_str(&format!("- {}: {}\n", safe(name), safe(value)));
        }
        text.push_str(&format!("\n{}\n", self.summary()));
        for section in self.sections(true) {
            text.push_str(&format!("\n## {}\n\n", section.heading));
            section.lines.iter().for_each(|line| text.push_str(&format!("- {}\n", safe(line))));
        }
        if !self.judgments.is_empty() {
            text.push_str(&format!("\n## {}\n\n", self.tally()));
            text.push_str("| id | statement | comes to | numbers |\n| --- | --- | --- | --- |\n");
        }
        for (statement, judgment) in self.statements() {
            let parts = self.judgment_lines(judgment, PLACES).join(" / ");
            text.push_str(&format!(
                "| {} | {} | {} | {} |\n",
                safe(&statement.id),
                safe(&statement.says),
                ruling(judgment.ruling),
                safe(&parts)
            ));
        }
        if !self.left_out.is_empty() {
            text.push_str("\n## Not looked at\n\n");
        }
        for (says, why) in &self.left_out {
            text.push_str(&format!("- {}: {}\n", safe(says), safe(why)));
        }
        text
    }

    /// As JSON: all findings and places, with cells by their coordinates. What only describes the
    /// numbers, and does not count as a finding, stands under `observations`.
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
                    "says": statement.says,
                    "comes_to": ruling(judgment.ruling),
                    "parts": parts,
                })
            })
            .collect();
        let source: serde_json::Map<String, Value> =
            self.source.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
        let left_out: Vec<Value> =
            self.left_out.iter().map(|(says, why)| json!({ "says": says, "why": why })).collect();
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
            "left_out": left_out,
        });
        format!("{document:#}\n")
    }

    fn cell_json(&self, cell: usize) -> Value {
        let cell = &self.table.cells[cell];
        json!({ "at": cell.at, "printed": cell.printed })
    }

    fn finding_json(&self, finding: &Finding) -> Value {
        let words = self.sentence(finding);
        match finding {
            Finding::Malformed { cell, reading, others, confirmed, .. } => json!({
                "kind": "malformed",
                "cell": self.cell_json(*cell),
                "reading": reading,
                "others": others,
                "confirmed_by": confirmed.map(|cell| self.cell_json(cell)),
                "words": words,
            }),
            Finding::Differs { first, second, difference, why } => {
                let (name, cell) = reason(why);
                json!({
                    "kind": "differs",
                    "first": self.cell_json(*first),
                    "second": self.cell_json(*second),
                    "difference": difference,
                    "why": name,
                    "why_cell": cell.map(|cell| self.cell_json(cell)),
                    "words": words,
                })
            }
            Finding::Repeats { first, second, shared, whole } => json!({
                "kind": "repeats",
                "first": self.cell_json(*first),
                "second": self.cell_json(*second),
                "shared": self.layout.repeats[*shared],
                "whole_cell": whole,
                "words": words,
            }),
            Finding::Repeated(chance) => json!({
                "kind": "chance",
                "statistic": chance.statistic,
                "shared": self.layout.repeats[chance.shared],
                "sharing": { "equal": chance.sharing.0, "pairs": chance.sharing.1 },
                "expected": chance.expected,
                "apart": { "equal": chance.apart.0, "pairs": chance.apart.1 },
                "p": chance.p,
                "words": words,
            }),
            Finding::Hole { at } => json!({ "kind": "hole", "at": at, "words": words }),
            Finding::Granular { statistic, parts, values } => json!({
                "kind": "last_digits",
                "statistic": statistic,
                "means_of": parts.of,
                "cut": parts.cut,
                "values": values,
                "words": words,
            }),
        }
    }

    fn part_json(&self, part: &Judged) -> Value {
        let places: Vec<Value> = part.places.iter().map(|at| self.place_json(at)).collect();
        json!({
            "comes_to": ruling(part.ruling),
            "within_noise": part.within_noise(),
            "not_tested": part.absent,
            "places": places,
        })
    }

    fn place_json(&self, at: &AtPlace) -> Value {
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
        json!({ "at": at.at, "holds": at.holds, "p": at.p, "numbers": fact })
    }
}

/// Text for Markdown: nothing in it is markup or ends its line.
fn safe(text: &str) -> String {
    escaped(&plain(text))
}

fn reason(why: &Why) -> (&'static str, Option<usize>) {
    match why {
        Why::OneDigit { .. } => ("one_digit", None),
        Why::Swapped { .. } => ("swapped_digits", None),
        Why::SecondIsOf { cell } => ("second_is_of", Some(*cell)),
        Why::FirstIsOf { cell } => ("first_is_of", Some(*cell)),
        Why::Unknown => ("unknown", None),
    }
}
