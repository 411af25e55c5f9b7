//! Runs of suites `stream` and `fio` in the formats of fio, for programs that read them: JSON,
//! JSON with histograms, text, and terse version 3.
//!
//! An entry is one measured phase of a cell, in its measured repetition whose primary metric is
//! the median, the lower one of two. In suite `fio`, the phases are the sections of the job, and
//! the first one selects the repetition. Each entry is a repetition that happened, never a mean.
//! The version states that fslab measured. Keys have the meaning and the unit that they have in
//! fio 3.33. A value that fslab does not measure is 0 where fio writes 0. The key `fslab` has the
//! run, the repetition, and the differences from fio.

mod entry;
mod layout;
mod section;
mod terse;
mod text;

use crate::program_layout::{NotInLayout, cells_of, program};
use model::{
    Metric, RunRecord,
    phase::Role,
    record::{CellRecord, PhaseInfo, TrialRecord},
};

use self::{layout::Node, section::Section};
use crate::{
    samples::{measured, value},
    units::{one_line, slug},
};

/// Suites whose cells are exported.
const SUITES: [&str; 2] = ["stream", "fio"];

/// Format of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FioFormat {
    /// JSON.
    Json,
    /// JSON with histograms (JSON+).
    JsonPlus,
    /// Text as on a terminal.
    Normal,
    /// Terse, version 3: one line per job.
    Terse,
}

/// Differences from fio that no key shows.
const DIFFERENCES: [&str; 5] = [
    "each job is one repetition on a new filesystem: the one with the median of the main result",
    "writes are incompressible and, with end_fsync, rates include the final sync as in fio",
    "latency with a rate is the service time, as in fio; other reports measure from the scheduled \
     start",
    "with verify, blocks are checked by the header of fslab, in a separate job NAME-verify",
    "percentiles are at most 0.4 % off; CPU is that of the workers, without kernel threads",
];

/// Repetition of a cell in the document.
struct Job<'a> {
    cell: &'a CellRecord,
    phase: &'a PhaseInfo,
    trial: &'a TrialRecord,
    repetitions: usize,
    // Options of a section of suite `fio`.
    section: Option<Section>,
    // Number of its group: sections that run at the same time, or the cell.
    group: usize,
}

/// Writes the run in a format of fio.
///
/// # Errors
/// [`NotInLayout`] if the run has no measured repetitions of suites `stream` and `fio`.
pub fn fio(record: &RunRecord, format: FioFormat) -> Result<String, NotInLayout> {
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for (index, cell) in cells_of(record, &SUITES, "fio")? {
        let first = jobs.last().map_or(0, |job| job.group + 1);
        jobs.extend(jobs_of(record, index, cell, first));
    }
    if jobs.is_empty() {
        return Err(NotInLayout::NothingMeasured(SUITES[0]));
    }
    let seconds = record.info.ended_unix.unwrap_or(record.info.started_unix).0 / 1_000_000_000;
    let version = program(record).replace("fslab ", "fslab-");
    match format {
        FioFormat::Normal => return Ok(text::normal(&jobs, &version)),
        FioFormat::Terse => return Ok(terse::terse(&jobs, &version)),
        FioFormat::Json | FioFormat::JsonPlus => {}
    }
    let bins = format == FioFormat::JsonPlus;
    let entries = jobs.iter().map(|job| entry::entry(job, bins));
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

/// Measured phases of a cell in its median repetition; empty if no repetition has a rate.
fn jobs_of<'a>(
    record: &'a RunRecord,
    index: usize,
    cell: &'a CellRecord,
    first_group: usize,
) -> Vec<Job<'a>> {
    let phases = cell.phases.iter().filter(|phase| phase.role == Role::Measure);
    let mut sections = section::sections(cell).into_iter();
    let mut median = None;
    let mut group = first_group;
    let mut jobs: Vec<Job<'a>> = Vec::new();
    for phase in phases {
        if median.is_none() {
            median = median_of(record, index, phase);
        }
        let Some((trial, repetitions)) = median else { return Vec::new() };
        let section = sections.next();
        if !jobs.is_empty() && section.as_ref().is_none_or(Section::begins_group) {
            group += 1;
        }
        jobs.push(Job { cell, phase, trial, repetitions, section, group });
    }
    jobs
}

/// Median repetition of a phase, and the number of repetitions with a rate.
fn median_of<'a>(
    record: &'a RunRecord,
    index: usize,
    phase: &PhaseInfo,
) -> Option<(&'a TrialRecord, usize)> {
    let mut trials: Vec<(f64, &TrialRecord)> = measured(record, index)
        .filter_map(|trial| Some((value(trial, &phase.name, phase.primary)?, trial)))
        .filter(|(_, trial)| value(trial, &phase.name, Metric::Throughput).is_some())
        .collect();
    trials.sort_by(|one, other| one.0.total_cmp(&other.0));
    let repetitions = trials.len();
    let (_, trial) = *trials.get(repetitions.checked_sub(1)? / 2)?;
    Some((trial, repetitions))
}

/// Name of a job: that of its section; otherwise filesystem, phase, and the start of the cell ID,
/// so that equal names are the same cell.
fn name(job: &Job<'_>) -> String {
    if let Some(section) = &job.section {
        return one_line(&section.name);
    }
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
