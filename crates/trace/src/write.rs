//! Recordings as SQLite files: the format and its writer.

use model::file_type::RECORDING;
use rusqlite::{Connection, params};

use crate::{
    Recording, TraceError,
    columns::{MOST, encode},
};

/// Version of `schema.sql`. Files with another version are refused.
pub(crate) const VERSION: i32 = 1;

/// Bytes of a recording file. Equal recordings have equal bytes.
///
/// # Errors
/// [`TraceError::Database`] if there is no memory.
pub fn bytes(recording: &Recording) -> Result<Vec<u8>, TraceError> {
    let mut connection = Connection::open_in_memory()?;
    connection.execute_batch(&format!(
        "PRAGMA application_id = {RECORDING}; PRAGMA user_version = {VERSION};"
    ))?;
    connection.execute_batch(include_str!("schema.sql"))?;
    let transaction = connection.transaction()?;
    {
        let mut meta = transaction.prepare("INSERT INTO meta VALUES (?1, ?2)")?;
        for (key, value) in &recording.facts {
            meta.execute(params![key, value])?;
        }
        let mut path = transaction.prepare("INSERT INTO path VALUES (?1, ?2)")?;
        for (id, bytes) in (1i64..).zip(&recording.paths) {
            path.execute(params![id, bytes])?;
        }
        let mut node =
            transaction.prepare("INSERT INTO node VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
        for (id, it) in (1i64..).zip(&recording.nodes) {
            let size = it.size.cast_signed();
            let row =
                params![id, it.parent, it.name, it.kind as u8, size, it.mode, it.same, it.target];
            node.execute(row)?;
        }
        let mut task = transaction.prepare("INSERT INTO task VALUES (?1, ?2, ?3, ?4, ?5)")?;
        let mut chunk =
            transaction.prepare("INSERT INTO chunk (task, count, columns) VALUES (?1, ?2, ?3)")?;
        for (id, it) in (1i64..).zip(&recording.tasks) {
            task.execute(params![id, it.parent, it.process, it.begin.cast_signed(), it.name])?;
            for ops in it.ops.chunks(MOST) {
                let count = i64::try_from(ops.len()).unwrap_or(i64::MAX);
                chunk.execute(params![id, count, encode(ops)])?;
            }
        }
    }
    transaction.commit()?;
    Ok(connection.serialize("main")?.to_vec())
}
