//! Run files in each state in which a run can leave them, and files that only look like one.

use std::fs;

use super::{forged::Forged, *};
use crate::{open::uri, own};

/// Names and contents of all files in the directory of a run.
fn contents(forged: &Forged) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(forged.at("")).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Copies the files of a run while it is being written: the run file and those with `suffixes`.
fn copied(forged: &Forged, suffixes: &[&str]) -> Forged {
    let copy = Forged::empty();
    for suffix in [""].iter().chain(suffixes) {
        let name = format!("a.fslab{suffix}");
        fs::copy(forged.at(&name), copy.at(&name)).unwrap();
    }
    copy
}

#[test]
fn reading_changes_no_file_of_an_interrupted_run() {
    let forged = Forged::new();
    let (mut store, _) = Store::resume(&forged.file()).unwrap();
    store.trial(&trial(0, 1), None).unwrap();
    let beside: [(&[&str], usize); 4] =
        [(&["-wal", "-shm"], 2), (&["-wal"], 2), (&["-shm"], 1), (&[], 1)];
    for (suffixes, trials) in beside {
        let copy = copied(&forged, suffixes);
        // Without its log, only the trial before the interruption is left.
        if trials == 1 {
            fs::write(copy.file(), Forged::bytes()).unwrap();
        }
        let before = contents(&copy);
        assert_eq!(read(&copy.file()).unwrap().trials.len(), trials, "{suffixes:?}");
        assert!(contents(&copy) == before, "{suffixes:?}: a file was changed");
    }
}

#[test]
fn an_empty_log_is_ignored() {
    let forged = Forged::new();
    fs::write(forged.at("a.fslab-wal"), "").unwrap();
    let before = contents(&forged);
    assert_eq!(read(&forged.file()).unwrap().trials.len(), 1);
    assert!(contents(&forged) == before);
}

/// Copy of a run that was killed while SQLite changed the file with a rollback journal.
fn killed_in_its_last_step() -> Forged {
    let forged = Forged::new();
    forged.sql("PRAGMA journal_mode = delete");
    let before = fs::read(forged.file()).unwrap();
    let connection = Connection::open(forged.file()).unwrap();
    // With a cache of one page, the changed pages are written before the transaction ends.
    let changes = "PRAGMA foreign_keys = off; PRAGMA cache_size = 1; BEGIN; DELETE FROM sample;
                   DELETE FROM trial; UPDATE cell SET label = printf('%50000s', '');";
    connection.execute_batch(changes).unwrap();
    let copy = copied(&forged, &["-journal"]);
    assert!(fs::read(copy.file()).unwrap() != before);
    copy
}

#[test]
fn the_last_step_of_a_killed_run_is_rolled_back() {
    let copy = killed_in_its_last_step();
    let record = read(&copy.file()).unwrap();
    assert_eq!((record.trials.len(), record.trials[0].samples.len()), (1, 1));
    assert!(!copy.at("a.fslab-journal").exists());
    let (mut store, _) = Store::resume(&copy.file()).unwrap();
    store.trial(&trial(0, 1), None).unwrap();
}

#[test]
fn an_empty_log_does_not_prevent_the_rollback_of_a_journal() {
    let copy = killed_in_its_last_step();
    fs::write(copy.at("a.fslab-wal"), "").unwrap();
    let record = read(&copy.file()).unwrap();
    assert_eq!((record.trials.len(), record.trials[0].samples.len()), (1, 1));
}

#[test]
fn a_journal_without_pages_and_names_is_rolled_back() {
    let forged = Forged::new();
    forged.sql("PRAGMA journal_mode = delete");
    fs::write(forged.at("a.fslab-journal"), own::JOURNAL).unwrap();
    assert_eq!(read(&forged.file()).unwrap().trials.len(), 1);
}

#[test]
fn a_journal_next_to_another_file_is_not_executed() {
    let copy = killed_in_its_last_step();
    // The journal would restore the first page, and with it a valid header.
    fs::write(copy.file(), "text ".repeat(10_000)).unwrap();
    let before = contents(&copy);
    let error = read(&copy.file()).unwrap_err();
    assert!(matches!(error, StoreError::NotARun(_, "it is not an SQLite database")), "{error}");
    assert!(contents(&copy) == before);
}

#[test]
fn a_journal_of_another_user_is_not_executed() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let copy = killed_in_its_last_step();
    std::os::unix::fs::chown(copy.at("a.fslab-journal"), Some(65534), None).unwrap();
    let before = contents(&copy);
    let message = read(&copy.file()).unwrap_err().to_string();
    assert!(message.contains("a rollback journal of another user"), "{message}");
    assert!(contents(&copy) == before);
}

#[test]
fn a_text_with_the_log_of_a_run_is_not_a_run() {
    let forged = Forged::new();
    let (mut store, _) = Store::resume(&forged.file()).unwrap();
    store.trial(&trial(0, 1), None).unwrap();
    let copy = copied(&forged, &[]);
    fs::write(copy.file(), "text ".repeat(10_000)).unwrap();
    for suffix in ["-wal", "-shm"] {
        fs::write(copy.at(&format!("a.fslab{suffix}")), "").unwrap();
    }
    let error = read(&copy.file()).unwrap_err();
    assert!(matches!(error, StoreError::NotARun(_, "it is not an SQLite database")), "{error}");
}

#[test]
fn only_regular_files_with_the_header_of_sqlite_are_databases() {
    let forged = Forged::new();
    assert!(is_database(&forged.file()));
    fs::write(forged.at("text"), "text ".repeat(100)).unwrap();
    fs::write(forged.at("short"), "SQLite format 3").unwrap();
    for other in ["text", "short", "none", "."] {
        assert!(!is_database(&forged.at(other)), "{other}");
    }
}

#[test]
fn a_truncated_run_file_is_damaged() {
    let forged = Forged::new();
    let bytes = Forged::bytes();
    fs::write(forged.file(), &bytes[..bytes.len() / 2]).unwrap();
    let error = read(&forged.file()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn a_path_with_any_byte_is_opened() {
    let names = ["a b?c#d%41&e=f;'\".fslab", "é\u{1f600}\\\n.fslab"];
    let directory = tempfile::tempdir().unwrap();
    for name in names {
        let path = directory.path().join(name);
        fs::write(&path, Forged::bytes()).unwrap();
        assert_eq!(read(&path).unwrap().trials.len(), 1, "{name}");
    }
    // SQLite repeats the address in its messages.
    assert_eq!(uri(Path::new("/a-b_c/D9.f"), "?x=1"), "file:/a-b_c/D9.f?x=1");
    assert_eq!(uri(Path::new("a b?"), ""), "file:a%20b%3f");
}
