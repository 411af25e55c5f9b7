//! The suites: overview charts, overview tables, and every test with its charts and its data.

use rayon::prelude::*;

use super::{
    budget::Budget,
    tables::{Points, of_point, table_html},
};
use crate::{
    figures::{self, Figure},
    view::{Table, View, WorkPoint},
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

/// The ranked tables of all tests, by suite, as [`View::ranked`].
pub(super) fn ranked(view: &View, all: &Points) -> Vec<Vec<String>> {
    let html = |table: &Table| table_html(table, view, all);
    view.ranked.iter().map(|tables| tables.par_iter().map(html).collect()).collect()
}

/// All suites with their overview charts and their [`ranked`] tables.
pub(super) fn sections<'a>(
    view: &'a View,
    all: &Points,
    (charts, ranked): (Vec<Charts<'a>>, Vec<Vec<String>>),
    budget: &mut Budget,
) -> Vec<SuiteSection<'a>> {
    let wide = |table: &Table| table_html(table, view, all);
    let own = |table: &Table| of_point(table, view, all);
    let mut sections = Vec::new();
    let suites = view.suites.iter().zip(&view.overviews).zip(charts).zip(ranked).enumerate();
    for (index, (((suite, overview), charts), ranked)) in suites {
        let before = (budget.left_out(), budget.tables_left_out());
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

/// The tests of a suite, in order. Their charts and tables are made by all processors, some tests
/// at a time, since most of those of a large run find no room and need not be kept.
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
            let (figures, left_out) = budget.take(drawn.figures);
            sections.push(TestSection {
                id: &own.id,
                number: own.number,
                name: &own.name,
                title: &view.ranked[suite][part * TOGETHER + at].title,
                figures: plots(figures, view),
                left_out,
                table,
                operations: budget.tables(drawn.operations.into_iter()).concat(),
                evidence: budget.tables(drawn.evidence.into_iter()),
            });
        }
    }
    sections
}

/// What belongs to a test, whether there is room for it or not.
struct Drawn {
    figures: Vec<Figure>,
    operations: Option<String>,
    evidence: Vec<String>,
}

impl Drawn {
    /// That of a test by its place: suite, point and test, and among all tests of the suite.
    fn new(
        view: &View,
        all: &Points,
        suite: usize,
        (point, test): (usize, usize),
        flat: usize,
    ) -> Self {
        let html = |table: &Table| table_html(table, view, all);
        Self {
            figures: figures::of_test(view, suite, point, test),
            operations: view.operations[suite][flat].as_ref().map(html),
            evidence: view.evidence[suite][flat].iter().map(html).collect(),
        }
    }
}
