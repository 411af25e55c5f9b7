//! Opening a run file for reading, without a trace.
//!
//! A path enters, a connection leaves that has been told apart from other files. Nothing is written
//! to the file, to its log, or to their directory, whatever state the run was left in:
//!
//! | beside the file | what that means | how it is opened |
//! |---|---|---|
//! | nothing | the run ended, or its log was lost | read-only |
//! | a log and its index | it is being written, or was killed | read-only, the index too |
//! | a log alone | a copy of a killed run | the index is made in memory |
//!
//! The log is SQLite's write-ahead log (`-wal`), the index its shared memory (`-shm`); see
//! sqlite.org/wal.html, "Read-Only Databases". A connection that may write would write the log of a
//! killed run back and delete it, and even a read-only one makes both where the file's header asks
//! for them.
//!
//! The one exception is a run that was killed in the moment of its end, which leaves SQLite's
//! rollback journal: only what that says makes the file whole again, so it is carried out, if it
//! can be one of ours ([`crate::own::journal`]).

use std::{
    fs::{self, File},
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};

use crate::{APPLICATION_ID, SCHEMA, StoreError, own};

/// How every SQLite file begins (sqlite.org/fileformat2.html, section 1.3).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Where the header says whether the file has a write-ahead log: 2 if it does.
const READ_VERSION: usize = 19;

/// Opens a run for reading; answers its schema version as well.
///
/// # Errors
/// [`StoreError`] when there is no such file, or it is not a run this version can read.
pub(crate) fn open(path: &Path) -> Result<(Connection, i32), StoreError> {
    let failed = |source| StoreError::Open { path: path.into(), source };
    // SQLite looks for the log beside the file that a symbolic link leads to.
    let file = fs::canonicalize(path).map_err(failed)?;
    let metadata = fs::metadata(&file).map_err(failed)?;
    let other = |what| StoreError::NotARun(path.into(), what);
    if metadata.is_dir() {
        return Err(other("it is a directory; name the file in it"));
    }
    if !metadata.is_file() {
        return Err(other("it is a pipe, a socket, or a device"));
    }
    if metadata.len() == 0 {
        return Err(other("it is empty"));
    }
    let mut refused = None;
    for way in ways(&file, path)? {
        let answer = way.connect(&file).and_then(|connection| {
            let schema = version(&connection)?;
            Ok((connection, schema))
        });
        match answer {
            Ok((connection, schema)) => return Ok((connection, known(schema, path)?)),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(source) if source.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(other("it is no SQLite database"))
        }
        Some(source) => Err(StoreError::database("opening the database", path, source)),
        None => Err(other("it cannot be opened in any way")),
    }
}

/// The schema version of a run file that a connection is open to.
///
/// # Errors
/// [`StoreError`] when it is not a run this version can read.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<i32, StoreError> {
    let schema = version(connection);
    let schema =
        schema.map_err(|source| StoreError::database("reading the schema version", path, source));
    known(schema?, path)
}

/// The schema version of a run file; `None` if the file belongs to another application.
fn version(connection: &Connection) -> rusqlite::Result<Option<i32>> {
    let pragma = |name: &str| {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0))
    };
    match pragma("application_id")? {
        APPLICATION_ID => pragma("user_version").map(Some),
        _ => Ok(None),
    }
}

fn known(schema: Option<i32>, path: &Path) -> Result<i32, StoreError> {
    match schema {
        Some(schema @ 1..=SCHEMA) => Ok(schema),
        Some(found) if found > SCHEMA => Err(StoreError::Newer { path: path.into(), found }),
        Some(_) => Err(StoreError::NotARun(path.into(), "its schema version is no version")),
        None => Err(StoreError::NotARun(path.into(), "it is another program's database")),
    }
}

/// One way to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Under SQLite's locks; without a log in the header this makes no other file.
    Locked,
    /// Under SQLite's locks, with the index of a log as it stands. If nobody who writes has it
    /// open, SQLite does not trust it and makes its own in memory.
    IndexAsItStands,
    /// A file that nobody writes: no log, no locks.
    Still,
    /// Nobody writes it, and its log has no index: that is made in memory.
    IndexInMemory,
    /// With the rollback journal of a run that was killed as it ended.
    Mended,
}

/// The ways to open a file, in the order they are tried, by what lies beside it.
///
/// The file itself may only be looked at where there is no log: this process may be writing it, and
/// closing any descriptor of a file gives up the process's locks on it (fcntl(2)).
fn ways(file: &Path, path: &Path) -> Result<&'static [Way], StoreError> {
    let log = beside(file, "-wal");
    let logged = fs::metadata(&log).map(|log| log.len());
    if beside(file, "-shm").exists() && logged.is_ok() {
        return Ok(&[Way::IndexAsItStands, Way::Locked]);
    }
    if logged.is_ok_and(|bytes| bytes > 0) {
        return Ok(&[Way::IndexInMemory]);
    }
    let mut header = Vec::new();
    File::open(file)
        .and_then(|file| file.take(100).read_to_end(&mut header))
        .map_err(|source| StoreError::Open { path: path.into(), source })?;
    match header.get(READ_VERSION) {
        Some(version) if header.starts_with(MAGIC) => match version {
            2 => Ok(&[Way::Still]),
            _ => {
                own::journal(file)?;
                Ok(&[Way::Locked, Way::Mended])
            }
        },
        Some(_) | None => Err(StoreError::NotARun(path.into(), "it is no SQLite database")),
    }
}

impl Way {
    fn connect(self, file: &Path) -> rusqlite::Result<Connection> {
        let read = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = match self {
            Self::Locked => Connection::open_with_flags(uri(file, ""), read),
            Self::IndexAsItStands => {
                Connection::open_with_flags(uri(file, "?readonly_shm=1"), read)
            }
            Self::Still => Connection::open_with_flags(uri(file, "?immutable=1"), read),
            Self::IndexInMemory => {
                Connection::open_with_flags_and_vfs(uri(file, ""), read, c"unix-none")
            }
            Self::Mended => Connection::open_with_flags(
                file,
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            ),
        }?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // What a file says of itself runs no function that could do harm: sqlite.org/security.html.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        if self == Self::IndexInMemory {
            // Before the first access: then no shared memory is asked for.
            connection.pragma_update(None, "locking_mode", "exclusive")?;
        }
        Ok(connection)
    }
}

pub(crate) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The path as SQLite takes it with parameters: sqlite.org/uri.html.
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
