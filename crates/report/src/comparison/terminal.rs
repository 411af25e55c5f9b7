//! Comparison for a terminal: findings, inconclusive tests, all tests, conditions.

use std::fmt::Write;

use analysis::{
    Conditions, Summary,
    conditions::{Difference, Severity},
    runs::{Chain, GateVerdict, TestPair, Unpaired},
};
use comfy_table::{ContentArrangement, Table, presets};
use model::RunRecord;

use super::{
    ComparisonFinding, Mark, NOT_RECORDED, RenderedComparison, at_gate, histories, name, named,
    phrases, regressions, rendered, verdict,
};
use crate::{
    document::terminal::{Page, TerminalOptions},
    units::{Scale, one_line},
    view::metric_label,
};

/// Maximum width in columns, so that tables fit into mails and issues.
const WIDTH_MAX: usize = 80;

/// Maximum number of findings of one kind. The tables have all tests.
const FINDINGS_MAX: usize = 12;

/// Terminal text of a comparison. Gate failures come first, the gate result last.
pub fn terminal(runs: &[&RunRecord], chain: &Chain, options: &TerminalOptions) -> String {
    let width = options.width.min(WIDTH_MAX);
    let mut page = Page::new(&TerminalOptions { width, ..*options });
    for (at, run) in runs.iter().enumerate() {
        page.wrapped(&format!("{:<3}", name(at)), "   ", &named(run));
    }
    if let Some(gate) = &chain.gate {
        let worse = regressions(chain);
        if gate.verdict == GateVerdict::Failed {
            page.heading("Gate failures");
            worse.iter().for_each(|line| page.wrapped("▼ ", "  ", line));
        }
    }
    let changes = histories(chain);
    if !changes.is_empty() {
        page.heading("Change points");
        changes.iter().for_each(|line| page.wrapped("- ", "  ", line));
    }
    for rendered in rendered(chain) {
        step(&mut page, &rendered, width);
    }
    for step in &chain.steps {
        conditions(&mut page, &step.conditions, step.aspects.is_empty(), width);
    }
    if let Some(gate) = &chain.gate {
        page.line("");
        page.wrapped("", "  ", &verdict(gate));
    }
    page.text
}

fn step(page: &mut Page, rendered: &RenderedComparison<'_>, width: usize) {
    page.line("");
    let title = page.styled("1", &rendered.title);
    page.wrapped("", "  ", &title);
    for why in &rendered.obstacles {
        page.wrapped("No findings: ", "  ", why);
    }
    if !rendered.obstacles.is_empty() && !rendered.aspects.is_empty() {
        page.wrapped("The results below compare ", "  ", &format!("{}.", rendered.aspects));
    }
    findings(page, "Findings", &rendered.headlines);
    if !rendered.listed.is_empty() {
        page.line("");
        page.wrapped("", "", &rendered.listing());
        list(page, &rendered.listed);
    }
    if rendered.step.family.found > 0 && rendered.obstacles.is_empty() {
        page.wrapped("", "", &rendered.level());
    }
    if let Some(nothing) = rendered.nothing() {
        page.line("");
        page.wrapped("", "", &nothing);
    }
    findings(page, "Inconclusive", &rendered.open);
    if !rendered.notes.is_empty() {
        page.line("");
        rendered.notes.iter().for_each(|note| page.wrapped("", "  ", note));
    }
    groups(page, rendered, width);
    for (heading, cells) in [
        ("Cells only in the first run", &rendered.step.only_first),
        ("Cells only in the second run", &rendered.step.only_second),
    ] {
        unpaired(page, heading, cells);
    }
}

fn findings(page: &mut Page, heading: &str, findings: &[ComparisonFinding]) {
    if !findings.is_empty() {
        page.heading(heading);
        list(page, findings);
    }
}

fn list(page: &mut Page, findings: &[ComparisonFinding]) {
    for ComparisonFinding { mark, text, .. } in findings.iter().take(FINDINGS_MAX) {
        let sign = mark.label().chars().next().unwrap_or('-');
        page.wrapped(&format!("{sign} "), "  ", text);
    }
    let more = findings.len().saturating_sub(FINDINGS_MAX);
    if more > 0 {
        page.line(&format!("  and {more} more, in the tables below"));
    }
}

/// All tests, by cell and metric.
fn groups(page: &mut Page, rendered: &RenderedComparison<'_>, width: usize) {
    let key = |test: &TestPair| (test.first, test.metric);
    let mut keys = Vec::new();
    for test in &rendered.step.tests {
        if !keys.contains(&key(test)) {
            keys.push(key(test));
        }
    }
    for wanted in keys {
        let own: Vec<&TestPair> =
            rendered.step.tests.iter().filter(|test| key(test) == wanted).collect();
        let Some(first) = own.first() else { continue };
        page.line("");
        let heading = format!(
            "{} · {} · {}, {}",
            phrases::filesystem(first),
            one_line(&first.label),
            metric_label(first.metric),
            first.metric.spec().better.label()
        );
        page.wrapped("", "  ", &heading);
        let table = table(page, rendered, &own, width);
        page.line(&table);
    }
}

fn table(
    page: &Page,
    rendered: &RenderedComparison<'_>,
    tests: &[&TestPair],
    width: usize,
) -> String {
    let summaries = tests.iter().flat_map(|test| [&test.before, &test.after]);
    let medians: Vec<f64> = summaries.flatten().map(|summary| summary.median).collect();
    let unit = tests.first().map(|test| test.metric.spec().unit);
    let Some(scale) = unit.map(|unit| Scale::of(unit, medians.iter().copied())) else {
        return String::new();
    };
    let mut table = plain(width);
    let (first, second) = (rendered.names.0.as_str(), rendered.names.1.as_str());
    let head = |name: &str| format!("{name}, {}", scale.name).trim_end_matches(", ").to_owned();
    let gated = rendered.step.tests.iter().any(|test| test.gate.is_some());
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
        let mark = Mark::of(test, rendered.step);
        let (change, counts, mark) = match &test.comparison {
            Ok(comparison) => (
                phrases::change(test).map(phrases::signed).unwrap_or_default(),
                format!("{}, {}", comparison.n_first, comparison.n_second),
                match mark.color() {
                    Some(color) => page.styled(color, mark.label()),
                    None => mark.label().into(),
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

fn unpaired(page: &mut Page, heading: &str, cells: &[Unpaired]) {
    if cells.is_empty() {
        return;
    }
    page.heading(heading);
    for Unpaired { name, reason, .. } in cells {
        page.wrapped("  ", "    ", &format!("{}: {reason}", one_line(name)));
    }
    if cells.iter().any(|cell| matches!(cell.reason, analysis::runs::UnpairedReason::Filesystem(_)))
    {
        page.line("hint: --pair A=B compares filesystem A of the first run with B of the second");
    }
}

/// Severities with their headings.
const HEADINGS: [(Severity, &str); 2] = [
    (Severity::Severe, "Differences that can affect results"),
    (Severity::Other, "Other differences"),
];

fn conditions(page: &mut Page, conditions: &Conditions, repeat: bool, width: usize) {
    for (severity, heading) in HEADINGS {
        let mut rows = conditions.with_severity(severity).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let mut table = plain(width);
        table.set_header(["condition", "first", "second", ""]);
        let value = |value: &Option<String>| {
            value.as_ref().map_or_else(|| NOT_RECORDED.to_owned(), |value| one_line(value))
        };
        for Difference { what, first, second, aspect, .. } in rows {
            let aspect = aspect.map_or("", |aspect| aspect.name());
            table.add_row([one_line(what), value(first), value(second), aspect.into()]);
        }
        page.heading(heading);
        page.line(&table.trim_fmt());
    }
    if conditions.differences.is_empty() {
        page.line(match repeat {
            true => "\nNo condition is known to differ.",
            false => "\nNo further condition is known to differ.",
        });
    }
    if !conditions.shared.is_empty() {
        page.heading("Common cells");
        let mut cells = String::new();
        for cell in &conditions.shared {
            // Writing to a string cannot fail.
            let _ = writeln!(cells, "  {}", one_line(cell));
        }
        page.line(&cells);
    }
}
