//! Workloads that run together.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use model::{
    Metric, RunRecord, Warning,
    phase::{GROUP, is_group, is_later_group_of},
    record::{CellState, Outcome, TrialRecord},
};

use crate::support::{Bench, needs_root, processes};

const LOG: &str = r#"{ name = "log", suite = "stream", direction = "write", access_pattern = "append", overwrite = false, file_size = "4MiB", block_size = "4KiB", fsync_every = 1, rate = "200/s", arrivals = "poisson" }"#;
const BULK: &str = r#"{ name = "bulk", role = "background", suite = "stream", direction = "write", block_size = "1MiB", file_size = "8MiB", rate = "20MiB/s" }"#;

/// Plan in a directory, with one entry of the axis `workload`.
fn plan(bench: &Bench, entry: &str) -> String {
    fs::create_dir_all(bench.path("data")).unwrap();
    bench.plan(&format!(
        "repetitions = 1\nseed = 1\n[storage]\ndirectory = \"{}\"\n[axes]\n[[axes.workload]]\n\
         {entry}\n",
        bench.path("data").display()
    ))
}

fn run(bench: &Bench, entry: &str) -> RunRecord {
    let plan = plan(bench, entry);
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0, "all files are removed");
    bench.has_nothing_to_undo();
    store::read(&bench.path("run.fslab")).unwrap()
}

fn trial<'a>(record: &'a RunRecord, label: &str) -> &'a TrialRecord {
    let labels: Vec<&str> = record.cells.iter().map(|cell| cell.label.as_str()).collect();
    let cell = labels.iter().position(|own| *own == label);
    let cell = cell.unwrap_or_else(|| panic!("{label} in {labels:?}"));
    record.trials.iter().find(|trial| trial.cell == cell).unwrap()
}

fn value(trial: &TrialRecord, phase: &str, metric: Metric) -> Option<f64> {
    let sample = trial
        .samples
        .iter()
        .find(|sample| sample.phase == phase && sample.metric == metric && sample.worker.is_none());
    sample.map(|sample| sample.value)
}

#[test]
fn members_have_separate_results_and_common_system_activity() {
    let bench = Bench::new();
    let entry = format!("together = [{LOG}, {BULK}]\nruntime = \"1s\"\nramp_time = \"200ms\"");
    let record = run(&bench, &entry);
    let (group, alone) = (trial(&record, "log with bulk"), trial(&record, "log alone"));
    for trial in [group, alone] {
        assert_eq!(trial.outcome, Outcome::Measured, "{:?}", trial.outcome);
        let rate = value(trial, "log", Metric::CommitRate).unwrap();
        assert!(rate > 0.0 && rate < 300.0, "200 per second were scheduled: {rate}");
        assert!(value(trial, "log", Metric::SyncLatencyP50).is_some());
        assert!(value(trial, "log", Metric::UserTime).is_some(), "the CPU time is per member");
        assert_eq!(value(trial, "log", Metric::AttributedCpuTime), None);
        assert!(value(trial, GROUP, Metric::AttributedCpuTime).is_some());
        assert!(trial.activity.iter().any(|(at, _)| at == GROUP));
        assert!(trial.series.iter().any(|(at, _)| at == "log"));
    }
    assert!(value(group, "bulk", Metric::Throughput).unwrap() > 0.0);
    assert_eq!(value(alone, "bulk", Metric::Throughput), None);
    // The windows of the members are the same second.
    let start = |phase: &str| {
        let (_, series) = group.series.iter().find(|(at, _)| at == phase).unwrap();
        series.start.0
    };
    let apart = start("log").abs_diff(start("bulk"));
    assert!(apart < 200_000_000, "the measurements started {apart} ns apart");
    let text = bench.ends(0, &["report", "run.fslab", "--detail"]).stdout;
    assert!(text.contains("log with bulk"), "{text}");
    assert!(text.contains("Slowdown by other workloads"), "{text}");
}

#[test]
fn the_plan_is_shown_with_its_members() {
    let bench = Bench::new();
    let closed = LOG.replace(r#"rate = "200/s", arrivals = "poisson""#, "cache = \"unchanged\"");
    let plan = plan(&bench, &format!("together = [{closed}, {BULK}]\nruntime = \"1s\""));
    let shown = bench.ends(0, &["show", &plan]).stdout;
    for text in ["log with bulk", "log alone", "bulk (background): stream", "bulk (prepared only)"]
    {
        assert!(shown.contains(text), "{text} in\n{shown}");
    }
}

#[test]
fn a_closed_loop_is_reported() {
    let bench = Bench::new();
    let closed = LOG.replace(r#"rate = "200/s", arrivals = "poisson""#, "cache = \"unchanged\"");
    let entry = format!("together = [{closed}, {BULK}]\nruntime = \"200ms\"\nalone = \"none\"");
    let record = run(&bench, &entry);
    assert_eq!(record.cells.len(), 1);
    let member = "log".to_owned();
    assert!(record.warnings.contains(&Warning::ClosedLoop { member }), "{:?}", record.warnings);
}

#[test]
fn actions_are_listed_with_their_times() {
    let bench = Bench::new();
    let syncs = r#"{ name = "syncs", action = "sync", every = "100ms", count = 3 }"#;
    let entry = format!("together = [{LOG}, {syncs}]\nruntime = \"600ms\"\nramp_time = \"0s\"");
    let record = run(&bench, &entry);
    let trial = trial(&record, "log with syncs");
    let actions = trial.actions.iter().filter(|it| it.description.starts_with("syncs: sync "));
    assert_eq!(actions.count(), 3, "{:?}", trial.actions);
    assert!(value(trial, "syncs", Metric::LatencyMean).is_some());
}

#[test]
fn a_program_ends_the_group() {
    let bench = Bench::new();
    let program = r#"{ name = "program", suite = "command", run = ["sleep", "0.3"] }"#;
    let bulk = BULK.replace("rate = \"20MiB/s\"", "rate = \"5MiB/s\"");
    let record = run(&bench, &format!("together = [{program}, {bulk}]\nramp_time = \"0s\""));
    let trial = trial(&record, "program with bulk");
    assert_eq!(trial.outcome, Outcome::Measured, "{:?}", trial.outcome);
    assert!(value(trial, "program", Metric::Elapsed).unwrap() >= 0.3e9);
    assert!(value(trial, "bulk", Metric::Throughput).unwrap() > 0.0);
    assert!(value(trial, "bulk", Metric::Elapsed).unwrap() < 30e9, "it ended with the program");
}

#[test]
fn a_member_that_fails_ends_the_trial() {
    let bench = Bench::new();
    let program = r#"{ name = "program", suite = "command", run = ["false"] }"#;
    let plan = plan(&bench, &format!("together = [{program}, {BULK}]\nalone = \"none\""));
    bench.ends(3, &["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let CellState::Failed { reason } = &record.cells[0].state else {
        panic!("{:?}", record.cells[0].state)
    };
    assert!(reason.contains("`false`"), "{reason}");
    bench.has_nothing_to_undo();
}

#[test]
fn a_filesystem_without_snapshots_is_skipped_and_btrfs_has_them() {
    if !needs_root("a_filesystem_without_snapshots_is_skipped_and_btrfs_has_them") {
        return;
    }
    let bench = Bench::new();
    fs::create_dir_all(bench.path("images")).unwrap();
    let snapshots = r#"{ name = "snapshots", action = "snapshot", every = "100ms", count = 3 }"#;
    let scrub = r#"{ name = "scrub", action = "scrub", count = 1 }"#;
    let trims = r#"{ name = "trims", action = "trim", every = "200ms" }"#;
    let plan = bench.plan(&format!(
        "repetitions = 1\nseed = 1\n[storage]\nimage_size = \"512MiB\"\nimage_allocation = \"sparse\"\nimage_directory = \"{}\"\n\
         [axes]\nfilesystem = [\"ext4\", \"btrfs\"]\n[[axes.workload]]\n\
         together = [{LOG}, {snapshots}, {scrub}, {trims}]\nruntime = \"1s\"\n\
         ramp_time = \"0s\"\nalone = \"none\"\n",
        bench.path("images").display()
    ));
    let output = bench.run(&["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let state = |name: &str| {
        let mut cells = record.cells.iter();
        &cells.find(|cell| cell.cell.filesystem.name == name).unwrap().state
    };
    let CellState::Skipped { reason } = state("ext4") else { panic!("{:?}", state("ext4")) };
    assert!(reason.contains("is not supported by this filesystem"), "{reason}");
    let done = matches!(state("btrfs"), CellState::Done { .. });
    assert!(done, "{:?}: {}", state("btrfs"), output.stderr);
    let btrfs = record.trials.iter().find(|trial| trial.samples.iter().any(|it| it.phase == "log"));
    let actions = &btrfs.unwrap().actions;
    for (name, least) in [("snapshots: snapshot ", 3), ("scrub: scrub ", 1), ("trims: trim ", 2)] {
        let count = actions.iter().filter(|it| it.description.starts_with(name)).count();
        assert!(count >= least, "{name}: {actions:?}");
    }
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    bench.has_nothing_to_undo();
}

/// Plan with a new ext4 filesystem.
fn on_image(bench: &Bench, members: &str, runtime: &str) -> String {
    fs::create_dir_all(bench.path("images")).unwrap();
    bench.plan(&format!(
        "repetitions = 1\nseed = 1\n[storage]\nimage_size = \"64MiB\"\nimage_directory = \"{}\"\n\
         [axes]\nfilesystem = [\"ext4\"]\n[[axes.workload]]\ntogether = [{members}]\n\
         runtime = \"{runtime}\"\nramp_time = \"0s\"\nalone = \"none\"\n",
        bench.path("images").display()
    ))
}

#[test]
fn a_filesystem_is_filled_and_frozen() {
    if !needs_root("a_filesystem_is_filled_and_frozen") {
        return;
    }
    let bench = Bench::new();
    let fills = r#"{ name = "fills", action = "fill", percent = 60, count = 1 }"#;
    let freezes = r#"{ name = "freezes", action = "freeze", at = "500ms", every = "500ms", hold = "200ms", count = 2 }"#;
    let fails =
        r#"{ name = "fails", action = "run", run = ["false"], every = "500ms", may_fail = true }"#;
    let filled = r#"{ name = "filled", action = "run", run = ["sh", "-c", "df --output=pcent {target} | tail -n 1 >/tmp/NAME"], at = "3500ms", count = 1 }"#;
    let used = bench.path("used");
    let filled = filled.replace("/tmp/NAME", used.to_str().unwrap());
    let members = [LOG, fills, freezes, fails, &filled].join(", ");
    let plan = on_image(&bench, &members, "4s");
    let output = bench.run(&["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let [trial] = &record.trials[..] else { panic!("{}", output.stderr) };
    assert_eq!(trial.outcome, Outcome::Measured, "{:?}", trial.outcome);
    let of = |name: &str| {
        let actions = trial.actions.iter().filter(|it| it.description.starts_with(name));
        actions.map(|it| (it.elapsed.0, it.error.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(of("fills: fill ").len(), 1, "{:?}", trial.actions);
    // The log has 4 MiB.
    let used: u32 =
        fs::read_to_string(&used).unwrap().trim().trim_end_matches('%').parse().unwrap();
    assert!((60..=70).contains(&used), "{used} %");
    let freezes = of("freezes: freeze ");
    assert!(freezes.len() == 2 && freezes.iter().all(|it| it.0 >= 200_000_000), "{freezes:?}");
    assert!(value(trial, "log", Metric::LatencyMax).unwrap() >= 100e6, "writes waited");
    let fails = of("fails: run ");
    assert!(
        fails.len() >= 3 && fails.iter().all(|it| it.1.contains("exit status: 1")),
        "{fails:?}"
    );
    bench.has_nothing_to_undo();
}

#[test]
fn a_directory_of_others_is_neither_filled_nor_frozen() {
    let bench = Bench::new();
    for action in ["fill", "freeze"] {
        let member = format!(r#"{{ name = "a", action = "{action}", count = 1 }}"#);
        let plan = plan(&bench, &format!("together = [{LOG}, {member}]\nalone = \"none\""));
        let output = bench.run(&["run", &plan, "-o", "run.fslab"]);
        let text = format!("the action {action} would affect other users of the filesystem");
        assert!(output.stderr.contains(&text), "{}", output.stderr);
        let _ = fs::remove_file(bench.path("run.fslab"));
    }
}

#[test]
fn a_sparse_image_is_not_filled_beyond_the_space_of_its_directory() {
    if !needs_root("a_sparse_image_is_not_filled_beyond_the_space_of_its_directory") {
        return;
    }
    let bench = Bench::new();
    let fill = r#"{ name = "fills", action = "fill", count = 1 }"#;
    let plan = on_image(&bench, &format!("{LOG}, {fill}"), "1s");
    let free = rustix::fs::statvfs(bench.path("images")).unwrap();
    let size = format!("image_size={}KiB", free.f_bavail * free.f_frsize / 512);
    let words = ["run", &plan, "-o", "run.fslab", "--set", &size, "--set"];
    let sparse = "image_allocation=sparse";
    let output = bench.run(&[&words[..], &[sparse]].concat());
    assert!(output.stderr.contains("the action fill would write about "), "{}", output.stderr);
    bench.has_nothing_to_undo();
}

#[test]
fn a_filesystem_is_thawed_when_the_run_is_killed() {
    if !needs_root("a_filesystem_is_thawed_when_the_run_is_killed") {
        return;
    }
    let bench = Bench::new();
    let freeze = r#"{ name = "freezes", action = "freeze", hold = "10s" }"#;
    let plan = on_image(&bench, &format!("{LOG}, {freeze}"), "20s");
    let mut run = bench.command(&["run", &plan, "-o", "run.fslab"]).spawn().unwrap();
    let freezes = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(&format!("(fsthaw) S {} ", run.id()))
    };
    let limit = Instant::now() + Duration::from_secs(60);
    let child = loop {
        if let Some(pid) = processes("").into_iter().find(|pid| freezes(*pid)) {
            break pid;
        }
        assert!(Instant::now() < limit, "the filesystem is frozen");
        thread::sleep(Duration::from_millis(10));
    };
    run.kill().unwrap();
    let killed = Instant::now();
    run.wait().unwrap();
    while fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name == "fsthaw\n") {
        assert!(killed.elapsed() < Duration::from_secs(5), "the child thaws it at once");
        thread::sleep(Duration::from_millis(10));
    }
    bench.ends(0, &["clean"]);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    bench.has_nothing_to_undo();
}

#[test]
fn two_groups_of_a_trial_have_separate_system_activity() {
    let bench = Bench::new();
    let job = "[global]\nsize=64k\nrw=write\nthread\n[a]\n[b]\n[c]\nstonewall\n[d]\n";
    let entry = format!("suite = \"fio\"\ntext = {job:?}");
    let record = run(&bench, &entry);
    let [trial] = &record.trials[..] else { panic!("{:?}", record.trials) };
    let names = trial.activity.iter().map(|(name, _)| name.as_str());
    let groups: Vec<&str> = names.filter(|name| is_group(name)).collect();
    assert_eq!(groups, [GROUP, "together c d"]);
    assert!(is_later_group_of(groups[1], "d") && !is_later_group_of(groups[0], "a"));
    for phase in ["a", "b", "c", "d"] {
        assert!(value(trial, phase, Metric::Throughput).unwrap() > 0.0, "{phase}");
    }
    assert!(groups.iter().all(|group| value(trial, group, Metric::AttributedCpuTime).is_some()));
}
