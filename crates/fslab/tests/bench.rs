//! `fslab bench`: output, run file, and usage errors.

use std::fs;

use expect_test::{Expect, expect};

use crate::support::{Bench, finished, on_path, skipped};

const SMALL: [&str; 4] = ["--file-size", "1MiB", "--set", "tests=write,read"];

/// Directory to measure, separate from the state directory.
fn bench() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    bench
}

fn names(bench: &Bench, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(bench.path(directory)).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_workload_is_run_and_leaves_nothing_behind() {
    let bench = bench();
    let output = bench.ends(0, &[&["bench", "iozone", "data"], &SMALL[..]].concat());
    for words in [
        "overrides: file_size 1MiB, tests write,read",
        "n = 1: no confidence interval",
        "durable throughput",
        "accepted throughput",
        "latency, lower is better",
        "load generator",
        "fits-in-memory",
    ] {
        assert!(output.stdout.contains(words), "{words} is missing from\n{}", output.stdout);
    }
    assert!(
        output.stdout.contains("reread") && !output.stdout.contains("run file"),
        "{}",
        output.stdout
    );
    // stderr has one line for the job and one per phase, because it is not a terminal.
    let mut lines = output.stderr.lines();
    let job = lines.next().unwrap_or_default();
    assert!(job.ends_with("; block=64KiB buffered, 1 worker, 1MiB per worker"), "{job}");
    let phases: Vec<_> = lines.filter_map(|line| line.split(':').next()).collect();
    assert_eq!(phases, ["write", "rewrite", "read", "reread"], "{}", output.stderr);
    assert_eq!(names(&bench, "data"), Vec::<String>::new());
    assert_eq!(names(&bench, "."), ["data", "state"]);
    assert_eq!(names(&bench, "state"), ["journal"], "the run file is removed");
    assert_eq!(names(&bench, "state/journal"), Vec::<String>::new());
}

#[test]
fn the_first_line_states_the_job() {
    let bench = bench();
    let small = ["--file-size", "1MiB", "--runtime", "50ms", "--set", "ramp_time=0s"];
    let output = bench.run(&[&["bench", "randread-4k-qd32", "data"], &small[..]].concat());
    // The line is printed even if the machine has no io_uring or direct I/O.
    let first = output.stderr.lines().next().unwrap_or_default();
    assert_eq!(first, "io_uring depth=32 block=4KiB direct random read, 1 worker, 50ms");
}

#[test]
fn a_stored_run_can_be_reported() {
    let bench = bench();
    let arguments =
        [&["bench", "iozone", "data", "-o", "run.fslab", "-q", "--repetitions", "2"], &SMALL[..]];
    let output = bench.ends(0, &arguments.concat());
    assert_eq!(output.stderr, "");
    assert!(
        output.stdout.contains("n = 2") && output.stdout.contains("run.fslab"),
        "{}",
        output.stdout
    );
    assert_eq!(names(&bench, "."), ["data", "run.fslab", "state"]);
    assert!(bench.ends(0, &["report", "run.fslab"]).stdout.contains("reread"));
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(record.trials.len(), 2);
    let trial = &record.trials[0];
    let kinds: Vec<_> = trial.histograms.iter().map(|t| (&*t.phase, t.kind.name())).collect();
    assert_eq!(
        kinds[..4],
        [("write", "all"), ("write", "write"), ("rewrite", "all"), ("rewrite", "write")]
    );
    let series = trial.series.iter().find(|(phase, _)| phase == "read");
    assert_eq!(series.map(|(_, series)| series.bytes.iter().sum()), Some(1u64 << 20));
    let generator = |sample: &&model::Sample| sample.metric == model::Metric::GeneratorOverhead;
    assert_eq!(trial.samples.iter().filter(generator).count(), 4);
    let again = bench.ends(2, &arguments.concat());
    assert!(again.stderr.contains("contains a complete run"), "{}", again.stderr);
}

#[test]
fn json_is_written_to_both_streams() {
    let bench = bench();
    let output = bench.ends(0, &[&["bench", "iozone", "data", "--json"], &SMALL[..]].concat());
    let events: Vec<serde_json::Value> = output
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect();
    assert_eq!(events.iter().filter(|event| event["event"] == "phase_ended").count(), 4);
    let result: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let write = &result["workloads"][0]["tests"][0]["results"][0];
    assert_eq!(write["metrics"]["ops_rate"]["n"], 1);
    assert_eq!(write["metrics"]["generator_overhead"]["unit"], "fraction");
}

#[test]
fn quiet_json_is_alone_on_stdout() {
    let bench = bench();
    let json = |output: &str| serde_json::from_str::<serde_json::Value>(output).expect("JSON");
    let small = [&SMALL[..], &["-q", "--json"]].concat();
    let output = bench.ends(0, &[&["bench", "iozone", "data"], &small[..]].concat());
    assert_eq!(output.stderr, "");
    let schema = json(&output.stdout)["schema"].clone();
    let plan = bench.plan(
        "repetitions = 1\n[storage]\ndirectory = \"data\"\n[axes]\n\
         workload = [{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }]",
    );
    let output = bench.ends(0, &["run", &plan, "-q", "--json", "-o", "run.fslab"]);
    assert_eq!(output.stderr, "");
    let report = bench.ends(0, &["report", "run.fslab", "--format", "json"]);
    assert_eq!(json(&output.stdout), json(&report.stdout));
    assert_eq!(json(&output.stdout)["schema"], schema);
    let output = bench.ends(0, &["run", "--resume", "run.fslab", "-q", "--json"]);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    // Without `-q`, stderr contains the progress.
    let output = bench.ends(0, &["run", &plan, "--json", "-o", "loud.fslab"]);
    assert!(output.stderr.lines().count() > 2);
    output.stderr.lines().for_each(|line| drop(json(line)));
    json(&output.stdout);
}

#[test]
fn several_values_are_all_run() {
    let bench = bench();
    let output = bench.ends(
        0,
        &[
            "bench",
            "iozone",
            "data",
            "-q",
            "--file-size",
            "1MiB",
            "--set",
            "tests=write",
            "--set",
            "block_size=64KiB,256KiB",
            "--set",
            "second_pass=false",
        ],
    );
    assert!(output.stdout.contains("iozone block_size=64KiB, write "), "{}", output.stdout);
    assert!(output.stdout.contains("iozone block_size=256KiB, write "), "{}", output.stdout);
}

/// Runs an invalid command and compares its message. Nothing is changed.
#[track_caller]
fn refused(arguments: &[&str], expected: Expect) {
    let bench = bench();
    fs::write(bench.path("file"), "").unwrap();
    let output = bench.ends(2, &[&["bench"], arguments].concat());
    expected.assert_eq(&output.stderr);
    assert_eq!(output.stdout, "");
    assert_eq!(names(&bench, "data"), Vec::<String>::new());
}

#[test]
fn no_workload_or_an_unknown_one() {
    refused(
        &[],
        expect![[r#"
            error: WORKLOAD and DIRECTORY are missing; use for example `fslab bench randread-4k /srv`; `fslab list workloads` lists all workloads
        "#]],
    );
    refused(
        &["data"],
        expect![[r#"
            error: `data` is a path, but WORKLOAD comes first, such as `fslab bench randread-4k data`; workloads are randread-4k, seqwrite-1m, fsync-4k, oltp-8k, mail-spool, and others (`fslab list workloads`)
        "#]],
    );
    refused(
        &["iozon", "data"],
        expect![[r#"
        error: unknown workload `iozon`; did you mean `iozone`? `fslab list workloads` lists all workloads
    "#]],
    );
    refused(
        &["nothing-like-it", "data"],
        expect![[r#"
        error: unknown workload `nothing-like-it`; `fslab list workloads` lists all workloads
    "#]],
    );
}

#[test]
fn a_missing_or_unusable_directory() {
    refused(
        &["iozone"],
        expect![[r#"
            error: DIRECTORY is missing: the directory to measure; use `fslab bench iozone DIRECTORY`
        "#]],
    );
    refused(
        &["iozone", "nowhere"],
        expect![[r#"
        error: cannot measure nowhere: No such file or directory (os error 2); use an existing directory
    "#]],
    );
    refused(
        &["iozone", "file"],
        expect![[r#"
        error: file is not a directory; use the directory to measure in
    "#]],
    );
    // Even root cannot create a directory in `/proc`.
    refused(
        &["iozone", "/proc"],
        expect![[r#"
        error: cannot write to /proc: No such file or directory (os error 2); use a writable directory
    "#]],
    );
}

#[test]
fn wrong_settings() {
    refused(
        &["iozone", "data", "--runtime", "1s"],
        expect![[r#"
            error: --runtime 1s: suite iozone has no parameter `runtime`; `fslab list suites` lists the parameters
        "#]],
    );
    refused(
        &["iozone", "data", "--file-size", "4MB"],
        expect![[r#"
            error: --file-size 4MB: `4MB` is ambiguous: 4000000 or 4194304 bytes; write `4MiB` for 4194304, or `4000000B`
        "#]],
    );
    refused(
        &["iozone", "data", "--set", "blck_size=4KiB"],
        expect![[r#"
            error: --set blck_size=4KiB: suite iozone has no parameter `blck_size`; did you mean `block_size`? `fslab list suites` lists the parameters
        "#]],
    );
}

#[test]
fn a_file_that_does_not_fit_is_refused() {
    let bench = bench();
    let output = bench.ends(2, &["bench", "iozone", "data", "--file-size", "8PiB"]);
    assert!(output.stderr.contains("plus 12.5 % for metadata"), "{}", output.stderr);
    assert_eq!(names(&bench, "data"), Vec::<String>::new());
}

/// Kills a run. Its files and the crash state remain.
#[test]
fn synced_data_of_a_killed_run_is_verified() {
    use std::{os::unix::fs::MetadataExt, process::Stdio};

    let bench = bench();
    let memory = std::path::Path::new("/dev/shm");
    let device = |path: &std::path::Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    if device(memory).is_none() || device(memory) == device(&bench.path("data")) {
        eprintln!("skipped: no second filesystem for the crash state");
        return;
    }
    let kept = tempfile::TempDir::new_in(memory).unwrap();
    let state = kept.path().join("state").display().to_string();
    let arguments = ["bench", "fsync-4k", "data", "--file-size", "1MiB", "--runtime", "1h", "-q"];
    let mut command = bench.command(&[&arguments[..], &["--crash-state", &state]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let verify = || bench.run(&["verify", &state]);
    let durable = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("durable of these"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    while durable(&verify().stdout).is_none_or(|count| count < 3) {
        assert_eq!(child.try_wait().unwrap(), None, "the run ended before it was killed");
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let output = bench.ends(0, &["verify", &state]);
    assert!(output.stdout.contains("lost                0\n"), "{}", output.stdout);
    let files = crate::support::files(&bench.path("data"));
    let file = files.iter().find(|path| path.ends_with("file.0")).expect("the file under test");
    fs::File::options().write(true).open(file).unwrap().set_len(0).unwrap();
    let output = bench.ends(1, &["verify", &state]);
    assert!(output.stdout.contains("at offset 0: all zeros"), "{}", output.stdout);
    bench.ends(0, &["clean"]);
    assert_eq!(names(&bench, "data"), Vec::<String>::new());

    let inside = bench.path("data/state").display().to_string();
    let output = bench.ends(2, &[&arguments[..], &["--crash-state", &inside]].concat());
    assert!(output.stderr.contains("is on the filesystem under test"), "{}", output.stderr);
    let output = bench.ends(2, &["verify", "data"]);
    assert!(
        output.stderr.contains("cannot read or write the crash state data"),
        "{}",
        output.stderr
    );
}

/// On a terminal of script(1) with 60 columns.
#[test]
fn the_operations_are_wrapped_to_the_terminal() {
    if !on_path("script") {
        return skipped("bench::the_operations_are_wrapped_to_the_terminal", "script");
    }
    let bench = Bench::new();
    let program = env!("CARGO_BIN_EXE_fslab");
    let line = format!(
        "stty rows 24 cols 60; {program} bench fsync-4k . --file-size 1MiB --runtime 100ms"
    );
    let terminal = bench.other("script").args(["-qec", &line, "/dev/null"]).output();
    let output = finished(terminal.unwrap());
    let mut lines = output.stdout.lines().map(str::trim_end);
    let first = lines.find(|line| line.starts_with("pwrite block=4KiB")).unwrap();
    assert!(first.chars().count() <= 60, "{first}");
    assert!(lines.next().is_some_and(|line| line.starts_with("  ") && line.contains("1 worker")));
}
