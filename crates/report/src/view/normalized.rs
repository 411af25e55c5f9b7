//! Rates under several I/O schedulers relative to a reference configuration, data of
//! `charts::normalized`.
//!
//! The input is the points of suite `dbench` that differ only in the scheduler. The result is a
//! chart and its table, or the reason why there is none. The reference is the first scheduler with
//! values and, under it, the first filesystem of the plan with values. It does not depend on the
//! results, and captions name it. Ratios are Hodges–Lehmann estimates with the interval of the
//! inverted test (`analysis::compare`), not ratios of medians.

use std::collections::BTreeSet;

use analysis::{Comparer, Repetition, blocks};
use model::{Metric, Value};

use super::{
    facts::Filesystem,
    points::{self, Entry, Suite, Test, WorkPoint},
    quality::RunQuality,
    series::{TestSeries, reason},
    sweeps,
    tables::{Body, Column, Row, Table, TableCell, metric_label, slices},
};
use crate::charts::data::Multiple;
use crate::units::{capital, grouped, one_line, ratio, slug};

/// Condition whose levels are compared.
const CONDITION: &str = "scheduler";

/// One chart.
#[derive(Clone, Debug)]
pub(crate) struct Normalized {
    /// Unique within the report.
    pub(crate) id: String,
    /// Test and point: `replay, dbench clients=5 cpu_speed=50%`.
    pub(crate) what: String,
    pub(crate) metric: Metric,
    /// Reference configuration: `ext4, scheduler=none`.
    pub(crate) reference: String,
    pub(crate) rows: Vec<Multiple>,
    /// Equivalence margin: ratios from `1/(1+δ)` to `1+δ` are not of practical importance.
    pub(crate) margin: f64,
    /// Equivalence margin as text: `δ = 5 %`.
    pub(crate) delta: String,
    /// Repetitions per configuration: `8`, or `8 to 12`.
    pub(crate) repetitions: String,
    /// Warning codes of all results.
    pub(crate) codes: BTreeSet<&'static str>,
    /// Filesystems without any ratio, with the reason.
    pub(crate) absent: Vec<(String, String)>,
    pub(crate) table: Table,
}

/// A chart, or test and workload with the reason why there is no chart.
pub(crate) type Found = Result<Normalized, (String, String)>;

/// Charts of a suite: one per test and workload under several schedulers.
pub(crate) fn normalized(
    suite: &Suite,
    filesystems: &[Filesystem],
    quality: &RunQuality,
) -> Vec<Found> {
    let groups = slices(suite, CONDITION).into_iter();
    let groups = groups.filter(|points| points[0].conditions.contains_key(CONDITION));
    let mut comparer = Comparer::new();
    let mut all = Vec::new();
    for points in groups {
        let points = points.as_slice();
        let mut names = sweeps::tests(points);
        if names.is_empty() {
            // If nothing was measured, no test is known, and one entry has the reasons.
            names.push("");
        }
        for name in names {
            let what = what(name, points);
            let made = chart(name, points, filesystems, quality, &mut comparer);
            all.push(made.ok_or_else(|| (what, reasons_of(points, filesystems))));
        }
    }
    all
}

/// Test and workload, without the scheduler.
fn what(name: &str, points: &[&WorkPoint]) -> String {
    let first = points[0];
    let label = match first.conditions.get(CONDITION) {
        Some(value) => points::without(&first.label, CONDITION, value),
        None => first.label.clone(),
    };
    if name.is_empty() { label } else { format!("{name}, {label}") }
}

/// Reasons why no filesystem has a value under any scheduler.
fn reasons_of(points: &[&WorkPoint], filesystems: &[Filesystem]) -> String {
    let filesystems = filesystems.iter().enumerate();
    let reasons = filesystems.map(|(index, own)| (reason(points, index), own.name.as_str()));
    let reasons = grouped(reasons);
    let reasons: Vec<String> =
        reasons.iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect();
    format!("no filesystem has a value under any scheduler ({})", reasons.join("; "))
}

/// Reference configuration: index of its point, and its entry.
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
    quality: &RunQuality,
    comparer: &mut Comparer,
) -> Option<Normalized> {
    let all = TestSeries::new(points, name)?;
    let (base_at, base) = reference(&all.tests, filesystems)?;
    let mut rows = Vec::new();
    for index in (0..filesystems.len()).filter(|index| all.has(*index)) {
        for (at, (point, test)) in points.iter().zip(&all.tests).enumerate() {
            let entry = test.and_then(|test| test.entry(index));
            let own = entry.map(|entry| entry.repetitions.as_slice()).unwrap_or_default();
            let is_base = index == base.filesystem && at == base_at;
            let found = match is_base {
                true => Ok((1.0, None)),
                false => relative(&base.repetitions, own, all.metric, quality, comparer),
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
    let repetitions = all.repetitions();
    let delta = quality.margin.label();
    let mut chart = Normalized {
        table: Table {
            id: format!("{id}--table"),
            title: format!("{}: × {reference}", capital(&what)),
            caption: vec![
                format!(
                    "{}, × that of {reference}, higher is better ↑",
                    capital(&metric_label(all.metric))
                ),
                format!("n = {repetitions} repetitions on each side"),
                METHOD.into(),
            ],
            corner: "filesystem",
            columns: points.iter().map(|point| Column::new(level(point), "")).collect(),
            rows: Vec::new(),
        },
        codes: all.codes(),
        margin: quality.margin.ratio().0,
        id,
        what,
        metric: all.metric,
        reference,
        rows,
        delta,
        repetitions,
        absent: all.absent(filesystems),
    };
    chart.table.rows = table_rows(&chart, filesystems);
    Some(chart)
}

/// Definition of the ratios, for captions.
pub(crate) const METHOD: &str = "\
    Hodges–Lehmann ratio [95 % confidence interval of the inverted test], not adjusted for \
    multiple comparisons";

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

type Compared = Result<(f64, Option<(f64, f64)>), &'static str>;

fn shown(found: &Compared, is_base: bool) -> String {
    match found {
        _ if is_base => "×1 (reference)".into(),
        Ok((value, ends)) => {
            let interval = ends.map(|(low, high)| analysis::Interval { low, high, level: 0.95 });
            let alone = if interval.is_none() {
                " (too few repetitions for a confidence interval)"
            } else {
                ""
            };
            ratio(*value, interval) + alone
        }
        Err(reason) => (*reason).to_owned(),
    }
}

/// Ratio of one configuration to the reference, or the reason why there is none.
fn relative(
    base: &[Repetition],
    own: &[Repetition],
    metric: Metric,
    quality: &RunQuality,
    comparer: &mut Comparer,
) -> Compared {
    if own.is_empty() {
        return Err("not measured");
    }
    let both = blocks::comparable(&[base, own], quality.suspected)
        .ok_or("not compared: too few common rounds in a run that may have drifted")?;
    let values = |repetitions: &[Repetition]| -> Vec<f64> {
        repetitions.iter().map(|repetition| repetition.value).collect()
    };
    let (base, own) = (values(&both[0]), values(&both[1]));
    let margin = quality.margin.ratio();
    let compared = comparer.compare(&base, &own, metric.spec().better, margin);
    let compared = compared.map_err(|_| "not compared: a value is not positive")?;
    let ends = compared.interval.map(|ends| (ends.low, ends.high));
    Ok((compared.ratio.0, ends))
}
