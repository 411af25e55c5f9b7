//! Truncated, overwritten, forged, and foreign run files. Every command that reads them reports the
//! damage and does not change them.
//!
//! Damage within a valid value cannot be detected. The tests therefore require a documented exit
//! status, a message with the file name, and an unchanged file.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use model::record::RunInfo;

use crate::{
    made,
    support::{Bench, finished},
};

/// Address space limit in KiB of a command that reads a damaged file, four times the requirement
/// for an intact run.
const ADDRESS_SPACE: &str = "1500000";

/// Files of a directory: name, size, modification time, and content; `None` if not readable.
type Seen = BTreeMap<PathBuf, (u64, i64, i64, Option<Vec<u8>>)>;

fn seen(directory: &Path) -> Seen {
    let entry = |path: PathBuf| {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let bytes = metadata.is_file().then(|| fs::read(&path).ok()).flatten();
        let times = (metadata.mtime(), metadata.mtime_nsec());
        (path, (metadata.len(), times.0, times.1, bytes))
    };
    fs::read_dir(directory).unwrap().map(|found| entry(found.unwrap().path())).collect()
}

/// Directory with a run file, and bytes of the intact file.
struct Patient {
    bench: Bench,
    sound: Vec<u8>,
}

impl Patient {
    fn new() -> Self {
        let bench = Bench::new();
        let record = made::measured(&bench);
        let names = ["ext4", "xfs", "jfs"].map(String::from);
        fs::create_dir(bench.path("runs")).unwrap();
        let file = bench.path("runs/a.fslab");
        made::keep(&made::grown(&record, &names, 3), &file);
        let sound = fs::read(&file).unwrap();
        Self { bench, sound }
    }

    fn file(&self) -> PathBuf {
        self.bench.path("runs/a.fslab")
    }

    fn sql(&self, statements: &str) {
        fs::write(self.file(), &self.sound).unwrap();
        let connection = rusqlite::Connection::open(self.file()).unwrap();
        connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {statements}")).unwrap();
    }

    /// Runs a command on the file with a memory limit. Checks its exit status, and that the
    /// directory is unchanged.
    #[track_caller]
    fn reads(&self, arguments: &[&str], name: &str, allowed: &[i32]) -> (i32, String) {
        let before = seen(&self.bench.path("runs"));
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"")])
            .arg(env!("CARGO_BIN_EXE_fslab"))
            .args(arguments)
            .current_dir(self.bench.path("."))
            .env("FSLAB_STATE", self.bench.state())
            .stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        let signal = output.status.signal();
        let output = finished(output);
        let what = format!("{name}: fslab {arguments:?}\n{}", output.stderr);
        assert!(signal.is_none(), "{what}: ended by signal {signal:?}");
        assert!(!output.stderr.contains("panicked"), "{what}");
        let status = output.status.unwrap();
        assert!(allowed.contains(&status), "{what}: ended with {status}");
        if status != 0 {
            assert!(output.stderr.contains("runs"), "{what}: does not name the file");
            assert!(output.stderr.contains(';'), "{what}: has no hint");
        }
        assert!(seen(&self.bench.path("runs")) == before, "{what}: something was written");
        (status, output.stderr)
    }

    /// Checks that every command that reads runs rejects this path with one of these texts.
    #[track_caller]
    fn refused(&self, path: &str, status: i32, words: &str) {
        for arguments in [
            &["report", path][..],
            &["report", path, "--format", "json"],
            &["explain", path],
            &["compare", path, path],
            &["run", "--resume", path],
        ] {
            let (_, stderr) = self.reads(arguments, words, &[status]);
            assert!(stderr.contains(words), "{arguments:?}: {words} is missing from\n{stderr}");
        }
    }
}

#[test]
fn other_files_are_rejected_with_their_kind() {
    let patient = Patient::new();
    let put = |name: &str, bytes: &[u8]| fs::write(patient.bench.path(name), bytes).unwrap();
    put("runs/empty", b"");
    put("runs/text", b"throughput 12\n");
    put("runs/magic", b"SQLite format 3\0");
    fs::create_dir(patient.bench.path("runs/directory")).unwrap();
    let fifo = Command::new("mkfifo").arg(patient.bench.path("runs/fifo")).status().unwrap();
    assert!(fifo.success());
    symlink("nowhere", patient.bench.path("runs/dangling")).unwrap();
    let foreign = patient.bench.path("runs/foreign");
    let connection = rusqlite::Connection::open(&foreign).unwrap();
    connection.execute_batch("CREATE TABLE cell (a); PRAGMA application_id = 5").unwrap();
    drop(connection);
    for (name, words) in [
        ("empty", "it is empty"),
        ("text", "it is not an SQLite database"),
        ("magic", "it is not an SQLite database"),
        ("directory", "it is a directory"),
        ("fifo", "it is a pipe"),
        ("dangling", "check the path"),
        ("missing", "check the path"),
        ("foreign", "it is a database of another program"),
    ] {
        patient.refused(&format!("runs/{name}"), 2, words);
    }
}

#[test]
fn newer_and_unreadable_runs_have_different_errors() {
    let patient = Patient::new();
    patient.sql("PRAGMA user_version = 99");
    patient.refused("runs/a.fslab", 3, "this version reads schema");
    fs::write(patient.file(), &patient.sound).unwrap();
    if !rustix::process::geteuid().is_root() {
        fs::set_permissions(patient.file(), fs::Permissions::from_mode(0o000)).unwrap();
        let (_, stderr) = patient.reads(&["report", "runs/"], "a directory", &[2]);
        assert!(stderr.contains("directory"), "{stderr}");
        let output = patient.bench.ends(2, &["report", "runs/a.fslab"]);
        assert!(output.stderr.contains("check the path and its permissions"), "{}", output.stderr);
        fs::set_permissions(patient.file(), fs::Permissions::from_mode(0o600)).unwrap();
    }
    // A symbolic link is followed, and the files next to its target are used.
    symlink("a.fslab", patient.bench.path("runs/link")).unwrap();
    patient.reads(&["report", "runs/link"], "a link", &[0]);
    fs::set_permissions(patient.file(), fs::Permissions::from_mode(0o400)).unwrap();
    patient.reads(&["report", "runs/a.fslab"], "read-only", &[0]);
}

#[test]
fn a_truncated_run_file_is_rejected_at_every_length() {
    let patient = Patient::new();
    let whole = patient.sound.len();
    let mut lengths = vec![1, 15, 16, 18, 99, 100, 101, 511, 512, 1024, 4095, 4096, 4097];
    lengths.extend((1..20).map(|step| whole * step / 20));
    lengths.extend([whole - 4096, whole - 1]);
    for length in lengths {
        fs::write(patient.file(), &patient.sound[..length]).unwrap();
        let name = format!("cut to {length} of {whole}");
        patient.reads(&["report", "runs/a.fslab"], &name, &[2, 3]);
    }
}

/// Calls the reader in this process. It must neither panic nor change a file, and each file that it
/// accepts must give a report.
#[test]
fn random_damage_is_rejected_or_harmless() {
    let patient = Patient::new();
    let runs = patient.bench.path("runs");
    let whole = patient.sound.len();
    let mut refused = 0;
    for seed in 0..200_u64 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = patient.sound.clone();
        // Each page once, then a few random bytes, which are detected less often.
        let page = usize::try_from(seed).unwrap() * 4096;
        let (at, length) = match page < whole {
            true => (page, 4096),
            false => (random.usize(..whole), 1 << random.u32(0..8)),
        };
        let end = (at + length).min(whole);
        bytes[at..end].fill_with(|| random.u8(..));
        fs::write(patient.file(), &bytes).unwrap();
        let before = seen(&runs);
        match store::read(&patient.file()) {
            Ok(record) => {
                let view = report::View::new(&record);
                let _all = (report::html(&view, &[]), report::json(&view), report::csv(&record));
            }
            Err(error) => {
                refused += 1;
                let message = error.to_string();
                assert!(message.contains("a.fslab") && message.contains(';'), "{message}");
            }
        }
        assert!(seen(&runs) == before, "seed {seed}: something was written");
    }
    assert!(refused > 20, "only {refused} of 200 were detected");
    // The last damaged file is read by every command.
    let statuses = [0, 2, 3];
    patient.reads(&["report", "runs/a.fslab"], "noise", &statuses);
    patient.reads(&["explain", "runs/a.fslab"], "noise", &statuses);
    patient.reads(&["compare", "runs/a.fslab", "runs/a.fslab"], "noise", &statuses);
    patient.reads(&["run", "--resume", "runs/a.fslab"], "noise", &statuses);
    patient.reads(&["audit", "runs/a.fslab"], "noise", &[2, 3]);
}

#[test]
fn forged_content_is_rejected_with_the_reason() {
    let patient = Patient::new();
    // 2^60 as a LEB128 varint, used as a count and as a number of intervals (stored formats of
    // `model`).
    let many = "808080808080808010";
    let (lies, long) = (format!("X'01{many}0000000000{many}'"), format!("X'010501{many}0101'"));
    let mut wrong = Vec::new();
    for (statements, words) in [
        ("DROP VIEW result; DROP TABLE series".to_owned(), "table `series` is missing"),
        ("DROP TABLE environment".to_owned(), "table `environment` is missing"),
        (
            "DROP VIEW result; ALTER TABLE sample RENAME TO old; CREATE VIEW sample AS WITH \
             RECURSIVE n (a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT a FROM n"
                .to_owned(),
            "table `sample` is missing",
        ),
        ("DROP VIEW result; ALTER TABLE trial DROP COLUMN reason".to_owned(), "reason"),
        ("UPDATE run SET value = '{' WHERE key = 'seed'".to_owned(), "damaged: run"),
        ("DELETE FROM run WHERE key = 'title'".to_owned(), "title"),
        ("UPDATE cell SET definition = '[]'".to_owned(), "damaged: cell"),
        ("UPDATE cell SET state = 'odd'".to_owned(), "`odd`"),
        ("UPDATE cell SET idx = idx + 7".to_owned(), "cell 0 is missing"),
        ("UPDATE trial SET cell_idx = cell_idx + 99".to_owned(), "missing cell"),
        ("UPDATE trial SET repetition = -1 - repetition".to_owned(), "reading the trials"),
        ("UPDATE trial SET elapsed_ns = -5".to_owned(), "reading the trials"),
        ("UPDATE trial SET outcome = 'odd'".to_owned(), "reading the trials"),
        ("UPDATE sample SET value = 9e999".to_owned(), "is not finite"),
        ("UPDATE sample SET metric = 'speed'".to_owned(), "sample metric"),
        ("UPDATE histogram SET counts = X'DEADBEEF'".to_owned(), "histogram of"),
        (format!("UPDATE histogram SET counts = {lies}"), "histogram of"),
        (format!("UPDATE series SET counts = {long}"), "series of"),
        ("UPDATE histogram SET counts = zeroblob(5000000)".to_owned(), "histogram of"),
        ("UPDATE system_activity SET body = '{\"window\":'".to_owned(), "system_activity"),
        ("INSERT INTO warning VALUES (NULL, NULL, 'W', 'w', 'm', '7')".to_owned(), "warning"),
    ] {
        patient.sql(&statements);
        let before = seen(&patient.bench.path("runs"));
        let error = store::read(&patient.file()).err();
        let error = error.map_or("it was read".into(), |error| error.to_string());
        if !["a.fslab", ";", words].iter().all(|words| error.contains(words)) {
            wrong.push(format!("{statements}: {words} is missing from {error}"));
        }
        assert!(seen(&patient.bench.path("runs")) == before, "{statements}: written");
    }
    assert_eq!(wrong, Vec::<String>::new());
    patient.refused("runs/a.fslab", 3, "use another copy, or start a new run");
}

/// Extreme numbers that fit their columns may be shown and must not cause an error.
#[test]
fn extreme_numbers_are_harmless() {
    let patient = Patient::new();
    let most = i64::MAX;
    for statements in [
        format!("UPDATE trial SET elapsed_ns = {most}, started_unix_ns = {most}"),
        "UPDATE trial SET repetition = 4000000000 + id, attempt = 4000000000".to_owned(),
        "UPDATE sample SET value = 1e308".to_owned(),
        "UPDATE sample SET value = -1e308".to_owned(),
        "UPDATE sample SET value = 0".to_owned(),
        "UPDATE sample SET value = 5e-324".to_owned(),
        "UPDATE sample SET worker = 4294967295".to_owned(),
        "UPDATE sample SET phase = ''".to_owned(),
        "UPDATE run SET value = '18446744073709551615' WHERE key IN ('started_unix', 'ended_unix')"
            .to_owned(),
        "UPDATE run SET value = '0' WHERE key IN ('started_unix', 'ended_unix')".to_owned(),
        "DELETE FROM sample; DELETE FROM histogram".to_owned(),
        "DELETE FROM phase".to_owned(),
        "DELETE FROM environment".to_owned(),
        "UPDATE cell SET label = ''".to_owned(),
        "UPDATE trial SET outcome = 'failed', reason = ''".to_owned(),
    ] {
        patient.sql(&statements);
        let (_, stderr) = patient.reads(&["report", "runs/a.fslab"], &statements, &[0, 3]);
        assert!(stderr.is_empty() || stderr.contains("damaged"), "{statements}: {stderr}");
        if let Ok(record) = store::read(&patient.file()) {
            let view = report::View::new(&record);
            assert!(report::html(&view, &[]).contains("</html>"), "{statements}");
            let json: serde_json::Value = serde_json::from_str(&report::json(&view)).unwrap();
            assert!(json.is_object(), "{statements}");
        }
    }
}

/// Run file with a write-ahead log: in progress, killed, or copied without the index of the log.
#[test]
fn a_run_with_a_log_is_read_without_changes() {
    let patient = Patient::new();
    let record = store::read(&patient.file()).unwrap();
    fs::remove_file(patient.file()).unwrap();
    let info = RunInfo { ended_unix: None, ..record.info.clone() };
    let made =
        store::Store::create(&patient.file(), &info, &record.cells, &record.environment, &[]);
    let mut store = made.unwrap();
    patient.reads(&["explain", "runs/a.fslab"], "nothing kept yet", &[0]);
    for (at, trial) in record.trials.iter().enumerate() {
        store.trial(trial, None).unwrap();
        if at % 4 == 0 {
            let read = ["report", "runs/a.fslab", "--format", "csv"];
            let output = patient.bench.ends(0, &read);
            let samples: usize = record.trials[..=at].iter().map(|t| t.samples.len()).sum();
            assert_eq!(output.stdout.lines().count(), samples + 1, "all stored trials are read");
        }
    }
    // A killed run consists of three files. They are copied, because the store of this test stays
    // open.
    let beside = |name: &str, suffix: &str| patient.bench.path(&format!("runs/{name}{suffix}"));
    let all = patient.bench.ends(0, &["report", "runs/a.fslab", "--format", "csv"]).stdout;
    for suffixes in [&["", "-wal", "-shm"][..], &["", "-wal"], &[""]] {
        let name = format!("killed{}.fslab", suffixes.len());
        for suffix in suffixes {
            fs::copy(beside("a.fslab", suffix), beside(&name, suffix)).unwrap();
        }
        let file = format!("runs/{name}");
        let (_, stderr) = patient.reads(&["explain", &file], &name, &[0]);
        assert!(stderr.is_empty(), "{stderr}");
        let output = patient.bench.ends(0, &["report", &file, "--format", "csv"]).stdout;
        match suffixes.contains(&"-wal") {
            true => assert_eq!(output, all, "{name}"),
            false => assert!(output.lines().count() < all.lines().count(), "{name}"),
        }
    }
    store.finish(model::Nanos(1)).unwrap();
    // The log of another database is not part of the run.
    fs::write(beside("a.fslab", "-wal"), vec![7; 9000]).unwrap();
    let output = patient.bench.ends(0, &["report", "runs/a.fslab", "--format", "csv"]).stdout;
    assert_eq!(output, all);
    patient.reads(&["report", "runs/a.fslab"], "a foreign log", &[0]);
}
