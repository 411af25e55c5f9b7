use std::collections::BTreeMap;

use model::{
    Cell, Environment, Evidence, FilesystemLevel, Fullness, Histogram, Metric, Nanos, Point, Ratio,
    Sample, Scale, Study, Value, Warning,
    evidence::DeviceWork,
    phase::{Cache, Role, Series},
    plan::Profile,
    record::{
        Action, CellRecord, CellState, Outcome, PhaseInfo, RunInfo, Times, TimesOf, TrialRecord,
    },
};

use rusqlite::Connection;

use super::*;

mod forged;

fn info() -> RunInfo {
    RunInfo {
        id: "20260101t000000-abcd".into(),
        title: "ext4 or xfs?".into(),
        plan_name: "toy".into(),
        plan_text: "title = \"ext4 or xfs?\"\n".into(),
        amendments: vec![("repeats".into(), "3".into())],
        scale: Scale::ONE,
        profile: Profile::Quick,
        repeats: None,
        seed: u64::MAX,
        view: Some(Study::Tasks2006),
        storage: "image file".into(),
        started_unix: Nanos(1_767_225_600_000_000_000),
        ended_unix: None,
        program: "fslab 0.1.0".into(),
    }
}

fn cell(filesystem: &str) -> CellRecord {
    let parameters = BTreeMap::from([("record".to_owned(), Value::Count(4))]);
    let cell = Cell {
        filesystem: FilesystemLevel::plain(filesystem),
        workload: Point { suite: "toy".into(), parameters },
        scheduler: None,
        fullness: Fullness(50),
        factors: Default::default(),
        twin: false,
    };
    let phases = vec![PhaseInfo {
        name: "write".into(),
        group: "writing".into(),
        role: Role::Measure,
        primary: Metric::DurableThroughput,
        cache: Some(Cache::Cold),
    }];
    CellRecord { id: cell.id(), cell, label: "toy".into(), state: CellState::Open, phases }
}

fn trial(cell: usize, repeat: u32) -> TrialRecord {
    let mut latency = Histogram::new();
    latency.record(1234);
    let mut environment = Environment::default();
    environment.set("mount.options", "rw,noatime");
    TrialRecord {
        cell,
        repeat,
        attempt: 0,
        started_unix: Nanos(1),
        elapsed: Nanos(2),
        outcome: Outcome::Measured,
        samples: vec![Sample {
            phase: "write".into(),
            metric: Metric::Throughput,
            worker: Some(3),
            value: 1.5e9,
        }],
        histograms: [TimesOf::All, TimesOf::Write]
            .map(|of| Times { phase: "write".into(), of, histogram: latency.clone() })
            .into(),
        series: vec![("write".into(), series())],
        evidence: vec![("write".into(), evidence())],
        warnings: vec![
            (None, Warning::Unsynced),
            (Some("write".into()), Warning::Wide { half_width: Ratio(0.125), target: Ratio(0.03) }),
        ],
        actions: vec![Action {
            what: "mkfs.ext4".into(),
            elapsed: Nanos(9),
            trouble: String::new(),
        }],
        environment,
    }
}

fn evidence() -> Evidence {
    let device = DeviceWork { name: "sdb".into(), flushes: Some(3), ..DeviceWork::default() };
    Evidence { window: Nanos(7), devices: vec![device], ..Evidence::default() }
}

fn series() -> Series {
    Series { start: Nanos(5), interval: Nanos(1_000_000), ops: vec![1, 2], bytes: vec![512, 1024] }
}

/// Makes a file into what version 4 would have written.
fn turn_back_to_4(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch("DELETE FROM run WHERE key = 'view'; PRAGMA user_version = 4;")
        .unwrap();
}

/// Makes a file into what version 3 would have written.
fn turn_back_to_3(path: &Path) {
    turn_back_to_4(path);
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             DROP VIEW result;
             CREATE TABLE old (
                 id              INTEGER PRIMARY KEY,
                 cell_idx        INTEGER NOT NULL REFERENCES cell (idx),
                 repeat          INTEGER NOT NULL,
                 started_unix_ns INTEGER NOT NULL,
                 elapsed_ns      INTEGER NOT NULL,
                 outcome         TEXT NOT NULL,
                 reason          TEXT NOT NULL,
                 UNIQUE (cell_idx, repeat)
             ) STRICT;
             INSERT INTO old
             SELECT id, cell_idx, repeat, started_unix_ns, elapsed_ns, outcome, reason FROM trial;
             DROP TABLE trial;
             ALTER TABLE old RENAME TO trial;
             ALTER TABLE cell DROP COLUMN twin;
             CREATE VIEW result AS
             SELECT cell.filesystem, cell.label AS workload, sample.phase, sample.metric,
                    sample.unit, trial.repeat, sample.worker, sample.value
             FROM sample
             JOIN trial ON trial.id = sample.trial_id
             JOIN cell ON cell.idx = trial.cell_idx
             WHERE trial.outcome = 'measured';
             PRAGMA user_version = 3;",
        )
        .unwrap();
}

/// Makes a file into what version 1 would have written.
fn turn_back(path: &Path) {
    turn_back_to_3(path);
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE old (
                 trial_id INTEGER NOT NULL REFERENCES trial (id),
                 phase    TEXT NOT NULL,
                 counts   BLOB NOT NULL,
                 PRIMARY KEY (trial_id, phase)
             ) STRICT;
             INSERT INTO old SELECT trial_id, phase, counts FROM histogram WHERE kind = 'all';
             DROP TABLE histogram;
             ALTER TABLE old RENAME TO histogram;
             DROP TABLE series;
             DROP TABLE evidence;
             ALTER TABLE phase DROP COLUMN cache;
             PRAGMA user_version = 1;",
        )
        .unwrap();
}

fn host() -> Environment {
    let mut environment = Environment::default();
    environment.set("kernel.release", "6.18");
    environment
}

#[test]
fn a_run_reads_back_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let cells = [cell("ext4"), cell("xfs")];
    let backing = Warning::Backing { what: "an image file".into() };
    let mut store =
        Store::create(&path, &info(), &cells, &host(), std::slice::from_ref(&backing)).unwrap();
    store.trial(&trial(1, 0), None).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    store.cell_state(1, &CellState::Skipped { reason: "no mkfs.xfs".into() }).unwrap();
    store.finish(Nanos(77)).unwrap();

    let record = read(&path).unwrap();
    assert_eq!(record.info, RunInfo { ended_unix: Some(Nanos(77)), ..info() });
    assert_eq!(record.environment, host());
    assert_eq!(record.warnings, [backing]);
    assert_eq!(record.cells[1].state, CellState::Skipped { reason: "no mkfs.xfs".into() });
    assert_eq!(record.cells[0].phases, cells[0].phases);
    assert_eq!(record.trials.len(), 2);
    let (read, written) = (&record.trials[0], trial(1, 0));
    assert_eq!((read.cell, read.repeat, &read.outcome), (1, 0, &written.outcome));
    assert_eq!(read.samples, written.samples);
    assert_eq!(read.histograms, written.histograms);
    assert_eq!(read.series, written.series);
    assert_eq!(read.evidence, written.evidence);
    assert_eq!(read.warnings, written.warnings);
    assert_eq!(read.actions, written.actions);
    assert_eq!(read.environment, written.environment);
    let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "a run that ended is one file: {files:?}");
}

#[test]
fn files_of_older_schemas_are_read_and_not_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let mut store = Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    store.trial(&trial(0, 1), None).unwrap();
    drop(store);
    turn_back(&path);
    let bytes = std::fs::read(&path).unwrap();
    let old = read(&path).unwrap();
    assert_eq!(old.trials[0].histograms, trial(0, 0).histograms[..1]);
    assert!(old.trials[0].series.is_empty());
    assert!(old.trials[0].evidence.is_empty());
    assert_eq!(old.cells[0].phases[0].cache, None);
    assert_eq!(old.trials.iter().map(|trial| trial.attempt).collect::<Vec<_>>(), [0, 0]);
    assert!(matches!(Store::resume(&path), Err(StoreError::Older { found: 1, .. })));
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_file_without_a_view_has_that_of_the_ready_plan_it_was_made_by() {
    let directory = tempfile::tempdir().unwrap();
    for (plan, view) in [("iozone-2009", Some(Study::Iozone2009)), ("toy", None)] {
        let path = directory.path().join(plan);
        let info = RunInfo { plan_name: plan.into(), view: None, ..info() };
        drop(Store::create(&path, &info, &[cell("ext4")], &host(), &[]).unwrap());
        turn_back_to_4(&path);
        assert_eq!(read(&path).unwrap().info.view, view);
    }
    // What a run of this version says is not guessed.
    let path = directory.path().join("own");
    let info = RunInfo { plan_name: "iozone-2009".into(), view: None, ..info() };
    drop(Store::create(&path, &info, &[], &host(), &[]).unwrap());
    assert_eq!(read(&path).unwrap().info.view, None);
}

fn invalid() -> Outcome {
    Outcome::Invalid { reason: "the hypervisor gave 12 % of the time to others".into() }
}

#[test]
fn what_a_cell_is_closed_with_stands_at_its_last_measured_trial() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let cells = [cell("ext4"), cell("xfs")];
    let mut store = Store::create(&path, &info(), &cells, &host(), &[]).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    store.trial(&TrialRecord { outcome: invalid(), ..trial(0, 1) }, None).unwrap();
    let done = CellState::Done { rule: "budget".into() };
    let told = [("write".to_owned(), Warning::OverBudget)];
    store.close(0, &done, &told).unwrap();
    store.close(1, &done, &told).unwrap();
    drop(store);
    let record = read(&path).unwrap();
    assert!(record.cells.iter().all(|cell| cell.state == done));
    assert_eq!(
        record.trials[0].warnings.last(),
        Some(&(Some("write".into()), Warning::OverBudget))
    );
    assert!(record.trials[1].warnings.iter().all(|(_, warning)| *warning != Warning::OverBudget));
}

#[test]
fn the_view_for_people_leaves_out_twins_and_what_is_invalid() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let first = cell("ext4");
    let twin = Cell { twin: true, ..first.cell.clone() };
    let twin = CellRecord { id: twin.id(), cell: twin, ..first.clone() };
    let mut store = Store::create(&path, &info(), &[first, twin], &host(), &[]).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    store.trial(&trial(1, 0), None).unwrap();
    store.trial(&TrialRecord { outcome: invalid(), ..trial(0, 1) }, None).unwrap();
    drop(store);
    assert!(read(&path).unwrap().cells[1].cell.twin);
    let connection = Connection::open(&path).unwrap();
    let count = |query: &str| connection.query_row(query, [], |row| row.get::<_, i32>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM result"), 1);
    assert_eq!(count("SELECT twin FROM cell WHERE idx = 1"), 1);
    assert_eq!(count("SELECT count(*) FROM trial WHERE outcome = 'invalid'"), 1);
}

#[test]
fn a_repeat_is_kept_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let mut store = Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    assert!(store.trial(&trial(0, 0), None).is_err());
    drop(store);
    assert_eq!(read(&path).unwrap().trials.len(), 1);
}

#[test]
fn a_run_is_resumed_by_one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let store = Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap();
    assert!(matches!(Store::resume(&path), Err(StoreError::Busy(_))));
    drop(store);
    let (mut store, record) = Store::resume(&path).unwrap();
    assert!(record.trials.is_empty());
    store.trial(&trial(0, 0), None).unwrap();
}

#[test]
fn what_is_not_a_run_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    assert!(matches!(read(&path), Err(StoreError::Open { .. })));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(read(&path), Err(StoreError::NotARun(..))));
    std::fs::write(&path, "not a database at all, but long enough to look at").unwrap();
    assert!(matches!(read(&path), Err(StoreError::NotARun(..))));
    assert!(matches!(Store::create(&path, &info(), &[], &host(), &[]), Err(StoreError::Exists(_))));
    std::fs::remove_file(&path).unwrap();
    drop(Store::create(&path, &info(), &[], &host(), &[]).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(read(&path), Err(StoreError::Newer { found: 99, .. })));
}

#[test]
fn the_view_for_people_joins_what_they_ask_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let mut store = Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    store.finish(Nanos(1)).unwrap();
    let connection = Connection::open(&path).unwrap();
    let query = "SELECT filesystem || ' ' || workload || ' ' || metric || ' ' || unit FROM result";
    let row: String = connection.query_row(query, [], |row| row.get(0)).unwrap();
    assert_eq!(row, "ext4 toy throughput bytes_per_second");
}

#[test]
fn a_run_that_is_read_as_it_ends_has_ended_well() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let mut store = Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    let reader = Connection::open(&path).unwrap();
    let snapshot = reader.unchecked_transaction().unwrap();
    let count = "SELECT count(*) FROM trial";
    assert_eq!(reader.query_row(count, [], |row| row.get::<_, i32>(0)).unwrap(), 1);
    store.finish(Nanos(77)).unwrap();
    drop(snapshot);
    drop(reader);
    let record = read(&path).unwrap();
    assert_eq!((record.info.ended_unix, record.trials.len()), (Some(Nanos(77)), 1));
}

#[test]
fn a_run_is_read_whole_while_it_is_written() {
    const TRIALS: u32 = 200;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let mut store = Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap();
    let writer = std::thread::spawn(move || {
        (0..TRIALS).for_each(|repeat| store.trial(&trial(0, repeat), None).unwrap());
    });
    let mut seen = 0;
    while seen < TRIALS as usize {
        // A failure of the writer ends this, too: it is told by `join`.
        let over = writer.is_finished();
        let record = read(&path).unwrap();
        assert!(record.trials.iter().all(|trial| trial.samples.len() == 1));
        seen = record.trials.len();
        if over {
            break;
        }
    }
    writer.join().unwrap();
    assert_eq!(seen, TRIALS as usize);
}

#[test]
fn of_two_runs_that_begin_one_file_one_has_it() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let path = directory.path().join(format!("{round}.fslab"));
        let together = std::sync::Barrier::new(4);
        let begin = || {
            together.wait();
            let mut store = match Store::create(&path, &info(), &[cell("ext4")], &host(), &[]) {
                Ok(store) => store,
                Err(StoreError::Busy(_) | StoreError::Exists(_)) => return 0,
                Err(error) => panic!("{error:?}"),
            };
            store.trial(&trial(0, 0), None).unwrap();
            1
        };
        let begun: i32 = std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(begin)).collect();
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!((begun, read(&path).unwrap().trials.len()), (1, 1), "round {round}");
    }
}
