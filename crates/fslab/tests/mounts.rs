//! Filesystems that a command mounts: the plans of the guide, refused mounts, and a kill.

use std::{
    fs,
    path::Path,
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant},
};

use model::{RunRecord, record::Outcome};

use crate::support::{Bench, needs_root, on_path, root, skipped};

/// Programs of the types that are measured here, without the kernel's own.
const PROGRAMS: [&str; 5] = ["fuse-overlayfs", "bindfs", "gocryptfs", "fuse2fs", "fusermount3"];

/// True if the kernel and the programs are present; otherwise the test is counted as skipped.
fn can(test: &str) -> bool {
    if !needs_root(test) {
        return false;
    }
    let kernel = fs::read_to_string("/proc/filesystems").unwrap();
    let types = ["overlay", "fuse"];
    let missing = types.into_iter().find(|name| !kernel.split_whitespace().any(|it| it == *name));
    match missing.or_else(|| PROGRAMS.into_iter().find(|program| !on_path(program))) {
        None => true,
        Some(missing) => {
            skipped(test, missing);
            false
        }
    }
}

/// Plans in the guide.
fn plans() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/guides/mounts.md")).unwrap();
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    blocks.map(|(block, _)| block.to_owned()).collect()
}

/// Plan of the guide, with a directory of the test and one repetition.
fn plan(bench: &Bench, index: usize) -> String {
    fs::create_dir_all(bench.path("srv")).unwrap();
    let text = plans()[index]
        .replace("repetitions = 6\n", "")
        .replace("/srv/test", &bench.path("srv").display().to_string());
    bench.plan(&format!("repetitions = 1\nseed = 3\n{text}"))
}

/// Nothing is mounted, attached, or journaled, and the directory under test is empty.
#[track_caller]
fn assert_nothing_left(bench: &Bench) {
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    let names = |path| fs::read_dir(path).map_or(0, Iterator::count);
    assert_eq!(names(bench.path("state/journal")), 0);
    assert_eq!(names(bench.path("srv")), 0);
    let state = fs::read_dir(bench.state()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!state.into_iter().any(|name| name.to_string_lossy().starts_with("fslab-")));
}

/// Checks that each trial has results, and that the CPU time of a daemon is not that of another
/// process.
#[track_caller]
fn assert_measured(record: &RunRecord) {
    assert_eq!(record.trials.len(), record.cells.len());
    for trial in &record.trials {
        let name = &record.cells[trial.cell].cell.filesystem.name;
        assert!(matches!(trial.outcome, Outcome::Measured), "{name}: {:?}", trial.outcome);
        let foreign = |warning: &model::Warning| warning.code() == "other-cpu-load";
        let daemon = trial.warnings.iter().find(|(_, warning)| foreign(warning));
        let text = format!("{daemon:?}");
        assert!(!PROGRAMS.iter().any(|program| text.contains(program)), "{text}");
    }
}

#[test]
fn filesystems_on_a_directory_are_measured() {
    if !can("mounts::filesystems_on_a_directory_are_measured") {
        return;
    }
    let bench = Bench::new();
    let plan = plan(&bench, 0);
    let shown = bench.ends(0, &["show", &plan]).stdout;
    let overlay = "  $ mount -t overlay overlay -o lowerdir={directory}/lower,";
    assert!(shown.contains(overlay), "{shown}");
    assert!(shown.contains("  $ fusermount3 -u {mount}\n"), "{shown}");
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(record.cells.len(), 10);
    assert_measured(&record);
    assert_nothing_left(&bench);
}

#[test]
fn another_driver_is_measured_on_an_image() {
    if !can("mounts::another_driver_is_measured_on_an_image") {
        return;
    }
    let bench = Bench::new();
    bench.ends(0, &["run", &plan(&bench, 3), "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(record.cells.len(), 2);
    assert_measured(&record);
    assert_nothing_left(&bench);
}

#[test]
fn plans_of_the_guide_are_valid() {
    let bench = Bench::new();
    assert_eq!(plans().len(), 5);
    for index in 0..plans().len() {
        bench.ends(0, &["show", &plan(&bench, index)]);
    }
}

#[test]
fn a_wrong_mount_fails_its_trial_and_leaves_nothing() {
    if !can("mounts::a_wrong_mount_fails_its_trial_and_leaves_nothing") {
        return;
    }
    let bench = Bench::new();
    fs::create_dir(bench.path("srv")).unwrap();
    let srv = bench.path("srv").display().to_string();
    let text = format!(
        "repetitions = 1\nstorage.directory = \"{srv}\"\n[axes]\nfilesystem = [\n\
         {{ name = \"wrong\", type = \"overlayfs\", mount_command = [\"mount\", \"-t\", \"tmpfs\", \
         \"x\", \"{{mount}}\"] }},\n\
         {{ name = \"none\", type = \"overlayfs\", mount_command = [\"true\", \"{{mount}}\"] }},\n\
         \"overlayfs\" ]\nworkload = [{{ suite = \"small-files\", files = 10 }}]\n"
    );
    let output = bench.ends(4, &["run", &bench.plan(&text), "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let reason = |name: &str| {
        let mut trials = record.trials.iter();
        let of = |cell: usize| record.cells[cell].cell.filesystem.name == name;
        match &trials.find(|trial| of(trial.cell)).unwrap().outcome {
            Outcome::Failed { reason } => reason.clone(),
            other @ (Outcome::Measured | Outcome::Invalid { .. }) => format!("{other:?}"),
        }
    };
    let wrong = reason("wrong");
    let words = "has filesystem type tmpfs, but the plan names overlay";
    assert!(wrong.contains(words), "{wrong}\n{}", output.stdout);
    assert!(reason("none").contains("nothing is mounted on"), "{output:?}");
    assert_eq!(reason("overlayfs"), "Measured");
    assert_nothing_left(&bench);
}

#[test]
fn clean_undoes_the_mounts_of_a_killed_run() {
    if !can("mounts::clean_undoes_the_mounts_of_a_killed_run") {
        return;
    }
    for fs_type in ["overlayfs", "bindfs"] {
        let bench = Bench::new();
        fs::create_dir(bench.path("srv")).unwrap();
        let srv = bench.path("srv").display().to_string();
        let plan = bench.plan(&format!(
            "repetitions = 1\nstorage.directory = \"{srv}\"\n[axes]\nfilesystem = [\"{fs_type}\"]\n\
             workload = [{{ suite = \"stream\", file_size = \"4MiB\", block_size = \"4KiB\", \
             runtime = \"60s\" }}]\n"
        ));
        // On another filesystem, so that the killed run leaves its run file only there.
        let memory = Bench::new_in(Path::new("/dev/shm"));
        let file = memory.path("run.fslab").display().to_string();
        let mut command = bench.command(&["run", &plan, "-o", &file]);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while !bench.left_behind().iter().any(|mount| mount.contains("/state/fslab-")) {
            assert!(start.elapsed() < Duration::from_secs(120), "nothing was mounted");
            assert!(run.try_wait().unwrap().is_none(), "the run ended");
            sleep(Duration::from_millis(5));
        }
        run.kill().unwrap();
        run.wait().unwrap();
        assert_ne!(bench.left_behind(), Vec::<String>::new());
        let cleaned = bench.ends(0, &["clean"]).stdout;
        assert!(cleaned.contains(" on "), "{cleaned}");
        assert_nothing_left(&bench);
        bench.has_nothing_to_undo();
    }
}
