//! Lifecycle steps and space over the size of the filesystem (axis `size`).
//!
//! The input is the samples of all workloads, by filesystem and size. Each step is a chart of
//! medians over the size, and each filesystem has a finding if its trend is significant. Steps are
//! compared over sizes only, not between filesystems.

use std::collections::BTreeSet;

use analysis::{
    Interval, Repetition, Summary, holm,
    summary::{LEVEL, needed},
    trend,
};
use model::{
    Bytes, Cell, Clock, SystemSetting, Value,
    record::TrialRecord,
    sample::lifecycle::{FSCK, MKFS, MOUNT, UMOUNT},
};

use crate::{
    charts::data::{Level, Series, SweepValue},
    units::{ratio, span},
    view::{
        facts::Filesystem,
        findings::{Answer, Finding, PointFindings, WithheldFinding},
        lifecycle::{available_fraction, elapsed},
        sample_index::SampleIndex,
        scaling::probability,
    },
};

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Size of the filesystem: the change per doubling is the Theil–Sen slope of the logarithm over \
    log2 of the size, with a bootstrap interval over rounds. A finding requires a significant \
    Jonckheere–Terpstra trend (permutation within rounds, Holm-adjusted over the filesystems of a \
    step). It is valid between the measured sizes. Repetitions of all workloads are used.";

/// Family-wise error rate of the findings about one step.
const ERROR: f64 = 0.05;

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
pub(crate) fn by_size(sample_index: &SampleIndex, filesystems: &[Filesystem]) -> Vec<BySize> {
    let sizes = sizes(sample_index);
    if sizes.len() < 2 || sample_index.clock != Clock::Wall {
        return Vec::new();
    }
    let all = QUANTITIES.iter().map(|own| of_quantity(own, &sizes, (sample_index, filesystems)));
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
    (sample_index, filesystems): (&SampleIndex, &[Filesystem]),
) -> BySize {
    let record = sample_index.record;
    let level = |size: &Bytes| Level { number: size.0 as f64, label: size.to_string() };
    let levels: Vec<Level> = sizes.iter().map(level).collect();
    let (mut series, mut lines, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for (index, filesystem) in filesystems.iter().enumerate() {
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
        let scale = if *is_time { 1.0 } else { 100.0 };
        let value = |own: &Vec<Repetition>| {
            let values: Vec<f64> = own.iter().map(|it| it.value * scale).collect();
            let summary = Summary::new(&values).ok()?;
            let ends = summary.interval.map(|ends| (ends.low, ends.high));
            Some(SweepValue { median: summary.median, ends })
        };
        let (name, values) = (filesystem.name.clone(), all.iter().map(value).collect());
        series.push(Series { filesystem: index, name: name.clone(), values });
        counts.extend(all.iter().filter(|own| !own.is_empty()).map(Vec::len));
        lines.push((name, all));
    }
    let mut own = BySize {
        id: format!("size-{id}"),
        quantity,
        is_time: *is_time,
        levels,
        series,
        repetitions: span(counts.into_iter().map(|n| u32::try_from(n).unwrap_or(u32::MAX))),
        findings: PointFindings::default(),
    };
    let title = format!("Size of the filesystem: {}", own.quantity);
    own.findings = PointFindings::new(title, answers(&own, lines, record.info.seed));
    own
}

/// Findings about one quantity, one per filesystem with a significant trend.
fn answers(own: &BySize, lines: Vec<(String, Vec<Vec<Repetition>>)>, seed: u64) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut trends = Vec::new();
    for (name, all) in lines {
        let withheld = |reason: String, hint: String| {
            let question = format!("{} of {name} by size", own.quantity);
            let test = own.id.clone();
            Answer::Withheld(WithheldFinding { template: "C6", test, question, reason, hint })
        };
        let least = all.iter().map(Vec::len).filter(|n| *n > 0).min().unwrap_or(0);
        let needed = needed(LEVEL);
        if u32::try_from(least).unwrap_or(u32::MAX) < needed {
            let hint = format!("run at least {needed} repetitions");
            answers.push(withheld(format!("n = {least}, {needed} needed"), hint));
            continue;
        }
        let level = |(level, repetitions): (&Level, Vec<Repetition>)| trend::Level {
            at: level.number,
            repetitions,
        };
        let levels = own.levels.iter().zip(all).filter(|(_, own)| !own.is_empty()).map(level);
        let sweep = trend::Sweep::new(levels.collect());
        match sweep.map(|sweep| sweep.trend(seed)) {
            Ok(Ok(trend)) => trends.push((name, trend)),
            Ok(Err(absent)) => answers.push(withheld(absent.to_string(), String::new())),
            Err(error) => answers.push(withheld(error.to_string(), String::new())),
        }
    }
    let p = holm(&trends.iter().map(|(_, trend)| trend.p).collect::<Vec<_>>());
    for ((name, trend), p) in trends.into_iter().zip(p) {
        let interval: Option<Interval> = trend.per_doubling_interval.ok();
        let change = ratio(trend.per_doubling.0, interval);
        let test = own.id.clone();
        answers.push(if p < ERROR {
            let ends = own.series.iter().find(|series| series.name == name).map(|it| own.ends(it));
            Answer::Found(Finding {
                template: "C6",
                test,
                text: format!(
                    "{name}: {} {change} per doubling of the size from {} to {} ({}trend p {}; \
                     n = {}).",
                    own.quantity,
                    own.levels.first().map_or("", |level| &level.label),
                    own.levels.last().map_or("", |level| &level.label),
                    ends.flatten().unwrap_or_default(),
                    probability(p),
                    own.repetitions,
                ),
            })
        } else {
            Answer::Withheld(WithheldFinding {
                template: "C6",
                test,
                question: format!("{} of {name} by size", own.quantity),
                reason: format!(
                    "no significant trend (p {}): {change} per doubling",
                    probability(p)
                ),
                hint: String::new(),
            })
        });
    }
    answers
}

impl BySize {
    /// Medians at the smallest and the largest size: `12 ms to 460 ms; `.
    fn ends(&self, series: &Series) -> Option<String> {
        let median = |value: &Option<SweepValue>| value.map(|value| self.text(value.median));
        let first = series.values.iter().find_map(median)?;
        let last = series.values.iter().rev().find_map(median)?;
        Some(format!("{first} to {last}; "))
    }

    /// Value with its unit and three digits.
    fn text(&self, value: f64) -> String {
        if !self.is_time {
            return format!("{value:.1} %");
        }
        let (unit, factor) = match value {
            ..1e3 => ("ns", 1.0),
            ..1e6 => ("µs", 1e3),
            ..1e9 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        let value = value / factor;
        let places = if value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        format!("{value:.places$} {unit}")
    }
}
