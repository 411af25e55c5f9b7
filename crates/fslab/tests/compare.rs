//! What differed between two runs, from their files alone.

use std::fs;

use crate::support::Bench;

const PLAN: &str = r#"
title = "small"
repeats = 1
[storage]
directory = "data"
[axes]
workload = [{ suite = "iozone", file = "1MiB", record = ["64KiB", "256KiB"], tests = ["write"] }]
"#;

/// Two runs of one plan, the second with settings on top.
fn two(settings: &[&str]) -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    let plan = bench.plan(PLAN);
    bench.ends(0, &["run", &plan, "-q", "-o", "a.fslab"]);
    bench.ends(0, &[&["run", &plan, "-q", "-o", "b.fslab"], settings].concat());
    bench
}

#[test]
fn two_runs_under_the_same_conditions_are_the_same() {
    let bench = two(&[]);
    let said = bench.ends(0, &["compare", "a.fslab", "b.fslab"]);
    assert!(said.stdout.contains("No condition is known to differ"), "{}", said.stdout);
    assert!(said.stdout.contains("directory · iozone record=64KiB"), "{}", said.stdout);
    assert!(!said.stdout.contains("alone"), "{}", said.stdout);
}

#[test]
fn differences_are_told_within_eighty_columns_and_to_programs() {
    let bench = two(&["--profile", "rigorous", "--set", "record=64KiB,128KiB"]);
    let compare = ["compare", "a.fslab", "b.fslab"];
    let text = bench.ends(0, &compare).stdout;
    for words in ["Severe", "run.profile", "rigorous", "record=128KiB", "Cells of A alone"] {
        assert!(text.contains(words), "{words} is missing from\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json = bench.ends(0, &[&compare[..], &["--format", "json"]].concat()).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["cells"]["shared"].as_array().unwrap().len(), 1);
    assert_eq!(json["cells"]["only_b"][0], "directory · iozone record=128KiB");
    let profile = |difference: &&serde_json::Value| difference["condition"] == "run.profile";
    let profile = json["differences"].as_array().unwrap().iter().find(profile).unwrap();
    assert_eq!(profile["severity"], "severe");
    assert_eq!((&profile["a"], &profile["b"]), (&"standard".into(), &"rigorous".into()));
    let md = bench.ends(0, &[&compare[..], &["--format", "md"]].concat()).stdout;
    assert!(md.contains("| run.profile | severe | standard | rigorous |"), "{md}");
}

#[test]
fn what_is_no_run_is_wrong_usage() {
    let bench = two(&[]);
    fs::write(bench.path("text"), "not a run").unwrap();
    for arguments in [
        &["compare", "a.fslab"][..],
        &["compare", "a.fslab", "none"],
        &["compare", "text", "a.fslab"],
    ] {
        let said = bench.ends(2, arguments);
        assert_eq!(said.stdout, "");
    }
}
