//! Sections of suites: overviews, tests with their repetitions, and system activity.

use rayon::prelude::*;

use super::{
    budget::{Budget, left_out, size},
    tables,
};
use crate::{
    document::{Block, Figure, Layout, Scope, Section, Spark, SparkRow},
    figures,
    units::percent,
    view::{Entry, Table, Test, View},
};

/// Sparklines of repetitions are level if the range relative to the median is below this value.
/// Such a range is smaller than any equivalence margin, and the steps of a sparkline would
/// exaggerate it.
const LEVEL: f64 = 0.01;

/// Number of tests whose charts are drawn at a time, which limits memory: most charts of a large
/// run are omitted.
const TOGETHER: usize = 128;

/// Heading of a section of a suite; with the name of the suite if there are several.
fn heading(view: &View, suite: usize, title: &str) -> String {
    match view.suites.len() {
        1 => title.to_owned(),
        _ => format!("{title}: {}", view.suites[suite].name),
    }
}

/// Charts and tables over all tests of a suite.
pub(super) fn overview(view: &View, at: usize, budget: &mut Budget) -> Section {
    use Layout::{Compact, Full};
    let (suite, overview) = (&view.suites[at], &view.overviews[at]);
    let here = |table: &&Table| !view.in_study(&table.id);
    let combined = |table: &&Table| {
        let point = table.id.split("--").next().unwrap_or_default();
        view.shown_in_wide_table(suite, point)
    };
    let id = format!("overview-{}", at + 1);
    let mut section = Section::new(id.clone(), heading(view, at, "Overview"), Vec::new());
    let before = budget.omitted().1;
    if budget.has_charts() {
        section.blocks = budget.charts(figures::of_suite(view, at));
    }
    let moved = overview.all().filter(|table| !here(table)).count();
    let elsewhere = overview.by_point.iter().filter(here).filter(combined).count();
    for (number, part) in [(moved, "study"), (elsewhere, "scaling"), (elsewhere, "settings")] {
        let target = match part {
            "study" => "Tables of the study",
            "scaling" if !view.scaling.is_empty() => "Scaling",
            "settings" if !view.interactions.is_empty() => "System settings",
            _ => continue,
        };
        if number > 0 {
            let link = vec![(part.to_owned(), target.to_owned())];
            section.blocks.push(Block::Links("More tables of this suite".into(), link));
        }
    }
    let by_point = overview.by_point.iter().filter(|table| !combined(table));
    section.blocks.extend(fitting(budget, by_point.filter(here), Compact));
    let below = [
        ("Totals", &overview.composites, Compact),
        ("Including sync and kernel threads", &overview.further, Compact),
        ("By filesystem", &overview.by_filesystem, Full),
        ("Accepted and durable write throughput", &overview.counterparts, Full),
    ];
    for (number, (title, tables, layout)) in below.into_iter().enumerate() {
        let mut blocks = fitting(budget, tables.iter().filter(here), layout);
        if number == 3 && !blocks.is_empty() {
            let text = "Accepted: until the last write returned. Durable: until the final sync \
                        returned.";
            blocks.insert(0, Block::Note(text.into()));
        }
        section.sections.extend(Section::new(format!("{id}-{number}"), title, blocks).some());
    }
    section.blocks.extend(left_out(budget.omitted().1 - before, "table"));
    section
}

fn fitting<'a>(
    budget: &mut Budget,
    own: impl IntoIterator<Item = &'a Table>,
    layout: Layout,
) -> Vec<Block> {
    tables(budget.tables(own), layout).collect()
}

/// Every test of a suite, by workload point. `first` is the index of the first point of the suite
/// among all points.
pub(super) fn tests(view: &View, at: usize, first: usize, budget: &mut Budget) -> Section {
    let suite = &view.suites[at];
    let id = format!("tests-{}", at + 1);
    let mut section = Section::new(id, heading(view, at, "Tests"), Vec::new());
    let places = places(view, at);
    let mut own = Vec::with_capacity(places.len());
    for (part, places) in places.chunks(TOGETHER).enumerate() {
        let drawn: Vec<Vec<Figure>> = match budget.has_charts() {
            true => {
                let drawn = places.par_iter();
                drawn.map(|(point, test)| figures::of_test(view, at, *point, *test)).collect()
            }
            false => vec![Vec::new(); places.len()],
        };
        for (index, ((point, test), figures)) in places.iter().zip(drawn).enumerate() {
            let flat = part * TOGETHER + index;
            own.push(of_test(
                view,
                (at, flat),
                &suite.points[*point].tests[*test],
                budget.charts(figures),
            ));
        }
    }
    let mut own = own.into_iter();
    for (index, point) in suite.points.iter().enumerate() {
        let parameters = Block::Note(format!("Parameters: {}.", point.all_parameters()));
        section.sections.push(Section {
            scope: Scope::Point(first + index),
            sections: own.by_ref().take(point.tests.len()).collect(),
            ..Section::new(&point.id, &point.label, vec![parameters])
        });
    }
    section
}

/// Index of the point, and index of the test in its point, of each test of a suite.
fn places(view: &View, suite: usize) -> Vec<(usize, usize)> {
    let points = view.suites[suite].points.iter().enumerate();
    points.flat_map(|(at, point)| (0..point.tests.len()).map(move |test| (at, test))).collect()
}

/// One test: charts, ranking, and repetitions.
fn of_test(view: &View, (suite, flat): (usize, usize), test: &Test, charts: Vec<Block>) -> Section {
    let ranked = &view.details[suite][flat].ranked;
    let data = Block::Table(ranked.clone(), Layout::Full);
    let operations = view.details[suite][flat].operations.as_ref();
    let operations = operations.map(|table| {
        let table = Block::Table(table.clone(), Layout::Compact);
        Block::Fold("Operations by type".into(), vec![table])
    });
    let data = Block::Fold("Data and test results".into(), vec![data]);
    let blocks = charts.into_iter().chain([data]).chain(repetitions(view, test)).chain(operations);
    Section {
        scope: Scope::Test(test.number, test.name.clone()),
        ..Section::new(&test.id, &ranked.title, blocks.collect())
    }
}

/// Repetitions of a test in order, from minimum to maximum per filesystem.
fn repetitions(view: &View, test: &Test) -> Option<Block> {
    let shown = test.entries.iter().filter(|entry| entry.values.len() > 1);
    let row = |entry: &Entry| {
        let values = &entry.values;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = entry.summary.as_ref().map_or(high, |summary| summary.median);
        let apart = (high - low) / middle.abs();
        SparkRow {
            name: view.filesystems[entry.filesystem].name.clone(),
            range: if apart < LEVEL { (0.0, 0.0) } else { (low, high) },
            values: values.iter().copied().map(Some).collect(),
            text: format!(
                "{} to {} {}, range {}, n = {}",
                test.scale.rough(low),
                test.scale.rough(high),
                test.scale.name,
                percent(apart),
                values.len()
            ),
        }
    };
    let rows: Vec<SparkRow> = shown.map(row).collect();
    (!rows.is_empty()).then(|| {
        Block::Spark(Spark {
            title: String::new(),
            rows,
            caption: "Repetitions in order, from minimum to maximum per filesystem; level if the \
                      range is less than 1 %."
                .into(),
        })
    })
}

/// CPU time and device I/O of every test.
pub(super) fn activity(view: &View, budget: &mut Budget) -> Option<Section> {
    let mut blocks = Vec::new();
    let before = budget.omitted().1;
    for at in 0..view.suites.len() {
        for (flat, (point, test)) in places(view, at).into_iter().enumerate() {
            if budget.has_charts() {
                blocks.extend(budget.charts(figures::cpu_time(view, at, point, test)));
            }
            let own = fitting(budget, &view.details[at][flat].activity, Layout::Bare);
            if !own.is_empty() {
                let title = &view.details[at][flat].ranked.title;
                let title = format!("System activity: CPU and devices: {title}");
                blocks.push(Block::Fold(title, own));
            }
        }
    }
    blocks.extend(left_out(budget.omitted().1 - before, "table"));
    Section::new("activity", "CPU and devices", blocks).some()
}

/// Estimated size in bytes of the rankings of all tests, which are always included.
pub(super) fn mandatory(view: &View) -> usize {
    view.details.iter().flatten().map(|own| size(&own.ranked)).sum()
}
