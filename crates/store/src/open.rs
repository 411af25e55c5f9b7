//! Opens a run file for reading, without changing anything.
//!
//! A connection is returned only if the file is a run file of this schema version. Nothing is
//! written to the file, to its log, or to their directory, regardless of the state of the run:
//!
//! | next to the file | meaning | opened |
//! |---|---|---|
//! | nothing | the run ended, or its log was lost | read-only |
//! | a log and its index | it is being written, or was killed | read-only, including the index |
//! | a log alone | a copy of a killed run | with an index in memory |
//!
//! The log is SQLite's write-ahead log (`-wal`), the index its shared memory (`-shm`); see
//! sqlite.org/wal.html, "Read-Only Databases". A writable connection would write back and delete
//! the log of a killed run. Even a read-only connection creates both files if the header of the
//! file requests a write-ahead log.
//!
//! There is one exception: a run that was killed during its last step leaves a rollback journal of
//! SQLite. The file is consistent only after the rollback, so the rollback is done if the journal
//! can be one of fslab ([`crate::own::journal`]).

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

/// True if the path is a regular file that begins as an SQLite database. Whether it is a run of
/// this schema version is checked by [`crate::read`].
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
    // SQLite uses the log next to the target of a symbolic link.
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

/// Method of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenAttempt {
    /// With SQLite's locks. Creates no other file unless the header requests a log.
    Locked,
    /// With SQLite's locks and the existing index of the log. If no writer has the file open,
    /// SQLite builds an index in memory instead.
    ExistingIndex,
    /// Without log and locks, for a file that no process writes.
    Immutable,
    /// With an index in memory, for a file that no process writes and whose log has no index.
    IndexInMemory,
    /// With the rollback journal of a run that was killed during its last step.
    Rollback,
}

/// Methods of opening a file, in the order they are tried, depending on the files next to it.
///
/// The file itself may be read only if it has no log: this process may be writing it, and closing
/// any descriptor of a file releases the locks of the process (fcntl(2)).
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
        // The schema of an untrusted file must not call unsafe functions: sqlite.org/security.html.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        if self == Self::IndexInMemory {
            // Set before the first access, so that no shared memory is created.
            connection.pragma_update(None, "locking_mode", "exclusive")?;
        }
        Ok(connection)
    }
}

/// URI filename with parameters: sqlite.org/uri.html.
fn uri(file: &Path, parameters: &str) -> String {
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
