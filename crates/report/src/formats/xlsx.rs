//! A workbook (Office Open XML, ECMA-376) for those who go on in a spreadsheet.
//!
//! A view and its record enter; one file leaves as bytes. The first sheet tells what was run, under
//! which conditions, what was found, and which sheets there are. Then every result in one table,
//! every table of the report on a sheet of its own, matrices and lines over swept parameters with
//! charts that the spreadsheet draws, and the samples. Numbers are numbers, in the unit of their
//! header, as exact as the run file has them and shown with the digits that their intervals allow.
//! Text is text: none becomes a formula. The same run gives the same bytes; the date of the file is
//! that of the run.

mod book;
mod drawn;
mod front;
mod lines;
mod matrix;
mod names;
mod results;
mod table;
#[cfg(test)]
mod tests;

use model::RunRecord;
use rust_xlsxwriter::XlsxError as Refused;

use crate::view::{Table, View};
use book::Book;

/// Sheets that a person can find a table among; tables beyond that are told on the first sheet, and
/// their numbers stand in the sheet of results.
const SHEETS_MAX: usize = 200;

/// The workbook could not be written.
#[derive(Debug, thiserror::Error)]
#[error(
    "writing the workbook, sheet `{sheet}`; --format csv and --format json hold the same numbers"
)]
pub struct XlsxError {
    /// Its name, or what stands for it.
    sheet: String,
    source: Refused,
}

/// The run as a workbook.
///
/// # Errors
/// When the writer refuses, which no run is known to make it do.
pub fn xlsx(view: &View, record: &RunRecord) -> Result<Vec<u8>, XlsxError> {
    let mut book = Book::new(view);
    results::results(&mut book, view)?;
    for table in overview(view) {
        table::sheet(&mut book, table)?;
    }
    matrix::sheets(&mut book, view)?;
    lines::sheets(&mut book, view)?;
    for table in further(view) {
        table::sheet(&mut book, table)?;
    }
    for suite in 0..view.suites.len() {
        table::evidence(&mut book, view, suite)?;
    }
    results::samples(&mut book, record)?;
    let front = front::sheet(&book, view)?;
    book.finish(front, record)
}

/// What a report shows first.
fn overview(view: &View) -> impl Iterator<Item = &Table> {
    let overviews = view.overviews.iter().flat_map(|overview| overview.all());
    let scaling = view.scaling.iter().flat_map(|scaled| &scaled.tables);
    let conditions = view.interactions.iter().flat_map(|interaction| &interaction.tables);
    overviews.chain(scaling).chain(conditions)
}

/// What it shows below: test by test, and what surrounds them.
fn further(view: &View) -> impl Iterator<Item = &Table> {
    let around = view.latency.iter().chain(&view.lifecycle).chain(&view.control.tables);
    let operations = view.operations.iter().flatten().flatten();
    around.chain(operations).chain(view.ranked.iter().flatten())
}
