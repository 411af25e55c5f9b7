//! Published data sets as CSV (RFC 4180) in a common schema.
//!
//! Each row is one printed number, with its value in the base unit of the corresponding metric of a
//! run, the printed text, and the printed unit. The deviations of the study of 2009 are in the rows
//! of their means.

use model::Metric;

use super::{
    Published, bonnie,
    iozone::{self, KIB},
    tasks,
};
use crate::bonnie::{Figure, PHASES};

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

/// Printed number.
struct Row {
    /// Number of the table; `None` if the source does not number its tables.
    table: Option<u32>,
    filesystem: String,
    test: String,
    /// Record length in bytes.
    record: Option<u64>,
    metric: Metric,
    /// Value in the base unit of the metric; `None` if the record has plus signs or an empty field.
    value: Option<f64>,
    deviation: Option<f64>,
    n: u32,
    summary: &'static str,
    printed: String,
    printed_deviation: String,
    printed_unit: &'static str,
    marks: String,
}

/// CSV text of a data set.
pub(super) fn csv(set: &Published) -> String {
    let rows = match set.suite {
        "iozone" => of_iozone(set),
        "tasks" => of_tasks(set),
        _ => of_bonnie(set),
    };
    let mut text = String::from(HEADER);
    for row in rows {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let fields = [
            format!("\"{}\"", set.label()),
            set.name.to_owned(),
            set.suite.to_owned(),
            row.table.map_or(String::new(), |table| table.to_string()),
            quoted(&row.filesystem),
            quoted(&row.test),
            row.record.map_or(String::new(), |record| record.to_string()),
            row.metric.name().to_owned(),
            row.metric.spec().unit.name().to_owned(),
            number(row.value),
            number(row.deviation),
            row.n.to_string(),
            row.summary.to_owned(),
            quoted(&row.printed),
            quoted(&row.printed_deviation),
            row.printed_unit.to_owned(),
            row.marks,
        ];
        text.push_str(&fields.join(","));
        text.push_str("\r\n");
    }
    text
}

/// Field, quoted if it contains a comma. The data contain no quotes.
fn quoted(field: &str) -> String {
    if field.contains(',') { format!("\"{field}\"") } else { field.to_owned() }
}

/// Fields of a line. The data contain no quotes within fields.
pub(super) fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut inside) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => inside = !inside,
            ',' if !inside => fields.push(std::mem::take(&mut field)),
            _ => field.push(c),
        }
    }
    fields.push(field);
    fields
}

fn of_iozone(set: &Published) -> Vec<Row> {
    let of = |metric: &'static str| {
        let lines = set.data.lines().filter(move |line| line.contains(metric));
        lines.map(|line| fields(line).swap_remove(PRINTED))
    };
    let mut deviations = of(",throughput_stddev,");
    let row = |(number, text): (&iozone::Number, String)| Row {
        table: Some(number.table),
        filesystem: number.filesystem.clone(),
        test: number.test.replace('_', "-"),
        record: Some(u64::from(number.record) * 1024),
        metric: Metric::Throughput,
        value: Some(number.mean * KIB),
        deviation: number.deviation.as_ref().map(|(deviation, _)| deviation * KIB),
        n: iozone::RUNS,
        summary: "mean",
        printed: text,
        printed_deviation: match number.deviation {
            Some(_) => deviations.next().unwrap_or_default(),
            None => String::new(),
        },
        printed_unit: "KB/s",
        marks: number.codes().join(" "),
    };
    iozone::study().numbers.iter().zip(of(",throughput_mean,")).map(row).collect()
}

fn of_tasks(set: &Published) -> Vec<Row> {
    let row = |printed: tasks::Printed<'_>| {
        let (metric, factor, unit) = match printed.metric {
            "seconds" => (Metric::Elapsed, 1e9, "s"),
            _ => (Metric::CpuUtilization, 0.01, "%"),
        };
        Row {
            table: None,
            filesystem: printed.filesystem.into(),
            test: format!("{} {}", printed.id, printed.task),
            record: None,
            metric,
            value: Some(printed.value * factor),
            deviation: None,
            n: tasks::RUNS,
            summary: "mean",
            printed: printed.text.into(),
            printed_deviation: String::new(),
            printed_unit: unit,
            marks: String::new(),
        }
    };
    tasks::read(set.data).into_iter().map(row).collect()
}

fn of_bonnie(set: &Published) -> Vec<Row> {
    bonnie::measured(set.data).iter().flat_map(of_record).collect()
}

fn of_record(measured: &bonnie::Measured) -> Vec<Row> {
    let fields: Vec<&str> = measured.printed.split(',').collect();
    let mut rows = Vec::new();
    for (at, (phase, figures)) in PHASES.iter().zip(&measured.record.phases).enumerate() {
        let pair = if at < IO_PHASES { LARGE + 2 * at } else { MANY + 2 * (at - IO_PHASES) };
        let known = |figure: Figure, factor: f64| match figure {
            Figure::Known(value) => Some(value * factor),
            Figure::Empty | Figure::Short => None,
        };
        let (metric, factor, unit) = match at {
            ..IN_BYTES => (Metric::Throughput, KIB, "K/s"),
            IN_BYTES => (Metric::OpsRate, 1.0, "seeks/s"),
            _ => (Metric::OpsRate, 1.0, "files/s"),
        };
        let latency = figures.latency.map(|time| time.seconds() * 1e9);
        let all = [
            (metric, known(figures.rate, factor), pair, unit),
            (Metric::CpuUtilization, known(figures.cpu, 0.01), pair + 1, "%"),
            // The text contains the unit: us, ms, or s.
            (Metric::LatencyMax, latency, LATENCIES + at, ""),
        ];
        let row = |(metric, value, field, unit): (Metric, Option<f64>, usize, &'static str)| Row {
            table: None,
            filesystem: measured.configuration.clone(),
            test: (*phase).to_owned(),
            record: None,
            metric,
            value,
            deviation: None,
            n: 1,
            summary: "one run",
            printed: fields.get(field).map_or(String::new(), |text| (*text).to_owned()),
            printed_deviation: String::new(),
            printed_unit: unit,
            marks: String::new(),
        };
        rows.extend(all.map(row));
    }
    rows
}
