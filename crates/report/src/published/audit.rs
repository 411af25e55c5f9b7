//! Published results that can be audited: their numbers, and the statements of their articles.
//!
//! The statements are paraphrased in `published/*.audit.toml`, with their provenance.

use super::{PUBLISHED, Published, SUFFIX, bonnie};
use crate::audit::{Audit, Statements, Table};

/// Data set that can be audited.
#[derive(Clone, Copy, Debug)]
pub struct Audited {
    /// Name without suffix.
    pub name: &'static str,
    /// Layout of the table, and statements, in TOML.
    statements: &'static str,
    /// Function that returns the table.
    table: fn(&Statements) -> Table,
}

/// All audited sets, oldest first.
pub const AUDITED: &[Audited] = &[
    Audited {
        name: "tasks-2006",
        statements: include_str!("../../published/tasks-2006.audit.toml"),
        table: |read| edition("tasks-2004", "2004", read).and(edition("tasks-2006", "2006", read)),
    },
    Audited {
        name: "iozone-2009",
        statements: include_str!("../../published/iozone-2009.audit.toml"),
        table: |read| table(data("iozone-2009"), read),
    },
    Audited {
        name: "bonnie-2012",
        statements: include_str!("../../published/bonnie-2012.audit.toml"),
        table: |_| bonnie::cells(data("bonnie-2012")),
    },
];

/// Audits the named published results, with or without suffix. `None` if there are no such results.
pub fn published(name: &str) -> Option<Audit> {
    let name = name.strip_suffix(SUFFIX).unwrap_or(name);
    let set = AUDITED.iter().find(|set| set.name == name)?;
    let (table, statements) = set.parts();
    let audit = Audit::new(table, statements);
    Some(audit.unwrap_or_else(|error| unreachable!("{name}: {error}")))
}

impl Audited {
    /// Name on the command line.
    pub fn full_name(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }

    /// Table and statements. Both files are built in and covered by tests, so that reading them
    /// cannot fail.
    pub(crate) fn parts(&self) -> (Table, Statements) {
        let read = Statements::read(self.statements);
        let statements = read.unwrap_or_else(|error| unreachable!("{}: {error}", self.name));
        ((self.table)(&statements), statements)
    }
}

fn data(name: &str) -> &'static str {
    PUBLISHED.iter().find(|set| set.name == name).map_or("", Published::data)
}

fn table(text: &str, statements: &Statements) -> Table {
    let read = Table::read(text.as_bytes(), &statements.columns);
    read.unwrap_or_else(|error| unreachable!("built-in data: {error}"))
}

/// One edition of the study of everyday tasks.
fn edition(name: &str, year: &str, statements: &Statements) -> Table {
    table(data(name), statements).with("edition", year)
}
