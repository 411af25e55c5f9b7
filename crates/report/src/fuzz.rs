//! Fuzz targets of the readers of untrusted input. A target accepts any bytes and must neither
//! panic nor take unbounded time or memory.

use model::{Histogram, Nanos, RunRecord};

use crate::{
    TerminalOptions,
    audit::{Audit, Statements, Table},
    bonnie::{self, Format},
    imports::{self, IMPORTERS, Importing},
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
    let Some(run) = imported("bonnie-csv", bytes) else { return };
    for format in [Format::V196, Format::V198] {
        if let Ok(text) = bonnie::export(&run, format) {
            let again = bonnie::read(&text).map(|records| records.len());
            assert_eq!(again, Ok(records.len()), "{text}");
        }
    }
}

/// Imports and reports JSON of fio.
pub fn fio_json(bytes: &[u8]) {
    imported("fio-json", bytes);
}

/// Imports and reports terse output of fio.
pub fn fio_terse(bytes: &[u8]) {
    imported("fio-terse", bytes);
}

/// Imports and reports text of dbench.
pub fn dbench_text(bytes: &[u8]) {
    imported("dbench-text", bytes);
}

/// Imports and reports an input in each format of printed results that has no other target.
pub fn printed(bytes: &[u8]) {
    let others = ["fio-json", "fio-terse", "dbench-text", "iozone-text", "bonnie-csv"];
    for importer in IMPORTERS.iter().filter(|importer| !others.contains(&importer.name)) {
        imported(importer.name, bytes);
    }
}

/// Imports and reports text of IOzone, exports the run, and imports the export.
///
/// # Panics
/// If the export has a value and cannot be imported.
pub fn iozone(bytes: &[u8]) {
    let Some(run) = imported("iozone-text", bytes) else { return };
    if let Ok(text) = crate::iozone(&run) {
        // The layout has no place for some values, such as operations of workers.
        let has_value = text.contains("reclen") || text.contains("Parent sees");
        let again = imported("iozone-text", text.as_bytes()).is_some();
        assert!(again || !has_value, "{text}");
    }
}

/// Run with the results of a file, if it is valid. Histograms of the run can be stored and read,
/// and the run can be shown.
fn imported(format: &str, bytes: &[u8]) -> Option<RunRecord> {
    let _importer = imports::recognize(bytes);
    let importer = IMPORTERS.into_iter().find(|importer| importer.name == format)?;
    let measurements = importer.read(bytes).ok()?;
    let importing =
        Importing { id: "fuzz".into(), source: "fuzz", now: Nanos(1), facts: Vec::new() };
    let mut run = imports::assemble(measurements, importing);
    for times in run.trials.iter().flat_map(|trial| &trial.histograms) {
        let again = Histogram::decode(&times.histogram.encode());
        assert_eq!(again.as_ref(), Ok(&times.histogram), "a histogram of a run file is valid");
    }
    shown(&mut run);
    Some(run)
}

/// Generates the report of a run twice.
///
/// # Panics
/// If the two reports differ.
pub fn shown(run: &mut RunRecord) {
    crate::plain(run);
    let page = || crate::html(&View::new(run), &[]);
    assert_eq!(page(), page());
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
