//! Schema version of a run file, and names of the files next to it.

use std::path::{Path, PathBuf};

use model::file_type::{RECORDING, RUN_FILE};
use rusqlite::Connection;

use crate::{SCHEMA, StoreError};

/// Checks that a connection is open to a run file of this schema version.
///
/// # Errors
/// [`StoreError::Schema`] for another version, [`StoreError::NotARun`] for another application, or
/// the error of SQLite.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let schema = version(connection);
    let schema =
        schema.map_err(|source| StoreError::database("reading the schema version", path, source));
    check_version(schema?, path)
}

/// Schema version of a run file; otherwise, what the file is.
pub(crate) type Version = Result<i32, &'static str>;

/// Schema version of a run file, or what the file is.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<Version> {
    let pragma = |name: &str| {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0))
    };
    match pragma("application_id")? {
        RUN_FILE => pragma("user_version").map(Ok),
        RECORDING => Ok(Err("it is a recording, which `fslab trace show` reads")),
        _ => Ok(Err("it is a database of another program")),
    }
}

/// Checks a schema version, as returned by [`version`].
pub(crate) fn check_version(schema: Version, path: &Path) -> Result<(), StoreError> {
    match schema {
        Ok(SCHEMA) => Ok(()),
        Ok(found) => Err(StoreError::Schema { path: path.into(), found }),
        Err(what) => Err(StoreError::NotARun(path.into(), what)),
    }
}

/// Path of a file that SQLite keeps next to a database.
pub(crate) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
