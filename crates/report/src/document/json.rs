//! Tables, summaries, and verdicts as JSON, in base units.

use analysis::{Interval, Side, Size, Summary, Verdict};
use serde_json::{Value, json};

use super::{Body, Row, Table, TableCell};

/// Tables as they are shown, with medians and intervals in base units.
pub(crate) fn tables<'a>(tables: impl Iterator<Item = &'a Table>) -> Value {
    tables.map(of_table).collect()
}

pub(crate) fn of_table(table: &Table) -> Value {
    json!({
        "title": table.title,
        "caption": table.caption,
        "row_header": table.corner,
        "columns": table.columns.iter().map(|column| &column.title).collect::<Vec<_>>(),
        "rows": table.rows.iter().map(of_row).collect::<Vec<_>>(),
    })
}

fn of_row(row: &Row) -> Value {
    let mut value = json!({"title": row.title, "note": row.note});
    match &row.body {
        Body::Cells(cells) => {
            value["cells"] = cells.iter().map(of_cell).collect();
        }
        Body::Missing(reason) => value["missing_reason"] = json!(reason),
    }
    value
}

fn of_cell(cell: &TableCell) -> Value {
    match cell {
        TableCell::Text(text) => json!({"text": text.replace('\n', " ")}),
        TableCell::Value(value) => json!({
            "median": value.sort,
            "interval": value.interval.map(of_interval),
            "n": value.n,
            "unit": value.unit.name(),
            "top_group": value.top,
            "note": value.note,
            "warnings": value.codes,
        }),
    }
}

pub(crate) fn of_summary(summary: &Summary) -> Value {
    json!({
        "n": summary.n,
        "median": summary.median,
        "interval": summary.interval.map(of_interval),
        "min": summary.min,
        "max": summary.max,
    })
}

pub(crate) fn of_interval(interval: Interval) -> Value {
    json!({"low": interval.low, "high": interval.high, "level": interval.level})
}

/// The second of a pair against the first, in one word or two.
pub(crate) fn verdict(verdict: Verdict) -> Value {
    let size = |size: Size| match size {
        Size::AtLeast => "at-least-margin",
        Size::Uncertain => "size-uncertain",
        Size::Negligible => "negligible",
    };
    match verdict {
        Verdict::Differs { side: Side::Better, size: how } => {
            json!({"verdict": "better", "size": size(how)})
        }
        Verdict::Differs { side: Side::Worse, size: how } => {
            json!({"verdict": "worse", "size": size(how)})
        }
        Verdict::Equivalent => json!({"verdict": "equivalent"}),
        Verdict::Inconclusive { needed } => {
            json!({"verdict": "inconclusive", "repetitions_needed": needed})
        }
    }
}
