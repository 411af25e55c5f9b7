//! Further metrics shown next to the rates: filesystems × tests, one table per metric.
//!
//! bonnie++ reports CPU % and the longest operation with every rate; the small-file studies report
//! the seconds per file set. Other suites show their costs in the details of each test.

use model::Metric;

use super::{
    Table, TableCell, directions,
    overview::{grid, value_cell},
    scale_of,
};
use crate::{
    units::{Scale, capital},
    view::{
        facts::Filesystem,
        points::{Entry, Test, WorkPoint},
    },
};

/// A further metric.
struct Quantity {
    /// Part of the anchor.
    id: &'static str,
    title: &'static str,
    metric: Metric,
    /// Definition, for the caption.
    note: &'static str,
}

const BONNIE: [Quantity; 4] = [
    Quantity {
        id: "cpu",
        title: "CPU %",
        metric: Metric::CpuUtilization,
        note: "CPU time of the workers over elapsed time; 100 % is one CPU",
    },
    Quantity {
        id: "p50",
        title: "Latency, p50",
        metric: Metric::LatencyP50,
        note: "50th percentile of the operation latency",
    },
    Quantity {
        id: "p99",
        title: "Latency, p99",
        metric: Metric::LatencyP99,
        note: "99th percentile of the operation latency; shown if at least 10 operations exceed it",
    },
    Quantity {
        id: "max",
        title: "Latency, maximum",
        metric: Metric::LatencyMax,
        note: "longest operation of a repetition, not compared",
    },
];

const SMALLFILE: [Quantity; 1] = [Quantity {
    id: "seconds",
    title: "Seconds per file set",
    metric: Metric::Elapsed,
    note: "one operation on all files of all workers",
}];

/// Further tables of a point. Tables without any value are omitted.
pub(super) fn side_by_side(
    suite: &str,
    point: &WorkPoint,
    filesystems: &[Filesystem],
) -> Vec<Table> {
    let quantities = match suite {
        "bonnie" => &BONNIE[..],
        "small-files" => &SMALLFILE[..],
        _ => &[],
    };
    quantities.iter().filter_map(|quantity| of(quantity, point, filesystems)).collect()
}

fn of(quantity: &Quantity, point: &WorkPoint, filesystems: &[Filesystem]) -> Option<Table> {
    let metric = quantity.metric;
    // Tests without the metric have no column.
    let has = |test: &&Test| test.entries.iter().any(|entry| entry.metric(metric).is_some());
    let tests: Vec<&Test> = point.tests.iter().filter(has).collect();
    if tests.is_empty() {
        return None;
    }
    let scale = |test: &Test| {
        if metric == Metric::Elapsed {
            return Scale::SECONDS;
        }
        let summaries: Vec<_> =
            test.entries.iter().filter_map(|entry| entry.metric(metric)).collect();
        scale_of(metric.spec().unit, summaries.into_iter())
    };
    let value = |test: &Test, entry: &Entry| match entry.metric(metric) {
        Some(summary) => value_cell(entry, Some(summary), scale(test), false),
        None if entry.summary.is_some() => TableCell::Text("-".into()),
        None => value_cell(entry, None, scale(test), false),
    };
    let mut table = grid(point, &tests, filesystems, |_| metric, scale, value);
    table.id = format!("{}--{}", point.id, quantity.id);
    table.title = format!("{}: {}", quantity.title, point.label);
    let caption = format!("{}; {}", directions(std::iter::once(metric)), quantity.note);
    if let Some(first) = table.caption.first_mut() {
        *first = capital(&caption);
    }
    Some(table)
}
