//! A run killed at random moments loses nothing that was kept and leaves nothing behind.

use std::{collections::BTreeSet, os::unix::process::CommandExt, process::Stdio, time::Duration};

use crate::support::{Bench, needs_root};

const KILLS: usize = 30;

const PLAN: &str = r#"
repeats = 12
twins = "one"
invalid = "keep"
seed = 11
[storage]
image = "64MiB"
memory = "256MiB"
[axes]
filesystem = ["ext2", { name = "ext4", setup = [
    { populate = "linux", files = 300 },
    { unmounted = ["tune2fs", "-o", "journal_data_writeback", "{device}"] },
    { remove = "linux" },
] }]
write_cache = ["write through"]
workload = [{ suite = "iozone", file = "2MiB", record = "64KiB", tests = ["write", "read", "random"] }]
"#;

/// (cell, repeat) of every trial kept.
fn kept(bench: &Bench) -> Vec<(usize, u32)> {
    match store::read(&bench.path("run.fslab")) {
        Ok(record) => record.trials.iter().map(|trial| (trial.cell, trial.repeat)).collect(),
        Err(store::StoreError::Open { .. }) => Vec::new(),
        Err(error) => panic!("the run file cannot be read after a kill: {error}"),
    }
}

#[test]
fn nothing_is_lost_and_nothing_is_left() {
    if !needs_root("kill::nothing_is_lost_and_nothing_is_left") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let mut before: Vec<(usize, u32)> = Vec::new();
    let mut hit = 0;
    for kill in 0..KILLS {
        let arguments: &[&str] = match bench.path("run.fslab").exists() {
            true => &["run", "--resume", "run.fslab", "-q"],
            false => &["run", &plan, "-o", "run.fslab", "-q"],
        };
        let mut command = bench.command(arguments);
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // The one place where a test waits by the clock: the moment of a kill is the thing varied.
        std::thread::sleep(Duration::from_millis(random.u64(5..1200)));
        hit += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();

        let said = bench.ends(0, &["clean"]);
        assert_eq!(bench.left_behind(), Vec::<String>::new(), "kill {kill}: {}", said.stdout);
        assert!(leftovers(&bench).is_empty(), "kill {kill}: {:?}", leftovers(&bench));
        let now = kept(&bench);
        assert_eq!(now[..before.len()], before[..], "kill {kill}: what was kept is still there");
        before = now;
    }
    assert!(hit >= KILLS / 2, "only {hit} kills hit a running program; the plan is too short");
    match bench.path("run.fslab").exists() {
        true => bench.ends(0, &["run", "--resume", "run.fslab", "-q"]),
        false => bench.ends(0, &["run", &plan, "-o", "run.fslab", "-q"]),
    };
    let trials = kept(&bench);
    assert_eq!(trials[..before.len()], before[..]);
    let once: BTreeSet<_> = trials.iter().copied().collect();
    let all: BTreeSet<_> = (0..3).flat_map(|cell| (0..12).map(move |r| (cell, r))).collect();
    assert_eq!((trials.len(), once), (36, all), "every trial is there, once, the twin's too");
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    assert!(leftovers(&bench).is_empty(), "{:?}", leftovers(&bench));
}

/// Image files, control groups and journals of runs that are over.
fn leftovers(bench: &Bench) -> Vec<String> {
    let mut left = Vec::new();
    let names = |directory: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    let state = bench.state().join("journal");
    left.extend(names(&state).into_iter().map(|name| format!("{}/{name}", state.display())));
    for hierarchy in ["/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu"] {
        let groups = names(std::path::Path::new(hierarchy));
        left.extend(groups.into_iter().filter(|name| name.starts_with("fslab-")));
    }
    left
}

#[test]
fn a_changed_setting_is_put_back() {
    if !needs_root("kill::a_changed_setting_is_put_back") {
        return;
    }
    let bench = Bench::new();
    let disk = bench.disk("disk.img", 64 << 20);
    let name = disk.path().trim_start_matches("/dev/");
    // Of the device alone: a scheduler would be set on the disk below, too, which is not the
    // test's.
    let knob = format!("/sys/block/{name}/queue/write_cache");
    let read = || std::fs::read_to_string(&knob).unwrap();
    let before = read();
    let other = if before.trim() == "write back" { "write through" } else { "write back" };
    let plan = bench.plan(&format!(
        "repeats = 50\n[storage]\ndevice = \"{}\"\n[axes]\nfilesystem = [\"ext2\"]\n\
         write_cache = [\"{other}\"]\n\
         workload = [{{ suite = \"iozone\", file = \"2MiB\", tests = [\"write\"] }}]\n",
        disk.path()
    ));
    let mut command = bench.command(&["run", &plan, "-o", "run.fslab", "--json"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(stderr).map(Result::unwrap);
    assert!(lines.any(|line| line.contains("phase_started") && line.contains("write")));
    assert_ne!(read(), before, "the setting is changed while a trial goes on");
    child.kill().unwrap();
    child.wait().unwrap();
    let said = bench.ends(0, &["clean"]);
    assert_eq!(read(), before, "{}", said.stdout);
    let left: Vec<_> =
        bench.left_behind().into_iter().filter(|line| !line.contains("disk.img")).collect();
    assert_eq!(left, Vec::<String>::new());
}
