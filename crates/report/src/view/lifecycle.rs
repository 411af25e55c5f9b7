//! The life cycle of a filesystem: what it costs to make, mount, unmount, and check it, how much
//! space it leaves, and how much it takes for the files of the workload.
//!
//! Samples of the steps in [`model::sample::lifecycle`] enter, tables leave: one row for each
//! filesystem and, where it varies, fullness, over all repeats whatever their workload. Space that
//! depends on the workload has a row for each workload point instead.

use std::collections::BTreeMap;

use analysis::Summary;
use model::{
    Clock, Fullness, Metric, RunRecord,
    metric::Unit,
    record::{CellRecord, CellState, TrialRecord},
    sample::lifecycle::{FSCK, MKFS, MOUNT, SETUP, SPACE, UMOUNT},
};

use super::{
    evidence::NOT_TOLD,
    facts::Filesystem,
    pool::Pool,
    tables::{Body, Column, Row, Table, TableCell, ValueCell, scale_of},
};
use crate::units::one_line;

/// A column: title, base unit, what stands where there is no value, and the value in a trial at the
/// step of the row; a column that has a step of its own pays no heed to the row's.
type Quantity = (&'static str, Unit, &'static str, fn(&TrialRecord, &str) -> Option<f64>);

const TIMES: [Quantity; 5] = [
    ("mkfs", Unit::Nanoseconds, NOT_TOLD, |trial, _| elapsed(trial, MKFS)),
    ("setup", Unit::Nanoseconds, "none", |trial, _| elapsed(trial, SETUP)),
    ("mount", Unit::Nanoseconds, NOT_TOLD, |trial, _| elapsed(trial, MOUNT)),
    ("umount", Unit::Nanoseconds, NOT_TOLD, |trial, _| elapsed(trial, UMOUNT)),
    ("fsck", Unit::Nanoseconds, NOT_TOLD, |trial, _| elapsed(trial, FSCK)),
];

const WORK: [Quantity; 4] = [
    ("program", Unit::Nanoseconds, "no program", |trial, step| {
        let counted = sample(trial, step, Metric::ProgramInstructions);
        counted.or_else(|| {
            let user = sample(trial, step, Metric::UserTime)?;
            Some(user + sample(trial, step, Metric::SystemTime)?)
        })
    }),
    ("kernel threads", Unit::Nanoseconds, NOT_TOLD, |trial, step| {
        let counted = sample(trial, step, Metric::KernelThreadInstructions);
        counted.or_else(|| sample(trial, step, Metric::KernelTime))
    }),
    ("read", Unit::Bytes, NOT_TOLD, |trial, step| sample(trial, step, Metric::DeviceRead)),
    ("written", Unit::Bytes, NOT_TOLD, |trial, step| sample(trial, step, Metric::DeviceWritten)),
];

const OFFERED: [Quantity; 3] = [
    ("usable", Unit::Bytes, NOT_TOLD, |trial, _| sample(trial, MKFS, Metric::SpaceUsable)),
    ("of the total", Unit::Share, NOT_TOLD, |trial, _| {
        let usable = sample(trial, MKFS, Metric::SpaceUsable)?;
        let total = sample(trial, MKFS, Metric::SpaceTotal)?;
        (total > 0.0).then(|| usable / total)
    }),
    ("inodes", Unit::Count, "on demand", |trial, _| sample(trial, MKFS, Metric::Inodes)),
];

const TAKEN: [Quantity; 3] = [
    ("taken", Unit::Bytes, NOT_TOLD, |trial, _| sample(trial, SPACE, Metric::SpaceUsed)),
    ("sizes of files", Unit::Bytes, NOT_TOLD, |trial, _| sample(trial, SPACE, Metric::SpaceData)),
    ("for each byte", Unit::Ratio, NOT_TOLD, |trial, _| {
        sample(trial, SPACE, Metric::SpaceOverhead)
    }),
];

/// What a row is about.
#[derive(Clone)]
struct Subject {
    title: String,
    filesystem: usize,
    cells: Vec<usize>,
    step: &'static str,
}

/// A table before it has rows.
struct Frame {
    id: &'static str,
    title: &'static str,
    corner: &'static str,
    caption: &'static [&'static str],
    /// Title and the first clause of the caption where instructions were counted.
    counted: Option<(&'static str, &'static str)>,
    columns: &'static [Quantity],
}

const ALL_REPEATS: &str = "over all repeats of a filesystem, whatever their workload";

const FRAMES: [Frame; 4] = [
    Frame {
        id: "time",
        title: "Time of the life cycle",
        corner: "filesystem",
        caption: &["Elapsed, lower is better ↓", ALL_REPEATS],
        counted: Some((
            "Instructions of the life cycle",
            "Guest instructions of each step, whoever's they were, lower is better ↓",
        )),
        columns: &TIMES,
    },
    Frame {
        id: "work",
        title: "CPU and device bytes of the life cycle",
        corner: "filesystem · step",
        caption: &[
            "CPU time of the program that did the step and of the kernel threads it caused, lower \
             is better ↓; bytes that the devices read and wrote, evidence without direction",
            ALL_REPEATS,
        ],
        counted: Some((
            "Instructions of programs, and device bytes of the life cycle",
            "Guest instructions of the program that did the step and of the kernel threads it \
             caused, lower is better ↓; bytes that the devices read and wrote, evidence without \
             direction",
        )),
        columns: &WORK,
    },
    Frame {
        id: "space",
        title: "Space",
        corner: "filesystem",
        caption: &[
            "Space an ordinary user can fill right after mkfs, and its part of the device or \
             image, higher is better ↑; inodes, evidence without direction",
            ALL_REPEATS,
        ],
        counted: None,
        columns: &OFFERED,
    },
    Frame {
        id: "taken",
        title: "Space after the workload",
        corner: "filesystem",
        caption: &[
            "Space taken beyond what mkfs and filling up took, after the phases and a flush, and \
             the same for each byte of the files that were there, lower is better ↓; sizes of \
             files, evidence without direction",
        ],
        counted: None,
        columns: &TAKEN,
    },
];

/// All tables of the life cycle for which anything was recorded.
pub(crate) fn lifecycle(pool: &Pool, filesystems: &[Filesystem]) -> Vec<Table> {
    let record = pool.record;
    let fullness = varies(record, |cell| cell.cell.fullness);
    let labels = varies(record, |cell| cell.label.clone());
    let by_fullness = subjects(record, filesystems, |cell| match fullness {
        true => full(cell.cell.fullness),
        false => String::new(),
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
        let mut table = table(frame, subjects, record, pool, filesystems)?;
        table.state_n();
        Some(table)
    });
    tables.collect()
}

fn full(fullness: Fullness) -> String {
    if fullness.is_empty() { "empty".into() } else { format!("{fullness} full") }
}

fn varies<T: PartialEq>(record: &RunRecord, of: impl Fn(&CellRecord) -> T) -> bool {
    record.cells.windows(2).any(|two| of(&two[0]) != of(&two[1]))
}

/// One for each filesystem and each thing that sets its cells apart, in plan order.
fn subjects(
    record: &RunRecord,
    filesystems: &[Filesystem],
    apart: impl Fn(&CellRecord) -> String,
) -> Vec<Subject> {
    let mut subjects: Vec<Subject> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (filesystem, Filesystem { name, .. }) in filesystems.iter().enumerate() {
        let cells = record.cells.iter().enumerate();
        let own = |cell: &CellRecord| !cell.cell.twin && cell.cell.filesystem.name == *name;
        for (index, cell) in cells.filter(|(_, cell)| own(cell)) {
            let apart = apart(cell);
            let title = match apart.is_empty() {
                true => name.clone(),
                false => format!("{name} · {apart}"),
            };
            let place = *places.entry(title.clone()).or_insert(subjects.len());
            match subjects.get_mut(place) {
                Some(subject) => subject.cells.push(index),
                None => {
                    subjects.push(Subject { title, filesystem, cells: vec![index], step: "" });
                }
            }
        }
    }
    subjects
}

/// The table of a frame; `None` if nothing of it was recorded.
fn table(
    frame: &Frame,
    subjects: &[Subject],
    record: &RunRecord,
    pool: &Pool,
    filesystems: &[Filesystem],
) -> Option<Table> {
    let summary = |subject: &Subject, of: fn(&TrialRecord, &str) -> Option<f64>| {
        let trials = subject.cells.iter().flat_map(|cell| pool.measured(*cell));
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
        let unit = if *unit == Unit::Nanoseconds { pool.clock.unit() } else { *unit };
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
            // Once for each filesystem, not for each of its steps.
            Some(_) if holes.contains(&subject.filesystem) => {}
            Some(reason) => {
                holes.push(subject.filesystem);
                let body = Body::Missing(reason);
                rows.push(Row::of(name.clone(), Some(subject.filesystem), body));
            }
            // A step that the filesystem does not have, such as a check.
            None if nothing && !subject.step.is_empty() => {}
            None => {
                let body = Body::Cells(cells);
                rows.push(Row::of(subject.title.clone(), Some(subject.filesystem), body));
            }
        }
    }
    let mut caption: Vec<String> = frame.caption.iter().map(|words| (*words).into()).collect();
    let counted = frame.counted.filter(|_| pool.clock == Clock::Instructions);
    if let (Some((_, words)), Some(first)) = (counted, caption.first_mut()) {
        *first = words.into();
    }
    let title = counted.map_or(frame.title, |(title, _)| title);
    Some(Table {
        id: format!("life-cycle-{}", frame.id),
        title: title.into(),
        caption,
        corner: frame.corner,
        columns,
        rows,
    })
}

/// What a step took, by whichever clock.
fn elapsed(trial: &TrialRecord, step: &str) -> Option<f64> {
    let [time, counted] = [Metric::Elapsed, Metric::StepInstructions];
    sample(trial, step, time).or_else(|| sample(trial, step, counted))
}

/// The value of all workers together.
fn sample(trial: &TrialRecord, step: &str, metric: Metric) -> Option<f64> {
    let mut samples = trial.samples.iter().filter(|sample| sample.worker.is_none());
    let found = samples.find(|sample| sample.phase == step && sample.metric == metric);
    found.map(|sample| sample.value)
}

/// Why a filesystem has no result anywhere.
fn reason(record: &RunRecord, name: &str) -> Option<String> {
    let cells = record.cells.iter().filter(|cell| cell.cell.filesystem.name == name);
    let reasons = cells.filter_map(|cell| match &cell.state {
        CellState::Skipped { reason } => Some(format!("skipped: {reason}")),
        CellState::Failed { reason } => Some(format!("failed: {reason}")),
        CellState::Open | CellState::Done { .. } => None,
    });
    reasons.map(|reason| one_line(&reason)).next()
}
