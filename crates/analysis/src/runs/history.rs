//! Change points of tests over many runs.
//!
//! Computes a [`History`] per test from the runs and the comparisons of neighboring runs. A run
//! contributes no point to a test if its numbers are not comparable. A change point between two
//! runs is reported only if every comparison from the first to the second of these runs may yield
//! findings. Other change points are kept with the reason.

use std::collections::BTreeMap;

use model::{
    CellId, Metric, Ratio, RunRecord,
    phase::Role,
    record::{CellRecord, PhaseInfo},
};

use super::{
    CompareOptions, Metrics, Paired, TestPair, Which, Withheld, guards,
    numbers::{Numbers, values},
};
use crate::{
    Summary,
    changes::{self, Change, Options},
    conditions::named,
};

/// One test over all runs that have numbers of it.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Filesystem and workload.
    pub name: String,
    /// Phase.
    pub phase: String,
    /// Metric.
    pub metric: Metric,
    /// Indexes of the runs with numbers, in order.
    pub runs: Vec<usize>,
    /// Median of the test in each of these runs.
    pub medians: Vec<f64>,
    /// Change points, ascending. Their index is that of the first run at the new level.
    pub changes: Vec<Change>,
    /// Withheld change points.
    pub withheld: Vec<WithheldChange>,
}

/// Change point that failed a check.
#[derive(Clone, Debug, PartialEq)]
pub struct WithheldChange {
    /// Change.
    pub change: Change,
    /// Reason.
    pub reason: String,
}

/// One test of a cell, with its values in the runs.
struct Series {
    name: String,
    phase: String,
    metric: Metric,
    /// Index of the run, index of the cell in it, and median.
    points: Vec<(usize, usize, f64)>,
}

/// Histories of all tests with enough points; empty below [`changes::POINTS_MIN`] runs. Cells of
/// different runs are the same cell if their identities are equal. `steps` are the comparisons of
/// each run with the next.
pub(super) fn histories(
    runs: &[&RunRecord],
    how: &CompareOptions,
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
    // Number of changes of negative controls at each comparison.
    let mut control = vec![0_u32; steps.len()];
    for (series, changes) in &found {
        for step in changes.iter().flat_map(|change| between(series, change)) {
            let unaffected = tests(series, step, steps).any(|test| !test.affected);
            control[step] += u32::from(unaffected);
        }
    }
    let history = |(series, changes): (Series, Vec<Change>)| {
        let (mut result, mut withheld) = (Vec::new(), Vec::new());
        for change in changes {
            let mut steps = between(&series, &change)
                .map(|step| withhold_reason(&series, step, steps, &control));
            let cause = steps.find_map(|cause| cause);
            let at = series.points[change.at].0;
            let change = Change { at, ..change };
            match cause {
                Some(reason) => withheld.push(WithheldChange { change, reason }),
                None => result.push(change),
            }
        }
        let Series { name, phase, metric, points } = series;
        let runs = points.iter().map(|(run, ..)| *run).collect();
        let medians = points.iter().map(|(.., median)| *median).collect();
        History { name, phase, metric, runs, medians, changes: result, withheld }
    };
    found.into_iter().map(history).collect()
}

/// Indexes of the comparisons between the last run at the old level and the first run at the new
/// level.
fn between(series: &Series, change: &Change) -> std::ops::Range<usize> {
    series.points[change.at - 1].0..series.points[change.at].0
}

/// Tests of a comparison that belong to a series.
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

/// Reason to withhold a change of a series at a comparison.
fn withhold_reason(
    series: &Series,
    step: usize,
    steps: &[Paired],
    control: &[u32],
) -> Option<String> {
    if let Some(refused) = steps.get(step)?.obstacles.first() {
        return Some(refused.to_string());
    }
    for test in tests(series, step, steps) {
        if let Err(differs @ Withheld::Differs { .. }) = &test.comparison {
            return Some(differs.to_string());
        }
        if !test.affected {
            return Some("negative control: the differences cannot have affected it".into());
        }
    }
    match control[step] {
        0 => None,
        1 => Some("a negative control changed, too".into()),
        n => Some(format!("{n} negative controls changed, too")),
    }
}

/// Points of every test, in the order of their first occurrence in the runs.
fn all(runs: &[&RunRecord], metrics: Metrics) -> Vec<Series> {
    let mut places = BTreeMap::new();
    let mut all: Vec<Series> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let numbers = Numbers::new(run);
        let cells = run.cells.iter().enumerate().filter(|(_, record)| !record.cell.aa_duplicate);
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
                // If two cells of a run have the same identity, only the first one is used.
                if all[place].points.last().is_none_or(|(last, ..)| *last < at) {
                    all[place].points.push((at, index, median));
                }
            }
        }
    }
    all
}

/// Median of a test in one run; `None` if it is not comparable or has no logarithm.
fn point(
    numbers: &Numbers<'_>,
    cell: (usize, &CellRecord),
    phase: &PhaseInfo,
    metric: Metric,
) -> Option<f64> {
    if guards::withheld(Which::First, numbers, cell, &phase.name, metric).is_some() {
        return None;
    }
    let repetitions = numbers.repetitions(cell.0, &phase.name, metric);
    let median = Summary::new(&values(repetitions)).ok()?.median;
    (median > 0.0).then_some(median)
}

/// Tests of a cell with the requested metric, or else the primary metric: a history of every metric
/// is not useful.
fn measured(record: &CellRecord, metrics: Metrics) -> impl Iterator<Item = (&PhaseInfo, Metric)> {
    let measured = record.phases.iter().filter(|phase| phase.role == Role::Measure);
    measured.map(move |phase| match metrics {
        Metrics::One(metric) => (phase, metric),
        Metrics::Primary | Metrics::All => (phase, phase.primary),
    })
}
