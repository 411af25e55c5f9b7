//! The suites: overview charts, overview tables, and every test with its charts and its data.

use super::{
    budget::Budget,
    tables::{Points, of_point, table_html},
};
use crate::{
    figures::{self, Figure},
    view::{Table, View},
};

/// One suite.
pub(super) struct SuiteSection<'a> {
    pub(super) name: &'a str,
    pub(super) charts: Charts<'a>,
    pub(super) by_point: Vec<String>,
    /// Tables that stand in the view of the study, and not here.
    pub(super) moved: usize,
    /// Workloads that stand side by side in other sections, and not here.
    pub(super) elsewhere: usize,
    pub(super) composites: Vec<String>,
    pub(super) further: Vec<String>,
    pub(super) by_filesystem: Vec<String>,
    pub(super) counterparts: Vec<String>,
    pub(super) points: Vec<PointSection<'a>>,
    /// Charts of tests that the page has no room for.
    pub(super) left_out: usize,
    /// Tables that the page has no room for.
    pub(super) tables_left_out: usize,
}

/// The overview charts of a suite.
pub(super) struct Charts<'a> {
    pub(super) figures: Vec<Plot<'a>>,
    /// Charts that the page has no room for.
    pub(super) left_out: usize,
}

/// One workload point.
pub(super) struct PointSection<'a> {
    pub(super) id: &'a str,
    pub(super) label: &'a str,
    /// For readers.
    pub(super) parameters: String,
    /// For the script: a JSON object.
    pub(super) values: String,
    pub(super) tests: Vec<TestSection<'a>>,
}

/// One test.
pub(super) struct TestSection<'a> {
    pub(super) id: &'a str,
    pub(super) number: usize,
    pub(super) name: &'a str,
    pub(super) title: &'a str,
    pub(super) figures: Vec<Plot<'a>>,
    /// Charts that the page has no room for.
    pub(super) left_out: usize,
    /// The data of the charts, and verdicts.
    pub(super) table: String,
    /// What a replay did, by kind of operation; empty for other tests.
    pub(super) operations: String,
    /// Tables of what the machine did meanwhile.
    pub(super) evidence: Vec<String>,
}

/// A chart under the conditions of the run.
pub(super) struct Plot<'a> {
    pub(super) figure: Figure,
    pub(super) conditions: &'a str,
}

impl SuiteSection<'_> {
    /// Whether it has overview charts, or lacks the room for them.
    pub(super) fn has_charts(&self) -> bool {
        !self.charts.figures.is_empty() || self.charts.left_out > 0
    }
}

/// The overview charts of a suite, as far as there is room.
pub(super) fn overview<'a>(view: &'a View, suite: usize, budget: &mut Budget) -> Charts<'a> {
    let (figures, left_out) = budget.take(figures::of_suite(view, suite));
    Charts { figures: plots(figures, view), left_out }
}

/// All suites with their overview charts.
pub(super) fn sections<'a>(
    view: &'a View,
    all: &Points,
    charts: Vec<Charts<'a>>,
    budget: &mut Budget,
) -> Vec<SuiteSection<'a>> {
    let wide = |table: &Table| table_html(table, view, all);
    let own = |table: &Table| of_point(table, view, all);
    let mut sections = Vec::new();
    let suites = view.suites.iter().zip(&view.overviews).zip(charts).enumerate();
    for (index, ((suite, overview), charts)) in suites {
        let before = (budget.left_out(), budget.tables_left_out());
        let mut points = Vec::new();
        for (at, point) in suite.points.iter().enumerate() {
            let test = |test| test_section(view, all, (index, at, test), budget);
            points.push(PointSection {
                id: &point.id,
                label: &point.label,
                parameters: point.all_parameters(),
                values: all.get(&point.id).map_or("{}".into(), |own| own.parameters.clone()),
                tests: (0..point.tests.len()).map(test).collect(),
            });
        }
        let here = |table: &&Table| !view.in_study(&table.id);
        let elsewhere = |table: &&Table| {
            let point = table.id.split("--").next().unwrap_or_default();
            view.stands_elsewhere(suite, point)
        };
        let by_point = || overview.by_point.iter().filter(here);
        let alone = by_point().filter(|table| !elsewhere(table));
        sections.push(SuiteSection {
            name: &suite.name,
            charts,
            moved: overview.all().filter(|table| !here(table)).count(),
            by_point: budget.tables(alone.map(own)),
            elsewhere: by_point().filter(elsewhere).count(),
            composites: budget.tables(overview.composites.iter().filter(here).map(own)),
            further: budget.tables(overview.further.iter().filter(here).map(own)),
            by_filesystem: budget.tables(overview.by_filesystem.iter().filter(here).map(wide)),
            counterparts: budget.tables(overview.counterparts.iter().filter(here).map(own)),
            points,
            left_out: budget.left_out() - before.0,
            tables_left_out: budget.tables_left_out() - before.1,
        });
    }
    sections
}

/// Figures under the conditions of the run.
pub(super) fn plots(figures: Vec<Figure>, view: &View) -> Vec<Plot<'_>> {
    let plot = |figure| Plot { figure, conditions: &view.facts.conditions };
    figures.into_iter().map(plot).collect()
}

/// A test by its place: suite, point, test.
fn test_section<'a>(
    view: &'a View,
    all: &Points,
    (suite, point, test): (usize, usize, usize),
    budget: &mut Budget,
) -> TestSection<'a> {
    let flat = view.flat(suite, point, test);
    let own = &view.suites[suite].points[point].tests[test];
    let table = table_html(&view.ranked[suite][flat], view, all);
    let (figures, left_out) = budget.take(figures::of_test(view, suite, point, test));
    let mut html =
        |tables: &[Table]| budget.tables(tables.iter().map(|table| table_html(table, view, all)));
    TestSection {
        id: &own.id,
        number: own.number,
        name: &own.name,
        title: &view.ranked[suite][flat].title,
        figures: plots(figures, view),
        left_out,
        table,
        operations: html(view.operations[suite][flat].as_slice()).concat(),
        evidence: html(&view.evidence[suite][flat]),
    }
}
