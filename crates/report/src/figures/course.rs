//! How the work of one test went over time.

use std::collections::BTreeSet;

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::course::{CourseChart, CoursePanel},
    units::{Scale, alone, fixed},
    view::{
        View,
        courses::{Course, Courses, moved},
    },
};

/// The change that the title names: the range of the SNIA Solid State Storage Performance Test
/// Specification (v2.0.1, 2.1.24).
const MOVED: f64 = 0.2;

/// Intervals of every course that a title takes.
const LEAST: usize = 10;

/// Part of the repeats that have to go the way that the title says.
const AGREEING: f64 = 0.9;

/// The course of a test; `None` where it was too short or not recorded.
pub(super) fn figure(view: &View, suite: usize, point: usize, test: usize) -> Option<Figure> {
    let flat = view.flat(suite, point, test);
    let own = &view.suites[suite].points[point].tests[test];
    let courses = view.courses[suite][flat].as_ref()?;
    let medians = courses.lines.iter().flat_map(|line| line.rates.iter().map(|rates| rates[0]));
    let scale = Scale::of(courses.unit, medians);
    let name = |filesystem: usize| view.filesystems[filesystem].name.clone();
    let codes = own.entries.iter().flat_map(|entry| entry.measured_codes.iter().copied());
    let codes: BTreeSet<&str> = codes.collect();
    // Of a test that was over too soon nothing is said, nor of a handful of intervals.
    let long = courses.lines.iter().all(|line| line.rates.len() >= LEAST);
    let told = (long && !codes.contains("W-SHORT")).then(|| finding(courses, &name)).flatten();
    let told = told.unwrap_or_else(|| "course over time".into());
    let title = format!("{}: {told}", view.ranked[suite][flat].title);
    let bytes = courses.unit == model::metric::Unit::BytesPerSecond;
    let quantity = if bytes { "bytes moved" } else { "operations" };
    let panel = |line: &Course| CoursePanel {
        name: name(line.filesystem),
        series: line.filesystem,
        rates: line.rates.iter().map(|rates| rates.map(|rate| scale.number(rate))).collect(),
    };
    #[expect(clippy::cast_precision_loss, reason = "a length of time, below 2^53 ns")]
    let interval = courses.interval as f64;
    let id = format!("{}--course", own.id);
    let chart = CourseChart {
        id: format!("{id}-chart"),
        description: format!("{title}."),
        title: title.clone(),
        y_axis: format!("{quantity}, {} — higher is better ↑", scale.name),
        interval: interval / 1e9,
        panels: courses.lines.iter().map(panel).collect(),
    };
    let missing = courses.absent.iter();
    let missing: Vec<_> = missing.map(|(at, reason)| (name(*at), reason.clone())).collect();
    let most = courses.lines.iter().map(|line| line.n).max().unwrap_or(0);
    let least = courses.lines.iter().map(|line| line.n).min().unwrap_or(0);
    let n = if least == most { most.to_string() } else { format!("{least} to {most}") };
    Some(Figure {
        id,
        kind: Kind::Course,
        title,
        svg: chart.render(),
        caption: format!(
            "Rate over the counted time of the test, in intervals of {}. Line: median of n = {n} \
             repeats; band: least to most of them, no interval of confidence. A line ends where \
             fewer than half of the repeats were still at work; the last interval of a repeat, \
             which may be cut short, is left out. What writes are shown here was accepted, which \
             is not to say durable.{}{}",
            alone(model::metric::Unit::Nanoseconds, interval),
            qualified(&codes),
            absent(&missing)
        ),
    })
}

/// Whose rate moved most from the first part of its course to the last; `None` where its repeats do
/// not agree about the way.
fn finding(courses: &Courses, name: &dyn Fn(usize) -> String) -> Option<String> {
    let of = |line| moved(rates(line)).map(|ratio| (line, ratio));
    let all: Vec<(&Course, f64)> = courses.lines.iter().filter_map(of).collect();
    let size = |(_, ratio): &(&Course, f64)| (ratio - 1.0).abs();
    let (line, ratio) = all.into_iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    if (ratio - 1.0).abs() <= MOVED {
        return Some(format!("no rate moves by more than {} % from start to end", MOVED * 100.0));
    }
    let along = if ratio > 1.0 { line.turns.0 } else { line.turns.1 };
    (f64::from(along) >= AGREEING * f64::from(line.n)).then(|| {
        format!(
            "the rate of {} ends at ×{} of its start, {} in {along} of n = {}",
            name(line.filesystem),
            fixed(ratio, 2),
            if ratio > 1.0 { "higher" } else { "lower" },
            line.n
        )
    })
}

/// The medians of a course.
fn rates(line: &Course) -> impl ExactSizeIterator<Item = f64> + Clone + '_ {
    line.rates.iter().map(|rates| rates[0])
}

#[cfg(test)]
mod tests;
