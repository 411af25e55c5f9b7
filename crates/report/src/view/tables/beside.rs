//! What stands beside the rates of a suite whose classic reports print more than rates: filesystems
//! × tests, one table for each further quantity.
//!
//! The classic of `bonnie` prints CPU % and the longest operation beside every rate; the classic of
//! `smallfile` prints the seconds that a set of files took. Other suites have none of these tables:
//! their costs stand in the details.

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

/// One further quantity.
struct Quantity {
    /// For its anchor.
    id: &'static str,
    title: &'static str,
    metric: Metric,
    /// What a reader must know beyond name and direction.
    note: &'static str,
}

const BONNIE: [Quantity; 4] = [
    Quantity {
        id: "cpu",
        title: "CPU %",
        metric: Metric::CpuShare,
        note: "CPU time of the workers over elapsed time; 100 % is one processor",
    },
    Quantity {
        id: "p50",
        title: "Latency, p50",
        metric: Metric::LatencyP50,
        note: "half of the operations took at most this long",
    },
    Quantity {
        id: "p99",
        title: "Latency, p99",
        metric: Metric::LatencyP99,
        note: "99 % of the operations took at most this long; only where ten lie beyond",
    },
    Quantity {
        id: "max",
        title: "Latency, worst",
        metric: Metric::LatencyMax,
        note: "the longest operation of a whole repeat, which is not compared",
    },
];

const SMALLFILE: [Quantity; 1] = [Quantity {
    id: "seconds",
    title: "Seconds for the set",
    metric: Metric::Elapsed,
    note: "the operation on all files of all workers",
}];

/// The further tables of a point; those of which nobody measured anything are left out.
pub(super) fn beside(suite: &str, point: &WorkPoint, filesystems: &[Filesystem]) -> Vec<Table> {
    let quantities = match suite {
        "bonnie" => &BONNIE[..],
        "smallfile" => &SMALLFILE[..],
        _ => &[],
    };
    quantities.iter().filter_map(|quantity| of(quantity, point, filesystems)).collect()
}

fn of(quantity: &Quantity, point: &WorkPoint, filesystems: &[Filesystem]) -> Option<Table> {
    let metric = quantity.metric;
    let summary = |entry: &Entry| {
        let found = entry.metrics.iter().find(|(known, _)| *known == metric);
        found.map(|(_, summary)| summary.clone())
    };
    // Tests without the quantity, such as the CPU time of a record that withheld it, have no
    // column.
    let has = |test: &&Test| test.entries.iter().any(|entry| summary(entry).is_some());
    let tests: Vec<&Test> = point.tests.iter().filter(has).collect();
    if tests.is_empty() {
        return None;
    }
    let scale = |test: &Test| {
        if metric == Metric::Elapsed {
            return Scale::SECONDS;
        }
        let summaries: Vec<_> = test.entries.iter().filter_map(summary).collect();
        scale_of(metric.spec().unit, summaries.iter())
    };
    let value = |test: &Test, entry: &Entry| match summary(entry) {
        Some(summary) => value_cell(entry, Some(&summary), scale(test), false),
        None if entry.summary.is_some() => TableCell::Text("-".into()),
        None => value_cell(entry, None, scale(test), false),
    };
    let mut table = grid(point, &tests, filesystems, |_| metric, scale, value);
    table.id = format!("{}--{}", point.id, quantity.id);
    table.title = format!("{}: {}", quantity.title, point.label);
    let words = format!("{}; {}", directions(std::iter::once(metric)), quantity.note);
    if let Some(first) = table.caption.first_mut() {
        *first = capital(&words);
    }
    Some(table)
}
