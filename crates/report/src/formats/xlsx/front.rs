//! The first sheet: what was run, under which conditions, what was found, and which sheets there
//! are.

use rust_xlsxwriter::Url;

use super::{
    XlsxError,
    book::{Book, FRONT, Look, Sheet, plain},
};
use crate::view::{Facts, Finding, View};

/// The first sheet of a book whose other sheets are all there.
///
/// # Errors
/// As the writer.
pub(super) fn sheet(book: &Book, view: &View) -> Result<Sheet, XlsxError> {
    let mut sheet = Sheet::new(FRONT)?;
    let facts = &view.facts;
    sheet.line(Look::Title, &facts.title)?;
    // The row of the list of sheets is known at the end.
    let pointer = sheet.row;
    sheet.row += 1;
    about(&mut sheet, facts)?;
    findings(&mut sheet, view)?;
    warnings(&mut sheet, view)?;
    missing(&mut sheet, view)?;
    let list = sheet.row + 2;
    sheets(&mut sheet, book)?;
    link(&mut sheet, pointer, &format!("'{FRONT}'!A{list}"), "to the list of sheets")?;
    sheet.widths([(0, 30.0), (1, 100.0), (2, 10.0), (3, 70.0)])?;
    Ok(sheet)
}

fn about(sheet: &mut Sheet, facts: &Facts) -> Result<(), XlsxError> {
    let imported = facts.imported.as_ref();
    let imported =
        imported.map(|program| ("imported", format!("from {program}, not measured by fslab")));
    let ended = (!facts.ended).then(|| ("state", "the run has not ended".to_owned()));
    let lines = [
        ("run", facts.run.clone()),
        ("plan", facts.plan_name.clone()),
        ("profile", facts.profile.name().to_owned()),
        ("measured", facts.when.clone()),
        ("program", facts.program.clone()),
        ("conditions", facts.conditions.clone()),
    ];
    for (name, text) in imported.into_iter().chain(ended).chain(lines) {
        pair(sheet, name, &text)?;
    }
    for line in &facts.run_conditions {
        pair(sheet, "", line)?;
    }
    for (key, value) in &facts.overrides {
        pair(sheet, "override", &format!("{key} = {value}"))?;
    }
    pair(sheet, "not tested", facts.untested)
}

fn findings(sheet: &mut Sheet, view: &View) -> Result<(), XlsxError> {
    let points = || view.findings.by_point.iter();
    section(sheet, view.findings.heading())?;
    let said =
        points().flat_map(|point| point.findings.iter().map(move |finding| (point, finding)));
    let mut any = false;
    for (point, Finding { text, .. }) in said {
        any = true;
        pair(sheet, &point.label, text)?;
    }
    if !any {
        pair(sheet, "", "The data support no findings.")?;
    }
    section(sheet, "Inconclusive")?;
    for point in points() {
        for open in &point.open {
            pair(sheet, &point.label, &open.text())?;
        }
    }
    section(sheet, "Run quality")?;
    for line in &view.quality.lines {
        pair(sheet, "", line)?;
    }
    Ok(())
}

fn warnings(sheet: &mut Sheet, view: &View) -> Result<(), XlsxError> {
    if view.warnings.is_empty() {
        return Ok(());
    }
    section(sheet, "Warnings")?;
    for (column, title) in ["code", "message", "count", "hint"].into_iter().enumerate() {
        sheet.text(sheet.row, column, Look::Header, title)?;
    }
    sheet.row += 1;
    for warning in &view.warnings {
        let row = sheet.row;
        let code = format!("{} ({})", warning.code, warning.severity.name());
        sheet.text(row, 0, Look::Wrapped, &code)?;
        sheet.text(row, 1, Look::Wrapped, &warning.message)?;
        sheet.number(row, 2, f64::from(warning.count), super::book::Digits::Places(0, false))?;
        sheet.text(row, 3, Look::Wrapped, warning.hint)?;
        sheet.row += 1;
    }
    Ok(())
}

fn missing(sheet: &mut Sheet, view: &View) -> Result<(), XlsxError> {
    if view.missing.is_empty() {
        return Ok(());
    }
    section(sheet, "Missing results")?;
    for hole in &view.missing {
        let text = format!("{}: {} ({})", hole.what, hole.reason, hole.workloads.join("; "));
        pair(sheet, &hole.filesystem, &text)?;
    }
    Ok(())
}

fn sheets(sheet: &mut Sheet, book: &Book) -> Result<(), XlsxError> {
    section(sheet, "Sheets")?;
    for (name, title) in &book.listed {
        let row = sheet.row;
        link(sheet, row, &format!("'{}'!A1", name.replace('\'', "''")), name)?;
        sheet.text(row, 1, Look::Text, title)?;
        sheet.row += 1;
    }
    if let [first, .., last] = book.left_out.as_slice() {
        let text = format!(
            "{} more tables have no separate sheet, from `{first}` to `{last}`: their numbers \
             are in `Results`, and the tables in fslab report RUN --html FILE",
            book.left_out.len()
        );
        pair(sheet, "omitted", &text)?;
    } else if let [one] = book.left_out.as_slice() {
        pair(sheet, "omitted", one)?;
    }
    Ok(())
}

/// A link to a cell in the first column.
fn link(sheet: &mut Sheet, row: u32, to: &str, text: &str) -> Result<(), XlsxError> {
    let link = Url::new(format!("internal:{to}")).set_text(plain(text));
    let written = sheet.worksheet.write_url(row, 0, link).map(|_| ());
    sheet.checked(written)
}

/// A heading with an empty row above.
fn section(sheet: &mut Sheet, title: &str) -> Result<(), XlsxError> {
    sheet.row += 1;
    sheet.line(Look::Title, title)
}

/// A name and a text.
fn pair(sheet: &mut Sheet, name: &str, text: &str) -> Result<(), XlsxError> {
    let row = sheet.row;
    sheet.text(row, 0, Look::Wrapped, name)?;
    sheet.text(row, 1, Look::Wrapped, text)?;
    sheet.row += 1;
    Ok(())
}
