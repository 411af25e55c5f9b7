//! The tables as GitHub-flavored Markdown, to be put into another document.

use std::fmt::Write;

use crate::{
    published,
    view::{Body, Column, Row, Table, TableCell, View},
};

/// All tables of the view with their captions, after a heading with the conditions.
pub fn markdown(view: &View) -> String {
    let facts = &view.facts;
    let mut text = format!("# {}\n\n", escaped(&facts.title));
    // Writing to a string cannot fail, here and below.
    if let Some(program) = &facts.imported {
        let _ = writeln!(text, "Imported from {}, not measured by fslab.\n", escaped(program));
    }
    let _ = writeln!(
        text,
        "Plan {} · profile {} · {} · run {} · {}\n\n{}\n",
        escaped(&facts.plan_name),
        facts.profile.name(),
        facts.when,
        escaped(&facts.run),
        escaped(&facts.program),
        escaped(&facts.conditions)
    );
    for line in &facts.regimes {
        let _ = writeln!(text, "- {}", escaped(line));
    }
    text.push_str(if facts.regimes.is_empty() { "" } else { "\n" });
    findings(&mut text, view);
    let overviews = view.overviews.iter().flat_map(|overview| overview.all());
    let ranked = view.ranked.iter().flatten();
    let scaling = view.scaling.iter().flat_map(|scaled| &scaled.tables);
    let conditions = view.interactions.iter().flat_map(|interaction| &interaction.tables);
    let operations = view.operations.iter().flatten().flatten();
    let first = overviews.chain(scaling).chain(conditions).chain(ranked);
    for table in first.chain(operations).chain(&view.latency).chain(&view.lifecycle) {
        write_table(&mut text, table, "##");
    }
    if view.evidence.iter().flatten().any(|tables| !tables.is_empty()) {
        text.push_str("## Evidence: processors and devices\n\n");
    }
    for table in view.evidence.iter().flatten().flatten() {
        write_table(&mut text, table, "###");
    }
    if let Some(note) = published::note(&view.published) {
        let _ = writeln!(text, "\n{}", escaped(&note));
    }
    text
}

/// What is said, what is open, what the run says about itself, and the warnings.
fn findings(text: &mut String, view: &View) {
    let points = || view.findings.by_point.iter();
    for point in points().filter(|point| !point.claims.is_empty()) {
        // Writing to a string cannot fail, here and below.
        let heading = view.findings.heading();
        let _ = writeln!(text, "## {heading}: {}\n", escaped(&point.label));
        for claim in &point.claims {
            let _ = writeln!(text, "- {}", escaped(&claim.text));
        }
        text.push('\n');
    }
    let open: Vec<_> = points().flat_map(|point| &point.open).collect();
    if !open.is_empty() {
        text.push_str("## Not decided\n\n");
        for open in open {
            let _ = writeln!(text, "- {}", escaped(&open.text()));
        }
        text.push('\n');
    }
    if !view.control.is_empty() {
        text.push_str("## Control\n\n");
        for line in &view.control.lines {
            let _ = writeln!(text, "- {}", escaped(line));
        }
        text.push('\n');
    }
    for table in &view.control.tables {
        write_table(text, table, "###");
    }
    if !view.warnings.is_empty() {
        text.push_str("## Warnings\n\n| code | level | seen | message | cure |\n");
        text.push_str("| --- | --- | ---: | --- | --- |\n");
        for row in &view.warnings {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                row.code,
                row.level.name(),
                row.count,
                escaped(&row.message),
                escaped(row.cure)
            );
        }
        text.push('\n');
    }
}

/// A table with its title at a level of heading, and its caption.
pub(crate) fn write_table(text: &mut String, table: &Table, level: &str) {
    let _ = writeln!(text, "{level} {}\n", escaped(&table.title));
    let _ = write!(text, "| {} |", table.corner);
    for Column { title, unit, .. } in &table.columns {
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        let _ = write!(text, " {}{unit} |", escaped(title));
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(table.columns.len()));
    text.push('\n');
    for row in &table.rows {
        write_row(text, row, table.columns.len());
    }
    let _ = writeln!(text, "\n{}.\n", escaped(&table.caption.join("; ")));
}

fn write_row(text: &mut String, row: &Row, columns: usize) {
    let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
    let note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
    let _ = write!(text, "| {}{unit}{note} |", escaped(&row.title));
    match &row.body {
        Body::Cells(cells) => {
            for cell in cells {
                let _ = write!(text, " {} |", shown(cell));
            }
        }
        Body::Missing(reason) => {
            let _ = write!(text, " {} |", escaped(reason));
            text.push_str(&"  |".repeat(columns.saturating_sub(1)));
        }
    }
    text.push('\n');
}

fn shown(cell: &TableCell) -> String {
    let value = match cell {
        TableCell::Text(text) => return escaped(text),
        TableCell::Value(value) => value,
    };
    let mut text = String::from(if value.top { "▲ " } else { "" });
    text.push_str(&value.shown.value);
    if let Some((low, high)) = &value.shown.interval {
        let _ = write!(text, " [{low}, {high}]");
    }
    if value.n_stated {
        let _ = write!(text, ", n = {}", value.n);
    }
    if !value.note.is_empty() {
        let _ = write!(text, ", {}", value.note);
    }
    for code in &value.codes {
        let _ = write!(text, " {code}");
    }
    text
}

/// Text that cannot end its cell or start markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '[' | '\\' => safe.extend(['\\', c]),
            '\n' | '\r' => safe.push(' '),
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_row_of_a_table_has_the_fields_of_its_header() {
        let text = markdown(&View::new(&fixture::record()));
        let fields = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut expected = None;
        let mut tables = 0;
        for line in text.lines() {
            if !line.starts_with('|') {
                expected = None;
                continue;
            }
            tables += usize::from(expected.is_none());
            assert_eq!(fields(line), *expected.get_or_insert(fields(line)), "{line}");
        }
        assert!(tables > 20, "{tables}");
    }

    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(escaped("a|b*c"), "a\\|b\\*c");
    }
}
