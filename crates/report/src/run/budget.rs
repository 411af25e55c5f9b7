//! Size limit of a page.
//!
//! Browsers display a page of ten thousand chart marks immediately, but not one of a million.
//! Charts, and tables that repeat data of others, are included if they fit into the rest of the
//! budget. The others are counted, and the page states each omission at its place.

use crate::{
    document::{Block, Body, Figure, Table},
    units::count,
};

/// Maximum number of chart marks of a page: about 60 bytes each, so that charts stay below 3 MB.
const MARKS: usize = 45_000;

/// Maximum size of the charts and tables of a page in bytes.
const BYTES: usize = 7_500_000;

/// Typical size in bytes of a cell, and of a table without its cells.
const CELL: usize = 110;
const TABLE: usize = 700;

/// Remaining marks and bytes, and numbers of omitted charts and tables.
#[derive(Debug)]
pub(crate) struct Budget {
    charts: bool,
    marks: usize,
    bytes: usize,
    omitted: usize,
    tables_omitted: usize,
}

impl Budget {
    /// Unlimited budget of a text document, which has no charts.
    pub(crate) fn text() -> Self {
        Self { charts: false, bytes: usize::MAX, ..Self::of(0) }
    }

    /// Budget of a page.
    pub(crate) fn page() -> Self {
        Self::of(MARKS)
    }

    /// Budget with the given number of marks.
    pub(crate) fn of(marks: usize) -> Self {
        Self { charts: true, marks, bytes: BYTES, omitted: 0, tables_omitted: 0 }
    }

    /// True if the document has charts.
    pub(super) fn has_charts(&self) -> bool {
        self.charts
    }

    /// Splits off half of the remaining budget, for charts that must not use all of it.
    pub(super) fn split(&mut self) -> Self {
        let [marks, bytes] = [self.marks / 2, self.bytes / 2];
        self.marks -= marks;
        self.bytes -= bytes;
        Self { charts: self.charts, marks, bytes, omitted: 0, tables_omitted: 0 }
    }

    /// Returns the unused budget of a part, and adds its number of omitted charts.
    pub(super) fn return_unused(&mut self, part: &Self) {
        self.marks += part.marks;
        self.bytes += part.bytes;
        self.omitted += part.omitted;
    }

    /// Charts that fit, and a note on the omitted ones.
    pub(super) fn charts(&mut self, figures: impl IntoIterator<Item = Figure>) -> Vec<Block> {
        if !self.charts {
            return Vec::new();
        }
        let mut blocks = Vec::new();
        let mut omitted = 0;
        for figure in figures {
            // Each mark is an element on a separate line.
            let marks = figure.svg.matches("\n<").count();
            if marks <= self.marks && figure.svg.len() <= self.bytes {
                self.marks -= marks;
                self.bytes -= figure.svg.len();
                blocks.push(Block::Figure(figure));
            } else {
                omitted += 1;
            }
        }
        self.omitted += omitted;
        blocks.extend(left_out(omitted, "chart"));
        blocks
    }

    /// Subtracts the size of mandatory parts.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Tables that fit.
    pub(super) fn tables<'a>(
        &mut self,
        tables: impl IntoIterator<Item = &'a Table>,
    ) -> Vec<&'a Table> {
        let before = self.tables_omitted;
        let mut taken = Vec::new();
        for table in tables {
            let bytes = size(table);
            if bytes <= self.bytes {
                self.spend(bytes);
                taken.push(table);
            } else {
                self.tables_omitted += 1;
            }
        }
        debug_assert!(self.charts || self.tables_omitted == before, "texts have all tables");
        taken
    }

    /// Numbers of charts and tables omitted so far.
    pub(super) fn omitted(&self) -> (usize, usize) {
        (self.omitted, self.tables_omitted)
    }
}

/// Note on omitted parts, with a link to the section that lists other formats; `None` if nothing is
/// omitted.
pub(super) fn left_out(number: usize, what: &str) -> Option<Block> {
    let text = format!("{} omitted to limit the file size", count(number, what));
    (number > 0).then(|| Block::Links(text, vec![("data".into(), "Raw data".into())]))
}

/// Estimated size of a table in bytes.
pub(super) fn size(table: &Table) -> usize {
    let cells = table.rows.iter().map(|row| match &row.body {
        Body::Cells(cells) => cells.len() + 1,
        Body::Missing(_) => 2,
    });
    TABLE + CELL * cells.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Kind, Row};

    #[test]
    fn tables_that_do_not_fit_are_counted() {
        let table = |cells: usize| {
            let texts = std::iter::repeat_n("", cells);
            Table::of_texts("", &[], vec![Row::texts("", texts)])
        };
        let tables = [10, 1, 0].map(table);
        let mut budget = Budget::page();
        budget.spend(BYTES - size(&tables[1]) - size(&tables[2]));
        let taken = budget.tables(&tables);
        assert_eq!(taken.iter().map(|table| size(table)).collect::<Vec<_>>(), [920, 810]);
        assert_eq!(budget.omitted(), (0, 1));
    }

    fn figure(marks: usize) -> Figure {
        let svg = format!("<svg>{}</svg>", "\n<path/>".repeat(marks));
        let (id, title, caption) = (String::new(), String::new(), String::new());
        Figure { id, kind: Kind::Ranking, title, wide: false, svg, caption }
    }

    #[test]
    fn charts_that_do_not_fit_are_counted() {
        let mut budget = Budget::page();
        let mut part = budget.split();
        let blocks = part.charts(vec![figure(MARKS), figure(10), figure(MARKS / 2)]);
        assert!(matches!(&blocks[..], [Block::Figure(_), Block::Links(text, _)]
            if text == "2 charts omitted to limit the file size"));
        budget.return_unused(&part);
        let blocks = budget.charts(vec![figure(MARKS - 10), figure(1)]);
        assert_eq!((blocks.len(), budget.omitted()), (2, (3, 0)));
        assert!(Budget::text().charts([figure(1)]).is_empty());
    }
}
