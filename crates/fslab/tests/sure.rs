//! What a run does to be sure, from the command line: twins, the pilot, the budget.

use crate::support::Bench;

const PLAN: &str = r#"
title = "a directory"
repeats = 6
seed = 7
invalid = "keep"
[storage]
directory = "."
[axes]
workload = [{ suite = "iozone", file = "1MiB", record = ["4KiB", "64KiB"], tests = ["write", "read"] }]
"#;

#[test]
fn a_plan_says_beforehand_how_many_trials_and_twins_it_has() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let said = bench.ends(0, &["show", &plan]).stdout;
    assert!(said.contains("2 cells, 2 of them usable here, 8 results, and 1 twin"), "{said}");
    assert!(said.contains("\n18 trials\n"), "{said}");
    let adaptive = bench.plan(&PLAN.replace("repeats = 6", "profile = \"rigorous\""));
    let said = bench.ends(0, &["show", &adaptive, "--set", "budget=2h"]).stdout;
    assert!(said.contains("and 2 twins"), "{said}");
    assert!(said.contains("\n40 to 200 trials, fewer where the budget ends the run\n"), "{said}");
    let timed = "workload = [\"randread-4k\"]";
    let plan = PLAN.lines().filter(|line| !line.starts_with("workload"));
    let timed = bench.plan(&format!("{}\n{timed}\n", plan.collect::<Vec<_>>().join("\n")));
    let said = bench.run(&["show", &timed]);
    assert!(said.stdout.contains("at the least, in phases that are bound by time"), "{said:?}");
}

#[test]
fn a_pilot_is_gone_on_with() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let said = bench.ends(0, &["run", &plan, "--pilot", "-o", "run.fslab"]);
    assert!(said.stderr.contains("forecast: 18 trials, about "), "{}", said.stderr);
    assert!(said.stderr.contains("smallest difference that can be told: "), "{}", said.stderr);
    assert!(said.stderr.contains("Go on with: fslab run --resume run.fslab"), "{}", said.stderr);
    assert!(said.stderr.contains("directory (twin) · iozone record="), "{}", said.stderr);
    assert!(!bench.path("run.html").exists(), "there is nothing to report yet");
    assert_eq!(store::read(&bench.path("run.fslab")).unwrap().trials.len(), 6);
    bench.ends(0, &["run", "--resume", "run.fslab", "-q"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(record.trials.len(), 18);
    let twins: Vec<_> = record.cells.iter().filter(|cell| cell.cell.twin).collect();
    assert_eq!(twins.len(), 1);
    assert_eq!(twins[0].label, record.cells[0].label);
}

#[test]
fn a_budget_ends_a_run_in_good_order() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let said = bench.ends(0, &["run", &plan, "--set", "budget=1ms", "-o", "run.fslab"]);
    assert!(said.stderr.contains("1 trial in "), "{}", said.stderr);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(record.trials.len(), 1, "the first trial is made in any case");
    assert!(record.info.ended_unix.is_some());
    let unmeasured = record.cells.iter().filter(|cell| {
        matches!(&cell.state, model::record::CellState::Skipped { reason }
            if reason.starts_with("the time for the run was used up"))
    });
    assert_eq!(unmeasured.count(), 2);
    let said = bench.ends(0, &["run", "--resume", "run.fslab"]);
    assert!(said.stderr.contains("nothing is left to do"), "{}", said.stderr);
}

#[test]
fn a_program_reads_the_forecast() {
    let bench = Bench::new();
    let plan = bench.plan(PLAN);
    let said = bench.ends(0, &["run", &plan, "--pilot", "--json"]);
    let events: Vec<serde_json::Value> =
        said.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |kind: &str| {
        let kind = kind.to_owned();
        events.iter().filter(move |event| event["event"] == kind.as_str())
    };
    let [forecast] = of("forecast").collect::<Vec<_>>()[..] else { panic!("{}", said.stderr) };
    assert_eq!(forecast["trials_most"], 18);
    assert_eq!(forecast["cells"].as_array().unwrap().len(), 2);
    assert_eq!(of("trial_ended").filter(|event| event["twin"] == true).count(), 2);
    assert_eq!(of("run_ended").next().unwrap()["invalid_trials"], 0);
}
