//! Tidy CSV (RFC 4180): a header line, then one number a row with its coordinates.
//!
//! Fields may stand in double quotes, with commas, line breaks, and doubled quotes inside; lines
//! end in LF or CR LF; a byte order mark is skipped. A file that is not that, or beyond the
//! [`LIMITS`], is refused with the line.

use thiserror::Error;

/// What a file may hold at most.
pub struct Limits {
    /// Bytes of a file.
    pub bytes: usize,
    /// Rows after the header.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Bytes of a field.
    pub field: usize,
}

/// Far above any printed table; below what would take more than seconds or a gigabyte.
pub const LIMITS: Limits = Limits { bytes: 8 << 20, rows: 20_000, columns: 64, field: 4096 };

/// Why a file is no table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CsvError {
    /// There is nothing in it.
    #[error("line 1: there is no header; name the columns in the first line")]
    Empty,
    /// It is larger than [`LIMITS`] allow.
    #[error("the file has more than {0} bytes; audit a part of it")]
    Large(usize),
    /// It is not UTF-8.
    #[error("line {line}: byte {column} is not UTF-8; save the file as UTF-8")]
    Encoding {
        /// The line, from 1.
        line: usize,
        /// The byte in the line, from 1.
        column: usize,
    },
    /// A mistake in a line.
    #[error("line {line}: {message}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong and what to do.
        message: String,
    },
}

/// Rows with the lines they begin in.
pub(super) type Rows = Vec<(usize, Vec<String>)>;

/// The text of a file.
///
/// # Errors
/// When it is too large or not UTF-8.
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

#[expect(clippy::naive_bytecount, reason = "once for a file that is refused")]
fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Header and rows. Empty lines are skipped; every row has the fields of the header.
///
/// # Errors
/// With the line of the mistake.
pub(super) fn rows(text: &str) -> Result<(Vec<String>, Rows), CsvError> {
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
            header = Some(named(row, line)?);
            continue;
        };
        if row.len() != header.len() {
            let (found, wanted) = (row.len(), header.len());
            let plural = if found == 1 { "" } else { "s" };
            return Err(mistake(
                line,
                format!(
                    "{found} field{plural} where the header has {wanted}; quote fields with commas"
                ),
            ));
        }
        if rows.len() == LIMITS.rows {
            return Err(mistake(
                line,
                format!("there are more than {} rows; audit a part of them", LIMITS.rows),
            ));
        }
        rows.push((line, row));
    }
    Ok((header.ok_or(CsvError::Empty)?, rows))
}

pub(super) fn mistake(line: usize, message: String) -> CsvError {
    CsvError::Line { line, message }
}

/// A header whose names can be told apart.
fn named(row: Vec<String>, line: usize) -> Result<Vec<String>, CsvError> {
    for (index, name) in row.iter().enumerate() {
        if name.is_empty() {
            let message = format!("column {} has no name; give it one", index + 1);
            return Err(mistake(line, message));
        }
        if row[..index].contains(name) {
            let message = format!("the column `{name}` stands twice; rename one of them");
            return Err(mistake(line, message));
        }
    }
    if row.len() > LIMITS.columns {
        let message = format!("there are more than {} columns; leave some out", LIMITS.columns);
        return Err(mistake(line, message));
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
                let message = format!("there are more than {} fields", LIMITS.columns);
                return Err(mistake(self.line, message));
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
            let message = "a quote inside a field without quotes; quote the field and double it";
            return Err(mistake(self.line, message.into()));
        }
        let end = if self.rest[..end].ends_with('\r') { end - 1 } else { end };
        let (field, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(field.to_owned())
    }

    /// The rest of a field whose opening quote was read.
    fn quoted(&mut self) -> Result<String, CsvError> {
        let start = self.line;
        let mut field = String::new();
        loop {
            let Some((text, rest)) = self.rest.split_once('"') else {
                return Err(mistake(start, "a quote is opened and never closed".into()));
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
                    let message = "text behind a closing quote; double quotes inside fields";
                    return Err(mistake(self.line, message.into()));
                }
            }
        }
    }

    /// A field that can be shown: no control characters, which could command a terminal.
    fn checked(&self, field: String) -> Result<String, CsvError> {
        if field.len() > LIMITS.field {
            let message = format!("a field has more than {} bytes", LIMITS.field);
            return Err(mistake(self.line, message));
        }
        if let Some(odd) = field.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t') {
            let message = format!("the control character U+{:04X}; remove it", u32::from(odd));
            return Err(mistake(self.line, message));
        }
        Ok(field)
    }
}
