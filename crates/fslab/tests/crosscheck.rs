//! `fslab crosscheck` and `fslab export`: the same work by fio.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

use serde_json::Value;

use crate::support::{Bench, Finished, skipped};

/// True if fio is installed. Otherwise the test is skipped.
fn has_fio(test: &str) -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    if !found {
        skipped(&format!("crosscheck::{test}"), "fio");
    }
    found
}

fn bench() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    bench
}

fn json(output: &Finished) -> Value {
    serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr))
}

/// Random reads of 4 KiB with O_DIRECT, one pass.
const READS: [&str; 7] = [
    "crosscheck",
    "stream",
    "data",
    "--file-size=4MiB",
    "--set=access_pattern=random",
    "--set=direct=true",
    "--json",
];

/// fio with other arguments: a directory that only its owner can change, because root runs no
/// program that other users can change.
fn wrapper(name: &str, script: &str) -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn with(bench: &Bench, name: &str, script: &str) -> Finished {
    let path = wrapper(name, script);
    let fio = format!("--with={}", path.display());
    let arguments = [&READS[..], &["--pairs=6", &fio]].concat();
    let finished = bench.run(&arguments);
    fs::remove_file(path).unwrap();
    finished
}

#[test]
fn the_work_of_both_programs_is_the_same() {
    if !has_fio("the_work_of_both_programs_is_the_same") {
        return;
    }
    let bench = bench();
    let workloads: [&[&str]; 5] = [
        &["access_pattern=random", "direct=true"],
        &["direction=write", "overwrite=false", "block_size=64KiB", "fsync_every=4"],
        &["direction=mixed", "access_pattern=permutation", "workers=3", "sharing=segmented"],
        &["direction=write", "block_size_split=4KiB:1,16KiB:1", "access_pattern=random"],
        &["io_engine=preadv2", "workers=2", "worker_type=process"],
    ];
    for settings in workloads {
        let mut arguments = vec!["crosscheck", "stream", "data", "--file-size=4MiB", "--pairs=2"];
        arguments.push("--json");
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let output = bench.run(&arguments);
        let test = &json(&output)["tests"][0];
        assert_eq!(test["pairs"], 2, "{settings:?}: {}", output.stderr);
        assert_eq!(test["different_work"], Value::Array(Vec::new()), "{settings:?}");
        let metrics: Vec<_> =
            test["comparisons"].as_array().unwrap().iter().map(|it| &it["metric"]).collect();
        assert!(metrics.contains(&&Value::from("latency_p50")), "{settings:?}: {metrics:?}");
        // Two pairs have no interval.
        assert_eq!(output.status, Some(6), "{settings:?}");
    }
    assert_eq!(fs::read_dir(bench.path("data")).unwrap().count(), 0);
}

#[test]
fn a_slower_program_is_detected() {
    if !has_fio("a_slower_program_is_detected") {
        return;
    }
    // 1024 operations at 2000 per second take at least half a second.
    let script = "case \"$*\" in *ioengine=null*) ;; *) set -- \"$@\" --rate_iops=2000;; esac\nexec fio \"$@\"";
    let output = with(&bench(), "slow", script);
    let test = &json(&output)["tests"][0];
    let rate = &test["comparisons"][0];
    assert_eq!((&rate["metric"], &rate["verdict"]), (&"throughput".into(), &"different".into()));
    assert!(rate["interval"][0].as_f64().unwrap() > 1.05, "{rate}");
    assert_eq!(output.status, Some(1), "{}", output.stdout);
}

#[test]
fn speeds_of_different_work_are_not_compared() {
    if !has_fio("speeds_of_different_work_are_not_compared") {
        return;
    }
    let output = with(&bench(), "less", "exec fio \"$@\" --number_ios=1000");
    let test = &json(&output)["tests"][0];
    assert_eq!(test["verdict"], "different-work", "{}", output.stdout);
    let first = &test["different_work"][0];
    assert_eq!((&first["quantity"], &first["fio"]), (&"operations".into(), &1000.0.into()));
    assert_eq!(output.status, Some(1));
}

#[test]
fn short_operations_compare_the_load_generators() {
    if !has_fio("short_operations_compare_the_load_generators") {
        return;
    }
    let bench = bench();
    let arguments = ["crosscheck", "stream", "data", "--file-size=4MiB", "--set=cache=warm"];
    let more = ["--set=block_size=512", "--pairs=6", "-o", "run.fslab"];
    let output = bench.ends(6, &[&arguments[..], &more].concat());
    let report = bench.ends(0, &["report", "run.fslab"]);
    for text in [&output.stdout, &report.stdout] {
        assert!(text.contains("bound by the load generators"), "{text}");
    }
    let page = bench.ends(0, &["report", "run.fslab", "--format", "md"]);
    for text in [&output.stdout, &page.stdout] {
        assert!(text.contains("withheld"), "{text}");
    }
}

#[test]
fn work_that_fio_cannot_do_is_refused_before_the_run() {
    if !has_fio("work_that_fio_cannot_do_is_refused_before_the_run") {
        return;
    }
    let bench = bench();
    let stream = |option| vec!["crosscheck", "stream", "data", option];
    for (arguments, status, message) in [
        (stream("--set=access_pattern=backward"), 2, "no such order"),
        (vec!["crosscheck", "metadata", "data"], 2, "suite stream"),
        (stream("--with=/nonexistent/fio"), 3, "/nonexistent/fio does not exist"),
        (stream("--with=nonexistent"), 3, "nonexistent is not installed"),
        (stream("--with=/bin/true"), 3, "not a version of fio"),
    ] {
        let output = bench.run(&arguments);
        assert_eq!(output.status, Some(status), "{}", output.stderr);
        assert!(output.stderr.contains(message), "{arguments:?}: {}", output.stderr);
    }
}

#[test]
fn fio_accepts_exported_jobs() {
    if !has_fio("fio_accepts_exported_jobs") {
        return;
    }
    let bench = bench();
    let presets = suites_of_stream(&bench);
    assert!(presets.len() > 10, "{presets:?}");
    let mut exported = 0;
    for preset in &presets {
        let directory = format!("jobs-{preset}");
        let output = bench.run(&["export", preset, "-o", &directory]);
        if output.status == Some(2) {
            assert!(output.stderr.contains("can be a fio job"), "{preset}: {}", output.stderr);
            continue;
        }
        assert_eq!(output.status, Some(0), "{preset}: {}", output.stderr);
        for job in fs::read_dir(bench.path(&directory)).unwrap() {
            let job = job.unwrap().path();
            let parsed = Command::new("fio").arg("--parse-only").arg(&job).output().unwrap();
            let text = String::from_utf8_lossy(&parsed.stderr);
            assert!(parsed.status.success(), "{preset}: {text}");
            exported += 1;
        }
        let again = bench.run(&["export", preset, "-o", &directory]);
        assert_eq!(again.status, Some(2), "{preset}: existing files are not replaced");
    }
    assert!(exported > 10, "{exported} of {presets:?}");
}

/// Names of the presets of suite stream.
fn suites_of_stream(bench: &Bench) -> Vec<String> {
    let listed = bench.run(&["list", "workloads", "stream"]);
    let names = listed.stdout.lines().filter_map(|line| line.split_whitespace().next());
    let is_name = |name: &&str| {
        !name.is_empty()
            && name.contains('-')
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    names.filter(is_name).map(str::to_owned).collect()
}
