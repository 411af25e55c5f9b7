//! Lifecycle steps and space over the size of the filesystem (axis `size`).
//!
//! The input is the samples of all workloads, by filesystem and size. Each step is a chart of
//! medians over the size, and each filesystem has a finding if its trend is significant. Steps are
//! compared over sizes only, not between filesystems.

use std::collections::BTreeSet;

use analysis::{Repetition, Summary, trend};
use model::{
    Bytes, Cell, Clock, SystemSetting, Value,
    metric::Unit,
    record::TrialRecord,
    sample::lifecycle::{FSCK, MKFS, MOUNT, UMOUNT},
};

use crate::{
    charts::data::{Level, Series, SweepValue},
    units::{Scale, span},
    view::{
        facts::Filesystem,
        findings::PointFindings,
        lifecycle::{available_fraction, elapsed},
        quality::RunQuality,
        sample_index::SampleIndex,
        series::Run,
        sweeps::{
            Cut,
            findings::{self, Input, Line},
        },
    },
};

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Size of the filesystem: each lifecycle step is analyzed as a swept parameter, over the \
    repetitions of all workloads. A finding is valid between the measured sizes.";

/// One lifecycle step, or the available space, over the size.
#[derive(Clone, Debug)]
pub(crate) struct BySize {
    /// Unique within the report.
    pub(crate) id: String,
    /// `mkfs time`.
    pub(crate) quantity: &'static str,
    /// True for times, which are in nanoseconds; false for percentages.
    pub(crate) is_time: bool,
    pub(crate) levels: Vec<Level>,
    pub(crate) series: Vec<Series>,
    /// Repetitions per filesystem and size: `8`, or `8 to 12`.
    pub(crate) repetitions: String,
    pub(crate) findings: PointFindings,
}

/// Chart: part of its ID, quantity, true for a time, and value of a trial.
type Quantity = (&'static str, &'static str, bool, fn(&TrialRecord) -> Option<f64>);

const QUANTITIES: [Quantity; 5] = [
    ("mkfs", "mkfs time", true, |trial| elapsed(trial, MKFS)),
    ("mount", "mount time", true, |trial| elapsed(trial, MOUNT)),
    ("umount", "umount time", true, |trial| elapsed(trial, UMOUNT)),
    ("fsck", "fsck time", true, |trial| elapsed(trial, FSCK)),
    ("space", "available fraction of the device", false, available_fraction),
];

/// All quantities over the sizes of the plan. Empty unless the plan has several sizes.
pub(crate) fn by_size(
    sample_index: &SampleIndex,
    filesystems: &[Filesystem],
    quality: &RunQuality,
) -> Vec<BySize> {
    let sizes = sizes(sample_index);
    if sizes.len() < 2 || sample_index.clock != Clock::Wall {
        return Vec::new();
    }
    let mut run = Run::new(sample_index, filesystems, quality);
    let all = QUANTITIES.iter().map(|own| of_quantity(own, &sizes, &mut run));
    all.filter(|own| !own.series.is_empty()).collect()
}

/// Sizes of the cells, ascending.
fn sizes(sample_index: &SampleIndex) -> Vec<Bytes> {
    let cells = sample_index.record.cells.iter().filter(|cell| !cell.cell.aa_duplicate);
    let sizes = cells.filter_map(|cell| size(&cell.cell));
    sizes.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Size of the filesystem of a cell.
fn size(cell: &Cell) -> Option<Bytes> {
    cell.settings.get(&SystemSetting::Size).and_then(Value::as_size)
}

fn of_quantity(
    (id, quantity, is_time, of): &Quantity,
    sizes: &[Bytes],
    run: &mut Run<'_>,
) -> BySize {
    let (sample_index, record) = (run.sample_index, run.sample_index.record);
    let level = |size: &Bytes| Level { number: size.0 as f64, label: size.to_string() };
    let levels: Vec<Level> = sizes.iter().map(level).collect();
    let unit = if *is_time { Unit::Nanoseconds } else { Unit::Fraction };
    let (mut series, mut lines, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    let mut medians = Vec::new();
    for (index, filesystem) in run.filesystems.iter().enumerate() {
        let repetitions = |wanted: &Bytes| -> Vec<Repetition> {
            let cells = record.cells.iter().enumerate().filter(|(_, cell)| {
                let cell = &cell.cell;
                cell.filesystem.name == filesystem.name
                    && !cell.aa_duplicate
                    && size(cell) == Some(*wanted)
            });
            let trials = cells.flat_map(|(cell, _)| sample_index.measured(cell));
            let repetition = |trial: &TrialRecord| {
                Some(Repetition { block: Some(trial.repetition), value: of(trial)? })
            };
            trials.filter_map(repetition).collect()
        };
        let all: Vec<Vec<Repetition>> = sizes.iter().map(repetitions).collect();
        if all.iter().all(Vec::is_empty) {
            continue;
        }
        let shown = if *is_time { Scale::NANOSECONDS } else { Scale::of(unit, [1.0].into_iter()) };
        let value = |own: &Vec<Repetition>| {
            let values: Vec<f64> = own.iter().map(|it| it.value).collect();
            Some(SweepValue::of(&Summary::new(&values).ok()?, shown))
        };
        let (name, values) = (filesystem.name.clone(), all.iter().map(value).collect::<Vec<_>>());
        medians.extend(all.iter().flatten().map(|own| own.value));
        series.push(Series { filesystem: index, name: name.clone(), values });
        counts.extend(all.iter().filter(|own| !own.is_empty()).map(Vec::len));
        let level = |(level, repetitions): (&Level, Vec<Repetition>)| {
            (level.label.clone(), trend::Level { at: level.number, repetitions })
        };
        let mut all: Vec<_> = levels.iter().zip(all).map(level).collect();
        all.retain(|(_, level)| !level.repetitions.is_empty());
        lines.push(Line { name, sound: true, levels: all, cut: Cut::None });
    }
    let (id, label) = (format!("size-{id}"), format!("Size of the filesystem: {quantity}"));
    let input = Input {
        id: &id,
        label: &label,
        quantity,
        what: "",
        parameter: "size",
        scale: Scale::of(unit, medians.into_iter()),
        margin: run.margin,
        seed: run.seed,
        lines,
    };
    let (findings, _) = findings::findings(&input, &mut run.comparer);
    BySize {
        id,
        quantity,
        is_time: *is_time,
        levels,
        series,
        repetitions: span(counts.into_iter().map(|n| u32::try_from(n).unwrap_or(u32::MAX))),
        findings,
    }
}
