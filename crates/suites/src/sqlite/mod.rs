//! Suite `sqlite`: transactions of SQLite, the library that is part of fslab, in its journal modes.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, Ratio, SuiteSpec, WorkloadParameters,
    phase::{
        Cache, JournalMode, Role, Sqlite, Synchronous, TimeLimit, Timed, TransactionMix, Work,
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

const SPEC: SuiteSpec = SuiteSpec {
    name: "sqlite",
    title: "SQLite transactions that read and change rows: journal modes, synchronous, mixes.",
    source: "fslab; sqlite.org/pragma.html",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("journal", Kind::Word(&["delete", "truncate", "persist", "wal"]), "wal", "Journal mode (`PRAGMA journal_mode`)."),
    parameter("synchronous", Kind::Word(&["extra", "full", "normal"]), "full", "Syncs of a transaction (`PRAGMA synchronous`)."),
    parameter("rows", Kind::Amount { min: 1, max: 1 << 32 }, "10000", "Rows of the table."),
    parameter("row_size", Kind::Size { min: Bytes(1), scales: false }, "100", "Bytes of text per row, at most 1 GB."),
    parameter("transactions", Kind::Amount { min: 1, max: 1 << 32 }, "1000", "Measured transactions per worker. Not used with `runtime`."),
    parameter("runtime", Kind::Time, "0s", "Measured time. 0s: the number of `transactions` ends the loop."),
    parameter("workers", Kind::Count { min: 1, max: 64 }, "1", "Number of workers, each with a connection."),
    parameter("read_fraction", Kind::Fraction, "0", "Fraction of the transactions that read a row. The transactions without a fraction update a row."),
    parameter("scan_fraction", Kind::Fraction, "0", "Fraction of the transactions that read 1 to 100 consecutive rows."),
    parameter("insert_fraction", Kind::Fraction, "0", "Fraction of the transactions that insert a row after the last one."),
    parameter("modify_fraction", Kind::Fraction, "0", "Fraction of the transactions that read a row and then update it."),
    parameter("access_pattern", Kind::Word(&["random", "zipf", "latest"]), "random", "Choice of rows: all equally likely; by Zipf's law, scattered; or by Zipf's law, the newest ones most often."),
    parameter("zipf_theta", Kind::Number { min: 0.0, max: 10.0 }, "0.99", "Exponent of Zipf's law."),
    parameter("cache", Kind::Word(&["cold", "unchanged"]), "cold", "Cache state before the transactions."),
];

/// Maximum size of a row: half of the default limit of SQLite (`SQLITE_MAX_LENGTH`).
const LARGEST_ROW: Bytes = Bytes(500_000_000);

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    if point.size("row_size") > LARGEST_ROW {
        return Err(ValueError::new("`row_size` is too large").hint("use at most 500 MB"));
    }
    if mix(&point).total() > 1.0 + 1e-9 {
        return Err(ValueError::new("the fractions are more than 1 in total").hint("use less"));
    }
    if point.word("access_pattern") == "random" {
        point.reset(&SPEC.defaults(), &["zipf_theta"]);
    }
    if point.time("runtime") > Nanos(0) {
        point.reset(&SPEC.defaults(), &["transactions"]);
    }
    Ok(vec![point])
}

fn mix(point: &WorkloadParameters) -> TransactionMix {
    let fraction = |name| Ratio(point.fraction(name));
    TransactionMix {
        reads: fraction("read_fraction"),
        scans: fraction("scan_fraction"),
        inserts: fraction("insert_fraction"),
        modifications: fraction("modify_fraction"),
    }
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let journal = JournalMode::ALL.into_iter().find(|mode| mode.name() == point.word("journal"));
    let synchronous =
        Synchronous::ALL.into_iter().find(|it| it.name() == point.word("synchronous"));
    let workers = u32::try_from(point.count("workers")).unwrap_or(1);
    let mix = mix(point);
    let pattern = point.word("access_pattern");
    let name = if mix.total() > 0.0 { "sqlite-mixed" } else { "sqlite-update" };
    let work = |updates| {
        Work::Sqlite(Sqlite {
            rows: point.count("rows"),
            row_size: point.size("row_size"),
            journal: journal.unwrap_or(JournalMode::Wal),
            synchronous: synchronous.unwrap_or(Synchronous::Full),
            updates,
            time: Some(point.time("runtime"))
                .filter(|run| updates > 0 && *run > Nanos(0))
                .map(|run| TimeLimit { ramp: Nanos(0), run }),
            workers: if updates > 0 { workers } else { 1 },
            mix: if updates > 0 { mix } else { TransactionMix::default() },
            zipf_theta: Some(point.number("zipf_theta"))
                .filter(|_| updates > 0 && pattern != "random"),
            latest: updates > 0 && pattern == "latest",
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
        phase(name, Role::Measure, cache, work(point.count("transactions"))),
    ]
}

/// Rows with their keys, page overhead, and a journal as large as the database.
fn footprint(point: &WorkloadParameters) -> Bytes {
    let row = point.size("row_size").0.saturating_add(32);
    let mut database = point.count("rows").saturating_mul(row).saturating_mul(2);
    if point.fraction("insert_fraction") > 0.0 {
        // The number of inserted rows is unknown with a time limit.
        database = database.saturating_mul(2);
    }
    // SQLite checkpoints a WAL at 1000 pages, or later while pages are in use.
    Bytes(database.saturating_mul(2).saturating_add(Bytes::mib(16).0))
}
