//! SQLite databases: transactions on one table.

use serde::{Deserialize, Serialize};

use super::together::TimeLimit;
use crate::units::{Bytes, Ratio};

/// Work on a database with the table `rows`: a number as the key, and a text of fixed length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sqlite {
    /// Rows of the table, at least 1.
    pub rows: u64,
    /// Bytes of text per row.
    pub row_size: Bytes,
    /// Journal mode.
    pub journal: JournalMode,
    /// Setting of `synchronous`.
    pub synchronous: Synchronous,
    /// Number of transactions per worker. 0 creates the database and inserts all rows in one
    /// transaction.
    pub updates: u64,
    /// Time limit; `None`: the number of transactions ends the loop. Not used by the phase that
    /// creates the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeLimit>,
    /// Number of workers, each with a connection, at least 1. One worker creates the database.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub workers: u32,
    /// Fractions of the kinds of transactions.
    #[serde(flatten)]
    pub mix: TransactionMix,
    /// Exponent of Zipf's law, by which rows are chosen; `None`: all rows are equally likely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zipf_theta: Option<f64>,
    /// The newest rows are chosen most often, instead of scattered ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub latest: bool,
    /// Seed of the rows and of their order.
    pub seed: u64,
}

/// Fractions of the kinds of transactions; the others update a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionMix {
    /// Reads of a row.
    #[serde(default, rename = "read_fraction", skip_serializing_if = "is_zero")]
    pub reads: Ratio,
    /// Reads of 1 to 100 consecutive rows.
    #[serde(default, rename = "scan_fraction", skip_serializing_if = "is_zero")]
    pub scans: Ratio,
    /// Insertions of a row after the last one.
    #[serde(default, rename = "insert_fraction", skip_serializing_if = "is_zero")]
    pub inserts: Ratio,
    /// A read of a row, followed by an update of it.
    #[serde(default, rename = "modify_fraction", skip_serializing_if = "is_zero")]
    pub modifications: Ratio,
}

impl TransactionMix {
    /// Sum of the fractions.
    pub fn total(&self) -> f64 {
        self.reads.0 + self.scans.0 + self.inserts.0 + self.modifications.0
    }
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

fn is_zero(ratio: &Ratio) -> bool {
    ratio.0 == 0.0
}

impl Sqlite {
    /// True if each transaction changes a row.
    pub fn only_updates(&self) -> bool {
        self.mix.reads.0 + self.mix.scans.0 == 0.0
    }

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
