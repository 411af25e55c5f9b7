//! Fuzz targets of the readers of untrusted input. A target accepts any bytes and must neither
//! panic nor take unbounded time or memory.

use model::Nanos;

use crate::{
    TerminalOptions,
    audit::{Audit, Statements, Table},
    bonnie::{self, Format, Importing},
    view::View,
};

/// Separator between the statements and their table in the input of [`audit`].
pub const TABLE: &str = "\n---\n";

/// Reads bonnie++ records, imports and reports them, exports the run, and reads the export.
///
/// # Panics
/// If an export cannot be read, or has another number of records.
pub fn bonnie(bytes: &[u8]) {
    let Ok(records) = bonnie::read(&String::from_utf8_lossy(bytes)) else { return };
    let importing = Importing { id: "fuzz".into(), source: "fuzz", now: Nanos(1) };
    let mut run = bonnie::import(&records, importing);
    crate::plain(&mut run);
    let _page = crate::html(&View::new(&run), &[]);
    for format in [Format::V196, Format::V198] {
        if let Ok(text) = bonnie::export(&run, format) {
            let again = bonnie::read(&text).map(|records| records.len());
            assert_eq!(again, Ok(records.len()), "{text}");
        }
    }
}

/// Audits a printed table and statements about it.
pub fn audit(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (statements, table) = text.split_once(TABLE).unwrap_or(("", &text));
    let Ok(statements) = Statements::read(statements) else { return };
    let Ok(table) = Table::read(table.as_bytes(), &statements.columns) else { return };
    if let Ok(audit) = Audit::new(table, statements) {
        let _text = audit.terminal(&TerminalOptions { width: 80, color: false, detail: true });
        let _text = audit.markdown();
        let _text = audit.json();
    }
}
