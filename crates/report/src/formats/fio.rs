//! Runs of suite `stream` as a JSON document of fio, for programs that read such documents.
//!
//! An entry of `jobs` is one cell: its measured repetition whose primary metric is the median, the
//! lower one of two. Each entry is a repetition that happened, never a mean. The version states
//! that fslab measured. Keys have the meaning and the unit that they have in fio 3.33. A value that
//! fslab does not measure is 0 where fio writes 0. The key `fslab` has the run, the repetition, and
//! the differences from fio.

mod entry;
mod layout;

use model::{
    Metric, RunRecord,
    phase::Role,
    record::{CellRecord, Outcome, PhaseInfo, TrialRecord},
};
use thiserror::Error;

use self::layout::Node;
use crate::units::{one_line, slug};

/// Suite whose cells are exported.
const SUITE: &str = "stream";

/// Reason that a run cannot be written as a document of fio.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotFio {
    /// The run has no cells of suite `stream`.
    #[error(
        "the run has no cells of suite stream, and only these make a document of fio; run a plan \
         with `suite = \"stream\"`, or print this run with --format json"
    )]
    OtherSuite,
    /// No repetition has a rate.
    #[error(
        "no repetition of suite stream has a rate in time; `fslab report` without --format prints \
         the reason"
    )]
    NothingMeasured,
}

/// Differences from fio that no key shows.
const DIFFERENCES: [&str; 4] = [
    "each job is one repetition on a new filesystem: the one with the median of the main result",
    "writes are incompressible and, with end_fsync, rates include the final sync as in fio",
    "latency with a rate is measured from the scheduled start of the operation",
    "percentiles are at most 0.4 % off; CPU is that of the workers, without kernel threads",
];

/// Repetition of a cell in the document.
struct Job<'a> {
    cell: &'a CellRecord,
    phase: &'a PhaseInfo,
    trial: &'a TrialRecord,
    repetitions: usize,
}

/// Writes the document. With `bins`, latencies have histograms as in JSON+.
///
/// # Errors
/// [`NotFio`] if the run has no measured repetitions of suite `stream`.
pub fn fio(record: &RunRecord, bins: bool) -> Result<String, NotFio> {
    let is_own = |cell: &CellRecord| cell.cell.workload.suite == SUITE && !cell.cell.aa_duplicate;
    if !record.cells.iter().any(is_own) {
        return Err(NotFio::OtherSuite);
    }
    let own = record.cells.iter().enumerate().filter(|(_, cell)| is_own(cell));
    let jobs: Vec<Job<'_>> = own.filter_map(|(index, cell)| job(record, index, cell)).collect();
    if jobs.is_empty() {
        return Err(NotFio::NothingMeasured);
    }
    let seconds = record.info.ended_unix.unwrap_or(record.info.started_unix).0 / 1_000_000_000;
    let version = one_line(&record.info.program);
    let version = version.split(" (").next().unwrap_or_default().replace("fslab ", "fslab-");
    let entries = jobs.iter().enumerate().map(|(group, job)| entry::entry(job, group, bins));
    let document = Node::object([
        ("fio version", Node::Text(version)),
        ("timestamp", Node::Int(seconds)),
        ("timestamp_ms", Node::Int(seconds.saturating_mul(1000))),
        ("time", Node::Text(crate::units::utc(record.info.started_unix))),
        ("jobs", Node::Array(entries.collect())),
        ("disk_util", Node::Array(Vec::new())),
        ("fslab", about(record, &jobs)),
    ]);
    Ok(document.document())
}

/// Median repetition of the measured phase of a cell; `None` if no repetition has a rate.
fn job<'a>(record: &'a RunRecord, index: usize, cell: &'a CellRecord) -> Option<Job<'a>> {
    let phase = cell.phases.iter().find(|phase| phase.role == Role::Measure)?;
    let trials = record.trials.iter();
    let mut trials: Vec<(f64, &TrialRecord)> = trials
        .filter(|trial| trial.cell == index && trial.outcome == Outcome::Measured)
        .filter_map(|trial| Some((value(trial, &phase.name, phase.primary)?, trial)))
        .filter(|(_, trial)| value(trial, &phase.name, Metric::Throughput).is_some())
        .collect();
    trials.sort_by(|one, other| one.0.total_cmp(&other.0));
    let repetitions = trials.len();
    let (_, trial) = *trials.get(repetitions.checked_sub(1)? / 2)?;
    Some(Job { cell, phase, trial, repetitions })
}

/// Value of a metric for all workers together.
fn value(trial: &TrialRecord, phase: &str, metric: Metric) -> Option<f64> {
    let mut own = trial.samples.iter().filter(|sample| sample.worker.is_none());
    own.find(|sample| sample.phase == phase && sample.metric == metric).map(|own| own.value)
}

/// Name of a job: filesystem, phase, and the start of the cell ID, so that equal names are the same
/// cell.
fn name(job: &Job<'_>) -> String {
    let name = format!("{} {}", job.cell.cell.filesystem.name, job.phase.name);
    let id: String = job.cell.id.to_string().chars().take(6).collect();
    format!("{}-{id}", slug(&one_line(&name)))
}

/// Facts that documents of fio do not have.
fn about(record: &RunRecord, jobs: &[Job<'_>]) -> Node {
    let text = |text: &str| Node::Text(one_line(text));
    let number = |number: usize| Node::Int(number.try_into().unwrap_or(u64::MAX));
    let repetitions = jobs.iter().map(|job| {
        let codes = job.trial.warnings.iter().map(|(_, warning)| text(warning.code())).collect();
        Node::object([
            ("jobname", Node::Text(name(job))),
            ("cell", Node::Text(job.cell.id.to_string())),
            ("filesystem", text(&job.cell.cell.filesystem.name)),
            ("workload", text(&job.cell.label)),
            ("repetition", Node::Int(job.trial.repetition.into())),
            ("repetitions", number(job.repetitions)),
            ("warnings", Node::Array(codes)),
        ])
    });
    Node::object([
        ("run", text(&record.info.id)),
        ("title", text(&record.info.title)),
        ("jobs", Node::Array(repetitions.collect())),
        ("differences", Node::Array(DIFFERENCES.iter().map(|own| text(own)).collect())),
    ])
}

#[cfg(test)]
mod tests;
