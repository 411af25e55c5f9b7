//! Elapsed time per file set as clipped bars, data of `charts::capped`.
//!
//! The input is the points of the small-file suite. Points that differ only in the cache state
//! share a chart with one panel per state. The 2011 study clipped bars at 450 s without showing
//! their values. Here a rule, stated in the caption, derives the clipping limit from the data, and
//! every bar is labeled with its value.

use std::collections::BTreeSet;

use model::Metric;

use super::{
    facts::Filesystem,
    points::{Status, Suite, Test, WorkPoint},
    series,
    tables::alike,
};
use crate::charts::data::{CappedBar, CappedGroup, CappedPanel};
use crate::units::{Scale, one_line};

/// Parameter whose values are shown side by side.
const SIDE_BY_SIDE: &str = "cache";

/// Clipping limit, as a multiple of the upper quartile of all medians.
const CUT: f64 = 2.0;

/// Bars are clipped only if the longest one exceeds this multiple of the limit.
const WORTH: f64 = 1.5;

/// One chart.
#[derive(Clone, Debug)]
pub(crate) struct Capped {
    /// Unique within the report.
    pub(crate) id: String,
    /// Common label of its points.
    pub(crate) place: String,
    pub(crate) panels: Vec<CappedPanel>,
    /// Clipping limit in seconds; `None` if no bar is clipped.
    pub(crate) cut: Option<f64>,
    /// Repetitions per bar: `8`, or `8 to 12`.
    pub(crate) repetitions: String,
    /// True if all bars have a confidence interval.
    pub(crate) intervals: bool,
    /// Warning codes of all results.
    pub(crate) codes: BTreeSet<&'static str>,
    /// Filesystems without a bar, with the reason.
    pub(crate) absent: Vec<(String, String)>,
}

/// Charts of a suite. Only suite `small-files` has any.
pub(crate) fn capped(suite: &Suite, filesystems: &[Filesystem]) -> Vec<Capped> {
    if suite.name != "small-files" {
        return Vec::new();
    }
    let groups = alike(suite.points.iter(), &[SIDE_BY_SIDE]);
    groups.iter().filter_map(|points| chart(points, filesystems)).collect()
}

fn chart(points: &[&WorkPoint], filesystems: &[Filesystem]) -> Option<Capped> {
    let tests = || points.iter().flat_map(|point| &point.tests);
    let entries = || tests().flat_map(|test| &test.entries);
    let summaries = || entries().filter_map(|entry| entry.metric(Metric::Elapsed));
    let mut medians: Vec<f64> =
        summaries().map(|summary| Scale::SECONDS.number(summary.median)).collect();
    if medians.is_empty() {
        return None;
    }
    medians.sort_by(f64::total_cmp);
    let has = |index: usize| {
        entries().any(|entry| entry.filesystem == index && entry.metric(Metric::Elapsed).is_some())
    };
    let empty = (0..filesystems.len()).filter(|index| !has(*index));
    let first = points.first()?;
    let place = match (first.parameters.get(SIDE_BY_SIDE), points.len()) {
        (Some(value), 2..) => super::points::without(&first.label, SIDE_BY_SIDE, value),
        _ => first.label.clone(),
    };
    Some(Capped {
        id: format!("clipped-bars-{}", first.id),
        place,
        panels: points.iter().map(|point| panel(point, points.len() > 1, filesystems)).collect(),
        cut: cut(&medians),
        repetitions: series::repetitions(summaries()),
        intervals: summaries().all(|summary| summary.interval.is_some()),
        codes: tests().flat_map(Test::codes).collect(),
        absent: empty
            .map(|index| (filesystems[index].name.clone(), series::reason(points, index)))
            .collect(),
    })
}

/// Clipping limit for medians in ascending order; `None` if no bar is long enough for clipping. The
/// upper quartile is the smallest median that at least three quarters of the medians do not exceed.
fn cut(medians: &[f64]) -> Option<f64> {
    let upper = medians[(medians.len() * 3).div_ceil(4).saturating_sub(1)];
    let longest = medians.last()?;
    Some(CUT * upper).filter(|cut| *longest > WORTH * cut)
}

fn panel(point: &WorkPoint, titled: bool, filesystems: &[Filesystem]) -> CappedPanel {
    let title = match point.parameters.get(SIDE_BY_SIDE) {
        Some(value) if titled => format!("{SIDE_BY_SIDE}={}", one_line(&value.to_string())),
        _ => String::new(),
    };
    let measured = |index: &usize| matches!(point.statuses[*index], Some(Status::Measured));
    let group = |test: &Test| CappedGroup {
        name: test.name.clone(),
        bars: (0..filesystems.len())
            .filter(measured)
            .map(|index| bar(test, index, &filesystems[index].name))
            .collect(),
    };
    CappedPanel { title, groups: point.tests.iter().map(group).collect() }
}

fn bar(test: &Test, filesystem: usize, name: &str) -> CappedBar {
    let scale = Scale::SECONDS;
    let summary = test.entry(filesystem).and_then(|entry| entry.metric(Metric::Elapsed));
    let ends = summary.and_then(|summary| summary.interval);
    CappedBar {
        filesystem,
        name: name.to_owned(),
        median: summary.map(|summary| scale.number(summary.median)),
        interval: ends.map(|ends| (scale.number(ends.low), scale.number(ends.high))),
        shown: summary.map_or("not measured".into(), |summary| scale.shown(summary).value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_clipped_only_if_one_dominates() {
        assert_eq!(cut(&[1.0, 2.0, 3.0, 4.0]), None);
        // The upper quartile is 3, so the limit is 6; 9 is not more than 1.5 times the limit.
        assert_eq!(cut(&[1.0, 2.0, 3.0, 9.0]), None);
        assert_eq!(cut(&[1.0, 2.0, 3.0, 9.1]), Some(6.0));
        assert_eq!(cut(&[5.0]), None);
    }
}
