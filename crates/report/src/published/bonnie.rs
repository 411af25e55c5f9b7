//! Study of 2012: bonnie++ on ext4, btrfs, and xfs in eleven configurations.
//!
//! Records are stored as printed. In the tables, rows are configurations and columns are phases.

use model::Metric;

use super::{
    Published,
    numbers::{Number, grid, numbers, rows},
};
use crate::{
    bonnie::{Figure, PHASES, Record, read},
    document::Table,
};

/// Configuration of the study.
pub(crate) struct Measured {
    pub(crate) configuration: String,
    /// Commands that created the filesystem; empty if not printed.
    commands: String,
    pub(crate) record: Record,
    /// Record as printed.
    pub(crate) printed: String,
}

/// Tables: part of the anchor, title, caption, and metric.
const TABLES: [(&str, &str, &str, Metric); 4] = [
    (
        "throughput",
        "Throughput",
        "Throughput of the large file including fsync and close, higher is better ↑; putc and \
         getc: one byte per call; rewrite counts its bytes once",
        Metric::Throughput,
    ),
    (
        "operations",
        "Seeks and files",
        "Operations per second including a sync after each creation and deletion phase, higher is \
         better ↑; files are empty, so stat reads no data",
        Metric::OpsRate,
    ),
    ("cpu", "CPU %", "CPU time over elapsed time, informational", Metric::CpuUtilization),
    (
        "latency",
        "Longest operation",
        "Longest single operation of a phase, lower is better ↓; one block of 8 KiB, one seek, or \
         one file; digits as in the records",
        Metric::LatencyMax,
    ),
];

/// Tables of throughput, seeks and files per second, CPU %, and the longest operation.
pub(crate) fn tables(set: &Published) -> Vec<Table> {
    let numbers = numbers(set);
    let table = |(id, title, caption, metric): (&str, &str, &str, Metric)| {
        let own: Vec<&Number> = numbers.iter().filter(|number| number.metric == metric).collect();
        let head = (format!("{}-{id}", set.name), format!("{title}: {}", set.name), caption);
        grid(head, "configuration", &own, (|number| &number.filesystem, |number| &number.test))
    };
    TABLES.into_iter().map(table).collect()
}

/// Commands of each configuration, in the order of the study.
pub(crate) fn configurations(set: &Published) -> Vec<(String, String)> {
    let made = |measured: Measured| {
        let commands = match measured.commands.is_empty() {
            true => "no commands are printed".to_owned(),
            false => measured.commands,
        };
        (measured.configuration, commands)
    };
    measured(set.data()).into_iter().map(made).collect()
}

/// Rates, CPU %, and latencies of all configurations for an audit, with the digits of the records;
/// latencies are in µs.
pub(crate) fn cells(text: &str) -> crate::audit::Table {
    let names = ["configuration", "phase", "metric"];
    let columns = names.map(str::to_owned).to_vec();
    let mut table = crate::audit::Table { columns, ..Default::default() };
    for Measured { configuration, record, .. } in measured(text) {
        for (phase, figures) in PHASES.iter().zip(&record.phases) {
            let known = |figure: Figure| figure.known().map(|value| value.to_string());
            let latency = figures.latency.map(|latency| (latency.0 / 1000).to_string());
            let metrics = [
                ("rate", known(figures.rate)),
                ("cpu_percent", known(figures.cpu)),
                ("latency_us", latency),
            ];
            for (metric, printed) in metrics {
                let levels = [configuration.as_str(), phase, metric].map(str::to_owned);
                let at = names.map(str::to_owned).into_iter().zip(levels).collect();
                let cell = |printed| analysis::audit::Cell { at, printed, value: None };
                table.cells.extend(printed.map(cell));
            }
        }
    }
    table
}

/// Rows of the file: configuration, heading in the source, commands, record. A row whose record
/// cannot be read is skipped.
pub(crate) fn measured(text: &str) -> Vec<Measured> {
    let measured = |row: Vec<String>| {
        let [configuration, _, commands, printed] = <[String; 4]>::try_from(row).ok()?;
        Some(Measured { configuration, commands, record: read(&printed).ok()?.pop()?, printed })
    };
    rows(text).into_iter().filter_map(measured).collect()
}
