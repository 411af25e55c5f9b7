//! First screen of a page: medians, findings, trust, and what was not measured.

use askama::Template;

use crate::{
    document::{
        Figure,
        html::{marker, prose, rendered},
    },
    figures,
    units::{distinct, fixed},
    view::{
        View,
        answer::{self, Answer, Board, BoardCell, BoardRow, FINDINGS_MAX, Grade, Place, ROWS_MAX},
    },
};

/// Another part of the same result, which has a separate page.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Run of the part.
    pub view: &'a View,
    /// File name of the page, relative to this one.
    pub page: &'a str,
}

/// Ratios to the best from which a cell has the next lighter shade.
const SHADES: [f64; 3] = [1.5, 2.5, 5.0];

/// Maximum number of columns next to the findings, of columns with ratios on the line of the
/// median, and of rows with ratios below the median.
const BESIDE_MAX: usize = 10;
/// Maximum width of a table next to the findings, in letters.
const LETTERS_MAX: usize = 105;
/// Maximum width of a table with ratios on the line of the median next to another table.
const HALF_MAX: usize = 80;
/// Letters of a column with the ratio on the line of the median, and of other columns. A longer
/// title is broken into lines.
const INLINE: usize = 14;
const SHORT: usize = 9;
const INLINE_MAX: usize = 5;
const STACKED_MAX: usize = 10;

#[derive(Template)]
#[template(path = "answer.html")]
struct Screen<'a> {
    /// Filesystems of all parts.
    names: Vec<String>,
    answers: &'a [Answer],
    /// Chart of the only test, instead of the table of medians.
    figure: Option<Figure>,
    /// Page of each answer; empty for this one.
    pages: Vec<&'a str>,
    /// Findings of each part.
    findings: Vec<Vec<&'a str>>,
    further: usize,
    open: usize,
    /// True if all parts have ended.
    ended: bool,
    failures: Vec<String>,
    missing: Vec<String>,
    margin: String,
    /// Title of each part.
    titles: Vec<&'a str>,
    /// True if the page has a section of warnings.
    warned: bool,
    /// True if the page has a section of inconclusive questions.
    inconclusive: bool,
}

/// Names of the filesystems of a run, followed by those that only the other parts have.
pub(super) fn filesystems(view: &View, parts: &[Part<'_>]) -> Vec<String> {
    let all = std::iter::once(view).chain(parts.iter().map(|part| part.view));
    distinct(all.flat_map(|view| &view.filesystems).map(|own| own.name.clone()))
}

/// Renders the first screen of a run and of the other parts of its result.
pub(super) fn answer(view: &View, parts: &[Part<'_>]) -> String {
    let views = || std::iter::once(view).chain(parts.iter().map(|part| part.view));
    let mut answers: Vec<Answer> = views().map(Answer::new).collect();
    if !parts.is_empty() {
        // The first screen has no space for them.
        answers.iter_mut().for_each(Answer::remove_tails);
    }
    for answer in &mut answers {
        answer.board = answer.board.clone().shortened(ROWS_MAX);
    }
    let pages = std::iter::once("").chain(parts.iter().map(|part| part.page)).collect();
    let (findings, further) = answer::shown_findings(&answers, FINDINGS_MAX);
    rendered(&Screen {
        names: filesystems(view, parts),
        figure: only_test(view).filter(|_| parts.is_empty()),
        pages,
        findings,
        further,
        open: answers.iter().map(|answer| answer.open).sum(),
        ended: views().all(|view| view.facts.ended),
        failures: answer::failures(&answers),
        missing: answer::not_measured(&answers),
        margin: view.facts.margin.percent(),
        titles: views().map(|view| view.facts.title.as_str()).collect(),
        warned: !view.warnings.is_empty(),
        inconclusive: view.findings.by_point.iter().any(|point| !point.open.is_empty()),
        answers: &answers,
    })
}

/// Chart of the test if only one has results.
fn only_test(view: &View) -> Option<Figure> {
    let mut places = view.suites.iter().enumerate().flat_map(|(at, suite)| {
        let points = suite.points.iter().enumerate();
        points.flat_map(move |(point, own)| {
            let measured = own
                .tests
                .iter()
                .enumerate()
                .filter(|(_, test)| test.entries.iter().any(|entry| entry.summary.is_some()));
            measured.map(move |(test, _)| (at, point, test))
        })
    });
    let (suite, point, test) = places.next()?;
    let only = places.next().is_none();
    only.then(|| figures::of_test(view, suite, point, test).into_iter().next()).flatten()
}

/// Width of a table of medians in letters.
fn letters(board: &Board) -> usize {
    let columns = board.filesystems.len();
    let column = if columns <= INLINE_MAX { INLINE } else { SHORT };
    let unit = |row: &BoardRow| if board.unit.is_some() { 0 } else { row.unit.chars().count() + 1 };
    let titles = board.rows.iter().map(|row| row.title.chars().count() + unit(row));
    titles.max().unwrap_or(0) + columns * column
}

/// True if the table of medians leaves space for the findings next to it.
fn is_narrow(board: &Board) -> bool {
    board.filesystems.len() <= BESIDE_MAX && letters(board) <= LETTERS_MAX
}

/// Class of a cell by its distance from the best.
fn shade(cell: &BoardCell) -> &'static str {
    match (cell.place, cell.distance) {
        (Place::NotCompared, _) => "",
        (Place::Top, _) => "near0",
        (Place::Inconclusive | Place::Below, None) => "",
        // By the factor as it is shown.
        (Place::Inconclusive | Place::Below, Some(distance)) => {
            match (distance * 10.0).round() / 10.0 {
                distance if distance < SHADES[0] => "near1",
                distance if distance < SHADES[1] => "near2",
                distance if distance < SHADES[2] => "near3",
                _ => "near4",
            }
        }
    }
}

impl Screen<'_> {
    /// Grade of the part.
    fn grade_of(&self, answer: &Answer) -> &'static str {
        answer.trust.grade.name()
    }

    /// True if lower is better in a row.
    fn has_lower(&self) -> bool {
        self.answers.iter().any(|answer| answer.board.has_lower())
    }

    /// Size and date of a part, without its title.
    fn about<'b>(&self, answer: &'b Answer, title: &str) -> &'b str {
        let rest = answer.title.strip_prefix(title).and_then(|rest| rest.strip_prefix(" · "));
        rest.unwrap_or(&answer.title)
    }

    /// True if a cell of a table has this place.
    fn any(&self, place: Place) -> bool {
        self.answers.iter().any(|answer| answer.board.any(place))
    }

    fn mark(&self, cell: &BoardCell) -> &'static str {
        cell.place.mark()
    }

    /// Interval, or ratio to the best, unless the cell is in the top group or not compared.
    fn aside(&self, cell: &BoardCell) -> String {
        match (cell.place, cell.distance) {
            _ if cell.interval.is_some() => cell.interval.clone().unwrap_or_default(),
            (Place::Inconclusive | Place::Below, Some(distance)) => {
                format!("÷{}", fixed(distance, if distance < 1.095 { 2 } else { 1 }))
            }
            (Place::Top | Place::NotCompared, _) | (_, None) => String::new(),
        }
    }

    /// True if a cell of the table has an interval or a ratio to the best.
    fn has_asides(&self, board: &Board) -> bool {
        let mut cells = board.rows.iter().flat_map(|row| &row.cells).flatten();
        cells.any(|cell| !self.aside(cell).is_empty())
    }

    /// True if a table has intervals.
    fn has_intervals(&self) -> bool {
        let rows = self.answers.iter().flat_map(|answer| &answer.board.rows);
        rows.flat_map(|row| &row.cells).flatten().any(|cell| cell.interval.is_some())
    }

    fn shade(&self, cell: &BoardCell) -> &'static str {
        shade(cell)
    }

    /// True if the findings are next to the table of medians instead of below it.
    fn in_columns(&self) -> bool {
        matches!(self.answers, [only] if is_narrow(&only.board))
    }

    /// True if a table needs the whole width.
    fn is_whole(&self, board: &Board) -> bool {
        self.answers.len() == 1 || !is_narrow(board)
    }

    /// Class of a table: ratios are next to the medians, below them, or omitted.
    fn density(&self, board: &Board) -> &'static str {
        let inline = self.is_whole(board) || letters(board) <= HALF_MAX;
        match board.filesystems.len() {
            0..=INLINE_MAX if inline => "",
            _ if board.rows.len() <= STACKED_MAX => " stacked",
            _ => " dense",
        }
    }

    /// Marker of a filesystem.
    fn marker(&self, name: &str) -> String {
        let index = self.names.iter().position(|own| own == name);
        index.map(marker).unwrap_or_default()
    }

    /// Statements about writes, without repetition.
    fn writes(&self) -> Vec<String> {
        answer::writes(self.answers)
    }

    /// True if a part has a measured filesystem.
    fn measured(&self) -> bool {
        answer::measured(self.answers)
    }

    /// True if at least one test is compared.
    fn compared(&self) -> bool {
        self.answers.iter().any(|answer| answer.accounts.compared())
    }

    /// True if no part has a finding.
    fn nothing_found(&self) -> bool {
        self.findings.iter().all(Vec::is_empty)
    }

    fn hint(&self, text: &str) -> String {
        prose(text)
    }

    /// Grade of the least reliable part, which determines the color.
    fn grade(&self) -> &'static str {
        let grades = self.answers.iter().map(|answer| answer.trust.grade);
        grades.max().unwrap_or(Grade::Poor).name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_shaded_by_their_distance_from_the_best() {
        let cell = |distance, place| {
            shade(&BoardCell { value: "1".into(), interval: None, place, distance: Some(distance) })
        };
        let shades = [1.2, 2.0, 3.0, 7.0].map(|distance| cell(distance, Place::Below));
        assert_eq!(shades, ["near1", "near2", "near3", "near4"]);
        assert_eq!(cell(1.1, Place::Top), "near0");
        assert_eq!(cell(3.0, Place::Inconclusive), "near3");
        assert_eq!(cell(1.0, Place::NotCompared), "");
    }

    /// Table of this many filesystems in two tests.
    fn board(filesystems: usize, distance: f64) -> Board {
        let cell = |at: usize| {
            let distance = if at == 0 { 1.0 } else { distance };
            let place = if at == 0 { Place::Top } else { Place::Below };
            Some(BoardCell {
                value: "1.23".into(),
                interval: None,
                place,
                distance: Some(distance),
            })
        };
        let row = |title: &str| BoardRow {
            title: title.into(),
            is_tail: false,
            unit: "deliveries/s".into(),
            cells: (0..filesystems).map(cell).collect(),
        };
        Board {
            filesystems: (0..filesystems).map(|at| format!("ext{at}")).collect(),
            unit: None,
            rows: vec![row("write"), row("mail-delivery")],
            writes: None,
            further: 0,
        }
    }

    /// First screen with these tables.
    fn screen(boards: &[Board], mut answer: Answer) -> String {
        let mut with = |board: &Board| {
            answer.board = board.clone();
            answer.clone()
        };
        let answers: Vec<Answer> = boards.iter().map(&mut with).collect();
        rendered(&Screen {
            names: Vec::new(),
            answers: &answers,
            figure: None,
            pages: vec![""; boards.len()],
            findings: vec![Vec::new(); boards.len()],
            further: 0,
            open: 0,
            ended: true,
            failures: Vec::new(),
            missing: Vec::new(),
            margin: "5 %".into(),
            titles: vec!["a"; boards.len()],
            warned: false,
            inconclusive: false,
        })
    }

    #[test]
    fn a_table_next_to_another_has_its_ratios_below_the_medians_if_it_is_wide() {
        let answer = Answer::new(&View::new(&crate::fixture::record()));
        let class = "class=\"score stacked\"";
        let alone = screen(&[board(5, 2.0)], answer.clone());
        assert!(!alone.contains(class) && alone.contains("<i>÷2.0</i>"), "{alone}");
        let both = screen(&[board(5, 2.0), board(9, 2.0)], answer.clone());
        assert_eq!(both.matches(class).count(), 2, "{both}");
        let narrow = screen(&[board(3, 2.0), board(9, 2.0)], answer);
        assert_eq!(narrow.matches(class).count(), 1, "{narrow}");
    }

    #[test]
    fn ratios_near_1_have_two_decimal_places_and_tables_without_ratios_no_space_for_them() {
        let answer = Answer::new(&View::new(&crate::fixture::record()));
        assert!(screen(&[board(3, 1.04)], answer.clone()).contains("<i>÷1.04</i>"));
        let mut blocked = board(3, 1.04);
        let cells = blocked.rows.iter_mut().flat_map(|row| &mut row.cells).flatten();
        cells.for_each(|cell| cell.place = Place::NotCompared);
        assert!(!screen(&[blocked], answer).contains("<i>"));
    }

    #[test]
    fn a_run_without_results_has_no_legend_and_no_tests_that_were_not_compared() {
        let mut view = View::new(&crate::fixture::record());
        view.suites.clear();
        let answer = Answer::new(&view);
        let empty = Board { filesystems: Vec::new(), rows: Vec::new(), ..board(0, 1.0) };
        let page = screen(&[empty], answer.clone());
        assert!(
            page.contains("<p>None: nothing was measured") && !page.contains(">Medians."),
            "{page}"
        );
        let page = screen(&[board(2, 1.0)], answer);
        assert!(!page.contains("<p>None:") && page.contains(">Medians."), "{page}");
    }

    #[test]
    fn each_part_has_a_list_of_findings_under_its_title() {
        let mut view = View::new(&crate::fixture::record());
        view.facts.title = "native".into();
        let part = Part { view: &view, page: "guest.html" };
        let (one, two) = (answer(&view, &[]), answer(&view, &[part]));
        let heading = "<p class=\"of\">native</p>\n<ul>";
        assert_eq!([one, two].map(|page| page.matches(heading).count()), [0, 2]);
    }

    #[test]
    fn each_part_has_the_color_of_its_grade() {
        let good = Answer::new(&View::new(&crate::fixture::record()));
        let page = screen(&[board(3, 2.0)], good.clone());
        let class = format!("<p class=\"levels {}\">", good.trust.grade.name());
        assert!(page.contains(&class), "{page}");
    }

    #[test]
    fn the_chart_of_the_only_test_has_its_title() {
        let mut record = crate::fixture::with_records(&[model::Bytes::mib(1)], "own");
        record.cells.iter_mut().for_each(|cell| cell.phases.truncate(1));
        let view = View::new(&record);
        let figure = only_test(&view).unwrap();
        let page = crate::html(&view, &[]);
        assert!(page.contains(&format!("<h2 class=\"part\">{}</h2>", figure.title)), "{page}");
    }
}
