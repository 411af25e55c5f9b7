//! `fslab compare` of run files.

use std::fs;

use model::Nanos;
use store::Store;

use crate::support::Bench;

const PLAN: &str = r#"
title = "small"
repetitions = 1
[storage]
directory = "data"
[axes]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = ["64KiB", "256KiB"], tests = ["write"] }]
"#;

/// Two runs of a plan, the second one with overrides.
fn two(settings: &[&str]) -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    let plan = bench.plan(PLAN);
    bench.ends(0, &["run", &plan, "-q", "-o", "a.fslab"]);
    bench.ends(0, &[&["run", &plan, "-q", "-o", "b.fslab"], settings].concat());
    bench
}

#[test]
fn two_runs_under_the_same_conditions_are_a_repetition() {
    let bench = two(&[]);
    let compare = ["compare", "a.fslab", "b.fslab"];
    let output = bench.ends(0, &compare);
    let joined = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "No condition is known to differ",
        "repetition under the same conditions",
        "directory · iozone block_size=64KiB",
        "? inconclusive",
        "n = 1 and 1, 6 needed",
    ] {
        assert!(joined.contains(words), "{words} is missing from\n{}", output.stdout);
    }
    assert!(!output.stdout.contains("Cells only in"), "{}", output.stdout);
    // With one repetition each, the gate is inconclusive.
    let output = bench.ends(6, &[&compare[..], &["--gate", "5%"]].concat());
    let words = "gate 5 %: inconclusive; 0 of 4 tests non-inferior, 4 inconclusive";
    assert!(output.stdout.contains(words), "{}", output.stdout);
    let output = bench.ends(2, &["compare", "a.fslab", "a.fslab", "--gate", "5%"]);
    assert!(output.stderr.contains("a.fslab and a.fslab: both runs are "), "{}", output.stderr);
}

#[test]
fn differences_are_printed_in_eighty_columns_and_as_json() {
    let bench = two(&["--profile", "rigorous", "--set", "block_size=64KiB,128KiB"]);
    let compare = ["compare", "a.fslab", "b.fslab"];
    let text = bench.ends(0, &compare).stdout;
    for words in ["run.profile", "rigorous", "block_size=128KiB", "Cells only in the first run"] {
        assert!(text.contains(words), "{words} is missing from\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json = bench.ends(0, &[&compare[..], &["--format", "json"]].concat()).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let step = &json["steps"][0];
    assert_eq!(json["schema"], 1);
    assert_eq!(step["cells"]["shared"].as_array().unwrap().len(), 1);
    assert_eq!(step["cells"]["only_b"][0]["cell"], "directory · iozone block_size=128KiB");
    let profile = |difference: &&serde_json::Value| difference["condition"] == "run.profile";
    let profile = step["differences"].as_array().unwrap().iter().find(profile).unwrap();
    assert_eq!(profile["severity"], "other");
    assert_eq!((&profile["a"], &profile["b"]), (&"standard".into(), &"rigorous".into()));
    let md = bench.ends(0, &[&compare[..], &["--format", "md"]].concat()).stdout;
    assert!(md.contains("- run.profile (other): standard -> rigorous"), "{md}");
    bench.ends(0, &[&compare[..], &["--html", "c.html"]].concat());
    let page = fs::read_to_string(bench.path("c.html")).unwrap();
    assert!(page.contains("<p class=\"headline\">Inconclusive in 2 of 2 tests"), "{page}");
    bench.ends(2, &[&compare[..], &["--html", "a.fslab"]].concat());
}

/// Writes a copy of a run file with eight repetitions of generated values, which do not depend on
/// the machine.
fn made_up(bench: &Bench, name: &str, factor: f64) {
    let mut record = store::read(&bench.path("a.fslab")).unwrap();
    record.info.id = format!("made-up-{name}");
    let path = bench.path(name);
    let (cells, environment) = (&record.cells, &record.environment);
    let mut store =
        Store::create(&path, &record.info, cells, environment, &record.warnings).unwrap();
    for repetition in 0..8 {
        for trial in &record.trials {
            let mut trial = trial.clone();
            trial.repetition = repetition;
            trial.warnings.clear();
            for sample in &mut trial.samples {
                sample.value = 1e8 * factor * (1.0 + 0.002 * f64::from(repetition));
            }
            store.trial(&trial, None).unwrap();
        }
    }
    store.finish(Nanos(1)).unwrap();
}

#[test]
fn the_gate_determines_the_exit_status() {
    let bench = two(&[]);
    made_up(&bench, "fast.fslab", 1.0);
    made_up(&bench, "slow.fslab", 0.8);
    let gate = |runs: &[&str], status: i32, words: &[&str]| {
        let arguments = [&["compare"], runs, &["--gate", "5%"]].concat();
        let output = bench.ends(status, &arguments);
        let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in words {
            assert!(text.contains(words), "{words} is missing from\n{}", output.stdout);
        }
        let columns = output.stdout.lines().map(|line| line.chars().count()).max();
        assert!(columns <= Some(80), "{}", output.stdout);
    };
    let regressed =
        "throughput of directory, iozone block_size=64KiB, write regressed by 20.0 % [19.";
    let failed = "gate 5 %: failed; 4 of 4 tests significantly worse by more than 5 %";
    gate(&["fast.fslab", "slow.fslab"], 1, &[regressed, failed, "▼ worse"]);
    let passed = "gate 5 %: passed; 4 of 4 tests non-inferior, 0 inconclusive";
    gate(&["slow.fslab", "fast.fslab"], 0, &["improved by 25.0 %", passed]);
    let strict = "gate 5 %, strict: passed; 4 of 4";
    gate(&["slow.fslab", "fast.fslab", "--strict"], 0, &[strict]);
    let three = ["slow.fslab", "fast.fslab", "slow.fslab"];
    gate(&three, 1, &["C vs. B", "4 of 8 tests significantly worse"]);
}

#[test]
fn other_files_are_a_usage_error() {
    let bench = two(&[]);
    fs::write(bench.path("text"), "not a run").unwrap();
    for arguments in [
        &["compare", "a.fslab"][..],
        &["compare", "a.fslab", "none"],
        &["compare", "text", "a.fslab"],
        &["compare", "a.fslab", "b.fslab", "--gate", "5"],
        &["compare", "a.fslab", "b.fslab", "--strict"],
        &["compare", "a.fslab", "b.fslab", "--allow-differences", "weather"],
        &["compare", "a.fslab", "b.fslab", "--metric", "speed"],
        &["compare", "a.fslab", "b.fslab", "--pair", "ext4=xfs"],
    ] {
        let output = bench.ends(2, arguments);
        assert_eq!(output.stdout, "");
    }
}
