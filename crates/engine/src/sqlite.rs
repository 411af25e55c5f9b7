//! SQLite: transactions on one table, by the library that is part of this program.
//!
//! The input is a [`Sqlite`], the output a [`PhaseResult`]. Each operation is one `UPDATE`,
//! `INSERT`, or `SELECT` statement outside of an explicit transaction, which SQLite commits at its
//! end, or a `SELECT` and an `UPDATE` of the same row. The latency of a change therefore includes
//! the commit. Each worker has a connection, which is
//! opened before the barrier. It is closed after the loop, which checkpoints a write-ahead log;
//! that time is the close time of the result. A worker that finds the database locked sleeps and
//! retries, as SQLite does with a busy timeout; the latency includes this time.
//!
//! The operations are counted as writes and reads without bytes, because the pages that SQLite
//! transfers are not known here.

#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use fastrand::Rng;
use model::{
    Bytes, Histogram, Nanos, PhaseResult,
    phase::{Latencies, Sqlite, TransactionMix, WorkerResult, Workers},
};
use rusqlite::{Connection, OpenFlags};

use crate::{
    Context, EngineError,
    clock::now,
    counter::{Counter, Limits},
    driver::{self, Ended, Phase, Seat, WorkerLoop},
    io::Kind,
    patterns::{
        Skew,
        draw::{below, generator},
    },
};

/// Name of the database in the directory under test.
const NAME: &str = "sqlite.db";

/// Seed constant that separates the rows from the patterns of streams with the same seed.
const PURPOSE: u64 = 0x0073_716c;

/// Additional letters from which the text of a row is taken at a random offset.
const SPARE: usize = 1 << 16;

/// Longest time that a worker waits for a lock of the database.
const BUSY: Duration = Duration::from_secs(60);

/// Most rows of a scan (`maxscanlength` of the core workloads of YCSB).
const SCAN: u64 = 100;

/// Rows between two checks for an interruption.
const ROWS: u64 = 1000;

/// Creates a database in `context.directory`, or runs transactions on the one that an earlier call
/// created with the same rows.
///
/// # Errors
/// [`EngineError::Sqlite`] for an error of SQLite, [`EngineError::Memory`] if there is no memory
/// for a row, and [`EngineError::Interrupted`].
pub fn run_sqlite(sqlite: &Sqlite, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    let newest = AtomicU64::new(sqlite.rows);
    driver::run(&SqlitePhase { sqlite, directory: context.directory, newest }, context)
}

/// Database in a directory.
struct SqlitePhase<'a> {
    sqlite: &'a Sqlite,
    directory: &'a Path,
    /// Largest key that is committed.
    newest: AtomicU64,
}

impl Phase for SqlitePhase<'_> {
    type Error = EngineError;

    // SQLite keeps a list of open files per process.
    const OWN_DESCRIPTORS: bool = false;

    fn workers(&self) -> Workers {
        Workers::threads(self.sqlite.workers.max(1))
    }

    fn total(&self) -> Bytes {
        Bytes(0)
    }

    fn path(&self, _worker: u32) -> PathBuf {
        self.directory.join(NAME)
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, EngineError> {
        let Sqlite { rows, row_size, seed, updates, time, mix, latest, .. } = *self.sqlite;
        let time = time.filter(|_| updates > 0);
        // The rows of the table and the updates are different texts.
        let mut random = generator(seed, if updates > 0 { 1 + seat.worker } else { 0 }, PURPOSE);
        let length = usize::try_from(row_size.0).unwrap_or(usize::MAX);
        let letters = letters(length, &mut random)?;
        let connection = open(self.sqlite, &seat.path)?;
        let work = SqliteLoop {
            seat,
            connection: Some(connection),
            letters,
            length,
            random,
            rows,
            skew: self.sqlite.zipf_theta.map(|theta| match latest {
                true => Skew::zipf_ranks(rows, theta),
                false => Skew::zipf(rows, theta, seed),
            }),
            latest,
            newest: &self.newest,
            mix,
            left: if time.is_some() { u64::MAX } else { updates },
        };
        let latencies =
            Latencies { read: Histogram::new(), write: Histogram::new(), ..Latencies::default() };
        let time = time.map(|limit| (limit.ramp, limit.run));
        let limits = Limits { time, ..Limits::default() };
        seat.run(work, Counter::new(seat.control, seat.slot, limits, latencies))
    }
}

/// Letters from which rows are taken.
fn letters(length: usize, random: &mut Rng) -> Result<String, EngineError> {
    let mut letters = String::new();
    letters.try_reserve_exact(length.saturating_add(SPARE)).map_err(|_| EngineError::Memory {
        what: "rows",
        bytes: Bytes(length as u64),
        source: std::io::ErrorKind::OutOfMemory.into(),
    })?;
    letters.extend((0..length + SPARE).map(|_| random.lowercase()));
    Ok(letters)
}

/// Opens the database; creates it if it does not exist.
fn open(sqlite: &Sqlite, path: &Path) -> Result<Connection, EngineError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let set = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        let mode = sqlite.journal.name();
        let found: String =
            connection.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| row.get(0))?;
        connection.execute_batch(&format!(
            "PRAGMA synchronous = {}; PRAGMA cache_size = -2000;",
            sqlite.synchronous.name()
        ))?;
        Ok((found == mode).then_some(connection))
    };
    match set() {
        Ok(Some(connection)) => Ok(connection),
        // SQLite keeps the old mode if, for example, shared memory for a WAL is not available.
        Ok(None) => Err(EngineError::Unsupported {
            what: "the journal mode of SQLite",
            source: std::io::ErrorKind::Unsupported.into(),
        }),
        Err(source) => Err(EngineError::Sqlite { path: path.to_owned(), source }),
    }
}

/// Prepared worker.
struct SqliteLoop<'a> {
    seat: &'a Seat<'a>,
    /// `None` after it was closed.
    connection: Option<Connection>,
    letters: String,
    length: usize,
    random: Rng,
    rows: u64,
    /// Popularity of the rows; `None`: all are equally likely.
    skew: Option<Skew>,
    /// The rank of a row is the distance from the newest one.
    latest: bool,
    newest: &'a AtomicU64,
    mix: TransactionMix,
    /// Transactions that remain; 0 if the table is created.
    left: u64,
}

impl SqliteLoop<'_> {
    fn failed(&self, source: rusqlite::Error) -> EngineError {
        EngineError::Sqlite { path: self.seat.path.clone(), source }
    }

    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("it is closed at the end")
    }

    /// Range of the letters of the next row.
    fn next_text(&mut self) -> std::ops::Range<usize> {
        let start = self.random.usize(0..=SPARE);
        start..start + self.length
    }

    /// Creates the table with all rows.
    fn fill(&mut self, counter: &Counter<'_>) -> Result<(), EngineError> {
        self.connection()
            .execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT NOT NULL); BEGIN;")
            .map_err(|error| self.failed(error))?;
        for id in 1..=self.rows {
            if id.is_multiple_of(ROWS) {
                counter.check().map_err(|fault| self.seat.failure(fault))?;
            }
            let text = self.next_text();
            let text = &self.letters[text];
            let inserted = self
                .connection()
                .prepare_cached("INSERT INTO rows VALUES (?1, ?2)")
                .and_then(|mut insert| insert.execute((id.cast_signed(), text)));
            inserted.map_err(|error| self.failed(error))?;
        }
        self.connection().execute_batch("COMMIT").map_err(|error| self.failed(error))
    }

    /// Number of a random row.
    fn row(&mut self) -> i64 {
        let place = match &self.skew {
            Some(skew) => skew.draw(&mut self.random),
            None => below(self.random.u64(..), self.rows),
        };
        let id = match self.latest {
            true => self.newest.load(Relaxed) - place,
            false => 1 + place,
        };
        id.cast_signed()
    }

    /// Performs a transaction of a random kind.
    fn transaction(&mut self) -> Result<Kind, EngineError> {
        let TransactionMix { reads, scans, inserts, modifications } = self.mix;
        let total = self.mix.total();
        let mut drawn = if total > 0.0 { self.random.f64() } else { 1.0 };
        let mut is = |fraction: f64| {
            drawn -= fraction;
            drawn < 0.0
        };
        if is(reads.0) {
            let id = self.row();
            return self.read(id).map(|()| Kind::Read);
        }
        if is(scans.0) {
            return self.scan().map(|()| Kind::Read);
        }
        let done = if is(inserts.0) {
            self.insert()
        } else {
            let modifies = is(modifications.0);
            let id = self.row();
            if modifies {
                self.read(id)?;
            }
            self.update(id)
        };
        done.map(|()| Kind::Write)
    }

    /// Reads a row.
    fn read(&mut self, id: i64) -> Result<(), EngineError> {
        let length =
            self.connection().prepare_cached("SELECT text FROM rows WHERE id = ?1").and_then(
                |mut select| select.query_row([id], |row| Ok(row.get_ref(0)?.as_str()?.len())),
            );
        match length {
            Ok(length) if length == self.length => Ok(()),
            Ok(_) => Err(self.failed(rusqlite::Error::QueryReturnedNoRows)),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Reads consecutive rows.
    fn scan(&mut self) -> Result<(), EngineError> {
        let id = self.row();
        let most = 1 + below(self.random.u64(..), SCAN);
        let count = self
            .connection()
            .prepare_cached("SELECT text FROM rows WHERE id >= ?1 ORDER BY id LIMIT ?2")
            .and_then(|mut select| {
                let mut rows = select.query((id, most.cast_signed()))?;
                let mut length = 0;
                while let Some(row) = rows.next()? {
                    length += row.get_ref(0)?.as_str()?.len();
                }
                Ok(length)
            });
        match count {
            Ok(length) if length >= self.length => Ok(()),
            Ok(_) => Err(self.failed(rusqlite::Error::QueryReturnedNoRows)),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Inserts a row after the last one.
    fn insert(&mut self) -> Result<(), EngineError> {
        let text = self.next_text();
        let text = &self.letters[text];
        let inserted = self
            .connection()
            .prepare_cached("INSERT INTO rows (text) VALUES (?1)")
            .and_then(|mut insert| insert.insert([text]));
        let id = inserted.map_err(|error| self.failed(error))?;
        // SQLite has one writer at a time and takes the next key, so all smaller keys are
        // committed.
        self.newest.fetch_max(id.cast_unsigned(), Relaxed);
        Ok(())
    }

    /// Updates a row.
    fn update(&mut self, id: i64) -> Result<(), EngineError> {
        let text = self.next_text();
        let text = &self.letters[text];
        let changed = self
            .connection()
            .prepare_cached("UPDATE rows SET text = ?2 WHERE id = ?1")
            .and_then(|mut update| update.execute((id, text)));
        match changed {
            Ok(1) => Ok(()),
            Ok(_) => Err(self.failed(rusqlite::Error::QueryReturnedNoRows)),
            Err(error) => Err(self.failed(error)),
        }
    }
}

impl WorkerLoop for SqliteLoop<'_> {
    type Error = EngineError;

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, EngineError> {
        if self.left == 0 {
            self.fill(counter)?;
            return Ok(false);
        }
        let kind = self.transaction()?;
        counter.one(now(), kind, 0, counter.clock).map_err(|fault| self.seat.failure(fault))?;
        self.left -= 1;
        Ok(self.left > 0 && !counter.over)
    }

    fn finish(&mut self, ended: Nanos) -> Result<Ended, EngineError> {
        let closed = self.connection.take().map_or(Ok(()), Connection::close);
        closed.map_err(|(_, error)| self.failed(error))?;
        Ok(Ended { synced: ended, closed: now() })
    }
}
