//! Conversion of CSV rows to cells.

use analysis::audit::Cell;

use super::{
    Columns, Table,
    csv::{self, CsvError, error_at},
};

impl Columns {
    /// Index of a column in the header.
    fn position(header: &[String], name: &str) -> Result<usize, CsvError> {
        header.iter().position(|column| column == name).ok_or_else(|| {
            let known = header.join(", ");
            let hint = "name the column of numbers `value`, or set `value` in [layout]";
            error_at(1, format!("no column `{name}` in {known}; {hint}"))
        })
    }
}

impl Table {
    /// Reads tidy CSV. If a separate column has the printed texts, each value must be a number or
    /// empty.
    ///
    /// # Errors
    /// [`CsvError`] if the file is malformed, exceeds the [`csv::LIMITS`], has no rows, or lacks a
    /// column.
    pub fn read(bytes: &[u8], columns: &Columns) -> Result<Self, CsvError> {
        let (header, rows) = csv::rows(csv::text(bytes)?)?;
        let value = Columns::position(&header, &columns.value)?;
        let text = columns.text.as_deref().map(|name| Columns::position(&header, name));
        let text = text.transpose()?;
        let apart =
            |at: &usize| *at == value || Some(*at) == text || columns.ignore.contains(&header[*at]);
        let kept: Vec<usize> = (0..header.len()).filter(|at| !apart(at)).collect();
        let mut cells = Vec::with_capacity(rows.len());
        for (line, row) in rows {
            let at = kept.iter().map(|at| (header[*at].clone(), row[*at].clone())).collect();
            let given = match text {
                None => None,
                Some(_) if row[value].is_empty() => None,
                Some(_) => Some(number(&row[value], line)?),
            };
            let printed = row[text.unwrap_or(value)].clone();
            cells.push(Cell { at, printed, value: given });
        }
        if cells.is_empty() {
            let message = "no rows after the header; add numbers";
            return Err(error_at(1, message.into()));
        }
        let ignored = header.iter().filter(|name| columns.ignore.contains(name)).cloned().collect();
        let columns = kept.into_iter().map(|at| header[at].clone()).collect();
        Ok(Self { columns, ignored, cells })
    }

    /// Adds a coordinate with the same level to every cell.
    pub(crate) fn with(mut self, name: &str, level: &str) -> Self {
        self.columns.push(name.to_owned());
        for cell in &mut self.cells {
            cell.at.insert(name.to_owned(), level.to_owned());
        }
        self
    }

    /// Appends the cells of another table with the same coordinates.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.cells.extend(other.cells);
        self
    }
}

fn number(text: &str, line: usize) -> Result<f64, CsvError> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| {
        let hint = "leave it empty to read the printed text";
        error_at(line, format!("the value `{}` is not a number; {hint}", text.escape_debug()))
    })
}
