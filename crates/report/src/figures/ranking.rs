//! Which filesystem is best at one test.

use model::Profile;

use super::{Figure, Kind, qualified};
use crate::{
    charts::intervals::{IntervalRow, Intervals},
    view::{Claim, Entry, Status, Test, View, words},
};

/// How clauses begin that speak of columns of the table.
const OF_THE_TABLE: [&str; 2] = ["a ratio below 1 ", "place: "];

/// The ranking of one test.
pub(super) fn figure(view: &View, suite: usize, point: usize, test: usize) -> Figure {
    let table = &view.ranked[suite][view.flat(suite, point, test)];
    let test = &view.suites[suite].points[point].tests[test];
    let better = test.metric.spec().better.words();
    let claims = view.findings.by_point.iter().flat_map(|point| &point.claims);
    let finding = |claim: &&Claim| claim.test == test.id;
    let description = claims.filter(finding).map(|claim| claim.text.as_str()).next();
    let chart = Intervals {
        id: format!("{}-chart", test.id),
        title: table.title.clone(),
        description: description.unwrap_or("Too few results for a ranking.").to_owned(),
        axis: format!("{}, {} — {better}", words(test.metric), test.scale.name),
        rows: test.entries.iter().map(|entry| row(test, entry, view)).collect(),
    };
    Figure {
        id: test.id.clone(),
        kind: Kind::Ranking,
        title: table.title.clone(),
        svg: chart.render(),
        caption: format!(
            "Faint dots: every repeat; marker: median; line: 95 % interval of the median. {}. A \
             line at the right marks the top group; filesystems that share a letter were not \
             told apart.{}",
            drawn(&table.caption),
            qualified(&test.codes())
        ),
    }
}

/// What is said under the table that is also drawn: neither ratios nor places are.
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
