use std::collections::BTreeMap;

use model::{
    Bytes, Cell, Environment, FilesystemLevel, FillLevel, Histogram, HostResult, Metric, Nanos,
    Ops, Ratio, Sample, Scale, Study, SystemActivity, Value, Warning, WorkloadParameters,
    activity::DeviceActivity,
    cluster::Network,
    phase::{Cache, Role, Series},
    plan::Profile,
    record::{
        Action, CellRecord, CellState, HistogramKind, Outcome, PhaseHistogram, PhaseInfo, RunInfo,
        TrialRecord,
    },
};

use rusqlite::Connection;

use super::*;

mod forged;
mod opened;

fn info() -> RunInfo {
    RunInfo {
        id: "20260101t000000-abcd".into(),
        title: "ext4 or xfs?".into(),
        plan_name: "toy".into(),
        plan_text: "title = \"ext4 or xfs?\"\n".into(),
        overrides: vec![("repetitions".into(), "3".into())],
        scale: Scale::ONE,
        profile: Profile::Quick,
        repetitions: None,
        seed: u64::MAX,
        study: Some(Study::Tasks2006),
        storage: "image file".into(),
        started_unix: Nanos(1_767_225_600_000_000_000),
        ended_unix: None,
        program: "fslab 0.1.0".into(),
    }
}

fn cell(filesystem: &str) -> CellRecord {
    let parameters = BTreeMap::from([("block_size".to_owned(), Value::Count(4))]);
    let cell = Cell {
        filesystem: FilesystemLevel::plain(filesystem),
        workload: WorkloadParameters { suite: "toy".into(), parameters },
        scheduler: None,
        fill_level: FillLevel(50),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
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

fn trial(cell: usize, repetition: u32) -> TrialRecord {
    let mut latency = Histogram::new();
    latency.record(1234);
    let mut environment = Environment::default();
    environment.set("mount.options", "rw,noatime");
    TrialRecord {
        cell,
        repetition,
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
        histograms: [HistogramKind::All, HistogramKind::Write]
            .map(|kind| PhaseHistogram { phase: "write".into(), kind, histogram: latency.clone() })
            .into(),
        series: vec![("write".into(), series())],
        activity: vec![("write".into(), activity())],
        warnings: vec![
            (None, Warning::NotDurable),
            (
                Some("write".into()),
                Warning::WideInterval { half_width: Ratio(0.125), target: Ratio(0.03) },
            ),
        ],
        actions: vec![Action {
            description: "mkfs.ext4".into(),
            elapsed: Nanos(9),
            error: String::new(),
        }],
        environment,
        hosts: vec![host_result(0, "node1"), host_result(1, "node2")],
    }
}

fn host_result(index: u32, host: &str) -> HostResult {
    let mut histogram = Histogram::new();
    histogram.record(77);
    HostResult {
        phase: "write".into(),
        index,
        host: host.into(),
        ops: Ops(3),
        bytes: Bytes(4096),
        started: Nanos(10),
        ended: Nanos(20),
        clock_offset: -1_000_000_000_000,
        clock_bound: Nanos(50),
        histogram,
        series: series(),
        network: (index == 0).then(|| Network { received: Bytes(9), ..Network::default() }),
        activity: activity(),
    }
}

fn activity() -> SystemActivity {
    let device =
        DeviceActivity { name: "sdb".into(), flushes: Some(3), ..DeviceActivity::default() };
    SystemActivity { window: Nanos(7), devices: vec![device], ..SystemActivity::default() }
}

fn series() -> Series {
    Series { start: Nanos(5), interval: Nanos(1_000_000), ops: vec![1, 2], bytes: vec![512, 1024] }
}

fn host() -> Environment {
    let mut environment = Environment::default();
    environment.set("kernel.release", "6.18");
    environment
}

#[test]
fn a_run_is_read_as_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let cells = [cell("ext4"), cell("xfs")];
    let backing = Warning::SharedStorage { storage: "an image file".into(), directory: false };
    let mut store =
        Store::create(&path, &info(), &cells, &host(), std::slice::from_ref(&backing)).unwrap();
    store.trial(&trial(1, 0), None).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    store.cell_state(1, &CellState::Skipped { reason: "no mkfs.xfs".into() }).unwrap();
    store.warn(&[Warning::NotDurable]).unwrap();
    store.finish(Nanos(77)).unwrap();

    let record = read(&path).unwrap();
    assert_eq!(record.info, RunInfo { ended_unix: Some(Nanos(77)), ..info() });
    assert_eq!(record.environment, host());
    assert_eq!(record.warnings, [backing, Warning::NotDurable]);
    assert_eq!(record.cells[1].state, CellState::Skipped { reason: "no mkfs.xfs".into() });
    assert_eq!(record.cells[0].phases, cells[0].phases);
    assert_eq!(record.trials.len(), 2);
    let (read, written) = (&record.trials[0], trial(1, 0));
    assert_eq!((read.cell, read.repetition, &read.outcome), (1, 0, &written.outcome));
    assert_eq!(read.samples, written.samples);
    assert_eq!(read.histograms, written.histograms);
    assert_eq!(read.series, written.series);
    assert_eq!(read.activity, written.activity);
    assert_eq!(read.warnings, written.warnings);
    assert_eq!(read.actions, written.actions);
    assert_eq!(read.environment, written.environment);
    let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "a run that ended is one file: {files:?}");
}

#[test]
fn files_of_other_schemas_are_refused_and_not_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    for schema in [SCHEMA - 1, SCHEMA + 1, 0, -1] {
        drop(Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", schema).unwrap();
        drop(connection);
        let bytes = std::fs::read(&path).unwrap();
        for error in [read(&path).unwrap_err(), Store::resume(&path).unwrap_err()] {
            assert!(matches!(error, StoreError::Schema { found, .. } if found == schema));
            let path = path.display();
            let message = format!("{path} has schema {schema}; this version reads schema 7 only");
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        std::fs::remove_file(&path).unwrap();
    }
}

fn invalid() -> Outcome {
    Outcome::Invalid { reason: "the hypervisor stole 12 % of the CPU time".into() }
}

#[test]
fn warnings_of_a_closed_cell_are_stored_with_its_last_measured_trial() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let cells = [cell("ext4"), cell("xfs")];
    let mut store = Store::create(&path, &info(), &cells, &host(), &[]).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    store.trial(&TrialRecord { outcome: invalid(), ..trial(0, 1) }, None).unwrap();
    let done = CellState::Done { reason: "time limit".into() };
    let warned = [("write".to_owned(), Warning::TimeLimitReached)];
    store.close(0, &done, &warned).unwrap();
    store.close(1, &done, &warned).unwrap();
    drop(store);
    let record = read(&path).unwrap();
    assert!(record.cells.iter().all(|cell| cell.state == done));
    assert_eq!(
        record.trials[0].warnings.last(),
        Some(&(Some("write".into()), Warning::TimeLimitReached))
    );
    assert!(
        record.trials[1].warnings.iter().all(|(_, warning)| *warning != Warning::TimeLimitReached)
    );
}

#[test]
fn the_result_view_excludes_aa_duplicates_and_invalid_trials() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let first = cell("ext4");
    let aa_duplicate = Cell { aa_duplicate: true, ..first.cell.clone() };
    let aa_duplicate = CellRecord { id: aa_duplicate.id(), cell: aa_duplicate, ..first.clone() };
    let mut store = Store::create(&path, &info(), &[first, aa_duplicate], &host(), &[]).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    store.trial(&trial(1, 0), None).unwrap();
    store.trial(&TrialRecord { outcome: invalid(), ..trial(0, 1) }, None).unwrap();
    drop(store);
    assert!(read(&path).unwrap().cells[1].cell.aa_duplicate);
    let connection = Connection::open(&path).unwrap();
    let count = |query: &str| connection.query_row(query, [], |row| row.get::<_, i32>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM result"), 1);
    assert_eq!(count("SELECT aa_duplicate FROM cell WHERE idx = 1"), 1);
    assert_eq!(count("SELECT count(*) FROM trial WHERE outcome = 'invalid'"), 1);
}

#[test]
fn an_attempt_is_stored_only_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let mut store = Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap();
    store.trial(&trial(0, 0), None).unwrap();
    let error = store.trial(&trial(0, 0), None).unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error}");
    drop(store);
    assert_eq!(read(&path).unwrap().trials.len(), 1);
}

/// Requires root, for a filesystem that is full.
#[test]
fn a_full_filesystem_is_reported_and_keeps_the_stored_trials() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let size = c"size=512k";
    rustix::mount::mount("none", place, "tmpfs", rustix::mount::MountFlags::empty(), size).unwrap();
    let path = place.join("a.fslab");
    let mut store = Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap();
    let mut stored = 0;
    let error = loop {
        match store.trial(&trial(0, stored), None) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    let second = Store::create(&place.join("b.fslab"), &info(), &[], &host(), &[]).unwrap_err();
    let left = place.join("b.fslab").exists();
    drop(store);
    let read = read(&path).map(|record| record.trials.len());
    rustix::mount::unmount(place, rustix::mount::UnmountFlags::DETACH).unwrap();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(matches!(second, StoreError::Full { .. }) && !left, "{second}");
    assert_eq!(read.unwrap(), stored as usize);
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
fn files_that_are_not_runs_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    assert!(matches!(read(&path), Err(StoreError::Open { .. })));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(read(&path), Err(StoreError::NotARun(..))));
    std::fs::write(&path, "not a database, but long enough for a header").unwrap();
    assert!(matches!(read(&path), Err(StoreError::NotARun(..))));
    assert!(matches!(Store::create(&path, &info(), &[], &host(), &[]), Err(StoreError::Exists(_))));
    for (id, expected) in [
        (1, "it is a database of another program"),
        (model::file_type::RECORDING, "it is a recording, which `fslab trace show` reads"),
    ] {
        std::fs::remove_file(&path).unwrap();
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "application_id", id).unwrap();
        drop(connection);
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_result_view_joins_cell_and_sample_columns() {
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
fn a_run_read_during_its_end_is_complete() {
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
fn only_complete_trials_are_read_from_a_run_being_written() {
    const TRIALS: u32 = 200;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.fslab");
    let mut store = Store::create(&path, &info(), &[cell("ext4")], &host(), &[]).unwrap();
    let writer = std::thread::spawn(move || {
        (0..TRIALS).for_each(|repetition| store.trial(&trial(0, repetition), None).unwrap());
    });
    let mut seen = 0;
    while seen < TRIALS as usize {
        // A failure of the writer also ends the loop; `join` reports it.
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
fn one_of_two_concurrent_creations_of_a_file_succeeds() {
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
