//! Suite `sqlite`: transactions of SQLite, the library that is part of fslab, in its journal modes.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Phase, SuiteSpec, WorkloadParameters,
    phase::{Cache, JournalMode, Role, Sqlite, Synchronous, Timed, Work},
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

const SPEC: SuiteSpec = SuiteSpec {
    name: "sqlite",
    title: "SQLite transactions that update one row: journal modes, synchronous.",
    source: "fslab; sqlite.org/pragma.html",
    notes: include_str!("notes.md"),
    clients: None,
    parameters: PARAMETERS,
};

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("journal", Kind::Word(&["delete", "truncate", "persist", "wal"]), "wal", "Journal mode (`PRAGMA journal_mode`)."),
    parameter("synchronous", Kind::Word(&["extra", "full", "normal"]), "full", "Syncs of a transaction (`PRAGMA synchronous`)."),
    parameter("rows", Kind::Amount { min: 1, max: 1 << 32 }, "10000", "Rows of the table."),
    parameter("row_size", Kind::Size { min: Bytes(1), scales: false }, "100", "Bytes of text per row, at most 1 GB."),
    parameter("transactions", Kind::Amount { min: 1, max: 1 << 32 }, "1000", "Measured transactions, each of which updates one random row."),
    parameter("cache", Kind::Word(&["cold", "unchanged"]), "cold", "Cache state before the transactions."),
];

/// Maximum size of a row: half of the default limit of SQLite (`SQLITE_MAX_LENGTH`).
const LARGEST_ROW: Bytes = Bytes(500_000_000);

fn refine(point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    if point.size("row_size") > LARGEST_ROW {
        return Err(ValueError::new("`row_size` is too large").hint("use at most 500 MB"));
    }
    Ok(vec![point])
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let journal = JournalMode::ALL.into_iter().find(|mode| mode.name() == point.word("journal"));
    let synchronous =
        Synchronous::ALL.into_iter().find(|it| it.name() == point.word("synchronous"));
    let work = |updates| {
        Work::Sqlite(Sqlite {
            rows: point.count("rows"),
            row_size: point.size("row_size"),
            journal: journal.unwrap_or(JournalMode::Wal),
            synchronous: synchronous.unwrap_or(Synchronous::Full),
            updates,
            time: None,
            seed,
        })
    };
    let phase = |name: &str, role, cache, work| Phase {
        name: name.to_owned(),
        group: "databases".into(),
        role,
        cache,
        work,
        timed: Timed::default(),
        directory: None,
        together: None,
    };
    let cache = match point.word("cache") {
        "cold" => Cache::Cold,
        _ => Cache::Unchanged,
    };
    vec![
        phase("fill", Role::Prepare, Cache::Unchanged, work(0)),
        phase("update", Role::Measure, cache, work(point.count("transactions"))),
    ]
}

/// Rows with their keys, page overhead, and a journal as large as the database.
fn footprint(point: &WorkloadParameters) -> Bytes {
    let row = point.size("row_size").0.saturating_add(32);
    let database = point.count("rows").saturating_mul(row).saturating_mul(2);
    // SQLite checkpoints a WAL at 1000 pages, or later while pages are in use.
    Bytes(database.saturating_mul(2).saturating_add(Bytes::mib(16).0))
}
