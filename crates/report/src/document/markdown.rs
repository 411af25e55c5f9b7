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
    if section.is_pictures(false) {
        return;
    }
    let named = section.is_named_by_table();
    if !named {
        let _ = writeln!(text, "{} {}\n", "#".repeat(level), escaped(&section.title));
    }
    blocks(text, &section.blocks, level + usize::from(!named));
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
            Block::Fold(_, own) => self::blocks(text, own, level),
            Block::Code(_, lines) => {
                lines.lines().for_each(|line| {
                    let _ = writeln!(text, "    {line}");
                });
                text.push('\n');
            }
            Block::Figure(_) | Block::Spark(_) | Block::Links(..) | Block::Download(..) => {}
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

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::escaped;
    use crate::{View, fixture, markdown, published::PUBLISHED};

    /// Number of tables; checks that every row has as many fields as the header.
    #[track_caller]
    fn tables(name: &str, text: &str) -> usize {
        let fields = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut expected = None;
        let mut tables = 0;
        for line in text.lines() {
            if !line.starts_with('|') {
                expected = None;
                continue;
            }
            tables += usize::from(expected.is_none());
            assert_eq!(fields(line), *expected.get_or_insert(fields(line)), "{name}: {line}");
        }
        tables
    }

    #[test]
    fn every_row_of_a_table_has_the_fields_of_its_header() {
        let tables = tables("a run", &markdown(&View::new(&fixture::record())));
        assert!(tables > 20, "{tables}");
    }

    #[test]
    fn every_row_of_a_published_table_has_the_fields_of_its_header() {
        for set in PUBLISHED.iter() {
            let text = set.markdown();
            assert!(tables(&set.name, &text) > 0, "{}", set.name);
            // A note that ends its row would leave its rest at the start of a line.
            let rest = text.lines().find(|line| line.ends_with('|') && !line.starts_with('|'));
            assert_eq!(rest, None, "{}", set.name);
        }
    }

    #[test]
    fn names_from_outside_end_no_cell_and_no_row() {
        let hostile = "a|b\n| c\r\n\\| <d> `e` **f** [g](h) _i_";
        let mut record = fixture::with_records(&[Bytes::mib(1)], hostile);
        let expected = tables("a run", &markdown(&View::new(&record)));
        record.info.title = hostile.into();
        record.info.program = hostile.into();
        for cell in &mut record.cells {
            cell.label = format!("{hostile} {}", cell.label);
            if cell.cell.filesystem.name == "ext4" {
                cell.cell.filesystem.name = hostile.into();
                cell.id = cell.cell.id();
            }
        }
        for trial in &mut record.trials {
            if let model::record::Outcome::Failed { reason } = &mut trial.outcome {
                *reason = hostile.into();
            }
        }
        assert_eq!(tables("a hostile run", &markdown(&View::new(&record))), expected);
    }

    #[test]
    fn lines_of_a_note_stay_in_their_cell() {
        let set = PUBLISHED.iter().find(|set| set.name == "iozone-2009").unwrap();
        let text = set.markdown();
        let row = text.lines().find(|line| line.starts_with("| ext4 |")).unwrap();
        assert!(row.contains("s = ") && row.ends_with('|'), "{row}");
    }

    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(escaped("a|b*c"), "a\\|b\\*c");
    }
}
