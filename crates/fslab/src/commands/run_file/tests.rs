use std::{
    collections::BTreeMap,
    os::unix::fs::{chown, symlink},
};

use model::{
    Cell, Environment, FilesystemLevel, FillLevel, Nanos, Scale, WorkloadParameters,
    plan::Profile,
    record::{CellRecord, Outcome, TrialRecord},
};
use store::Store;

use super::*;

fn info(id: &str) -> RunInfo {
    RunInfo {
        id: id.into(),
        title: "kept".into(),
        plan_name: "kept".into(),
        plan_text: "title = \"kept\"\n".into(),
        overrides: Vec::new(),
        scale: Scale::ONE,
        profile: Profile::Quick,
        repetitions: None,
        seed: 1,
        study: None,
        storage: "a directory".into(),
        started_unix: Nanos(1),
        ended_unix: None,
        program: "fslab".into(),
    }
}

fn trial(repetition: u32) -> TrialRecord {
    TrialRecord {
        cell: 0,
        repetition,
        attempt: 0,
        started_unix: Nanos(1),
        elapsed: Nanos(2),
        outcome: Outcome::Measured,
        samples: Vec::new(),
        histograms: Vec::new(),
        series: Vec::new(),
        activity: Vec::new(),
        warnings: Vec::new(),
        actions: Vec::new(),
        environment: Environment::default(),
        hosts: Vec::new(),
    }
}

/// Writes a run file with this many trials.
fn run(path: &Path, id: &str, trials: u32) {
    let cell = Cell {
        filesystem: FilesystemLevel::plain("directory"),
        workload: WorkloadParameters { suite: "toy".into(), parameters: BTreeMap::new() },
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
    };
    let (state, phases) = (CellState::Open, Vec::new());
    let cell = CellRecord { id: cell.id(), cell, label: "toy".into(), state, phases };
    let made = Store::create(path, &info(id), &[cell], &Environment::default(), &[]);
    let mut store = made.unwrap();
    (0..trials).for_each(|repetition| store.trial(&trial(repetition), None).unwrap());
}

fn trials(path: &Path) -> usize {
    store::read(path).unwrap().trials.len()
}

/// Directory under test that contains the run file.
struct Under {
    directory: tempfile::TempDir,
}

impl Under {
    fn new() -> Self {
        Self { directory: tempfile::tempdir_in("/var/tmp").unwrap() }
    }

    fn place(&self) -> PathBuf {
        self.directory.path().join("a.fslab")
    }

    fn storage(&self) -> StorageKind {
        StorageKind::Directory { path: self.directory.path().display().to_string() }
    }

    fn choose(&self) -> RunFilePath {
        RunFilePath::choose(&self.place(), &self.storage()).unwrap()
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        let working = in_memory(&self.place()).unwrap();
        for file in [note(&working), working] {
            let _gone = fs::remove_file(file);
        }
    }
}

#[test]
fn only_run_files_on_the_filesystem_under_test_are_in_memory() {
    let under = Under::new();
    let here = under.choose();
    assert!(here.working.starts_with(MEMORY), "{here:?}");
    let other = StorageKind::Directory { path: "/proc".into() };
    assert_eq!(RunFilePath::choose(&under.place(), &other).unwrap().working, under.place());
    let device = StorageKind::Devices { paths: vec!["/dev/sdb".into()] };
    assert_eq!(RunFilePath::choose(&under.place(), &device).unwrap().working, under.place());
}

#[test]
fn a_run_that_is_resumed_stays_at_its_place_until_it_is_replaced() {
    let under = Under::new();
    let (mut keeping, place) = (under.choose(), under.place());
    keeping.begin().unwrap();
    run(&keeping.working, "one", 1);
    assert_eq!(RunFilePath::find(&place), keeping.working);
    keeping.end().unwrap();
    assert_eq!((trials(&place), RunFilePath::find(&place)), (1, place.clone()));
    assert!(!keeping.working.exists() && !note(&keeping.working).exists());

    fs::set_permissions(&place, fs::Permissions::from_mode(0o640)).unwrap();
    keeping.begin().unwrap();
    assert_eq!((trials(&place), trials(&keeping.working)), (1, 1), "a power loss loses no trial");
    let (mut store, _) = Store::resume(&keeping.working).unwrap();
    store.trial(&trial(1), None).unwrap();
    assert_eq!(RunFilePath::find(&place), keeping.working, "the newer one is reported");
    drop(store);
    let working = keeping.working.clone();
    drop(keeping);
    assert_eq!(trials(&place), 2, "also when the run ends badly");
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o640);
    assert!(!working.exists());
    let left = fs::read_dir(under.directory.path()).unwrap().count();
    assert_eq!(left, 1, "no temporary file remains");
}

#[test]
fn of_two_copies_the_one_with_more_trials_is_resumed() {
    for (there, here, both) in [(3, 1, 3), (1, 3, 3), (2, 2, 2)] {
        let under = Under::new();
        let mut keeping = under.choose();
        memory_made().unwrap();
        run(&under.place(), "one", there);
        run(&keeping.working, "one", here);
        keeping.begin().unwrap();
        assert_eq!(trials(&keeping.working), both, "{there} and {here}");
        drop(keeping);
        assert_eq!(trials(&under.place()), both);
    }
}

#[test]
fn a_file_of_another_run_is_never_replaced() {
    let under = Under::new();
    let mut keeping = under.choose();
    keeping.begin().unwrap();
    run(&keeping.working, "one", 2);
    for other in ["two", ""] {
        match other {
            "" => fs::write(under.place(), "notes of a user").unwrap(),
            id => run(&under.place(), id, 1),
        }
        let before = fs::read(under.place()).unwrap();
        assert!(keeping.end().is_err());
        assert!(under.choose().begin().is_err());
        assert_eq!(fs::read(under.place()).unwrap(), before);
        assert_eq!(trials(&keeping.working), 2);
        fs::remove_file(under.place()).unwrap();
    }
    // Trials that differ belong to another run, too.
    run(&under.place(), "one", 2);
    let connection = rusqlite::Connection::open(under.place()).unwrap();
    connection.execute_batch("UPDATE trial SET elapsed_ns = 7").unwrap();
    drop(connection);
    assert!(keeping.end().is_err() && trials(&keeping.working) == 2);
    fs::remove_file(under.place()).unwrap();
    symlink("nowhere", under.place()).unwrap();
    assert!(keeping.end().is_err(), "a dangling link is not filled");
    assert!(!under.directory.path().join("nowhere").exists());
    fs::remove_file(under.place()).unwrap();
}

#[test]
fn a_run_in_progress_is_not_moved() {
    let under = Under::new();
    let mut living = under.choose();
    living.begin().unwrap();
    run(&living.working, "one", 1);
    let (store, _) = Store::resume(&living.working).unwrap();
    let mut second = under.choose();
    second.begin().unwrap();
    assert!(matches!(Store::resume(&second.working), Err(StoreError::Busy(_))));
    drop(second);
    assert!(living.working.exists() && !under.place().exists());
    let state = under.directory.path().join("state");
    let shown = living.working.display().to_string();
    let line = || clean(&state).into_iter().find(|line| line.contains(&shown));
    assert_eq!(line(), None, "it is still running");
    drop(store);
    // A process that another test starts holds the lock between fork(2) and execve(2).
    let said = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        line()
    });
    let said = said.unwrap();
    assert!(said.contains(&format!("--resume {}", under.place().display())), "{said}");
    assert_eq!(trials(&living.working), 1, "clean never removes a requested run file");
}

#[test]
fn a_new_run_does_not_replace_a_killed_one_in_memory() {
    let under = Under::new();
    let mut killed = under.choose();
    killed.begin().unwrap();
    run(&killed.working, "one", 1);
    killed.begun = false;
    drop(killed);
    assert!(under.choose().free().is_err());
    // Nor if its final path is no longer under test.
    let moved =
        RunFilePath::choose(&under.place(), &StorageKind::Directory { path: "/proc".into() });
    assert!(moved.unwrap().free().is_err());
}

#[test]
fn files_planted_at_temporary_names_are_neither_followed_nor_emptied() {
    let under = Under::new();
    let at = |name: &str| under.directory.path().join(name);
    fs::write(at("victim"), "mine").unwrap();
    symlink(at("victim"), at("a.fslab.partial")).unwrap();
    fs::hard_link(at("victim"), at(&format!("a.probe-{}", std::process::id()))).unwrap();
    writable(&under.place()).ok().unwrap();
    let mut keeping = under.choose();
    keeping.begin().unwrap();
    run(&keeping.working, "one", 1);
    keeping.end().unwrap();
    assert_eq!(trials(&under.place()), 1);
    assert_eq!(fs::read(at("victim")).unwrap(), b"mine");
    assert_eq!(fs::read_dir(under.directory.path()).unwrap().count(), 4);
}

#[test]
fn files_that_resemble_temporary_runs_stay() {
    let state = tempfile::tempdir_in("/var/tmp").unwrap();
    let names =
        ["bench-2024-ext4.fslab", "bench-4294967294-0a.fslab", "bench-4294967294.fslab-wal"];
    for name in names {
        fs::write(state.path().join(name), "mine").unwrap();
    }
    drop(clean(state.path()));
    assert!(names.iter().all(|name| state.path().join(name).exists()));
}

#[test]
fn root_does_not_resume_files_that_other_users_can_write() {
    let under = Under::new();
    run(&under.place(), "one", 1);
    assert!(trusted(&under.place()).is_ok());
    if !rustix::process::geteuid().is_root() {
        return;
    }
    fs::set_permissions(under.place(), fs::Permissions::from_mode(0o664)).unwrap();
    assert!(trusted(&under.place()).is_err());
    fs::set_permissions(under.place(), fs::Permissions::from_mode(0o600)).unwrap();
    chown(under.place(), Some(65534), None).unwrap();
    let said = trusted(&under.place()).err().unwrap().message();
    let place = under.place().display().to_string();
    let owner = format!("chown root {place}; chmod go-w {place}");
    assert!(said.contains("user 65534") && said.contains(&owner), "{said}");
    assert!(said.contains("plan_text"), "{said}");
}
