//! Editions of the study of 21 everyday tasks: seconds, CPU %, and totals.

use model::metric::Unit;

use super::Published;
use crate::{
    document::{Body, Column, Row, Table, TableCell, ValueCell},
    units::{Shown, fixed, percent},
};

/// Number of runs of each task; the mean was printed.
pub(crate) const RUNS: u32 = 3;

/// Printed number.
pub(crate) struct Printed<'a> {
    /// Number of the task. It identifies the task, because the spelling of names varies.
    pub(crate) id: &'a str,
    pub(crate) task: &'a str,
    pub(crate) filesystem: &'a str,
    pub(crate) metric: &'a str,
    /// Value with the printed digits.
    pub(crate) text: &'a str,
    pub(crate) value: f64,
}

/// Printed time.
pub(crate) struct Second {
    /// Number of the task.
    pub(crate) id: String,
    pub(crate) task: String,
    pub(crate) filesystem: String,
    pub(crate) seconds: f64,
}

/// All printed times of a set.
pub(crate) fn seconds(set: &Published) -> Vec<Second> {
    let own = read(set.data).into_iter().filter(|printed| printed.metric == "seconds");
    own.map(|printed| Second {
        id: printed.id.into(),
        task: printed.task.into(),
        filesystem: printed.filesystem.into(),
        seconds: printed.value,
    })
    .collect()
}

/// Task numbers with the first name of each, in the order of the file.
pub(crate) fn ids(all: &[Second]) -> Vec<(String, String)> {
    let mut ids: Vec<(String, String)> = Vec::new();
    for one in all {
        if !ids.iter().any(|(id, _)| *id == one.id) {
            ids.push((one.id.clone(), one.task.clone()));
        }
    }
    ids
}

/// Filesystems in the order of the file.
pub(crate) fn filesystems(all: &[Second]) -> Vec<String> {
    let names = each_once(all.iter().map(|one| one.filesystem.as_str()));
    names.into_iter().map(str::to_owned).collect()
}

/// Printed numbers of a metric: task number, filesystem, value.
pub(crate) fn printed_of(set: &Published, metric: &str) -> Vec<(String, String, f64)> {
    let own = read(set.data).into_iter().filter(|printed| printed.metric == metric);
    own.map(|printed| (printed.id.into(), printed.filesystem.into(), printed.value)).collect()
}

/// Tables of seconds, CPU %, and totals.
pub(crate) fn tables(set: &Published) -> Vec<Table> {
    let data = read(set.data);
    let seconds = Layout {
        id: "seconds",
        title: "Seconds",
        metric: "seconds",
        unit: "s",
        base: (Unit::Nanoseconds, 1e9),
        caption: "Elapsed, lower is better ↓",
    };
    let cpu = Layout {
        id: "cpu",
        title: "CPU %",
        metric: "cpu_percent",
        unit: "%",
        base: (Unit::Fraction, 0.01),
        caption: "CPU time over elapsed time, informational",
    };
    vec![grid(set, &data, &seconds), grid(set, &data, &cpu), totals(set, &data)]
}

/// Rows of the file: task number, task, filesystem, metric, value. A task whose name contains a
/// comma is in double quotes (RFC 4180).
pub(crate) fn read(text: &str) -> Vec<Printed<'_>> {
    text.lines().skip(1).filter_map(printed).collect()
}

fn printed(line: &str) -> Option<Printed<'_>> {
    let (id, rest) = line.split_once(',')?;
    let (task, rest) = match rest.strip_prefix('"') {
        Some(rest) => rest.split_once("\",")?,
        None => rest.split_once(',')?,
    };
    let (filesystem, rest) = rest.split_once(',')?;
    let (metric, text) = rest.split_once(',')?;
    let value = text.parse().ok()?;
    Some(Printed { id, task, filesystem, metric, text, value })
}

/// Distinct words, in the order of their first occurrence.
fn each_once<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut each: Vec<&str> = Vec::new();
    for word in words {
        if !each.contains(&word) {
            each.push(word);
        }
    }
    each
}

/// Layout of a table of a metric.
struct Layout {
    id: &'static str,
    title: &'static str,
    metric: &'static str,
    unit: &'static str,
    /// Base unit, and the size of the printed unit in it.
    base: (Unit, f64),
    caption: &'static str,
}

/// Table of tasks × filesystems, as printed.
fn grid(set: &Published, data: &[Printed<'_>], layout: &Layout) -> Table {
    let filesystems = each_once(data.iter().map(|printed| printed.filesystem));
    let row = |id: &str| {
        let cell = |filesystem: &&str| {
            let wanted = (id, *filesystem, layout.metric);
            let same =
                |printed: &&Printed<'_>| (printed.id, printed.filesystem, printed.metric) == wanted;
            match data.iter().find(same) {
                Some(printed) => value(printed.text.to_owned(), printed.value, layout.base),
                None => TableCell::Text("not printed".into()),
            }
        };
        let name = data.iter().find(|printed| printed.id == id).map_or("", |found| found.task);
        let cells = filesystems.iter().map(cell).collect();
        Row::of(format!("{id} {name}"), None, Body::Cells(cells))
    };
    let ids = each_once(data.iter().map(|printed| printed.id));
    Table {
        id: format!("{}-{}", set.name, layout.id),
        title: format!("{}: {}", layout.title, set.name),
        caption: vec![layout.caption.into()],
        corner: "task",
        columns: filesystems.iter().map(|name| Column::new(*name, layout.unit)).collect(),
        rows: ids.into_iter().map(row).collect(),
    }
}

/// Number without an interval.
fn value(text: String, printed: f64, (unit, factor): (Unit, f64)) -> TableCell {
    TableCell::Value(ValueCell {
        shown: Shown { value: text, interval: None, relative: None },
        n: RUNS,
        n_stated: false,
        top: false,
        codes: Vec::new(),
        sort: printed * factor,
        interval: None,
        unit,
        note: String::new(),
        of: None,
    })
}

/// Sum of seconds and longest task of a filesystem.
struct Sum<'a> {
    filesystem: &'a str,
    seconds: f64,
    longest: Option<&'a Printed<'a>>,
}

/// Table of the sums of seconds, smallest first.
fn totals(set: &Published, data: &[Printed<'_>]) -> Table {
    let filesystems = each_once(data.iter().map(|printed| printed.filesystem));
    let mut sums: Vec<Sum<'_>> = Vec::new();
    for filesystem in filesystems {
        let of_it = |printed: &&Printed<'_>| {
            printed.filesystem == filesystem && printed.metric == "seconds"
        };
        let tasks = || data.iter().filter(of_it);
        let longest = tasks().max_by(|one, other| one.value.total_cmp(&other.value));
        sums.push(Sum { filesystem, seconds: tasks().map(|printed| printed.value).sum(), longest });
    }
    sums.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let best = sums.first().map_or(1.0, |sum| sum.seconds);
    let row = |sum: &Sum<'_>| {
        let ratio = sum.seconds / best;
        let longest = sum.longest.map_or(String::new(), |task| {
            format!("{} {},\n{}", task.id, task.task, percent(task.value / sum.seconds))
        });
        let cells = vec![
            value(fixed(sum.seconds, 2), sum.seconds, (Unit::Nanoseconds, 1e9)),
            value(fixed(ratio, 2), ratio, (Unit::Ratio, 1.0)),
            TableCell::Text(longest),
        ];
        Row::of(sum.filesystem, None, Body::Cells(cells))
    };
    Table {
        id: format!("{}-total", set.name),
        title: format!("Total of all tasks: {}", set.name),
        caption: vec![
            "Sum of the printed seconds, lower is better ↓".into(),
            "long tasks dominate a sum of seconds; without intervals, not tested for significance"
                .into(),
        ],
        corner: "filesystem",
        columns: vec![
            Column::new("total", "s"),
            Column::new("ratio to best", "×"),
            Column::new("longest task, fraction", ""),
        ],
        rows: sums.iter().map(row).collect(),
    }
}
