//! Import of bonnie++ records as a run, with their source stated in all reports.
//!
//! Each record becomes a repetition of a cell of suite `bonnie`. Records with the same name and
//! workload are repetitions of one cell. Data that a record does not contain are omitted: the
//! workload has the recorded parameters only, storage and machine are unknown, and a phase with
//! plus signs has a warning instead of a sample. The run and every trial have
//! [`Warning::Imported`], so that reports derive no findings.

use std::collections::BTreeMap;

use model::{
    Bytes, Cell, Environment, FilesystemLevel, FillLevel, Metric, Nanos, Profile, RunRecord,
    Sample, Scale, Value, Warning, WorkloadParameters,
    phase::Role,
    record::{CellRecord, CellState, Outcome, PhaseInfo, RunInfo, TrialRecord},
};

use super::{Figure, Largest, PHASES, PhaseFigures, Record, SEEKS, export::SUITE};
use crate::units::distinct;

/// Storage of imported filesystems.
const STORAGE: &str = "unknown: imported from a bonnie++ record";

/// Information that only the importer has.
#[derive(Clone, Debug)]
pub struct Importing<'a> {
    /// Unique ID of the new run.
    pub id: String,
    /// Source of the records: file names.
    pub source: &'a str,
    /// Time of the import, in nanoseconds since 1970-01-01 UTC. Records do not contain the time of
    /// measurement.
    pub now: Nanos,
}

/// Creates a run from these records. Records do not contain start and duration of a trial; the run
/// file requires values and gets the import time and zero, which reports do not show.
pub fn import(records: &[Record], importing: Importing<'_>) -> RunRecord {
    let program = programs(records);
    let mut cells: Vec<CellRecord> = Vec::new();
    let mut trials: Vec<TrialRecord> = Vec::new();
    for record in records {
        let fresh = cell(record);
        let index = match cells.iter().position(|known| known.id == fresh.id) {
            Some(index) => index,
            None => {
                cells.push(fresh);
                cells.len() - 1
            }
        };
        add_phases(&mut cells[index].phases, record);
        let before = trials.iter().filter(|trial| trial.cell == index).count();
        let repetition = u32::try_from(before).unwrap_or(u32::MAX);
        trials.push(trial(record, index, repetition, importing.now));
    }
    RunRecord {
        info: RunInfo {
            id: importing.id,
            title: format!("Imported, not measured by fslab: {program}"),
            plan_name: importing.source.into(),
            plan_text: String::new(),
            overrides: Vec::new(),
            scale: Scale::default(),
            profile: Profile::Standard,
            repetitions: None,
            seed: 0,
            study: None,
            storage: STORAGE.into(),
            started_unix: importing.now,
            ended_unix: Some(importing.now),
            program: program.clone(),
        },
        environment: Environment::default(),
        cells,
        trials,
        warnings: vec![Warning::Imported { program }],
    }
}

/// Program that measured, with all versions, such as `bonnie++ 1.96, 1.97`.
fn programs(records: &[Record]) -> String {
    let versions = distinct(records.iter().map(|record| record.version.as_str()));
    of_version(&versions.join(", "))
}

/// Name of the program with this version. The version of records exported by fslab begins with
/// `fslab-`.
fn of_version(version: &str) -> String {
    match version.strip_prefix("fslab-") {
        Some(version) => format!("fslab {version}, bonnie++ format"),
        None => format!("bonnie++ {version}"),
    }
}

fn cell(record: &Record) -> CellRecord {
    let workload = WorkloadParameters { suite: SUITE.into(), parameters: parameters(record) };
    let filesystem = FilesystemLevel {
        fs_type: "unknown".into(),
        ..FilesystemLevel::plain(printable(&record.name))
    };
    let cell = Cell {
        filesystem,
        workload,
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
    };
    let known = ["file_size", "files"].into_iter().filter_map(|name| {
        let value = cell.workload.parameters.get(name)?;
        Some(format!(" {name}={value}"))
    });
    CellRecord {
        id: cell.id(),
        label: format!("{SUITE}{}", known.collect::<String>()),
        state: CellState::Done { reason: "fixed: number of records".into() },
        phases: Vec::new(),
        cell,
    }
}

/// Workload parameters in the record, with their names in the suite.
fn parameters(record: &Record) -> BTreeMap<String, Value> {
    let size = |size: u64| Value::Size(Bytes(size));
    let (largest, links) = match record.largest {
        None => (None, None),
        Some(Largest::Bytes(bytes)) => (Some(size(bytes)), None),
        Some(Largest::Link) => (None, Some(Value::Word("hard".into()))),
        Some(Largest::Symlink) => (None, Some(Value::Word("symbolic".into()))),
    };
    let known = [
        ("file_size", record.file.map(Value::Size)),
        ("block_size", record.chunk.map(Value::Size)),
        ("seeks", record.seeks.map(Value::Count)),
        ("seekers", record.seekers.map(Value::Count)),
        ("files", record.files.map(|files| Value::Count(files.saturating_mul(1024)))),
        ("small_file_size_max", largest),
        ("small_file_size_min", record.smallest.map(size)),
        ("directories", record.directories.map(Value::Count)),
        ("small_file_block_size", record.file_chunk.map(size)),
        ("links", links),
        ("workers", record.concurrency.map(Value::Count)),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Adds the phases with results in the record, keeping the order of [`PHASES`].
fn add_phases(phases: &mut Vec<PhaseInfo>, record: &Record) {
    let ran = |name: &str| {
        let at = PHASES.iter().position(|phase| *phase == name);
        at.is_some_and(|at| record.phases[at] != PhaseFigures::default())
            || phases.iter().any(|phase| phase.name == name)
    };
    let ran: Vec<PhaseInfo> = (0..PHASES.len())
        .filter(|at| ran(PHASES[*at]))
        .map(|at| PhaseInfo {
            name: PHASES[at].into(),
            group: group(PHASES[at]).into(),
            role: Role::Measure,
            primary: primary(at),
            cache: None,
        })
        .collect();
    *phases = ran;
}

/// Heading of a phase in the suite.
fn group(phase: &str) -> &'static str {
    match phase {
        "putc" | "put-block" | "rewrite" => "sequential output",
        "getc" | "get-block" => "sequential input",
        "seeks" => "random seeks",
        other if other.starts_with("seq-") => "sequential create",
        _ => "random create",
    }
}

fn primary(at: usize) -> Metric {
    if at < SEEKS { Metric::Throughput } else { Metric::OpsRate }
}

fn trial(record: &Record, cell: usize, repetition: u32, now: Nanos) -> TrialRecord {
    let (mut samples, mut warnings) = (Vec::new(), Vec::new());
    for (at, (name, phase)) in PHASES.into_iter().zip(record.phases).enumerate() {
        let unit = if at < SEEKS { 1024.0 } else { 1.0 };
        let mut short = false;
        for (metric, figure, unit) in
            [(primary(at), phase.rate, unit), (Metric::CpuUtilization, phase.cpu, 0.01)]
        {
            match figure {
                Figure::Empty => {}
                Figure::Short => short = true,
                Figure::Known(value) => samples.push(sample(name, metric, value * unit)),
            }
        }
        if short {
            warnings.push((Some(name.to_owned()), withheld()));
        }
        if let Some(latency) = phase.latency {
            samples.push(sample(name, Metric::LatencyMax, latency.seconds() * 1e9));
        }
    }
    warnings.push((None, Warning::Imported { program: of_version(&record.version) }));
    let mut environment = Environment::default();
    environment.set("bonnie.format", record.format.name());
    environment.set("bonnie.version", record.version.as_str());
    environment.set("bonnie.name", record.name.as_str());
    if !record.seed.is_empty() {
        environment.set("bonnie.seed", record.seed.as_str());
    }
    TrialRecord {
        cell,
        repetition,
        attempt: 0,
        started_unix: now,
        elapsed: Nanos(0),
        outcome: Outcome::Measured,
        samples,
        histograms: Vec::new(),
        series: Vec::new(),
        activity: Vec::new(),
        warnings,
        actions: Vec::new(),
        environment,
    }
}

fn sample(phase: &str, metric: Metric, value: f64) -> Sample {
    Sample { phase: phase.into(), metric, worker: None, value }
}

/// Warning instead of a number that the record does not contain. It is the same for all phases, so
/// that a report shows it once.
pub(super) fn withheld() -> Warning {
    Warning::NotAvailable {
        what: "rate of a phase shorter than 0.5 s".into(),
        why: "the record has plus signs instead".into(),
    }
}

/// Name with a dash for each control character, so that a terminal can show it.
fn printable(name: &str) -> String {
    name.replace(char::is_control, "-")
}
