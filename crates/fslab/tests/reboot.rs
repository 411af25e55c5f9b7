//! Runs with a reboot before each trial. Each session starts the program again, and another boot ID
//! simulates the reboot.

use std::{fs, process::Command};

use model::{RunRecord, Warning};

use crate::support::{BOOT, Bench, Finished, finished, needs_root};

const PLAN: &str = r#"
repetitions = 3
seed = 7
isolation = "reboot"
[storage]
directory = "."
[axes]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB", tests = ["write"] }]
"#;

fn record(bench: &Bench) -> RunRecord {
    store::read(&bench.path("run.fslab")).unwrap()
}

/// Resumes the run with another boot ID, in a separate mount namespace with another file in its
/// place.
fn resumed_after_boot(bench: &Bench, id: &str) -> Finished {
    let file = bench.path("boot-id");
    fs::write(&file, format!("{id}\n")).unwrap();
    let program = bench.command(&[]).get_program().to_owned();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", BOOT, "sh"]);
    command.args([&bench.path("."), &file]).arg(program);
    command.args(["run", "--resume", "run.fslab"]);
    command.current_dir(bench.path(".")).env("FSLAB_STATE", bench.state());
    finished(command.output().unwrap())
}

#[test]
fn a_run_continues_after_each_reboot_and_not_before() {
    if !needs_root("reboot::a_run_continues_after_each_reboot_and_not_before") {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let first = bench.ends(5, &["run", &plan, "-o", "run.fslab"]);
    assert!(first.stderr.contains("--resume"), "{}", first.stderr);
    assert_eq!(record(&bench).trials.len(), 1);
    bench.ends(5, &["run", "--resume", "run.fslab"]);
    assert_eq!(record(&bench).trials.len(), 1, "the machine was not rebooted");
    let second = resumed_after_boot(&bench, "second");
    assert_eq!(second.status, Some(5), "{}", second.stderr);
    assert_eq!(record(&bench).trials.len(), 2);
    let again = resumed_after_boot(&bench, "second");
    assert_eq!((again.status, record(&bench).trials.len()), (Some(5), 2), "{}", again.stderr);
    let third = resumed_after_boot(&bench, "third");
    assert_eq!(third.status, Some(0), "{}", third.stderr);
    let record = record(&bench);
    let boots: Vec<_> =
        record.trials.iter().map(|trial| trial.environment.get("boot.id")).collect();
    assert_eq!(boots, [None, Some("second"), Some("third")], "the first one is that of the run");
    assert_eq!(record.environment.get("isolation"), Some("reboot"));
    assert!(bench.path("run.html").exists());
}

#[test]
fn a_run_without_reboots_warns_at_every_trial_except_the_first() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "--no-reboot"]);
    let warned = |warnings: &[(Option<String>, Warning)]| {
        warnings.iter().any(|(_, warning)| *warning == Warning::NotRebooted)
    };
    let warned: Vec<bool> =
        record(&bench).trials.iter().map(|trial| warned(&trial.warnings)).collect();
    assert_eq!(warned, [false, true, true]);
    let report = bench.ends(0, &["report", "run.fslab", "--detail"]).stdout;
    assert!(report.contains("not-rebooted"), "{report}");
}

#[test]
fn reboot_options_require_a_plan_with_reboots() {
    let bench = Bench::new();
    let plan = bench.plan(&PLAN.replace("isolation = \"reboot\"\n", ""));
    let output = bench.ends(2, &["run", &plan, "--no-reboot"]);
    assert!(output.stderr.contains("isolation = \"reboot\""), "{}", output.stderr);
    let odd = bench.plan(&PLAN.replace("\"reboot\"", "\"rebot\""));
    let output = bench.ends(2, &["show", &odd]);
    assert!(output.stderr.contains("remount, reattach, reboot"), "{}", output.stderr);
}

#[test]
fn a_run_file_in_memory_is_rejected_with_reboots() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let output = bench.ends(2, &["run", &plan, "-o", "/dev/shm/fslab-test-reboot.fslab"]);
    assert!(output.stderr.contains("in memory"), "{}", output.stderr);
}
