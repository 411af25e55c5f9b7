//! Results of a report in the layout of IOzone: rows of the single-stream mode, lines of the
//! throughput mode, and tables of `-R`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use analysis::Summary;
use model::{Metric, WorkloadParameters, record::TrialRecord};

use super::{IozoneCommand, IozoneUnit, Member, count, kib};
use crate::{
    iozone_layout::{ALWAYS, COLUMNS, WORKERS},
    samples,
};

/// Medians in bytes per second by test, and by file size and block size in KiB.
type Rows = BTreeMap<(u64, u64), BTreeMap<&'static str, f64>>;

/// Results of one report.
pub(super) struct Body<'a> {
    unit: IozoneUnit,
    rows: Rows,
    /// Cells of the throughput mode by number of workers.
    workers: Vec<(u64, &'a Member<'a>)>,
}

/// Table of `-R`: title, heads of the columns, and rows with their names.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) columns: Vec<u64>,
    pub(super) rows: Vec<(String, Vec<f64>)>,
}

impl<'a> Body<'a> {
    pub(super) fn new(members: &'a [Member<'a>], unit: IozoneUnit) -> Self {
        let mut rows = Rows::new();
        let mut workers = Vec::new();
        for member in members {
            match count(member.0, "workers") {
                0 => rows.entry(sizes(member.0)).or_default().extend(row(&member.1)),
                number => workers.push((number, member)),
            }
        }
        workers.sort_by_key(|(number, _)| *number);
        Self { unit, rows, workers }
    }

    /// Writes rows, lines, and tables. Without a command line, tables of the single-stream mode are
    /// always written.
    pub(super) fn write(&self, text: &mut String, command: Option<&IozoneCommand>) {
        for (number, member) in &self.workers {
            let children = command.is_some_and(|command| command.workers);
            self.throughput(text, *number, member, children);
        }
        if self.rows.is_empty() {
            if command.is_some_and(|command| command.tables) {
                self.throughput_tables(text);
            }
            text.push_str("\niozone test complete.\n\n");
            return;
        }
        self.write_rows(text);
        text.push_str("\niozone test complete.\n");
        if command.is_none_or(|command| command.tables) {
            text.push_str("Excel output is below:\n");
            self.single_tables().iter().for_each(|table| table.write(text));
        }
        text.push('\n');
    }

    /// Value in the unit of the output, truncated to an integer as in IOzone.
    fn shown(&self, rate: f64, block: u64) -> u64 {
        whole(self.exact(rate, block))
    }

    fn write_rows(&self, text: &mut String) {
        let columns = || {
            COLUMNS.iter().enumerate().filter(|(at, column)| {
                *at < ALWAYS || self.rows.values().any(|row| row.contains_key(column.test))
            })
        };
        for line in 0..2 {
            let first = if line == 0 { ["", ""] } else { ["kB", "reclen"] };
            let _ = write!(text, "{:>16}{:>8}", first[0], first[1]);
            for (_, column) in columns() {
                let _ = write!(text, "{:>1$}", column.head[line], column.head_width);
            }
            text.push('\n');
        }
        for ((file, record), row) in &self.rows {
            let _ = write!(text, "{file:>16}{record:>8}");
            for (_, column) in columns() {
                let value = row.get(column.test).map(|rate| self.shown(*rate, *record));
                let shown = value.as_ref().map(u64::to_string).unwrap_or_default();
                // A space separates numbers that IOzone would print without one.
                let shown = if shown.len() >= column.width { format!(" {shown}") } else { shown };
                let _ = write!(text, "{shown:>0$}", column.width);
            }
            text.push('\n');
        }
    }

    /// Tables of both modes.
    pub(super) fn tables(&self) -> Vec<Table> {
        let mut tables = self.single_tables();
        if !self.workers.is_empty() {
            tables.push(Table {
                title: "Throughput report Y-axis is type of test X-axis is number of processes"
                    .into(),
                columns: self.workers.iter().map(|(number, _)| *number).collect(),
                rows: self.throughput_rows(),
            });
        }
        tables
    }

    /// Values by file size and block size, one table per test.
    fn single_tables(&self) -> Vec<Table> {
        let records: BTreeSet<u64> = self.rows.keys().map(|(_, record)| *record).collect();
        let files: BTreeSet<u64> = self.rows.keys().map(|(file, _)| *file).collect();
        let measured = COLUMNS
            .iter()
            .filter(|column| self.rows.values().any(|row| row.contains_key(column.test)));
        measured
            .map(|column| Table {
                title: format!("{} report", column.table),
                columns: records.iter().copied().collect(),
                rows: files
                    .iter()
                    .map(|file| self.table_row(*file, &records, column.test))
                    .collect(),
            })
            .collect()
    }

    /// Row of a table. As in IOzone, a missing value is a zero, and missing values at the end of a
    /// row are omitted.
    fn table_row(&self, file: u64, records: &BTreeSet<u64>, test: &str) -> (String, Vec<f64>) {
        let cell = |record: u64| {
            let rate = self.rows.get(&(file, record)).and_then(|row| row.get(test));
            rate.map(|rate| self.shown(*rate, record) as f64)
        };
        let mut values: Vec<Option<f64>> = records.iter().map(|record| cell(*record)).collect();
        let filled = values.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        values.truncate(filled);
        (file.to_string(), values.into_iter().map(|value| value.unwrap_or(0.0)).collect())
    }

    /// Sum of the rates of the workers, by test and number of workers.
    fn throughput_rows(&self) -> Vec<(String, Vec<f64>)> {
        let row = |(test, _, name): &(&str, &str, &str)| {
            let rate = |(_, member): &(u64, &Member)| {
                let rate = value(&member.1, test, Metric::ThroughputWorkerSum)
                    .or_else(|| value(&member.1, test, Metric::Throughput))?;
                Some(self.exact(rate, kib(member.0, "block_size")))
            };
            let rates: Vec<Option<f64>> = self.workers.iter().map(rate).collect();
            let known = rates.iter().any(Option::is_some);
            let rates = rates.into_iter().map(|rate| rate.unwrap_or(0.0)).collect();
            known.then(|| ((*name).to_owned(), rates))
        };
        WORKERS.iter().filter_map(row).collect()
    }

    fn throughput_tables(&self, text: &mut String) {
        let block = self.workers.first().map_or(0, |(_, member)| kib(member.0, "block_size"));
        let unit = match self.unit {
            IozoneUnit::KiloBytes => "kBytes/sec",
            IozoneUnit::Operations => "ops/sec",
            IozoneUnit::Micros => "microseconds per op",
        };
        let _ = writeln!(
            text,
            "\n\"Throughput report Y-axis is type of test X-axis is number of processes\"\n\
             \"Record size = {block} kBytes \"\n\"Output is in {unit}\""
        );
        for (name, rates) in self.throughput_rows() {
            let rates: String = rates.iter().map(|rate| format!(" {rate:>10.2} ")).collect();
            let _ = writeln!(text, "\n\"{name:>15} \"{rates}");
        }
    }

    /// Rate in the unit of the throughput mode.
    fn exact(&self, rate: f64, block: u64) -> f64 {
        match self.unit {
            IozoneUnit::KiloBytes => rate / 1024.0,
            IozoneUnit::Operations => rate / (1024.0 * block as f64),
            IozoneUnit::Micros if rate > 0.0 => 1e6 * 1024.0 * block as f64 / rate,
            IozoneUnit::Micros => 0.0,
        }
    }

    /// Lines of the throughput mode for one cell.
    fn throughput(&self, text: &mut String, workers: u64, member: &Member, children: bool) {
        let (point, trials) = member;
        let (file, block) = (kib(point, "file_size"), kib(point, "block_size"));
        let kind = match point.parameters.get("worker_type") {
            Some(model::Value::Word(kind)) if kind == "thread" => ["thread", "threads"],
            _ => ["process", "processes"],
        };
        let plural = kind[usize::from(workers != 1)];
        let kind = kind[0];
        let _ = writeln!(
            text,
            "\tThroughput test with {workers} {plural}\n\tEach {kind} writes a {file} kByte file in \
             {block} kByte records\n"
        );
        let unit = match self.unit {
            IozoneUnit::KiloBytes => "kB/sec",
            IozoneUnit::Operations => "ops/sec",
            IozoneUnit::Micros => "us/op",
        };
        for (test, name, _) in WORKERS {
            let Some(parent) = value(trials, test, Metric::Throughput) else {
                continue;
            };
            let shown = |rate: f64| self.exact(rate, block);
            let mut line = |name: &str, rate: f64| {
                let _ = writeln!(text, "\t{name} \t= {rate:>10.2} {unit}");
            };
            if let Some(all) = value(trials, test, Metric::ThroughputWorkerSum) {
                line(&format!("Children see throughput for {workers:>2} {name}"), shown(all));
            }
            line(&format!("Parent sees throughput for {workers:>2} {name}"), shown(parent));
            let each = by_worker(trials, test, Metric::Throughput);
            let bytes = by_worker(trials, test, Metric::WorkerBytes);
            let sorted = |values: &BTreeMap<u32, f64>| {
                let mut sorted: Vec<f64> = values.values().copied().collect();
                sorted.sort_by(f64::total_cmp);
                sorted
            };
            let rates = sorted(&each);
            if let [least, .., most] = rates[..] {
                line(&format!("Min throughput per {kind}"), shown(least));
                line(&format!("Max throughput per {kind}"), shown(most));
                let average = rates.iter().sum::<f64>() / rates.len() as f64;
                line(&format!("Avg throughput per {kind}"), shown(average));
            }
            if let Some(least) = sorted(&bytes).first() {
                let _ = writeln!(text, "\tMin xfer \t= {:>10.2} kB", least / 1024.0);
            }
            text.push('\n');
            if children && !each.is_empty() {
                for (worker, rate) in &each {
                    let bytes = bytes.get(worker).copied().unwrap_or(1024.0 * file as f64);
                    let _ = writeln!(
                        text,
                        "\tChild[{worker}] xfer count = {:>10.2} kB, Throughput = {:>10.2} {unit}",
                        bytes / 1024.0,
                        shown(*rate)
                    );
                }
                text.push('\n');
            }
        }
    }
}

impl Table {
    fn write(&self, text: &mut String) {
        let heads: String = self.columns.iter().map(|column| format!("  \"{column}\"")).collect();
        let _ = writeln!(text, "\n\"{}\"\n      {heads}", self.title);
        for (name, values) in &self.rows {
            let values: String = values.iter().map(|value| format!(" {value:.0} ")).collect();
            let _ = writeln!(text, "\"{name}\"  {values}");
        }
    }
}

/// File size and block size in KiB.
pub(super) fn sizes(point: &WorkloadParameters) -> (u64, u64) {
    (kib(point, "file_size"), kib(point, "block_size"))
}

/// Median of each test that has a column, in bytes per second.
pub(super) fn row(trials: &[&TrialRecord]) -> BTreeMap<&'static str, f64> {
    let medians = COLUMNS
        .iter()
        .map(|column| Some((column.test, value(trials, column.test, Metric::Throughput)?)));
    medians.flatten().collect()
}

/// Median of the repetitions in the unit of the metric. `None` without values.
fn value(trials: &[&TrialRecord], test: &str, metric: Metric) -> Option<f64> {
    let values = trials.iter().filter_map(|trial| samples::value(trial, test, metric));
    median(&values.collect::<Vec<f64>>())
}

/// Median of the repetitions for each worker.
fn by_worker(trials: &[&TrialRecord], test: &str, metric: Metric) -> BTreeMap<u32, f64> {
    let mut values: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for sample in trials.iter().flat_map(|trial| &trial.samples) {
        if let (true, Some(worker)) =
            (sample.phase == test && sample.metric == metric, sample.worker)
        {
            values.entry(worker).or_default().push(sample.value);
        }
    }
    values.into_iter().filter_map(|(worker, own)| Some((worker, median(&own)?))).collect()
}

fn median(values: &[f64]) -> Option<f64> {
    Some(Summary::new(values).ok()?.median)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is not negative, and IOzone truncates"
)]
fn whole(value: f64) -> u64 {
    value as u64
}
