//! Reading a run back as one record.

use std::{collections::BTreeMap, path::Path};

use model::{
    Cell, CellId, Environment, Histogram, Nanos, RunRecord, Sample, Study, Warning,
    phase::Series,
    record::{Action, CellRecord, CellState, Outcome, PhaseInfo, RunInfo, Times, TrialRecord},
};
use rusqlite::{Connection, Row, types::Type};
use serde::de::DeserializeOwned;

use crate::{StoreError, open::open};

/// Reads a whole run. The file may be being written meanwhile: what is complete is seen. Neither
/// the file nor its directory is written to; see [`crate::open`].
///
/// # Errors
/// [`StoreError`] when there is no such file, it is not a run this version can read, or it is
/// damaged.
pub fn read(path: &Path) -> Result<RunRecord, StoreError> {
    let (connection, schema) = open(path)?;
    let reader = Reader { connection, path, schema };
    // One transaction for all tables: else parts of a trial that is kept meanwhile are seen, and
    // the trial is not.
    let snapshot = reader.connection.unchecked_transaction();
    let _snapshot = snapshot.map_err(|source| reader.failed("beginning to read", source))?;
    reader.sound()?;
    reader.record()
}

/// A run as the bytes of one file, with what only its log holds so far. Nothing is written.
///
/// # Errors
/// As [`read`].
pub fn image(path: &Path) -> Result<Vec<u8>, StoreError> {
    let (mut connection, _) = open(path)?;
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
        StoreError::database(step, self.path, source)
    }

    /// Refuses a file whose pages do not fit together. Without this, a tree of pages that share
    /// their children could give rows without end, and a page that was lost half a run.
    ///
    /// Every table must be one: a view of that name, or a table of a module, could compute whatever
    /// it likes.
    fn sound(&self) -> Result<(), StoreError> {
        let verdict = self
            .rows("looking for damage", "PRAGMA quick_check(1)", |row| row.get::<_, String>(0))?;
        if let Some(trouble) = verdict.iter().find(|line| *line != "ok") {
            return Err(self.damaged(trouble.lines().collect::<Vec<_>>().join(" ")));
        }
        let query = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'";
        let tables =
            self.rows("reading the names of the tables", query, |row| row.get::<_, String>(0))?;
        let since = |schema: i32, names: &'static [&'static str]| {
            names.iter().filter(move |_| self.schema >= schema)
        };
        let first =
            ["run", "cell", "phase", "trial", "sample", "histogram", "warning", "action"].iter();
        let mut wanted = first
            .chain(["environment"].iter())
            .chain(since(2, &["series"]))
            .chain(since(3, &["evidence"]));
        match wanted.find(|name| !tables.iter().any(|table| table == *name)) {
            None => Ok(()),
            Some(name) => Err(self.damaged(format!("it has no table `{name}`"))),
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
        let info = serde_json::from_value(fields.into());
        let mut info: RunInfo = info.map_err(|error| self.damaged(format!("run: {error}")))?;
        if self.schema < 5 {
            info.view = Study::named(&info.plan_name);
        }
        Ok(info)
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
        (0..).zip(rows).map(cell).collect()
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

    fn trials(&self, cells: usize) -> Result<(Vec<TrialRecord>, BTreeMap<i64, usize>), StoreError> {
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
                "failed" => Outcome::Failed { reason: row.get(6)? },
                other => {
                    let what = format!("an outcome `{other}`").into();
                    return Err(rusqlite::Error::FromSqlConversionFailure(5, Type::Text, what));
                }
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
        if rows.iter().any(|(_, trial)| trial.cell >= cells) {
            return Err(self.damaged("a trial of no cell"));
        }
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
            if !value.is_finite() {
                return Err(self.damaged(format!("a sample of {phase} is no number")));
            }
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
