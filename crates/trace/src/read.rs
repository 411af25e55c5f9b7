//! Reader of recordings, which are untrusted.

use std::path::Path;

use model::file_type::{RECORDING, RUN_FILE, application_id};
use rusqlite::{Connection, Row, config::DbConfig};
use sha2::{Digest, Sha256};

use crate::{Node, NodeKind, Recording, Task, TraceError, check, columns::decode, write::VERSION};

/// Maximum size of a recording file.
const LARGEST: u64 = 4 << 30;

/// Tables of a recording.
const TABLES: [&str; 5] = ["chunk", "meta", "node", "path", "task"];

/// Maximum number of rows of a table.
const ROWS: usize = 16 << 20;

/// Maximum number of operations.
const OPERATIONS: u64 = 64 << 20;

/// Memory that an operation takes until it is compiled: itself, its effect, its uses of resources,
/// and its step.
const MEMORY: u64 = 320;

/// Maximum length of a fact or of the name of a task.
const TEXT: usize = 1 << 20;

/// Bytes of a recording file, and their SHA-256 as hexadecimal digits.
///
/// # Errors
/// [`TraceError::File`] if the file cannot be read or is larger than 4 GiB.
pub fn digest(path: &Path) -> Result<(Vec<u8>, String), TraceError> {
    let bytes = sys::input::bytes(path, LARGEST)
        .map_err(|source| TraceError::File { path: path.into(), source })?;
    let digits = hex::encode(Sha256::digest(&bytes));
    Ok((bytes, digits))
}

/// Reads a recording and checks it.
///
/// # Errors
/// [`TraceError`] if the file cannot be read, or is not a valid recording of this version.
pub fn read(path: &Path) -> Result<Recording, TraceError> {
    parse(&digest(path)?.0)
}

/// Reads a recording from the bytes of its file.
///
/// # Errors
/// [`TraceError`] if the bytes are not a valid recording of this version.
pub fn parse(bytes: &[u8]) -> Result<Recording, TraceError> {
    let other = |what: &str| TraceError::NotARecording(what.to_owned());
    if !bytes.starts_with(b"SQLite format 3\0") {
        return Err(other("it is not an SQLite database"));
    }
    if application_id(bytes) == Some(RUN_FILE) {
        return Err(other("it is a run file, which `fslab report` reads"));
    }
    // A database in write-ahead log mode cannot be opened in memory (sqlite.org/c3ref/deserialize).
    let modes = bytes.get(18..20);
    if modes != Some(&[1, 1]) {
        return Err(other("it was changed by another program"));
    }
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact("main", bytes, bytes.len(), true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA query_only = ON;")?;
    let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0));
    let (id, version): (i32, i32) = (pragma("application_id")?, pragma("user_version")?);
    if id != RECORDING {
        return Err(other("its application ID is another one"));
    }
    if version != VERSION {
        return Err(TraceError::NotARecording(format!(
            "it has version {version}; this fslab reads version {VERSION} only"
        )));
    }
    tables(&connection)?;
    let recording = rows(&connection)?;
    check::check(&recording)?;
    Ok(recording)
}

/// Checks that the database has the tables of a recording and nothing else, so that no query runs
/// code of the file.
fn tables(connection: &Connection) -> Result<(), TraceError> {
    let mut found = Vec::new();
    let mut query = connection.prepare(
        "SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY name LIMIT 20",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, name, sql): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        match kind.as_str() {
            "table" if include_str!("schema.sql").contains(&sql) => found.push(name),
            // The index of a primary key.
            "index" if name.starts_with("sqlite_autoindex_") && sql.is_empty() => {}
            _ => return Err(TraceError::NotARecording(format!("it has the {kind} `{name}`"))),
        }
    }
    match found == TABLES {
        true => Ok(()),
        false => Err(TraceError::NotARecording("it has other tables".to_owned())),
    }
}

fn rows(connection: &Connection) -> Result<Recording, TraceError> {
    let mut recording = Recording::default();
    each(connection, "SELECT key, value FROM meta ORDER BY key", |_, row| {
        let (key, value): (String, String) = (row.get(0)?, row.get(1)?);
        if key.len() > TEXT || value.len() > TEXT {
            return Err(damaged("a fact is too long"));
        }
        recording.facts.insert(key, value);
        Ok(())
    })?;
    each(connection, "SELECT id, bytes FROM path ORDER BY id", |index, row| {
        numbered(index, row)?;
        recording.paths.push(row.get(1)?);
        Ok(())
    })?;
    let nodes = "SELECT id, parent, name, kind, size, mode, same, target FROM node ORDER BY id";
    each(connection, nodes, |index, row| {
        numbered(index, row)?;
        let kind: u8 = row.get(3)?;
        recording.nodes.push(Node {
            parent: row.get(1)?,
            name: row.get(2)?,
            kind: *NodeKind::ALL
                .get(usize::from(kind))
                .ok_or_else(|| damaged("the kind of a node"))?,
            size: row.get::<_, i64>(4)?.cast_unsigned(),
            mode: row.get(5)?,
            same: row.get(6)?,
            target: row.get(7)?,
        });
        Ok(())
    })?;
    each(
        connection,
        "SELECT id, parent, process, begin, name FROM task ORDER BY id",
        |index, row| {
            numbered(index, row)?;
            let name: String = row.get(4)?;
            if name.len() > TEXT {
                return Err(damaged("the name of a task is too long"));
            }
            let (parent, process) = (row.get(1)?, row.get(2)?);
            let begin = row.get::<_, i64>(3)?.cast_unsigned();
            recording.tasks.push(Task { parent, process, begin, name, ops: Vec::new() });
            Ok(())
        },
    )?;
    count_operations(connection)?;
    each(connection, "SELECT task, count, columns FROM chunk ORDER BY id", |index, row| {
        let (task, count): (u32, u32) = (row.get(0)?, row.get(1)?);
        let (task, count) = (task as usize, count as usize);
        let place = || damaged(&format!("chunk {} names task {task}", index + 1));
        let task = task.checked_sub(1).and_then(|index| recording.tasks.get_mut(index));
        let task = task.ok_or_else(place)?;
        let blob = row.get_ref(2)?.as_blob().map_err(|_| damaged("a chunk is not a blob"))?;
        task.ops.extend(decode(blob, count)?);
        Ok(())
    })?;
    Ok(recording)
}

/// Checks the number of operations before memory is used for them: a small file may contain many
/// equal ones.
fn count_operations(connection: &Connection) -> Result<(), TraceError> {
    let mut count = 0u64;
    each(connection, "SELECT count FROM chunk", |_, row| {
        count = count.saturating_add(row.get::<_, u32>(0)?.into());
        Ok(())
    })?;
    bounded(count, memory())
}

/// Memory of this machine in bytes; no limit if it is not available.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib.saturating_mul(1024))
}

/// Checks that a number of operations fits in a quarter of this memory in bytes.
pub(crate) fn bounded(count: u64, memory: u64) -> Result<(), TraceError> {
    if count > OPERATIONS {
        return Err(damaged("it has too many operations"));
    }
    let needed = count.saturating_mul(MEMORY);
    if needed > memory / 4 {
        return Err(TraceError::Refused(format!(
            "its {count} operations need {} MiB of memory, more than a quarter of this machine's; \
             record a shorter run, or use another machine",
            needed >> 20
        )));
    }
    Ok(())
}

fn damaged(what: &str) -> TraceError {
    TraceError::Damaged(what.to_owned())
}

/// Checks that the rows of a table are numbered from 1.
fn numbered(index: usize, row: &Row<'_>) -> Result<(), TraceError> {
    match u32::try_from(index + 1).is_ok_and(|number| row.get::<_, u32>(0) == Ok(number)) {
        true => Ok(()),
        false => Err(damaged("the rows of a table are not numbered from 1")),
    }
}

/// Calls a function for each row.
fn each(
    connection: &Connection,
    sql: &str,
    mut row: impl FnMut(usize, &Row<'_>) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut query = connection.prepare(sql)?;
    let mut rows = query.query([])?;
    let mut index = 0;
    while let Some(found) = rows.next()? {
        if index == ROWS {
            return Err(damaged("a table has too many rows"));
        }
        row(index, found)?;
        index += 1;
    }
    Ok(())
}
