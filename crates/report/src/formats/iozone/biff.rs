//! Workbook of Excel 2.1 (BIFF2): a sequence of records, each with its type and length in 16 bits.
//! Integers and floating-point numbers are little endian. Source: the file format of Excel 2.1, and
//! files that `iozone -b` wrote.

use super::body::Table;

const LABEL: u16 = 0x0004;
const NUMBER: u16 = 0x0003;

/// Bytes of a text in a label, padded with zeros. Longer texts are truncated.
const TEXT: usize = 256;

/// Workbook with a command line, a caption, and tables below each other.
pub(super) fn workbook(command: &str, caption: &str, tables: &[Table]) -> Vec<u8> {
    let mut bytes = vec![0x09, 0x00, 0x04, 0x00, 0x02, 0x00, 0x10, 0x00];
    label(&mut bytes, 0, 0, command);
    label(&mut bytes, 1, 0, " ");
    label(&mut bytes, 2, 0, caption);
    let mut row = 3;
    for table in tables {
        label(&mut bytes, row, 0, &table.title);
        row += 1;
        for (column, head) in (1..).zip(&table.columns) {
            number(&mut bytes, row, column, *head as f64);
        }
        row += 1;
        for (name, values) in &table.rows {
            match name.parse() {
                Ok(size) => number(&mut bytes, row, 0, size),
                Err(_) => label(&mut bytes, row, 0, name),
            }
            for (column, value) in (1..).zip(values) {
                number(&mut bytes, row, column, *value);
            }
            row += 1;
        }
    }
    bytes.extend([0x0a, 0x00, 0x00, 0x00]);
    bytes
}

/// Type, length, place, and three bytes of attributes of a cell.
fn cell(bytes: &mut Vec<u8>, kind: u16, length: u16, row: u16, column: u16) {
    for number in [kind, length, row, column] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([0, 0, 0]);
}

fn label(bytes: &mut Vec<u8>, row: u16, column: u16, text: &str) {
    let ascii: Vec<u8> =
        text.chars().map(|c| u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(b'?')).collect();
    let length = ascii.len().min(255);
    cell(bytes, LABEL, 264, row, column);
    bytes.push(u8::try_from(length).unwrap_or(u8::MAX));
    bytes.extend(&ascii[..length]);
    bytes.resize(bytes.len() + TEXT - length, 0);
}

fn number(bytes: &mut Vec<u8>, row: u16, column: u16, value: f64) {
    cell(bytes, NUMBER, 15, row, column);
    bytes.extend(value.to_le_bytes());
}
