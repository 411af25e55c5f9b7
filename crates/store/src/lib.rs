//! Keeps a run: one SQLite file, one transaction for each trial.
//!
//! A run enters piece by piece through [`Store`] (the run, its cells, each trial whole) and leaves
//! as one [`model::RunRecord`] through [`read`]. Nothing derived is kept and nothing is computed
//! here. The tables are made for people with `sqlite3`, DuckDB or pandas as well: base units, units
//! in the names, one view (`result`) that joins what is asked for most. `schema.sql` documents
//! them.
//!
//! # Crash safety
//!
//! Write-ahead log, `synchronous = FULL`: a trial is on disk, whole, when [`Store::trial`] returns;
//! a trial in progress leaves nothing. A run that ended well goes back to a single file without a
//! log. Never call into this crate during a measured phase.
#![forbid(unsafe_code)]

mod open;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::{
    fs::File,
    path::{Path, PathBuf},
};

pub use read::read;
use rusqlite::ErrorCode;
use thiserror::Error;
pub use write::Store;

/// Marks an SQLite file as a run of fslab ("fsla" in ASCII); see
/// sqlite.org/pragma.html#pragma_application_id.
const APPLICATION_ID: i32 = 0x6673_6c61;

/// Version of `schema.sql`; files of older versions are migrated forward, newer ones refused.
const SCHEMA: i32 = 5;

/// What makes a file of the version before into one of the version after, from version 1 on.
///
/// Run with foreign keys off: a table that others refer to is made anew as sqlite.org has it
/// (lang_altertable.html, section 7).
const MIGRATIONS: [&str; 4] = [
    // One histogram for each phase became one for each thing timed; series are new.
    "CREATE TABLE histogram_2 (
         trial_id INTEGER NOT NULL REFERENCES trial (id),
         phase    TEXT NOT NULL,
         kind     TEXT NOT NULL,
         counts   BLOB NOT NULL,
         PRIMARY KEY (trial_id, phase, kind)
     ) STRICT;
     INSERT INTO histogram_2 SELECT trial_id, phase, 'all', counts FROM histogram ORDER BY rowid;
     DROP TABLE histogram;
     ALTER TABLE histogram_2 RENAME TO histogram;
     CREATE TABLE series (
         trial_id INTEGER NOT NULL REFERENCES trial (id),
         phase    TEXT NOT NULL,
         counts   BLOB NOT NULL,
         PRIMARY KEY (trial_id, phase)
     ) STRICT;",
    // Evidence is new, and the state of the caches is told for each phase.
    "ALTER TABLE phase ADD COLUMN cache TEXT;
     CREATE TABLE evidence (
         trial_id INTEGER NOT NULL REFERENCES trial (id),
         phase    TEXT NOT NULL,
         body     TEXT NOT NULL,
         PRIMARY KEY (trial_id, phase)
     ) STRICT;",
    // A repeat may be made more than once, and cells may have twins.
    "DROP VIEW result;
     ALTER TABLE cell ADD COLUMN twin INTEGER NOT NULL DEFAULT 0;
     CREATE TABLE trial_4 (
         id              INTEGER PRIMARY KEY,
         cell_idx        INTEGER NOT NULL REFERENCES cell (idx),
         repeat          INTEGER NOT NULL,
         attempt         INTEGER NOT NULL,
         started_unix_ns INTEGER NOT NULL,
         elapsed_ns      INTEGER NOT NULL,
         outcome         TEXT NOT NULL,
         reason          TEXT NOT NULL,
         UNIQUE (cell_idx, repeat, attempt)
     ) STRICT;
     INSERT INTO trial_4
     SELECT id, cell_idx, repeat, 0, started_unix_ns, elapsed_ns, outcome, reason
     FROM trial ORDER BY id;
     DROP TABLE trial;
     ALTER TABLE trial_4 RENAME TO trial;
     CREATE VIEW result AS
     SELECT cell.filesystem, cell.label AS workload, sample.phase, sample.metric, sample.unit,
            trial.repeat, sample.worker, sample.value
     FROM sample
     JOIN trial ON trial.id = sample.trial_id
     JOIN cell ON cell.idx = trial.cell_idx
     WHERE trial.outcome = 'measured' AND cell.twin = 0;",
    // The view is new. The ready plans of the studies had their names, and names are JSON texts.
    "INSERT INTO run SELECT 'view', value FROM run WHERE key = 'plan_name' AND value IN
         ('\"iozone-2009\"', '\"tasks-2006\"', '\"bonnie-2012\"', '\"dbench-2012\"',
          '\"smallfiles-2011\"');",
];

/// Why a run file could not be made, read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A new run would overwrite a file.
    #[error("{} exists already; name another file with -o, or go on with it: fslab run --resume {}", .0.display(), .0.display())]
    Exists(PathBuf),
    /// The file cannot be opened or made.
    #[error("cannot open the run file {}: {source}; check the path and its permissions", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is something else, and what.
    #[error("{} is not a run file of fslab: {}; name a file that `fslab run` has made", .0.display(), .1)]
    NotARun(PathBuf, &'static str),
    /// The file comes from a later version.
    #[error("{} has schema {found}, this program reads up to {SCHEMA}; use a newer fslab", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i32,
    },
    /// Another process writes this run.
    #[error("{} is being written by a running fslab; wait for it to end", .0.display())]
    Busy(PathBuf),
    /// There is no room for the run.
    #[error("{step}: no space left for the run file {}; free some, then go on with: fslab run --resume {}", path.display(), path.display())]
    Full {
        /// What was being done.
        step: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// SQLite could not carry out a step.
    #[error("{step} in the run file {}: {source}", path.display())]
    Database {
        /// What was being done.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// A stored value does not fit its column's meaning.
    #[error("the run file {} is damaged: {what}; use another copy of it, or measure again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
}

impl StoreError {
    /// What SQLite says of a step. What it cannot make sense of is damage.
    fn database(step: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::Error as Sqlite;
        let damage = match source.sqlite_error_code() {
            Some(code) => matches!(
                code,
                ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
                    | ErrorCode::TooBig
                    // A table or a column is not there.
                    | ErrorCode::Unknown
            ),
            None => matches!(
                source,
                Sqlite::SqlInputError { .. }
                    | Sqlite::InvalidColumnType(..)
                    | Sqlite::IntegralValueOutOfRange(..)
                    | Sqlite::FromSqlConversionFailure(..)
                    | Sqlite::Utf8Error(..)
            ),
        };
        match damage {
            true => Self::Damaged { path: path.into(), what: format!("{step}: {source}") },
            false => Self::Database { step, path: path.into(), source },
        }
    }
}

/// The tables of a run file, with what each column means; the reference page shows them.
pub const SCHEMA_SQL: &str = include_str!("schema.sql");

/// The version of SQLite that is built in.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// Takes the lock of a run that is being written. It is a flock(2) lock, apart from SQLite's own
/// fcntl(2) locks; the file must be closed after the connection, since closing any descriptor of a
/// file gives up the fcntl locks of the process.
fn lock(path: &Path) -> Result<File, StoreError> {
    let open = |source| StoreError::Open { path: path.into(), source };
    let file = File::options().read(true).write(true).open(path).map_err(open)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::Busy(path.into())),
        Err(std::fs::TryLockError::Error(source)) => Err(open(source)),
    }
}
