//! Run files: one SQLite file per run, one transaction per trial.
//!
//! [`Store`] writes the run, its cells, and each trial. A cell is one combination of the values
//! that the plan varies; a trial is one execution of a cell. [`read`] returns the file as one
//! [`model::RunRecord`]. The file contains raw values only; results are computed by other crates.
//! The tables can also be read with `sqlite3`, DuckDB, or pandas: values have base units, the names
//! of columns contain the unit, and the view `result` joins the most used columns. `schema.sql`
//! documents the tables.
//!
//! # Crash safety
//!
//! The database uses a write-ahead log with `synchronous = FULL`. When [`Store::trial`] returns,
//! the trial is on disk. A crash before that leaves no rows of the trial. At the end of a run, the
//! log is written back and removed, so that the run is a single file. Do not call this crate during
//! a measured phase.
//!
//! # Trust
//!
//! A run file is untrusted input. Reading does not change the file, except for the rollback of an
//! interrupted write ([`crate::open`]). Before writing to an existing file, the SQL definition of
//! every table, index, and view is compared, byte for byte, with the definition that this version
//! creates ([`crate::own`]).
#![forbid(unsafe_code)]

mod columns;
pub mod fuzz;
mod header;
mod hosts;
mod open;
mod own;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::{
    fs::File,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

pub use open::is_database;
pub use read::{image, read};
use rusqlite::ErrorCode;
use rustix::fs::OFlags;
use thiserror::Error;
pub use write::Store;

/// Version of `schema.sql`. Files with another version are refused.
const SCHEMA: i32 = 7;

/// Error when a run file is created, read, or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The path of a new run file exists already.
    #[error("{} exists; use another path with -o, or resume the run: fslab run --resume {}", .0.display(), .0.display())]
    Exists(PathBuf),
    /// The file cannot be opened or created.
    #[error("cannot open the run file {}: {source}; check the path and its permissions", path.display())]
    Open {
        /// Run file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is not a run file. The text describes what the file is.
    #[error("{} is not a run file: {}; use a file written by `fslab run`", .0.display(), .1)]
    NotARun(PathBuf, &'static str),
    /// The file has another schema version.
    #[error("{} has schema {found}; this version reads schema {SCHEMA} only", path.display())]
    Schema {
        /// Run file.
        path: PathBuf,
        /// Schema version of the file.
        found: i32,
    },
    /// The schema of the file differs from the schema that this version creates. Writing to the
    /// file could then have unexpected effects, for example through a trigger.
    #[error("cannot resume {}: {what}; remove the additions with sqlite3(1), or start a new run", path.display())]
    Altered {
        /// Run file.
        path: PathBuf,
        /// First difference.
        what: String,
    },
    /// Another file has a name that SQLite uses for the files next to this run file.
    #[error("SQLite would read {} as part of the run file {}: {why}; move it to another directory", side.display(), path.display())]
    Side {
        /// Run file.
        path: PathBuf,
        /// The other file.
        side: PathBuf,
        /// Reason why the other file is not part of the run.
        why: &'static str,
    },
    /// Another process writes this run.
    #[error("another fslab process writes {}; wait for it to end", .0.display())]
    Busy(PathBuf),
    /// The filesystem of the run file is full.
    #[error("{step}: no space left for the run file {}; free some space, then run: fslab run --resume {}", path.display(), path.display())]
    Full {
        /// Step that failed.
        step: &'static str,
        /// Run file.
        path: PathBuf,
    },
    /// SQLite failed.
    #[error("{step} in the run file {}: {source}", path.display())]
    Database {
        /// Step that failed.
        step: &'static str,
        /// Run file.
        path: PathBuf,
        /// Cause.
        source: rusqlite::Error,
    },
    /// The content of the file is invalid.
    #[error("the run file {} is damaged: {what}; use another copy, or start a new run", path.display())]
    Damaged {
        /// Run file.
        path: PathBuf,
        /// First invalid value.
        what: String,
    },
}

impl StoreError {
    /// Converts an error of SQLite. Errors caused by the content of the file become
    /// [`Self::Damaged`].
    fn database(step: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::Error as Sqlite;
        let damage = match source.sqlite_error_code() {
            Some(code) => matches!(
                code,
                ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
                    | ErrorCode::TooBig
                    // Reported for a missing table or column, among others.
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

/// SQL schema of a run file, with comments. The reference page of the run file includes this text.
pub const SCHEMA_SQL: &str = include_str!("schema.sql");

/// Version of the bundled SQLite.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// Flags of open(2): symbolic links are not followed, and opening a FIFO does not block.
const FLAGS: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).cast_signed();

/// Lock of a run file that is open for writing; released when dropped.
///
/// The lock is a flock(2) lock and independent of the fcntl(2) locks of SQLite. Drop the lock after
/// the SQLite connection: closing any descriptor of a file releases all fcntl locks that the
/// process has on the file.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Locks the run file at a path. The path must not be a symbolic link.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if another process holds the lock or has replaced the file;
    /// [`StoreError::Open`] if the file cannot be opened.
    pub fn take(path: &Path) -> Result<Self, StoreError> {
        let open = |source| StoreError::Open { path: path.into(), source };
        let mut options = File::options();
        options.read(true).write(true).custom_flags(FLAGS);
        let lock = Self::of(options.open(path).map_err(open)?, path)?;
        match sys::whole::is(path, &lock.0) {
            true => Ok(lock),
            // Another process moved or replaced the file between the open and the lock.
            false => Err(StoreError::Busy(path.into())),
        }
    }

    fn of(file: File, path: &Path) -> Result<Self, StoreError> {
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::Busy(path.into())),
            Err(std::fs::TryLockError::Error(source)) => {
                Err(StoreError::Open { path: path.into(), source })
            }
        }
    }
}
