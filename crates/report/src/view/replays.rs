//! Operations of replays by type: count, rate, and latency.
//!
//! The input is the histograms per type ([`HistogramKind::Op`]). Each test has one table of types
//! in the order of [`ReplayOp::ALL`], with the filesystems below each type. Types without any
//! operation are omitted.

use analysis::Summary;
use model::{
    Clock, Metric,
    metric::Unit,
    phase::ReplayOp,
    record::{HistogramKind, TrialRecord},
};

use super::{
    activity::NOT_AVAILABLE,
    costs::percentile,
    facts::Filesystem,
    points::{Entry, Status, Test, WorkPoint},
    sample_index::SampleIndex,
    tables::{Body, Column, Row, Table, TableCell, ValueCell},
};
use crate::{samples::value, units::Scale};

/// Latency columns after the mean; `None` is the maximum.
const QUANTILES: [(&str, Option<f64>); 4] =
    [("p50", Some(0.5)), ("p99", Some(0.99)), ("p99.9", Some(0.999)), ("max", None)];

/// One type of operation on one filesystem.
struct Line<'a> {
    op: ReplayOp,
    entry: &'a Entry,
    count: Option<Summary>,
    rate: Option<Summary>,
    /// Mean and [`QUANTILES`].
    times: Vec<Option<Summary>>,
}

/// Operations by type; `None` for tests that are not replays, and in icount guests.
pub(crate) fn replays(
    point: &WorkPoint,
    test: &Test,
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
) -> Option<Table> {
    // The table consists of rates and times, which an icount guest does not have.
    if sample_index.clock == Clock::Instructions {
        return None;
    }
    let entries = test.in_plan_order();
    let measured = |op: ReplayOp| {
        let done = |entry: &&&Entry| {
            trials(sample_index, entry, test).any(|trial| did(trial, test, op) > 0)
        };
        let lines = entries.iter().filter(done);
        lines.map(|entry| line(op, entry, test, sample_index)).collect::<Vec<_>>()
    };
    let lines: Vec<Line> = ReplayOp::ALL.into_iter().flat_map(measured).collect();
    let scale = scale(&lines)?;
    let several = filesystems.len() > 1;
    // Columns for which no line has enough operations are omitted.
    let earned = |at: &usize| lines.iter().any(|line| line.times[*at].is_some());
    let (shown, withheld): (Vec<usize>, Vec<usize>) = (0..=QUANTILES.len()).partition(earned);
    let title = |at: &usize| at.checked_sub(1).map_or("mean", |at| QUANTILES[at].0);
    let mut rows: Vec<Row> =
        lines.iter().map(|line| row(line, scale, &shown, several.then_some(filesystems))).collect();
    rows.extend(entries.iter().filter_map(|entry| match &entry.status {
        Status::Nothing(reason) => Some(Row::of(
            filesystems[entry.filesystem].name.clone(),
            Some(entry.filesystem),
            Body::Missing(reason.clone()),
        )),
        Status::Measured => None,
    }));
    let mut columns = vec![
        Column::new("count", ""),
        Column::new("rate", Scale::of(Unit::OpsPerSecond, std::iter::once(1.0)).name),
    ];
    columns.extend(shown.iter().map(|at| Column::new(title(at), scale.name)));
    let mut table = Table {
        id: format!("{}--operations", test.id),
        title: format!("Operations: {}, {}", test.name, point.label),
        caption: vec![
            "Operations of all clients by type: count and rate, informational; latency, lower is \
             better ↓; max is the longest operation of a repetition, not compared"
                .into(),
        ],
        corner: if several { "operation · filesystem" } else { "operation" },
        columns,
        rows,
    };
    if !withheld.is_empty() {
        let names: Vec<&str> = withheld.iter().map(title).collect();
        let names = names.join(" and ");
        table.caption.push(format!("{names} not shown: fewer than 10 operations exceed it"));
    }
    table.caption.extend(point.under());
    table.caption.extend(point.load.iter().cloned());
    table.state_n();
    Some(table)
}

/// Measured trials with operations timed by type.
fn trials<'a>(
    sample_index: &SampleIndex<'a>,
    entry: &Entry,
    test: &Test,
) -> impl Iterator<Item = &'a TrialRecord> {
    let timed = |trial: &&TrialRecord| ReplayOp::ALL.iter().any(|op| did(trial, test, *op) > 0);
    sample_index.measured(entry.cell).filter(timed).collect::<Vec<_>>().into_iter()
}

/// Number of operations of a type in a trial.
fn did(trial: &TrialRecord, test: &Test, op: ReplayOp) -> u64 {
    let own = |times: &&model::record::PhaseHistogram| {
        times.phase == test.name && times.kind == HistogramKind::Op(op)
    };
    trial.histograms.iter().find(own).map_or(0, |times| times.histogram.count())
}

fn line<'a>(op: ReplayOp, entry: &'a Entry, test: &Test, sample_index: &SampleIndex) -> Line<'a> {
    let (mut counts, mut rates, mut means) = (Vec::new(), Some(Vec::new()), Vec::new());
    for trial in trials(sample_index, entry, test) {
        let own = did(trial, test, op);
        let all: u64 = ReplayOp::ALL.iter().map(|op| did(trial, test, *op)).sum();
        counts.push(own as f64);
        let ops_rate = value(trial, &test.name, Metric::OpsRate);
        // The rate of a type is the rate of all operations multiplied by the share of the type.
        match (&mut rates, ops_rate) {
            (Some(rates), Some(rate)) => rates.push(rate * own as f64 / all as f64),
            _ => rates = None,
        }
        let own = trial.histograms.iter();
        let own =
            own.filter(|times| times.phase == test.name && times.kind == HistogramKind::Op(op));
        means.extend(own.filter_map(|times| times.histogram.mean()).map(|mean| mean.0 as f64));
    }
    let quantile = |(_, q): &(&str, Option<f64>)| {
        percentile(sample_index, entry.cell, &test.name, HistogramKind::Op(op), *q)
    };
    let times = std::iter::once(Summary::new(&means).ok()).chain(QUANTILES.iter().map(quantile));
    Line {
        op,
        entry,
        count: Summary::new(&counts).ok(),
        rate: rates.and_then(|rates| Summary::new(&rates).ok()),
        times: times.collect(),
    }
}

/// Common scale of all latencies, chosen for the median of the means; `None` without any mean.
fn scale(lines: &[Line]) -> Option<Scale> {
    let mut means: Vec<f64> =
        lines.iter().filter_map(|line| Some(line.times.first()?.as_ref()?.median)).collect();
    means.sort_by(f64::total_cmp);
    let middle = *means.get(means.len() / 2)?;
    Some(Scale::of(Unit::Nanoseconds, std::iter::once(middle)))
}

/// Row of a line. `shown` are the indices of the latency columns. `filesystems` is `None` if the
/// run has a single filesystem, which is then not named.
fn row(line: &Line, scale: Scale, shown: &[usize], filesystems: Option<&[Filesystem]>) -> Row {
    let value = |summary: &Option<Summary>, scale: Scale, absent: &str| match summary {
        Some(summary) => TableCell::Value(ValueCell::plain(summary, scale)),
        None => TableCell::Text(absent.into()),
    };
    let plain = |unit: Unit| Scale::of(unit, std::iter::once(1.0));
    let mut cells = vec![
        value(&line.count, plain(Unit::Count), NOT_AVAILABLE),
        value(&line.rate, plain(Unit::OpsPerSecond), NOT_AVAILABLE),
    ];
    cells.extend(shown.iter().map(|at| value(&line.times[*at], scale, "too few operations")));
    let name = line.op.name();
    let at = line.entry.filesystem;
    let mut row = match filesystems {
        Some(filesystems) => {
            Row::of(format!("{name} · {}", filesystems[at].name), Some(at), Body::Cells(cells))
        }
        None => Row::of(name, None, Body::Cells(cells)),
    };
    row.note = line.entry.measured_codes.join(" ");
    row
}
