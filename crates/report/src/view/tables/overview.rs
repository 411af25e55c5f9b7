//! Overview of a suite: filesystems × tests per point, tests × parameter values per filesystem.

use std::collections::BTreeSet;

use analysis::Summary;
use model::{Metric, Value};

use super::{
    Body, Column, Row, Table, TableCell, ValueCell, caches, directions, metric_label, scale_of,
    side_by_side::side_by_side, tasks,
};
use crate::{
    units::{Scale, capital, count, distinct, grouped, one_line, slug},
    view::{
        facts::{Facts, Filesystem},
        points::{AS_FOUND, Entry, Status, Suite, Test, WorkPoint},
        totals::Totals,
    },
};

/// Overview tables of a suite.
#[derive(Clone, Debug)]
pub(crate) struct Overview {
    /// Per point and group: filesystems × tests; for timed tasks, tests × filesystems, seconds and
    /// CPU %. Then further metrics of some suites.
    pub(crate) by_point: Vec<Table>,
    /// Totals, per point with timed tasks.
    pub(crate) composites: Vec<Table>,
    /// The totals as stacked bars, one per table of `composites`.
    pub(crate) totals: Vec<Totals>,
    /// Per point with timed tasks: seconds including sync, CPU % including kernel threads.
    pub(crate) further: Vec<Table>,
    /// Per filesystem, swept parameter, and group: tests × values.
    pub(crate) by_filesystem: Vec<Table>,
    /// Like `by_point`, for the counterpart of the throughput of writes.
    pub(crate) counterparts: Vec<Table>,
}

impl Overview {
    /// All tables in the order of the report.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Table> {
        let first = self.by_point.iter().chain(&self.composites).chain(&self.further);
        first.chain(&self.by_filesystem).chain(&self.counterparts)
    }
}

/// All overview tables of a suite except the totals, in the order of the study if the plan
/// reproduces one.
///
/// Other tables show the values of the parameters in `shown` side by side. These parameters have no
/// tables by filesystem.
pub(crate) fn overview(
    suite: &Suite,
    filesystems: &[Filesystem],
    facts: &Facts,
    shown: &BTreeSet<String>,
) -> Overview {
    let groups = groups(suite);
    let (mut by_point, mut further) = (Vec::new(), Vec::new());
    for point in &suite.points {
        if tasks::timed(point) {
            by_point.extend(tasks::first(point, filesystems, facts));
            further.extend(tasks::further(point, filesystems));
            continue;
        }
        // Groups without a test at this point are skipped. If nothing was measured, the tables have
        // the reasons.
        let any = |group: &str| point.tests.iter().any(|test| test.group == group);
        let shown =
            |group: &&String| suite.numbered_as_2009 || point.tests.is_empty() || any(group);
        for group in groups.iter().filter(shown) {
            by_point.push(of_point(point, group, filesystems, facts));
        }
        by_point.extend(side_by_side(&suite.name, point, filesystems));
    }
    if suite.numbered_as_2009 {
        number(&mut by_point, 1);
    }
    let mut by_filesystem = by_filesystem(suite, &groups, filesystems, shown);
    if suite.numbered_as_2009 {
        by_filesystem = as_in_2009(by_filesystem);
    }
    let mut others = Vec::new();
    for point in &suite.points {
        for group in &groups {
            others.extend(counterparts(point, group, filesystems));
        }
    }
    Overview {
        by_point,
        composites: Vec::new(),
        totals: Vec::new(),
        further,
        by_filesystem,
        counterparts: others,
    }
}

/// Groups of phases in the order they first appear.
fn groups(suite: &Suite) -> Vec<String> {
    let tests = suite.points.iter().flat_map(|point| &point.tests);
    let groups = distinct(tests.map(|test| test.group.clone()));
    // If nothing was measured, there are no groups, but the table of reasons needs one.
    if groups.is_empty() { vec!["results".into()] } else { groups }
}

fn number(tables: &mut [Table], first: usize) {
    for (table, number) in tables.iter_mut().zip(first..) {
        table.title = format!("Table {number}. {}", table.title);
    }
}

/// Puts the study's tables 9 to 12 first: reiser4 and btrfs writing, then both reading.
fn as_in_2009(tables: Vec<Table>) -> Vec<Table> {
    const ORDER: [&str; 4] =
        ["reiser4-writing", "btrfs-writing", "reiser4-reading", "btrfs-reading"];
    let place =
        |table: &Table| ORDER.iter().position(|name| table.id.contains(&format!("--{name}--")));
    let (mut numbered, others): (Vec<_>, Vec<_>) =
        tables.into_iter().partition(|table| place(table).is_some());
    numbered.sort_by_key(place);
    for table in &mut numbered {
        if let Some(place) = place(table) {
            table.title = format!("Table {}. {}", 9 + place, table.title);
        }
    }
    numbered.into_iter().chain(others).collect()
}

/// Table of a group of tests at one point: filesystems × tests.
fn of_point(point: &WorkPoint, group: &str, filesystems: &[Filesystem], facts: &Facts) -> Table {
    let tests: Vec<&Test> = point.tests.iter().filter(|test| test.group == group).collect();
    let value =
        |test: &Test, entry: &Entry| value_cell(entry, entry.summary.as_ref(), test.scale, true);
    let metric = |test: &Test| test.metric;
    let mut table = grid(point, &tests, filesystems, metric, |test| test.scale, value);
    table.id = format!("{}--{}", point.id, slug(group));
    table.title = format!("{}: {}", capital(group), point.label);
    if table.has_top() {
        let families = tests.iter().filter_map(|test| test.family.as_ref());
        let most = families.map(|family| family.ranking.pairs.len()).max().unwrap_or(0);
        table.caption.push(format!(
            "▲ top group of the column (Holm-adjusted over {}, {}); ! see warnings",
            count(most, "comparison"),
            facts.margin.label()
        ));
    }
    table
}

/// Table of the counterpart of the throughput of writes, if any.
fn counterparts(point: &WorkPoint, group: &str, filesystems: &[Filesystem]) -> Option<Table> {
    let tests: Vec<&Test> = point
        .tests
        .iter()
        .filter(|test| test.group == group && test.counterpart.is_some())
        .collect();
    let first = tests.first()?.counterpart?;
    let metric = |test: &Test| test.counterpart.unwrap_or(test.metric);
    let value = |test: &Test, entry: &Entry| {
        value_cell(entry, entry.counterpart.as_ref(), test.scale, false)
    };
    let mut table = grid(point, &tests, filesystems, metric, |test| test.scale, value);
    let what = if first == Metric::Throughput { "accepted" } else { "durable" };
    table.id = format!("{}--{}--{what}", point.id, slug(group));
    table.title = format!("{} ({what}): {}", capital(group), point.label);
    table.caption.push(first.spec().meaning.trim_end_matches('.').to_owned());
    Some(table)
}

/// Table of filesystems × tests; `value` returns the cell of an entry.
pub(super) fn grid(
    point: &WorkPoint,
    tests: &[&Test],
    filesystems: &[Filesystem],
    metric: impl Fn(&Test) -> Metric,
    scale: impl Fn(&Test) -> Scale,
    value: impl Fn(&Test, &Entry) -> TableCell,
) -> Table {
    let mut rows = Vec::new();
    for (index, filesystem) in filesystems.iter().enumerate() {
        let body = match &point.statuses[index] {
            None => continue,
            Some(Status::Nothing(reason)) => Body::Missing(reason.clone()),
            Some(Status::Measured) => {
                let cell = |test: &&Test| match test.entry(index) {
                    Some(entry) => value(test, entry),
                    None => TableCell::Text("not in this cell".into()),
                };
                Body::Cells(tests.iter().map(cell).collect())
            }
        };
        let (title, filesystem) = (filesystem.name.clone(), Some(index));
        let failed =
            tests.first().and_then(|test| test.entry(index)).map(Entry::failed_repetitions);
        let note = failed.unwrap_or_default();
        rows.push(Row { title, unit: "", filesystem, note, body });
    }
    let columns =
        tests.iter().map(|test| Column::new(test.name.clone(), scale(test).name)).collect();
    let mut table = Table {
        id: String::new(),
        title: String::new(),
        caption: Vec::new(),
        corner: "filesystem",
        columns,
        rows,
    };
    let quantities = directions(tests.iter().map(|test| metric(test)));
    if !quantities.is_empty() {
        table.caption.push(capital(&quantities));
    }
    let sizes = point.sizes();
    if !sizes.is_empty() {
        table.caption.push(sizes);
    }
    table.caption.extend(point.load.first().cloned());
    table.caption.extend(caches(tests));
    table.state_n();
    table
}

/// Cell of an entry: a number, or the reason why it is missing. `primary` is true for the primary
/// metric, which has the mark of the top group and all warning codes.
pub(crate) fn value_cell(
    entry: &Entry,
    summary: Option<&Summary>,
    scale: Scale,
    primary: bool,
) -> TableCell {
    match (summary, &entry.status) {
        (Some(summary), _) => TableCell::Value(ValueCell {
            top: primary && entry.top,
            codes: if primary { &entry.codes } else { &entry.measured_codes }.clone(),
            of: primary.then(|| entry.of()),
            ..ValueCell::plain(summary, scale)
        }),
        (None, Status::Nothing(reason)) => TableCell::Text(reason.clone()),
        (None, Status::Measured) => TableCell::Text("not measured".into()),
    }
}

/// Per filesystem and swept parameter: tests × values, with all other parameters fixed.
fn by_filesystem(
    suite: &Suite,
    groups: &[String],
    filesystems: &[Filesystem],
    shown: &BTreeSet<String>,
) -> Vec<Table> {
    let mut tables = Vec::new();
    let swept = suite.swept.iter().filter(|name| !shown.contains(*name));
    let swept: Vec<_> = swept.map(|name| (name, slices(suite, name))).collect();
    for (index, filesystem) in filesystems.iter().enumerate() {
        for (parameter, slices) in &swept {
            for points in slices {
                for group in groups {
                    tables.push(of_filesystem(index, filesystem, parameter, points, group));
                }
            }
        }
    }
    tables
}

/// Groups of points that differ at most in these parameters, in the order of their values.
pub(crate) fn alike<'a>(
    points: impl Iterator<Item = &'a WorkPoint>,
    but: &[&str],
) -> Vec<Vec<&'a WorkPoint>> {
    let keyed = points.map(|point| {
        let others = point.parameters.iter().filter(|(name, _)| !but.contains(&name.as_str()));
        (format!("{:?}", others.collect::<Vec<_>>()), point)
    });
    grouped(keyed).into_iter().map(|(_, points)| points).collect()
}

/// Groups of at least two points that differ in one parameter only, in the order of its values.
pub(crate) fn slices<'a>(suite: &'a Suite, parameter: &str) -> Vec<Vec<&'a WorkPoint>> {
    let mut slices = alike(suite.points.iter(), &[parameter]);
    slices.retain(|slice| slice.len() > 1);
    slices
}

fn of_filesystem(
    index: usize,
    filesystem: &Filesystem,
    parameter: &str,
    points: &[&WorkPoint],
    group: &str,
) -> Table {
    let level = |point: &WorkPoint| {
        point.parameters.get(parameter).map_or_else(|| AS_FOUND.into(), Value::to_string)
    };
    let columns = points
        .iter()
        .map(|point| Column::new(format!("{parameter} {}", one_line(&level(point))), ""));
    let reasons: Vec<&String> = points
        .iter()
        .filter_map(|point| match &point.statuses[index] {
            Some(Status::Nothing(reason)) => Some(reason),
            Some(Status::Measured) | None => None,
        })
        .collect();
    let tests = points.iter().flat_map(|point| &point.tests).filter(|test| test.group == group);
    let names = grouped(tests.map(|test| (test.name.as_str(), test)));
    let names: Vec<&Test> = names.into_iter().map(|(_, same)| same[0]).collect();
    let rows = match reasons.first() {
        Some(reason) if reasons.len() == points.len() => {
            vec![Row::of("all tests", None, Body::Missing((*reason).clone()))]
        }
        _ => names.iter().map(|test| over_levels(test, index, points)).collect(),
    };
    let mut table = Table {
        id: format!(
            "{}--{}-{}--{}",
            points[0].id,
            slug(&filesystem.name),
            slug(group),
            slug(parameter)
        ),
        title: format!("{}: {}, by {parameter}", capital(group), filesystem.name),
        caption: vec![capital(&directions(names.iter().map(|test| test.metric)))],
        corner: "test",
        columns: columns.collect(),
        rows,
    };
    table.caption.retain(|line| !line.is_empty());
    table.state_n();
    table
}

/// One test of one filesystem over the levels of a parameter, in one scale.
fn over_levels(test: &Test, filesystem: usize, points: &[&WorkPoint]) -> Row {
    let entries: Vec<Option<&Entry>> = points
        .iter()
        .map(|point| {
            let same = point.tests.iter().find(|other| other.name == test.name)?;
            same.entry(filesystem)
        })
        .collect();
    let summaries = entries.iter().flatten().filter_map(|entry| entry.summary.as_ref());
    let scale = scale_of(test.metric.spec().unit, summaries);
    let cell = |entry: &Option<&Entry>| match entry {
        Some(entry) => match value_cell(entry, entry.summary.as_ref(), scale, true) {
            // The top group is not marked, because this table has one filesystem.
            TableCell::Value(value) => TableCell::Value(ValueCell {
                top: false,
                note: entry.failed_repetitions(),
                ..value
            }),
            text @ TableCell::Text(_) => text,
        },
        None => TableCell::Text("not in the plan".into()),
    };
    let usual = [Metric::Throughput, Metric::DurableThroughput].contains(&test.metric);
    let title = match usual {
        true => test.name.clone(),
        false => format!("{} ({})", test.name, metric_label(test.metric)),
    };
    let cells = Body::Cells(entries.iter().map(cell).collect());
    Row { unit: scale.name, ..Row::of(title, None, cells) }
}
