//! Sheets of tables of the report: each median with its interval, n, and notes.

use super::book::{Book, Digits, Look, Sheet, places};
use crate::{
    units::Scale,
    view::{Body, Row, Table, TableCell, ValueCell, View},
};

/// Adds a table on a separate sheet, unless the maximum number of sheets is reached.
pub(super) fn sheet(book: &mut Book, table: &Table) {
    let Some(mut sheet) = book.sheet(&table.title, &table.title, &sentences(table)) else {
        return;
    };
    let first = sheet.row;
    let layout = Layout::new(table);
    write(&mut sheet, table, &layout);
    sheet.freeze(first + 2, 1);
    sheet.widths(layout.widths());
    book.add(sheet);
}

/// Adds a sheet for each workload point with the tables of system activity of its tests.
pub(super) fn activity(book: &mut Book, view: &View, suite: usize) {
    let own = &view.suites[suite];
    for (index, point) in own.points.iter().enumerate() {
        let tests = 0..point.tests.len();
        let tables: Vec<&Table> =
            tests.flat_map(|test| &view.details(suite, index, test).activity).collect();
        if tables.is_empty() {
            continue;
        }
        let short = format!("System activity {}", point.label);
        let title = format!("System activity: CPU and devices, {}", point.label);
        let Some(mut sheet) = book.sheet(&short, &title, &[]) else {
            continue;
        };
        for table in tables {
            sheet.line(Look::Title, &table.title);
            for sentence in sentences(table) {
                sheet.line(Look::Caption, &sentence);
            }
            write(&mut sheet, table, &Layout::new(table));
            sheet.row += 1;
        }
        sheet.widths([(0, 28.0)]);
        book.add(sheet);
    }
}

/// Caption as sentences.
fn sentences(table: &Table) -> Vec<String> {
    let full = |text: &String| format!("{}.", text.trim_end_matches('.'));
    let top = table.has_top().then(|| "Bold: top group.".to_owned());
    table.caption.iter().map(full).chain(top).collect()
}

/// Columns on the sheet.
struct Layout {
    /// Column of the units of rows; `None` if rows have no units.
    unit: Option<usize>,
    /// First sheet column and content of each column of the table.
    columns: Vec<(usize, Kind)>,
    /// Column of the notes on rows; `None` if there are none.
    note: Option<usize>,
}

/// Sheet columns that a column of the table uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One column of text.
    Words,
    /// Median, low, high, n.
    Numbers,
    /// Median, low, high, n, and notes on the number.
    Noted,
}

impl Kind {
    const fn width(self) -> usize {
        match self {
            Self::Words => 1,
            Self::Numbers => 4,
            Self::Noted => 5,
        }
    }
}

impl Layout {
    fn new(table: &Table) -> Self {
        let unit = table.rows.iter().any(|row| !row.unit.is_empty()).then_some(1);
        let mut next = 1 + unit.iter().count();
        let mut columns = Vec::new();
        for index in 0..table.columns.len() {
            let kind = match (table.is_text(index), noted(table, index)) {
                (true, _) => Kind::Words,
                (false, true) => Kind::Noted,
                (false, false) => Kind::Numbers,
            };
            columns.push((next, kind));
            next += kind.width();
        }
        let note = table.rows.iter().any(|row| !row.note.is_empty()).then_some(next);
        Self { unit, columns, note }
    }

    fn widths(&self) -> impl Iterator<Item = (usize, f64)> {
        let notes = self.columns.iter().filter(|(_, kind)| *kind == Kind::Noted);
        let notes = notes.map(|(first, _)| (first + 4, 26.0));
        let words = self.columns.iter().filter(|(_, kind)| *kind == Kind::Words);
        let words = words.map(|(first, _)| (*first, 22.0));
        std::iter::once((0, 26.0)).chain(notes).chain(words)
    }
}

/// True if any number of a column has warnings or a note, or is in the top group.
fn noted(table: &Table, column: usize) -> bool {
    table.rows.iter().any(|row| match &row.body {
        Body::Cells(cells) => match cells.get(column) {
            Some(TableCell::Value(value)) => value.top || !qualified(value).is_empty(),
            Some(TableCell::Text(_)) | None => false,
        },
        Body::Missing(_) => false,
    })
}

/// Warnings of a number, and the note of its cell.
fn qualified(value: &ValueCell) -> String {
    let note = (!value.note.is_empty()).then_some(value.note.as_str());
    value.codes.iter().copied().chain(note).collect::<Vec<_>>().join(", ")
}

/// Writes header and rows, starting with the next free row.
fn write(sheet: &mut Sheet, table: &Table, layout: &Layout) {
    let head = sheet.row;
    sheet.text(head + 1, 0, Look::Header, table.corner);
    if let Some(unit) = layout.unit {
        sheet.text(head + 1, unit, Look::Header, "unit");
    }
    for (column, (first, kind)) in table.columns.iter().zip(&layout.columns) {
        let unit =
            if column.unit.is_empty() { String::new() } else { format!(", {}", column.unit) };
        if *kind == Kind::Words {
            sheet.text(head + 1, *first, Look::Header, &format!("{}{unit}", column.title));
            continue;
        }
        sheet.across(head, (*first, first + kind.width() - 1), &column.title);
        let below = [format!("median{unit}"), format!("low{unit}"), format!("high{unit}")];
        let below = below.into_iter().chain(["n".into(), "warnings, notes".into()]);
        for (offset, title) in below.take(kind.width()).enumerate() {
            sheet.text(head + 1, first + offset, Look::Header, &title);
        }
    }
    if let Some(note) = layout.note {
        sheet.text(head + 1, note, Look::Header, "note");
    }
    sheet.row = head + 2;
    for row in &table.rows {
        of_row(sheet, table, row, layout);
        sheet.row += 1;
    }
}

fn of_row(sheet: &mut Sheet, table: &Table, row: &Row, layout: &Layout) {
    let at = sheet.row;
    sheet.text(at, 0, Look::Text, &row.title);
    if let Some(unit) = layout.unit {
        sheet.text(at, unit, Look::Text, row.unit);
    }
    if let Some(note) = layout.note.filter(|_| !row.note.is_empty()) {
        sheet.text(at, note, Look::Text, &row.note);
    }
    let cells = match &row.body {
        Body::Cells(cells) => cells,
        Body::Missing(reason) => {
            let first = layout.columns.first().map_or(1, |(first, _)| *first);
            return sheet.text(at, first, Look::Caption, reason);
        }
    };
    for ((cell, column), (first, _)) in cells.iter().zip(&table.columns).zip(&layout.columns) {
        match cell {
            TableCell::Text(text) => sheet.text(at, *first, Look::Text, text),
            TableCell::Value(cell) => {
                let printed = if row.unit.is_empty() { column.unit } else { row.unit };
                value(sheet, (at, *first), cell, printed);
            }
        }
    }
}

/// Writes a number with its interval, n, and notes, in the unit printed for its column or row.
fn value(sheet: &mut Sheet, (row, column): (u32, usize), value: &ValueCell, printed: &str) {
    let scale = Scale::named(value.unit, printed);
    let number = |base: f64| scale.map_or(base, |scale| scale.number(base));
    let places = places(&value.shown.value);
    sheet.number(row, column, number(value.sort), Digits::Places(places, value.top));
    if let Some(interval) = value.interval {
        sheet.number(row, column + 1, number(interval.low), Digits::Places(places, false));
        sheet.number(row, column + 2, number(interval.high), Digits::Places(places, false));
    }
    sheet.number(row, column + 3, f64::from(value.n), Digits::Places(0, false));
    let qualified = qualified(value);
    let group = value.top.then_some("top group");
    let words = group.into_iter().chain([qualified.as_str()].into_iter().filter(|w| !w.is_empty()));
    let words: Vec<&str> = words.collect();
    if words.is_empty() {
        return;
    }
    sheet.text(row, column + 4, Look::Text, &words.join(", "))
}
