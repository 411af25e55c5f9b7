//! Printed numbers of all data sets in a common form, as CSV (RFC 4180) and as tables.
//!
//! Each number has its value in the base unit of the corresponding metric of a run, the printed
//! text, and the printed unit. The deviations of the study of 2009 are in the numbers of their
//! means.

use std::collections::BTreeMap;

use model::Metric;

use super::{
    Published, bonnie,
    iozone::{self, KIB, length, test_name},
};
use crate::{
    bonnie::{Figure, PHASES},
    document::{Body, Column, Row, Table, TableCell, ValueCell},
    samples::csv::line,
    units::{Shown, distinct, fixed},
};

/// Columns of every set.
pub(super) const HEADER: &str = "origin,published,suite,table,filesystem,test,record_bytes,\
                                 metric,unit,value,deviation,n,summary,printed,printed_deviation,\
                                 printed_unit,marks\r\n";

/// Index of the first rate in a record of bonnie++ 1.96
/// (<https://www.coker.com.au/bonnie++/readme.html> and the records themselves). The CPU % follows
/// each rate; the phases on the large file come first.
const LARGE: usize = 7;
/// Index of the first rate of the phases on many files.
const MANY: usize = 24;
/// Index of the first latency.
const LATENCIES: usize = 36;
/// Index of the printed text in the file of the study of 2009.
const PRINTED: usize = 6;
/// Number of phases on the large file.
const IO_PHASES: usize = 6;
/// Number of phases whose rate is in KiB/s.
const IN_BYTES: usize = 5;

/// Runs of each task; the mean was printed.
const TASK_RUNS: u32 = 3;

/// Printed number.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    /// Number of the table; `None` if the source does not number its tables.
    table: Option<u32>,
    /// Filesystem or configuration.
    pub(crate) filesystem: String,
    /// Short name of the test: `random_write`, `001`, `put-block`.
    pub(crate) test: String,
    /// Displayed name of the test.
    pub(crate) label: String,
    /// Record length in bytes.
    pub(crate) record: Option<u64>,
    pub(crate) metric: Metric,
    /// Value in the base unit of the metric; `None` if the record has plus signs or an empty field.
    pub(crate) value: Option<f64>,
    pub(crate) deviation: Option<f64>,
    pub(crate) n: u32,
    pub(crate) summary: &'static str,
    pub(crate) printed: String,
    printed_deviation: String,
    printed_unit: &'static str,
    pub(crate) marks: Vec<&'static str>,
    /// Text in tables and its unit, or the reason why there is no value.
    shown: (String, &'static str),
}

impl Number {
    /// Printed value.
    pub(crate) fn number(&self) -> f64 {
        self.printed.parse().unwrap_or_default()
    }

    /// Cell of a table.
    fn cell(&self) -> TableCell {
        match self.value {
            Some(value) => {
                let unit = self.metric.spec().unit;
                TableCell::Value(ValueCell::printed(self.shown.0.clone(), value, unit, self.n))
            }
            None => TableCell::Text(self.shown.0.clone()),
        }
    }
}

/// Numbers of a data set, in the order of the source.
pub(crate) fn numbers(set: &Published) -> Vec<Number> {
    match set.suite.as_str() {
        "iozone" => of_iozone(set),
        "tasks" => of_tasks(set),
        _ => bonnie::measured(set.data()).iter().flat_map(of_record).collect(),
    }
}

/// Fields of the rows of a built-in file, without its header.
pub(super) fn rows(text: &str) -> Vec<Vec<String>> {
    let read = crate::audit::csv::rows(text);
    let (_, rows) = read.unwrap_or_else(|error| unreachable!("built-in data: {error}"));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// CSV text of a data set.
pub(super) fn csv(set: &Published) -> String {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let count = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
    let row = |own: Number| {
        let test = match set.suite.as_str() {
            "iozone" => own.test.replace('_', "-"),
            _ => own.label,
        };
        line(&[
            set.label(),
            set.name.clone(),
            set.suite.clone(),
            count(own.table.map(u64::from)),
            own.filesystem,
            test,
            count(own.record),
            own.metric.name().to_owned(),
            own.metric.spec().unit.name().to_owned(),
            number(own.value),
            number(own.deviation),
            own.n.to_string(),
            own.summary.to_owned(),
            own.printed,
            own.printed_deviation,
            own.printed_unit.to_owned(),
            own.marks.join(" "),
        ])
    };
    std::iter::once(HEADER.to_owned()).chain(numbers(set).into_iter().map(row)).collect()
}

fn of_iozone(set: &Published) -> Vec<Number> {
    let rows = rows(set.data());
    let of = |metric: &'static str| {
        let own = rows.iter().filter(move |row| row[4] == metric);
        own.map(|row| row[PRINTED].clone())
    };
    let mut deviations = of("throughput_stddev");
    let number = |(own, printed): (&iozone::Number, String)| Number {
        table: Some(own.table),
        filesystem: own.filesystem.clone(),
        test: own.test.clone(),
        label: format!("{}, {}", test_name(&own.test), length(own.record)),
        record: Some(u64::from(own.record) * 1024),
        metric: Metric::Throughput,
        value: Some(own.mean * KIB),
        deviation: own.deviation.as_ref().map(|(deviation, _)| deviation * KIB),
        n: iozone::RUNS,
        summary: "mean",
        printed,
        printed_deviation: match own.deviation {
            Some(_) => deviations.next().unwrap_or_default(),
            None => String::new(),
        },
        printed_unit: "KB/s",
        marks: own.codes(),
        shown: (fixed(own.mean, 2), "KiB/s"),
    };
    iozone::study().numbers.iter().zip(of("throughput_mean")).map(number).collect()
}

/// Rows of the file: task number, task, filesystem, metric, value. The number identifies the task,
/// because the spelling of names varies.
fn of_tasks(set: &Published) -> Vec<Number> {
    let number = |row: Vec<String>| {
        let [id, task, filesystem, metric, printed] = <[String; 5]>::try_from(row).ok()?;
        let (metric, factor, unit) = match metric.as_str() {
            "seconds" => (Metric::Elapsed, 1e9, "s"),
            _ => (Metric::CpuUtilization, 0.01, "%"),
        };
        Some(Number {
            table: None,
            filesystem,
            label: format!("{id} {task}"),
            test: id,
            record: None,
            metric,
            value: Some(printed.parse::<f64>().ok()? * factor),
            deviation: None,
            n: TASK_RUNS,
            summary: "mean",
            shown: (printed.clone(), unit),
            printed,
            printed_deviation: String::new(),
            printed_unit: unit,
            marks: Vec::new(),
        })
    };
    rows(set.data()).into_iter().filter_map(number).collect()
}

fn of_record(measured: &bonnie::Measured) -> Vec<Number> {
    let fields: Vec<&str> = measured.printed.split(',').collect();
    let mut numbers = Vec::new();
    for (at, (phase, figures)) in PHASES.iter().zip(&measured.record.phases).enumerate() {
        let pair = if at < IO_PHASES { LARGE + 2 * at } else { MANY + 2 * (at - IO_PHASES) };
        let (metric, factor, unit) = match at {
            ..IN_BYTES => (Metric::Throughput, KIB, "K/s"),
            IN_BYTES => (Metric::OpsRate, 1.0, "seeks/s"),
            _ => (Metric::OpsRate, 1.0, "files/s"),
        };
        // Divisor, decimal places, and unit in tables. Two decimal places of a MiB preserve the
        // whole KiB of the records.
        let rate = match at {
            0 | 3 => (1.0, 0, "KiB/s"),
            ..IN_BYTES => (KIB, 2, "MiB/s"),
            IN_BYTES => (1.0, 1, unit),
            _ => (1.0, 0, unit),
        };
        let latency = figures.latency.map(|time| time.seconds() * 1e9);
        // Records have whole milliseconds from 0.1 s on.
        let places = if latency.is_some_and(|nanos| nanos < 1e8) { 3 } else { 0 };
        let latency = latency.map_or(Figure::Empty, Figure::Known);
        let all = [
            (metric, figures.rate, factor, pair, unit, rate),
            (Metric::CpuUtilization, figures.cpu, 0.01, pair + 1, "%", (1.0, 0, "%")),
            // The text contains the unit: us, ms, or s.
            (Metric::LatencyMax, latency, 1.0, LATENCIES + at, "", (1e6, places, "ms")),
        ];
        numbers.extend(all.map(|(metric, figure, factor, field, unit, table)| {
            let (divisor, places, shown) = table;
            let (value, text) = match figure {
                Figure::Known(value) => (Some(value), fixed(value / divisor, places)),
                Figure::Short => (None, "too short".into()),
                Figure::Empty => (None, "not printed".into()),
            };
            Number {
                table: None,
                filesystem: measured.configuration.clone(),
                test: (*phase).to_owned(),
                label: (*phase).to_owned(),
                record: None,
                metric,
                value: value.map(|value| value * factor),
                deviation: None,
                n: 1,
                summary: "one run",
                printed: fields.get(field).map_or(String::new(), |text| (*text).to_owned()),
                printed_deviation: String::new(),
                printed_unit: unit,
                marks: Vec::new(),
                shown: (text, shown),
            }
        }));
    }
    numbers
}

/// Property of a number, such as the name of its filesystem.
type Property = fn(&Number) -> &str;

/// Table of some numbers by row and column. Rows and columns have the order of their first numbers.
pub(super) fn grid(
    (id, title, caption): (String, String, &str),
    corner: &'static str,
    numbers: &[&Number],
    (row, column): (Property, Property),
) -> Table {
    let columns = distinct(numbers.iter().map(|number| column(number)));
    let cells: BTreeMap<(&str, &str), &Number> =
        numbers.iter().map(|number| ((row(number), column(number)), *number)).collect();
    let of_row = |name: &str| {
        let cell = |column: &&str| match cells.get(&(name, *column)) {
            Some(number) => number.cell(),
            None => TableCell::Text("not printed".into()),
        };
        let first = numbers.iter().find(|number| corner == "task" && row(number) == name);
        let title = first.map_or(name, |number| &number.label);
        Row::of(title, None, Body::Cells(columns.iter().map(cell).collect()))
    };
    let unit = |name: &str| {
        let found = numbers.iter().find(|number| column(number) == name);
        found.map_or("", |number| number.shown.1)
    };
    Table {
        id,
        title,
        caption: vec![caption.into()],
        corner,
        rows: distinct(numbers.iter().map(|number| row(number))).into_iter().map(of_row).collect(),
        columns: columns.iter().map(|name| Column::new(*name, unit(name))).collect(),
    }
}

impl ValueCell {
    /// A printed number with its value in base units, without an interval.
    pub(crate) fn printed(text: String, value: f64, unit: model::metric::Unit, n: u32) -> Self {
        Self {
            shown: Shown { value: text, interval: None, relative: None },
            n,
            n_stated: false,
            top: false,
            codes: Vec::new(),
            sort: value,
            interval: None,
            unit,
            note: String::new(),
            of: None,
        }
    }
}
