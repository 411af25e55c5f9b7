//! `fslab trace anonymize`, `fslab trace slice`, and `fslab import` of logs of strace.
#![cfg(target_arch = "x86_64")]

use std::{collections::BTreeMap, fs, process::Command};

use serde_json::Value;

use crate::support::{Bench, skipped};

/// Bench with a directory that has files, and one to measure.
fn bench() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    prepare(&bench);
    bench
}

fn prepare(bench: &Bench) {
    let _ = fs::remove_dir_all(bench.path("root"));
    fs::create_dir_all(bench.path("root/customers/old")).unwrap();
    fs::write(bench.path("root/customers/list"), "x".repeat(3000)).unwrap();
    fs::write(bench.path("root/customers/old/entry.txt"), "entry\n").unwrap();
    std::os::unix::fs::symlink("customers/list", bench.path("root/current")).unwrap();
}

const SCRIPT: &str = "cd root; cat current > /dev/null; cat customers/old/entry.txt; mkdir new; \
                      cp customers/list new/copy; mv new/copy new/list; ln -s list new/link; \
                      echo more >> customers/list; rm customers/old/entry.txt; cat missing; \
                      ls -l new customers > new/listing; touch new/listing";

fn record(bench: &Bench, output: &str) {
    bench.ends(0, &["record", "-o", output, "--root", "root", "sh", "-c", SCRIPT]);
}

/// Operations by call and result.
fn operations(bench: &Bench, recording: &str) -> BTreeMap<String, u32> {
    let dumped = bench.ends(0, &["trace", "dump", recording]).stdout;
    let mut all = BTreeMap::new();
    for line in dumped.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let key = ["call", "path", "path2", "result", "flags", "size"].map(|key| &line[key]);
        *all.entry(format!("{key:?}")).or_insert(0) += 1;
    }
    all
}

/// Replays a recording whose operations have the recorded results.
fn replays(bench: &Bench, recording: &str) {
    let trace = format!("trace={recording}");
    let output = bench.ends(0, &["bench", "replay", "data", "--json", "--set", &trace]);
    assert!(!output.stdout.contains("unexpected-status"), "{}", output.stdout);
}

#[test]
fn an_anonymized_recording_has_no_names_and_is_replayed() {
    let bench = bench();
    record(&bench, "r.fstrace");
    let output = bench.ends(0, &["trace", "anonymize", "r.fstrace", "-o", "a.fstrace"]);
    assert!(output.stderr.contains("may identify the program"), "{}", output.stderr);
    let (own, anonymous) =
        (fs::read(bench.path("r.fstrace")).unwrap(), fs::read(bench.path("a.fstrace")).unwrap());
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let contains =
        |file: &[u8], text: &str| file.windows(text.len()).any(|window| window == text.as_bytes());
    for name in ["customers", "current", "entry", "missing", "listing", "mkdir new"] {
        assert!(contains(&own, name), "{name}");
        assert!(!contains(&anonymous, name), "{name}");
    }
    assert!(host.trim().len() < 4 || !contains(&anonymous, host.trim()));
    assert!(contains(&anonymous, ".txt"));
    replays(&bench, "a.fstrace");
    bench.ends(0, &["trace", "anonymize", "r.fstrace", "-o", "b.fstrace"]);
    assert_ne!(anonymous, fs::read(bench.path("b.fstrace")).unwrap());
    let count = |file: &str| operations(&bench, file).values().sum::<u32>();
    assert_eq!(count("r.fstrace"), count("a.fstrace"));
    // An existing file is not replaced.
    let output = bench.ends(2, &["trace", "anonymize", "r.fstrace", "-o", "b.fstrace"]);
    assert!(output.stderr.contains("b.fstrace already exists"), "{}", output.stderr);
}

#[test]
fn a_slice_of_a_recording_is_replayed() {
    let bench = bench();
    record(&bench, "r.fstrace");
    let dumped = bench.ends(0, &["trace", "dump", "r.fstrace"]).stdout;
    let begins = dumped.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["begin_ns"].as_u64().unwrap()
    });
    let mut begins: Vec<u64> = begins.collect();
    begins.sort_unstable();
    let middle = format!("{}ns", begins[begins.len() / 2]);
    bench.ends(0, &["trace", "slice", "r.fstrace", "--from", &middle, "-o", "end.fstrace"]);
    bench.ends(0, &["trace", "slice", "r.fstrace", "--to", &middle, "-o", "begin.fstrace"]);
    replays(&bench, "end.fstrace");
    replays(&bench, "begin.fstrace");
    let shown = bench.ends(0, &["trace", "show", "end.fstrace"]).stdout;
    assert!(shown.contains("before the program started"), "{shown}");
    let words = ["trace", "slice", "r.fstrace", "--from", "1h", "-o", "none.fstrace"];
    let output = bench.ends(2, &words);
    assert!(output.stderr.contains("change --from or --to"), "{}", output.stderr);
    assert!(!bench.path("none.fstrace").exists());
}

#[test]
fn an_iolog_of_fio_is_replayed() {
    let bench = bench();
    let fio = [
        "--name=j",
        "--rw=randrw",
        "--size=256k",
        "--nrfiles=2",
        "--fsync=8",
        "--write_iolog=io.log",
    ];
    match Command::new("fio").args(fio).current_dir(bench.path("")).output() {
        Ok(output) if output.status.success() => {}
        _ => return skipped("an iolog", "fio"),
    }
    let log = fs::read_to_string(bench.path("io.log")).unwrap();
    let count = |action: &str| log.lines().filter(|line| line.contains(action)).count();
    let output = bench.ends(0, &["import", "io.log"]);
    let all = count(" read ") + count(" write ") + count(" sync ") + 2;
    let expected = format!("imported {all} operations into io.fstrace");
    assert!(output.stderr.contains(&expected), "{expected}: {}", output.stderr);
    let shown = bench.ends(0, &["trace", "show", "io.fstrace"]).stdout;
    assert!(shown.contains("by fio"), "{shown}");
    replays(&bench, "io.fstrace");
    let output = bench.ends(0, &["trace", "iolog", "io.fstrace", "-o", "again.log"]);
    assert!(output.stderr.contains("operations in again.log"), "{}", output.stderr);
    let again = fs::read_to_string(bench.path("again.log")).unwrap();
    for action in [" read ", " write ", " sync "] {
        let found = again.lines().filter(|line| line.contains(action)).count();
        assert_eq!(found, count(action), "{action}\n{again}");
    }
    let arguments = ["--name=r", "--read_iolog=again.log", "--output-format=json"];
    let output = Command::new("fio").args(arguments).current_dir(bench.path("")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = &text[text.find('{').unwrap()..];
    let replayed: serde_json::Value = serde_json::from_str(text).unwrap();
    for direction in ["read", "write"] {
        let found = &replayed["jobs"][0][direction]["total_ios"];
        assert_eq!(*found, count(&format!(" {direction} ")), "{replayed}");
    }
    let output = bench.ends(2, &["import", "io.log"]);
    assert!(output.stderr.contains("already exists"), "{}", output.stderr);
}

#[test]
fn a_log_of_strace_has_the_operations_of_a_recording() {
    let bench = bench();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-ttt", "-T", "-y", "-o", "log", "sh", "-c", SCRIPT]);
    match strace.current_dir(bench.path("")).output() {
        Ok(output) if output.status.success() => {}
        _ => return skipped("a log of strace", "strace, which may trace programs"),
    }
    prepare(&bench);
    record(&bench, "r.fstrace");
    let output = bench.ends(0, &["import", "log", "--root", "root", "-o", "i.fstrace"]);
    assert!(output.stderr.contains("imported"), "{}", output.stderr);
    assert_eq!(operations(&bench, "i.fstrace"), operations(&bench, "r.fstrace"));
    replays(&bench, "i.fstrace");
    let shown = bench.ends(0, &["trace", "show", "i.fstrace"]).stdout;
    for text in ["by strace", "exit status 0", "sh -c"] {
        assert!(shown.contains(text), "{text} is not in {shown}");
    }
    let output = bench.ends(2, &["import", "log"]);
    assert!(output.stderr.contains("add --root DIR"), "{}", output.stderr);
    fs::write(bench.path("other"), "no log").unwrap();
    let output = bench.ends(2, &["import", "other", "--root", "root"]);
    assert!(output.stderr.contains("strace -f -ttt -T -y"), "{}", output.stderr);
}
