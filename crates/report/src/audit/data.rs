//! Rows of a table become cells.

use analysis::audit::Cell;

use super::{
    Columns, Table,
    csv::{self, CsvError, mistake},
};

impl Columns {
    /// The position of a column.
    fn position(header: &[String], name: &str) -> Result<usize, CsvError> {
        header.iter().position(|column| column == name).ok_or_else(|| {
            let known = header.join(", ");
            let words = "name the column of the numbers `value`, or set `value` in [layout]";
            mistake(1, format!("there is no column `{name}` among {known}; {words}"))
        })
    }
}

impl Table {
    /// Reads tidy CSV. A value that stands beside its printed text must be a number or empty.
    ///
    /// # Errors
    /// [`CsvError`] with the line of the mistake.
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
            let words = "there is no row below the header; an audit needs numbers";
            return Err(mistake(1, words.into()));
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

    /// Appends the cells of another table of the same coordinates.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.cells.extend(other.cells);
        self
    }
}

fn number(text: &str, line: usize) -> Result<f64, CsvError> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| {
        let words = "leave it empty and the printed text will be read";
        mistake(line, format!("the value `{}` is no number; {words}", text.escape_debug()))
    })
}
