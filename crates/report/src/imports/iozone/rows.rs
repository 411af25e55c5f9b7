//! Rows of the single-stream mode.

use super::{Row, Rows};
use crate::{imports::ImportError, iozone_layout::COLUMNS};

/// Characters before the first value: file size and block size.
const SIZES: usize = 24;

/// Reads all rows. A row is cut at the columns of IOzone 3.471 if its numbers end there. Otherwise,
/// it must have one number per column of the header.
pub(super) fn rows(lines: &[(usize, &str)]) -> Result<Rows, ImportError> {
    let mut rows = Rows::new();
    let mut columns: Option<Vec<usize>> = None;
    for (line, content) in lines {
        if content.contains("reclen") {
            columns = Some(header(*line, content)?);
            continue;
        }
        let Some(columns) = &columns else { continue };
        let mut words = content.split_whitespace();
        let sizes = words.next().zip(words.next());
        let sizes = sizes.and_then(|(file, block)| Some((file.parse().ok()?, block.parse().ok()?)));
        let Some(sizes) = sizes else { continue };
        let row = match fixed(content, columns) {
            Some(row) => row,
            None => tokens(*line, content, columns)?,
        };
        // A value of 0 is a test that was not repeated.
        let row = row.into_iter().filter(|(_, value)| *value > 0.0);
        rows.entry(sizes).or_default().extend(row);
    }
    Ok(rows)
}

/// Tests of the columns of a header, in order. Columns may be missing.
fn header(line: usize, content: &str) -> Result<Vec<usize>, ImportError> {
    let words = content.split_whitespace().skip_while(|word| *word != "reclen").skip(1);
    let mut next = 0;
    let mut columns = Vec::new();
    for word in words {
        let found = (next..COLUMNS.len()).find(|place| COLUMNS[*place].head[1] == word);
        let place = found.ok_or_else(|| ImportError::Field {
            place: format!("line {line}"),
            expected: "the columns of IOzone",
            found: word.chars().take(40).flat_map(char::escape_debug).collect(),
        })?;
        columns.push(place);
        next = place + 1;
    }
    Ok(columns)
}

/// Values of a row by position; `None` if a number does not end at its column.
fn fixed(content: &str, columns: &[usize]) -> Option<Row> {
    let bytes = content.trim_end().as_bytes();
    if !bytes.is_ascii() || bytes.len() < SIZES {
        return None;
    }
    let mut row = Row::new();
    let mut start = SIZES;
    for place in columns {
        let end = start + COLUMNS[*place].width;
        let Some(window) = bytes.get(start..end.min(bytes.len())) else { break };
        let text = std::str::from_utf8(window).ok()?.trim();
        if !text.is_empty() {
            let ends = bytes.len() >= end && bytes[end - 1].is_ascii_digit();
            // Without a space, the number may continue that of the column before.
            let is_fused = bytes[start].is_ascii_digit() && bytes[start - 1].is_ascii_digit();
            if !ends || is_fused {
                return None;
            }
            row.insert(*place, text.parse::<u64>().ok().map(|own| own as f64)?);
        }
        start = end;
    }
    (bytes.len() <= start).then_some(row)
}

/// Values of a row that has one number per column.
fn tokens(line: usize, content: &str, columns: &[usize]) -> Result<Row, ImportError> {
    let numbers: Vec<&str> = content.split_whitespace().skip(2).collect();
    if numbers.len() != columns.len() {
        return Err(ImportError::Field {
            place: format!("line {line}"),
            expected: "one number per column, or numbers that end at their columns; run IOzone with \
                       -R and import its tables",
            found: format!("{} numbers for {} columns", numbers.len(), columns.len()),
        });
    }
    let mut row = Row::new();
    for (place, text) in columns.iter().zip(numbers) {
        let number = text.parse::<f64>().ok().filter(|own| own.is_finite() && *own >= 0.0);
        let number = number.ok_or_else(|| ImportError::Field {
            place: format!("line {line}, {}", COLUMNS[*place].test),
            expected: "a number",
            found: text.chars().take(40).flat_map(char::escape_debug).collect(),
        })?;
        row.insert(*place, number);
    }
    Ok(row)
}
