//! Parser of tidy CSV (RFC 4180): a header line, then one number per row with its coordinates.
//!
//! Quoted fields can contain commas, line breaks, and doubled quotes. Lines end in LF or CR LF, and
//! a byte order mark is skipped. Malformed files and files beyond the [`LIMITS`] are rejected with
//! the line.

use thiserror::Error;

/// Limits of a file.
pub struct Limits {
    /// Maximum size of a file in bytes.
    pub bytes: usize,
    /// Maximum number of rows after the header.
    pub rows: usize,
    /// Maximum number of columns.
    pub columns: usize,
    /// Maximum size of a field in bytes.
    pub field: usize,
}

/// Limits of an audit. They exceed any printed table, and an audit within them takes a few seconds
/// and less than 1 GiB of memory.
pub const LIMITS: Limits = Limits { bytes: 8 << 20, rows: 20_000, columns: 64, field: 4096 };

/// Error in a CSV file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CsvError {
    /// The file is empty.
    #[error("line 1: no header; name the columns in the first line")]
    Empty,
    /// The file has more bytes than [`Limits::bytes`], which is the value.
    #[error("the file exceeds {0} bytes; audit a part of it")]
    Large(usize),
    /// The file is not UTF-8.
    #[error("line {line}: byte {column} is not UTF-8; save the file as UTF-8")]
    Encoding {
        /// Line, from 1.
        line: usize,
        /// Byte in the line, from 1.
        column: usize,
    },
    /// Malformed line, or line beyond the [`LIMITS`].
    #[error("line {line}: {message}")]
    Line {
        /// Line, from 1.
        line: usize,
        /// Error and hint.
        message: String,
    },
}

/// Rows with the line in which they begin.
pub(crate) type Rows = Vec<(usize, Vec<String>)>;

/// Text of a file without its byte order mark.
///
/// # Errors
/// [`CsvError`] if the file is too large or not UTF-8.
pub(super) fn text(bytes: &[u8]) -> Result<&str, CsvError> {
    if bytes.len() > LIMITS.bytes {
        return Err(CsvError::Large(LIMITS.bytes));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        CsvError::Encoding { line: lines(before) + 1, column: before.len() - start + 1 }
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

#[expect(clippy::naive_bytecount, reason = "once for a rejected file")]
fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Header and rows. Empty lines are skipped. Every row has as many fields as the header.
///
/// # Errors
/// [`CsvError`] with the line of the error.
pub(crate) fn rows(text: &str) -> Result<(Vec<String>, Rows), CsvError> {
    let mut reader = Reader { rest: text, line: 1 };
    let mut header: Option<Vec<String>> = None;
    let mut rows = Rows::new();
    while !reader.rest.is_empty() {
        let line = reader.line;
        let row = reader.row()?;
        if row.len() == 1 && row[0].is_empty() {
            continue;
        }
        let Some(header) = &header else {
            header = Some(header_row(row, line)?);
            continue;
        };
        if row.len() != header.len() {
            let (found, wanted) = (row.len(), header.len());
            let plural = if found == 1 { "" } else { "s" };
            return Err(error_at(
                line,
                format!("{found} field{plural}, the header has {wanted}; quote fields with commas"),
            ));
        }
        if rows.len() == LIMITS.rows {
            return Err(error_at(
                line,
                format!("more than {} rows; audit a part of them", LIMITS.rows),
            ));
        }
        rows.push((line, row));
    }
    Ok((header.ok_or(CsvError::Empty)?, rows))
}

pub(super) fn error_at(line: usize, message: String) -> CsvError {
    CsvError::Line { line, message }
}

/// Checks that each column of a header has a unique name, and that there are not too many columns.
fn header_row(row: Vec<String>, line: usize) -> Result<Vec<String>, CsvError> {
    for (index, name) in row.iter().enumerate() {
        if name.is_empty() {
            let message = format!("column {} has no name; add one", index + 1);
            return Err(error_at(line, message));
        }
        if row[..index].contains(name) {
            let message = format!("duplicate column `{name}`; rename one");
            return Err(error_at(line, message));
        }
    }
    if row.len() > LIMITS.columns {
        let message = format!("more than {} columns; remove some", LIMITS.columns);
        return Err(error_at(line, message));
    }
    Ok(row)
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl Reader<'_> {
    fn row(&mut self) -> Result<Vec<String>, CsvError> {
        let mut fields = Vec::new();
        loop {
            let field = match self.rest.strip_prefix('"') {
                Some(rest) => {
                    self.rest = rest;
                    self.quoted()?
                }
                None => self.bare()?,
            };
            fields.push(self.checked(field)?);
            if fields.len() > LIMITS.columns {
                let message = format!("more than {} fields", LIMITS.columns);
                return Err(error_at(self.line, message));
            }
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            let end = self.rest.strip_prefix("\r\n").or(self.rest.strip_prefix('\n'));
            self.rest = end.unwrap_or("");
            self.line += 1;
            return Ok(fields);
        }
    }

    fn bare(&mut self) -> Result<String, CsvError> {
        let end = self.rest.find([',', '\n', '"']).unwrap_or(self.rest.len());
        if self.rest[end..].starts_with('"') {
            let message = "quote in an unquoted field; quote the field and double the quote";
            return Err(error_at(self.line, message.into()));
        }
        let end = if self.rest[..end].ends_with('\r') { end - 1 } else { end };
        let (field, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(field.to_owned())
    }

    /// Reads the rest of a field after its opening quote.
    fn quoted(&mut self) -> Result<String, CsvError> {
        let start = self.line;
        let mut field = String::new();
        loop {
            let Some((text, rest)) = self.rest.split_once('"') else {
                return Err(error_at(start, "unterminated quote".into()));
            };
            field.push_str(text);
            self.line += lines(text.as_bytes());
            self.rest = rest;
            match self.rest.strip_prefix('"') {
                Some(rest) => {
                    field.push('"');
                    self.rest = rest;
                }
                None if self.rest.is_empty() || self.rest.starts_with([',', '\n', '\r']) => {
                    return Ok(field);
                }
                None => {
                    let message = "text after a closing quote; double quotes inside fields";
                    return Err(error_at(self.line, message.into()));
                }
            }
        }
    }

    /// Checks the size of a field. Rejects control characters except line feed and tab, because
    /// they could control a terminal.
    fn checked(&self, field: String) -> Result<String, CsvError> {
        if field.len() > LIMITS.field {
            let message = format!("a field exceeds {} bytes", LIMITS.field);
            return Err(error_at(self.line, message));
        }
        if let Some(odd) = field.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t') {
            let message = format!("control character U+{:04X}; remove it", u32::from(odd));
            return Err(error_at(self.line, message));
        }
        Ok(field)
    }
}
