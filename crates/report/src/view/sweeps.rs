//! Behavior over a swept number: one line for each filesystem, with its band, and a sentence.

mod sentences;

use std::collections::BTreeSet;

use analysis::{Comparer, Repeat, Summary, blocks, trend};
use model::{Bytes, Metric, RunRecord, Value};

use crate::{
    units::{Scale, capital},
    view::{
        claims::PointClaims,
        control::Control,
        facts::Filesystem,
        points::{self, Suite, Test, WorkPoint, slug},
        tables::{scale_of, slices},
        threshold::Threshold,
    },
};

/// How it was done, for the notes of the report.
pub(crate) const METHOD: &str = "What a swept parameter does to a filesystem is told if every \
    level may carry a claim. It is insensitive within 10 % if the upper 95 % bound of its largest \
    median over its smallest says so, by resampling blocks. It has a peak if no sequence that only \
    rises or only falls fits its medians (pool adjacent violators; p < 0.01 by permutation within \
    blocks), one that turns once does, and at least half of the resamples agree on the level. \
    Otherwise its change is told if Jonckheere and Terpstra's trend is shown (permutation within \
    blocks; Holm over the filesystems of the sweep) and the last level differs from the first, as \
    cells are compared. Of a run that may have drifted, only blocks that all levels have take \
    part.";

/// A parameter needs so many levels for a line to say more than two points do.
const LEVELS_MIN: usize = 3;

/// One test over one parameter.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    /// Unique within the report.
    pub(crate) id: String,
    pub(crate) test: String,
    pub(crate) parameter: String,
    pub(crate) metric: Metric,
    pub(crate) scale: Scale,
    /// Tested levels: position on a logarithmic axis, and what stands under it.
    pub(crate) levels: Vec<Level>,
    pub(crate) series: Vec<Series>,
    /// How many repeats stand behind each point: `8`, or `8 to 12`.
    pub(crate) repeats: String,
    /// The warning codes of all its numbers, each once, in alphabetical order.
    pub(crate) codes: BTreeSet<&'static str>,
    /// Filesystems without a line, and why.
    pub(crate) absent: Vec<(String, String)>,
    /// A sentence for each filesystem whose data support one.
    pub(crate) claims: PointClaims,
    /// Why there is none for the others: `no sentence on ext4: …`.
    pub(crate) withheld: Vec<String>,
}

/// A tested level.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) number: f64,
    pub(crate) label: String,
}

/// One filesystem.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) filesystem: usize,
    pub(crate) name: String,
    /// One for each level, `None` where there is no result.
    pub(crate) values: Vec<Option<SweepValue>>,
}

/// A median and the ends of its interval, in the unit of display.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SweepValue {
    pub(crate) median: f64,
    pub(crate) ends: Option<(f64, f64)>,
}

/// Every sweep of every suite but those of clients, which [`super::scaling`] shows.
pub(crate) fn sweeps(
    suites: &[Suite],
    filesystems: &[Filesystem],
    record: &RunRecord,
    control: &Control,
) -> Vec<Sweep> {
    let mut builder = Builder {
        record,
        filesystems,
        threshold: control.threshold,
        suspected: control.suspected,
        comparer: Comparer::new(),
    };
    let mut sweeps = Vec::new();
    for suite in suites {
        // Of clients there is more to tell than their values.
        let swept = suite.swept.iter().filter(|name| Some(name.as_str()) != suite.clients);
        for parameter in swept {
            for points in slices(suite, parameter) {
                let levels: Vec<Level> =
                    points.iter().filter_map(|point| level(point, parameter)).collect();
                if levels.len() < LEVELS_MIN || levels.len() != points.len() {
                    continue;
                }
                let names = tests(&points);
                let of_test = |name| builder.of_test(name, parameter, &points, &levels);
                sweeps.extend(names.into_iter().filter_map(of_test));
            }
        }
    }
    sweeps
}

/// A positive number to stand on a logarithmic axis.
pub(crate) fn level(point: &WorkPoint, parameter: &str) -> Option<Level> {
    let value = point.parameters.get(parameter)?;
    let number = match value {
        Value::Size(Bytes(number)) | Value::Count(number) => *number as f64,
        Value::Time(time) => time.0 as f64,
        Value::Share(number) | Value::Number(number) => *number,
        Value::Flag(_) | Value::Text(_) | Value::Word(_) | Value::Words(_) => return None,
    };
    (number > 0.0).then(|| Level { number, label: value.to_string() })
}

/// Names of the tests of some points, each once.
pub(crate) fn tests<'a>(points: &[&'a WorkPoint]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for test in points.iter().flat_map(|point| &point.tests) {
        if !names.contains(&test.name.as_str()) {
            names.push(&test.name);
        }
    }
    names
}

struct Builder<'a> {
    record: &'a RunRecord,
    filesystems: &'a [Filesystem],
    threshold: Threshold,
    /// The run may have drifted.
    suspected: bool,
    comparer: Comparer,
}

impl Builder<'_> {
    fn of_test(
        &mut self,
        name: &str,
        parameter: &str,
        points: &[&WorkPoint],
        levels: &[Level],
    ) -> Option<Sweep> {
        let tests: Vec<_> =
            points.iter().map(|point| point.tests.iter().find(|test| test.name == name)).collect();
        let metric = tests.iter().flatten().next()?.metric;
        let summaries = || {
            let entries = tests.iter().flatten().flat_map(|test| &test.entries);
            entries.filter_map(|entry| entry.summary.as_ref())
        };
        let scale = scale_of(metric.spec().unit, summaries());
        let mut sweep = Sweep {
            id: format!("sweep-{}-{}-{}", points[0].id, slug(parameter), slug(name)),
            test: name.to_owned(),
            parameter: parameter.to_owned(),
            metric,
            scale,
            levels: levels.to_vec(),
            series: Vec::new(),
            repeats: repeats(summaries()),
            codes: tests.iter().flatten().flat_map(|test| test.codes()).collect(),
            absent: Vec::new(),
            claims: PointClaims::default(),
            withheld: Vec::new(),
        };
        for (index, filesystem) in self.filesystems.iter().enumerate() {
            let value = |test: &Option<&Test>| {
                let summary = test.as_ref()?.entry(index)?.summary.as_ref()?;
                let ends = summary
                    .interval
                    .map(|interval| (scale.number(interval.low), scale.number(interval.high)));
                Some(SweepValue { median: scale.number(summary.median), ends })
            };
            let values: Vec<_> = tests.iter().map(value).collect();
            if values.iter().any(Option::is_some) {
                let name = filesystem.name.clone();
                sweep.series.push(Series { filesystem: index, name, values });
            } else {
                sweep.absent.push((filesystem.name.clone(), reason(points, index)));
            }
        }
        let line = |series: &Series| line(series, &tests, levels, self.suspected);
        let lines = sweep.series.iter().map(line).collect();
        self.tell(&mut sweep, points[0], lines);
        (!sweep.series.is_empty()).then_some(sweep)
    }

    /// Adds what is said of a sweep, and what is not.
    fn tell(&mut self, sweep: &mut Sweep, first: &WorkPoint, lines: Vec<sentences::Line>) {
        let place = match first.parameters.get(&sweep.parameter) {
            Some(value) => points::without(&first.label, &sweep.parameter, value),
            None => first.label.clone(),
        };
        let view = sentences::Input {
            id: &sweep.id,
            label: &format!("{}: {place}, over {}", capital(&sweep.test), sweep.parameter),
            what: &format!("{}, {place}", sweep.test),
            parameter: &sweep.parameter,
            metric: sweep.metric,
            scale: sweep.scale,
            threshold: self.threshold,
            seed: self.record.info.seed,
            lines,
        };
        let (claims, withheld) = sentences::claims(&view, &mut self.comparer);
        (sweep.claims, sweep.withheld) = (claims, withheld);
    }
}

/// The repeats of a filesystem at each level, of a run that may have drifted in the blocks that all
/// of its levels have; and whether all may carry a claim.
fn line(
    series: &Series,
    tests: &[Option<&Test>],
    levels: &[Level],
    suspected: bool,
) -> sentences::Line {
    let mut line = sentences::Line {
        name: series.name.clone(),
        sound: true,
        levels: Vec::new(),
        cut: Cut::None,
    };
    for (test, level) in tests.iter().zip(levels) {
        let Some(entry) = test.and_then(|test| test.entry(series.filesystem)) else { continue };
        line.sound &= entry.ranked;
        if !entry.repeats.is_empty() {
            let own = trend::Level { at: level.number, repeats: entry.repeats.clone() };
            line.levels.push((level.label.clone(), own));
        }
    }
    line.levels.sort_by(|a, b| a.1.at.total_cmp(&b.1.at));
    let mut repeats: Vec<&mut Vec<Repeat>> =
        line.levels.iter_mut().map(|(_, level)| &mut level.repeats).collect();
    line.cut = cut(&mut repeats, suspected);
    line
}

/// What was done so that a drift of the run cannot pass for a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Nothing: no drift is suspected, or all have the same blocks.
    None,
    /// Only blocks that all have are left.
    Shared,
    /// Nothing could be: they have too few blocks in common for a claim.
    TooFew,
}

impl Cut {
    /// What stands beside a count of repeats.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::None | Self::TooFew => "",
            Self::Shared => " in the blocks that all have, since the run may have drifted",
        }
    }
}

/// Why nothing is told of levels that have too few blocks in common, and what would help.
pub(super) const TOO_FEW: (&str, &str) = (
    "the run may have drifted, and too few blocks have all of its levels",
    "measure as many repeats of each",
);

/// Leaves of some lists what may be compared ([`blocks::comparable`]).
pub(super) fn cut(lists: &mut [&mut Vec<Repeat>], suspected: bool) -> Cut {
    let all: Vec<&[Repeat]> = lists.iter().map(|list| list.as_slice()).collect();
    let Some(kept) = blocks::comparable(&all, suspected) else {
        return Cut::TooFew;
    };
    let mut cut = Cut::None;
    for (list, kept) in lists.iter_mut().zip(kept) {
        if list.len() > kept.len() {
            cut = Cut::Shared;
            **list = kept;
        }
    }
    cut
}

/// How many repeats stand behind some summaries: `8`, or `8 to 12`.
pub(super) fn repeats<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> String {
    let counts = summaries.map(|summary| summary.n);
    match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (least, _) => least.unwrap_or(0).to_string(),
    }
}

/// Why a filesystem has no result at some points.
pub(super) fn reason(points: &[&WorkPoint], filesystem: usize) -> String {
    let first = points.iter().find_map(|point| point.statuses[filesystem].as_ref());
    match first {
        Some(crate::view::Status::Nothing(reason)) => reason.clone(),
        Some(crate::view::Status::Measured) | None => "not part of the plan here".into(),
    }
}
