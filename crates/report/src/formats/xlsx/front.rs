//! First sheet: run, conditions, findings, and list of sheets.

use rust_xlsxwriter::Url;

use super::book::{Book, FRONT, Look, Sheet, plain};
use crate::document::{Block, Document, Section};

/// First sheet of a book whose other sheets are complete.
pub(super) fn sheet(book: &Book, document: &Document) -> Sheet {
    let mut sheet = Sheet::new(FRONT);
    sheet.line(Look::Title, &document.title);
    // The row of the list of sheets is not known yet.
    let pointer = sheet.row;
    sheet.row += 1;
    pair(&mut sheet, &document.kicker, &document.headline);
    for own in &document.sections {
        if has_texts(own) {
            heading(&mut sheet, &own.title);
            section(&mut sheet, own, "");
        }
    }
    let list = sheet.row + 2;
    sheets(&mut sheet, book);
    link(&mut sheet, pointer, &format!("'{FRONT}'!A{list}"), "to the list of sheets");
    sheet.widths([(0, 30.0), (1, 100.0), (2, 70.0)]);
    sheet
}

/// True if a section or one of its subsections contains a text, a list, or a table without title.
fn has_texts(section: &Section) -> bool {
    let text = |block: &Block| {
        matches!(block, Block::Paragraph(_) | Block::List(_) | Block::Code(..))
            || matches!(block, Block::Table(table, _) if table.title.is_empty())
    };
    section.blocks.iter().any(text) || section.sections.iter().any(has_texts)
}

/// Texts, lists, and tables without title of a section. `label`, the title of a subsection, is
/// shown in the first column.
fn section(sheet: &mut Sheet, own: &Section, label: &str) {
    for block in &own.blocks {
        match block {
            Block::Paragraph(text) => pair(sheet, label, text),
            Block::Code(_, text) => text.lines().for_each(|line| pair(sheet, label, line)),
            Block::List(list) => {
                for item in &list.items {
                    let name = if item.term.is_empty() { label } else { &item.term };
                    if !item.hint.is_empty() {
                        sheet.text(sheet.row, 2, Look::Wrapped, &item.hint);
                    }
                    pair(sheet, name, &item.text);
                }
            }
            Block::Table(table, _) if table.title.is_empty() => {
                for row in &table.rows {
                    pair(sheet, &row.title, &table.texts(row).join(", "));
                }
            }
            Block::Note(_)
            | Block::Table(..)
            | Block::Figure(_)
            | Block::Spark(_)
            | Block::Fold(..)
            | Block::Links(..)
            | Block::Download(..) => {}
        }
    }
    own.sections.iter().for_each(|below| section(sheet, below, &below.title));
}

fn sheets(sheet: &mut Sheet, book: &Book) {
    heading(sheet, "Sheets");
    for (name, title) in &book.listed {
        let row = sheet.row;
        link(sheet, row, &format!("'{}'!A1", name.replace('\'', "''")), name);
        sheet.text(row, 1, Look::Text, title);
        sheet.row += 1;
    }
    if let [first, .., last] = book.left_out.as_slice() {
        let text = format!(
            "{} more tables have no separate sheet, from `{first}` to `{last}`: their numbers \
             are in `Results`, and the tables in fslab report RUN --html FILE",
            book.left_out.len()
        );
        pair(sheet, "omitted", &text);
    } else if let [one] = book.left_out.as_slice() {
        pair(sheet, "omitted", one);
    }
}

/// Writes a link to a cell into the first column.
fn link(sheet: &mut Sheet, row: u32, to: &str, text: &str) {
    let link = Url::new(format!("internal:{to}")).set_text(plain(text));
    sheet.write(|sheet| sheet.write_url(row, 0, link).map(|_| ()));
}

/// Writes a heading after an empty row.
fn heading(sheet: &mut Sheet, title: &str) {
    sheet.row += 1;
    sheet.line(Look::Title, title);
}

/// Writes a name and a text in two columns.
fn pair(sheet: &mut Sheet, name: &str, text: &str) {
    let row = sheet.row;
    sheet.text(row, 0, Look::Wrapped, name);
    sheet.text(row, 1, Look::Wrapped, text);
    sheet.row += 1;
}
