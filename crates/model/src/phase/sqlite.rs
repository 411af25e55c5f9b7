//! SQLite databases: transactions on one table.

use serde::{Deserialize, Serialize};

use super::together::TimeLimit;
use crate::units::Bytes;

/// Work on a database with the table `rows`: a number as the key, and a text of fixed length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sqlite {
    /// Rows of the table, at least 1.
    pub rows: u64,
    /// Bytes of text per row.
    pub row_size: Bytes,
    /// Journal mode.
    pub journal: JournalMode,
    /// Setting of `synchronous`.
    pub synchronous: Synchronous,
    /// Number of transactions, each of which updates one random row. 0 creates the database and
    /// inserts all rows in one transaction.
    pub updates: u64,
    /// Time limit; `None`: the number of transactions ends the loop. Not used by the phase that
    /// creates the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeLimit>,
    /// Seed of the rows and of their order.
    pub seed: u64,
}

impl Sqlite {
    /// True if a transaction is durable when its commit returns. In a WAL, `NORMAL` syncs at
    /// checkpoints only (sqlite.org/pragma.html, "synchronous").
    pub fn commits(&self) -> bool {
        (self.journal, self.synchronous) != (JournalMode::Wal, Synchronous::Normal)
    }
}

/// Journal mode (`PRAGMA journal_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalMode {
    /// The rollback journal is removed after each transaction.
    Delete,
    /// The rollback journal is truncated after each transaction.
    Truncate,
    /// The header of the rollback journal is overwritten after each transaction.
    Persist,
    /// Write-ahead log.
    Wal,
}

impl JournalMode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Delete, Self::Truncate, Self::Persist, Self::Wal];

    /// Name in SQL and in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Truncate => "truncate",
            Self::Persist => "persist",
            Self::Wal => "wal",
        }
    }
}

/// Setting of `PRAGMA synchronous`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Synchronous {
    /// Syncs the directory, too.
    Extra,
    /// Syncs at all critical moments.
    Full,
    /// Syncs at most critical moments; in a WAL, at checkpoints only.
    Normal,
}

impl Synchronous {
    /// All settings.
    pub const ALL: [Self; 3] = [Self::Extra, Self::Full, Self::Normal];

    /// Name in SQL and in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Extra => "extra",
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}
