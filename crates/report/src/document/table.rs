//! Tables of numbers with row headers.

use std::borrow::Cow;

use analysis::{Interval, Summary};
use model::{metric::Unit, units::plural};

use crate::units::{Scale, Shown};

/// Caption of tables that show medians with both ends of their intervals. Compact layouts replace
/// it.
pub(crate) const INTERVALS: &str = "median [95 % confidence interval]";

/// A table with row headers.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Unique within the report.
    pub(crate) id: String,
    /// `Table 3. …` if the study numbers it.
    pub(crate) title: String,
    /// Quantity and direction, n, interval, ranking.
    pub(crate) caption: Vec<String>,
    /// Header of the row headers.
    pub(crate) corner: &'static str,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

/// Header of a column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: String,
    /// Unit of the values; empty for text.
    pub(crate) unit: &'static str,
    /// Filesystem of the column.
    pub(crate) filesystem: Option<usize>,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) title: String,
    /// Unit of the values, if rows rather than columns have units.
    pub(crate) unit: &'static str,
    /// Filesystem of the row.
    pub(crate) filesystem: Option<usize>,
    /// Note on the whole row, such as failed repetitions; often empty.
    pub(crate) note: String,
    pub(crate) body: Body,
}

/// Content of a row.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// One cell per column.
    Cells(Vec<TableCell>),
    /// Reason for missing results.
    Missing(String),
}

/// Content of a cell.
#[derive(Clone, Debug)]
pub(crate) enum TableCell {
    /// A number.
    Value(ValueCell),
    /// Text, or the reason for a missing value.
    Text(String),
}

/// A number with its interval, n, marks, and warnings.
#[derive(Clone, Debug)]
pub(crate) struct ValueCell {
    pub(crate) shown: Shown,
    pub(crate) n: u32,
    /// True if n differs from the caption and is shown in the cell.
    pub(crate) n_stated: bool,
    /// True if in the top group of its test.
    pub(crate) top: bool,
    pub(crate) codes: Vec<&'static str>,
    /// Median in base units, for sorting and for machine-readable formats.
    pub(crate) sort: f64,
    /// Confidence interval in base units.
    pub(crate) interval: Option<Interval>,
    /// Base unit.
    pub(crate) unit: Unit,
    /// Note on this number, such as failed repetitions; often empty.
    pub(crate) note: String,
    /// Test and filesystem of a primary metric; `None` for other metrics.
    pub(crate) of: Option<Of>,
}

/// Test and filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Of {
    /// Number of the test in the report.
    pub(crate) test: usize,
    /// Index of the filesystem.
    pub(crate) filesystem: usize,
}

impl Column {
    /// A column without a filesystem.
    pub(crate) fn new(title: impl Into<String>, unit: &'static str) -> Self {
        Self { title: title.into(), unit, filesystem: None }
    }
}

impl Row {
    /// A row of texts.
    pub(crate) fn texts<T: Into<String>>(
        title: impl Into<String>,
        texts: impl IntoIterator<Item = T>,
    ) -> Self {
        let cells = texts.into_iter().map(|text| TableCell::Text(text.into())).collect();
        Self::of(title, None, Body::Cells(cells))
    }

    /// A row without a unit or note.
    pub(crate) fn of(title: impl Into<String>, filesystem: Option<usize>, body: Body) -> Self {
        Self { title: title.into(), unit: "", filesystem, note: String::new(), body }
    }
}

impl ValueCell {
    /// An estimate that is not the median of the n values.
    pub(crate) fn estimate(value: f64, interval: Option<Interval>, n: u32, scale: Scale) -> Self {
        let warnings = Vec::new();
        let summary = Summary { n, median: value, interval, min: value, max: value, warnings };
        Self::plain(&summary, scale)
    }

    /// A summary without rank, warnings, or failures.
    pub(crate) fn plain(summary: &Summary, scale: Scale) -> Self {
        Self {
            shown: scale.shown(summary),
            n: summary.n,
            n_stated: false,
            top: false,
            codes: Vec::new(),
            sort: summary.median,
            interval: summary.interval,
            unit: scale.unit,
            note: String::new(),
            of: None,
        }
    }
}

impl Table {
    /// A table of texts without a title.
    pub(crate) fn of_texts(corner: &'static str, columns: &[&str], rows: Vec<Row>) -> Self {
        Self {
            id: String::new(),
            title: String::new(),
            caption: Vec::new(),
            corner,
            columns: columns.iter().map(|title| Column::new(*title, "")).collect(),
            rows,
        }
    }

    /// Cells of a row as texts; numbers without interval.
    pub(crate) fn texts(&self, row: &Row) -> Vec<String> {
        match &row.body {
            Body::Missing(reason) => vec![reason.clone()],
            Body::Cells(cells) => cells
                .iter()
                .map(|cell| match cell {
                    TableCell::Text(text) => text.clone(),
                    TableCell::Value(value) => value.shown.value.clone(),
                })
                .collect(),
        }
    }

    /// States the most frequent n in the caption and marks cells with another n.
    pub(crate) fn state_n(&mut self) {
        let mut counts: std::collections::BTreeMap<u32, usize> = std::collections::BTreeMap::new();
        self.values_mut().for_each(|value| *counts.entry(value.n).or_default() += 1);
        let common = counts.into_iter().max_by_key(|(_, cells)| *cells).map(|(n, _)| n);
        let Some(common) = common else {
            return;
        };
        let mut others = false;
        for value in self.values_mut() {
            value.n_stated = value.n != common;
            others |= value.n_stated;
        }
        let interval = if common >= analysis::summary::needed(analysis::summary::LEVEL) {
            INTERVALS
        } else {
            "median; too few repetitions for a confidence interval"
        };
        let except = if others { " unless stated" } else { "" };
        self.caption.push(format!("n = {}{except}; {interval}", plural(common, "repetition")));
    }

    /// The table without the warnings that all primary values share, and these warnings. They are
    /// shown once below the table instead of in each cell.
    pub(crate) fn with_shared_codes(&self) -> (Cow<'_, Self>, Vec<&'static str>) {
        let judged = || self.values().filter(|value| value.of.is_some());
        let mut shared = judged().next().map_or_else(Vec::new, |value| value.codes.clone());
        judged().for_each(|value| shared.retain(|code| value.codes.contains(code)));
        if shared.is_empty() || judged().nth(1).is_none() {
            return (Cow::Borrowed(self), Vec::new());
        }
        let mut table = self.clone();
        let judged = table.values_mut().filter(|value| value.of.is_some());
        judged.for_each(|value| value.codes.retain(|code| !shared.contains(code)));
        (Cow::Owned(table), shared)
    }

    /// Filesystems of rows and columns with numbers.
    pub(crate) fn measured(&self) -> Vec<usize> {
        let mut all = Vec::new();
        for row in &self.rows {
            let Body::Cells(cells) = &row.body else { continue };
            for (cell, column) in cells.iter().zip(&self.columns) {
                if matches!(cell, TableCell::Value(_)) {
                    all.extend(row.filesystem.into_iter().chain(column.filesystem));
                }
            }
        }
        all
    }

    /// The table without rows and columns of some filesystems, unless nothing would remain.
    pub(crate) fn without(&self, absent: &[usize]) -> Cow<'_, Self> {
        let is_shown =
            |filesystem: Option<usize>| filesystem.is_none_or(|it| !absent.contains(&it));
        let rows = self.rows.iter().filter(|row| is_shown(row.filesystem)).count();
        let shown: Vec<bool> = self.columns.iter().map(|own| is_shown(own.filesystem)).collect();
        let all = rows == self.rows.len() && !shown.contains(&false);
        if all || rows == 0 || !shown.contains(&true) {
            return Cow::Borrowed(self);
        }
        let mut table = self.clone();
        table.rows.retain(|row| is_shown(row.filesystem));
        table.columns.retain(|column| is_shown(column.filesystem));
        for row in &mut table.rows {
            if let Body::Cells(cells) = &mut row.body {
                let mut shown = shown.iter();
                cells.retain(|_| shown.next().is_none_or(|shown| *shown));
            }
        }
        Cow::Owned(table)
    }

    /// Label of the warnings of [`Table::with_shared_codes`].
    pub(crate) fn sharing(&self) -> &'static str {
        match self.values().all(|value| value.of.is_some()) {
            true => "warnings of all values:",
            false => "warnings of all primary values:",
        }
    }

    /// The same with the shared warnings in the caption.
    pub(crate) fn with_codes_in_caption(&self) -> Cow<'_, Self> {
        let (mut table, shared) = self.with_shared_codes();
        if !shared.is_empty() {
            let line = format!("{} {}", self.sharing(), shared.join(", "));
            table.to_mut().caption.push(line);
        }
        table
    }

    /// True if any value is in a top group.
    pub(crate) fn has_top(&self) -> bool {
        self.values().any(|value| value.top)
    }

    /// True if a column has text rather than numbers.
    pub(crate) fn is_text(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| match &row.body {
            Body::Cells(cells) => cells.get(column),
            Body::Missing(_) => None,
        });
        !cells.any(|cell| matches!(cell, TableCell::Value(_)))
    }

    /// All numbers of the table.
    pub(crate) fn values(&self) -> impl Iterator<Item = &ValueCell> {
        let cells = self.rows.iter().flat_map(|row| match &row.body {
            Body::Cells(cells) => cells.as_slice(),
            Body::Missing(_) => &[],
        });
        cells.filter_map(|cell| match cell {
            TableCell::Value(value) => Some(value),
            TableCell::Text(_) => None,
        })
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut ValueCell> {
        let cells = self.rows.iter_mut().flat_map(|row| match &mut row.body {
            Body::Cells(cells) => cells.as_mut_slice(),
            Body::Missing(_) => &mut [],
        });
        cells.filter_map(|cell| match cell {
            TableCell::Value(value) => Some(value),
            TableCell::Text(_) => None,
        })
    }
}
