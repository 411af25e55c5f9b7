//! First page on a terminal: tables of one or more runs, then the findings.
//!
//! It has at most [`LINES_MAX`] lines if possible: longer pages have fewer findings and tests.

use crate::{
    document::terminal::{
        Page, TerminalOptions,
        wrapped::{cut, width_of},
    },
    units::count,
    view::{
        View,
        answer::{self, Answer, Board, BoardCell, BoardRow, FAR_FROM_BEST, Place},
    },
};

/// Lines that common terminals show at once.
const LINES_MAX: usize = 40;
/// Minimum and maximum number of tests per part.
const ROWS: std::ops::RangeInclusive<usize> = 8..=20;
/// Maximum width of the title of a test if the table needs the whole width, and of the name of a
/// filesystem.
const TITLE_MAX: usize = 26;
const NAME_MAX: usize = 20;

/// First page of one or more views. Several views are parts of one result, such as times on the
/// host and instruction counts of a guest.
pub fn answer(views: &[&View], options: &TerminalOptions) -> String {
    let mut answers: Vec<Answer> = views.iter().map(|view| Answer::new(view)).collect();
    if views.len() > 1 {
        answers.iter_mut().for_each(Answer::remove_tails);
    }
    let mut text = String::new();
    let fewer = ROWS.rev().map(|rows| (rows, 3));
    for size in [(*ROWS.end(), 6), (*ROWS.end(), 4)].into_iter().chain(fewer) {
        text = sized(views, &answers, size, options);
        if text.lines().count() <= LINES_MAX {
            break;
        }
    }
    text
}

/// First page with at most this many tests per part and findings.
fn sized(
    views: &[&View],
    answers: &[Answer],
    (rows, findings): (usize, usize),
    options: &TerminalOptions,
) -> String {
    let mut page = Page::new(options);
    for answer in answers {
        if !page.text.is_empty() {
            page.line("");
        }
        page.answer(answer, rows);
    }
    let any = |place| answers.iter().any(|answer| answer.board.any(place));
    if answers.iter().any(|answer| answer.board.has_lower()) {
        page.line(" ↓ lower is better");
    }
    answer::writes(answers).iter().for_each(|text| page.wrapped(" ", "   ", text));
    if any(Place::Top) {
        let margins: Vec<String> = views.iter().map(|view| view.facts.margin.percent()).collect();
        let margin = margins.first().cloned().unwrap_or_default();
        let text = format!(
            "{} best, not significantly worse (all pairs of a test, 5 %), or worse by less than \
             {margin} (whole 95 % interval)",
            Place::Top.mark()
        );
        page.wrapped(" ", "   ", &text);
    }
    if any(Place::Inconclusive) {
        let text = format!(
            "{} inconclusive: not significantly worse, but by a factor of {FAR_FROM_BEST} or \
             more",
            Place::Inconclusive.mark()
        );
        page.wrapped(" ", "   ", &text);
    }
    if any(Place::NotCompared) {
        page.wrapped(" ", "   ", "! not compared; see the warnings with --detail");
    }
    let titles: Vec<&str> = views.iter().map(|view| view.facts.title.as_str()).collect();
    page.found(answers, &titles, findings);
    page.line("");
    for (answer, view) in answers.iter().zip(views) {
        let trust = &answer.trust;
        let part = match answers.len() {
            1 => String::new(),
            _ => format!(" ({})", view.facts.title),
        };
        let mut text = format!("Trust{part}: {}", trust.grade.name());
        if let Some(reason) = &trust.reason {
            text.push_str(&format!(". Cause: {reason}."));
        }
        if let Some(hint) = trust.hint {
            text.push_str(&format!(" Hint: {hint}."));
        }
        page.wrapped("", "  ", &text);
    }
    page.holes(answers);
    page.text
}

impl Page {
    /// Title, headline, conditions, and table of medians.
    fn answer(&mut self, answer: &Answer, rows: usize) {
        self.wrapped("", "  ", &answer.title);
        self.bold(&format!("{}.", answer.headline));
        self.wrapped("", "  ", &answer.conditions);
        let mut board = answer.board.clone();
        // The line that counts hidden tests is as long as one test.
        if board.rows.len() + usize::from(board.further > 0) > rows + 1 {
            board = board.shortened(rows);
        }
        self.board(&board);
    }

    /// Table of medians, tests as rows. Filesystems that exceed the width continue below.
    pub(super) fn board(&mut self, board: &Board) {
        if board.rows.is_empty() {
            return;
        }
        if let Some(list) = List::of(board, self.width) {
            self.intervals(&list);
            return self.more_tests(board);
        }
        let names: Vec<String> = board.filesystems.iter().map(|name| cut(name, NAME_MAX)).collect();
        let widest = |texts: &mut dyn Iterator<Item = &str>| texts.map(width_of).max().unwrap_or(0);
        let corner = board.unit.as_deref().unwrap_or_default();
        let unit_width = match &board.unit {
            Some(_) => 0,
            None => 1 + widest(&mut board.rows.iter().map(|row| row.unit.as_str())),
        };
        let texts: Vec<Vec<String>> = board.rows.iter().map(texts).collect();
        let width = |column: usize| {
            let cells = texts.iter().map(|row| row[column].as_str());
            1 + widest(&mut cells.chain(std::iter::once(names[column].as_str())))
        };
        let columns = 1 + unit_width + (0..names.len()).map(width).sum::<usize>();
        let title_max = TITLE_MAX.max(self.width.saturating_sub(columns));
        let titles: Vec<String> = board.rows.iter().map(|row| cut(&row.title, title_max)).collect();
        let title_width =
            widest(&mut titles.iter().map(String::as_str).chain(std::iter::once(corner)));
        let space = self.width.saturating_sub(1 + title_width + unit_width);
        let mut column = 0;
        while column < board.filesystems.len() {
            let mut end = column;
            let mut used = 0;
            while end < board.filesystems.len() && (end == column || used + width(end) <= space) {
                used += width(end);
                end += 1;
            }
            let right = |text: &str, column| format!("{}{text}", pad(text, width(column)));
            let mut head = format!(" {corner}{}", pad(corner, title_width + unit_width));
            (column..end).for_each(|at| head.push_str(&right(&names[at], at)));
            let head = self.styled("1", &head);
            self.line(&head);
            for ((row, title), texts) in board.rows.iter().zip(&titles).zip(&texts) {
                let mut line = format!(" {title}{}", pad(title, title_width));
                if unit_width > 0 {
                    line.push_str(&format!(" {}{}", row.unit, pad(&row.unit, unit_width - 1)));
                }
                let cells = row.cells.iter().zip(texts).enumerate();
                for (at, (cell, text)) in cells.take(end).skip(column) {
                    let text = right(text, at);
                    let top = cell.as_ref().is_some_and(|cell| cell.place == Place::Top);
                    line.push_str(&if top { self.styled("1", &text) } else { text });
                }
                self.line(&line);
            }
            column = end;
        }
        self.more_tests(board);
    }

    /// Number of the tests that are not in the table.
    fn more_tests(&mut self, board: &Board) {
        if board.further > 0 {
            let more = count(board.further, "more test");
            self.wrapped(" ", "   ", &format!("{more} with --detail"));
        }
    }

    /// Table with one row per filesystem or per test.
    fn intervals(&mut self, list: &List) {
        let widest = |column: usize| list.rows.iter().map(|(row, _)| width_of(&row[column])).max();
        let widths: Vec<usize> = (0..5).filter_map(widest).collect();
        for (row, bold) in &list.rows {
            let mut line = String::new();
            for (column, text) in row.iter().enumerate().filter(|(column, _)| widths[*column] > 0) {
                let space = pad(text, widths[column]);
                line.push(' ');
                line.push_str(&match column {
                    0 | 1 => format!("{text}{space}"),
                    _ => format!("{space}{text}"),
                });
            }
            self.line(&if *bold { self.styled("1", &line) } else { line });
        }
    }

    fn found(&mut self, answers: &[Answer], titles: &[&str], most: usize) {
        if !answer::measured(answers) {
            return;
        }
        let (findings, further) = answer::shown_findings(answers, most);
        let accounts: Vec<String> =
            answers.iter().filter_map(|answer| answer.accounts.text()).collect();
        let nothing = findings.iter().all(Vec::is_empty);
        if !nothing || further > 0 {
            self.heading("Findings");
        } else if !accounts.is_empty() {
            self.heading("Tests");
        }
        let more = if nothing { "finding" } else { "more finding" };
        let more = count(further, more);
        for (findings, title) in findings.iter().zip(titles) {
            if answers.len() > 1 && !findings.is_empty() {
                self.wrapped(" ", "   ", &format!("{title}:"));
            }
            findings.iter().for_each(|finding| self.wrapped(" ", "   ", finding));
        }
        let open: usize = answers.iter().map(|answer| answer.open).sum();
        if further + open > 0 {
            let more = (further > 0).then(|| format!("{more} with --detail or in the HTML report"));
            let open = (open > 0).then(|| {
                let are = if open == 1 { "question is" } else { "questions are" };
                format!("{open} {are} inconclusive (see fslab explain)")
            });
            let text: Vec<String> = [more, open].into_iter().flatten().collect();
            self.wrapped(" ", "   ", &text.join("; "));
        }
        accounts.iter().for_each(|text| self.wrapped(" ", "   ", text));
    }

    /// Failed filesystems, and filesystems that no part measured.
    fn holes(&mut self, answers: &[Answer]) {
        for text in answer::failures(answers) {
            self.wrapped("", "  ", &format!("Failed: {text}"));
        }
        let texts = answer::not_measured(answers);
        if !texts.is_empty() {
            self.wrapped("", "  ", &format!("Not measured: {}", texts.join("; ")));
        }
    }
}

/// Rows whose names are cut if the other columns leave less space for them.
fn cut_to(mut rows: Vec<([String; 5], bool)>, width: usize) -> Vec<([String; 5], bool)> {
    let widest = |column: usize| rows.iter().map(|(row, _)| width_of(&row[column])).max();
    let others = (1..5).filter_map(widest).filter(|width| *width > 0).map(|width| width + 1);
    let most = width.saturating_sub(others.sum::<usize>() + 1).max(TITLE_MAX);
    rows.iter_mut().for_each(|(row, _)| row[0] = cut(&row[0], most));
    rows
}

/// Cells of a row as text.
fn texts(row: &BoardRow) -> Vec<String> {
    row.cells.iter().map(text).collect()
}

fn text(cell: &Option<BoardCell>) -> String {
    let Some(cell) = cell else { return "-".to_owned() };
    let (before, after) = match cell.place {
        Place::NotCompared => ("", cell.place.mark()),
        Place::Top | Place::Inconclusive | Place::Below => (cell.place.mark(), ""),
    };
    format!("{before}{}{after}", cell.value)
}

/// Medians with their intervals, of one filesystem or one test.
struct List {
    /// Name, unit, median, interval, and p99, and true if the row is printed in bold. The heads are
    /// first.
    rows: Vec<([String; 5], bool)>,
}

impl List {
    /// `None` if the table has several filesystems and tests, or no intervals. Names are cut so
    /// that a row fits the width if possible.
    fn of(board: &Board, width: usize) -> Option<Self> {
        let cells = board.rows.iter().flat_map(|row| &row.cells).flatten();
        if !cells.into_iter().any(|cell| cell.interval.is_some()) {
            return None;
        }
        let row = |name: &str, unit: &str, cell: &Option<BoardCell>, tail: Option<String>| {
            let interval = cell.as_ref().and_then(|cell| cell.interval.clone());
            let top = cell.as_ref().is_some_and(|cell| cell.place == Place::Top);
            let (interval, tail) = (interval.unwrap_or_default(), tail.unwrap_or_default());
            ([name.to_owned(), unit.to_owned(), text(cell), interval, tail], top)
        };
        let head = |corner: String, name: &str, tail: String| {
            ([corner, String::new(), name.to_owned(), "95 % interval".into(), tail], true)
        };
        let unit = board.unit.as_deref().unwrap_or_default();
        let rows = match (&board.rows[..], &board.filesystems[..]) {
            (all, [only]) => {
                let own =
                    all.iter().flat_map(|test| test.cells.iter().map(move |cell| (test, cell)));
                let unit_of = |own: &BoardRow| match &board.unit {
                    Some(_) => String::new(),
                    None => own.unit.clone(),
                };
                let own = own.map(|(test, cell)| row(&test.title, &unit_of(test), cell, None));
                std::iter::once(head(unit.to_owned(), only, String::new())).chain(own).collect()
            }
            ([only, tails @ ..], _) if tails.iter().all(|row| row.is_tail) => {
                let tail = tails.first();
                let name = |tail: &BoardRow| {
                    let name = tail.title.rsplit(", ").next().unwrap_or_default();
                    format!("{name}, {}", tail.unit)
                };
                let titles = head(
                    format!("{}, {}", only.title, only.unit),
                    "median",
                    tail.map(name).unwrap_or_default(),
                );
                let cells = only.cells.iter().zip(&board.filesystems).enumerate();
                let own = cells.map(|(at, (cell, filesystem))| {
                    row(filesystem, "", cell, tail.map(|tail| text(&tail.cells[at])))
                });
                std::iter::once(titles).chain(own).collect()
            }
            _ => return None,
        };
        Some(Self { rows: cut_to(rows, width) })
    }
}

/// Spaces that pad a text to a width.
fn pad(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(width_of(text)))
}
