//! Tables. Columns that do not fit continue below with the same row headers.

use std::fmt::Write;

use comfy_table::{CellAlignment, LineStyle, TableStyle};

use super::{
    Page,
    wrapped::{harmless, width_of, wrap, wrap_words},
};
use model::metric::Unit;

use crate::document::{Body, Column, INTERVALS, Row, Table, TableCell, ValueCell};

const LINES: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// Width of a column in addition to its content: a space on each side and one between columns.
const CELL: usize = 3;

/// Width of text in a cell: in tables of short numbers, and of numbers with intervals.
const NARROW: usize = 16;
const TEXT_WIDTH: usize = 24;

/// Width of an interval relative to the median from which both ends are shown.
const WIDE: f64 = 0.3;
/// The same if one side is more than twice the other.
const ASYMMETRIC: f64 = 0.1;

/// Maximum width of texts that are narrowed.
const SQUEEZED: usize = 15;

/// Minimum width of a row header.
const NAME_MIN: usize = 12;

/// A table of texts that fit.
struct Laid<'a> {
    corner: &'a str,
    names: Vec<String>,
    name_width: usize,
    heads: Vec<String>,
    /// Cells of each row, or the reason why it has none.
    rows: Vec<Result<Vec<String>, &'a String>>,
    /// True for columns of text.
    is_text: Vec<bool>,
}

impl<'a> Laid<'a> {
    /// Fits names and text to the width that the numbers leave; narrower if all columns then fit
    /// next to each other.
    fn new(table: &'a Table, width: usize, cell: fn(&TableCell) -> String) -> Self {
        let wide = Self::fitted(table, width, usize::MAX, cell);
        if wide.chunks(width).len() == 1 || !wide.is_text.contains(&true) {
            return wide;
        }
        let narrow = Self::fitted(table, width, SQUEEZED, cell);
        if narrow.chunks(width).len() == 1 { narrow } else { wide }
    }

    /// The same with a maximum width of names and texts.
    fn fitted(table: &'a Table, width: usize, most: usize, cell: fn(&TableCell) -> String) -> Self {
        let mut rows: Vec<Result<Vec<String>, &String>> = Vec::new();
        for row in &table.rows {
            rows.push(match &row.body {
                Body::Cells(cells) => {
                    Ok(cells.iter().map(|own| harmless(&cell(own), false)).collect())
                }
                Body::Missing(reason) => Err(reason),
            });
        }
        let is_text: Vec<bool> = (0..table.columns.len()).map(|at| table.is_text(at)).collect();
        let cells = rows.iter().flatten().flat_map(|cells| cells.iter().zip(&is_text));
        let numbers = cells.filter(|(_, is_text)| !**is_text).map(|(cell, _)| width_of(cell));
        let name_max = width
            .saturating_sub(2 * CELL + numbers.max().unwrap_or(0))
            .max(NAME_MIN)
            .min(most.saturating_add(8));
        let names = table.rows.iter().map(row_title);
        let names: Vec<String> = names.map(|name| fitted(name, name_max)).collect();
        let name_width = names.iter().map(|name| width_of(name)).max().unwrap_or(0);
        let name_width = name_width.max(width_of(table.corner));
        let space = width.saturating_sub(name_width + 2 * CELL).max(NAME_MIN).min(most);
        let heads = table.columns.iter().map(|column| fitted(header(column), space)).collect();
        for cells in rows.iter_mut().flatten() {
            for (cell, _) in cells.iter_mut().zip(&is_text).filter(|(_, is_text)| **is_text) {
                *cell = fitted(std::mem::take(cell), space);
            }
        }
        Self { corner: table.corner, names, name_width, heads, rows, is_text }
    }

    /// Ranges of columns that fit next to each other.
    fn chunks(&self, width: usize) -> Vec<std::ops::Range<usize>> {
        let of_column = |index: usize| {
            let cells = self.rows.iter().flatten().map(|cells| width_of(&cells[index]));
            CELL + cells.max().unwrap_or(0).max(width_of(&self.heads[index]))
        };
        let space = width.saturating_sub(self.name_width + CELL);
        let (mut chunks, mut start, mut used) = (Vec::new(), 0, 0);
        for index in 0..self.heads.len() {
            let width = of_column(index);
            if used + width > space && index > start {
                chunks.push(start..index);
                (start, used) = (index, 0);
            }
            used += width;
        }
        chunks.push(start..self.heads.len());
        chunks
    }
}

impl Page {
    /// A compact table: median with mark in the first line, half-width of the interval in the
    /// second.
    pub(crate) fn matrix(&mut self, table: &Table) {
        let table = &*table.with_codes_in_caption();
        self.laid_out(table, compact);
        let mut caption = table.caption.join("; ").replace(
            INTERVALS,
            "median ± half-width of the 95 % confidence interval, or [low, high] if it is wide or \
             asymmetric",
        );
        let warned = table.values().any(|value| !value.codes.is_empty());
        if warned && !caption.contains("! see warnings") {
            caption.push_str("; ! see warnings");
        }
        self.wrapped("", "", &caption);
    }

    /// A table of numbers with intervals.
    pub(crate) fn table(&mut self, table: &Table) {
        let table = &*table.with_codes_in_caption();
        self.laid_out(table, full);
        self.wrapped("", "", &table.caption.join("; "));
    }

    /// A table of values without marks and intervals.
    pub(crate) fn plain(&mut self, table: &Table) {
        self.laid_out(table, bare);
        let caption = table
            .caption
            .join("; ")
            .replace(INTERVALS, "medians; the HTML report has the 95 % confidence intervals");
        self.wrapped("", "", &caption);
    }

    fn laid_out(&mut self, table: &Table, cell: fn(&TableCell) -> String) {
        if !table.title.is_empty() {
            self.heading(&table.title);
        }
        let laid = Laid::new(table, self.width, cell);
        for columns in laid.chunks(self.width) {
            self.chunk(&laid, columns);
        }
    }

    fn chunk(&mut self, table: &Laid, columns: std::ops::Range<usize>) {
        let name_width = table.name_width;
        let mut laid = comfy_table::Table::new();
        laid.load_style(LINES);
        let heads = table.heads[columns.clone()].iter().cloned();
        laid.set_header(std::iter::once(table.corner.to_owned()).chain(heads));
        let mut holes = Vec::new();
        for (name, row) in table.names.iter().zip(&table.rows) {
            match row {
                Ok(cells) => {
                    let cells = cells[columns.clone()].iter().cloned();
                    laid.add_row(std::iter::once(name.clone()).chain(cells));
                }
                Err(reason) => holes.push((name.clone(), *reason)),
            }
        }
        for (at, column) in laid.column_iter_mut().enumerate() {
            let text = at > 0 && table.is_text[columns.start + at - 1];
            let side = if at == 0 || text { CellAlignment::Left } else { CellAlignment::Right };
            column.set_cell_alignment(side);
        }
        let lines: Vec<String> = laid.lines().collect();
        let (last, body) = lines.split_last().map_or(("", &[][..]), |(last, body)| (last, body));
        for line in body {
            let marked = line.replace('▲', &self.styled("1;32", "▲"));
            self.line(&marked);
        }
        for (name, reason) in holes {
            let text = match self.explained.insert((name.clone(), reason.clone())) {
                true => reason.clone(),
                false => see_above(reason),
            };
            // The reason follows the last line of a long name.
            let mut lines: Vec<&str> = name.lines().collect();
            let last = lines.pop().unwrap_or("");
            lines.into_iter().for_each(|line| self.line(&format!(" {line}")));
            let fill = " ".repeat(name_width.saturating_sub(width_of(last)));
            let indent = " ".repeat(name_width + 3);
            self.wrapped(&format!(" {last}{fill}  "), &indent, &text);
        }
        self.line(last);
    }
}

/// Text wrapped at a width. Wider words are broken.
fn fitted(text: String, width: usize) -> String {
    let text = harmless(&text, false);
    if width_of(&text) <= width {
        return text;
    }
    text.lines().flat_map(|line| wrap(line, width, "", "")).collect::<Vec<_>>().join("\n")
}

/// Title and unit of a row, with a note below it.
fn row_title(row: &Row) -> String {
    let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
    // A row without values has the reason instead.
    let note = match row.body {
        Body::Cells(_) => row.note.replace(" repetitions ", "\n"),
        Body::Missing(_) => String::new(),
    };
    let below = if note.is_empty() { "" } else { "\n" };
    format!("{}{unit}{below}{note}", row.title)
}

/// Short form of a reason that was already shown: `skipped (see above)`.
fn see_above(reason: &str) -> String {
    let what = reason.split_once(':').map_or("not measured", |(what, _)| what);
    format!("{what} (see above)")
}

/// Title and unit of a column. Long names break after a dash, or before the last word of a column
/// of numbers.
fn header(column: &Column) -> String {
    let long = width_of(&column.title);
    let title = match (column.title.split_once('-'), column.title.rsplit_once(' ')) {
        (Some((first, rest)), _) if long > 8 => format!("{first}-\n{rest}"),
        (_, Some((rest, last))) if long > 12 && !column.unit.is_empty() => {
            format!("{rest}\n{last}")
        }
        _ => column.title.clone(),
    };
    if column.unit.is_empty() { title } else { format!("{title}\n{}", column.unit) }
}

/// Text of a cell wrapped at a width, so that it does not widen the column.
fn narrow(text: &str, width: usize) -> String {
    text.lines().flat_map(|line| wrap_words(line, width)).collect::<Vec<_>>().join("\n")
}

fn compact(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => narrow(text, NARROW),
        TableCell::Value(value) => {
            let mark = if value.top { "▲ " } else { "" };
            let warned = if value.codes.is_empty() { "" } else { "!" };
            let mut text = format!("{mark}{}{warned}", value.shown.value);
            // Writing to a string cannot fail.
            let _ = match (&value.shown.relative, &value.shown.interval) {
                (_, Some((low, high))) if needs_ends(value) => write!(text, "\n[{low}, {high}]"),
                (Some(relative), _) => write!(text, "\n±{relative}"),
                (None, _) => Ok(()),
            };
            text.push_str(&remarks(value));
            text
        }
    }
}

/// True if both ends of an interval must be shown because a half-width would mislead: the interval
/// is wide or asymmetric, or the value is a percentage.
fn needs_ends(value: &ValueCell) -> bool {
    let Some(interval) = value.interval else { return false };
    let (below, above) = (value.sort - interval.low, interval.high - value.sort);
    let (shorter, longer) = (below.min(above), below.max(above));
    let part = longer / value.sort.abs();
    value.unit == Unit::Fraction || part > WIDE || (part > ASYMMETRIC && longer > 2.0 * shorter)
}

fn bare(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => text.clone(),
        TableCell::Value(value) => format!("{}{}", value.shown.value, remarks(value)),
    }
}

fn full(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => narrow(text, TEXT_WIDTH),
        TableCell::Value(value) => {
            let mark = if value.top { "▲ " } else { "" };
            let mut text = format!("{mark}{}", value.shown.value);
            if let Some((low, high)) = &value.shown.interval {
                // Writing to a string cannot fail.
                let _ = write!(text, " [{low}, {high}]");
            }
            text.push_str(&remarks(value));
            value.codes.iter().for_each(|code| {
                text.push('\n');
                text.push_str(code);
            });
            text
        }
    }
}

/// Lines below a number: n if it differs, and the note.
fn remarks(value: &ValueCell) -> String {
    let n = if value.n_stated { format!("\nn = {}", value.n) } else { String::new() };
    let note = if value.note.is_empty() { String::new() } else { format!("\n{}", value.note) };
    n + &note
}
