//! Run files and other outputs next to files of the user: fslab never truncates, replaces, or
//! removes files that it did not create, and does not follow links.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::{chown, symlink},
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::support::{Bench, needs_root, on_path, skipped};

const PLAN: &str = r#"
repetitions = 3
aa_control = "none"
seed = 5
[storage]
directory = "data"
[axes]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB", tests = ["write"] }]
"#;

fn bench() -> (Bench, String) {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    let plan = bench.plan(PLAN);
    (bench, plan)
}

/// Kills a command when this many lines of its stderr contain a word.
#[track_caller]
fn killed(bench: &Bench, arguments: &[&str], word: &str, count: usize) {
    killed_after(bench, arguments, word, count, |_| ());
}

/// As [`killed`]; returns what `look` finds for the process ID before the kill.
#[track_caller]
fn killed_after<T>(
    bench: &Bench,
    arguments: &[&str],
    word: &str,
    count: usize,
    look: impl FnOnce(u32) -> T,
) -> T {
    let mut command = bench.command(arguments);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut seen = Vec::new();
    let mut lines = lines.inspect(|line| seen.push(line.clone())).filter(|l| l.contains(word));
    let found = lines.nth(count - 1).is_some();
    drop(lines);
    assert!(found, "{word} was not seen {count} times: {seen:#?}");
    let seen = look(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    seen
}

/// Run files of this test in memory.
fn in_memory(name: &str) -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(format!("/dev/shm/fslab-{user}")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(name)).collect()
}

fn trials(path: &Path) -> usize {
    store::read(path).unwrap().trials.len()
}

#[test]
fn clean_removes_temporary_runs_and_no_requested_run_file() {
    let (bench, plan) = bench();
    // On a separate directory, because other tests remove temporary runs in memory.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let own = memory.path().join("bench-2024-ext4.fslab");
    fs::write(&own, "the user's").unwrap();
    let state = memory.path().display().to_string();
    let kept = ["--state-directory", &state];
    let scratch = ["bench", "fsync-4k", "data", "--file-size", "1MiB", "--json"];
    killed(&bench, &[&scratch[..], &kept].concat(), "phase_started", 1);
    // The name ends in a number, as did names of temporary runs of older versions.
    let run = format!("bench-4000000-{:08x}.fslab", fastrand::u32(..));
    killed(&bench, &["run", &plan, "-o", &run, "--json"], "trial_ended", 1);
    assert!(!bench.path(&run).exists(), "it is in memory");

    bench.ends(0, &["clean"]);
    let output = bench.ends(0, &[&["clean"], &kept[..]].concat()).stdout;
    let removed = |line: &str| line.starts_with("removed: ") && line.contains(&state);
    assert!(output.lines().any(removed), "{output}");
    let resume = format!("resume it with fslab run --resume {}", bench.path(&run).display());
    assert!(output.contains(&resume), "{output}");
    assert!(own.exists());
    let again = bench.ends(0, &[&["clean"], &kept[..]].concat()).stdout;
    assert!(again.contains(&resume) && !again.lines().any(removed), "{again}");

    bench.ends(0, &["run", "--resume", &run, "-q"]);
    assert_eq!(trials(&bench.path(&run)), 3);
    assert_eq!(in_memory(run.trim_end_matches(".fslab")), Vec::<PathBuf>::new());
}

/// The directory under test and the state directory are on the same filesystem.
#[test]
fn clean_removes_temporary_runs_in_memory() {
    let (bench, _) = bench();
    let scratch = ["bench", "fsync-4k", "data", "--file-size", "1MiB", "--json"];
    let run_file = killed_after(&bench, &scratch, "phase_started", 1, |process| {
        let mut open = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
        open.find_map(|file| {
            fs::read_link(file.path()).ok().filter(|path| path.ends_with("run.fslab"))
        })
    });
    let run_file = run_file.unwrap();
    let user = rustix::process::geteuid().as_raw();
    assert!(run_file.starts_with(format!("/dev/shm/fslab-{user}/scratch")), "{run_file:?}");
    bench.ends(0, &["clean"]);
    assert!(!run_file.parent().unwrap().exists());
}

#[test]
fn stored_trials_survive_a_power_loss_during_a_resumed_run() {
    let (bench, plan) = bench();
    let run = format!("power-{:08x}.fslab", fastrand::u32(..));
    bench.ends(0, &["run", &plan, "-o", &run, "-q", "--pilot"]);
    assert_eq!(trials(&bench.path(&run)), 2);
    killed(&bench, &["run", "--resume", &run, "--json"], "phase_started", 1);
    bench.ends(0, &["clean"]);
    let memory = in_memory(run.trim_end_matches(".fslab"));
    assert!(!memory.is_empty());
    // A power loss removes the files in memory.
    memory.iter().for_each(|file| fs::remove_file(file).unwrap());
    assert_eq!(trials(&bench.path(&run)), 2);
    bench.ends(0, &["run", "--resume", &run, "-q"]);
    assert_eq!(trials(&bench.path(&run)), 3);
}

#[test]
fn two_copies_that_differ_are_both_kept_and_reported() {
    let (bench, plan) = bench();
    let run = format!("differ-{:08x}.fslab", fastrand::u32(..));
    killed(&bench, &["run", &plan, "-o", &run, "--json"], "trial_ended", 1);
    bench.ends(0, &["run", &plan, "-o", "other.fslab", "-q", "--pilot"]);
    fs::rename(bench.path("other.fslab"), bench.path(&run)).unwrap();
    let before = fs::read(bench.path(&run)).unwrap();
    let memory = in_memory(run.trim_end_matches(".fslab"));
    let copy = memory.iter().find(|path| path.extension().is_some_and(|name| name == "fslab"));
    let copy = copy.unwrap();
    let stored = trials(copy);
    let output = bench.run(&["run", "--resume", &run, "-q"]);
    assert_ne!(output.status, Some(0), "{}", output.stdout);
    for path in [run.clone(), copy.display().to_string()] {
        assert!(output.stderr.contains(&path), "{path}: {}", output.stderr);
    }
    assert!(fs::read(bench.path(&run)).unwrap() == before);
    assert_eq!(trials(copy), stored);
    memory.iter().for_each(|file| fs::remove_file(file).unwrap());
}

#[test]
fn a_crash_state_does_not_replace_an_existing_file() {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let (file, link) = (memory.path().join("notes"), memory.path().join("link"));
    fs::write(&file, "mine").unwrap();
    symlink(memory.path().join("nowhere"), &link).unwrap();
    for state in [&file, &link] {
        let state = state.display().to_string();
        let arguments =
            ["bench", "fsync-4k", "data", "--file-size", "1MiB", "--crash-state", &state];
        let output = bench.ends(2, &arguments);
        assert!(output.stderr.contains("already exists; verify it with"), "{}", output.stderr);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let state = memory.path().join("state").display().to_string();
    let time = ["--runtime", "100ms", "--repetitions", "2"];
    let arguments =
        ["bench", "fsync-4k", "data", "--file-size", "1MiB", "-q", "--crash-state", &state];
    bench.ends(0, &[&arguments[..], &time].concat());
    assert!(!Path::new(&state).exists(), "its own file is removed");
    assert_eq!(fs::read_dir(memory.path()).unwrap().count(), 2);
}

#[test]
fn a_run_file_with_triggers_is_reported_and_not_resumed() {
    let (bench, plan) = bench();
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "-q", "--pilot"]);
    let connection = rusqlite::Connection::open(bench.path("run.fslab")).unwrap();
    let trigger =
        "CREATE TRIGGER better AFTER INSERT ON trial BEGIN UPDATE sample SET value = 1; END";
    connection.execute_batch(trigger).unwrap();
    drop(connection);
    let output = bench.ends(3, &["run", "--resume", "run.fslab", "-q"]);
    assert!(
        output.stderr.contains("fslab did not create its trigger `better`"),
        "{}",
        output.stderr
    );
    bench.ends(0, &["report", "run.fslab"]);
    assert_eq!(trials(&bench.path("run.fslab")), 2);
}

#[test]
fn root_does_not_run_the_plan_of_another_users_run_file() {
    if !needs_root("kept::root_does_not_run_the_plan_of_another_users_run_file") {
        return;
    }
    let (bench, plan) = bench();
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "-q", "--pilot"]);
    chown(bench.path("run.fslab"), Some(65534), Some(65534)).unwrap();
    let output = bench.ends(2, &["run", "--resume", "run.fslab", "-q"]);
    assert!(output.stderr.contains("user 65534 owns it"), "{}", output.stderr);
    bench.ends(0, &["report", "run.fslab"]);
    chown(bench.path("run.fslab"), Some(0), Some(0)).unwrap();
    bench.ends(0, &["run", "--resume", "run.fslab", "-q"]);
}

/// Outputs that are first written under a temporary name, while a link with that name exists.
#[test]
fn temporary_names_follow_no_link_and_empty_no_file() {
    let (bench, plan) = bench();
    fs::write(bench.path("victim"), "mine").unwrap();
    let names = ["run.fslab", "run.html", "out.csv", "out.html", "out.xlsx", "load"];
    let planted: Vec<PathBuf> =
        names.iter().map(|name| bench.path(&format!("{name}.partial"))).collect();
    planted.iter().for_each(|path| symlink(bench.path("victim"), path).unwrap());
    // The report replaces a hard link at the final path by a new file.
    fs::hard_link(bench.path("victim"), bench.path("out.csv")).unwrap();
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "-q"]);
    bench.ends(0, &["report", "run.fslab", "-o", "out.csv", "--html", "out.html"]);
    bench.ends(0, &["report", "run.fslab", "-o", "out.xlsx", "--charts", "charts"]);
    bench.ends(0, &["loadfile", "office", "--iterations", "1", "-o", "load"]);
    assert_eq!(fs::read_to_string(bench.path("victim")).unwrap(), "mine");
    assert!(planted.iter().all(|path| path.is_symlink()));
    assert!(names.iter().all(|name| bench.path(name).metadata().unwrap().len() > 4));
    let left = fs::read_dir(bench.path(".")).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|name| !name.ends_with(".part")), "{left:?}");
}

#[test]
fn a_report_of_a_run_that_ends_follows_no_link() {
    let (bench, plan) = bench();
    symlink(bench.path("nowhere"), bench.path("run.html")).unwrap();
    let output = bench.ends(2, &["run", &plan, "-o", "run.fslab", "-q"]);
    assert!(output.stderr.contains("already exists"), "{}", output.stderr);
    assert!(!bench.path("nowhere").exists() && !bench.path("run.fslab").exists());
    fs::remove_file(bench.path("run.html")).unwrap();
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "-q", "--pilot"]);
    fs::write(bench.path("run.html"), "report of the first session").unwrap();
    bench.ends(0, &["run", "--resume", "run.fslab", "-q"]);
    assert!(fs::read_to_string(bench.path("run.html")).unwrap().starts_with("<!"));
}

/// The program is run under strace(1).
#[test]
fn outputs_are_written_to_a_new_file_which_is_synced_and_renamed() {
    let (bench, plan) = bench();
    if !on_path("strace") {
        return skipped(
            "kept::outputs_are_written_to_a_new_file_which_is_synced_and_renamed",
            "strace",
        );
    }
    fs::write(bench.path("page.html"), "of the user").unwrap();
    fs::hard_link(bench.path("page.html"), bench.path("link")).unwrap();
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "-q", "--html", "page.html"]);
    assert!(fs::read_to_string(bench.path("page.html")).unwrap().starts_with("<!"));
    assert_eq!(fs::read_to_string(bench.path("link")).unwrap(), "of the user");

    let mut traced = bench.other("strace");
    traced.args(["-f", "-y", "-o", "calls", "-e", "trace=openat,fsync,/^rename"]);
    traced.args([env!("CARGO_BIN_EXE_fslab"), "report", "run.fslab", "-o", "page.html"]);
    assert!(traced.output().unwrap().status.success());
    let calls = fs::read_to_string(bench.path("calls")).unwrap();
    let directory = bench.path("");
    let directory = directory.to_str().unwrap().trim_end_matches('/');
    let steps: [&[&str]; 4] = [
        &["openat(", "\".page.html.", ".part\"", "O_CREAT|O_EXCL|O_NOFOLLOW"],
        &["fsync(", "/.page.html.", ".part>"],
        &["rename", "\".page.html.", ".part\"", "\"page.html\""],
        &["fsync(", &format!("{directory}>")],
    ];
    let mut lines = calls.lines();
    for words in steps {
        let found = lines.any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "{words:?}");
    }
}
