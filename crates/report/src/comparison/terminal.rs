//! A comparison for a terminal: findings first, then what is open, then every test.

use std::fmt::Write;

use analysis::{
    Conditions, Summary,
    conditions::{Difference, Severity},
    runs::{Chain, GateVerdict, Lone, TestPair},
};
use comfy_table::{ContentArrangement, Table, presets};
use model::RunRecord;

use super::{
    Mark, Sentence, Told, at_gate, histories, name, named, regressions, told, verdict, words,
};
use crate::{
    terminal::{Page, TerminalOptions},
    units::{Scale, one_line},
    view::words as metric_words,
};

/// Columns at most, so that the tables can be put into mails and issues.
const WIDTH_MAX: usize = 80;

/// Sentences of one kind that are shown; the tables have all.
const SENTENCES_MAX: usize = 12;

/// What the other run does not tell.
const UNTOLD: &str = "not told";

/// Lays a comparison out for a terminal. A gate's regressions stand first, and its verdict last.
pub fn terminal(runs: &[&RunRecord], chain: &Chain, options: &TerminalOptions) -> String {
    let width = options.width.min(WIDTH_MAX);
    let mut page = Page::new(&TerminalOptions { width, ..*options });
    for (at, run) in runs.iter().enumerate() {
        page.wrapped(&format!("{:<3}", name(at)), "   ", &named(run));
    }
    if let Some(gate) = &chain.gate {
        let worse = regressions(chain);
        if gate.verdict == GateVerdict::Failed {
            page.heading("Worse than the gate allows");
            worse.iter().for_each(|line| page.wrapped("▼ ", "  ", line));
        }
    }
    let changes = histories(chain);
    if !changes.is_empty() {
        page.heading("Changes over all runs");
        changes.iter().for_each(|line| page.wrapped("- ", "  ", line));
    }
    for told in told(chain) {
        step(&mut page, &told, width);
    }
    for step in &chain.steps {
        conditions(&mut page, &step.conditions, step.ways.is_empty(), width);
    }
    if let Some(gate) = &chain.gate {
        page.line("");
        page.wrapped("", "  ", &verdict(gate));
    }
    page.text
}

fn step(page: &mut Page, told: &Told<'_>, width: usize) {
    page.line("");
    let title = page.styled("1", &told.title);
    page.wrapped("", "  ", &title);
    for why in &told.refused {
        page.wrapped("No claims: ", "  ", why);
    }
    if !told.refused.is_empty() && !told.ways.is_empty() {
        page.wrapped("Numbers below are of ", "  ", &format!("{}.", told.ways));
    }
    sentences(page, "Findings", &told.headlines);
    if !told.listed.is_empty() {
        page.line("");
        page.wrapped("", "", &told.listing());
        list(page, &told.listed);
    }
    if told.step.family.found > 0 && told.refused.is_empty() {
        page.wrapped("", "", &told.level());
    }
    if let Some(nothing) = told.nothing() {
        page.line("");
        page.wrapped("", "", &nothing);
    }
    sentences(page, "Open", &told.open);
    if !told.notes.is_empty() {
        page.line("");
        told.notes.iter().for_each(|note| page.wrapped("", "  ", note));
    }
    groups(page, told, width);
    for (heading, lone) in [
        ("Cells of the first alone", &told.step.only_first),
        ("Cells of the second alone", &told.step.only_second),
    ] {
        alone(page, heading, lone);
    }
}

fn sentences(page: &mut Page, heading: &str, sentences: &[Sentence]) {
    if !sentences.is_empty() {
        page.heading(heading);
        list(page, sentences);
    }
}

fn list(page: &mut Page, sentences: &[Sentence]) {
    for Sentence { mark, text, .. } in sentences.iter().take(SENTENCES_MAX) {
        let sign = mark.words().chars().next().unwrap_or('-');
        page.wrapped(&format!("{sign} "), "  ", text);
    }
    let more = sentences.len().saturating_sub(SENTENCES_MAX);
    if more > 0 {
        page.line(&format!("  and {more} more, in the tables below"));
    }
}

/// Every test, by cell and metric.
fn groups(page: &mut Page, told: &Told<'_>, width: usize) {
    let key = |test: &TestPair| (test.first, test.metric);
    let mut keys = Vec::new();
    for test in &told.step.tests {
        if !keys.contains(&key(test)) {
            keys.push(key(test));
        }
    }
    for wanted in keys {
        let own: Vec<&TestPair> =
            told.step.tests.iter().filter(|test| key(test) == wanted).collect();
        let Some(first) = own.first() else { continue };
        page.line("");
        let heading = format!(
            "{} · {} · {}, {}",
            words::filesystem(first),
            one_line(&first.label),
            metric_words(first.metric),
            first.metric.spec().better.words()
        );
        page.wrapped("", "  ", &heading);
        let table = table(page, told, &own, width);
        page.line(&table);
    }
}

fn table(page: &Page, told: &Told<'_>, tests: &[&TestPair], width: usize) -> String {
    let summaries = tests.iter().flat_map(|test| [&test.before, &test.after]);
    let medians: Vec<f64> = summaries.flatten().map(|summary| summary.median).collect();
    let unit = tests.first().map(|test| test.metric.spec().unit);
    let Some(scale) = unit.map(|unit| Scale::of(unit, medians.iter().copied())) else {
        return String::new();
    };
    let mut table = plain(width);
    let (second, first) = told.title.split_once(" against ").unwrap_or_default();
    let first = first.split(':').next().unwrap_or_default();
    let head = |name: &str| format!("{name}, {}", scale.name).trim_end_matches(", ").to_owned();
    let gated = told.step.tests.iter().any(|test| test.gate.is_some());
    let mut header = vec![
        "test".into(),
        head(first),
        head(second),
        "change [interval]".to_owned(),
        "n".into(),
        String::new(),
    ];
    header.extend(gated.then(|| "gate".to_owned()));
    table.set_header(header);
    let value = |summary: &Option<Summary>| {
        summary.as_ref().map_or_else(String::new, |summary| scale.shown(summary).value)
    };
    for test in tests {
        let mark = Mark::of(test, told.step);
        let (change, counts, mark) = match &test.comparison {
            Ok(comparison) => (
                words::change(test).map(words::signed).unwrap_or_default(),
                format!("{}, {}", comparison.n_first, comparison.n_second),
                match mark.color() {
                    Some(color) => page.styled(color, mark.words()),
                    None => mark.words().into(),
                },
            ),
            Err(withheld) => (format!("not compared: {withheld}"), String::new(), String::new()),
        };
        let (before, after) = (value(&test.before), value(&test.after));
        let mut row = vec![one_line(&test.phase), before, after, one_line(&change), counts, mark];
        row.extend(gated.then(|| at_gate(test).to_owned()));
        table.add_row(row);
    }
    table.trim_fmt()
}

fn plain(width: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(80));
    table
}

fn alone(page: &mut Page, heading: &str, lone: &[Lone]) {
    if lone.is_empty() {
        return;
    }
    page.heading(heading);
    for Lone { name, why, .. } in lone {
        page.wrapped("  ", "    ", &format!("{}: {why}", one_line(name)));
    }
    if lone.iter().any(|lone| matches!(lone.why, analysis::runs::Why::Filesystem(_))) {
        page.line("--pair A=B compares filesystem A of the first run with B of the second.");
    }
}

/// Both severities with their headings.
const HEADINGS: [(Severity, &str); 2] = [
    (Severity::Severe, "Severe: each of these alone can make the numbers differ"),
    (Severity::Other, "Other conditions that differed"),
];

fn conditions(page: &mut Page, conditions: &Conditions, repeat: bool, width: usize) {
    for (severity, heading) in HEADINGS {
        let mut rows = conditions.at(severity).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let mut table = plain(width);
        table.set_header(["condition", "first", "second", ""]);
        let value = |value: &Option<String>| {
            value.as_ref().map_or_else(|| UNTOLD.to_owned(), |value| one_line(value))
        };
        for Difference { what, first, second, way, .. } in rows {
            let way = way.map_or("", |way| way.name());
            table.add_row([one_line(what), value(first), value(second), way.into()]);
        }
        page.heading(heading);
        page.line(&table.trim_fmt());
    }
    if conditions.differences.is_empty() {
        page.line(match repeat {
            true => "\nNo condition is known to differ.",
            false => "\nBeside that, no condition is known to differ.",
        });
    }
    if !conditions.shared.is_empty() {
        page.heading("Cells of both runs");
        let mut cells = String::new();
        for cell in &conditions.shared {
            // Writing to a string cannot fail.
            let _ = writeln!(cells, "  {}", one_line(cell));
        }
        page.line(&cells);
    }
}
