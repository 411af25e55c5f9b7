//! Tables as data: what every output lays out.
//!
//! A table is built from points that are already summarized; it chooses one scale for each column
//! and the words of its caption. The overview of a suite: for each point, filesystems × tests, one
//! table for each group; for each filesystem and swept parameter, tests × values. And for each test
//! the ranked list of filesystems.

mod overview;
mod ranked;

use analysis::Summary;
use model::{Metric, metric::Unit};

pub(crate) use overview::{Overview, overview, slices};
pub(crate) use ranked::ranked;

use crate::units::{Scale, Shown};

/// A table with row headers.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Unique within the report.
    pub(crate) id: String,
    /// `Table 3. …` where the study numbers it.
    pub(crate) title: String,
    /// Sentences: quantity and direction, n, interval, ranking.
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
    /// Unit of all its values; empty for words.
    pub(crate) unit: &'static str,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) title: String,
    /// Unit of all its values, where rows rather than columns have one.
    pub(crate) unit: &'static str,
    /// The filesystem it is about.
    pub(crate) filesystem: Option<usize>,
    /// What qualifies the whole row, such as failed repeats; often empty.
    pub(crate) note: String,
    pub(crate) body: Body,
}

/// What a row holds.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// One cell for each column.
    Cells(Vec<TableCell>),
    /// Why there are none.
    Missing(String),
}

/// What a cell holds.
#[derive(Clone, Debug)]
pub(crate) enum TableCell {
    /// A number with all that belongs to it.
    Value(ValueCell),
    /// Words, or the reason for a hole.
    Text(String),
}

/// A number with all that belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct ValueCell {
    pub(crate) shown: Shown,
    pub(crate) n: u32,
    /// n differs from what the caption says.
    pub(crate) n_stated: bool,
    /// Belongs to the top group of its test.
    pub(crate) top: bool,
    pub(crate) codes: Vec<&'static str>,
    /// In base units, for sorting.
    pub(crate) sort: f64,
    /// What qualifies this number alone, such as failed repeats; often empty.
    pub(crate) note: String,
}

impl ValueCell {
    /// A summary without rank, warnings or failures.
    pub(crate) fn plain(summary: &Summary, scale: Scale) -> Self {
        Self {
            shown: scale.shown(summary),
            n: summary.n,
            n_stated: false,
            top: false,
            codes: Vec::new(),
            sort: summary.median,
            note: String::new(),
        }
    }
}

impl Table {
    /// Finds the most frequent n, marks the cells that differ, and says it in the caption.
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
            "median [95 % interval of the median]"
        } else {
            "median; too few repeats for an interval"
        };
        let except = if others { " unless stated" } else { "" };
        self.caption.push(format!("n = {common} repeats{except}; {interval}"));
    }

    /// Whether any number in it belongs to a top group.
    pub(crate) fn has_top(&self) -> bool {
        self.values().any(|value| value.top)
    }

    /// Whether a column holds words rather than numbers.
    pub(crate) fn is_words(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| match &row.body {
            Body::Cells(cells) => cells.get(column),
            Body::Missing(_) => None,
        });
        !cells.any(|cell| matches!(cell, TableCell::Value(_)))
    }

    /// All numbers in it.
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

/// A metric in words: `durable throughput`.
pub(crate) fn words(metric: Metric) -> String {
    // Percentiles are the one place where a name in words is more than its underscores replaced.
    metric.name().replace("p999", "p99.9").replace('_', " ")
}

/// Quantities and directions of some metrics: `throughput, higher is better ↑`.
pub(crate) fn directions(metrics: impl Iterator<Item = Metric>) -> String {
    let mut seen: Vec<Metric> = Vec::new();
    metrics.for_each(|metric| {
        if !seen.contains(&metric) {
            seen.push(metric);
        }
    });
    let each: Vec<String> = seen
        .into_iter()
        .map(|metric| format!("{}, {}", words(metric), metric.spec().better.words()))
        .collect();
    each.join("; ")
}

/// The scale of summaries of one unit.
pub(crate) fn scale_of<'a>(unit: Unit, summaries: impl Iterator<Item = &'a Summary>) -> Scale {
    let medians: Vec<f64> = summaries.map(|summary| summary.median).collect();
    Scale::of(unit, medians.into_iter())
}
