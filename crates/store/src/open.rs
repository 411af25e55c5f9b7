//! Opens a run file for reading, without changing any file.
//!
//! A connection is returned only if the file is a run file of this schema version. Nothing is
//! written to the file, to its log, or to their directory. The method depends on the files next to
//! the run file:
//!
//! | next to the file | meaning | opened |
//! |---|---|---|
//! | nothing | the run ended, or its log was lost | read-only |
//! | a log and its index | it is being written, or was killed | read-only, including the index |
//! | a log alone | a copy of a killed run | with an index in memory |
//!
//! The log is the write-ahead log of SQLite (`-wal`), and the index is the shared memory of the log
//! (`-shm`); see sqlite.org/wal.html, "Read-Only Databases". A writable connection would write back
//! and delete the log of a killed run. If the header of the run file requests a write-ahead log,
//! even a read-only connection would create both files, unless one of the methods below is used
//! ([`OpenAttempt`]).
//!
//! There is one exception. A run that is killed while it removes its log leaves a rollback journal
//! of SQLite, and the run file is consistent only after the rollback. The rollback is done if the
//! journal passes the checks of [`crate::own::journal`].

use std::{
    fs::{self, File},
    io::Read,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};

use crate::{
    StoreError,
    header::{beside, check_version, version},
    own,
};

/// First bytes of every SQLite file (sqlite.org/fileformat2.html, section 1.3).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Offset of the read version in the header: 2 if the file uses a write-ahead log.
const READ_VERSION: usize = 19;

/// True if the path is a regular file that begins as an SQLite database. [`crate::read`] checks
/// that the database is a run of this schema version.
pub fn is_database(path: &Path) -> bool {
    let mut first = [0; MAGIC.len()];
    let regular = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut read = || File::open(path)?.read_exact(&mut first);
    regular && read().is_ok() && first == *MAGIC
}

/// Opens a run for reading.
///
/// # Errors
/// [`StoreError`] if the file does not exist or is not a run of this schema version.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    let failed = |source| StoreError::Open { path: path.into(), source };
    // SQLite searches for the log next to the target of a symbolic link.
    let file = fs::canonicalize(path).map_err(failed)?;
    let metadata = fs::metadata(&file).map_err(failed)?;
    let other = |what| StoreError::NotARun(path.into(), what);
    if metadata.is_dir() {
        return Err(other("it is a directory"));
    }
    if !metadata.is_file() {
        return Err(other("it is a pipe, a socket, or a device"));
    }
    if metadata.len() == 0 {
        return Err(other("it is empty"));
    }
    let mut refused = None;
    for attempt in attempts(&file, path)? {
        let opened = attempt.connect(&file).and_then(|connection| {
            let schema = version(&connection)?;
            Ok((connection, schema))
        });
        match opened {
            Ok((connection, schema)) => return check_version(schema, path).map(|()| connection),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(source) if source.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(other("it is not an SQLite database"))
        }
        Some(source) => Err(StoreError::database("opening the database", path, source)),
        None => Err(other("it cannot be opened")),
    }
}

/// Method of opening a run file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenAttempt {
    /// Read-only, with the locks of SQLite. No other file is created unless the header requests a
    /// log.
    Locked,
    /// Read-only, with the locks of SQLite and the existing index of the log. If no writer has the
    /// run file open, SQLite builds an index in memory instead.
    ExistingIndex,
    /// Read-only, without log and locks, for a run file that no process is writing.
    Immutable,
    /// Read-only, with an index in memory, for a run file that no process is writing and whose log
    /// has no index.
    IndexInMemory,
    /// Writable, so that SQLite rolls back the journal of a run that was killed while it removed
    /// its log.
    Rollback,
}

/// Methods of opening a run file, in the order in which they are tried. The methods depend on the
/// files next to the run file.
///
/// The header of the run file is read only if there is no log. With a log, this process itself may
/// be writing the file, and closing the descriptor would release its locks (fcntl(2)).
fn attempts(file: &Path, path: &Path) -> Result<&'static [OpenAttempt], StoreError> {
    let log = beside(file, "-wal");
    let logged = fs::metadata(&log).map(|log| log.len());
    if beside(file, "-shm").exists() && logged.is_ok() {
        return Ok(&[OpenAttempt::ExistingIndex, OpenAttempt::Locked]);
    }
    if logged.is_ok_and(|bytes| bytes > 0) {
        return Ok(&[OpenAttempt::IndexInMemory]);
    }
    let mut header = Vec::new();
    File::open(file)
        .and_then(|file| file.take(100).read_to_end(&mut header))
        .map_err(|source| StoreError::Open { path: path.into(), source })?;
    match header.get(READ_VERSION) {
        Some(version) if header.starts_with(MAGIC) => match version {
            2 => Ok(&[OpenAttempt::Immutable]),
            _ => {
                own::journal(file)?;
                Ok(&[OpenAttempt::Locked, OpenAttempt::Rollback])
            }
        },
        Some(_) | None => Err(StoreError::NotARun(path.into(), "it is not an SQLite database")),
    }
}

impl OpenAttempt {
    fn connect(self, file: &Path) -> rusqlite::Result<Connection> {
        let read = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = match self {
            Self::Locked => Connection::open_with_flags(uri(file, ""), read),
            Self::ExistingIndex => Connection::open_with_flags(uri(file, "?readonly_shm=1"), read),
            Self::Immutable => Connection::open_with_flags(uri(file, "?immutable=1"), read),
            Self::IndexInMemory => {
                Connection::open_with_flags_and_vfs(uri(file, ""), read, c"unix-none")
            }
            Self::Rollback => Connection::open_with_flags(
                file,
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            ),
        }?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // The schema of an untrusted file must not call unsafe functions
        // (sqlite.org/security.html).
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        if self == Self::IndexInMemory {
            // With this setting before the first access, SQLite creates no shared memory.
            connection.pragma_update(None, "locking_mode", "exclusive")?;
        }
        Ok(connection)
    }
}

/// URI filename with parameters: sqlite.org/uri.html.
pub(crate) fn uri(file: &Path, parameters: &str) -> String {
    let mut uri = String::from("file:");
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + parameters
}
