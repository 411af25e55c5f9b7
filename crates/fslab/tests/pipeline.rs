//! Complete runs from plan to report on real filesystems.

use std::{collections::BTreeMap, fs};

use crate::support::{Bench, needs_root};

const DIRECTORY: &str = r#"
title = "a directory"
repetitions = 6
aa_control = "none"
seed = 7
[storage]
directory = "."
[axes]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB" }]
"#;

#[test]
fn a_directory_is_measured_without_root() {
    let bench = Bench::new();
    let plan = bench.plan(DIRECTORY);
    let output = bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    assert!(
        output.stdout.contains("run.fslab") && output.stdout.contains("run.html"),
        "{}",
        output.stdout
    );
    let csv = bench.ends(0, &["report", "run.fslab", "--format", "csv"]).stdout;
    for test in [
        "write",
        "rewrite",
        "read",
        "reread",
        "random-read",
        "random-write",
        "backward-read",
        "record-rewrite",
        "strided-read",
        "fwrite",
        "frewrite",
        "fread",
        "freread",
    ] {
        let throughput = |line: &&str| line.contains(&format!(",{test},throughput,"));
        assert_eq!(csv.lines().filter(throughput).count(), 6, "{test} in\n{csv}");
    }
    let mut left: Vec<_> =
        fs::read_dir(bench.path(".")).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["plan.toml", "run.fslab", "run.html", "state"], "the directory is unchanged");
    assert_eq!(
        fs::read_dir(bench.state().join("journal")).unwrap().count(),
        0,
        "no journal is left"
    );
}

#[test]
fn a_report_is_rebuilt_byte_for_byte() {
    let bench = Bench::new();
    let plan = bench.plan(DIRECTORY);
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let first = fs::read(bench.path("run.html")).unwrap();
    bench.ends(0, &["report", "run.fslab", "--html", "again.html"]);
    assert_eq!(first, fs::read(bench.path("again.html")).unwrap());
    let json = bench.ends(0, &["report", "run.fslab", "--format", "json"]).stdout;
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
    assert!(bench.ends(0, &["report", "run.fslab", "--format", "md"]).stdout.contains("| "));
}

#[test]
fn a_report_compares_with_the_previous_run_of_the_plan() {
    let bench = Bench::new();
    let plan = bench.plan(&DIRECTORY.replace("repetitions = 6", "repetitions = 1"));
    let name = store_name(&plan);
    let files = ["1", "2"].map(|run| format!("{name}-{run}.fslab"));
    for file in &files {
        bench.ends(0, &["run", &plan, "-q", "-o", file]);
    }
    let [first, second] =
        files.map(|file| bench.ends(0, &["report", &file, "--format", "md"]).stdout);
    assert!(!first.contains("Since the last run"), "{first}");
    assert!(second.contains("## Since the last run of this plan"), "{second}");
}

/// Name of a plan file, as stored with its runs.
fn store_name(plan: &str) -> &str {
    std::path::Path::new(plan).file_stem().unwrap().to_str().unwrap()
}

#[test]
fn system_activity_is_stored_with_the_results() {
    let bench = Bench::new();
    let plan = bench.plan(&DIRECTORY.replace("repetitions = 6", "repetitions = 1"));
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let trial = &record.trials[0];
    let seen: Vec<&str> = trial.activity.iter().map(|(phase, _)| phase.as_str()).collect();
    let measured: Vec<&str> =
        record.cells[0].phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(seen, measured, "every phase of this suite is measured");
    for (phase, activity) in &trial.activity {
        let elapsed = trial
            .samples
            .iter()
            .find(|sample| sample.phase == *phase && sample.metric == model::Metric::LoopTime);
        // The interval of the system activity includes the I/O loop.
        let window = activity.window.seconds() * 1e9;
        assert!(elapsed.is_some_and(|sample| sample.value < window), "{phase}: {activity:?}");
        // Unavailable values are reported once per run.
        for absent in &activity.unavailable {
            let output = record.warnings.iter().filter(|warning| {
                matches!(warning, model::Warning::NotAvailable { what, .. } if *what == absent.what)
            });
            assert_eq!(output.count(), 1, "{}", absent.what);
        }
    }
    assert!(record.environment.get("generator.memory_copy_bytes_per_second").is_some());
}

#[test]
fn workers_of_both_kinds_share_a_barrier() {
    let bench = Bench::new();
    let plan = bench.plan(&DIRECTORY.replace("repetitions = 6", "repetitions = 1").replace(
        "block_size = \"64KiB\"",
        "block_size = \"64KiB\", workers = [2, 3], worker_type = [\"process\", \"thread\"], verify = true, \
         tests = [\"write\", \"read\", \"random\", \"mixed\", \"pwrite\", \"pread\", \"fwrite\"]",
    ));
    bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    let csv = bench.ends(0, &["report", "run.fslab", "--format", "csv"]).stdout;
    let skews = csv.lines().filter(|line| line.contains(",mixed,start_skew,")).count();
    assert_eq!(skews, 4, "one for each of the four cells:\n{csv}");
}

#[test]
fn progress_is_machine_readable() {
    let bench = Bench::new();
    let plan = bench.plan(&DIRECTORY.replace("repetitions = 6", "repetitions = 1"));
    let output = bench.ends(0, &["run", &plan, "--json"]);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in output.stderr.lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        *counts.entry(event["event"].as_str().unwrap().into()).or_default() += 1;
    }
    assert_eq!(counts["run_started"], 1);
    assert_eq!(counts["trial_ended"], 1);
    assert_eq!(counts["phase_ended"], 13);
    assert_eq!(counts["run_ended"], 1);
}

#[test]
fn filesystems_are_created_measured_and_removed() {
    if !needs_root("filesystems_are_created_measured_and_removed") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(
        r#"
repetitions = 2
[storage]
image_size = "320MiB"
memory_limit = "512MiB"
[axes]
filesystem = ["ext2", "ext3", "ext4", "xfs", "btrfs", "reiserfs",
              { name = "ext4-writeback", type = "ext4", mount_options = "data=writeback,commit=60" }]
workload = [{ suite = "iozone", file_size = "4MiB", block_size = "64KiB", verify = true }]
"#,
    );
    let output = bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    assert!(output.stderr.contains("skipped reiserfs"), "{}", output.stderr);
    assert!(output.stdout.contains("reiserfs"), "a skipped cell is shown:\n{}", output.stdout);
    let csv = bench.ends(0, &["report", "run.fslab", "--format", "csv"]).stdout;
    for filesystem in ["ext2", "ext3", "ext4", "ext4-writeback", "xfs", "btrfs"] {
        for step in ["mkfs", "mount", "umount", "fsck"] {
            let lines = csv.lines().filter(|line| {
                line.contains(&format!("{filesystem},"))
                    && line.contains(&format!(",{step},elapsed,"))
            });
            assert!(lines.count() >= 2, "{filesystem} {step} in\n{csv}");
        }
    }
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    bench.has_nothing_to_undo();
}

#[test]
fn a_signal_undoes_and_the_run_is_resumed() {
    if !needs_root("a_signal_undoes_and_the_run_is_resumed") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(
        r#"
repetitions = 3
[storage]
image_size = "64MiB"
[axes]
filesystem = ["ext2", "ext4"]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB" }]
"#,
    );
    let mut command = bench.command(&["run", &plan, "-o", "run.fslab", "--json"]);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    // The signal is sent when the first trial has ended.
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(stderr);
    assert!(lines.any(|line| line.unwrap().contains("trial_ended")), "a trial ends");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    bench.has_nothing_to_undo();
    bench.ends(0, &["run", "--resume", "run.fslab"]);
    let csv = bench.ends(0, &["report", "run.fslab", "--format", "csv"]).stdout;
    let writes = csv.lines().filter(|line| line.contains(",write,throughput,")).count();
    assert_eq!(writes, 6, "2 cells, 3 repetitions:\n{csv}");
}

/// A terminal signals a process group. Here a program of the trial signals its process group, which
/// includes fslab.
#[test]
fn a_signal_to_the_process_group_fails_no_trial() {
    use std::os::unix::process::CommandExt as _;

    if !needs_root("a_signal_to_the_process_group_fails_no_trial") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(
        r#"
repetitions = 1
[storage]
image_size = "64MiB"
[axes]
filesystem = [{ name = "ext2", setup = [{ run_unmounted = ["sh", "-c", "kill -HUP 0"] }] }]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB" }]
"#,
    );
    // fslab may notice the signal or the failed program first.
    for round in 0..5 {
        let run = format!("run-{round}.fslab");
        let mut command = bench.command(&["run", &plan, "-o", &run]);
        let ended = command.process_group(0).output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{ended:?}");
        assert!(store::read(&bench.path(&run)).unwrap().trials.is_empty());
    }
}

#[test]
fn empty_devices_are_accepted_and_others_rejected() {
    if !needs_root("empty_devices_are_accepted_and_others_rejected") {
        return;
    }
    let bench = Bench::new();
    let disk = bench.disk("disk.img", 64 << 20);
    let plan = bench.plan(&format!(
        "repetitions = 3\naa_control = \"none\"\n[storage]\ndevice = \"{}\"\n[axes]\n\
         filesystem = [\"ext4\"]\n\
         workload = [{{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }}]\n",
        disk.path()
    ));
    let name = bench.path("disk.img").display().to_string();
    bench.ends(0, &["run", &plan, "-o", "first.fslab", "--pilot"]);
    // The device contains the filesystem of the last trial.
    let output = bench.ends(3, &["run", "--resume", "first.fslab"]);
    assert!(output.stderr.contains("--overwrite-device"), "{}", output.stderr);
    bench.ends(0, &["run", "--resume", "first.fslab", "--overwrite-device", &name]);
    let output = bench.ends(3, &["run", &plan, "-o", "second.fslab"]);
    assert!(
        output.stderr.contains("ext4") && output.stderr.contains("--overwrite-device"),
        "{}",
        output.stderr
    );
    assert!(!bench.path("second.fslab").exists(), "no partial change");
    let output =
        bench.ends(3, &["run", &plan, "-o", "third.fslab", "--overwrite-device", disk.path()]);
    assert!(
        output.stderr.contains("--overwrite-device"),
        "a path is not an identifier: {}",
        output.stderr
    );
    bench.ends(0, &["run", &plan, "-o", "fourth.fslab", "--overwrite-device", &name]);
}

#[test]
fn two_images_make_one_filesystem() {
    if !needs_root("two_images_make_one_filesystem") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(
        "repetitions = 1\n[storage]\nimage_size = \"128MiB\"\nimage_count = 2\n[axes]\n\
         filesystem = [\"btrfs\", \"ext4\"]\n\
         workload = [{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }]\n",
    );
    let output = bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    assert!(
        output.stderr.contains("skipped ext4: `ext4` supports one device only"),
        "{}",
        output.stderr
    );
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let spans = |what: &str| what.contains("mkfs.btrfs") && what.matches("/dev/loop").count() == 2;
    let mut actions = record.trials[0].actions.iter();
    assert!(actions.any(|action| spans(&action.description)), "both devices are given to mkfs");
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}

#[test]
fn a_single_device_and_an_array_of_two_are_compared() {
    if !needs_root("a_single_device_and_an_array_of_two_are_compared") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(
        "repetitions = 1\n[storage]\nimage_size = \"160MiB\"\nimage_count = 2\n[axes]\nfilesystem = [\n\
         { name = \"ext4\", device_count = 1 },\n\
         { name = \"btrfs-raid0\", type = \"btrfs\", mkfs_options = [\"-d\", \"raid0\", \"-m\", \"raid0\"] },\n\
         { name = \"btrfs-3\", type = \"btrfs\", device_count = 3 },\n\
         { name = \"ext4-md\", type = \"ext4\", layers = [{ md = \"raid6\" }] }]\n\
         workload = [{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }]\n",
    );
    let shown = bench.ends(0, &["show", &plan]).stdout;
    for line in [
        "  on 1 of 2 devices: /dev/loop·0",
        "  on 2 of 2 devices: /dev/loop·0 /dev/loop·1",
        "btrfs-3  skipped: `btrfs-3` requires 3 devices, but the storage has 2",
        "320MiB on disk, 2 images of 160MiB",
    ] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
    let output = bench.ends(0, &["run", &plan, "-o", "run.fslab"]);
    assert!(output.stderr.contains("skipped btrfs-3: "), "{}", output.stderr);
    // A driver, a program, or two more devices are missing.
    assert!(output.stderr.contains("skipped ext4-md: "), "{}", output.stderr);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let mut spans: Vec<(usize, String)> = Vec::new();
    for trial in &record.trials {
        let of = |action: &model::record::Action| {
            let what = &action.description;
            what.starts_with("mkfs.").then(|| what.matches("/dev/loop").count())
        };
        let devices = trial.actions.iter().find_map(of).unwrap();
        let profile = trial.environment.get("filesystem.data_profile");
        spans.push((devices, profile.unwrap_or("none").to_owned()));
    }
    spans.sort();
    assert_eq!(spans, [(1, "none".into()), (2, "raid0".into())]);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}

#[test]
fn an_ordinary_user_gets_a_result() {
    if !needs_root("an_ordinary_user_gets_a_result") {
        return;
    }
    // Root runs the program under another user ID.
    let bench = Bench::new();
    std::os::unix::fs::chown(bench.path("."), Some(65534), Some(65534)).unwrap();
    let binary = bench.path("fslab");
    fs::copy(env!("CARGO_BIN_EXE_fslab"), &binary).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&binary);
        command.args(arguments).current_dir(bench.path("."));
        command.env("HOME", bench.path(".")).env_remove("XDG_STATE_HOME");
        // Without programs in `PATH` there is no guest, so the demo uses none.
        command.env("PATH", "/nonexistent").env_remove("XDG_CACHE_HOME");
        std::os::unix::process::CommandExt::uid(&mut command, 65534);
        std::os::unix::process::CommandExt::gid(&mut command, 65534);
        crate::support::finished(command.output().unwrap())
    };
    let small = ["--set", "repetitions=1", "--set", "file_size=2MiB", "-o", "run.fslab"];
    let output = run(&[&["run", "demo-directory"], &small[..]].concat());
    assert_eq!(output.status, Some(0), "{}\n{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("mail-delivery"), "{}", output.stdout);
    assert!(bench.path("run.fslab").exists() && bench.path("run.html").exists());
    // Only the first messages are tested, because the demo takes minutes.
    let output = run(&["demo", "-o", "/proc/nothing/run.fslab"]);
    assert_eq!(output.status, Some(2), "{}", output.stderr);
    assert!(
        output.stderr.contains("not root") && output.stderr.contains("sudo"),
        "{}",
        output.stderr
    );
}

#[test]
fn builtin_plans_run_at_a_small_scale() {
    if !needs_root("builtin_plans_run_at_a_small_scale") {
        return;
    }
    let bench = Bench::new();
    let small = "--set repetitions=1 --set image_size=320MiB --set filesystem=ext4,xfs,reiser4";
    let study =
        "--set file_size=1MiB --set block_size=4KiB,8KiB,16KiB,32KiB --set memory_limit=256MiB";
    let tasks = "--set files=20 --set source_files=40 --set large_file_size=1MiB --set split_file_size=64KiB \
                 --set memory_limit=256MiB";
    let plans = [("demo", "--set file_size=1MiB"), ("iozone-2009", study), ("tasks-2006", tasks)];
    for (plan, more) in plans {
        let output = format!("{plan}.fslab");
        let line = format!("run {plan} -o {output} {small} {more}");
        bench.ends(0, &line.split_whitespace().collect::<Vec<_>>());
        let record = store::read(&bench.path(&output)).unwrap();
        assert!(
            record.trials.iter().all(|trial| trial.outcome == model::record::Outcome::Measured)
        );
    }
    let page = fs::read_to_string(bench.path("iozone-2009.html")).unwrap();
    for table in 1..=12 {
        // Tables 10 and 12 are those of btrfs, which is skipped.
        let there = page.contains(&format!("Table {table}."));
        assert_eq!(there, ![10, 12].contains(&table), "table {table}");
    }
}
