//! Runs of suite `dbench` in the text layout of dbench 4.0, and in the layout of the option
//! `--machine-readable` of dbench 5.0. Each cell has an output: the repetition with the median
//! throughput.
//!
//! The first line states that fslab measured. Throughput counts the requested bytes of reads and
//! writes up to the last full second, in units of 10^6 bytes. Ticks are computed from the time
//! series, whose intervals are interpolated at full seconds. They have no latency.

use crate::program_layout::{NotInLayout, cells_of, program};
use std::fmt::Write;

use model::{
    Metric, Nanos, RunRecord, Value,
    phase::{ReplayOp, Series},
    record::{CellRecord, HistogramKind, TrialRecord},
};

use crate::{
    samples::{count, flag, measured, value},
    units::one_line,
};

/// Suite whose cells are exported.
const SUITE: &str = "dbench";

/// Phase of the whole replay.
const REPLAY: &str = "replay";

/// Bytes per MB of dbench.
const MB: f64 = 1e6;

/// Layout of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbenchForm {
    /// Text of dbench 4.0.
    Text,
    /// Fields of `--machine-readable` of dbench 5.0.
    Fields,
}

/// Formats a run of suite `dbench` in the layout of dbench.
///
/// # Errors
/// [`NotInLayout`] if the run has no measured trials of that suite.
pub fn dbench(record: &RunRecord, form: DbenchForm) -> Result<String, NotInLayout> {
    let outputs = cells_of(record, &[SUITE], "dbench")?.into_iter().filter_map(|(index, cell)| {
        let trial = middle(record, index)?;
        Some(Output { record, cell, trial }.text(form))
    });
    let text = outputs.collect::<Vec<_>>().join("\n");
    if text.is_empty() { Err(NotInLayout::NothingMeasured(SUITE)) } else { Ok(text) }
}

/// Measured trial of a cell with the median throughput, the lower one of two.
fn middle(record: &RunRecord, cell: usize) -> Option<&TrialRecord> {
    let mut trials: Vec<&TrialRecord> = measured(record, cell).collect();
    trials.sort_by(|a, b| throughput(a).total_cmp(&throughput(b)));
    trials.get(trials.len().saturating_sub(1) / 2).copied()
}

/// Throughput up to the last full second; for other replays, over the whole time.
fn throughput(trial: &TrialRecord) -> f64 {
    let known = value(trial, REPLAY, Metric::ThroughputDbench).filter(|rate| *rate > 0.0);
    known.or_else(|| value(trial, REPLAY, Metric::Throughput)).unwrap_or(0.0)
}

struct Output<'a> {
    record: &'a RunRecord,
    cell: &'a CellRecord,
    trial: &'a TrialRecord,
}

/// Result at a full second: operations of all clients, and throughput in MB/s.
struct Tick {
    second: u64,
    ops: f64,
    rate: f64,
}

impl Output<'_> {
    fn text(&self, form: DbenchForm) -> String {
        let mut text = self.head();
        match form {
            DbenchForm::Text => self.lines(&mut text),
            DbenchForm::Fields => self.fields(&mut text),
        }
        text
    }

    /// Line that names the program and the loadfile.
    fn head(&self) -> String {
        let program = program(self.record);
        let fact = |name: &str| {
            let known = self.trial.environment.get(name);
            let known = known.or_else(|| self.record.environment.get(name));
            known.map_or_else(|| "not recorded".to_owned(), one_line)
        };
        let (label, sum) = (fact("loadfile.label"), fact("loadfile.sha256"));
        // The label ends with the origin and the start of the checksum in parentheses.
        let label = label.split(" (").next().unwrap_or(&label);
        format!(
            "dbench workload, measured by {program}, not by dbench; loadfile {label}, sha256 \
             {sum}\n\n"
        )
    }

    fn lines(&self, text: &mut String) {
        let clients = self.count("clients");
        for tick in self.ticks() {
            let ops = tick.ops / clients.max(1) as f64;
            let _ = writeln!(
                text,
                "{clients:>4}  {ops:>8.0}  {:>7.2} MB/sec  execute {:>3} sec",
                tick.rate, tick.second
            );
        }
        text.push_str("\n Operation      Count    AvgLat    MaxLat\n ");
        text.push_str(&"-".repeat(40));
        text.push('\n');
        for (op, count, mean, max) in self.operations() {
            let _ = writeln!(text, " {:<12} {count:>7} {mean:>9.3} {max:>9.3}", op.name());
        }
        let words = |name: &str, words: &'static str| match flag(&self.cell.cell.workload, name) {
            true => words,
            false => "",
        };
        let _ = writeln!(
            text,
            "\nThroughput {} MB/sec{}{}  {clients} clients  {clients} procs  max_latency={:.3} ms",
            digits(throughput(self.trial) / MB),
            words("o_sync", " (sync open)"),
            words("sync_directories", " (sync dirs)"),
            self.latency()
        );
    }

    fn fields(&self, text: &mut String) {
        let clients = self.count("clients");
        for tick in self.ticks() {
            let ops = tick.ops / clients.max(1) as f64;
            let _ = writeln!(text, "@R@{clients}@{ops:.0}@{:.2}@{}@0@", tick.rate, tick.second);
        }
        for (op, count, mean, max) in self.operations() {
            let _ = writeln!(text, ":{}:{count}:{mean:.3}:{max:.3}:", op.name());
        }
        let rate = digits(throughput(self.trial) / MB);
        let _ = writeln!(text, ";{rate};{clients};{clients};{:.3};", self.latency());
    }

    /// Results at full seconds. The last one is the result of the output.
    fn ticks(&self) -> Vec<Tick> {
        let series = self.trial.series.iter().find(|(phase, _)| phase == REPLAY);
        let Some((_, series)) = series else { return Vec::new() };
        let seconds = match self.cell.cell.workload.parameters.get("runtime") {
            Some(Value::Time(time)) if self.count("replay_count") == 0 => {
                (time.0 - u64::from(time.0 > 0)) / 1_000_000_000
            }
            _ => 0,
        };
        let mut ticks: Vec<Tick> = (1..=seconds)
            .map(|second| Tick {
                second,
                ops: until(series, &series.ops, second),
                rate: until(series, &series.bytes, second) / second as f64 / MB,
            })
            .collect();
        if let Some(last) = ticks.last_mut() {
            last.rate = throughput(self.trial) / MB;
        }
        ticks
    }

    /// Operations that occurred, with their count, and mean and maximum latency in milliseconds.
    fn operations(&self) -> Vec<(ReplayOp, u64, f64, f64)> {
        let row = |op: &ReplayOp| {
            let kind = HistogramKind::Op(*op);
            let mut all = self.trial.histograms.iter();
            let own = &all.find(|own| own.phase == REPLAY && own.kind == kind)?.histogram;
            let millis = |time: Option<Nanos>| time.unwrap_or_default().seconds() * 1e3;
            Some((*op, own.count(), millis(own.mean()), millis(own.max())))
        };
        ReplayOp::ALL.iter().filter_map(row).filter(|row| row.1 > 0).collect()
    }

    /// Maximum latency in milliseconds.
    fn latency(&self) -> f64 {
        value(self.trial, REPLAY, Metric::LatencyMax).map_or_else(
            || self.operations().iter().map(|row| row.3).fold(0.0, f64::max),
            |nanos| nanos / 1e6,
        )
    }

    fn count(&self, name: &str) -> u64 {
        count(&self.cell.cell.workload, name).unwrap_or(0)
    }
}

/// Sum of the counts up to a second after the start of a series. The interval that contains it
/// counts in proportion.
fn until(series: &Series, counts: &[u64], second: u64) -> f64 {
    let interval = series.interval.0.max(1) as f64;
    let filled = second as f64 * 1e9 / interval;
    let part = |(at, count): (u64, &u64)| *count as f64 * (filled - at as f64).clamp(0.0, 1.0);
    (0..).zip(counts).map(part).sum()
}

/// Number with six significant digits.
fn digits(value: f64) -> String {
    let places = match value {
        _ if value >= 1e5 => 0,
        _ if value >= 1e4 => 1,
        _ if value >= 1e3 => 2,
        _ if value >= 1e2 => 3,
        _ if value >= 1e1 => 4,
        _ => 5,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests;
