//! Table of medians of the first page.

use analysis::Summary;
use model::{
    Metric,
    metric::{Better, Unit},
};

use super::{Named, TESTS_MAX, columns};
use crate::{
    units::Scale,
    view::{Entry, View, points::Test},
};

/// Maximum number of table rows on the first page, and of tests in a [`Board`].
pub(crate) const ROWS_MAX: usize = 20;
/// Ratio to the best median from which a member of the top group is [`Place::Inconclusive`].
pub(crate) const FAR_FROM_BEST: f64 = 1.15;

/// Medians of the measured filesystems, one row per test.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    /// Names of the measured filesystems, one column each, in plan order.
    pub(crate) filesystems: Vec<String>,
    /// Common unit of all rows, if any.
    pub(crate) unit: Option<String>,
    pub(crate) rows: Vec<BoardRow>,
    /// Statement whether the throughput of writes includes the final sync; `None` without writes.
    pub(crate) writes: Option<String>,
    /// Number of tests beyond [`ROWS_MAX`].
    pub(crate) further: usize,
}

/// One test, or its p99.
#[derive(Clone, Debug)]
pub(crate) struct BoardRow {
    pub(crate) title: String,
    /// True for the p99 of the test in the row above, which is not compared here.
    pub(crate) is_tail: bool,
    /// Unit, with `↓` if lower is better.
    pub(crate) unit: String,
    /// One cell per filesystem; `None` if not measured.
    pub(crate) cells: Vec<Option<BoardCell>>,
}

/// One filesystem in one test.
#[derive(Clone, Debug)]
pub(crate) struct BoardCell {
    /// Median, to three significant digits, or with those of its interval.
    pub(crate) value: String,
    /// `[90.9, 97.4]`; only in a table of one filesystem or one test, and with enough repetitions.
    pub(crate) interval: Option<String>,
    pub(crate) place: Place,
    /// Ratio between the best compared median of the row and this one; `None` if the metric has no
    /// direction, or if the row has no comparison.
    pub(crate) distance: Option<f64>,
}

/// Place of a filesystem in one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the top group, with the best median or one that is close to it.
    Top,
    /// In the top group, but the median is worse than the best by [`FAR_FROM_BEST`] or more: the
    /// results vary too much for a significant difference.
    Inconclusive,
    /// Not in the top group, or no filesystem of the table is compared.
    Below,
    /// Not compared with other filesystems.
    NotCompared,
}

impl Place {
    /// Mark of a cell, empty for [`Place::Below`].
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Top => "●",
            Self::Inconclusive => "○",
            Self::Below => "",
            Self::NotCompared => "!",
        }
    }
}

impl Board {
    /// True if lower is better in a row.
    pub(crate) fn has_lower(&self) -> bool {
        self.rows.iter().any(|row| row.unit.ends_with('↓'))
    }

    /// The same table without the rows of p99.
    pub(crate) fn without_tails(mut self) -> Self {
        self.rows.retain(|row| !row.is_tail);
        self.unit = common_unit(&self.rows);
        self
    }

    /// The first rows, and the number of the other tests.
    pub(crate) fn shortened(mut self, most: usize) -> Self {
        let hidden = self.rows.split_off(most.min(self.rows.len()));
        self.further += hidden.iter().filter(|row| !row.is_tail).count();
        self
    }

    /// True if a cell has this place.
    pub(crate) fn any(&self, place: Place) -> bool {
        let cells = self.rows.iter().flat_map(|row| &row.cells).flatten();
        cells.into_iter().any(|cell| cell.place == place)
    }
}

pub(super) fn board(view: &View, tests: &[Named<'_>]) -> Board {
    let columns = columns(view, tests);
    let first = &tests[..tests.len().min(ROWS_MAX)];
    // Rows are easier to compare in one unit.
    let common = |unit: Unit| {
        let own = first.iter().filter(|named| named.test.metric.spec().unit == unit);
        let all: Vec<f64> = own.flat_map(|named| medians(named, |_| true)).collect();
        Scale::of_all(unit, all.into_iter())
    };
    let alone = columns.len() == 1 || tests.len() == 1;
    let compared = tests.iter().flat_map(|named| &named.test.entries).any(|entry| entry.ranked);
    let row = |named: &Named<'_>| {
        let scale = common(named.test.metric.spec().unit).unwrap_or(named.test.scale);
        let better = named.test.metric.spec().better;
        let medians = medians(named, |entry| entry.ranked || entry.raw);
        let best = best(better, &medians).filter(|_| medians.len() > 1);
        let cell = |filesystem: &usize| {
            let summary = named.test.entry(*filesystem)?.summary.as_ref()?;
            let (value, interval) = shown(scale, summary, alone);
            Some(BoardCell {
                value,
                interval,
                place: if compared { place(named, *filesystem)? } else { Place::Below },
                distance: best.map(|best| distance(better, best, summary.median)),
            })
        };
        let cells = columns.iter().map(cell).collect();
        let unit = unit_of(scale, better);
        BoardRow { title: named.title.clone(), is_tail: false, unit, cells }
    };
    let with_tail = |named: &Named<'_>| {
        std::iter::once(row(named)).chain(tail(named, &columns, alone)).collect::<Vec<_>>()
    };
    let rows: Vec<BoardRow> = first.iter().flat_map(with_tail).collect();
    Board {
        unit: common_unit(&rows),
        filesystems: columns.iter().map(|column| view.filesystems[*column].name.clone()).collect(),
        further: tests.len() - first.len(),
        writes: writes(first),
        rows,
    }
}

/// Statement whether the throughput of writes includes the final sync.
fn writes(tests: &[Named<'_>]) -> Option<String> {
    let titles = |is: fn(&Test) -> bool| {
        tests.iter().filter(move |named| is(named.test)).map(|named| named.title.as_str())
    };
    let durable = titles(|test| test.metric == Metric::DurableThroughput).count();
    let accepted: Vec<&str> = titles(|test| test.accepted).collect();
    let with_sync = "Writes: durable throughput, with the final sync";
    match (durable, accepted.len()) {
        (0, 0) => None,
        (_, 0) => Some(with_sync.into()),
        (0, _) => Some("Writes: accepted throughput, without the final sync".into()),
        (_, count) => {
            let names = match count {
                0..=TESTS_MAX => accepted.join(", "),
                _ => format!("{count} tests"),
            };
            Some(format!("{with_sync}; {names}: accepted throughput"))
        }
    }
}

/// Row of the p99 of a test of syncs, commits, or deliveries; `None` for other tests.
fn tail(named: &Named<'_>, columns: &[usize], alone: bool) -> Option<BoardRow> {
    let unit = named.test.metric.spec().unit;
    let waits = matches!(unit, Unit::CommitsPerSecond | Unit::DeliveriesPerSecond);
    let of = |metric: Metric, filesystem: usize| {
        let metrics = &named.test.entry(filesystem)?.metrics;
        metrics.iter().find(|(own, _)| *own == metric).map(|(_, summary)| summary)
    };
    let has = |metric: Metric| columns.iter().any(|column| of(metric, *column).is_some());
    let (metric, name) = match (has(Metric::SyncLatencyP99), waits) {
        (true, _) => (Metric::SyncLatencyP99, "sync p99"),
        (false, true) if has(Metric::LatencyP99) => (Metric::LatencyP99, "p99"),
        (false, _) => return None,
    };
    let medians = columns.iter().filter_map(|column| Some(of(metric, *column)?.median));
    let scale = Scale::of(metric.spec().unit, medians.collect::<Vec<_>>().into_iter());
    let cell = |column: &usize| {
        let summary = of(metric, *column)?;
        let (value, interval) = shown(scale, summary, alone);
        Some(BoardCell { value, interval, place: Place::Below, distance: None })
    };
    Some(BoardRow {
        title: format!("{}, {name}", named.title),
        is_tail: true,
        unit: unit_of(scale, metric.spec().better),
        cells: columns.iter().map(cell).collect(),
    })
}

/// Median, and its interval if the table has one filesystem or one test.
fn shown(scale: Scale, summary: &Summary, alone: bool) -> (String, Option<String>) {
    if !alone {
        return (scale.rough(summary.median), None);
    }
    let shown = scale.shown(summary);
    (shown.value, shown.interval.map(|(low, high)| format!("[{low}, {high}]")))
}

/// Unit of a row.
pub(crate) fn unit_of(scale: Scale, better: Better) -> String {
    if better == Better::Lower { format!("{} ↓", scale.name) } else { scale.name.into() }
}

/// Unit of all rows; `None` if they differ.
pub(crate) fn common_unit(rows: &[BoardRow]) -> Option<String> {
    let unit = &rows.first()?.unit;
    rows.iter().all(|row| row.unit == *unit).then(|| unit.clone())
}

/// Medians of the entries of a test that meet a condition.
fn medians(named: &Named<'_>, include: impl Fn(&Entry) -> bool) -> Vec<f64> {
    let entries = named.test.entries.iter().filter(|entry| include(entry));
    entries.filter_map(|entry| Some(entry.summary.as_ref()?.median)).collect()
}

/// Place of a filesystem in a test; `None` without results.
pub(super) fn place(named: &Named<'_>, filesystem: usize) -> Option<Place> {
    let entry = named.test.entry(filesystem)?;
    let median = entry.summary.as_ref()?.median;
    let better = named.test.metric.spec().better;
    let compared = medians(named, |entry| entry.ranked && !entry.raw);
    let far =
        best(better, &compared).is_some_and(|best| distance(better, best, median) >= FAR_FROM_BEST);
    Some(match (entry.ranked, entry.top) {
        (false, _) => Place::NotCompared,
        (true, false) => Place::Below,
        (true, true) if far => Place::Inconclusive,
        (true, true) => Place::Top,
    })
}

/// Best median; `None` if the metric has no direction or there are no medians.
fn best(better: Better, medians: &[f64]) -> Option<f64> {
    let medians = medians.iter().copied();
    match better {
        Better::Higher => medians.reduce(f64::max),
        Better::Lower => medians.reduce(f64::min),
        Better::Neither => None,
    }
}

/// Ratio between the best median and another one, at least 1.
fn distance(better: Better, best: f64, median: f64) -> f64 {
    match better {
        Better::Lower => median / best,
        Better::Higher | Better::Neither => best / median,
    }
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::*;
    use crate::{fixture, view::answer::Answer};

    /// View of the fixture in which the medians of all members of top groups but the best are worse
    /// by this factor.
    fn with_distance(factor: f64) -> View {
        let mut view = View::new(&fixture::with_records(&[Bytes::mib(1)], "own"));
        for test in
            view.suites.iter_mut().flat_map(|suite| &mut suite.points).flat_map(|it| &mut it.tests)
        {
            let Some(family) = &test.family else { continue };
            let lower = test.metric.spec().better == Better::Lower;
            let entry = |member: &usize| family.members[*member];
            let Some(first) = family.ranking.top.first().map(entry) else { continue };
            let best = test.entries[first].summary.as_ref().unwrap().median;
            for other in family.ranking.top.iter().skip(1).map(entry) {
                let worse = if lower { best * factor } else { best / factor };
                test.entries[other].summary.as_mut().unwrap().median = worse;
            }
        }
        view
    }

    #[test]
    fn a_top_group_has_inconclusive_members_if_their_medians_are_far_from_the_best() {
        let close = Answer::new(&with_distance(1.1));
        let far = Answer::new(&with_distance(1.2));
        assert!(close.board.any(Place::Top) && !close.board.any(Place::Inconclusive));
        assert!(far.board.any(Place::Top) && far.board.any(Place::Inconclusive));
        for row in far.board.rows {
            let top = |cell: &&BoardCell| cell.place == Place::Top;
            assert!(row.cells.iter().flatten().filter(top).count() <= 1, "{row:?}");
        }
    }

    #[test]
    fn the_table_states_whether_the_throughput_of_writes_includes_the_sync() {
        let stated = |change: &dyn Fn(usize, &mut Test)| {
            let mut view = View::new(&fixture::with_records(&[Bytes::mib(1)], "own"));
            let tests = view
                .suites
                .iter_mut()
                .flat_map(|suite| &mut suite.points)
                .flat_map(|it| &mut it.tests);
            tests.enumerate().for_each(|(at, test)| {
                (test.metric, test.accepted) = (Metric::OpsRate, false);
                change(at, test);
            });
            Answer::new(&view).board.writes
        };
        let durable = |test: &mut Test| test.metric = Metric::DurableThroughput;
        assert_eq!(stated(&|_, _| ()), None);
        let with = "Writes: durable throughput, with the final sync";
        assert_eq!(stated(&|_, test| durable(test)).as_deref(), Some(with));
        let without = stated(&|_, test| test.accepted = true);
        assert_eq!(without.as_deref(), Some("Writes: accepted throughput, without the final sync"));
        let mixed = stated(&|at, test| if at == 0 { test.accepted = true } else { durable(test) });
        let mixed = mixed.unwrap();
        assert!(mixed.starts_with(&format!("{with}; ")), "{mixed}");
        assert!(mixed.ends_with(": accepted throughput"), "{mixed}");
    }

    #[test]
    fn a_row_without_a_comparison_has_no_ratios() {
        let mut view = View::new(&fixture::with_records(&[Bytes::mib(1)], "own"));
        for test in
            view.suites.iter_mut().flat_map(|suite| &mut suite.points).flat_map(|it| &mut it.tests)
        {
            for entry in test.entries.iter_mut().skip(1) {
                entry.ranked = false;
            }
        }
        let answer = Answer::new(&view);
        let mut cells = answer.board.rows.iter().flat_map(|row| &row.cells).flatten();
        assert!(cells.all(|cell| cell.distance.is_none()), "{:?}", answer.board);
    }

    /// Run with this many of the tests of the fixture, changed.
    fn run_of(tests: usize, change: impl Fn(&mut model::RunRecord)) -> View {
        let mut record = fixture::with_records(&[Bytes::mib(1)], "own");
        record.cells.iter_mut().for_each(|cell| cell.phases.truncate(tests));
        change(&mut record);
        View::new(&record)
    }

    #[test]
    fn a_table_of_one_test_has_intervals_and_a_headline_without_counts() {
        let view = run_of(1, |_| ());
        let answer = Answer::new(&view);
        let cells = || answer.board.rows.iter().flat_map(|row| &row.cells).flatten();
        assert!(cells().all(|cell| cell.interval.is_some()), "{:?}", answer.board);
        let headline = &answer.headline;
        assert!(
            headline.starts_with("xfs is fastest") && !headline.contains("1 test"),
            "{headline}"
        );
        let options = crate::TerminalOptions { width: 80, color: false, detail: false };
        let page = crate::terminal::answer(&[&view], &options);
        assert!(page.contains(", MiB/s median  95 % interval\n"), "{page}");
        let several = Answer::new(&run_of(2, |_| ()));
        let mut cells = several.board.rows.iter().flat_map(|row| &row.cells).flatten();
        assert!(cells.all(|cell| cell.interval.is_none()), "{:?}", several.board);
    }

    #[test]
    fn tests_of_commits_have_a_row_of_their_p99() {
        let view = View::new(&fixture::together::record(&["ext4", "xfs"], 3.0, 8));
        let board = Answer::new(&view).board;
        let tests = board.rows.iter().filter(|row| !row.is_tail).count();
        let tails: Vec<&BoardRow> = board.rows.iter().filter(|row| row.is_tail).collect();
        assert!(!tails.is_empty() && tests > 0, "{board:?}");
        for tail in &tails {
            assert!(tail.title.ends_with(", sync p99") && tail.unit.ends_with('↓'), "{tail:?}");
            assert!(
                tail.cells.iter().all(|cell| cell.as_ref().is_some_and(|it| !it.value.is_empty()))
            );
        }
        let least = board.clone().shortened(1);
        assert_eq!((least.rows.len(), least.further), (1, tests - 1 + board.further));
        let without = board.clone().without_tails();
        assert_eq!((without.rows.len(), without.further), (tests, board.further));
        let page = crate::html(&view, &[]);
        assert_eq!(page.matches("<tr class=\"tail\">").count(), tails.len());
    }

    #[test]
    fn a_table_without_comparisons_has_no_marks() {
        let few = |record: &mut model::RunRecord| record.trials.retain(|it| it.repetition < 3);
        let answer = Answer::new(&run_of(2, few));
        assert!(!answer.board.any(Place::NotCompared), "{:?}", answer.board);
        assert!(answer.headline.starts_with("No comparison: fewer than 6 repetitions"));
        assert_eq!(answer.accounts.text().unwrap().matches("fewer than").count(), 1);
        assert!(Answer::new(&run_of(2, |_| ())).board.any(Place::NotCompared));
    }

    #[test]
    fn the_headline_names_the_filesystem_with_the_most_dots() {
        for factor in [1.0, 1.2] {
            let view = with_distance(factor);
            let answer = Answer::new(&view);
            let dots = |column: usize| {
                let cells = answer.board.rows.iter().filter_map(|row| row.cells[column].as_ref());
                cells.filter(|cell| cell.place == Place::Top).count()
            };
            assert_eq!(answer.board.further, 0, "all tests are in the table");
            let most = (0..answer.board.filesystems.len()).map(dots).max().unwrap();
            let name = answer.headline.split(' ').next().unwrap();
            let own = answer.board.filesystems.iter().position(|own| own == name).unwrap();
            assert_eq!(dots(own), most, "{}", answer.headline);
            assert!(answer.headline.contains(&format!(" in {most} of ")), "{}", answer.headline);
        }
    }
}
