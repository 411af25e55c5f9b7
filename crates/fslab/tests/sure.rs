//! Options for precision: A/A control, pilot run, and time limit.

use crate::support::Bench;

const PLAN: &str = r#"
title = "a directory"
repetitions = 6
seed = 7
invalid_trials = "keep"
[storage]
directory = "."
[axes]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = ["4KiB", "64KiB"], tests = ["write", "read"] }]
"#;

#[test]
fn show_estimates_trials_and_aa_duplicates() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let output = bench.ends(0, &["show", &plan]).stdout;
    assert!(
        output.contains("2 cells, 2 of them available here, 8 results, and 1 A/A duplicate"),
        "{output}"
    );
    assert!(output.contains("\n18 trials\n"), "{output}");
    let adaptive = bench.plan(&PLAN.replace("repetitions = 6", "profile = \"rigorous\""));
    let output = bench.ends(0, &["show", &adaptive, "--set", "time_limit=2h"]).stdout;
    assert!(output.contains("and 2 A/A duplicates"), "{output}");
    assert!(output.contains("\n40 to 200 trials, fewer if the time limit expires\n"), "{output}");
    let timed = "workload = [\"randread-4k\"]";
    let plan = PLAN.lines().filter(|line| !line.starts_with("workload"));
    let timed = bench.plan(&format!("{}\n{timed}\n", plan.collect::<Vec<_>>().join("\n")));
    let output = bench.run(&["show", &timed]);
    assert!(output.stdout.contains("in phases limited by time"), "{output:?}");
}

#[test]
fn show_prints_the_programs_of_setup_in_advance() {
    let bench = Bench::new();
    let plan = bench.plan(
        r#"
[storage]
image_size = "64MiB"
[axes]
filesystem = [{ name = "ext2", setup = [{ run_unmounted = ["sh", "-c", "touch /var/tmp/x", "{device}"] }] }]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB" }]
"#,
    );
    let shown = bench.ends(0, &["show", &plan]).stdout;
    assert!(shown.contains("$ sh -c touch /var/tmp/x /dev/loop"), "{shown}");
}

#[test]
fn show_prints_the_disks_of_guests() {
    let bench = Bench::new();
    let plan = bench.plan(
        r#"
guest = "icount"
[storage]
image_size = "320MiB"
[axes]
filesystem = ["ext4", "xfs"]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB" }]
"#,
    );
    // The kernel of the guest, not the running kernel, determines the supported filesystems.
    for more in [&[][..], &["--kernel", "linux-image-6.1.deb"]] {
        let shown = bench.ends(0, &[&["show", &plan], more].concat()).stdout;
        for wrong in ["loop", "/var/tmp", "on disk", "--guest", "the running kernel"] {
            assert!(!shown.contains(wrong), "{wrong}: {shown}");
        }
        let kernel = more.last().unwrap_or(&"the newest one available");
        assert!(shown.contains(&format!("kernel      {kernel}\n")), "{shown}");
        if !shown.contains("REJECTED") {
            assert!(shown.contains("storage     a 320MiB disk (null_blk, "), "{shown}");
            assert!(shown.contains("320MiB in the memory of each guest"), "{shown}");
            assert!(shown.contains(" /dev/nullb0"), "{shown}");
        }
    }
}

#[test]
fn a_pilot_is_resumed() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let output = bench.ends(0, &["run", &plan, "--pilot", "-o", "run.fslab"]);
    assert!(output.stderr.contains("forecast: 18 trials, about "), "{}", output.stderr);
    assert!(output.stderr.contains("detectable difference: "), "{}", output.stderr);
    assert!(
        output.stderr.contains("continue with: fslab run --resume run.fslab"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("directory (A/A duplicate) · iozone block_size="),
        "{}",
        output.stderr
    );
    assert!(!bench.path("run.html").exists(), "there is nothing to report yet");
    assert_eq!(store::read(&bench.path("run.fslab")).unwrap().trials.len(), 6);
    bench.ends(0, &["run", "--resume", "run.fslab", "-q"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(record.trials.len(), 18);
    let aa_duplicates: Vec<_> = record.cells.iter().filter(|cell| cell.cell.aa_duplicate).collect();
    assert_eq!(aa_duplicates.len(), 1);
    assert_eq!(aa_duplicates[0].label, record.cells[0].label);
}

#[test]
fn the_time_limit_ends_a_run_normally() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let output = bench.ends(0, &["run", &plan, "--set", "time_limit=1ms", "-o", "run.fslab"]);
    assert!(output.stderr.contains("1 trial in "), "{}", output.stderr);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(record.trials.len(), 1, "the first trial always runs");
    assert!(record.info.ended_unix.is_some());
    let unmeasured = record.cells.iter().filter(|cell| {
        matches!(&cell.state, model::record::CellState::Skipped { reason }
            if reason.starts_with("the run reached its time limit before the first trial"))
    });
    assert_eq!(unmeasured.count(), 2);
    let output = bench.ends(0, &["run", "--resume", "run.fslab"]);
    assert!(output.stderr.contains("nothing is left to do"), "{}", output.stderr);
}

#[test]
fn the_forecast_is_machine_readable() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let output = bench.ends(0, &["run", &plan, "--pilot", "--json"]);
    let events: Vec<serde_json::Value> =
        output.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |kind: &str| {
        let kind = kind.to_owned();
        events.iter().filter(move |event| event["event"] == kind.as_str())
    };
    let [forecast] = of("forecast").collect::<Vec<_>>()[..] else { panic!("{}", output.stderr) };
    assert_eq!(forecast["trials_max"], 18);
    assert_eq!(forecast["cells"].as_array().unwrap().len(), 2);
    assert_eq!(of("trial_ended").filter(|event| event["aa_duplicate"] == true).count(), 2);
    assert_eq!(of("run_ended").next().unwrap()["invalid_trials"], 0);
}
