//! Tables of timed tasks: tests × filesystems, seconds and CPU utilization.
//!
//! The layout is that of the published studies of everyday tasks: one row per task, because there
//! are many tasks, and separate tables of seconds and CPU %. Two further tables have the time
//! including sync and the CPU utilization including attributed kernel threads.
//! [`crate::view::composite`] adds the totals.

use model::{Metric, metric::Unit};

use super::{Body, Column, Row, Table, TableCell, ValueCell, caches, overview::value_cell};
use crate::{
    units::{Scale, capital, count},
    view::{
        facts::{Facts, Filesystem},
        points::{Status, Test, WorkPoint},
        tables::{directions, scale_of},
    },
};

/// True if the primary metric of all tests of a point is the elapsed time.
pub(crate) fn timed(point: &WorkPoint) -> bool {
    !point.tests.is_empty() && point.tests.iter().all(|test| test.metric == Metric::Elapsed)
}

/// Seconds, and CPU utilization of the tasks.
pub(super) fn first(point: &WorkPoint, filesystems: &[Filesystem], facts: &Facts) -> Vec<Table> {
    let mut seconds = grid(point, filesystems, Metric::Elapsed, "seconds", "Seconds");
    if let Some(table) = seconds.as_mut().filter(|table| table.has_top()) {
        let families = point.tests.iter().filter_map(|test| test.family.as_ref());
        let most = families.map(|family| family.ranking.pairs.len()).max().unwrap_or(0);
        table.caption.push(format!(
            "▲ top group of the row (Holm-adjusted over {}, {})",
            count(most, "comparison"),
            facts.margin.label()
        ));
    }
    let mut cpu = grid(point, filesystems, Metric::CpuUtilization, "cpu", "CPU %");
    if let Some(table) = &mut cpu {
        table.caption.push("the task and the programs it ran; 100 % is one CPU".into());
    }
    seconds.into_iter().chain(cpu).collect()
}

/// Seconds including sync, and CPU utilization including kernel threads.
pub(super) fn further(point: &WorkPoint, filesystems: &[Filesystem]) -> Vec<Table> {
    let title = "Seconds including sync";
    let mut durable = grid(point, filesystems, Metric::DurableElapsed, "durable", title);
    if let Some(table) = &mut durable {
        table.caption.push("the task and the sync after it".into());
    }
    let title = "CPU % including kernel threads";
    let mut attributed =
        grid(point, filesystems, Metric::AttributedCpuUtilization, "caused", title);
    if let Some(table) = &mut attributed {
        table.caption.push(
            "the task, the programs it ran, and attributed kernel threads (journal, writeback, \
             filesystem, block layer, loop devices, reclaim), over the time until the sync \
             returned, including worker setup; 100 % is one CPU"
                .into(),
        );
    }
    durable.into_iter().chain(attributed).collect()
}

/// Table of tests × filesystems. `None` if the metric was not measured, unless it is the elapsed
/// time.
fn grid(
    point: &WorkPoint,
    filesystems: &[Filesystem],
    metric: Metric,
    id: &str,
    title: &str,
) -> Option<Table> {
    let entries = || point.tests.iter().flat_map(|test| &test.entries);
    let measured = || entries().filter_map(|entry| entry.metric(metric));
    if measured().next().is_none() && metric != Metric::Elapsed {
        return None;
    }
    let unit = metric.spec().unit;
    let seconds = unit == Unit::Nanoseconds;
    let scale = if seconds { Scale::SECONDS } else { scale_of(unit, measured()) };
    let (mut columns, mut holes, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for (index, filesystem) in filesystems.iter().enumerate() {
        match &point.statuses[index] {
            None => {}
            Some(Status::Nothing(reason)) => {
                let body = Body::Missing(reason.clone());
                holes.push(Row::of(filesystem.name.clone(), Some(index), body));
            }
            Some(Status::Measured) => {
                shown.push(index);
                columns.push(Column {
                    filesystem: Some(index),
                    ..Column::new(filesystem.name.clone(), scale.name)
                });
            }
        }
    }
    let row = |test: &Test| {
        let cells = shown.iter().map(|index| cell(test, *index, metric, scale));
        Row::of(test.name.clone(), None, Body::Cells(cells.collect()))
    };
    let rows = match shown.is_empty() {
        true => holes,
        false => point.tests.iter().map(row).chain(holes).collect(),
    };
    let mut table = Table {
        id: format!("{}--{id}", point.id),
        title: format!("{title}: {}", point.label),
        caption: vec![capital(&directions(std::iter::once(metric)))],
        corner: "task",
        columns,
        rows,
    };
    table.caption.extend(Some(point.sizes()).filter(|sizes| !sizes.is_empty()));
    table.caption.extend(caches(&point.tests.iter().collect::<Vec<_>>()));
    table.caption.extend(lost(point, filesystems));
    table.state_n();
    Some(table)
}

fn cell(test: &Test, filesystem: usize, metric: Metric, scale: Scale) -> TableCell {
    let Some(entry) = test.entry(filesystem) else {
        return TableCell::Text("not in this cell".into());
    };
    let primary = metric == test.metric;
    match value_cell(entry, entry.metric(metric), scale, primary) {
        // The table of seconds has the warning codes.
        TableCell::Value(value) if metric == Metric::CpuUtilization => {
            TableCell::Value(ValueCell { codes: Vec::new(), ..value })
        }
        cell @ (TableCell::Value(_) | TableCell::Text(_)) => cell,
    }
}

/// Caption that lists filesystems with failed repetitions, because column headers have no space for
/// it.
fn lost(point: &WorkPoint, filesystems: &[Filesystem]) -> Option<String> {
    let entries = point.tests.first()?.entries.iter();
    let mut lost: Vec<(usize, String)> = entries
        .filter(|entry| entry.failed.is_some() && entry.summary.is_some())
        .map(|entry| {
            let name = &filesystems[entry.filesystem].name;
            (entry.filesystem, format!("{name}: {}, not ranked", entry.failed_repetitions()))
        })
        .collect();
    lost.sort();
    let texts: Vec<String> = lost.into_iter().map(|(_, text)| text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}
