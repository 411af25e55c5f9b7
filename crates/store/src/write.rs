//! Writes a run file.

use std::{
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use model::{
    Environment, Nanos, RunRecord, Warning,
    file_type::RUN_FILE,
    phase::Cache,
    record::{CellRecord, CellState, Outcome, PhaseHistogram, PhaseInfo, RunInfo, TrialRecord},
};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, params};

use sys::whole::Fresh;

use crate::{
    Lock, SCHEMA, SCHEMA_SQL, StoreError,
    columns::{json, nanoseconds},
    hosts, own, read,
};

/// Name in errors of the step that creates a new file.
const CREATING: &str = "creating the tables";

/// Maximum time that the end of a run waits for other processes to close the file.
const PATIENCE: Duration = Duration::from_secs(1);

/// Run file opened for writing. Only one process at a time can open a run file for writing.
#[derive(Debug)]
pub struct Store {
    // Fields are dropped in order: the connection before the lock (see `Lock`).
    connection: Connection,
    path: PathBuf,
    _lock: Lock,
}

impl Store {
    /// Creates a run file with the run, its cells, the environment of the host, and warnings.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if the file exists, [`StoreError::Side`] if a file next to it would
    /// be read as a part of the run; otherwise the error of the write.
    pub fn create(
        path: &Path,
        info: &RunInfo,
        cells: &[CellRecord],
        environment: &Environment,
        warnings: &[Warning],
    ) -> Result<Self, StoreError> {
        let open = |source| StoreError::Open { path: path.into(), source };
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::Exists(path.into()));
        }
        own::no_sides(path)?;
        let image = image(info, cells, environment, warnings);
        let image = image.map_err(|error| StoreError::database(CREATING, path, error))?;
        // The file is written under another name and renamed when it is complete. After a kill
        // there is either no run file or a complete one.
        let fresh = Fresh::beside(path, 0o644).map_err(open)?;
        fresh.file().write_all(&image).map_err(|source| full(CREATING, path, source))?;
        let file = fresh.place_new().map_err(|source| {
            match source.kind() == ErrorKind::AlreadyExists {
                true => StoreError::Exists(path.into()),
                false => full(CREATING, path, source),
            }
        })?;
        Self::open(path, Lock::of(file, path)?)
    }

    /// Resumes an interrupted run.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if another process is writing the file. [`StoreError::Altered`] if its
    /// schema is not the schema of this version. [`StoreError::Side`] if a file next to it cannot
    /// belong to the run. Otherwise the errors of [`read`].
    pub fn resume(path: &Path) -> Result<(Self, RunRecord), StoreError> {
        let file = std::fs::canonicalize(path);
        let file = file.map_err(|source| StoreError::Open { path: path.into(), source })?;
        let lock = Lock::take(&file)?;
        own::sides(&file, &lock)?;
        let record = read(&file)?;
        Ok((Self::open(&file, lock)?, record))
    }

    /// Connects to a locked run file and checks it before anything is written.
    fn open(path: &Path, lock: Lock) -> Result<Self, StoreError> {
        // The path is resolved below. With NOFOLLOW, a symbolic link created after that is not
        // followed.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let opened = |source| StoreError::database("opening the database", path, source);
        let path = &std::fs::canonicalize(path)
            .map_err(|source| StoreError::Open { path: path.into(), source })?;
        let connection = Connection::open_with_flags(path, flags).map_err(opened)?;
        own::distrust(&connection).map_err(opened)?;
        own::check(&connection, path)?;
        let set = |name: &str, value: &str| connection.pragma_update(None, name, value);
        set("journal_mode", "wal")
            .and_then(|()| set("synchronous", "full"))
            .and_then(|()| set("foreign_keys", "on"))
            .map_err(opened)?;
        // SQLite has opened or created the files next to the run file. Another process may have
        // placed them there.
        own::sides(path, &lock)?;
        Ok(Self { connection, path: path.into(), _lock: lock })
    }

    /// Path of the run file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a trial in one transaction, which is on disk when this returns. `state` is the new
    /// state of the cell of the trial; `None`: unchanged.
    ///
    /// # Errors
    /// If the file cannot be written, or if this attempt of the repetition is already stored.
    pub fn trial(
        &mut self,
        trial: &TrialRecord,
        state: Option<&CellState>,
    ) -> Result<(), StoreError> {
        self.write("storing a trial", |transaction| {
            put_trial(transaction, trial)?;
            state.map_or(Ok(()), |state| put_state(transaction, trial.cell, state))
        })
    }

    /// Sets the state of a cell.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn cell_state(&mut self, cell: usize, state: &CellState) -> Result<(), StoreError> {
        self.write("setting the state of a cell", |transaction| put_state(transaction, cell, state))
    }

    /// Sets the final state of a cell and stores warnings, each with the name of its phase. The
    /// warnings are stored with the last measured trial of the cell; if there is no measured trial,
    /// they are not stored.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn close(
        &mut self,
        cell: usize,
        state: &CellState,
        warnings: &[(String, Warning)],
    ) -> Result<(), StoreError> {
        self.write("closing a cell", |transaction| {
            put_state(transaction, cell, state)?;
            let last: Option<i64> = transaction.query_row(
                "SELECT max(id) FROM trial WHERE cell_idx = ?1 AND outcome = 'measured'",
                params![cell_index(cell)],
                |row| row.get(0),
            )?;
            let Some(last) = last else { return Ok(()) };
            warnings.iter().try_for_each(|(phase, warning)| {
                put_warning(transaction, Some(last), Some(phase), warning)
            })
        })
    }

    /// Adds warnings about the run as a whole.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn warn(&mut self, warnings: &[Warning]) -> Result<(), StoreError> {
        self.write("storing warnings", |transaction| {
            warnings.iter().try_for_each(|warning| put_warning(transaction, None, None, warning))
        })
    }

    /// Ends the run: stores the end time and removes the log. If another process has the file open,
    /// the log remains, and the last process that closes the file writes the log back.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, ended_unix: Nanos) -> Result<(), StoreError> {
        self.write("ending the run", |transaction| {
            transaction
                .execute(
                    "INSERT OR REPLACE INTO run VALUES ('ended_unix', ?1)",
                    params![ended_unix.0.to_string()],
                )
                .map(drop)
        })?;
        self.connection
            .busy_timeout(PATIENCE)
            .and_then(|()| self.connection.pragma_update(None, "journal_mode", "delete"))
            .or_else(|error| match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Ok(()),
                _ => Err(self.failed("closing the log", error)),
            })
    }

    fn write(
        &mut self,
        step: &'static str,
        fill: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let write = || {
            let transaction = self.connection.transaction()?;
            fill(&transaction)?;
            transaction.commit()
        };
        write().map_err(|source| self.failed(step, source))
    }

    fn failed(&self, step: &'static str, source: rusqlite::Error) -> StoreError {
        if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) {
            return StoreError::Full { step, path: self.path.clone() };
        }
        StoreError::database(step, &self.path, source)
    }
}

/// Contents of a new run file.
fn image(
    info: &RunInfo,
    cells: &[CellRecord],
    environment: &Environment,
    warnings: &[Warning],
) -> rusqlite::Result<Vec<u8>> {
    let mut connection = Connection::open_in_memory()?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA_SQL)?;
    transaction.pragma_update(None, "application_id", RUN_FILE)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    put_info(&transaction, info)?;
    for (index, cell) in cells.iter().enumerate() {
        put_cell(&transaction, index, cell)?;
    }
    put_environment(&transaction, None, environment)?;
    warnings.iter().try_for_each(|warning| put_warning(&transaction, None, None, warning))?;
    transaction.commit()?;
    Ok(connection.serialize(rusqlite::MAIN_DB)?.to_vec())
}

fn full(step: &'static str, path: &Path, source: std::io::Error) -> StoreError {
    match [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&source.kind()) {
        true => StoreError::Full { step, path: path.into() },
        false => StoreError::Open { path: path.into(), source },
    }
}

/// Values of the columns `state` and `reason`. The reason is the stopping rule of a completed cell,
/// or the cause of a skipped or failed one.
fn state_columns(state: &CellState) -> (&'static str, &str) {
    match state {
        CellState::Open => ("open", ""),
        CellState::Done { reason } => ("done", reason),
        CellState::Skipped { reason } => ("skipped", reason),
        CellState::Failed { reason } => ("failed", reason),
    }
}

fn put_state(
    transaction: &Transaction<'_>,
    cell: usize,
    state: &CellState,
) -> rusqlite::Result<()> {
    let (state, reason) = state_columns(state);
    transaction
        .execute(
            "UPDATE cell SET state = ?2, reason = ?3 WHERE idx = ?1",
            params![cell_index(cell), state, reason],
        )
        .map(drop)
}

fn put_info(transaction: &Transaction<'_>, info: &RunInfo) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare("INSERT INTO run VALUES (?1, ?2)")?;
    let fields = json(info)?;
    for (key, value) in fields.as_object().into_iter().flatten() {
        insert.execute(params![key, value.to_string()])?;
    }
    Ok(())
}

fn put_cell(
    transaction: &Transaction<'_>,
    index: usize,
    record: &CellRecord,
) -> rusqlite::Result<()> {
    let (state, reason) = state_columns(&record.state);
    transaction.execute(
        "INSERT INTO cell VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            cell_index(index),
            record.id.to_string(),
            record.cell.filesystem.name,
            record.cell.workload.suite,
            record.label,
            record.cell.canonical(),
            state,
            reason,
            record.cell.aa_duplicate,
        ],
    )?;
    put_phases(transaction, index, &record.phases)
}

fn put_phases(
    transaction: &Transaction<'_>,
    cell: usize,
    phases: &[PhaseInfo],
) -> rusqlite::Result<()> {
    let mut insert =
        transaction.prepare("INSERT INTO phase VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (position, phase) in phases.iter().enumerate() {
        insert.execute(params![
            cell_index(cell),
            cell_index(position),
            phase.name,
            phase.group,
            json(&phase.role)?.as_str(),
            phase.primary.name(),
            phase.cache.map(Cache::name),
        ])?;
    }
    Ok(())
}

fn put_trial(transaction: &Transaction<'_>, trial: &TrialRecord) -> rusqlite::Result<()> {
    let (outcome, reason) = match &trial.outcome {
        Outcome::Measured => ("measured", ""),
        Outcome::Failed { reason } => ("failed", reason.as_str()),
        Outcome::Invalid { reason } => ("invalid", reason.as_str()),
    };
    transaction.execute(
        "INSERT INTO trial
         (cell_idx, repetition, attempt, started_unix_ns, elapsed_ns, outcome, reason)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            cell_index(trial.cell),
            trial.repetition,
            trial.attempt,
            nanoseconds(trial.started_unix),
            nanoseconds(trial.elapsed),
            outcome,
            reason,
        ],
    )?;
    let id = transaction.last_insert_rowid();
    let mut sample = transaction.prepare("INSERT INTO sample VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for value in &trial.samples {
        assert!(value.value.is_finite(), "{} {}: not finite", value.phase, value.metric.name());
        let unit = value.metric.spec().unit.name();
        let row = params![id, value.phase, value.metric.name(), unit, value.worker, value.value];
        sample.execute(row)?;
    }
    let mut histogram = transaction.prepare("INSERT INTO histogram VALUES (?1, ?2, ?3, ?4)")?;
    for PhaseHistogram { phase, kind, histogram: counts } in &trial.histograms {
        histogram.execute(params![id, phase, kind.name(), counts.encode()])?;
    }
    let mut series = transaction.prepare("INSERT INTO series VALUES (?1, ?2, ?3)")?;
    for (phase, counts) in &trial.series {
        series.execute(params![id, phase, counts.encode()])?;
    }
    let mut activity = transaction.prepare("INSERT INTO system_activity VALUES (?1, ?2, ?3)")?;
    for (phase, recorded) in &trial.activity {
        activity.execute(params![id, phase, json(recorded)?.to_string()])?;
    }
    for (phase, warning) in &trial.warnings {
        put_warning(transaction, Some(id), phase.as_deref(), warning)?;
    }
    let mut insert = transaction.prepare("INSERT INTO action VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (position, action) in trial.actions.iter().enumerate() {
        let elapsed = nanoseconds(action.elapsed);
        insert.execute(params![
            id,
            cell_index(position),
            action.description,
            elapsed,
            action.error
        ])?;
    }
    hosts::put(transaction, id, &trial.hosts)?;
    put_environment(transaction, Some(id), &trial.environment)
}

fn put_warning(
    transaction: &Transaction<'_>,
    trial: Option<i64>,
    phase: Option<&str>,
    warning: &Warning,
) -> rusqlite::Result<()> {
    let (severity, data) = (warning.severity().name(), json(warning)?.to_string());
    transaction
        .execute(
            "INSERT INTO warning VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![trial, phase, warning.code(), severity, warning.message(), data],
        )
        .map(drop)
}

fn put_environment(
    transaction: &Transaction<'_>,
    trial: Option<i64>,
    environment: &Environment,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare("INSERT INTO environment VALUES (?1, ?2, ?3)")?;
    for (name, value) in &environment.0 {
        insert.execute(params![trial, name, value])?;
    }
    Ok(())
}

fn cell_index(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}
