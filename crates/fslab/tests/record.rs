//! `fslab record`, `fslab trace`, and suite `replay`.
#![cfg(target_arch = "x86_64")]

use std::fs;

use serde_json::Value;

use crate::support::Bench;

/// Bench with a directory to record in and one to measure.
fn bench() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("root")).unwrap();
    fs::create_dir(bench.path("data")).unwrap();
    bench
}

const SCRIPT: &str = "echo one > root/a; mv root/a root/b; cat root/b; exit 7";

#[test]
fn the_exit_status_of_a_recorded_program_is_returned() {
    let bench = bench();
    let words = ["record", "-o", "r.fstrace", "--root", "root", "--", "sh", "-c", SCRIPT];
    let output = bench.ends(7, &words);
    assert_eq!(output.stdout, "one\n");
    assert!(output.stderr.contains("operations into r.fstrace"), "{}", output.stderr);
    // An existing file is not replaced, and the program does not run.
    let output = bench.ends(2, &words);
    assert!(output.stdout.is_empty() && output.stderr.contains("r.fstrace already exists"));
    let shown = bench.ends(0, &["trace", "show", "r.fstrace"]).stdout;
    for text in ["exit status 7", "rename", "4.00 B written", "tasks"] {
        assert!(shown.contains(text), "{text} is not in {shown}");
    }
    let checked = bench.ends(0, &["trace", "check", "r.fstrace"]).stdout;
    assert!(checked.contains("workers"), "{checked}");
    let dumped = bench.ends(0, &["trace", "dump", "r.fstrace"]).stdout;
    let lines: Vec<Value> =
        dumped.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let renames: Vec<_> = lines.iter().filter(|line| line["call"] == "rename").collect();
    assert_eq!(renames.len(), 1);
    assert_eq!((&renames[0]["path"], &renames[0]["path2"]), (&"a".into(), &"b".into()));
}

#[test]
fn a_program_without_operations_below_the_root_is_reported() {
    let bench = bench();
    let output = bench.ends(0, &["record", "-o", "r.fstrace", "--root", "root", "true"]);
    assert!(output.stderr.contains("set --root to the directory"), "{}", output.stderr);
    let output = bench.ends(2, &["record", "-o", "x.fstrace", "--root", "none", "true"]);
    assert!(output.stderr.contains("set --root to a directory"), "{}", output.stderr);
    let output = bench.ends(2, &["record", "-o", "x.fstrace", "./no-program"]);
    assert!(output.stderr.contains("cannot start ./no-program"), "{}", output.stderr);
    assert!(!bench.path("x.fstrace").exists());
    let output = bench.ends(2, &["trace", "show", "data"]);
    assert!(output.stderr.contains("check the path"), "{}", output.stderr);
}

#[test]
fn a_recording_is_replayed_in_a_directory() {
    let bench = bench();
    bench.ends(7, &["record", "-o", "r.fstrace", "--root", "root", "sh", "-c", SCRIPT]);
    let replay = ["bench", "replay", "data", "--json", "--set", "trace=r.fstrace"];
    let output = bench.ends(0, &replay);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let tests = json["workloads"][0]["tests"].as_array().unwrap();
    assert_eq!(tests[0]["name"], "replay");
    let metrics = &tests[0]["results"][0]["metrics"];
    assert!(metrics["elapsed"]["median"].as_f64().unwrap() > 0.0, "{metrics}");
    assert!(!output.stdout.contains("unexpected-status"), "{}", output.stdout);
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0);
}

#[test]
fn a_plan_rejects_other_recordings() {
    let bench = bench();
    bench.ends(7, &["record", "-o", "r.fstrace", "--root", "root", "sh", "-c", SCRIPT]);
    let plan = |rest: &str| {
        format!(
            "[storage]\nimage_size = \"300MiB\"\n[axes]\nfilesystem = [\"ext4\"]\n\
             workload = [{{ suite = \"replay\"{rest} }}]\n"
        )
    };
    let shown = bench.ends(0, &["show", &bench.plan(&plan(", trace = \"r.fstrace\""))]).stdout;
    assert!(shown.contains("replay"), "{shown}");
    let digest = "0".repeat(64);
    for (rest, expected) in [
        (String::new(), "`trace` is not set"),
        (", trace = \"none.fstrace\"".to_owned(), "the recording none.fstrace"),
        (format!(", trace = \"r.fstrace\", sha256 = \"{digest}\""), "its SHA-256 is"),
        (", trace = \"data\"".to_owned(), "the recording data"),
    ] {
        let output = bench.ends(2, &["show", &bench.plan(&plan(&rest))]);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
    fs::write(bench.path("r.fstrace"), "damaged").unwrap();
    let output = bench.ends(2, &["show", &bench.plan(&plan(", trace = \"r.fstrace\""))]);
    assert!(output.stderr.contains("not a recording"), "{}", output.stderr);
}
