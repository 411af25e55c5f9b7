//! Checks before a run file is written to: the file and the files next to it must be as fslab
//! creates them.
//!
//! A run file is untrusted input, and SQLite executes definitions that the file contains: triggers
//! change writes, and views and generated columns change reads. SQLite also reads files with
//! certain names next to the run file as parts of it (sqlite.org/security.html,
//! sqlite.org/howtocorrupt.html). Each check returns the first unexpected object or file as an
//! error.

use std::{
    fs::File,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use rusqlite::{Connection, config::DbConfig};

use crate::{
    Lock, SCHEMA_SQL, StoreError,
    header::{beside, check as version},
};

/// Suffixes of the files that SQLite creates next to a database: log, index, rollback journal.
const SIDES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Disables triggers, views, unsafe functions in the schema, and direct writes to the schema.
///
/// # Errors
/// If SQLite rejects a setting.
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

/// Object of a schema: type, name, table, and SQL statement.
type Object = (String, String, String, Option<String>);

fn objects(connection: &Connection) -> rusqlite::Result<Vec<Object>> {
    let query = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY 1, 2";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| row.try_into())?;
    rows.collect()
}

/// Checks the version, the schema, and the pages of a run file.
///
/// # Errors
/// [`StoreError::Schema`], [`StoreError::Altered`], or [`StoreError::Damaged`].
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    version(connection, path)?;
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
        let what = format!("{kind} `{name}` is missing");
        return Err(StoreError::Altered { path: path.into(), what });
    }
    let verdict = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match verdict.map_err(failed)? {
        sound if sound == "ok" => Ok(()),
        damage => Err(StoreError::Damaged { path: path.into(), what: damage }),
    }
}

/// Refuses the path of a new run if SQLite would read an existing file as a part of this run.
///
/// # Errors
/// [`StoreError::Side`].
pub(crate) fn no_sides(path: &Path) -> Result<(), StoreError> {
    for side in SIDES.map(|suffix| beside(path, suffix)) {
        if side.symlink_metadata().is_ok() {
            let why = "it belongs to another run";
            return Err(StoreError::Side { path: path.into(), side, why });
        }
    }
    Ok(())
}

/// Checks that the files next to a run file can belong to the run. These files must be regular
/// files with one hard link and with the owner of the run file. A rollback journal must pass the
/// checks of [`journal`].
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
            "it has several hard links"
        } else if metadata.uid() != owner {
            "it has another owner"
        } else {
            continue;
        };
        return Err(StoreError::Side { path: path.into(), side, why });
    }
    journal(path)
}

/// First bytes of a rollback journal. A journal that names a super-journal also ends with these
/// bytes (sqlite.org/fileformat2.html, section 3; `readSuperJournal` in pager.c).
pub(crate) const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Refuses a rollback journal of another user, and one that names a super-journal. SQLite removes
/// the file that is named as the super-journal, and a forged journal could name any file. Journals
/// of fslab do not name a super-journal, because a run uses a single database file.
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
