//! Reading a run back as one record.

use std::{collections::BTreeMap, path::Path};

use model::{
    Cell, CellId, Environment, Histogram, Nanos, RunRecord, Sample, Warning,
    phase::Series,
    record::{Action, CellRecord, CellState, Outcome, PhaseInfo, RunInfo, Times, TrialRecord},
};
use rusqlite::{Connection, OpenFlags, Row};
use serde::de::DeserializeOwned;

use crate::{StoreError, check};

/// Reads a whole run. The file may be being written meanwhile: what is complete is seen.
///
/// # Errors
/// [`StoreError`] when there is no such file, or it is not a run this version can read.
pub fn read(path: &Path) -> Result<RunRecord, StoreError> {
    let open = |source| StoreError::Open { path: path.into(), source };
    let empty = std::fs::metadata(path).map_err(open)?.len() == 0;
    if empty {
        return Err(StoreError::NotARun(path.into()));
    }
    let mut reader = Reader { connection: connect(path)?, path, schema: 0 };
    reader.schema = check(&reader.connection, path)?;
    // One transaction for all tables: else parts of a trial that is kept meanwhile are seen, and
    // the trial is not.
    let snapshot = reader.connection.unchecked_transaction();
    let _snapshot = snapshot.map_err(|source| reader.failed("beginning to read", source))?;
    reader.record()
}

impl Reader<'_> {
    fn record(&self) -> Result<RunRecord, StoreError> {
        let mut cells = self.cells()?;
        self.phases(&mut cells)?;
        let (mut trials, indexes) = self.trials()?;
        self.parts(&mut trials, &indexes)?;
        let mut warnings = Vec::new();
        for (trial, phase, warning) in self.warnings()? {
            match trial {
                None => warnings.push(warning),
                Some(id) => trials[self.at(&indexes, id)?].warnings.push((phase, warning)),
            }
        }
        let mut environment = Environment::default();
        for (trial, name, value) in self.environment()? {
            match trial {
                None => environment.set(name, value),
                Some(id) => trials[self.at(&indexes, id)?].environment.set(name, value),
            }
        }
        Ok(RunRecord { info: self.info()?, environment, cells, trials, warnings })
    }
}

/// A log that a killed run left can only be read by a connection that may write; a file on
/// read-only media only by one that may not.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE)
        .or_else(|_| Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY))
        .map_err(|source| StoreError::Database {
            step: "opening the database",
            path: path.into(),
            source,
        })
}

struct Reader<'a> {
    connection: Connection,
    path: &'a Path,
    /// The version of the file's tables; reading leaves an old file as it is.
    schema: i32,
}

type Located = (Option<i64>, Option<String>, Warning);

impl Reader<'_> {
    fn rows<T>(
        &self,
        step: &'static str,
        query: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = || {
            let mut statement = self.connection.prepare(query)?;
            statement.query_map([], read)?.collect::<rusqlite::Result<Vec<T>>>()
        };
        rows().map_err(|source| self.failed(step, source))
    }

    fn failed(&self, step: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::Database { step, path: self.path.into(), source }
    }

    fn damaged(&self, what: impl Into<String>) -> StoreError {
        StoreError::Damaged { path: self.path.into(), what: what.into() }
    }

    fn json<T: DeserializeOwned>(&self, what: &str, text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|error| self.damaged(format!("{what}: {error}")))
    }

    fn word<T: DeserializeOwned>(&self, what: &str, word: &str) -> Result<T, StoreError> {
        serde_json::from_value(serde_json::Value::String(word.into()))
            .map_err(|error| self.damaged(format!("{what}: {error}")))
    }

    fn info(&self) -> Result<RunInfo, StoreError> {
        let rows = self.rows("reading the run", "SELECT key, value FROM run", |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        let mut fields = serde_json::Map::new();
        for (key, value) in rows {
            fields.insert(key, self.json("run", &value)?);
        }
        serde_json::from_value(fields.into()).map_err(|error| self.damaged(format!("run: {error}")))
    }

    fn cells(&self) -> Result<Vec<CellRecord>, StoreError> {
        let query = "SELECT id, definition, label, state, reason FROM cell ORDER BY idx";
        let rows = self.rows("reading the cells", query, |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })?;
        let cell = |(id, definition, label, state, reason): (String, String, _, String, _)| {
            let cell: Cell = self.json("cell", &definition)?;
            let id: CellId = self.word("cell id", &id)?;
            if cell.id() != id {
                return Err(self.damaged(format!("cell {id} is not what it was when stored")));
            }
            let state = match state.as_str() {
                "open" => CellState::Open,
                "done" => CellState::Done { rule: reason },
                "skipped" => CellState::Skipped { reason },
                "failed" => CellState::Failed { reason },
                other => return Err(self.damaged(format!("a cell has the state `{other}`"))),
            };
            Ok(CellRecord { id, cell, label, state, phases: Vec::new() })
        };
        rows.into_iter().map(cell).collect()
    }

    fn phases(&self, cells: &mut [CellRecord]) -> Result<(), StoreError> {
        let query = match self.schema {
            1 | 2 => {
                "SELECT cell_idx, name, heading, role, primary_metric, NULL FROM phase
                 ORDER BY cell_idx, position"
            }
            _ => {
                "SELECT cell_idx, name, heading, role, primary_metric, cache FROM phase
                 ORDER BY cell_idx, position"
            }
        };
        type Row = (usize, String, String, String, String, Option<String>);
        let rows: Vec<Row> = self.rows("reading the phases", query, |row| {
            let cell = row.get::<_, u32>(0)? as usize;
            Ok((cell, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
        })?;
        for (cell, name, group, role, primary, cache) in rows {
            let phase = PhaseInfo {
                name,
                group,
                role: self.word("phase role", &role)?,
                primary: self.word("phase metric", &primary)?,
                cache: cache.map(|cache| self.word("phase cache", &cache)).transpose()?,
            };
            let cell = cells.get_mut(cell).ok_or_else(|| self.damaged("a phase of no cell"))?;
            cell.phases.push(phase);
        }
        Ok(())
    }

    fn trials(&self) -> Result<(Vec<TrialRecord>, BTreeMap<i64, usize>), StoreError> {
        let query = match self.schema {
            1..=3 => {
                "SELECT id, cell_idx, repeat, started_unix_ns, elapsed_ns, outcome, reason, 0
                 FROM trial ORDER BY id"
            }
            _ => {
                "SELECT id, cell_idx, repeat, started_unix_ns, elapsed_ns, outcome, reason, attempt
                 FROM trial ORDER BY id"
            }
        };
        let rows = self.rows("reading the trials", query, |row| {
            let outcome = match row.get::<_, String>(5)?.as_str() {
                "measured" => Outcome::Measured,
                "invalid" => Outcome::Invalid { reason: row.get(6)? },
                _ => Outcome::Failed { reason: row.get(6)? },
            };
            let trial = TrialRecord {
                cell: row.get::<_, u32>(1)? as usize,
                repeat: row.get(2)?,
                attempt: row.get(7)?,
                started_unix: nanos(row, 3)?,
                elapsed: nanos(row, 4)?,
                outcome,
                samples: Vec::new(),
                histograms: Vec::new(),
                series: Vec::new(),
                evidence: Vec::new(),
                warnings: Vec::new(),
                actions: Vec::new(),
                environment: Environment::default(),
            };
            Ok((row.get::<_, i64>(0)?, trial))
        })?;
        let indexes = rows.iter().enumerate().map(|(index, (id, _))| (*id, index)).collect();
        Ok((rows.into_iter().map(|(_, trial)| trial).collect(), indexes))
    }

    /// Samples, actions, and what [`Self::times`] reads.
    fn parts(
        &self,
        trials: &mut [TrialRecord],
        indexes: &BTreeMap<i64, usize>,
    ) -> Result<(), StoreError> {
        let query = "SELECT trial_id, phase, metric, worker, value FROM sample ORDER BY rowid";
        let samples: Vec<(i64, String, String, Option<u32>, f64)> =
            self.rows("reading the samples", query, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })?;
        for (trial, phase, metric, worker, value) in samples {
            let metric = self.word("sample metric", &metric)?;
            trials[self.at(indexes, trial)?].samples.push(Sample { phase, metric, worker, value });
        }
        self.times(trials, indexes)?;
        self.evidence(trials, indexes)?;
        let query = "SELECT trial_id, what, elapsed_ns, trouble FROM action
                     ORDER BY trial_id, position";
        let actions: Vec<(i64, Action)> = self.rows("reading the actions", query, |row| {
            let action =
                Action { what: row.get(1)?, elapsed: nanos(row, 2)?, trouble: row.get(3)? };
            Ok((row.get(0)?, action))
        })?;
        for (trial, action) in actions {
            trials[self.at(indexes, trial)?].actions.push(action);
        }
        Ok(())
    }

    /// Histograms and series. A file of schema 1 has one histogram for each phase, of all
    /// operations, and no series.
    fn times(
        &self,
        trials: &mut [TrialRecord],
        indexes: &BTreeMap<i64, usize>,
    ) -> Result<(), StoreError> {
        let query = match self.schema {
            1 => "SELECT trial_id, phase, 'all', counts FROM histogram ORDER BY rowid",
            _ => "SELECT trial_id, phase, kind, counts FROM histogram ORDER BY rowid",
        };
        let histograms: Vec<(i64, String, String, Vec<u8>)> =
            self.rows("reading the histograms", query, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        for (trial, phase, kind, bytes) in histograms {
            let of = self.word("what a histogram is of", &kind)?;
            let histogram = Histogram::decode(&bytes)
                .map_err(|error| self.damaged(format!("histogram of {phase}: {error}")))?;
            let times = Times { phase, of, histogram };
            trials[self.at(indexes, trial)?].histograms.push(times);
        }
        if self.schema == 1 {
            return Ok(());
        }
        let query = "SELECT trial_id, phase, counts FROM series ORDER BY rowid";
        let series: Vec<(i64, String, Vec<u8>)> =
            self.rows("reading the series", query, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        for (trial, phase, bytes) in series {
            let series = Series::decode(&bytes)
                .map_err(|error| self.damaged(format!("series of {phase}: {error}")))?;
            trials[self.at(indexes, trial)?].series.push((phase, series));
        }
        Ok(())
    }

    /// A file of schema 1 or 2 has none.
    fn evidence(
        &self,
        trials: &mut [TrialRecord],
        indexes: &BTreeMap<i64, usize>,
    ) -> Result<(), StoreError> {
        if self.schema < 3 {
            return Ok(());
        }
        let query = "SELECT trial_id, phase, body FROM evidence ORDER BY rowid";
        let bodies: Vec<(i64, String, String)> =
            self.rows("reading the evidence", query, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        for (trial, phase, body) in bodies {
            let evidence = self.json("evidence", &body)?;
            trials[self.at(indexes, trial)?].evidence.push((phase, evidence));
        }
        Ok(())
    }

    fn warnings(&self) -> Result<Vec<Located>, StoreError> {
        let query = "SELECT trial_id, phase, data FROM warning ORDER BY rowid";
        let rows: Vec<(Option<i64>, Option<String>, String)> =
            self.rows("reading the warnings", query, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        rows.into_iter()
            .map(|(trial, phase, data)| Ok((trial, phase, self.json("warning", &data)?)))
            .collect()
    }

    fn environment(&self) -> Result<Vec<(Option<i64>, String, String)>, StoreError> {
        let query = "SELECT trial_id, name, value FROM environment ORDER BY rowid";
        self.rows("reading the environment", query, |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
    }

    fn at(&self, indexes: &BTreeMap<i64, usize>, id: i64) -> Result<usize, StoreError> {
        indexes.get(&id).copied().ok_or_else(|| self.damaged(format!("a part of no trial ({id})")))
    }
}

fn nanos(row: &Row<'_>, column: usize) -> rusqlite::Result<Nanos> {
    let stored: i64 = row.get(column)?;
    u64::try_from(stored)
        .map(Nanos)
        .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, stored))
}
