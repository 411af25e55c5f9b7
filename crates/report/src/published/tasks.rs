//! Editions of the study of 21 everyday tasks: seconds, CPU %, and totals.

use model::{Metric, metric::Unit};

use super::{
    Published,
    numbers::{Number, grid, numbers},
};
use crate::{
    document::{Body, Column, Row, Table, TableCell, ValueCell},
    units::{fixed, grouped, percent},
};

/// All printed times of a set.
pub(crate) fn seconds(set: &Published) -> Vec<Number> {
    let own = numbers(set).into_iter().filter(|number| number.metric == Metric::Elapsed);
    own.collect()
}

/// Tables of seconds, CPU %, and totals.
pub(crate) fn tables(set: &Published) -> Vec<Table> {
    let numbers = numbers(set);
    let of = |metric: Metric| -> Vec<&Number> {
        numbers.iter().filter(|number| number.metric == metric).collect()
    };
    let table = |id: &str, title: &str, metric, caption| {
        let head = (format!("{}-{id}", set.name), format!("{title}: {}", set.name), caption);
        grid(head, "task", &of(metric), (|number| &number.test, |number| &number.filesystem))
    };
    let cpu = "CPU time over elapsed time, informational";
    vec![
        table("seconds", "Seconds", Metric::Elapsed, "Elapsed, lower is better ↓"),
        table("cpu", "CPU %", Metric::CpuUtilization, cpu),
        totals(set, &of(Metric::Elapsed)),
    ]
}

/// Table of the sums of seconds, smallest first.
fn totals(set: &Published, seconds: &[&Number]) -> Table {
    let by_filesystem = seconds.iter().map(|number| (number.filesystem.as_str(), *number));
    let sum = |own: &[&Number]| own.iter().map(|number| number.number()).sum::<f64>();
    let mut sums: Vec<(&str, Vec<&Number>, f64)> = grouped(by_filesystem)
        .into_iter()
        .map(|(name, own)| {
            let sum = sum(&own);
            (name, own, sum)
        })
        .collect();
    sums.sort_by(|one, other| one.2.total_cmp(&other.2));
    let best = sums.first().map_or(1.0, |(.., sum)| *sum);
    let row = |(filesystem, own, sum): &(&str, Vec<&Number>, f64)| {
        let longest = own.iter().max_by(|one, other| one.number().total_cmp(&other.number()));
        let longest = longest.map_or(String::new(), |task| {
            format!("{},\n{}", task.label, percent(task.number() / sum))
        });
        let value =
            |text, value, unit| TableCell::Value(ValueCell::printed(text, value, unit, own[0].n));
        let cells = vec![
            value(fixed(*sum, 2), sum * 1e9, Unit::Nanoseconds),
            value(fixed(sum / best, 2), sum / best, Unit::Ratio),
            TableCell::Text(longest),
        ];
        Row::of(*filesystem, None, Body::Cells(cells))
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
