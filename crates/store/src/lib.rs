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
//!
//! # Trust
//!
//! A run file is input. Reading writes nothing ([`crate::open`]), and writing begins only if every
//! table, index, and view of the file is, byte for byte, what this version creates
//! ([`crate::own`]).
#![forbid(unsafe_code)]

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

pub use read::{image, read};
use rusqlite::ErrorCode;
use rustix::fs::OFlags;
use thiserror::Error;
pub use write::Store;

/// Marks an SQLite file as a run of fslab ("fsla" in ASCII); see
/// sqlite.org/pragma.html#pragma_application_id.
const APPLICATION_ID: i32 = 0x6673_6c61;

/// Version of `schema.sql`; files of older versions are read, and not written to; newer ones are
/// refused.
const SCHEMA: i32 = 5;

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
    /// The file comes from an earlier version, and is to be written to.
    #[error("{} has schema {found}, and only runs of schema {SCHEMA} can be resumed; start a new run, `fslab report {}` shows this one", path.display(), path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i32,
    },
    /// The tables differ from those that this version creates, so that writing could do more than
    /// add rows.
    #[error("{} cannot be resumed: {what}; remove what was added to it with sqlite3(1), or start a new run", path.display())]
    Altered {
        /// The file.
        path: PathBuf,
        /// The first difference.
        what: String,
    },
    /// A file of another origin has a name that SQLite uses for this run.
    #[error("{} would be read as part of the run file {}: {why}; move it to another directory", side.display(), path.display())]
    Side {
        /// The file.
        path: PathBuf,
        /// The other file.
        side: PathBuf,
        /// The reason why it is not part of the run.
        why: &'static str,
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

/// No link is followed, and opening a FIFO does not wait.
const FLAGS: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).cast_signed();

/// The lock of a run that is being written, held until it is dropped.
///
/// It is a flock(2) lock, apart from SQLite's own fcntl(2) locks; the file must be closed after the
/// connection, since closing any descriptor of a file gives up the fcntl locks of the process.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes the lock of the run file at a path, which is not followed if it is a link.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if another process holds it, or has just replaced the file.
    pub fn take(path: &Path) -> Result<Self, StoreError> {
        let open = |source| StoreError::Open { path: path.into(), source };
        let mut options = File::options();
        options.read(true).write(true).custom_flags(FLAGS);
        let lock = Self::of(options.open(path).map_err(open)?, path)?;
        match sys::whole::is(path, &lock.0) {
            true => Ok(lock),
            // The process that held the lock has moved or removed the file: this one has no name.
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
