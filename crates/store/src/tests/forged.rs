//! Run files with objects that fslab did not create, or with such files next to them.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
};

use super::*;

pub(super) struct Forged {
    directory: tempfile::TempDir,
}

impl Forged {
    pub(super) fn empty() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// An interrupted run with one trial.
    pub(super) fn new() -> Self {
        let forged = Self::empty();
        let made = Store::create(&forged.file(), &info(), &[cell("ext4")], &host(), &[]);
        made.unwrap().trial(&trial(0, 0), None).unwrap();
        forged
    }

    /// Bytes of the file of [`Self::new`].
    pub(super) fn bytes() -> Vec<u8> {
        fs::read(Self::new().file()).unwrap()
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn file(&self) -> PathBuf {
        self.at("a.fslab")
    }

    pub(super) fn sql(&self, statements: &str) {
        Connection::open(self.file()).unwrap().execute_batch(statements).unwrap();
    }

    #[track_caller]
    fn refused(&self, words: &str) {
        let before = fs::read(self.file()).unwrap();
        let message = Store::resume(&self.file()).err().map_or("resumed".into(), |e| e.to_string());
        assert!(message.contains(words) && message.contains(';'), "{words}: {message}");
        assert!(fs::read(self.file()).unwrap() == before, "{words}: something was written");
    }
}

#[test]
fn a_run_file_with_foreign_objects_is_not_resumed() {
    for (statements, words) in [
        (
            "CREATE TRIGGER t AFTER INSERT ON trial BEGIN UPDATE sample SET value = 1; END",
            "trigger `t`",
        ),
        (
            "DROP VIEW result; CREATE VIEW result AS SELECT load_extension('x') AS a",
            "view `result`",
        ),
        ("DROP VIEW result", "view `result` is missing"),
        ("CREATE INDEX i ON trial (abs(repetition))", "index `i`"),
        ("ALTER TABLE trial ADD COLUMN g INTEGER AS (id + 1)", "table `trial`"),
        (
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = sql || ' ' WHERE name = 'trial'",
            "table `trial`",
        ),
        ("ANALYZE", "table `sqlite_stat1`"),
        ("CREATE VIRTUAL TABLE v USING fts5(a)", "table `v`"),
    ] {
        let forged = Forged::new();
        forged.sql(statements);
        forged.refused(words);
        assert_eq!(
            read(&forged.file()).unwrap().trials.len(),
            1,
            "{words}: reading is still possible"
        );
    }
}

#[test]
fn a_trigger_added_after_opening_is_not_executed() {
    let forged = Forged::new();
    let (mut store, _) = Store::resume(&forged.file()).unwrap();
    forged.sql("CREATE TRIGGER t AFTER INSERT ON trial BEGIN UPDATE sample SET value = 1; END");
    store.trial(&trial(0, 1), None).unwrap();
    drop(store);
    let record = read(&forged.file()).unwrap();
    assert!(record.trials.iter().all(|kept| kept.samples == trial(0, 0).samples));
}

#[test]
fn a_view_is_not_read_while_a_run_file_is_written() {
    let forged = Forged::new();
    let connection = Connection::open(forged.file()).unwrap();
    let read =
        || connection.query_row("SELECT count(*) FROM result", [], |row| row.get::<_, i64>(0));
    read().unwrap();
    own::distrust(&connection).unwrap();
    assert!(read().unwrap_err().to_string().contains("access to view"));
}

#[test]
fn foreign_files_with_names_used_by_sqlite_are_refused() {
    for suffix in ["-wal", "-shm", "-journal"] {
        let forged = Forged::new();
        let side = forged.at(&format!("a.fslab{suffix}"));
        fs::write(forged.at("victim"), "mine").unwrap();
        symlink(forged.at("victim"), &side).unwrap();
        let message = Store::resume(&forged.file()).unwrap_err().to_string();
        assert!(message.contains(&format!("a.fslab{suffix}")), "{message}");
        fs::remove_file(&side).unwrap();
        fs::hard_link(forged.at("victim"), &side).unwrap();
        let message = Store::resume(&forged.file()).unwrap_err().to_string();
        assert!(message.contains("several hard links"), "{message}");
        fs::remove_file(&side).unwrap();
        if rustix::process::geteuid().is_root() {
            fs::write(&side, "").unwrap();
            chown(&side, Some(65534), None).unwrap();
            let message = Store::resume(&forged.file()).unwrap_err().to_string();
            assert!(message.contains("another owner"), "{message}");
        }
        assert_eq!(fs::read(forged.at("victim")).unwrap(), b"mine");
        // A new run next to a file of another run.
        let side = forged.at(&format!("b.fslab{suffix}"));
        fs::hard_link(forged.at("victim"), &side).unwrap();
        let made = Store::create(&forged.at("b.fslab"), &info(), &[], &host(), &[]);
        assert!(matches!(made, Err(StoreError::Side { .. })), "{made:?}");
        assert!(!forged.at("b.fslab").exists());
        assert_eq!(fs::read(forged.at("victim")).unwrap(), b"mine");
    }
}

#[test]
fn an_existing_partial_file_is_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("victim"), "mine").unwrap();
    symlink(at("victim"), at("a.fslab.partial")).unwrap();
    fs::write(at("b.fslab.partial"), "mine").unwrap();
    for name in ["a.fslab", "b.fslab"] {
        drop(Store::create(&at(name), &info(), &[], &host(), &[]).unwrap());
        assert!(read(&at(name)).is_ok());
    }
    assert_eq!(fs::read(at("victim")).unwrap(), b"mine");
    assert_eq!(fs::read(at("b.fslab.partial")).unwrap(), b"mine");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 5);
}

#[test]
fn a_symbolic_link_is_resolved_and_a_dangling_one_is_refused() {
    let forged = Forged::new();
    symlink("a.fslab", forged.at("link")).unwrap();
    let (store, _) = Store::resume(&forged.at("link")).unwrap();
    assert_eq!(store.path(), forged.file().canonicalize().unwrap());
    drop(store);
    symlink("nowhere", forged.at("dangling")).unwrap();
    let made = Store::create(&forged.at("dangling"), &info(), &[], &host(), &[]);
    assert!(matches!(made, Err(StoreError::Exists(_))));
    assert!(!forged.at("nowhere").exists());
}

#[test]
fn a_replaced_file_cannot_be_locked() {
    let forged = Forged::new();
    fs::rename(forged.file(), forged.at("old")).unwrap();
    symlink("old", forged.file()).unwrap();
    assert!(matches!(Lock::take(&forged.file()), Err(StoreError::Open { .. })));
}

/// Rollback journal without pages that names a super-journal; see `readSuperJournal` in pager.c.
fn journal_that_names(path: &Path, pages: u32) -> Vec<u8> {
    let magic = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    let name = path.to_str().unwrap().as_bytes();
    let sum: u32 = name.iter().map(|byte| u32::from(*byte)).sum();
    let mut journal = magic.to_vec();
    for number in [0, 1, pages, 512, 4096] {
        journal.extend(u32::to_be_bytes(number));
    }
    journal.resize(512, 0);
    journal.extend(u32::to_be_bytes((1 << 30) / 4096 + 1));
    journal.extend(name);
    journal.extend(u32::try_from(name.len()).unwrap().to_be_bytes());
    journal.extend(sum.to_be_bytes());
    journal.extend(magic);
    journal
}

#[test]
fn a_forged_journal_does_not_remove_files() {
    let forged = Forged::new();
    let pages = fs::metadata(forged.file()).unwrap().len() / 4096;
    fs::write(forged.at("victim"), "mine").unwrap();
    let journal = journal_that_names(&forged.at("victim"), u32::try_from(pages).unwrap());
    fs::write(forged.at("a.fslab-journal"), &journal).unwrap();
    forged.refused("that SQLite would remove");
    fs::remove_file(forged.at("a.fslab-journal")).unwrap();
    forged.sql("PRAGMA journal_mode = delete");
    fs::write(forged.at("a.fslab-journal"), journal).unwrap();
    let message = read(&forged.file()).err().map_or("it was read".into(), |e| e.to_string());
    assert!(forged.at("victim").exists(), "{message}");
    assert!(message.contains("that SQLite would remove"), "{message}");
    forged.refused("that SQLite would remove");
}

#[test]
fn an_image_includes_the_log() {
    let forged = Forged::new();
    let (mut store, _) = Store::resume(&forged.file()).unwrap();
    store.trial(&trial(0, 1), None).unwrap();
    fs::write(forged.at("copy"), image(&forged.file()).unwrap()).unwrap();
    drop(store);
    assert_eq!(read(&forged.at("copy")).unwrap().trials.len(), 2);
}

#[test]
fn a_file_with_lost_pages_or_computed_tables_is_not_read() {
    for (statements, words) in [
        ("DROP TABLE action", "table `action` is missing"),
        (
            "ALTER TABLE action RENAME TO b; CREATE VIEW action AS SELECT * FROM b",
            "table `action` is missing",
        ),
        ("DELETE FROM cell", "a phase refers to a missing cell"),
        ("UPDATE cell SET idx = 1", "cell 0 is missing"),
        ("DELETE FROM trial", "a row refers to the missing trial 1"),
        ("UPDATE trial SET cell_idx = 1", "a trial refers to a missing cell"),
        ("UPDATE sample SET value = 9e999", "a sample of write is not finite"),
        ("UPDATE trial SET outcome = 'good'", "unknown outcome `good`"),
    ] {
        let forged = Forged::new();
        let connection = Connection::open(forged.file()).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection.execute_batch(statements).unwrap();
        drop(connection);
        let error = read(&forged.file()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{words}: {error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    let forged = Forged::new();
    let mut bytes = Forged::bytes();
    // Header: number of pages, from offset 28.
    let pages = u32::try_from(bytes.len() / 4096).unwrap() + 1;
    bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    bytes.resize(bytes.len() + 4096, 0);
    fs::write(forged.file(), bytes).unwrap();
    let error = read(&forged.file()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("never used"), "{error}");
    forged.refused("never used");
    let connection = Connection::open(forged.file()).unwrap();
    let error = own::check(&connection, &forged.file()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn the_connection_that_writes_is_checked_itself() {
    let forged = Forged::new();
    let connection = Connection::open(forged.file()).unwrap();
    own::check(&connection, &forged.file()).unwrap();
    connection.pragma_update(None, "user_version", SCHEMA + 1).unwrap();
    let error = own::check(&connection, &forged.file()).unwrap_err();
    assert!(matches!(error, StoreError::Schema { .. }), "{error}");
    connection.pragma_update(None, "application_id", 0).unwrap();
    let error = own::check(&connection, &forged.file()).unwrap_err();
    assert!(matches!(error, StoreError::NotARun(..)), "{error}");
}
