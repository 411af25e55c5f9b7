//! Rates under several I/O schedulers as multiples of one named configuration: what
//! `charts::normalized` draws.
//!
//! Points of suite `dbench` that differ in nothing but the scheduler enter; a chart and its table
//! leave, or why there are none. The configuration that all are held against is the first
//! filesystem of the plan that has values, under the first scheduler under which any has: it is
//! named wherever a ratio stands, and it does not depend on who won. A ratio is Hodges and
//! Lehmann's with the interval of the inverted test, from the repeats of both
//! (`analysis::compare`); no median is divided by another.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{Comparer, Repeat, blocks};
use model::{Metric, Value};

use super::{
    control::Control,
    facts::Filesystem,
    points::{self, Entry, Suite, Test, WorkPoint, slug},
    sweeps,
    tables::{Body, Column, Row, Table, TableCell, words},
};
use crate::units::{capital, one_line, ratio};

/// The condition whose levels are held against one of them.
const CONDITION: &str = "scheduler";

/// One chart.
#[derive(Clone, Debug)]
pub(crate) struct Normalized {
    /// Unique within the report.
    pub(crate) id: String,
    /// Test and point: `replay, dbench clients=5 cpu_speed=50%`.
    pub(crate) what: String,
    pub(crate) metric: Metric,
    /// `ext4, scheduler=none`.
    pub(crate) reference: String,
    pub(crate) rows: Vec<Multiple>,
    /// Ratios within `1/(1+δ)` and `1+δ` are of no practical meaning.
    pub(crate) threshold: f64,
    /// δ in words.
    pub(crate) delta: String,
    /// How many repeats stand behind each side of a ratio: `8`, or `8 to 12`.
    pub(crate) repeats: String,
    /// The warning codes of all its numbers, each once, in alphabetical order.
    pub(crate) codes: BTreeSet<&'static str>,
    /// Filesystems without any ratio, and why.
    pub(crate) absent: Vec<(String, String)>,
    pub(crate) table: Table,
}

/// One configuration against the reference.
#[derive(Clone, Debug)]
pub(crate) struct Multiple {
    pub(crate) filesystem: usize,
    pub(crate) name: String,
    /// The scheduler.
    pub(crate) level: String,
    /// Ratio, above 1 better, and the ends of its interval; `None` where the two cannot be
    /// compared.
    pub(crate) ratio: Option<(f64, Option<(f64, f64)>)>,
    /// The ratio as text, or why there is none.
    pub(crate) shown: String,
}

/// A chart, or the test and the work that should have one with the reason why not.
pub(crate) type Found = Result<Normalized, (String, String)>;

/// The charts of a suite: one for each test of each work under several schedulers. Empty where
/// there is no such work.
pub(crate) fn normalized(
    suite: &Suite,
    filesystems: &[Filesystem],
    control: &Control,
) -> Vec<Found> {
    let apart = |point: &WorkPoint| -> BTreeMap<String, Value> {
        let own = point.parameters.iter().filter(|(name, _)| *name != CONDITION);
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let mut alike: Vec<(BTreeMap<String, Value>, Vec<&WorkPoint>)> = Vec::new();
    for point in suite.points.iter().filter(|point| point.conditions.contains_key(CONDITION)) {
        let own = apart(point);
        match alike.iter_mut().find(|(known, _)| *known == own) {
            Some((_, points)) => points.push(point),
            None => alike.push((own, vec![point])),
        }
    }
    let mut comparer = Comparer::new();
    let mut all = Vec::new();
    for (_, points) in alike.iter().filter(|(_, points)| points.len() > 1) {
        let mut names = sweeps::tests(points);
        if names.is_empty() {
            // Nothing was measured, so no test is known.
            names.push("");
        }
        for name in names {
            let what = what(name, points);
            let made = chart(name, points, filesystems, control, &mut comparer);
            all.push(made.ok_or_else(|| (what, lacking(points, filesystems))));
        }
    }
    all
}

/// Test and work, without the scheduler.
fn what(name: &str, points: &[&WorkPoint]) -> String {
    let first = points[0];
    let label = match first.conditions.get(CONDITION) {
        Some(value) => points::without(&first.label, CONDITION, value),
        None => first.label.clone(),
    };
    if name.is_empty() { label } else { format!("{name}, {label}") }
}

/// Why no filesystem has a value under any scheduler.
fn lacking(points: &[&WorkPoint], filesystems: &[Filesystem]) -> String {
    // Filesystems without values for the same reason stand together.
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (index, own) in filesystems.iter().enumerate() {
        let reason = sweeps::reason(points, index);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(&own.name),
            None => reasons.push((reason, vec![&own.name])),
        }
    }
    let reasons: Vec<String> =
        reasons.iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect();
    format!("no filesystem has a value under any scheduler ({})", reasons.join("; "))
}

/// The configuration that the others are held against: which point it is at, and its values there.
fn reference<'a>(
    tests: &[Option<&'a Test>],
    filesystems: &[Filesystem],
) -> Option<(usize, &'a Entry)> {
    tests.iter().enumerate().find_map(|(at, test)| {
        let test = (*test)?;
        let mut entries = (0..filesystems.len()).filter_map(|index| test.entry(index));
        Some((at, entries.find(|entry| entry.summary.is_some())?))
    })
}

fn level(point: &WorkPoint) -> String {
    let value = point.conditions.get(CONDITION).map(Value::to_string);
    one_line(&value.unwrap_or_default())
}

fn chart(
    name: &str,
    points: &[&WorkPoint],
    filesystems: &[Filesystem],
    control: &Control,
    comparer: &mut Comparer,
) -> Option<Normalized> {
    let tests: Vec<Option<&Test>> =
        points.iter().map(|point| point.tests.iter().find(|test| test.name == name)).collect();
    let entries = || tests.iter().flatten().flat_map(|test| &test.entries);
    let has =
        |index: usize| entries().any(|entry| entry.filesystem == index && entry.summary.is_some());
    let metric = tests.iter().flatten().next()?.metric;
    let (base_at, base) = reference(&tests, filesystems)?;
    let mut rows = Vec::new();
    for index in (0..filesystems.len()).filter(|index| has(*index)) {
        for (at, (point, test)) in points.iter().zip(&tests).enumerate() {
            let entry = test.and_then(|test| test.entry(index));
            let own = entry.map(|entry| entry.repeats.as_slice()).unwrap_or_default();
            let is_base = index == base.filesystem && at == base_at;
            let found = match is_base {
                true => Ok((1.0, None)),
                false => held_against(&base.repeats, own, metric, control, comparer),
            };
            rows.push(Multiple {
                filesystem: index,
                name: filesystems[index].name.clone(),
                level: level(point),
                shown: shown(&found, is_base),
                ratio: found.ok(),
            });
        }
    }
    let what = what(name, points);
    let id = format!("normalized-{}-{}", points[0].id, slug(name));
    let reference =
        format!("{}, {CONDITION}={}", filesystems[base.filesystem].name, level(points[base_at]));
    let missing = (0..filesystems.len()).filter(|index| !has(*index));
    let absent: Vec<(String, String)> = missing
        .map(|index| (filesystems[index].name.clone(), sweeps::reason(points, index)))
        .collect();
    let repeats = sweeps::repeats(entries().filter_map(|entry| entry.summary.as_ref()));
    let delta = control.threshold.words();
    let mut chart = Normalized {
        table: Table {
            id: format!("{id}--table"),
            title: format!("{}: × {reference}", capital(&what)),
            caption: vec![
                format!("{}, × that of {reference}, higher is better ↑", capital(&words(metric))),
                format!("n = {repeats} repeats on each side"),
                METHOD.into(),
            ],
            corner: "filesystem",
            columns: points.iter().map(|point| Column::new(level(point), "")).collect(),
            rows: Vec::new(),
        },
        codes: tests.iter().flatten().flat_map(|test| test.codes()).collect(),
        threshold: control.threshold.ratio().0,
        id,
        what,
        metric,
        reference,
        rows,
        delta,
        repeats,
        absent,
    };
    chart.table.rows = table_rows(&chart, filesystems);
    Some(chart)
}

/// What a ratio is, for captions.
pub(crate) const METHOD: &str = "Hodges–Lehmann ratio [95 % interval of the inverted test], not \
                                 corrected for the number of comparisons";

fn table_rows(chart: &Normalized, filesystems: &[Filesystem]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, filesystem) in filesystems.iter().enumerate() {
        let own = chart.rows.iter().filter(|row| row.filesystem == index);
        let cells: Vec<TableCell> = own.map(|row| TableCell::Text(row.shown.clone())).collect();
        let reason = chart.absent.iter().find(|(name, _)| *name == filesystem.name);
        let body = match reason {
            Some((_, reason)) => Body::Missing(reason.clone()),
            None if cells.is_empty() => continue,
            None => Body::Cells(cells),
        };
        rows.push(Row::of(filesystem.name.clone(), Some(index), body));
    }
    rows
}

type Held = Result<(f64, Option<(f64, f64)>), &'static str>;

fn shown(found: &Held, is_base: bool) -> String {
    match found {
        _ if is_base => "×1 (reference)".into(),
        Ok((value, ends)) => {
            let interval = ends.map(|(low, high)| analysis::Interval { low, high, level: 0.95 });
            let alone = if interval.is_none() { " (too few repeats for an interval)" } else { "" };
            ratio(*value, interval) + alone
        }
        Err(reason) => (*reason).to_owned(),
    }
}

/// One configuration against the reference.
fn held_against(
    base: &[Repeat],
    own: &[Repeat],
    metric: Metric,
    control: &Control,
    comparer: &mut Comparer,
) -> Held {
    if own.is_empty() {
        return Err("not measured");
    }
    let both = blocks::comparable(&[base, own], control.suspected)
        .ok_or("not compared: too few common blocks of a run that may have drifted")?;
    let values =
        |repeats: &[Repeat]| -> Vec<f64> { repeats.iter().map(|repeat| repeat.value).collect() };
    let (base, own) = (values(&both[0]), values(&both[1]));
    let threshold = control.threshold.ratio();
    let compared = comparer.compare(&base, &own, metric.spec().better, threshold);
    let compared = compared.map_err(|_| "not compared: a value is not above zero")?;
    let ends = compared.interval.map(|ends| (ends.low, ends.high));
    Ok((compared.ratio.0, ends))
}
