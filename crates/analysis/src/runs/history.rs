//! Tests over many runs: where they changed.
//!
//! Runs and the comparisons of neighbors enter; a [`History`] of each test leaves. A run whose
//! numbers of a test may not be compared gives it no point. A change is told only where every
//! comparison between its two points may be claimed of; otherwise it is kept with the reason.

use std::collections::BTreeMap;

use model::{
    CellId, Metric, Ratio, RunRecord,
    phase::Role,
    record::{CellRecord, PhaseInfo},
};

use super::{
    Metrics, Paired, Pairs, TestPair, Which, Withheld, guards,
    numbers::{Numbers, values},
};
use crate::{
    Summary,
    changes::{self, Change, Options},
    conditions::named,
};

/// One test over all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Filesystem and workload.
    pub name: String,
    /// The phase.
    pub phase: String,
    /// What was measured.
    pub metric: Metric,
    /// The runs that have numbers of it, in order, by index.
    pub runs: Vec<usize>,
    /// The median in each of these runs.
    pub medians: Vec<f64>,
    /// Where it changed, ascending; the index is that of the first run at the new level.
    pub changes: Vec<Change>,
    /// Where it changed, and nothing may be claimed of it.
    pub doubted: Vec<Doubted>,
}

/// A change of which nothing may be claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubted {
    /// The change.
    pub change: Change,
    /// Why.
    pub why: String,
}

/// A cell of any run, and the values of one of its tests in each.
struct Series {
    name: String,
    phase: String,
    metric: Metric,
    /// Index of the run, that of the cell in it, and the median.
    points: Vec<(usize, usize, f64)>,
}

/// Looks for changes in every test that enough runs have in cells of one identity; below
/// [`changes::POINTS_MIN`] in none. `steps` are the comparisons of the runs, each with the next.
pub(super) fn histories(
    runs: &[&RunRecord],
    how: &Pairs,
    working: Ratio,
    steps: &[Paired],
) -> Vec<History> {
    if runs.len() < changes::POINTS_MIN {
        return Vec::new();
    }
    let options = Options { least_change: working, ..Options::default() };
    let mut found: Vec<(Series, Vec<Change>)> = Vec::new();
    for series in all(runs, how.metrics) {
        let logs: Vec<f64> = series.points.iter().map(|(.., median)| median.ln()).collect();
        if let Ok(changes) = changes::find(&logs, options) {
            found.push((series, changes));
        }
    }
    // Where tests changed that what differed cannot have touched.
    let mut control = vec![0_u32; steps.len()];
    for (series, changes) in &found {
        for step in changes.iter().flat_map(|change| between(series, change)) {
            let untouched = tests(series, step, steps).any(|test| !test.touched);
            control[step] += u32::from(untouched);
        }
    }
    let history = |(series, changes): (Series, Vec<Change>)| {
        let (mut told, mut doubted) = (Vec::new(), Vec::new());
        for change in changes {
            let mut steps =
                between(&series, &change).map(|step| doubt(&series, step, steps, &control));
            let why = steps.find_map(|why| why);
            let at = series.points[change.at].0;
            let change = Change { at, ..change };
            match why {
                Some(why) => doubted.push(Doubted { change, why }),
                None => told.push(change),
            }
        }
        let Series { name, phase, metric, points } = series;
        let runs = points.iter().map(|(run, ..)| *run).collect();
        let medians = points.iter().map(|(.., median)| *median).collect();
        History { name, phase, metric, runs, medians, changes: told, doubted }
    };
    found.into_iter().map(history).collect()
}

/// The comparisons between the last point of the old level and the first of the new one.
fn between(series: &Series, change: &Change) -> std::ops::Range<usize> {
    series.points[change.at - 1].0..series.points[change.at].0
}

/// The tests of a comparison that are of a series.
fn tests<'a>(
    series: &'a Series,
    step: usize,
    steps: &'a [Paired],
) -> impl Iterator<Item = &'a TestPair> {
    let cell =
        |run: usize| series.points.iter().find(|(at, ..)| *at == run).map(|(_, cell, _)| *cell);
    let (first, second) = (cell(step), cell(step + 1));
    let tests = steps.get(step).map_or(&[][..], |step| &step.tests);
    tests.iter().filter(move |test| {
        let own = first == Some(test.first) || second == Some(test.second);
        own && test.phase == series.phase && test.metric == series.metric
    })
}

/// Why nothing may be claimed of a change of a series at a comparison.
fn doubt(series: &Series, step: usize, steps: &[Paired], control: &[u32]) -> Option<String> {
    if let Some(refused) = steps.get(step)?.refused.first() {
        return Some(refused.to_string());
    }
    for test in tests(series, step, steps) {
        if let Err(differs @ Withheld::Differs { .. }) = &test.comparison {
            return Some(differs.to_string());
        }
        if !test.touched {
            return Some("what differed there cannot have touched it".into());
        }
    }
    match control[step] {
        0 => None,
        1 => Some("a test that what differed cannot have touched changed there as well".into()),
        n => {
            Some(format!("{n} tests that what differed cannot have touched changed there as well"))
        }
    }
}

/// The points of every test, in the order in which the runs have them first.
fn all(runs: &[&RunRecord], metrics: Metrics) -> Vec<Series> {
    let mut places = BTreeMap::new();
    let mut all: Vec<Series> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let numbers = Numbers::new(run);
        let cells = run.cells.iter().enumerate().filter(|(_, record)| !record.cell.twin);
        for (index, record) in cells {
            for (phase, metric) in measured(record, metrics) {
                let Some(median) = point(&numbers, (index, record), phase, metric) else {
                    continue;
                };
                let key: (CellId, String, Metric) = (record.id, phase.name.clone(), metric);
                let place = *places.entry(key).or_insert_with(|| {
                    let (name, phase) = (named(record), phase.name.clone());
                    all.push(Series { name, phase, metric, points: Vec::new() });
                    all.len() - 1
                });
                // Two cells of one identity are one.
                if all[place].points.last().is_none_or(|(last, ..)| *last < at) {
                    all[place].points.push((at, index, median));
                }
            }
        }
    }
    all
}

/// The median of a test in one run, if it may be compared and has a logarithm.
fn point(
    numbers: &Numbers<'_>,
    cell: (usize, &CellRecord),
    phase: &PhaseInfo,
    metric: Metric,
) -> Option<f64> {
    if guards::withheld(Which::First, numbers, cell, &phase.name, metric).is_some() {
        return None;
    }
    let repeats = numbers.repeats(cell.0, &phase.name, metric);
    let median = Summary::new(&values(repeats)).ok()?.median;
    (median > 0.0).then_some(median)
}

/// The tests of a cell; a history of every metric would be of no use to anybody.
fn measured(record: &CellRecord, metrics: Metrics) -> impl Iterator<Item = (&PhaseInfo, Metric)> {
    let measured = record.phases.iter().filter(|phase| phase.role == Role::Measure);
    measured.map(move |phase| match metrics {
        Metrics::One(metric) => (phase, metric),
        Metrics::Primary | Metrics::All => (phase, phase.primary),
    })
}
