use std::sync::atomic::AtomicBool;

use model::{
    Ratio,
    phase::{JournalMode, Synchronous, TransactionMix},
};
use tempfile::TempDir;

use super::*;
use crate::Progress;

fn run(sqlite: &Sqlite, directory: &Path) -> Result<PhaseResult, EngineError> {
    let context = Context {
        directory,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &[],
        start: None,
    };
    run_sqlite(sqlite, &context)
}

fn sqlite(journal: JournalMode, synchronous: Synchronous, updates: u64) -> Sqlite {
    Sqlite {
        rows: 200,
        row_size: Bytes(100),
        journal,
        synchronous,
        updates,
        time: None,
        workers: 1,
        mix: TransactionMix::default(),
        zipf_theta: None,
        latest: false,
        seed: 3,
    }
}

/// Number of rows, and sum of the lengths of their texts.
fn content(directory: &Path) -> (u64, u64, String) {
    let connection = Connection::open(directory.join(NAME)).unwrap();
    let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    let sum = one("SELECT sum(length(text)) FROM rows");
    (one("SELECT count(*) FROM rows").cast_unsigned(), sum.cast_unsigned(), mode)
}

#[test]
fn each_mode_commits_all_transactions() {
    for journal in JournalMode::ALL {
        for synchronous in Synchronous::ALL {
            let directory = TempDir::new().unwrap();
            run(&sqlite(journal, synchronous, 0), directory.path()).unwrap();
            let result = run(&sqlite(journal, synchronous, 40), directory.path()).unwrap();
            assert_eq!(result.ops().0, 40);
            assert_eq!(result.latencies().operations().count(), 40);
            let wal = if journal == JournalMode::Wal { "wal" } else { "delete" };
            assert_eq!(content(directory.path()), (200, 20_000, wal.into()));
        }
    }
}

#[test]
fn workers_share_a_database_and_read_a_fraction() {
    for journal in [JournalMode::Wal, JournalMode::Delete] {
        let directory = TempDir::new().unwrap();
        let fill = sqlite(journal, Synchronous::Full, 0);
        run(&fill, directory.path()).unwrap();
        let mixed = Sqlite {
            updates: 50,
            workers: 4,
            mix: TransactionMix { reads: Ratio(0.8), ..TransactionMix::default() },
            zipf_theta: Some(0.99),
            ..fill
        };
        let result = run(&mixed, directory.path()).unwrap();
        assert_eq!((result.ops().0, result.workers.len()), (200, 4));
        let (reads, writes) = (result.latencies().read.count(), result.latencies().write.count());
        assert!((120..190).contains(&reads) && reads + writes == 200, "{reads} and {writes}");
        assert_eq!(content(directory.path()).1, 20_000);
    }
}

#[test]
fn workers_insert_scan_and_modify_rows() {
    let mixes = [
        // Workloads D, E, and F of YCSB, with more changes.
        (TransactionMix { reads: Ratio(0.5), inserts: Ratio(0.5), ..Default::default() }, true),
        (TransactionMix { scans: Ratio(0.5), inserts: Ratio(0.5), ..Default::default() }, false),
        (
            TransactionMix { reads: Ratio(0.5), modifications: Ratio(0.5), ..Default::default() },
            false,
        ),
    ];
    for (mix, latest) in mixes {
        let directory = TempDir::new().unwrap();
        let fill = sqlite(JournalMode::Wal, Synchronous::Normal, 0);
        run(&fill, directory.path()).unwrap();
        let zipf_theta = Some(0.99);
        let mixed = Sqlite { updates: 100, workers: 3, mix, zipf_theta, latest, ..fill };
        let result = run(&mixed, directory.path()).unwrap();
        let (reads, writes) = (result.latencies().read.count(), result.latencies().write.count());
        assert!((100..200).contains(&reads) && reads + writes == 300, "{mix:?}: {reads}");
        let inserted = if mix.inserts.0 > 0.0 { writes } else { 0 };
        let rows = 200 + inserted;
        assert_eq!(content(directory.path()), (rows, rows * 100, "wal".into()), "{mix:?}");
    }
}

#[test]
fn a_missing_table_is_an_error_of_sqlite() {
    let directory = TempDir::new().unwrap();
    let error = run(&sqlite(JournalMode::Wal, Synchronous::Full, 1), directory.path());
    assert!(matches!(error, Err(EngineError::Sqlite { .. })), "{error:?}");
}

#[test]
fn an_existing_database_is_not_filled_again() {
    let directory = TempDir::new().unwrap();
    let fill = sqlite(JournalMode::Delete, Synchronous::Full, 0);
    run(&fill, directory.path()).unwrap();
    assert!(matches!(run(&fill, directory.path()), Err(EngineError::Sqlite { .. })));
}
