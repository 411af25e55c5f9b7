//! Creates a run from measurements.

use std::collections::BTreeMap;

use model::{
    Cell, Environment, FilesystemLevel, FillLevel, Nanos, Profile, RunRecord, Scale, Value,
    Warning, WorkloadParameters,
    record::{CellRecord, CellState, Outcome, PhaseInfo, RunInfo, TrialRecord},
};

use super::Measurement;
use crate::units::distinct;

/// Name of a configuration that has none.
pub(crate) const UNNAMED: &str = "unknown";

/// Information that only the caller has.
#[derive(Clone, Debug)]
pub struct Importing<'a> {
    /// Unique ID of the new run.
    pub id: String,
    /// Source of the measurements: file names.
    pub source: &'a str,
    /// Time of the import, in nanoseconds since 1970-01-01 UTC.
    pub now: Nanos,
    /// Facts about the measurements that the user states, such as `kernel`.
    pub facts: Vec<(String, String)>,
}

/// Creates a run from these measurements. Measurements with the same name and workload are
/// repetitions of one cell, in the given order.
///
/// A run file requires a start and a duration of each trial. Trials whose file does not contain
/// them get the time of the import and zero.
pub fn assemble(measurements: Vec<Measurement>, importing: Importing<'_>) -> RunRecord {
    let program = programs(&measurements);
    let mut cells: Vec<CellRecord> = Vec::new();
    let mut ranks: Vec<BTreeMap<String, (usize, PhaseInfo)>> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts: Vec<u32> = Vec::new();
    let mut trials: Vec<TrialRecord> = Vec::new();
    for measurement in measurements {
        let new = cell(&measurement);
        let index = *places.entry(new.id.to_string()).or_insert(cells.len());
        if index == cells.len() {
            cells.push(new);
            ranks.push(BTreeMap::new());
            counts.push(0);
        }
        for (rank, phase) in &measurement.phases {
            let own = || (*rank, phase.clone());
            let known = ranks[index].entry(phase.name.clone()).or_insert_with(own);
            // A file without an earlier phase has a lower rank.
            known.0 = known.0.max(*rank);
        }
        trials.push(trial(measurement, index, counts[index], importing.now));
        counts[index] += 1;
    }
    for (cell, phases) in cells.iter_mut().zip(ranks) {
        let mut phases: Vec<(usize, PhaseInfo)> = phases.into_values().collect();
        phases.sort_by_key(|(rank, _)| *rank);
        cell.phases = phases.into_iter().map(|(_, phase)| phase).collect();
    }
    distinguish(&mut cells);
    let mut environment = Environment::default();
    for (name, value) in &importing.facts {
        environment.set(format!("stated.{name}"), value.as_str());
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
            storage: format!("unknown: imported from {program}"),
            started_unix: importing.now,
            ended_unix: Some(importing.now),
            program: program.clone(),
        },
        environment,
        cells,
        trials,
        warnings: vec![Warning::Imported { program }],
    }
}

/// Programs that measured, such as `bonnie++ 1.96, 1.97` or `fio-3.28, fio-3.33`.
fn programs(measurements: &[Measurement]) -> String {
    let names = distinct(measurements.iter().map(|own| own.program.as_str()));
    let mut text = String::new();
    let mut before = "";
    for name in names {
        // The name of the program is not repeated if its version is a separate word.
        let (program, version) = name.split_once(' ').unwrap_or(("", name));
        match text.is_empty() {
            true => text.push_str(name),
            false if program == before && !program.is_empty() => {
                text.push_str(&format!(", {version}"));
            }
            false => text.push_str(&format!(", {name}")),
        }
        before = program;
    }
    text
}

fn cell(measurement: &Measurement) -> CellRecord {
    let workload = WorkloadParameters {
        suite: measurement.suite.into(),
        parameters: measurement.parameters.clone(),
    };
    let name = measurement.name.as_deref().unwrap_or(UNNAMED);
    let cell = Cell {
        filesystem: FilesystemLevel {
            fs_type: "unknown".into(),
            ..FilesystemLevel::plain(printable(name))
        },
        workload,
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
    };
    let label = match measurement.label.as_str() {
        "" => measurement.suite.to_owned(),
        label => format!("{} {label}", measurement.suite),
    };
    CellRecord {
        id: cell.id(),
        label: printable(&label),
        state: CellState::Done { reason: "fixed: number of records".into() },
        phases: Vec::new(),
        cell,
    }
}

/// Adds the parameters that differ between cells of the same label to these labels.
fn distinguish(cells: &mut [CellRecord]) {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        groups.entry(cell.label.clone()).or_default().push(index);
    }
    for group in groups.into_values().filter(|group| group.len() > 1) {
        let value = |index: usize, name: &str| -> Option<Value> {
            cells[index].cell.workload.parameters.get(name).cloned()
        };
        let names = group.iter().flat_map(|index| cells[*index].cell.workload.parameters.keys());
        let names: std::collections::BTreeSet<String> = names.cloned().collect();
        let varies =
            |name: &&String| group.windows(2).any(|two| value(two[0], name) != value(two[1], name));
        let varying: Vec<String> = names.iter().filter(varies).cloned().collect();
        let added: Vec<(usize, String)> = group
            .iter()
            .map(|index| {
                let own = varying.iter().filter_map(|name| {
                    Some(format!(" {name}={}", printable(&value(*index, name)?.to_string())))
                });
                (*index, own.collect())
            })
            .collect();
        for (index, text) in added {
            cells[index].label.push_str(&text);
        }
    }
}

fn trial(measurement: Measurement, cell: usize, repetition: u32, now: Nanos) -> TrialRecord {
    let mut warnings = measurement.warnings;
    warnings.push((None, Warning::Imported { program: measurement.program }));
    let measured = measurement.outcome == Outcome::Measured;
    TrialRecord {
        cell,
        repetition,
        attempt: 0,
        started_unix: measurement.started_unix.unwrap_or(now),
        elapsed: measurement.elapsed,
        outcome: measurement.outcome,
        samples: if measured { measurement.samples } else { Vec::new() },
        histograms: if measured { measurement.histograms } else { Vec::new() },
        series: Vec::new(),
        activity: Vec::new(),
        warnings,
        actions: Vec::new(),
        environment: measurement.facts,
        hosts: Vec::new(),
    }
}

/// Text with a dash for each control character, so that a terminal can show it.
fn printable(text: &str) -> String {
    text.replace(char::is_control, "-")
}
