//! Tables as data: what every output lays out.
//!
//! A table is built from points that are already summarized; it chooses one scale for each column
//! and the words of its caption. The overview of a suite: for each point, filesystems × tests, one
//! table for each group; for each filesystem and swept parameter, tests × values. Where tests are
//! judged by how long they take, tests × filesystems. And for each test the ranked list of
//! filesystems.

mod beside;
mod overview;
mod ranked;
mod tasks;

use std::borrow::Cow;

use analysis::{Interval, Summary};
use model::{Metric, metric::Unit, phase::Cache};

pub(crate) use overview::{Overview, overview, slices, value_cell};
pub(crate) use ranked::{ranked, said_of};
pub(crate) use tasks::timed;

use crate::{
    units::{Scale, Shown},
    view::points::Test,
};

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
    /// The filesystem it is about.
    pub(crate) filesystem: Option<usize>,
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
    /// The median in base units, for sorting and for programs.
    pub(crate) sort: f64,
    /// Its interval in base units.
    pub(crate) interval: Option<Interval>,
    /// The base unit.
    pub(crate) unit: Unit,
    /// What qualifies this number alone, such as failed repeats; often empty.
    pub(crate) note: String,
    /// Whose number it is, where it is what a test is judged by.
    pub(crate) of: Option<Of>,
}

/// A filesystem at a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Of {
    /// [`Test::number`].
    pub(crate) test: usize,
    /// Index of the filesystem.
    pub(crate) filesystem: usize,
}

impl Column {
    /// A column about no filesystem.
    pub(crate) fn new(title: impl Into<String>, unit: &'static str) -> Self {
        Self { title: title.into(), unit, filesystem: None }
    }
}

impl Row {
    /// A row about a filesystem, without a note.
    pub(crate) fn of(title: impl Into<String>, filesystem: Option<usize>, body: Body) -> Self {
        Self { title: title.into(), unit: "", filesystem, note: String::new(), body }
    }
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
            interval: summary.interval,
            unit: scale.unit,
            note: String::new(),
            of: None,
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

    /// The table as it is laid out, and the warnings that all numbers have which tests are judged
    /// by: they stand once below it, and not at each of them.
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

    /// Whose warnings [`Table::with_shared_codes`] are.
    pub(crate) fn sharing(&self) -> &'static str {
        match self.values().all(|value| value.of.is_some()) {
            true => "each number has",
            false => "each number that a test is judged by has",
        }
    }

    /// The same with a sentence of its caption that tells of them.
    pub(crate) fn told(&self) -> Cow<'_, Self> {
        let (mut table, shared) = self.with_shared_codes();
        if !shared.is_empty() {
            let sentence = format!("{} {}", self.sharing(), shared.join(", "));
            table.to_mut().caption.push(sentence);
        }
        table
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
    // Percentiles and CPUs are where a name in words is more than its underscores replaced.
    let words = metric.name().replace("p999", "p99.9").replace("cpu", "CPU").replace('_', " ");
    if metric.spec().unit != Unit::Instructions {
        return words;
    }
    // Of a guest: neither those of this machine, nor time.
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
        .map(|metric| format!("{}, {}", words(metric), metric.spec().better.words()))
        .collect();
    each.join("; ")
}

/// The scale of summaries of one unit.
pub(crate) fn scale_of<'a>(unit: Unit, summaries: impl Iterator<Item = &'a Summary>) -> Scale {
    let medians: Vec<f64> = summaries.map(|summary| summary.median).collect();
    Scale::of(unit, medians.into_iter())
}

/// What the caches held before tests, as far as it is known: `caches cold before the test`.
///
/// Where tests differ, the most frequent state is told first and the others with their tests.
pub(crate) fn caches(tests: &[&Test]) -> Option<String> {
    let mut kinds: Vec<(Cache, Vec<&str>)> = Vec::new();
    for test in tests {
        let Some(cache) = test.cache else { continue };
        match kinds.iter_mut().find(|(known, _)| *known == cache) {
            Some((_, names)) => names.push(&test.name),
            None => kinds.push((cache, vec![&test.name])),
        }
    }
    // Stable: of equally frequent states the first seen stands first.
    kinds.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let ((usual, _), others) = kinds.split_first()?;
    let state = |cache: Cache| match cache {
        Cache::Cold => "cold",
        Cache::Warm => "warm",
        Cache::AsLeft => "as the step before left them",
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
    fn instructions_are_told_as_those_of_a_guest() {
        let told = [
            Metric::InstructionsPerOp,
            Metric::CausedInstructionsPerOp,
            Metric::StepInstructions,
            Metric::InstructionsP999,
            Metric::OpsRate,
        ];
        assert_eq!(
            told.map(words),
            [
                "guest instructions per operation",
                "caused guest instructions per operation",
                "step guest instructions",
                "guest instructions p99.9",
                "ops rate"
            ]
        );
    }
}
