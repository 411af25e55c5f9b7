//! Conversions between values and columns.

use model::Nanos;
use rusqlite::Row;

pub(crate) fn nanos(row: &Row<'_>, column: usize) -> rusqlite::Result<Nanos> {
    let stored: i64 = row.get(column)?;
    u64::try_from(stored)
        .map(Nanos)
        .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, stored))
}

pub(crate) fn json(value: &impl serde::Serialize) -> rusqlite::Result<serde_json::Value> {
    serde_json::to_value(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Nanoseconds as an integer of SQLite, which is signed. The maximum, 2^63 ns, is 292 years.
pub(crate) fn nanoseconds(nanos: Nanos) -> i64 {
    i64::try_from(nanos.0).unwrap_or(i64::MAX)
}
