//! Checks that a run file is one of ours before it is written to.
//!
//! A run file is untrusted input, and SQLite carries out what a file defines: triggers change what
//! is written, views and generated columns what is read, and files next to it with the right names
//! are read as parts of it (sqlite.org/security.html, sqlite.org/howtocorrupt.html). A connection
//! or a path enters; the first thing that is not ours leaves as an error.

use std::{
    fs::File,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use rusqlite::{Connection, config::DbConfig};

use crate::{
    Lock, SCHEMA, SCHEMA_SQL, StoreError,
    open::{beside, check as version},
};

/// Endings of the names that SQLite adds to a file's: log, its index, rollback journal.
const SIDES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Makes a connection carry out nothing that the file defines: no triggers, no views, no functions
/// in its schema, and no writes to the schema itself.
///
/// # Errors
/// When SQLite refuses.
pub(crate) fn distrust(connection: &Connection) -> rusqlite::Result<()> {
    for (config, on) in [
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
    ] {
        connection.set_db_config(config, on)?;
    }
    connection.pragma_update(None, "cell_size_check", true)
}

/// One object of a schema: type, name, table, and the statement that made it.
type Object = (String, String, String, Option<String>);

fn objects(connection: &Connection) -> rusqlite::Result<Vec<Object>> {
    let query = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY 1, 2";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| row.try_into())?;
    rows.collect()
}

/// Checks version, schema, and pages of a file that is to be written to.
///
/// # Errors
/// [`StoreError::Older`], [`StoreError::Altered`], or [`StoreError::Damaged`].
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    match version(connection, path)? {
        SCHEMA => {}
        found => return Err(StoreError::Older { path: path.into(), found }),
    }
    let failed = |source| StoreError::database("comparing the tables", path, source);
    let created = || {
        let template = Connection::open_in_memory()?;
        template.execute_batch(SCHEMA_SQL)?;
        objects(&template)
    };
    let (found, ours) = (objects(connection).map_err(failed)?, created().map_err(failed)?);
    if let Some((kind, name, ..)) = found.iter().find(|object| !ours.contains(object)) {
        let what = format!("fslab did not create its {kind} `{name}`");
        return Err(StoreError::Altered { path: path.into(), what });
    }
    if let Some((kind, name, ..)) = ours.iter().find(|object| !found.contains(object)) {
        let what = format!("it has no {kind} `{name}`");
        return Err(StoreError::Altered { path: path.into(), what });
    }
    let verdict = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match verdict.map_err(failed)? {
        sound if sound == "ok" => Ok(()),
        damage => Err(StoreError::Damaged { path: path.into(), what: damage }),
    }
}

/// Refuses a place next to which there is a file that SQLite would read as part of a new run.
///
/// # Errors
/// [`StoreError::Side`].
pub(crate) fn no_sides(path: &Path) -> Result<(), StoreError> {
    for side in SIDES.map(|suffix| beside(path, suffix)) {
        if side.symlink_metadata().is_ok() {
            let why = "it is left of another run";
            return Err(StoreError::Side { path: path.into(), side, why });
        }
    }
    Ok(())
}

/// Checks that the files next to a run file can be of a run: regular, of one name, of the owner of
/// the run file, and with a [`journal`] of ours if any.
///
/// # Errors
/// [`StoreError::Side`].
pub(crate) fn sides(path: &Path, lock: &Lock) -> Result<(), StoreError> {
    let owner = lock.0.metadata().map(|metadata| metadata.uid());
    let owner = owner.map_err(|source| StoreError::Open { path: path.into(), source })?;
    for side in SIDES.map(|suffix| beside(path, suffix)) {
        let Ok(metadata) = side.symlink_metadata() else { continue };
        let why = if !metadata.is_file() {
            "it is not a regular file"
        } else if metadata.nlink() > 1 {
            "it has a second name"
        } else if metadata.uid() != owner {
            "it has another owner"
        } else {
            continue;
        };
        return Err(StoreError::Side { path: path.into(), side, why });
    }
    journal(path)
}

/// First bytes of SQLite's rollback journals, and last ones of those that name a super-journal
/// (sqlite.org/fileformat2.html, section 3; `readSuperJournal` in pager.c).
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Refuses a rollback journal that is not of a run of this user. SQLite removes the super-journal
/// that a journal names, which may be any file; ours name none, as one run is one file.
///
/// # Errors
/// [`StoreError::Side`].
pub(crate) fn journal(path: &Path) -> Result<(), StoreError> {
    let side = beside(path, "-journal");
    let refuse = |why| Err(StoreError::Side { path: path.into(), side: side.clone(), why });
    let Ok(metadata) = side.symlink_metadata() else { return Ok(()) };
    if !metadata.is_file() {
        return refuse("it is not a regular file");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refuse("it is a rollback journal of another user");
    }
    let mut end = JOURNAL;
    let named = metadata.len().checked_sub(JOURNAL.len() as u64).is_some_and(|at| {
        let read = File::open(&side).and_then(|file| file.read_exact_at(&mut end, at));
        at > 0 && (read.is_err() || end == JOURNAL)
    });
    if named { refuse("it names a file that SQLite would remove") } else { Ok(()) }
}
