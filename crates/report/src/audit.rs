//! Audits of printed tables and of statements about them.
//!
//! Input is a table as tidy CSV ([`Table::read`]) and a statements file in TOML
//! ([`Statements::read`]), or published results by name ([`published`]). [`Audit::new`] checks them
//! with crate `analysis`; [`Audit::terminal`], [`Audit::markdown`], and [`Audit::json`] format the
//! result. `docs/guides/audit.md` describes the formats.
//!
//! The files are untrusted data: nothing in them is executed, opened, or sent to a terminal as a
//! control sequence. Sizes are limited ([`csv::LIMITS`]).

mod check;
pub mod csv;
mod data;
mod file;
pub(crate) mod quality_notes;
mod show;
#[cfg(test)]
mod tests;
mod text;

use analysis::audit::{self, Cell, Finding, Judgment, Layout, Ruling, Statement};

pub use file::{FileError, Statements};

/// Cells of a table with the names of their coordinates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Coordinates in the order of the columns.
    pub columns: Vec<String>,
    /// Columns that the layout excludes from the coordinates.
    pub ignored: Vec<String>,
    /// Cells.
    pub cells: Vec<Cell>,
}

/// Meaning of the columns of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// Column of numbers.
    pub value: String,
    /// Column of the printed texts, if separate.
    pub text: Option<String>,
    /// Columns that are not coordinates.
    pub ignore: Vec<String>,
}

/// Result of an audit.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// Title of the audited table.
    pub title: String,
    /// Source as keywords with texts; empty for tables without a source.
    pub source: Vec<(String, String)>,
    /// Unit of the numbers; empty if not given.
    pub unit: String,
    /// Statements that are not checked, with the reason.
    pub skipped: Vec<(String, String)>,
    table: Table,
    layout: Layout,
    statements: Vec<Statement>,
    /// Findings about the numbers.
    pub findings: Vec<Finding>,
    /// Results of the statements in order.
    pub judgments: Vec<Judgment>,
}

impl Audit {
    /// Audits a table according to a statements file.
    ///
    /// # Errors
    /// [`FileError`] if the file names a coordinate or level that the table does not have.
    pub fn new(table: Table, statements: Statements) -> Result<Self, FileError> {
        statements.check(&table)?;
        let layout = statements.layout(&table);
        let Statements { title, source, unit, skipped, statements, .. } = statements;
        let findings = audit::tables(&table.cells, &layout);
        let judgments = audit::statements(&table.cells, &layout, &statements);
        Ok(Self { title, source, unit, skipped, table, layout, statements, findings, judgments })
    }

    /// Audit of measured numbers. It has the judgments of the statements, and no findings about the
    /// numbers.
    pub(crate) fn of_measured(
        table: Table,
        statements: Statements,
        judgments: Vec<Judgment>,
    ) -> Self {
        let layout = statements.layout(&table);
        let Statements { title, source, unit, skipped, statements, .. } = statements;
        let findings = Vec::new();
        Self { title, source, unit, skipped, table, layout, statements, findings, judgments }
    }

    /// True if a finding is evidence against the numbers, or if a statement does not hold or holds
    /// only in part. Statements that are not testable do not count.
    pub fn found(&self) -> bool {
        let against = |judgment: &Judgment| match judgment.ruling {
            Ruling::InPart | Ruling::Contradicted => true,
            Ruling::Holds | Ruling::NotTestable => false,
        };
        self.findings.iter().any(Finding::doubtful) || self.judgments.iter().any(against)
    }
}
