//! `fslab compare`: what differed between the conditions of two runs.
//!
//! Two run files enter; [`analysis::Conditions`] are found and laid out here. Numbers are not
//! compared.

use std::{fmt::Write, path::Path};

use analysis::{
    Conditions,
    conditions::{Difference, Severity},
};
use comfy_table::{ContentArrangement, Table, presets};
use model::RunRecord;
use serde_json::json;

use super::{keeping::Keeping, report::read};
use crate::{
    cli::{Compare, ComparisonFormat},
    exit::{Exit, Failure},
    output,
};

/// Columns at most, so that the tables can be put into mails and issues.
const WIDTH: usize = 80;

/// What the other run does not tell.
const UNTOLD: &str = "not told";

pub(super) fn run(compare: &Compare) -> Result<Exit, Failure> {
    let record = |path: &Path| read(&Keeping::find(path));
    let runs = [record(&compare.first)?, record(&compare.second)?];
    let conditions = Conditions::of(&runs[0], &runs[1]);
    let text = match compare.format {
        None => terminal(&runs, &conditions, output::width().min(WIDTH)),
        Some(ComparisonFormat::Md) => markdown(&runs, &conditions),
        Some(ComparisonFormat::Json) => json(&runs, &conditions),
    };
    output::result(&text)?;
    Ok(Exit::Done)
}

/// Both severities with their headings.
const HEADINGS: [(Severity, &str); 2] = [
    (Severity::Severe, "Severe: each of these alone can make the numbers differ"),
    (Severity::Other, "Other"),
];

/// The lists of cells with their headings.
fn cells(conditions: &Conditions) -> [(&'static str, &[String]); 3] {
    [
        ("Cells of both runs", &conditions.shared),
        ("Cells of A alone", &conditions.only_first),
        ("Cells of B alone", &conditions.only_second),
    ]
}

fn same(conditions: &Conditions) -> Option<&'static str> {
    conditions.differences.is_empty().then_some("No condition is known to differ.")
}

/// A run in one line.
fn named(run: &RunRecord) -> String {
    plain(&format!("{} ({})", run.info.id, run.info.title))
}

/// A value on one line, without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn told(value: Option<&String>) -> String {
    value.map_or_else(|| UNTOLD.into(), |value| plain(value))
}

fn terminal(runs: &[RunRecord; 2], conditions: &Conditions, width: usize) -> String {
    let mut text = format!("A  {}\nB  {}\n", named(&runs[0]), named(&runs[1]));
    for (severity, heading) in HEADINGS {
        let mut rows = conditions.at(severity).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        table.set_header(["condition", "A", "B"]);
        for Difference { what, first, second, .. } in rows {
            table.add_row([plain(what), told(first.as_ref()), told(second.as_ref())]);
        }
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "\n{heading}\n{table}");
    }
    if let Some(same) = same(conditions) {
        let _ = writeln!(text, "\n{same}");
    }
    for (heading, cells) in cells(conditions) {
        if cells.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{heading}");
        for cell in cells {
            let _ = writeln!(text, "  {}", plain(cell));
        }
    }
    if conditions.shared.is_empty() {
        text.push_str("\nNo cell is in both runs: nothing of them can be compared.\n");
    }
    text
}

fn markdown(runs: &[RunRecord; 2], conditions: &Conditions) -> String {
    let escaped = |text: &str| plain(text).replace('|', "\\|");
    let mut text =
        format!("A: {}  \nB: {}\n", escaped(&named(&runs[0])), escaped(&named(&runs[1])));
    match same(conditions) {
        // Writing to a string cannot fail, here and below.
        Some(same) => text.push_str(&format!("\n{same}\n")),
        None => text.push_str("\n| condition | severity | A | B |\n| --- | --- | --- | --- |\n"),
    }
    for Difference { severity, what, first, second } in &conditions.differences {
        let (first, second) = (told(first.as_ref()), told(second.as_ref()));
        let (what, first, second) = (escaped(what), escaped(&first), escaped(&second));
        let _ = writeln!(text, "| {what} | {} | {first} | {second} |", severity.name());
    }
    for (heading, cells) in cells(conditions) {
        if !cells.is_empty() {
            let _ = writeln!(text, "\n{heading}:\n");
            cells.iter().for_each(|cell| text.push_str(&format!("- {}\n", escaped(cell))));
        }
    }
    text
}

fn json(runs: &[RunRecord; 2], conditions: &Conditions) -> String {
    let run = |run: &RunRecord| json!({ "id": run.info.id, "title": run.info.title });
    let differences = conditions.differences.iter().map(|difference| {
        let Difference { severity, what, first, second } = difference;
        json!({ "condition": what, "severity": severity.name(), "a": first, "b": second })
    });
    let object = json!({
        "a": run(&runs[0]),
        "b": run(&runs[1]),
        "differences": differences.collect::<Vec<_>>(),
        "cells": {
            "shared": conditions.shared,
            "only_a": conditions.only_first,
            "only_b": conditions.only_second,
        },
    });
    format!("{object:#}")
}
