//! Audits: printed tables and statements about them, read, held against each other, and shown.
//!
//! Text enters: a table as tidy CSV ([`Table::read`]) and a file of statements in TOML
//! ([`Statements::read`]), or published results by name ([`published`]). [`Audit::new`] has crate
//! `analysis` look for what does not fit; [`Audit::terminal`], [`Audit::markdown`], and
//! [`Audit::json`] lay it out. The formats are described in `docs/guides/audit.md`.
//!
//! Whatever the files hold is data: nothing in them is run, followed, or taken for a command to a
//! terminal. What is read has limits ([`csv::LIMITS`]).

mod check;
pub mod csv;
mod data;
pub(crate) mod doubts;
mod file;
mod show;
#[cfg(test)]
mod tests;
mod words;

use analysis::audit::{self, Cell, Finding, Judgment, Layout, Ruling, Statement};

pub use crate::published::audit::{AUDITED, Audited, published};
pub use file::{FileError, Statements};

/// Cells of a table, with the names of their coordinates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Coordinates in the order of the columns.
    pub columns: Vec<String>,
    /// Columns that are no coordinates, for the layout says so.
    pub ignored: Vec<String>,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// How the columns of a table are used.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// The column of numbers.
    pub value: String,
    /// The column of the texts as printed, if it is another.
    pub text: Option<String>,
    /// Columns that are no coordinates.
    pub ignore: Vec<String>,
}

/// An audit that was carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// What was audited, in words.
    pub title: String,
    /// Where it comes from, under what names it is told; empty for anybody's table.
    pub source: Vec<(String, String)>,
    /// Unit of the numbers; empty if not told.
    pub unit: String,
    /// Statements that were not written down as data, and why.
    pub left_out: Vec<(String, String)>,
    table: Table,
    layout: Layout,
    statements: Vec<Statement>,
    /// What is odd about the numbers.
    pub findings: Vec<Finding>,
    /// What the statements come to, in their order.
    pub judgments: Vec<Judgment>,
}

impl Audit {
    /// Audits a table by a file of statements.
    ///
    /// # Errors
    /// [`FileError`] if the file names a coordinate or level that the table has not.
    pub fn new(table: Table, statements: Statements) -> Result<Self, FileError> {
        statements.check(&table)?;
        let layout = statements.layout(&table);
        let Statements { title, source, unit, left_out, statements, .. } = statements;
        let findings = audit::tables(&table.cells, &layout);
        let judgments = audit::statements(&table.cells, &layout, &statements);
        Ok(Self { title, source, unit, left_out, table, layout, statements, findings, judgments })
    }

    /// Whether anything speaks against the numbers or the statements. What cannot be tested does
    /// not.
    pub fn found(&self) -> bool {
        let against = |judgment: &Judgment| match judgment.ruling {
            Ruling::InPart | Ruling::Contradicted => true,
            Ruling::Holds | Ruling::NotTestable => false,
        };
        self.findings.iter().any(Finding::doubtful) || self.judgments.iter().any(against)
    }
}
