//! Studies whose statements can be checked: the numbers, if the study printed any, and the
//! statements.
//!
//! The statements are paraphrased in `published/*.audit.toml`, with their provenance.

use super::{PUBLISHED, Published, SUFFIX, bonnie};
use crate::audit::{Audit, Statements, Table};

/// Study with statements.
#[derive(Clone, Copy, Debug)]
pub struct Audited {
    /// Name without suffix.
    pub name: &'static str,
    /// Suite with the workload of the study.
    pub(crate) suite: &'static str,
    /// Layout of the table, and statements, in TOML.
    statements: &'static str,
    /// Function that returns the printed numbers; `None` if the study printed none, so that its
    /// statements can be checked on runs only.
    table: Option<fn(&Statements) -> Table>,
}

/// All studies with statements, oldest first.
pub const AUDITED: &[Audited] = &[
    Audited {
        name: "tasks-2006",
        suite: "tasks",
        statements: include_str!("../../published/tasks-2006.audit.toml"),
        table: Some(|read| {
            edition("tasks-2004", "2004", read).and(edition("tasks-2006", "2006", read))
        }),
    },
    Audited {
        name: "iozone-2009",
        suite: "iozone",
        statements: include_str!("../../published/iozone-2009.audit.toml"),
        table: Some(|read| table(data("iozone-2009"), read)),
    },
    Audited {
        name: "smallfiles-2011",
        suite: "small-files",
        statements: include_str!("../../published/smallfiles-2011.audit.toml"),
        table: None,
    },
    Audited {
        name: "dbench-2012",
        suite: "dbench",
        statements: include_str!("../../published/dbench-2012.audit.toml"),
        table: None,
    },
    Audited {
        name: "bonnie-2012",
        suite: "bonnie",
        statements: include_str!("../../published/bonnie-2012.audit.toml"),
        table: Some(|_| bonnie::cells(data("bonnie-2012"))),
    },
];

/// Audits the named published results, with or without suffix. `None` if there are no such results.
pub fn published(name: &str) -> Option<Audit> {
    let name = name.strip_suffix(SUFFIX).unwrap_or(name);
    let set = AUDITED.iter().find(|set| set.name == name && set.is_printed())?;
    let (table, statements) = set.parts();
    let audit = Audit::new(table, statements);
    Some(audit.unwrap_or_else(|error| unreachable!("{name}: {error}")))
}

impl Audited {
    /// Name on the command line.
    pub fn full_name(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }

    /// True if the study printed numbers.
    pub fn is_printed(&self) -> bool {
        self.table.is_some()
    }

    /// Table, which is empty for a study without numbers, and statements. Both files are built in
    /// and covered by tests, so that reading them cannot fail.
    pub(crate) fn parts(&self) -> (Table, Statements) {
        let read = Statements::read(self.statements);
        let statements = read.unwrap_or_else(|error| unreachable!("{}: {error}", self.name));
        let table = self.table.map_or_else(Table::default, |table| table(&statements));
        (table, statements)
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
