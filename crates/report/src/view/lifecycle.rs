//! Lifecycle of a filesystem: cost of mkfs, setup, mount, umount, and fsck, available space, and
//! space used by the files of the workload.
//!
//! The input is the samples of the steps in [`model::sample::lifecycle`]. Tables have one row per
//! filesystem and, if they vary, size and fill level, which summarizes the repetitions of all
//! workloads. CPU time and I/O have one row per step. Space after the workload has one row per
//! workload point.

use analysis::Summary;
use model::{
    Clock, FillLevel, Metric, RunRecord, SystemSetting,
    metric::Unit,
    record::{CellRecord, CellState, TrialRecord},
    sample::lifecycle::{FSCK, MKFS, MOUNT, SETUP, SPACE, UMOUNT},
};

use super::{
    activity::NOT_AVAILABLE,
    facts::Filesystem,
    sample_index::SampleIndex,
    tables::{Body, Column, Row, Table, TableCell, ValueCell, scale_of},
};
use crate::{
    samples::value,
    units::{grouped, one_line},
};

/// Column: title, base unit, text of a missing value, and the value of a trial at the step of the
/// row. Columns with a fixed step ignore the step of the row. [`Unit::Nanoseconds`] is replaced by
/// the unit of the clock, which is instructions in an icount guest.
type Quantity = (&'static str, Unit, &'static str, fn(&TrialRecord, &str) -> Option<f64>);

const TIMES: [Quantity; 5] = [
    ("mkfs", Unit::Nanoseconds, NOT_AVAILABLE, |trial, _| elapsed(trial, MKFS)),
    ("setup", Unit::Nanoseconds, "none", |trial, _| elapsed(trial, SETUP)),
    ("mount", Unit::Nanoseconds, NOT_AVAILABLE, |trial, _| elapsed(trial, MOUNT)),
    ("umount", Unit::Nanoseconds, NOT_AVAILABLE, |trial, _| elapsed(trial, UMOUNT)),
    ("fsck", Unit::Nanoseconds, NOT_AVAILABLE, |trial, _| elapsed(trial, FSCK)),
];

const WORK: [Quantity; 4] = [
    ("program", Unit::Nanoseconds, "no program", |trial, step| {
        let counted = value(trial, step, Metric::ProcessInstructions);
        counted.or_else(|| {
            let user = value(trial, step, Metric::UserTime)?;
            Some(user + value(trial, step, Metric::SystemTime)?)
        })
    }),
    ("kernel threads", Unit::Nanoseconds, NOT_AVAILABLE, |trial, step| {
        let counted = value(trial, step, Metric::KernelThreadInstructions);
        counted.or_else(|| value(trial, step, Metric::KernelThreadTime))
    }),
    ("read", Unit::Bytes, NOT_AVAILABLE, |trial, step| value(trial, step, Metric::DeviceBytesRead)),
    ("written", Unit::Bytes, NOT_AVAILABLE, |trial, step| {
        value(trial, step, Metric::DeviceBytesWritten)
    }),
];

const AVAILABLE: [Quantity; 3] = [
    ("available", Unit::Bytes, NOT_AVAILABLE, |trial, _| {
        value(trial, MKFS, Metric::SpaceAvailable)
    }),
    ("of device", Unit::Fraction, NOT_AVAILABLE, |trial, _| available_fraction(trial)),
    ("inodes", Unit::Count, "on demand", |trial, _| value(trial, MKFS, Metric::Inodes)),
];

const USED: [Quantity; 3] = [
    ("used", Unit::Bytes, NOT_AVAILABLE, |trial, _| value(trial, SPACE, Metric::SpaceUsed)),
    ("apparent size", Unit::Bytes, NOT_AVAILABLE, |trial, _| {
        value(trial, SPACE, Metric::ApparentSize)
    }),
    ("space amplification", Unit::Ratio, NOT_AVAILABLE, |trial, _| {
        value(trial, SPACE, Metric::SpaceAmplification)
    }),
];

/// Subject of a row: cells of a filesystem, and a step if the table has one row per step.
#[derive(Clone)]
struct Subject {
    title: String,
    filesystem: usize,
    cells: Vec<usize>,
    step: &'static str,
}

/// Definition of a table.
struct Frame {
    id: &'static str,
    title: &'static str,
    corner: &'static str,
    caption: &'static [&'static str],
    /// Title and first clause of the caption in icount guests.
    icount: Option<(&'static str, &'static str)>,
    columns: &'static [Quantity],
}

const ALL_REPETITIONS: &str = "over the repetitions of all workloads";

const FRAMES: [Frame; 4] = [
    Frame {
        id: "time",
        title: "Lifecycle times",
        corner: "filesystem",
        caption: &["Elapsed, lower is better ↓", ALL_REPETITIONS],
        icount: Some((
            "Lifecycle instructions",
            "Guest instructions of each step, all processes included, lower is better ↓",
        )),
        columns: &TIMES,
    },
    Frame {
        id: "work",
        title: "Lifecycle CPU time and I/O",
        corner: "filesystem · step",
        caption: &[
            "CPU time of the program of the step and of attributed kernel threads, lower is better \
             ↓; bytes read and written by the devices, informational",
            ALL_REPETITIONS,
        ],
        icount: Some((
            "Lifecycle instructions by consumer, and I/O",
            "Guest instructions of the program of the step and of attributed kernel threads, lower \
             is better ↓; bytes read and written by the devices, informational",
        )),
        columns: &WORK,
    },
    Frame {
        id: "space",
        title: "Available space",
        corner: "filesystem",
        caption: &[
            "Space for unprivileged users after mkfs, and its fraction of the device or image, \
             higher is better ↑; inodes, informational",
            ALL_REPETITIONS,
        ],
        icount: None,
        columns: &AVAILABLE,
    },
    Frame {
        id: "taken",
        title: "Space after the workload",
        corner: "filesystem",
        caption: &[
            "Space allocated by the workload (without mkfs and filling), measured after a sync, \
             and per byte of file data, lower is better ↓; apparent size of the files, \
             informational",
        ],
        icount: None,
        columns: &USED,
    },
];

/// All lifecycle tables with values.
pub(crate) fn lifecycle(sample_index: &SampleIndex, filesystems: &[Filesystem]) -> Vec<Table> {
    let record = sample_index.record;
    let fullness = varies(record, |cell| cell.cell.fill_level);
    let labels = varies(record, |cell| cell.label.clone());
    let size =
        |cell: &CellRecord| cell.cell.settings.get(&SystemSetting::Size).map(ToString::to_string);
    let sizes = varies(record, size);
    let by_fullness = subjects(record, filesystems, |cell| {
        let size = size(cell).filter(|_| sizes);
        let fullness = fullness.then(|| full(cell.cell.fill_level));
        size.into_iter().chain(fullness).collect::<Vec<_>>().join(" · ")
    });
    let by_point = subjects(record, filesystems, |cell| match labels {
        true => one_line(&cell.label),
        false => String::new(),
    });
    let by_step: Vec<Subject> = by_fullness
        .iter()
        .flat_map(|subject| {
            [MKFS, SETUP, MOUNT, UMOUNT, FSCK].map(|step| Subject {
                title: format!("{} · {step}", subject.title),
                step,
                ..subject.clone()
            })
        })
        .collect();
    let rows = [&by_fullness, &by_step, &by_fullness, &by_point];
    let tables = FRAMES.iter().zip(rows).filter_map(|(frame, subjects)| {
        let mut table = table(frame, subjects, record, sample_index, filesystems)?;
        table.state_n();
        Some(table)
    });
    tables.collect()
}

fn full(fullness: FillLevel) -> String {
    if fullness.is_empty() { "empty".into() } else { format!("{fullness} full") }
}

fn varies<T: PartialEq>(record: &RunRecord, of: impl Fn(&CellRecord) -> T) -> bool {
    record.cells.windows(2).any(|two| of(&two[0]) != of(&two[1]))
}

/// One subject per filesystem and label of its cells, in plan order, without A/A duplicates.
/// `apart` returns the label of a cell; empty if the filesystem has a single row.
fn subjects(
    record: &RunRecord,
    filesystems: &[Filesystem],
    apart: impl Fn(&CellRecord) -> String,
) -> Vec<Subject> {
    let all = filesystems.iter().enumerate().flat_map(|(filesystem, Filesystem { name, .. })| {
        let cells =
            record.cells.iter().enumerate().filter(move |(_, cell)| {
                !cell.cell.aa_duplicate && cell.cell.filesystem.name == *name
            });
        let apart = &apart;
        cells.map(move |(index, cell)| {
            let apart = apart(cell);
            let title = match apart.is_empty() {
                true => name.clone(),
                false => format!("{name} · {apart}"),
            };
            ((title, filesystem), index)
        })
    });
    let subject = |((title, filesystem), cells)| Subject { title, filesystem, cells, step: "" };
    grouped(all).into_iter().map(subject).collect()
}

/// Table of a definition; `None` if it has no values.
fn table(
    frame: &Frame,
    subjects: &[Subject],
    record: &RunRecord,
    sample_index: &SampleIndex,
    filesystems: &[Filesystem],
) -> Option<Table> {
    let summary = |subject: &Subject, of: fn(&TrialRecord, &str) -> Option<f64>| {
        let trials = subject.cells.iter().flat_map(|cell| sample_index.measured(*cell));
        let values: Vec<f64> = trials.filter_map(|trial| of(trial, subject.step)).collect();
        Summary::new(&values).ok()
    };
    let mut columns = Vec::new();
    let mut cells: Vec<Vec<TableCell>> = vec![Vec::new(); subjects.len()];
    for (title, unit, absent, of) in frame.columns {
        let summaries: Vec<Option<Summary>> =
            subjects.iter().map(|subject| summary(subject, *of)).collect();
        if summaries.iter().all(Option::is_none) {
            continue;
        }
        let unit = if *unit == Unit::Nanoseconds { sample_index.clock.unit() } else { *unit };
        let scale = scale_of(unit, summaries.iter().flatten());
        columns.push(Column::new(*title, scale.name));
        for (row, summary) in cells.iter_mut().zip(&summaries) {
            row.push(match summary {
                Some(summary) => TableCell::Value(ValueCell::plain(summary, scale)),
                None => TableCell::Text((*absent).into()),
            });
        }
    }
    if columns.is_empty() {
        return None;
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut holes: Vec<usize> = Vec::new();
    for (subject, cells) in subjects.iter().zip(cells) {
        let nothing = cells.iter().all(|cell| matches!(cell, TableCell::Text(_)));
        let name = &filesystems[subject.filesystem].name;
        match nothing.then(|| reason(record, name)).flatten() {
            // The reason is stated once per filesystem, not per step.
            Some(_) if holes.contains(&subject.filesystem) => {}
            Some(reason) => {
                holes.push(subject.filesystem);
                let body = Body::Missing(reason);
                rows.push(Row::of(name.clone(), Some(subject.filesystem), body));
            }
            // The filesystem does not have this step, such as fsck.
            None if nothing && !subject.step.is_empty() => {}
            None => {
                let body = Body::Cells(cells);
                rows.push(Row::of(subject.title.clone(), Some(subject.filesystem), body));
            }
        }
    }
    let mut caption: Vec<String> = frame.caption.iter().map(|text| (*text).into()).collect();
    let icount = frame.icount.filter(|_| sample_index.clock == Clock::Instructions);
    if let (Some((_, text)), Some(first)) = (icount, caption.first_mut()) {
        *first = text.into();
    }
    let title = icount.map_or(frame.title, |(title, _)| title);
    Some(Table {
        id: format!("lifecycle-{}", frame.id),
        title: title.into(),
        caption,
        corner: frame.corner,
        columns,
        rows,
    })
}

/// Duration of a step, or its instructions in an icount guest.
pub(super) fn elapsed(trial: &TrialRecord, step: &str) -> Option<f64> {
    let [time, counted] = [Metric::Elapsed, Metric::StepInstructions];
    value(trial, step, time).or_else(|| value(trial, step, counted))
}

/// Available space as a fraction of the device.
pub(super) fn available_fraction(trial: &TrialRecord) -> Option<f64> {
    let usable = value(trial, MKFS, Metric::SpaceAvailable)?;
    let total = value(trial, MKFS, Metric::DeviceSize)?;
    (total > 0.0).then(|| usable / total)
}

/// Reason why a filesystem has no results at all.
fn reason(record: &RunRecord, name: &str) -> Option<String> {
    let cells = record.cells.iter().filter(|cell| cell.cell.filesystem.name == name);
    let reasons = cells.filter_map(|cell| match &cell.state {
        CellState::Skipped { reason } => Some(format!("skipped: {reason}")),
        CellState::Failed { reason } => Some(format!("failed: {reason}")),
        CellState::Open | CellState::Done { .. } => None,
    });
    reasons.map(|reason| one_line(&reason)).next()
}
