//! The ranked list of filesystems of one test: every figure's data.

use analysis::{Interval, Side, Size, Verdict, ranks::Pair};
use model::Metric;

use super::{Body, Column, Row, Table, TableCell, ValueCell, caches, directions};
use crate::{
    units::{capital, fixed, ratio},
    view::{
        claims::disagreement_turned,
        facts::{Facts, Filesystem},
        points::{Entry, Family, Status, Suite, Test, WorkPoint},
    },
};

/// One table for each test of each point, in their order.
pub(crate) fn ranked(suite: &Suite, filesystems: &[Filesystem], facts: &Facts) -> Vec<Table> {
    let of_point = |point| {
        let of = move |(index, test)| of_test(point, index, test, filesystems, facts);
        let WorkPoint { tests, .. } = point;
        tests.iter().enumerate().map(of)
    };
    suite.points.iter().flat_map(of_point).collect()
}

fn of_test(
    point: &WorkPoint,
    index: usize,
    test: &Test,
    filesystems: &[Filesystem],
    facts: &Facts,
) -> Table {
    let mut columns = vec![
        Column::new("median", test.scale.name),
        Column::new("letters", ""),
        Column::new("place", ""),
        Column::new("against the best", ""),
        Column::new("verdict", ""),
    ];
    if let Some(other) = test.counterpart {
        let title = if other == Metric::Throughput { "accepted" } else { "durable" };
        columns.push(Column::new(title, test.scale.name));
    }
    let row = |(place, entry): (usize, &Entry)| Row {
        title: filesystems[entry.filesystem].name.clone(),
        unit: "",
        filesystem: Some(entry.filesystem),
        note: entry.failed_repeats(),
        body: body(test, place, entry, facts),
    };
    let mut table = Table {
        id: format!("{}-{index}-ranked", point.id),
        title: format!("{}: {}", capital(&test.name), point.label),
        caption: vec![capital(&directions(std::iter::once(test.metric)))],
        corner: "filesystem",
        columns,
        rows: test.entries.iter().enumerate().map(row).collect(),
    };
    table.caption.extend(point.under());
    table.caption.extend(caches(&[test]));
    table.state_n();
    if let Some(family) = &test.family {
        table.caption.push(format!(
            "m = {} comparisons, Holm at 5 %; {}; a ratio below 1 is worse than the best; \
             place: 90 % interval of the rank over resampled blocks (part of them in which it came \
             first){}",
            family.ranking.pairs.len(),
            facts.threshold.words(),
            match (family.aligned, family.shared) {
                (true, _) =>
                    "; ordered and compared in the blocks that all have, after what all other \
                     cells moved by was taken out",
                (false, true) =>
                    "; ordered in the blocks that all have and compared in those that both have, \
                     since the run may have drifted",
                (false, false) => "",
            }
        ));
    }
    table
}

fn body(test: &Test, place: usize, entry: &Entry, facts: &Facts) -> Body {
    let (Some(summary), Status::Measured) = (&entry.summary, &entry.status) else {
        return Body::Missing(match &entry.status {
            Status::Nothing(reason) => reason.clone(),
            Status::Measured => "not measured".into(),
        });
    };
    let (against, verdict) = against_best(test, place, entry, facts);
    let mut cells = vec![
        TableCell::Value(ValueCell {
            top: entry.top,
            codes: entry.codes.clone(),
            of: Some(entry.of()),
            ..ValueCell::plain(summary, test.scale)
        }),
        TableCell::Text(entry.letters.clone()),
        TableCell::Text(standing(test, place)),
        TableCell::Text(against),
        TableCell::Text(verdict),
    ];
    if test.counterpart.is_some() {
        cells.push(match &entry.counterpart {
            Some(other) => TableCell::Value(ValueCell {
                codes: entry.measured_codes.clone(),
                ..ValueCell::plain(other, test.scale)
            }),
            None => TableCell::Text("not measured".into()),
        });
    }
    Body::Cells(cells)
}

/// `1 to 2 (0.64)`: the 90 % interval of the rank, and how often it came first.
fn standing(test: &Test, place: usize) -> String {
    let of_member = |family: &Family| {
        let member = family.members.iter().position(|at| *at == place)?;
        let (low, high) = *family.ranking.places.get(member)?;
        let first = family.ranking.first.get(member)?;
        let places = if low == high { low.to_string() } else { format!("{low} to {high}") };
        Some(format!("{places} ({})", fixed(first.0, 2)))
    };
    test.family.as_ref().and_then(of_member).unwrap_or_default()
}

/// Ratio to the best and what may be said of it.
fn against_best(test: &Test, place: usize, entry: &Entry, facts: &Facts) -> (String, String) {
    if let Some((failed, all, _)) = &entry.failed {
        return (String::new(), format!("not ranked: {failed} of {all} repeats failed"));
    }
    if !entry.ranked {
        return (String::new(), "not ranked: see warnings".into());
    }
    let family = test.family.as_ref();
    let member = family.and_then(|family| family.members.iter().position(|at| *at == place));
    let (Some(family), Some(member)) = (family, member) else {
        return (String::new(), "nothing to compare with".into());
    };
    let best = family.ranking.order[0];
    let Some(pair) = family.ranking.pair(best, member) else {
        return ("×1".into(), if entry.top { "best median".into() } else { String::new() });
    };
    let turned = pair.comparison.interval.map(|interval| Interval {
        low: 1.0 / interval.high,
        high: 1.0 / interval.low,
        level: interval.level,
    });
    (ratio(1.0 / pair.comparison.ratio.0, turned), said_of(pair, facts))
}

/// The verdict on the other of a pair whose better one is the best of its family.
pub(crate) fn said_of(pair: &Pair, facts: &Facts) -> String {
    let delta = facts.threshold.percent();
    match pair.comparison.verdict {
        Verdict::Equivalent => format!("equivalent within {delta}"),
        Verdict::Inconclusive { needed } => match disagreement_turned(&pair.comparison) {
            Some(why) => format!("not decided: {why}"),
            None => format!("not decided; about {needed} repeats each would"),
        },
        Verdict::Differs { side: Side::Worse, .. } => {
            "not decided: order and comparison disagree".into()
        }
        Verdict::Differs { .. } if !pair.separated() => "not told apart after correction".into(),
        Verdict::Differs { size: Size::AtLeast, .. } => format!("behind by at least {delta}"),
        Verdict::Differs { size: Size::Uncertain, .. } => {
            match disagreement_turned(&pair.comparison) {
                Some(why) => format!("behind, size not told: {why}"),
                None => "behind, size uncertain".into(),
            }
        }
        Verdict::Differs { size: Size::Negligible, .. } => format!("behind by less than {delta}"),
    }
}
