//! Reads a run file into one record.

use std::{collections::BTreeMap, path::Path};

use model::{
    Cell, CellId, Environment, Histogram, RunRecord, Sample, Warning,
    phase::Series,
    record::{
        Action, CellRecord, CellState, Outcome, PhaseHistogram, PhaseInfo, RunInfo, TrialRecord,
    },
};
use rusqlite::{Connection, Row, types::Type};
use serde::de::DeserializeOwned;

use crate::{StoreError, columns::nanos, hosts, open::open};

/// Reads a run. If another process is writing the file, the trials stored so far are returned.
/// Files are not changed, except for the rollback of an interrupted write; see [`crate::open`].
///
/// # Errors
/// [`StoreError`] if the file does not exist, is not a run of this schema version, or is damaged.
pub fn read(path: &Path) -> Result<RunRecord, StoreError> {
    let reader = Reader { connection: open(path)?, path };
    // All tables are read in one transaction: a trial that is stored during the read is returned
    // either completely or not at all.
    let snapshot = reader.connection.unchecked_transaction();
    let _snapshot =
        snapshot.map_err(|source| reader.failed("starting a read transaction", source))?;
    reader.sound()?;
    reader.record()
}

/// Returns a run as the bytes of one database file that includes the content of the log. Files are
/// not changed, with the same exception as for [`read`].
///
/// # Errors
/// The same as [`read`].
pub fn image(path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut connection = open(path)?;
    let image = connection.serialize(rusqlite::MAIN_DB).map(|bytes| bytes.to_vec());
    image.map_err(|source| StoreError::database("copying the database", path, source))
}

impl Reader<'_> {
    fn record(&self) -> Result<RunRecord, StoreError> {
        let mut cells = self.cells()?;
        self.phases(&mut cells)?;
        let (mut trials, indexes) = self.trials(cells.len())?;
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

/// Names of the tables of a run file.
const TABLES: [&str; 11] = [
    "run",
    "cell",
    "phase",
    "trial",
    "sample",
    "histogram",
    "series",
    "system_activity",
    "warning",
    "action",
    "environment",
];

struct Reader<'a> {
    connection: Connection,
    path: &'a Path,
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
        StoreError::database(step, self.path, source)
    }

    /// Refuses a file with inconsistent pages. Without this check, a page that is linked twice
    /// could cause an endless number of rows, and a missing page could hide a part of the run.
    ///
    /// Also refuses a file in which one of [`TABLES`] is not an ordinary table, because a view or a
    /// virtual table could compute arbitrary values.
    fn sound(&self) -> Result<(), StoreError> {
        let verdict = self
            .rows("checking the pages", "PRAGMA quick_check(1)", |row| row.get::<_, String>(0))?;
        if let Some(trouble) = verdict.iter().find(|line| *line != "ok") {
            return Err(self.damaged(trouble.lines().collect::<Vec<_>>().join(" ")));
        }
        let query = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'";
        let tables = self.rows("reading the table names", query, |row| row.get::<_, String>(0))?;
        let mut wanted = TABLES.iter();
        match wanted.find(|name| !tables.iter().any(|table| table == **name)) {
            None => Ok(()),
            Some(name) => Err(self.damaged(format!("table `{name}` is missing"))),
        }
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
        let query = "SELECT idx, id, definition, label, state, reason FROM cell ORDER BY idx";
        type Row = (i64, String, String, String, String, String);
        let rows: Vec<Row> = self.rows("reading the cells", query, |row| {
            let text = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
            Ok((row.get(0)?, text.0, text.1, text.2, text.3, text.4))
        })?;
        let cell = |(at, (index, id, definition, label, state, reason)): (i64, Row)| {
            if at != index {
                return Err(self.damaged(format!("cell {at} is missing")));
            }
            let cell: Cell = self.json("cell", &definition)?;
            let id: CellId = self.word("cell id", &id)?;
            if cell.id() != id {
                return Err(self.damaged(format!("cell {id} does not match its hash")));
            }
            let state = match state.as_str() {
                "open" => CellState::Open,
                "done" => CellState::Done { reason },
                "skipped" => CellState::Skipped { reason },
                "failed" => CellState::Failed { reason },
                other => return Err(self.damaged(format!("unknown cell state `{other}`"))),
            };
            Ok(CellRecord { id, cell, label, state, phases: Vec::new() })
        };
        (0..).zip(rows).map(cell).collect()
    }

    fn phases(&self, cells: &mut [CellRecord]) -> Result<(), StoreError> {
        let query = "SELECT cell_idx, name, table_group, role, primary_metric, cache FROM phase
                     ORDER BY cell_idx, position";
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
            let cell = cells
                .get_mut(cell)
                .ok_or_else(|| self.damaged("a phase refers to a missing cell"))?;
            cell.phases.push(phase);
        }
        Ok(())
    }

    fn trials(&self, cells: usize) -> Result<(Vec<TrialRecord>, BTreeMap<i64, usize>), StoreError> {
        let query = "SELECT id, cell_idx, repetition, started_unix_ns, elapsed_ns, outcome, reason,
                            attempt
                     FROM trial ORDER BY id";
        let rows = self.rows("reading the trials", query, |row| {
            let outcome = match row.get::<_, String>(5)?.as_str() {
                "measured" => Outcome::Measured,
                "invalid" => Outcome::Invalid { reason: row.get(6)? },
                "failed" => Outcome::Failed { reason: row.get(6)? },
                other => {
                    let what = format!("unknown outcome `{other}`").into();
                    return Err(rusqlite::Error::FromSqlConversionFailure(5, Type::Text, what));
                }
            };
            let trial = TrialRecord {
                cell: row.get::<_, u32>(1)? as usize,
                repetition: row.get(2)?,
                attempt: row.get(7)?,
                started_unix: nanos(row, 3)?,
                elapsed: nanos(row, 4)?,
                outcome,
                samples: Vec::new(),
                histograms: Vec::new(),
                series: Vec::new(),
                activity: Vec::new(),
                warnings: Vec::new(),
                actions: Vec::new(),
                environment: Environment::default(),
                hosts: Vec::new(),
            };
            Ok((row.get::<_, i64>(0)?, trial))
        })?;
        if rows.iter().any(|(_, trial)| trial.cell >= cells) {
            return Err(self.damaged("a trial refers to a missing cell"));
        }
        let indexes = rows.iter().enumerate().map(|(index, (id, _))| (*id, index)).collect();
        Ok((rows.into_iter().map(|(_, trial)| trial).collect(), indexes))
    }

    /// Reads samples, histograms, series, system activity, and actions.
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
            if !value.is_finite() {
                return Err(self.damaged(format!("a sample of {phase} is not finite")));
            }
            trials[self.at(indexes, trial)?].samples.push(Sample { phase, metric, worker, value });
        }
        let stored = self.rows("reading the results of hosts", hosts::QUERY, hosts::Stored::of)?;
        for stored in stored {
            let trial = self.at(indexes, stored.trial)?;
            let result = stored.decode().map_err(|what| self.damaged(what))?;
            trials[trial].hosts.push(result);
        }
        self.times(trials, indexes)?;
        self.activity(trials, indexes)?;
        let query = "SELECT trial_id, description, elapsed_ns, error FROM action
                     ORDER BY trial_id, position";
        let actions: Vec<(i64, Action)> = self.rows("reading the actions", query, |row| {
            let action =
                Action { description: row.get(1)?, elapsed: nanos(row, 2)?, error: row.get(3)? };
            Ok((row.get(0)?, action))
        })?;
        for (trial, action) in actions {
            trials[self.at(indexes, trial)?].actions.push(action);
        }
        Ok(())
    }

    /// Reads histograms and series.
    fn times(
        &self,
        trials: &mut [TrialRecord],
        indexes: &BTreeMap<i64, usize>,
    ) -> Result<(), StoreError> {
        let query = "SELECT trial_id, phase, kind, counts FROM histogram ORDER BY rowid";
        let histograms: Vec<(i64, String, String, Vec<u8>)> =
            self.rows("reading the histograms", query, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        for (trial, phase, kind, bytes) in histograms {
            let kind = self.word("histogram kind", &kind)?;
            let histogram = Histogram::decode(&bytes)
                .map_err(|error| self.damaged(format!("histogram of {phase}: {error}")))?;
            let times = PhaseHistogram { phase, kind, histogram };
            trials[self.at(indexes, trial)?].histograms.push(times);
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

    fn activity(
        &self,
        trials: &mut [TrialRecord],
        indexes: &BTreeMap<i64, usize>,
    ) -> Result<(), StoreError> {
        let query = "SELECT trial_id, phase, body FROM system_activity ORDER BY rowid";
        let bodies: Vec<(i64, String, String)> =
            self.rows("reading the system activity", query, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        for (trial, phase, body) in bodies {
            let activity = self.json("system_activity", &body)?;
            trials[self.at(indexes, trial)?].activity.push((phase, activity));
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
        indexes
            .get(&id)
            .copied()
            .ok_or_else(|| self.damaged(format!("a row refers to the missing trial {id}")))
    }
}
