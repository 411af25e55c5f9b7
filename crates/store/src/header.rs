//! Schema version of a run file, and names of the files next to it.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::{APPLICATION_ID, SCHEMA, StoreError};

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

/// Schema version of a run file; `None` if the file belongs to another application.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<Option<i32>> {
    let pragma = |name: &str| {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0))
    };
    match pragma("application_id")? {
        APPLICATION_ID => pragma("user_version").map(Some),
        _ => Ok(None),
    }
}

/// Checks a schema version, as returned by [`version`].
pub(crate) fn check_version(schema: Option<i32>, path: &Path) -> Result<(), StoreError> {
    match schema {
        Some(SCHEMA) => Ok(()),
        Some(found) => Err(StoreError::Schema { path: path.into(), found }),
        None => Err(StoreError::NotARun(path.into(), "it is a database of another program")),
    }
}

/// Path of a file that SQLite keeps next to a database.
pub(crate) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
