//! First screen of a page: headline, medians, findings, trust, and missing filesystems.

use askama::Template;

use crate::{
    document::html::rendered,
    view::{
        View,
        answer::{self, Answer, Board, BoardCell, Grade},
    },
};

/// Another part of the same result, on a separate page.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its run.
    pub view: &'a View,
    /// File name of its page, relative to this one.
    pub page: &'a str,
}

/// Ratios to the best from which on a cell has the next lighter shade.
const SHADES: [f64; 3] = [1.5, 2.5, 5.0];

#[derive(Template)]
#[template(path = "answer.html")]
struct Screen<'a> {
    answers: &'a [Answer],
    /// Page of each answer; empty for this one.
    pages: Vec<&'a str>,
    findings: Vec<&'a str>,
    further: usize,
    open: usize,
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

/// Renders the first screen of a run and of the other parts of its result.
pub(super) fn answer(view: &View, parts: &[Part<'_>]) -> String {
    let views = || std::iter::once(view).chain(parts.iter().map(|part| part.view));
    let answers: Vec<Answer> = views().map(Answer::new).collect();
    let pages = std::iter::once("").chain(parts.iter().map(|part| part.page)).collect();
    let (findings, further) = answer::shown_findings(&answers);
    rendered(&Screen {
        pages,
        findings,
        further,
        open: answers.iter().map(|answer| answer.open).sum(),
        failures: answer::failures(&answers),
        missing: answer::not_measured(&answers),
        margin: view.facts.margin.percent(),
        titles: views().map(|view| view.facts.title.as_str()).collect(),
        warned: !view.warnings.is_empty(),
        inconclusive: view.findings.by_point.iter().any(|point| !point.open.is_empty()),
        answers: &answers,
    })
}

/// Class of a cell: distance from the best, by shade.
fn shade(cell: &BoardCell) -> &'static str {
    match cell.distance {
        _ if cell.blocked => "",
        _ if cell.top => "near0",
        None => "",
        Some(distance) if distance < SHADES[0] => "near1",
        Some(distance) if distance < SHADES[1] => "near2",
        Some(distance) if distance < SHADES[2] => "near3",
        Some(_) => "",
    }
}

impl Screen<'_> {
    /// True for the grade of the part.
    fn is(&self, answer: &Answer, grade: &str) -> bool {
        answer.trust.grade.name() == grade
    }

    /// Size of a part and its date, without its title, which is above.
    fn about<'b>(&self, answer: &'b Answer, title: &str) -> &'b str {
        let rest = answer.title.strip_prefix(title).and_then(|rest| rest.strip_prefix(" · "));
        rest.unwrap_or(&answer.title)
    }

    fn any_top(&self) -> bool {
        let cells = self.answers.iter().flat_map(|it| &it.board.rows).flat_map(|row| &row.cells);
        cells.flatten().any(|cell| cell.top)
    }

    fn any_blocked(&self) -> bool {
        let cells = self.answers.iter().flat_map(|it| &it.board.rows).flat_map(|row| &row.cells);
        cells.flatten().any(|cell| cell.blocked)
    }

    /// Ratio to the best, unless the cell is the best or tied with it.
    fn ratio(&self, cell: &BoardCell) -> String {
        match cell.distance {
            Some(distance) if !cell.top && !cell.blocked => format!("÷{distance:.1}"),
            Some(_) | None => String::new(),
        }
    }

    fn shade(&self, cell: &BoardCell) -> &'static str {
        shade(cell)
    }

    /// True if the table needs the whole width of the page.
    fn is_wide(&self, board: &Board) -> bool {
        self.answers.len() == 1 || board.filesystems.len() > 12
    }

    /// The least reliable part decides the color.
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
        let cell = |distance, top| BoardCell {
            value: "1".into(),
            top,
            blocked: false,
            distance: Some(distance),
        };
        let shades: Vec<_> = [1.0, 1.2, 2.0, 3.0, 7.0].map(|it| shade(&cell(it, it == 1.0))).into();
        assert_eq!(shades, ["near0", "near1", "near2", "near3", ""]);
        let blocked = BoardCell { blocked: true, ..cell(1.0, false) };
        assert_eq!(shade(&blocked), "", "a blocked number is not compared");
    }
}
