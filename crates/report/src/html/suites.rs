//! Sections of suites: overview charts, overview tables, and every test with its charts and data.

use rayon::prelude::*;

use super::{
    budget::Budget,
    tables::{Points, of_point, table_html},
};
use crate::{
    figures::{self, Figure},
    view::{Table, View, WorkPoint},
};

/// Section of a suite.
pub(super) struct SuiteSection<'a> {
    pub(super) name: &'a str,
    pub(super) charts: Charts,
    pub(super) by_point: Vec<String>,
    /// Number of tables shown in the section of the study instead.
    pub(super) moved: usize,
    /// Number of workloads combined in other sections instead.
    pub(super) combined: usize,
    pub(super) composites: Vec<String>,
    pub(super) further: Vec<String>,
    pub(super) by_filesystem: Vec<String>,
    pub(super) counterparts: Vec<String>,
    pub(super) points: Vec<PointSection<'a>>,
    /// Number of charts of tests omitted.
    pub(super) omitted: usize,
    /// Number of tables omitted.
    pub(super) tables_omitted: usize,
}

/// Overview charts of a suite.
pub(super) struct Charts {
    pub(super) figures: Vec<Figure>,
    /// Number of charts omitted.
    pub(super) omitted: usize,
}

/// Section of a workload point.
pub(super) struct PointSection<'a> {
    pub(super) id: &'a str,
    pub(super) label: &'a str,
    /// Text.
    pub(super) parameters: String,
    /// JSON object for the script.
    pub(super) values: String,
    pub(super) tests: Vec<TestSection<'a>>,
}

/// Section of a test.
pub(super) struct TestSection<'a> {
    pub(super) id: &'a str,
    pub(super) number: usize,
    pub(super) name: &'a str,
    pub(super) title: &'a str,
    pub(super) figures: Vec<Figure>,
    /// Number of charts omitted.
    pub(super) omitted: usize,
    /// Data of the charts, and test results.
    pub(super) table: String,
    /// Operations of a replay by type; empty for other tests.
    pub(super) operations: String,
    /// Tables of system activity.
    pub(super) activity: Vec<String>,
}

impl SuiteSection<'_> {
    /// True if it has overview charts, possibly omitted.
    pub(super) fn has_charts(&self) -> bool {
        !self.charts.figures.is_empty() || self.charts.omitted > 0
    }
}

/// Overview charts of a suite that fit into the budget.
pub(super) fn overview(view: &View, suite: usize, budget: &mut Budget) -> Charts {
    let (figures, omitted) = budget.take(figures::of_suite(view, suite));
    Charts { figures, omitted }
}

/// Ranked tables of all tests, by suite, as in [`View::ranked`].
pub(super) fn ranked(view: &View, all: &Points) -> Vec<Vec<String>> {
    let html = |table: &Table| table_html(table, all);
    view.ranked.iter().map(|tables| tables.par_iter().map(html).collect()).collect()
}

/// All suites with their overview charts and their [`ranked`] tables.
pub(super) fn sections<'a>(
    view: &'a View,
    all: &Points,
    (charts, ranked): (Vec<Charts>, Vec<Vec<String>>),
    budget: &mut Budget,
) -> Vec<SuiteSection<'a>> {
    let wide = |table: &Table| table_html(table, all);
    let own = |table: &Table| of_point(table, all);
    let mut sections = Vec::new();
    let suites = view.suites.iter().zip(&view.overviews).zip(charts).zip(ranked).enumerate();
    for (index, (((suite, overview), charts), ranked)) in suites {
        let before = (budget.omitted(), budget.tables_omitted());
        let mut tests = tests(view, all, index, ranked, budget).into_iter();
        let point = |point: &'a WorkPoint| PointSection {
            id: &point.id,
            label: &point.label,
            parameters: point.all_parameters(),
            values: all.get(&point.id).map_or("{}".into(), |own| own.parameters.clone()),
            tests: tests.by_ref().take(point.tests.len()).collect(),
        };
        let points = suite.points.iter().map(point).collect();
        let here = |table: &&Table| !view.in_study(&table.id);
        let combined = |table: &&Table| {
            let point = table.id.split("--").next().unwrap_or_default();
            view.shown_in_wide_table(suite, point)
        };
        let by_point = || overview.by_point.iter().filter(here);
        let alone = by_point().filter(|table| !combined(table));
        sections.push(SuiteSection {
            name: &suite.name,
            charts,
            moved: overview.all().filter(|table| !here(table)).count(),
            by_point: budget.tables(alone.map(own)),
            combined: by_point().filter(combined).count(),
            composites: budget.tables(overview.composites.iter().filter(here).map(own)),
            further: budget.tables(overview.further.iter().filter(here).map(own)),
            by_filesystem: budget.tables(overview.by_filesystem.iter().filter(here).map(wide)),
            counterparts: budget.tables(overview.counterparts.iter().filter(here).map(own)),
            points,
            omitted: budget.omitted() - before.0,
            tables_omitted: budget.tables_omitted() - before.1,
        });
    }
    sections
}

/// Tests of a suite, in order. Their charts and tables are rendered in parallel, a few tests at a
/// time, because most of those of a large run are omitted and need not be kept.
fn tests<'a>(
    view: &'a View,
    all: &Points,
    suite: usize,
    ranked: Vec<String>,
    budget: &mut Budget,
) -> Vec<TestSection<'a>> {
    const TOGETHER: usize = 128;
    let points = view.suites[suite].points.iter().enumerate();
    let places: Vec<(usize, usize)> =
        points.flat_map(|(at, point)| (0..point.tests.len()).map(move |test| (at, test))).collect();
    let mut sections = Vec::with_capacity(places.len());
    let mut ranked = ranked.into_iter();
    for (part, places) in places.chunks(TOGETHER).enumerate() {
        let drawn = places.par_iter().enumerate().map(|(at, (point, test))| {
            Drawn::new(view, all, suite, (*point, *test), part * TOGETHER + at)
        });
        let drawn: Vec<Drawn> = drawn.collect();
        let tests = drawn.into_iter().zip(places).zip(&mut ranked).enumerate();
        for (at, ((drawn, (point, test)), table)) in tests {
            let own = &view.suites[suite].points[*point].tests[*test];
            let (figures, omitted) = budget.take(drawn.figures);
            sections.push(TestSection {
                id: &own.id,
                number: own.number,
                name: &own.name,
                title: &view.ranked[suite][part * TOGETHER + at].title,
                figures,
                omitted,
                table,
                operations: budget.tables(drawn.operations.into_iter()).concat(),
                activity: budget.tables(drawn.activity.into_iter()),
            });
        }
    }
    sections
}

/// Rendered parts of a test before the budget is applied.
struct Drawn {
    figures: Vec<Figure>,
    operations: Option<String>,
    activity: Vec<String>,
}

impl Drawn {
    /// Renders a test given by suite, point, and index, and its index among all tests of the suite.
    fn new(
        view: &View,
        all: &Points,
        suite: usize,
        (point, test): (usize, usize),
        flat: usize,
    ) -> Self {
        let html = |table: &Table| table_html(table, all);
        Self {
            figures: figures::of_test(view, suite, point, test),
            operations: view.operations[suite][flat].as_ref().map(html),
            activity: view.activity[suite][flat].iter().map(html).collect(),
        }
    }
}
