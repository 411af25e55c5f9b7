//! Behavior over a swept number: one line for each filesystem, with its band.

use std::collections::BTreeSet;

use analysis::Summary;
use model::{Bytes, Metric, Value};

use crate::{
    units::Scale,
    view::{
        facts::Filesystem,
        points::{Suite, WorkPoint, slug},
        tables::{scale_of, slices},
    },
};

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
pub(crate) fn sweeps(suites: &[Suite], filesystems: &[Filesystem]) -> Vec<Sweep> {
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
                sweeps.extend(
                    names
                        .iter()
                        .filter_map(|name| of_test(name, parameter, &points, &levels, filesystems)),
                );
            }
        }
    }
    sweeps
}

/// A positive number to stand on a logarithmic axis.
pub(super) fn level(point: &WorkPoint, parameter: &str) -> Option<Level> {
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
pub(super) fn tests<'a>(points: &[&'a WorkPoint]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for test in points.iter().flat_map(|point| &point.tests) {
        if !names.contains(&test.name.as_str()) {
            names.push(&test.name);
        }
    }
    names
}

fn of_test(
    name: &str,
    parameter: &str,
    points: &[&WorkPoint],
    levels: &[Level],
    filesystems: &[Filesystem],
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
    };
    for (index, filesystem) in filesystems.iter().enumerate() {
        let value = |test: &Option<&crate::view::Test>| {
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
    (!sweep.series.is_empty()).then_some(sweep)
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
