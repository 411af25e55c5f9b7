//! Ranking of filesystems per test; also the data of the ranking charts.

use analysis::{Interval, Side, Size, Verdict, ranks::Pair};
use model::Metric;

use super::{Body, Column, Row, Table, TableCell, ValueCell, caches, directions};
use crate::{
    units::{capital, count, fixed, ratio},
    view::{
        facts::{Facts, Filesystem},
        findings::inverse_disagreement,
        points::{Entry, Family, Status, Test, WorkPoint},
        raw::{OverDevice, REFERENCE},
    },
};

/// Ranking of a test.
pub(crate) fn ranked(
    point: &WorkPoint,
    test: &Test,
    filesystems: &[Filesystem],
    facts: &Facts,
) -> Table {
    let mut columns = vec![
        Column::new("median", test.scale.name),
        Column::new("letters", ""),
        Column::new("rank (90 % interval)", ""),
        Column::new("vs. best", ""),
        Column::new("result", ""),
    ];
    if let Some(other) = test.counterpart {
        let title = if other == Metric::Throughput { "accepted" } else { "durable" };
        columns.push(Column::new(title, test.scale.name));
    }
    if !test.over_device.is_empty() {
        columns.push(Column::new("vs. device", ""));
    }
    let row = |(place, entry): (usize, &Entry)| Row {
        title: filesystems[entry.filesystem].name.clone(),
        unit: "",
        filesystem: Some(entry.filesystem),
        note: entry.failed_repetitions(),
        body: body(test, place, entry, facts),
    };
    let mut table = Table {
        id: format!("{}-{}-ranked", point.id, point.index(test)),
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
            "Holm-adjusted over {}; {}; a ratio below 1 is worse than the best; rank: \
             90 % bootstrap interval over rounds (probability of rank 1){}",
            count(family.ranking.pairs.len(), "comparison"),
            facts.margin.label(),
            match (family.aligned, family.shared) {
                (true, _) =>
                    "; ordered and compared in common rounds, aligned by round with the other \
                     cells of the run because the run drifted",
                (false, true) =>
                    "; ordered in the rounds that all completed and compared in those that both \
                     completed, because the run may have drifted",
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
        TableCell::Text(rank_interval(test, place)),
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
    if !test.over_device.is_empty() {
        let own = test.over_device.iter().find(|own| own.filesystem == entry.filesystem);
        let absent = if entry.ranked && !entry.raw { "estimates disagree" } else { "-" };
        cells.push(TableCell::Text(own.map_or_else(|| absent.into(), OverDevice::text)));
    }
    Body::Cells(cells)
}

/// `1 to 2 (0.64)`: 90 % interval of the rank and probability of rank 1.
fn rank_interval(test: &Test, place: usize) -> String {
    let of_member = |family: &Family| {
        let member = family.members.iter().position(|at| *at == place)?;
        let (low, high) = *family.ranking.places.get(member)?;
        let first = family.ranking.first.get(member)?;
        let places = if low == high { low.to_string() } else { format!("{low} to {high}") };
        Some(format!("{places} ({})", fixed(first.0, 2)))
    };
    test.family.as_ref().and_then(of_member).unwrap_or_default()
}

/// Ratio to the best median, below 1 if worse, and result of the comparison with it, as text.
fn against_best(test: &Test, place: usize, entry: &Entry, facts: &Facts) -> (String, String) {
    if entry.raw {
        return (String::new(), REFERENCE.into());
    }
    if let Some((failed, all, _)) = &entry.failed {
        let all = count(*all, "repetition");
        return (String::new(), format!("not ranked: {failed} of {all} failed"));
    }
    if !entry.ranked {
        return (String::new(), "not ranked: see warnings".into());
    }
    let family = test.family.as_ref();
    let member = family.and_then(|family| family.members.iter().position(|at| *at == place));
    let (Some(family), Some(member)) = (family, member) else {
        return (String::new(), "no other filesystem".into());
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
    (ratio(1.0 / pair.comparison.ratio.0, turned), pair_result(pair, facts))
}

/// Result of the comparison of a filesystem with the best one.
pub(crate) fn pair_result(pair: &Pair, facts: &Facts) -> String {
    let delta = facts.margin.percent();
    match pair.comparison.verdict {
        Verdict::Equivalent => format!("equivalent within {delta}"),
        Verdict::Inconclusive { needed } => match inverse_disagreement(&pair.comparison) {
            Some(why) => format!("inconclusive: {why}"),
            None => format!("inconclusive; about {needed} repetitions each needed"),
        },
        Verdict::Differs { side: Side::Worse, .. } => {
            "inconclusive: median and test disagree".into()
        }
        Verdict::Differs { .. } if !pair.is_significant() => {
            "not significant after adjustment".into()
        }
        Verdict::Differs { size: Size::AtLeast, .. } => format!("worse by at least {delta}"),
        Verdict::Differs { size: Size::Uncertain, .. } => {
            match inverse_disagreement(&pair.comparison) {
                Some(why) => format!("worse, effect size not available: {why}"),
                None => "worse, effect size uncertain".into(),
            }
        }
        Verdict::Differs { size: Size::Negligible, .. } => format!("worse by less than {delta}"),
    }
}
