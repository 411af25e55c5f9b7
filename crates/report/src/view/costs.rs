//! Latency tables.

use analysis::Summary;
use model::{Clock, metric::Unit, record::HistogramKind};

use super::{
    facts::Filesystem,
    points::{Entry, Status, Suite, Test, WorkPoint},
    sample_index::SampleIndex,
    tables::{Body, Column, Row, Table, TableCell, ValueCell, scale_of},
};

/// Minimum number of operations of every repetition that exceed a shown percentile.
const BEYOND_MIN: f64 = 10.0;

/// Percentiles by name; `None` is the maximum.
const PERCENTILES: [(&str, Option<f64>); 4] =
    [("p50", Some(0.5)), ("p99", Some(0.99)), ("p99.9", Some(0.999)), ("max", None)];

/// Latency tables, one per point, with one row per test and filesystem and one column per
/// percentile.
pub(crate) fn latency(
    suites: &[Suite],
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
) -> Vec<Table> {
    let points = suites.iter().flat_map(|suite| &suite.points);
    points.filter_map(|point| of_point(point, filesystems, sample_index)).collect()
}

/// Row of the table: test, filesystem, and summaries of [`PERCENTILES`].
struct Line<'a> {
    test: &'a Test,
    entry: &'a Entry,
    summaries: Vec<Option<Summary>>,
}

fn of_point(
    point: &WorkPoint,
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
) -> Option<Table> {
    let mut lines: Vec<Line> = Vec::new();
    for test in &point.tests {
        for entry in test.in_plan_order() {
            let of = |(_, q): &(&str, Option<f64>)| {
                percentile(sample_index, entry.cell, &test.name, HistogramKind::All, *q)
            };
            lines.push(Line { test, entry, summaries: PERCENTILES.iter().map(of).collect() });
        }
    }
    let earned = |at: &usize| lines.iter().any(|line| line.summaries[*at].is_some());
    let (shown, withheld): (Vec<usize>, Vec<usize>) = (0..PERCENTILES.len()).partition(earned);
    if shown.is_empty() {
        return None;
    }
    let (title, quantity, most) = match sample_index.clock {
        Clock::Wall | Clock::Virtual => ("Latency", "Latency", "longest operation"),
        Clock::Instructions => ("Instructions per operation", "Guest instructions", "maximum"),
    };
    let unit = sample_index.clock.unit();
    let mut table = Table {
        id: format!("{}--latency", point.id),
        title: format!("{title}: {}", point.label),
        caption: vec![format!(
            "{quantity} of one operation, lower is better ↓; max is the {most} of a repetition, \
             not compared"
        )],
        corner: "test · filesystem",
        columns: shown.iter().map(|at| Column::new(PERCENTILES[*at].0, "")).collect(),
        rows: lines
            .iter()
            .map(|line| line_row(line, &lines, (&shown, unit), filesystems))
            .collect(),
    };
    if !withheld.is_empty() {
        let names: Vec<&str> = withheld.iter().map(|at| PERCENTILES[*at].0).collect();
        let names = names.join(" and ");
        table.caption.push(format!("{names} not shown: fewer than 10 operations exceed it"));
    }
    table.state_n();
    Some(table)
}

/// Row of a line. All rows of a test have the same unit, so that percentiles can be compared.
fn line_row(
    line: &Line,
    lines: &[Line],
    (shown, unit): (&[usize], Unit),
    filesystems: &[Filesystem],
) -> Row {
    let of_test = lines.iter().filter(|other| other.test.name == line.test.name);
    let all: Vec<&Summary> = of_test.flat_map(|line| line.summaries.iter().flatten()).collect();
    let scale = scale_of(unit, all.into_iter());
    let cell = |at: &usize| match &line.summaries[*at] {
        Some(summary) => TableCell::Value(ValueCell::plain(summary, scale)),
        None => TableCell::Text("too few operations".into()),
    };
    Row {
        title: format!("{} · {}", line.test.name, filesystems[line.entry.filesystem].name),
        unit: scale.name,
        filesystem: Some(line.entry.filesystem),
        note: line.entry.measured_codes.join(" "),
        body: match &line.entry.status {
            Status::Nothing(reason) => Body::Missing(reason.clone()),
            Status::Measured => Body::Cells(shown.iter().map(cell).collect()),
        },
    }
}

/// Summary of a percentile over the repetitions in nanoseconds. `q` is the quantile, 0 to 1; `None`
/// is the maximum. `None` is returned if there are no histograms, or if fewer than [`BEYOND_MIN`]
/// operations of any repetition exceed the percentile.
pub(crate) fn percentile(
    sample_index: &SampleIndex,
    cell: usize,
    phase: &str,
    of: HistogramKind,
    q: Option<f64>,
) -> Option<Summary> {
    let histograms = sample_index.measured(cell).flat_map(|trial| &trial.histograms);
    let of_phase: Vec<_> =
        histograms.filter(|times| times.phase == phase && times.kind == of).collect();
    let value = |histogram: &model::Histogram| {
        let beyond = |q: f64| histogram.count() as f64 * (1.0 - q) >= BEYOND_MIN - 1e-6;
        let nanos = match q {
            Some(q) if beyond(q) => histogram.quantile(q),
            Some(_) => None,
            None => histogram.max(),
        };
        nanos.map(|nanos| nanos.seconds() * 1e9)
    };
    let values: Option<Vec<f64>> = of_phase.iter().map(|times| value(&times.histogram)).collect();
    Summary::new(&values?).ok()
}
