//! Workbook and sheets while they are written: names, cell styles, and writers of text and numbers.

use model::RunRecord;
use rust_xlsxwriter::{
    Color, DocProperties, ExcelDateTime, Format, FormatAlign, FormatBorder, Workbook, Worksheet,
    XlsxError as Refused,
};

use super::{SHEETS_MAX, XlsxError, names::Names};
use crate::{units::one_line, view::View};

/// First characters of a text that spreadsheet programs interpret as a formula when it is edited.
const FORMULA: [char; 4] = ['=', '+', '-', '@'];

/// Maximum length of the text of a cell in UTF-16 units. The format allows 32 767.
const LETTERS_MAX: usize = 32_000;

/// All sheets except the first.
pub(super) struct Book {
    /// Sheets in their final order.
    sheets: Vec<Sheet>,
    /// Name and title of each sheet.
    pub(super) listed: Vec<(String, String)>,
    /// Titles of tables without a sheet, because the maximum was reached.
    pub(super) left_out: Vec<String>,
    names: Names,
    /// Lines below each title: source of imported results, and conditions.
    conditions: Vec<String>,
}

/// Name of the first sheet.
pub(super) const FRONT: &str = "Run";

/// Style of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) enum Look {
    /// Title of a sheet or a section.
    Title,
    /// Text below a title.
    Caption,
    /// Column header.
    Header,
    /// Row header or text.
    Text,
    /// Text over several lines.
    Wrapped,
}

impl Look {
    fn format(self) -> Format {
        let soft = Color::RGB(0x56_5D64);
        match self {
            Self::Title => Format::new().set_bold().set_font_size(13),
            Self::Caption => Format::new().set_font_color(soft),
            Self::Header => Format::new()
                .set_bold()
                .set_text_wrap()
                .set_align(FormatAlign::Top)
                .set_border_bottom(FormatBorder::Thin),
            Self::Text => Format::new(),
            Self::Wrapped => Format::new().set_text_wrap().set_align(FormatAlign::Top),
        }
    }
}

impl Book {
    pub(super) fn new(view: &View) -> Self {
        let mut names = Names::default();
        // Reserves the name of the first sheet, which is written last.
        names.give(FRONT);
        let imported = view.facts.imported.iter();
        let imported =
            imported.map(|program| format!("Imported from {program}, not measured by fslab."));
        let conditions = imported.chain([view.facts.conditions.clone()]).collect();
        Self { sheets: Vec::new(), listed: Vec::new(), left_out: Vec::new(), names, conditions }
    }

    /// New sheet with title and caption; `None` if the maximum number of sheets is reached.
    pub(super) fn sheet(&mut self, short: &str, title: &str, caption: &[String]) -> Option<Sheet> {
        if self.sheets.len() >= SHEETS_MAX {
            self.left_out.push(one_line(title));
            return None;
        }
        Some(self.last(short, title, caption))
    }

    /// New sheet with title and caption, regardless of the maximum number of sheets.
    pub(super) fn last(&mut self, short: &str, title: &str, caption: &[String]) -> Sheet {
        let name = self.names.give(short);
        let mut sheet = Sheet::new(&name);
        sheet.line(Look::Title, title);
        for line in caption.iter().chain(&self.conditions) {
            sheet.line(Look::Caption, line);
        }
        sheet.row += 1;
        self.listed.push((name, one_line(title)));
        sheet
    }

    /// Appends a finished sheet.
    pub(super) fn add(&mut self, sheet: Sheet) {
        self.sheets.push(sheet);
    }

    /// Writes the workbook to memory, with `front` as the first sheet.
    ///
    /// # Errors
    /// The first error of the writer.
    pub(super) fn finish(self, front: Sheet, record: &RunRecord) -> Result<Vec<u8>, XlsxError> {
        let wrong = |source| XlsxError { sheet: "all of them".into(), source };
        let mut workbook = Workbook::new();
        let seconds = record.info.started_unix.0 / 1_000_000_000;
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        // A wrong clock may give a date that the format cannot represent; 1980-01-01 replaces it.
        let created = ExcelDateTime::from_timestamp(seconds)
            .or_else(|_| ExcelDateTime::from_ymd(1980, 1, 1))
            .map_err(wrong)?;
        let properties = DocProperties::new()
            .set_title(one_line(&record.info.title))
            .set_subject(format!("run {}", one_line(&record.info.id)))
            .set_author(one_line(&record.info.program))
            .set_creation_datetime(&created);
        workbook.set_properties(&properties);
        for Sheet { worksheet, name, error, .. } in std::iter::once(front).chain(self.sheets) {
            if let Some(source) = error {
                return Err(XlsxError { sheet: name, source });
            }
            workbook.push_worksheet(worksheet);
        }
        workbook.save_to_buffer().map_err(wrong)
    }
}

/// Sheet while it is written.
pub(super) struct Sheet {
    pub(super) worksheet: Worksheet,
    pub(super) name: String,
    /// Next free row.
    pub(super) row: u32,
    /// First error of the writer.
    error: Option<Refused>,
}

impl Sheet {
    /// New empty sheet. `name` must be valid in spreadsheet programs ([`Names`]).
    pub(super) fn new(name: &str) -> Self {
        let mut worksheet = Worksheet::new();
        worksheet.set_landscape().set_print_fit_to_pages(1, 0);
        let mut sheet = Self { worksheet, name: name.to_owned(), row: 0, error: None };
        sheet.write(|worksheet| worksheet.set_name(name).map(|_| ()));
        sheet
    }

    /// Writes to the sheet, and keeps the first error.
    pub(super) fn write(&mut self, written: impl FnOnce(&mut Worksheet) -> Result<(), Refused>) {
        let error = written(&mut self.worksheet).err();
        self.error = self.error.take().or(error);
    }

    /// Writes a text into the first column of the next row.
    pub(super) fn line(&mut self, look: Look, text: &str) {
        self.text(self.row, 0, look, text);
        self.row += 1;
    }

    /// Writes a text on one line. It is stored as a string; a text that looks like a formula is
    /// also marked as text for later edits.
    pub(super) fn text(&mut self, row: u32, column: usize, look: Look, text: &str) {
        let text = plain(text);
        let format = match text.starts_with(FORMULA) {
            true => look.format().set_quote_prefix(),
            false => look.format(),
        };
        let column = at(column);
        self.write(|sheet| sheet.write_string_with_format(row, column, text, &format).map(|_| ()));
    }

    /// Writes a number. The cell of a number that is not finite stays empty.
    pub(super) fn number(&mut self, row: u32, column: usize, value: f64, digits: Digits) {
        if !value.is_finite() {
            return;
        }
        let column = at(column);
        self.write(|sheet| match digits {
            Digits::All => sheet.write_number(row, column, value).map(|_| ()),
            Digits::Places(places, bold) => {
                let format = Format::new().set_num_format(places_of(places));
                let format = if bold { format.set_bold() } else { format };
                sheet.write_number_with_format(row, column, value, &format).map(|_| ())
            }
        });
    }

    /// Writes a header over several columns.
    pub(super) fn across(&mut self, row: u32, (first, last): (usize, usize), text: &str) {
        if first == last {
            return self.text(row, first, Look::Header, text);
        }
        let text = plain(text);
        let format = Look::Header.format();
        let format = if text.starts_with(FORMULA) { format.set_quote_prefix() } else { format };
        let (first, last) = (at(first), at(last));
        self.write(|sheet| sheet.merge_range(row, first, row, last, &text, &format).map(|_| ()));
    }

    /// Sets column widths, in characters.
    pub(super) fn widths(&mut self, widths: impl IntoIterator<Item = (usize, f64)>) {
        for (column, width) in widths {
            self.write(|sheet| sheet.set_column_width(at(column), width).map(|_| ()));
        }
    }

    /// Keeps the rows above `row` and the columns left of `column` visible when the sheet is
    /// scrolled.
    pub(super) fn freeze(&mut self, row: u32, column: usize) {
        self.write(|sheet| sheet.set_freeze_panes(row, at(column)).map(|_| ()));
    }
}

/// Display format of a number, which is always stored in full.
#[derive(Clone, Copy, Debug)]
pub(super) enum Digits {
    /// General format of the spreadsheet program.
    All,
    /// Number of decimal places, and true for bold.
    Places(usize, bool),
}

/// Number format with this many decimal places.
fn places_of(places: usize) -> String {
    match places {
        0 => "0".into(),
        places => format!("0.{}", "0".repeat(places)),
    }
}

/// Decimal places of a printed number: `41.30` has two.
pub(super) fn places(shown: &str) -> usize {
    shown.split_once('.').map_or(0, |(_, places)| places.len())
}

/// Column number. The writer rejects a column that exceeds the range of the format.
pub(super) fn at(column: usize) -> u16 {
    u16::try_from(column).unwrap_or(u16::MAX)
}

/// Text on one line that fits a cell, without the two noncharacters that XML forbids.
pub(super) fn plain(text: &str) -> String {
    let text = one_line(text).replace(['\u{fffe}', '\u{ffff}'], " ");
    match text.char_indices().nth(LETTERS_MAX / 2) {
        Some((cut, _)) => format!("{} …", &text[..cut]),
        None => text,
    }
}
