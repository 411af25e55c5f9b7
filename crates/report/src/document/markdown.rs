//! GitHub-flavored Markdown.

use std::fmt::Write;

use super::{Block, Body, Column, Document, Row, Section, Table, TableCell};

/// Renders a document. Figures are omitted.
pub(crate) fn markdown(document: &Document) -> String {
    let mut text = format!("# {}\n\n", escaped(&document.title));
    for line in [&document.kicker, &document.headline] {
        paragraph(&mut text, line);
    }
    blocks(&mut text, &document.lead, 2);
    document.sections.iter().for_each(|own| section(&mut text, own, 2));
    paragraph(&mut text, &document.footer);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn paragraph(text: &mut String, line: &str) {
    if !line.is_empty() {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "{}\n", escaped(line));
    }
}

fn section(text: &mut String, section: &Section, level: usize) {
    if section.is_pictures() {
        return;
    }
    let _ = writeln!(text, "{} {}\n", "#".repeat(level), escaped(&section.title));
    blocks(text, &section.blocks, level + 1);
    section.sections.iter().for_each(|own| self::section(text, own, level + 1));
}

fn blocks(text: &mut String, blocks: &[Block], level: usize) {
    for block in blocks {
        match block {
            Block::Paragraph(line) | Block::Note(line) => paragraph(text, line),
            Block::List(list) => {
                for item in &list.items {
                    let mark = if item.mark.is_empty() { "" } else { " " };
                    let _ = writeln!(text, "- {}{mark}{}", item.mark, escaped(&item.line()));
                    for line in item.lines.iter().chain(item.hinted().as_ref()) {
                        let _ = writeln!(text, "  - {}", escaped(line));
                    }
                }
                text.push('\n');
            }
            Block::Table(table, _) => write_table(text, table, &"#".repeat(level)),
            Block::Figure(_) => {}
            Block::Fold(title, own) => {
                paragraph(text, title);
                self::blocks(text, own, level);
            }
        }
    }
}

/// A table with its title at a level of heading, and its caption.
pub(crate) fn write_table(text: &mut String, table: &Table, level: &str) {
    let table = &*table.with_codes_in_caption();
    if !table.title.is_empty() {
        let _ = writeln!(text, "{level} {}\n", escaped(&table.title));
    }
    let _ = write!(text, "| {} |", escaped(table.corner));
    for Column { title, unit, .. } in &table.columns {
        let unit = if unit.is_empty() { String::new() } else { format!(", {}", escaped(unit)) };
        let _ = write!(text, " {}{unit} |", escaped(title));
    }
    text.push_str("\n| --- |");
    for column in 0..table.columns.len() {
        text.push_str(if table.is_text(column) { " --- |" } else { " ---: |" });
    }
    text.push('\n');
    for row in &table.rows {
        write_row(text, row, table.columns.len());
    }
    text.push('\n');
    if !table.caption.is_empty() {
        let _ = writeln!(text, "{}.\n", escaped(&table.caption.join("; ")));
    }
}

fn write_row(text: &mut String, row: &Row, columns: usize) {
    let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", escaped(row.unit)) };
    let note =
        if row.note.is_empty() { String::new() } else { format!(" ({})", escaped(&row.note)) };
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
        let _ = write!(text, ", {}", escaped(&value.note.replace('\n', "; ")));
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
