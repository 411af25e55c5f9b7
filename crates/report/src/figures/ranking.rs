//! Ranking of the filesystems in one test.

use model::Profile;

use super::{Figure, Kind, absent, is_skip, qualified};
use crate::{
    charts::intervals::{IntervalRow, intervals},
    view::{Entry, Finding, Status, Test, View, metric_label},
};

/// Prefixes of caption clauses that refer to columns of the table.
const OF_THE_TABLE: [&str; 2] = ["a ratio below 1 ", "place: "];

/// Ranking of one test.
pub(super) fn figure(view: &View, suite: usize, point: usize, test: usize) -> Figure {
    let table = &view.details(suite, point, test).ranked;
    let test = &view.suites[suite].points[point].tests[test];
    let better = test.metric.spec().better.label();
    let findings = view.findings.by_point.iter().flat_map(|point| &point.findings);
    let finding = |finding: &&Finding| finding.test == test.id;
    let description = findings.filter(finding).map(|finding| finding.text.as_str()).next();
    let description = description.unwrap_or("Too few results for a ranking.");
    let skipped = |entry: &&Entry| match &entry.status {
        Status::Nothing(reason) => is_skip(reason),
        Status::Measured => false,
    };
    let missing = test
        .entries
        .iter()
        .filter(skipped)
        .map(|entry| (view.filesystems[entry.filesystem].name.clone(), "skipped".to_owned()));
    let missing: Vec<_> = missing.collect();
    let shown = test.entries.iter().filter(|entry| !skipped(entry));
    let axis = format!("{}, {} — {better}", metric_label(test.metric), test.scale.name);
    let rows: Vec<IntervalRow> = shown.map(|entry| row(test, entry, view)).collect();
    let caption = format!(
        "Dots: repetitions, the first at the top. Marker: median. Line: 95 % confidence interval. \
         {}. Bracket: top group. Filesystems that share a letter do not differ significantly.{}{}",
        drawn(&table.caption),
        qualified(&test.codes()),
        absent(&missing)
    );
    let chart = intervals(&axis, &rows);
    Figure::new(Kind::Ranking, &test.id, chart, (table.title.clone(), description), caption)
}

/// Clauses of the table caption that apply to the chart, which has neither ratios nor ranks.
fn drawn(caption: &[String]) -> String {
    let clauses = caption.iter().flat_map(|clause| clause.split("; "));
    let clauses = clauses.filter(|clause| !OF_THE_TABLE.iter().any(|own| clause.starts_with(own)));
    clauses.collect::<Vec<_>>().join("; ")
}

fn row(test: &Test, entry: &Entry, view: &View) -> IntervalRow {
    let scale = test.scale;
    let summary = entry.summary.as_ref();
    let interval = summary.and_then(|summary| summary.interval);
    let note = match &entry.status {
        Status::Nothing(reason) => reason.clone(),
        Status::Measured if entry.raw => "reference".into(),
        Status::Measured if !entry.ranked => "not ranked".into(),
        Status::Measured => String::new(),
    };
    IntervalRow {
        name: view.filesystems[entry.filesystem].name.clone(),
        series: entry.filesystem,
        values: entry.values.iter().map(|value| scale.number(*value)).collect(),
        median: summary.map(|summary| scale.number(summary.median)),
        interval: interval.map(|ends| (scale.number(ends.low), scale.number(ends.high))),
        shown: summary.map_or(String::new(), |summary| scale.shown(summary).value),
        letters: entry.letters.clone(),
        top: entry.top && view.facts.profile != Profile::Quick,
        note,
    }
}
