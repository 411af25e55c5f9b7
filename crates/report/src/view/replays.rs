//! What replays did, by kind of operation: how many, how often, and how long they took.
//!
//! The histograms that a trial keeps for each kind enter ([`TimesOf::Op`]); one table for each test
//! leaves, kinds in the order of [`ReplayOp::ALL`] and below each the filesystems, so that a kind
//! can be read over them. Kinds that nobody did are left out.

use analysis::Summary;
use model::{
    Clock, Metric,
    metric::Unit,
    phase::ReplayOp,
    record::{TimesOf, TrialRecord},
};

use super::{
    costs::percentile,
    facts::Filesystem,
    points::{Entry, Status, Suite, Test, WorkPoint},
    pool::Pool,
    tables::{Body, Column, Row, Table, TableCell, ValueCell},
};
use crate::units::Scale;

/// Columns of latencies beside the mean; `None` is the maximum.
const QUANTILES: [(&str, Option<f64>); 4] =
    [("p50", Some(0.5)), ("p99", Some(0.99)), ("p99.9", Some(0.999)), ("max", None)];

/// For each suite and test, in the order of the ranked tables: its operations by kind, if it was a
/// replay.
pub(crate) fn replays(
    suites: &[Suite],
    filesystems: &[Filesystem],
    pool: &Pool,
) -> Vec<Vec<Option<Table>>> {
    let of_suite = |suite: &Suite| {
        let tests =
            suite.points.iter().flat_map(|point| point.tests.iter().map(move |t| (point, t)));
        tests.map(|(point, test)| of_test(point, test, filesystems, pool)).collect()
    };
    suites.iter().map(of_suite).collect()
}

/// One kind of operation on one filesystem.
struct Line<'a> {
    op: ReplayOp,
    entry: &'a Entry,
    count: Option<Summary>,
    rate: Option<Summary>,
    /// Mean and [`QUANTILES`].
    times: Vec<Option<Summary>>,
}

fn of_test(
    point: &WorkPoint,
    test: &Test,
    filesystems: &[Filesystem],
    pool: &Pool,
) -> Option<Table> {
    // Half of its columns are rates and times.
    if pool.clock == Clock::Instructions {
        return None;
    }
    let mut entries: Vec<&Entry> = test.entries.iter().collect();
    entries.sort_by_key(|entry| entry.filesystem);
    let measured = |op: ReplayOp| {
        let done =
            |entry: &&&Entry| trials(pool, entry, test).any(|trial| did(trial, test, op) > 0);
        let lines = entries.iter().filter(done);
        lines.map(|entry| line(op, entry, test, pool)).collect::<Vec<_>>()
    };
    let lines: Vec<Line> = ReplayOp::ALL.into_iter().flat_map(measured).collect();
    let scale = scale(&lines)?;
    let several = filesystems.len() > 1;
    // The mean and what follows it, without what no line has enough operations for.
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
            "Operations of all clients by kind: counts and rates are evidence, no direction; \
             latency, lower is better ↓; max is the longest of a whole repeat and is not compared"
                .into(),
        ],
        corner: if several { "operation · filesystem" } else { "operation" },
        columns,
        rows,
    };
    if !withheld.is_empty() {
        let names: Vec<&str> = withheld.iter().map(title).collect();
        let names = names.join(" and ");
        table.caption.push(format!("{names} withheld: fewer than ten operations lie beyond"));
    }
    table.caption.extend(point.under());
    table.caption.extend(point.load.iter().cloned());
    table.state_n();
    Some(table)
}

/// The measured trials that timed anything by kind.
fn trials<'a>(
    pool: &Pool<'a>,
    entry: &Entry,
    test: &Test,
) -> impl Iterator<Item = &'a TrialRecord> {
    let timed = |trial: &&TrialRecord| ReplayOp::ALL.iter().any(|op| did(trial, test, *op) > 0);
    pool.measured(entry.cell).filter(timed).collect::<Vec<_>>().into_iter()
}

/// How many operations of a kind a trial did.
fn did(trial: &TrialRecord, test: &Test, op: ReplayOp) -> u64 {
    let own =
        |times: &&model::record::Times| times.phase == test.name && times.of == TimesOf::Op(op);
    trial.histograms.iter().find(own).map_or(0, |times| times.histogram.count())
}

fn line<'a>(op: ReplayOp, entry: &'a Entry, test: &Test, pool: &Pool) -> Line<'a> {
    let (mut counts, mut rates, mut means) = (Vec::new(), Some(Vec::new()), Vec::new());
    for trial in trials(pool, entry, test) {
        let own = did(trial, test, op);
        let all: u64 = ReplayOp::ALL.iter().map(|op| did(trial, test, *op)).sum();
        counts.push(own as f64);
        let ops_rate = trial.samples.iter().find(|sample| {
            sample.phase == test.name && sample.metric == Metric::OpsRate && sample.worker.is_none()
        });
        // The rate of all operations is known, and the kinds are parts of them.
        match (&mut rates, ops_rate) {
            (Some(rates), Some(rate)) => rates.push(rate.value * own as f64 / all as f64),
            _ => rates = None,
        }
        let own = trial.histograms.iter();
        let own = own.filter(|times| times.phase == test.name && times.of == TimesOf::Op(op));
        means.extend(own.filter_map(|times| times.histogram.mean()).map(|mean| mean.0 as f64));
    }
    let quantile = |(_, q): &(&str, Option<f64>)| {
        percentile(pool, entry.cell, &test.name, TimesOf::Op(op), *q)
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

/// One scale for all latencies, in which an ordinary mean has few digits; `None` without any.
fn scale(lines: &[Line]) -> Option<Scale> {
    let mut means: Vec<f64> =
        lines.iter().filter_map(|line| Some(line.times.first()?.as_ref()?.median)).collect();
    means.sort_by(f64::total_cmp);
    let middle = *means.get(means.len() / 2)?;
    Some(Scale::of(Unit::Nanoseconds, std::iter::once(middle)))
}

/// `shown` are those of its times that any line has.
fn row(line: &Line, scale: Scale, shown: &[usize], filesystems: Option<&[Filesystem]>) -> Row {
    let value = |summary: &Option<Summary>, scale: Scale, lacking: &str| match summary {
        Some(summary) => TableCell::Value(ValueCell::plain(summary, scale)),
        None => TableCell::Text(lacking.into()),
    };
    let plain = |unit: Unit| Scale::of(unit, std::iter::once(1.0));
    let mut cells = vec![
        value(&line.count, plain(Unit::Count), "not told"),
        value(&line.rate, plain(Unit::OpsPerSecond), "not told"),
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
