//! Workbook (Office Open XML, ECMA-376).
//!
//! The first sheet contains the run, its conditions, the findings, and a list of sheets. It is
//! followed by a table of all results, the tables of the report on separate sheets, matrices and
//! lines over swept parameters with native charts, and the samples. Numbers are stored in the unit
//! of their header with full precision and displayed with the digits that their intervals allow.
//! Text never becomes a formula. The same run gives the same bytes; the date of the file is that of
//! the run.

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

use crate::{
    document::Section,
    run::{self, budget::Budget},
    view::{Table, View},
};
use book::Book;

/// Maximum number of sheets, so that tables can be found. The first sheet lists the tables beyond
/// it, and the sheet of results contains their numbers.
const SHEETS_MAX: usize = 200;

/// The workbook cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write sheet `{sheet}` of the workbook; use --format csv or --format json")]
pub struct XlsxError {
    /// Name of the sheet, or a substitute.
    sheet: String,
    source: Refused,
}

/// Formats a run as a workbook.
///
/// # Errors
/// [`XlsxError`] if the writer fails. No known run causes this.
pub fn xlsx(view: &View, record: &RunRecord) -> Result<Vec<u8>, XlsxError> {
    let mut book = Book::new(view);
    results::results(&mut book, view);
    let document = run::document(view, &mut Budget::text());
    // Sheets of single tests come last, because there may be too many.
    let (tests, others): (Vec<&Section>, Vec<&Section>) =
        document.sections.iter().partition(|section| section.id.starts_with("tests-"));
    let own_sheet = |table: &&Table| !table.title.is_empty();
    let others = others.into_iter().filter(|section| section.id != "activity");
    for table in others.flat_map(Section::tables).filter(own_sheet) {
        table::sheet(&mut book, table);
    }
    matrix::sheets(&mut book, view);
    lines::sheets(&mut book, view);
    for table in tests.into_iter().flat_map(Section::tables) {
        table::sheet(&mut book, table);
    }
    for suite in 0..view.suites.len() {
        table::activity(&mut book, view, suite);
    }
    results::samples(&mut book, record);
    let front = front::sheet(&book, &document);
    book.finish(front, record)
}
