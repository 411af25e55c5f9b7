//! System calls of SQLite transactions, counted per transaction.

use model::{
    Bytes,
    phase::{JournalMode, Sqlite, Synchronous, Work},
};
use tempfile::TempDir;

use super::strace::traced;

/// Transactions that are traced in addition to one.
const MORE: u64 = 10;

/// Calls of each name per transaction, from the difference between two traces.
fn calls(journal: JournalMode, synchronous: Synchronous, names: &[&str]) -> Vec<u64> {
    let count = |updates| {
        let directory = TempDir::new().unwrap();
        let sqlite = Sqlite {
            rows: 200,
            row_size: Bytes(100),
            journal,
            synchronous,
            updates: 0,
            time: None,
            workers: 1,
            mix: model::phase::TransactionMix::default(),
            zipf_theta: None,
            latest: false,
            seed: 1,
        };
        let fill = Work::Sqlite(sqlite.clone());
        traced(&fill, directory.path());
        let calls = traced(&Work::Sqlite(Sqlite { updates, ..sqlite }), directory.path());
        let of = |name: &&str| {
            calls.iter().filter(|call| call.split(' ').next() == Some(name)).count() as u64
        };
        names.iter().map(of).collect::<Vec<u64>>()
    };
    let (one, all) = (count(1), count(1 + MORE));
    all.iter().zip(&one).map(|(all, one)| (all - one) / MORE).collect()
}

pub(crate) fn transactions_make_the_calls_of_the_reference_page() {
    use JournalMode::{Delete, Persist, Truncate, Wal};
    use Synchronous::{Extra, Full, Normal};
    for (journal, synchronous, expected) in [
        (Delete, Full, [10, 4]),
        (Delete, Extra, [10, 5]),
        (Truncate, Full, [10, 5]),
        (Persist, Full, [11, 5]),
        (Wal, Full, [2, 1]),
        (Wal, Normal, [2, 0]),
    ] {
        let found = calls(journal, synchronous, &["pwrite", "fsync"]);
        assert_eq!(found, expected, "{} {}", journal.name(), synchronous.name());
    }
}
