//! Runs of suite `iozone` in the text layout of IOzone: columns of its single-stream mode, and
//! lines of its throughput mode, with one or more reports per filesystem.
//!
//! The head has the lines of IOzone 3.471 in their order and number, because scripts search for
//! them and count them. Its first line states that fslab measured, to prevent confusion with
//! results of IOzone. A value is the median of the repetitions in KiB/s, truncated to an integer as
//! in IOzone. Data that the layout lacks (repetitions, intervals, warnings, durable throughput) are
//! in the other formats. A/A duplicates and failed and invalid trials are excluded.

mod biff;
mod body;
mod head;

use std::collections::BTreeSet;

use model::{
    RunRecord, WorkloadParameters,
    phase::Role,
    record::{CellRecord, TrialRecord},
};

use self::body::Body;
use crate::program_layout::{NotInLayout, cells_of, program};
use crate::{
    samples::{self, flag, imported, measured},
    units::{distinct, one_line, span, utc},
};

/// Suite whose cells are exported.
const SUITE: &str = "iozone";

/// Parameters of a cell, and its measured trials.
type Member<'a> = (&'a WorkloadParameters, Vec<&'a TrialRecord>);

/// Unit of the results in an output of IOzone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IozoneUnit {
    /// KiB per second.
    #[default]
    KiloBytes,
    /// Operations per second (`-O`).
    Operations,
    /// Microseconds per operation (`-N`).
    Micros,
}

/// Command line of IOzone that an output belongs to.
#[derive(Clone, Debug, Default)]
pub struct IozoneCommand {
    /// Command line.
    pub words: String,
    /// Lines of the options, in the order of the command line.
    pub options: Vec<String>,
    /// Unit of the results.
    pub unit: IozoneUnit,
    /// Print a table of each test (`-R`).
    pub tables: bool,
    /// Print a line of each worker (`-C`).
    pub workers: bool,
}

/// Formats a run of suite `iozone` in the text layout of IOzone.
///
/// # Errors
/// [`NotInLayout`] if the run has no measured trials of that suite.
pub fn iozone(record: &RunRecord) -> Result<String, NotInLayout> {
    output(record, None)
}

/// Formats a run of suite `iozone` as the output of a command line of IOzone.
///
/// # Errors
/// As [`iozone()`].
pub fn iozone_output(record: &RunRecord, command: &IozoneCommand) -> Result<String, NotInLayout> {
    output(record, Some(command))
}

/// Tables of a run of suite `iozone` as a workbook of Excel 2.1 (BIFF2), as `iozone -b` writes it.
///
/// # Errors
/// As [`iozone()`].
pub fn iozone_workbook(
    record: &RunRecord,
    command: &IozoneCommand,
) -> Result<Vec<u8>, NotInLayout> {
    let ours = ours(record)?;
    let name = ours.first().map_or("", |(_, own)| own.cell.filesystem.name.as_str());
    let reports = reports(record, &ours, name);
    let Some(report) = reports.first() else { return Err(NotInLayout::NothingMeasured(SUITE)) };
    let tables = Body::new(&report.members, command.unit).tables();
    let caption = format!("iozone workload, {}", program(record));
    Ok(biff::workbook(&command.words, &caption, &tables))
}

/// Cells of the suite with their indexes.
fn ours(record: &RunRecord) -> Result<Vec<(usize, &CellRecord)>, NotInLayout> {
    cells_of(record, &[SUITE], "IOzone")
}

fn output(record: &RunRecord, command: Option<&IozoneCommand>) -> Result<String, NotInLayout> {
    let ours = ours(record)?;
    let mut names: Vec<&str> = Vec::new();
    let mut text = String::new();
    for (_, own) in &ours {
        let name = own.cell.filesystem.name.as_str();
        if names.contains(&name) {
            continue;
        }
        names.push(name);
        for Report { words, members, .. } in reports(record, &ours, name) {
            head(&mut text, record, name, &words, &members, command);
            let unit = command.map_or_else(IozoneUnit::default, |command| command.unit);
            Body::new(&members, unit).write(&mut text, command);
        }
    }
    if text.is_empty() { Err(NotInLayout::NothingMeasured(SUITE)) } else { Ok(text) }
}

/// Cells of a filesystem in one report. They differ only in file size, block size, workers, and
/// tests, and no two of them have a value for the same row and column.
struct Report<'a> {
    /// Properties that the cells have in common, as text.
    words: String,
    members: Vec<Member<'a>>,
    /// File size and block size in KiB, and test, of each value in the rows.
    taken: BTreeSet<(u64, u64, &'static str)>,
}

fn reports<'a>(
    record: &'a RunRecord,
    ours: &[(usize, &'a CellRecord)],
    name: &str,
) -> Vec<Report<'a>> {
    let filled = ours.iter().any(|(_, own)| !own.cell.fill_level.is_empty());
    let mut reports: Vec<Report<'a>> = Vec::new();
    for (index, own) in ours.iter().filter(|(_, own)| own.cell.filesystem.name == name) {
        let trials: Vec<&TrialRecord> = measured(record, *index).collect();
        if trials.is_empty() {
            continue;
        }
        let cell = &own.cell;
        let mut words = parameters(&cell.workload);
        words.extend(cell.scheduler.iter().map(|name| format!("scheduler={name}")));
        words.extend(filled.then(|| format!("fill={}%", cell.fill_level.0)));
        words.extend(cell.settings.iter().map(|(factor, value)| format!("{factor}={value}")));
        let words = one_line(&words.join(" "));
        let member = (&cell.workload, trials);
        let places = places(&member);
        let free =
            |report: &&mut Report<'a>| report.words == words && report.taken.is_disjoint(&places);
        match reports.iter_mut().find(free) {
            Some(report) => {
                report.members.push(member);
                report.taken.extend(places);
            }
            None => reports.push(Report { words, members: vec![member], taken: places }),
        }
    }
    disambiguate(&mut reports);
    reports
}

/// Rows and columns that show the values of a cell. Lines of the throughput mode are not included,
/// because they are appended.
fn places((point, trials): &Member) -> BTreeSet<(u64, u64, &'static str)> {
    if count(point, "workers") > 0 {
        return BTreeSet::new();
    }
    let (file, record) = body::sizes(point);
    body::row(trials).into_keys().map(|test| (file, record, test)).collect()
}

/// Adds the names of the tests to heads that would otherwise be equal.
fn disambiguate(reports: &mut [Report<'_>]) {
    let all: Vec<String> = reports.iter().map(|report| report.words.clone()).collect();
    for report in reports {
        if all.iter().filter(|words| **words == report.words).count() < 2 {
            continue;
        }
        let points = report.members.iter().map(|(point, _)| point.parameters.get("tests"));
        let mut tests: Vec<String> =
            points.flatten().map(|tests| format!("tests={tests}")).collect();
        tests.sort();
        tests.dedup();
        let words = [std::slice::from_ref(&report.words), tests.as_slice()].concat().join(" ");
        report.words = one_line(words.trim());
    }
}

/// Head of a report.
fn head(
    text: &mut String,
    record: &RunRecord,
    filesystem: &str,
    words: &str,
    members: &[Member],
    given: Option<&IozoneCommand>,
) {
    let repetitions = members.iter().map(|(_, trials)| trials.len());
    let repetitions = span(repetitions.map(|count| u32::try_from(count).unwrap_or(u32::MAX)));
    let noun = if repetitions == "1" { "repetition" } else { "repetitions" };
    let unknown = "not recorded".to_owned();
    let fact = |name: &str| record.environment.get(name).map_or_else(|| unknown.clone(), one_line);
    let caches = distinct(
        record
            .cells
            .iter()
            .flat_map(|cell| &cell.phases)
            .filter_map(|phase| (phase.role == Role::Measure).then_some(phase.cache?.name())),
    );
    let caches = if caches.is_empty() { unknown.clone() } else { caches.join(", ") };
    let foreign = imported(record);
    let (command, meaning) = match foreign {
        Some(program) => {
            ("fslab import", format!("Throughput as printed by {}", one_line(program)))
        }
        None => ("fslab run", "Accepted throughput, without the final sync".to_owned()),
    };
    head::write(
        text,
        &head::Head {
            program: &record.info.program,
            is_imported: foreign.is_some(),
            about: [
                format!("Run {}: {}", one_line(&record.info.id), one_line(&record.info.title)),
                format!("Filesystem {}; {words}", one_line(filesystem)),
                format!("Storage {}", one_line(&record.info.storage)),
                format!("Kernel {}", fact("kernel.release")),
                format!("Median of {repetitions} {noun}"),
                format!("Cache state before the tests: {caches}"),
                meaning,
            ],
            began: utc(record.info.started_unix),
            options: given.map_or_else(|| options(members), |given| given.options.clone()),
            command: match given {
                Some(given) => one_line(&given.words),
                None => format!("{command} {}", one_line(&record.info.plan_name)),
            },
            unit: given.map_or_else(IozoneUnit::default, |given| given.unit),
        },
    );
}

/// Lines of IOzone for the options of the cells.
fn options(members: &[Member]) -> Vec<String> {
    let set =
        |name: &str| !members.is_empty() && members.iter().all(|(point, _)| flag(point, name));
    let flags = [
        ("include_fsync", "Include fsync in write timing"),
        ("include_close", "Include close in write timing"),
        ("direct", "O_DIRECT feature enabled"),
        ("o_sync", "SYNC Mode. "),
        ("o_dsync", "DSYNC Mode. "),
    ];
    let mut lines: Vec<String> =
        flags.iter().filter(|(name, _)| set(name)).map(|(_, line)| (*line).to_owned()).collect();
    let sizes = |name: &str| {
        distinct(members.iter().map(|(point, _)| kib(point, name)).filter(|size| *size > 0))
    };
    let (files, blocks) = (sizes("file_size"), sizes("block_size"));
    if files.len() > 1 || blocks.len() > 1 {
        lines.push("Auto Mode".into());
    }
    // As in IOzone, a range has no line per size.
    if let [file] = files[..] {
        lines.push(format!("File size set to {file} kB"));
    }
    if let [block] = blocks[..] {
        lines.push(format!("Record Size {block} kB"));
    }
    lines
}

/// Parameters other than file size, block size, tests, and workers, as `name=value`.
fn parameters(point: &WorkloadParameters) -> Vec<String> {
    let own =
        |name: &&String| !matches!(name.as_str(), "file_size" | "block_size" | "tests" | "workers");
    let names = point.parameters.keys().filter(own);
    names.map(|name| format!("{name}={}", point.parameters[name])).collect()
}

fn kib(point: &WorkloadParameters, name: &str) -> u64 {
    samples::size(point, name).map_or(0, |size| size.0 / 1024)
}

fn count(point: &WorkloadParameters, name: &str) -> u64 {
    samples::count(point, name).unwrap_or(0)
}

#[cfg(test)]
mod tests;
