//! Size limit of a page.
//!
//! Browsers show a page of ten thousand marks at once, but not one of a million. Charts are
//! included in the order of the page as long as their marks fit, then tables that repeat data of
//! others. The rest is counted, and the page states the omissions in place, with a hint.

use crate::figures::Figure;

/// Maximum number of chart marks of a page: about 60 bytes each, so that charts stay below 3 MB.
const MARKS: usize = 45_000;

/// Maximum size of a page in bytes, without findings.
const BYTES: usize = 7_500_000;

/// Remaining marks and bytes.
#[derive(Debug)]
pub(super) struct Budget {
    marks: usize,
    bytes: usize,
    omitted: usize,
    tables_omitted: usize,
}

impl Budget {
    /// Budget of a page.
    pub(super) fn new() -> Self {
        Self::of(MARKS)
    }

    /// Budget with the given number of marks.
    pub(super) fn of(marks: usize) -> Self {
        Self { marks, bytes: BYTES, omitted: 0, tables_omitted: 0 }
    }

    /// Splits off half of the rest, for charts that precede others and must not use all of it.
    pub(super) fn split(&mut self) -> Self {
        let half = self.marks / 2;
        self.marks -= half;
        let bytes = self.bytes / 2;
        self.bytes -= bytes;
        Self { marks: half, bytes, omitted: 0, tables_omitted: 0 }
    }

    /// Returns the unused rest of a part, and adds its omitted charts.
    pub(super) fn return_unused(&mut self, part: Self) {
        self.marks += part.marks;
        self.bytes += part.bytes;
        self.omitted += part.omitted;
    }

    /// Charts that fit, and the number of those that do not.
    pub(super) fn take(&mut self, figures: Vec<Figure>) -> (Vec<Figure>, usize) {
        let all = figures.len();
        let mut taken = Vec::with_capacity(all);
        for figure in figures {
            // Each mark is an element on a separate line.
            let marks = figure.svg.matches("\n<").count();
            if marks <= self.marks && figure.svg.len() <= self.bytes {
                self.marks -= marks;
                self.bytes -= figure.svg.len();
                taken.push(figure);
            }
        }
        let omitted = all - taken.len();
        self.omitted += omitted;
        (taken, omitted)
    }

    /// Subtracts the size of mandatory parts.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Tables that fit.
    pub(super) fn tables(&mut self, tables: impl Iterator<Item = String>) -> Vec<String> {
        let mut taken = Vec::new();
        for table in tables {
            if table.len() <= self.bytes {
                self.bytes -= table.len();
                taken.push(table);
            } else {
                self.tables_omitted += 1;
            }
        }
        taken
    }

    /// Number of tables omitted so far.
    pub(super) fn tables_omitted(&self) -> usize {
        self.tables_omitted
    }

    /// Number of charts omitted so far.
    pub(super) fn omitted(&self) -> usize {
        self.omitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Kind;

    #[test]
    fn tables_that_do_not_fit_are_counted() {
        let mut budget = Budget::new();
        budget.spend(BYTES - 10);
        let tables = ["12345678", "1234", "12"].map(String::from);
        assert_eq!(budget.tables(tables.into_iter()), ["12345678", "12"]);
        assert_eq!(budget.tables_omitted(), 1);
    }

    fn figure(marks: usize) -> Figure {
        let svg = format!("<svg>{}</svg>", "\n<path/>".repeat(marks));
        let (id, title, caption) = (String::new(), String::new(), String::new());
        Figure { id, kind: Kind::Ranking, title, wide: false, svg, caption }
    }

    #[test]
    fn charts_that_do_not_fit_are_counted() {
        let mut budget = Budget::new();
        let mut part = budget.split();
        let (taken, omitted) = part.take(vec![figure(MARKS), figure(10), figure(MARKS / 2)]);
        assert_eq!((taken.len(), omitted), (1, 2));
        budget.return_unused(part);
        let (taken, omitted) = budget.take(vec![figure(MARKS - 10), figure(1)]);
        assert_eq!((taken.len(), omitted, budget.omitted()), (1, 1, 3));
    }
}
