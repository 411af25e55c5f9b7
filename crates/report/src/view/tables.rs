//! Tables as data, independent of the output format.
//!
//! A table is built from summarized points and has one unit per column, and a caption. The overview
//! of a suite has, per point and group, filesystems × tests, and per filesystem and swept
//! parameter, tests × values. Points whose metric is the elapsed time have tests × filesystems.
//! Each test also has a ranking of filesystems.

mod overview;
mod ranked;
mod side_by_side;
mod tasks;

use std::borrow::Cow;

use analysis::{Interval, Summary};
use model::{Metric, metric::Unit, phase::Cache};

pub(crate) use overview::{Overview, overview, slices, value_cell};
pub(crate) use ranked::{pair_result, ranked};
pub(crate) use tasks::timed;

use crate::{
    units::{Scale, Shown},
    view::points::Test,
};

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
    /// [`Test::number`].
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
    /// A row without a unit or note.
    pub(crate) fn of(title: impl Into<String>, filesystem: Option<usize>, body: Body) -> Self {
        Self { title: title.into(), unit: "", filesystem, note: String::new(), body }
    }
}

impl ValueCell {
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
        self.caption.push(format!("n = {common} repetitions{except}; {interval}"));
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

/// Label of a metric: `durable throughput`.
pub(crate) fn metric_label(metric: Metric) -> String {
    // Percentiles and CPU need more than spaces instead of underscores.
    let words = metric.name().replace("p999", "p99.9").replace("cpu", "CPU").replace('_', " ");
    if metric.spec().unit != Unit::Instructions {
        return words;
    }
    // Instructions of a guest, not of the host.
    words.replace("instructions", "guest instructions").replace("per op", "per operation")
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
        .map(|metric| format!("{}, {}", metric_label(metric), metric.spec().better.label()))
        .collect();
    each.join("; ")
}

/// Display scale of summaries of one unit.
pub(crate) fn scale_of<'a>(unit: Unit, summaries: impl Iterator<Item = &'a Summary>) -> Scale {
    let medians: Vec<f64> = summaries.map(|summary| summary.median).collect();
    Scale::of(unit, medians.into_iter())
}

/// Cache state before tests, if recorded: `caches cold, but warm before reread`.
///
/// The most frequent state comes first, the others with their tests.
pub(crate) fn caches(tests: &[&Test]) -> Option<String> {
    let mut kinds: Vec<(Cache, Vec<&str>)> = Vec::new();
    for test in tests {
        let Some(cache) = test.cache else { continue };
        match kinds.iter_mut().find(|(known, _)| *known == cache) {
            Some((_, names)) => names.push(&test.name),
            None => kinds.push((cache, vec![&test.name])),
        }
    }
    // Stable: equally frequent states keep their order.
    kinds.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let ((usual, _), others) = kinds.split_first()?;
    let state = |cache: Cache| match cache {
        Cache::Cold => "cold",
        Cache::Warm => "warm",
        Cache::Unchanged => "unchanged between steps",
    };
    let others = others
        .iter()
        .map(|(cache, names)| format!(", but {} before {}", state(*cache), names.join(", ")));
    Some(format!("caches {}{}", state(*usual), others.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_labeled_as_guest_instructions() {
        let metrics = [
            Metric::InstructionsPerOp,
            Metric::AttributedInstructionsPerOp,
            Metric::StepInstructions,
            Metric::InstructionsP999,
            Metric::OpsRate,
        ];
        assert_eq!(
            metrics.map(metric_label),
            [
                "guest instructions per operation",
                "attributed guest instructions per operation",
                "step guest instructions",
                "guest instructions p99.9",
                "ops rate"
            ]
        );
    }
}
