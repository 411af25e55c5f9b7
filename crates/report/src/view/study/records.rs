//! Tables in the layout of bonnie++: one row per configuration; rate, CPU %, and longest operation
//! of each phase.
//!
//! There are two tables because of the page width: phases of one large file, and of many files.

use model::Metric;

use crate::{
    bonnie::PHASES,
    units::{Scale, capital},
    view::{
        facts::Filesystem,
        points::{Entry, Status, Test, WorkPoint},
        tables::{
            Body, Column, Row, Table, TableCell, ValueCell, caches, directions, scale_of,
            value_cell,
        },
    },
};

/// Number of phases at the start of [`PHASES`] that use one large file. The others use many files.
const ON_ONE_FILE: usize = 6;

/// Further metrics of a phase and their column titles.
const FURTHER: [(Metric, &str); 2] = [(Metric::CpuUtilization, "CPU"), (Metric::LatencyMax, "max")];

/// Tables of a point, each with at least one phase. If nothing was measured, one table has the
/// reasons.
pub(super) fn records(point: &WorkPoint, filesystems: &[Filesystem]) -> Vec<Table> {
    let place = |test: &&Test| PHASES.iter().position(|name| *name == test.name);
    let (one, many): (Vec<&Test>, Vec<&Test>) =
        point.tests.iter().partition(|test| place(test).is_none_or(|place| place < ON_ONE_FILE));
    let halves = [("data", "One large file", one), ("files", "Many files", many)];
    let halves = halves
        .into_iter()
        .filter(|(id, _, tests)| !tests.is_empty() || point.tests.is_empty() && *id == "data");
    halves.map(|(id, title, tests)| table(id, title, &tests, point, filesystems)).collect()
}

fn table(
    id: &str,
    title: &str,
    tests: &[&Test],
    point: &WorkPoint,
    filesystems: &[Filesystem],
) -> Table {
    let scales: Vec<[Scale; 2]> = tests
        .iter()
        .map(|test| {
            FURTHER.map(|(metric, _)| {
                let summaries = test.entries.iter().filter_map(|entry| entry.metric(metric));
                scale_of(metric.spec().unit, summaries)
            })
        })
        .collect();
    let mut columns = Vec::new();
    for (test, scales) in tests.iter().zip(&scales) {
        columns.push(Column::new(test.name.clone(), test.scale.name));
        for ((_, name), scale) in FURTHER.iter().zip(scales) {
            columns.push(Column::new(format!("{} {name}", test.name), scale.name));
        }
    }
    let row = |index: usize| {
        let cells = tests.iter().zip(&scales).flat_map(|(test, scales)| cells(test, index, scales));
        Body::Cells(cells.collect())
    };
    let mut rows = Vec::new();
    for (index, filesystem) in filesystems.iter().enumerate() {
        let body = match &point.statuses[index] {
            None => continue,
            Some(Status::Nothing(reason)) => Body::Missing(reason.clone()),
            Some(Status::Measured) => row(index),
        };
        let first = tests.first().and_then(|test| test.entry(index));
        let mut row = Row::of(filesystem.name.clone(), Some(index), body);
        row.note = first.map(Entry::failed_repetitions).unwrap_or_default();
        rows.push(row);
    }
    let metrics = tests.iter().map(|test| test.metric);
    let metrics = metrics.chain(FURTHER.iter().map(|(metric, _)| *metric));
    let mut caption = vec![capital(&directions(metrics))];
    caption.push(
        "CPU: CPU time of the workers over elapsed time, 100 % is one CPU; max: longest operation \
         of a repetition, not compared"
            .into(),
    );
    caption.extend(Some(point.sizes()).filter(|sizes| !sizes.is_empty()));
    caption.extend(caches(tests));
    let mut table = Table {
        id: format!("record-{}--{id}", point.id),
        title: format!("{title}, by phase: {}", point.label),
        caption,
        corner: "configuration",
        columns,
        rows,
    };
    table.state_n();
    if table.has_top() {
        table.caption.push("▲ top group of the phase (see its ranking)".into());
    }
    table
}

/// Cells of one phase: rate, CPU %, and longest operation. A missing phase has a single text.
fn cells(test: &Test, filesystem: usize, scales: &[Scale; 2]) -> Vec<TableCell> {
    let Some(entry) = test.entry(filesystem) else {
        return [TableCell::Text("not in this cell".into())]
            .into_iter()
            .chain(FURTHER.map(|_| TableCell::Text(String::new())))
            .collect();
    };
    let rate = value_cell(entry, entry.summary.as_ref(), test.scale, true);
    let further = FURTHER.iter().zip(scales).map(|((metric, _), scale)| {
        // Warning codes are shown at the rate only.
        match entry.metric(*metric) {
            Some(summary) => TableCell::Value(ValueCell::plain(summary, *scale)),
            None => TableCell::Text("-".into()),
        }
    });
    std::iter::once(rate).chain(further).collect()
}
