//! Runs of suite `mdtest` with the tables of mdtest 4.1. Each cell has its tables, which summarize
//! all of its repetitions.
//!
//! The first line states that fslab measured. Times are milliseconds per operation, as the title of
//! the table says; those of mdtest are seconds per phase, under the same title.

use crate::program_layout::{NotInLayout, cells_of, program};
use std::fmt::Write;

use analysis::moments::Moments;
use model::{
    Metric, RunRecord, Value,
    phase::Role,
    record::{CellRecord, HistogramKind, TrialRecord},
};

use crate::{
    mdtest_layout::ROWS,
    samples::{self, flag, measured, value},
    units::one_line,
};

/// Suite whose cells are exported.
const SUITE: &str = "mdtest";

/// Tables of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MdtestTables {
    /// Operations per second.
    #[default]
    Rates,
    /// Milliseconds per operation.
    Times,
    /// Both.
    Both,
}

/// Command line of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MdtestCommand {
    /// Command line; empty if there is none.
    pub words: String,
    /// Tables.
    pub tables: MdtestTables,
}

/// Formats a run of suite `mdtest` with the tables of mdtest.
///
/// # Errors
/// [`NotInLayout`] if the run has no measured trials of that suite.
pub fn mdtest(record: &RunRecord, command: &MdtestCommand) -> Result<String, NotInLayout> {
    let ours = cells_of(record, &[SUITE], "mdtest")?;
    let several = ours.len() > 1;
    let outputs = ours.into_iter().filter_map(|(index, cell)| {
        let trials: Vec<&TrialRecord> = measured(record, index).collect();
        let output = Output { record, cell, trials, command };
        (!output.trials.is_empty()).then(|| output.text(several))
    });
    let text = outputs.collect::<Vec<_>>().join("\n");
    if text.is_empty() { Err(NotInLayout::NothingMeasured(SUITE)) } else { Ok(text) }
}

/// Number of files that each worker created, the smallest of all repetitions. `None` if no files
/// were created.
pub fn mdtest_files(record: &RunRecord) -> Option<u64> {
    let phase = "file-create";
    let created = |(index, cell): (usize, &CellRecord)| {
        let workers = match (count(cell, "workers"), cell.cell.workload.parameters.get("sharing")) {
            (workers, _) if !flag(&cell.cell.workload, "first_worker_creates") => workers,
            (_, Some(Value::Word(sharing))) if sharing == "file" => 1,
            (workers, _) => workers,
        };
        let of = move |trial: &TrialRecord| {
            let mut all = trial.histograms.iter();
            let own = all.find(|own| own.phase == phase && own.kind == HistogramKind::Write)?;
            Some(own.histogram.count() / workers.max(1))
        };
        measured(record, index).filter_map(of).min()
    };
    record.cells.iter().enumerate().filter_map(created).min()
}

fn count(cell: &CellRecord, name: &str) -> u64 {
    samples::count(&cell.cell.workload, name).unwrap_or(0)
}

struct Output<'a> {
    record: &'a RunRecord,
    cell: &'a CellRecord,
    trials: Vec<&'a TrialRecord>,
    command: &'a MdtestCommand,
}

impl Output<'_> {
    fn text(&self, several: bool) -> String {
        let program = program(self.record);
        let workers = count(self.cell, "workers");
        let mut text = format!(
            "mdtest workload, measured by {program}, not by mdtest: {workers} worker{}\n",
            if workers == 1 { "" } else { "s" }
        );
        if several {
            let _ = writeln!(text, "Cell: {}", one_line(&self.cell.label));
        }
        if !self.command.words.is_empty() {
            let _ = writeln!(text, "Command line used: {}", one_line(&self.command.words));
        }
        let _ = writeln!(
            text,
            "{workers} tasks, {} {}\n",
            count(self.cell, "entries").saturating_mul(workers),
            self.kinds()
        );
        let iterations = self.trials.len();
        if self.command.tables != MdtestTables::Times {
            let title = format!("SUMMARY rate (in ops/sec): (of {iterations} iterations)");
            self.table(&mut text, &title, |rate| rate);
        }
        if self.command.tables == MdtestTables::Both {
            text.push('\n');
        }
        if self.command.tables != MdtestTables::Rates {
            let title = format!("SUMMARY time (in ms/op): (of {iterations} iterations)");
            self.table(&mut text, &title, |rate| if rate > 0.0 { 1e3 / rate } else { 0.0 });
            text.push_str(
                "fslab: times are milliseconds per operation; mdtest prints seconds per phase \
                 under this title\n",
            );
        }
        text
    }

    /// Kinds of the measured entries.
    fn kinds(&self) -> &'static str {
        let has = |kind: &str| {
            let mut phases = self.cell.phases.iter();
            phases.any(|phase| phase.role == Role::Measure && phase.name.starts_with(kind))
        };
        match (has("file-"), has("directory-")) {
            (true, false) => "files",
            (false, true) => "directories",
            (true, true) | (false, false) => "files/directories",
        }
    }

    fn table(&self, text: &mut String, title: &str, of: impl Fn(f64) -> f64) {
        let _ = writeln!(text, "{title}");
        let head = ["Max", "Min", "Mean", "Std Dev"];
        let rule = ["---", "---", "----", "-------"];
        for (name, columns) in [("Operation", head), ("---------", rule)] {
            let columns: String = columns.iter().map(|column| format!(" {column:>14}")).collect();
            let _ = writeln!(text, "   {name:<18}{columns}");
        }
        for (phase, name) in ROWS {
            let rates = self.trials.iter().filter_map(|trial| value(trial, phase, Metric::OpsRate));
            let values: Vec<f64> = rates.map(&of).collect();
            if values.is_empty() {
                continue;
            }
            let max = values.iter().copied().fold(f64::MIN, f64::max);
            let min = values.iter().copied().fold(f64::MAX, f64::min);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let deviation = Moments::of(&values).map_or(0.0, |own| own.deviation);
            let _ = writeln!(
                text,
                "   {name:<18}     {max:>14.3} {min:>14.3} {mean:>14.3} {deviation:>14.3}"
            );
        }
    }
}

#[cfg(test)]
mod tests;
