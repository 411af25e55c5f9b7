//! How much a page takes.
//!
//! A browser shows a page of some ten thousand marks at once and one of a million never. Charts
//! are taken in the order of the page as long as their marks fit, and then those tables that say
//! again what others say; the rest is counted, and the page says where it would stand that it is
//! left out, and how to get it.

use crate::figures::Figure;

/// Marks of all charts of a page: some 60 bytes each, so that charts stay below 3 MB.
const MARKS: usize = 45_000;

/// Bytes of a page, but for sentences.
const BYTES: usize = 7_500_000;

/// What is left of the marks.
#[derive(Debug)]
pub(super) struct Budget {
    marks: usize,
    bytes: usize,
    left_out: usize,
    tables_left_out: usize,
}

impl Budget {
    /// That of a whole page.
    pub(super) fn new() -> Self {
        Self::of(MARKS)
    }

    /// So many marks.
    pub(super) fn of(marks: usize) -> Self {
        Self { marks, bytes: BYTES, left_out: 0, tables_left_out: 0 }
    }

    /// Half of what is left, for charts that stand before others and must not take all.
    pub(super) fn part(&mut self) -> Self {
        let half = self.marks / 2;
        self.marks -= half;
        let bytes = self.bytes / 2;
        self.bytes -= bytes;
        Self { marks: half, bytes, left_out: 0, tables_left_out: 0 }
    }

    /// What a part did not need, and the charts it had no room for.
    pub(super) fn put_back(&mut self, part: Self) {
        self.marks += part.marks;
        self.bytes += part.bytes;
        self.left_out += part.left_out;
    }

    /// The charts that fit, and how many do not.
    pub(super) fn take(&mut self, figures: Vec<Figure>) -> (Vec<Figure>, usize) {
        let all = figures.len();
        let mut taken = Vec::with_capacity(all);
        for figure in figures {
            // Each mark is an element on a line of its own.
            let marks = figure.svg.matches("\n<").count();
            if marks <= self.marks && figure.svg.len() <= self.bytes {
                self.marks -= marks;
                self.bytes -= figure.svg.len();
                taken.push(figure);
            }
        }
        let left_out = all - taken.len();
        self.left_out += left_out;
        (taken, left_out)
    }

    /// What is part of the page in any case.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Tables as far as there is room.
    pub(super) fn tables(&mut self, tables: impl Iterator<Item = String>) -> Vec<String> {
        let mut taken = Vec::new();
        for table in tables {
            if table.len() <= self.bytes {
                self.bytes -= table.len();
                taken.push(table);
            } else {
                self.tables_left_out += 1;
            }
        }
        taken
    }

    /// Tables that found no room so far.
    pub(super) fn tables_left_out(&self) -> usize {
        self.tables_left_out
    }

    /// Charts that found no room so far.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Kind;

    #[test]
    fn tables_are_taken_while_they_fit_and_counted_where_not() {
        let mut budget = Budget::new();
        budget.spend(BYTES - 10);
        let tables = ["12345678", "1234", "12"].map(String::from);
        assert_eq!(budget.tables(tables.into_iter()), ["12345678", "12"]);
        assert_eq!(budget.tables_left_out(), 1);
    }

    fn figure(marks: usize) -> Figure {
        let svg = format!("<svg>{}</svg>", "\n<path/>".repeat(marks));
        let (id, title, caption) = (String::new(), String::new(), String::new());
        Figure { id, kind: Kind::Ranking, title, svg, caption }
    }

    #[test]
    fn charts_are_taken_while_they_fit_and_counted_where_not() {
        let mut budget = Budget::new();
        let mut part = budget.part();
        let (taken, left_out) = part.take(vec![figure(MARKS), figure(10), figure(MARKS / 2)]);
        assert_eq!((taken.len(), left_out), (1, 2));
        budget.put_back(part);
        let (taken, left_out) = budget.take(vec![figure(MARKS - 10), figure(1)]);
        assert_eq!((taken.len(), left_out, budget.left_out()), (1, 1, 3));
    }
}
