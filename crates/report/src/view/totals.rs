//! The totals of tasks as bars made of their tasks: what `charts::totals` draws.
//!
//! A table of totals and the median part of each task enter; lengths in display units leave. The
//! medians of parts need not add up to the median of the sum, so the pieces of a bar are stretched
//! together to the length that the table states; the figure says so.

use std::collections::BTreeSet;

use super::tables::{Body, Row, Table, TableCell};
use crate::units::Scale;

/// One bar for each filesystem that has all tasks.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    /// Unique within the report.
    pub(crate) id: String,
    /// The point it is of.
    pub(crate) point: String,
    /// The tasks in their order.
    pub(crate) tasks: Vec<String>,
    pub(crate) rows: Vec<TotalRow>,
    /// What stands under the table of the same totals on n, caches, and ranking.
    pub(crate) caption: Vec<String>,
    /// The warning codes of all totals, each once, in alphabetical order.
    pub(crate) codes: BTreeSet<&'static str>,
}

/// One filesystem, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct TotalRow {
    pub(crate) filesystem: usize,
    pub(crate) name: String,
    /// One for each task; together they are `total`. Empty where there is no total.
    pub(crate) pieces: Vec<f64>,
    pub(crate) total: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// The total as text.
    pub(crate) shown: String,
    pub(crate) top: bool,
    /// Why there is no total.
    pub(crate) note: String,
}

/// The bars of a table of totals. `parts` answers the median part of each task in the total of a
/// filesystem.
pub(crate) fn totals(
    table: &Table,
    point: &str,
    tasks: Vec<String>,
    parts: impl Fn(usize) -> Option<Vec<f64>>,
) -> Totals {
    let rows = table.rows.iter().filter_map(|row| self::row(row, &parts)).collect();
    Totals {
        id: format!("{}-bars", table.id),
        point: point.to_owned(),
        tasks,
        rows,
        caption: Vec::new(),
        codes: table.values().flat_map(|value| value.codes.iter().copied()).collect(),
    }
}

fn row(row: &Row, parts: &impl Fn(usize) -> Option<Vec<f64>>) -> Option<TotalRow> {
    let filesystem = row.filesystem?;
    let empty = TotalRow {
        filesystem,
        name: row.title.clone(),
        pieces: Vec::new(),
        total: 0.0,
        interval: None,
        shown: String::new(),
        top: false,
        note: row.note.clone(),
    };
    let value = match &row.body {
        Body::Missing(reason) => return Some(TotalRow { note: reason.clone(), ..empty }),
        Body::Cells(cells) => match cells.first()? {
            TableCell::Value(value) => value,
            TableCell::Text(text) => return Some(TotalRow { note: text.clone(), ..empty }),
        },
    };
    let total = Scale::SECONDS.number(value.sort);
    let parts = parts(filesystem)?;
    let whole: f64 = parts.iter().sum();
    let ends =
        |ends: analysis::Interval| [ends.low, ends.high].map(|end| Scale::SECONDS.number(end));
    Some(TotalRow {
        pieces: parts.iter().map(|part| part / whole * total).collect(),
        total,
        interval: value.interval.map(|interval| ends(interval).into()),
        shown: value.shown.value.clone(),
        top: value.top,
        ..empty
    })
}
