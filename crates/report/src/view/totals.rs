//! Totals of tasks as stacked bars, data of `charts::totals`.
//!
//! The input is a table of totals and the median share of each task. Medians of parts need not add
//! up to the median of the sum. The segments of a bar are therefore scaled to the total of the
//! table, as the caption of the figure states.

use std::collections::BTreeSet;

use super::tables::{Body, Row, Table, TableCell};
use crate::charts::data::TotalRow;
use crate::units::Scale;

/// Stacked bars of a table of totals, one per filesystem.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    /// Unique within the report.
    pub(crate) id: String,
    /// Label of the point.
    pub(crate) point: String,
    /// Names of the tasks.
    pub(crate) tasks: Vec<String>,
    pub(crate) rows: Vec<TotalRow>,
    /// Caption of the table on n, caches, and ranking.
    pub(crate) caption: Vec<String>,
    /// Warning codes of all totals.
    pub(crate) codes: BTreeSet<&'static str>,
}

/// Bars of a table of totals. `parts` returns the median share of each task in the total of a
/// filesystem. A filesystem without a total has the reason instead of a bar.
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
