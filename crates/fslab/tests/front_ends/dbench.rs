//! `fslab dbench`, compared with an installed dbench.

use std::{collections::BTreeMap, fs, path::Path};

use super::{are_errors, documented, done, in_data, installed, options_in};
use crate::support::{Bench, skipped};

const DBENCH: &str = "/usr/bin/dbench";
const LOAD: &str = "/usr/share/dbench/client.txt";

/// Count of each operation in the table of an output.
fn counts(text: &str) -> BTreeMap<String, f64> {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, count, mean, max] = words[..] else { return None };
        let numbers = [mean, max].iter().all(|word| word.parse::<f64>().is_ok());
        (numbers && mean.contains('.')).then(|| Some((name.to_owned(), count.parse().ok()?)))?
    });
    rows.collect()
}

/// Rate, clients, and processes of the summary, as a public expression extracts them.
fn summary(text: &str) -> (f64, u64, u64, f64) {
    let line = text.lines().find(|line| line.starts_with("Throughput ")).expect("a summary");
    let words: Vec<&str> = line.split_whitespace().collect();
    let before = |unit: &str| {
        let at = words.iter().position(|word| *word == unit).unwrap();
        words[at - 1]
    };
    assert_eq!(words[2], "MB/sec");
    let latency = words.iter().find_map(|word| word.strip_prefix("max_latency=")).unwrap();
    (
        words[1].parse().unwrap(),
        before("clients").parse().unwrap(),
        before("procs").parse().unwrap(),
        latency.parse().unwrap(),
    )
}

#[test]
fn every_option_of_an_installed_dbench_is_in_the_table() {
    if !Path::new(DBENCH).exists() {
        return skipped("every_option_of_an_installed_dbench_is_in_the_table", "dbench");
    }
    let help = installed(&Bench::new(), DBENCH, &["--help"]);
    let mut options = options_in(help.stdout.split("Help options").next().unwrap());
    options.retain(|option| option.chars().any(|c| c.is_ascii_alphabetic()));
    assert!(options.len() > 20, "{options:?}");
    let known = documented("dbench-options.md");
    let missing: Vec<_> = options.difference(&known).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_output_has_the_lines_of_an_installed_dbench() {
    let test = "the_output_has_the_lines_of_an_installed_dbench";
    let bench = Bench::new();
    let ours = done(&bench, &["dbench", "-t", "3", "--warmup=0", "--fslab-office", "2", "-s"]);
    let first = ours.stdout.lines().next().unwrap();
    assert!(first.contains("measured by fslab") && first.contains("sha256 "), "{first}");
    let (rate, clients, processes, latency) = summary(&ours.stdout);
    assert!(rate > 0.0 && latency > 0.0 && (clients, processes) == (2, 2), "{ours:?}");
    assert!(ours.stdout.contains(" MB/sec (sync open)  2 clients"), "{ours:?}");
    let ticks: Vec<&str> =
        ours.stdout.lines().filter(|line| line.contains(" MB/sec  execute ")).collect();
    assert_eq!(ticks.len(), 2, "a tick for each full second before the end: {ours:?}");
    let last: Vec<&str> = ticks[1].split_whitespace().collect();
    assert!((last[2].parse::<f64>().unwrap() - rate).abs() < 0.01, "{ours:?}");
    let run = bench.path("kept.fslab").display().to_string();
    let fields = done(
        &bench,
        &["dbench", "-t", "2", "--fslab-office", "1", "--machine-readable", "--fslab-run", &run],
    );
    let lines: Vec<&str> = fields.stdout.lines().collect();
    assert!(lines.iter().any(|line| line.starts_with("@R@1@")), "{fields:?}");
    assert!(lines.iter().any(|line| line.starts_with(":ReadX:")), "{fields:?}");
    let last: Vec<&str> = lines.last().unwrap().split(';').collect();
    assert!(last[1].parse::<f64>().unwrap() > 0.0 && last.len() == 6, "{fields:?}");
    let report = bench.ends(0, &["report", &run, "--format", "dbench"]).stdout;
    assert!((summary(&report).0 - last[1].parse::<f64>().unwrap()).abs() < 1e-9, "{report}");
    if !Path::new(LOAD).exists() {
        return skipped(test, "dbench");
    }
    let theirs = installed(&bench, DBENCH, &["-t", "2", "1"]);
    fs::remove_dir_all(bench.path("data/clients")).unwrap();
    let columns = |text: &str| -> Vec<usize> {
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.starts_with(" Operation ")).unwrap();
        lines[at..at + 4].iter().map(|line| line.len()).collect()
    };
    assert_eq!(columns(&report), columns(&theirs.stdout), "{report}\n{theirs:?}");
}

/// Shares of operations with the loadfile of the package, over the same number of lines.
#[test]
fn the_shares_of_operations_are_those_of_an_installed_dbench() {
    if !Path::new(LOAD).exists() {
        return skipped("the_shares_of_operations_are_those_of_an_installed_dbench", "dbench");
    }
    // In memory, so that both programs replay many lines.
    let bench = Bench::new_in(Path::new("/dev/shm"));
    let disk = Bench::new();
    let run = disk.path("run.fslab").display().to_string();
    let ours = done(&bench, &["dbench", "-t", "5", "1", "--fslab-run", &run]);
    let theirs = installed(&bench, DBENCH, &["-t", "5", "1"]);
    let [ours, theirs] = [&ours.stdout, &theirs.stdout].map(|text| {
        let mut counts = counts(text);
        // Only the first and the last lines of the loadfile have these operations.
        counts.retain(|name, _| name != "Deltree" && name != "Mkdir");
        counts
    });
    let names =
        |counts: &BTreeMap<String, f64>| -> Vec<String> { counts.keys().cloned().collect() };
    assert!(names(&theirs).len() >= 12, "{theirs:?}");
    assert_eq!(names(&ours), names(&theirs));
    let all = [&ours, &theirs].map(|counts| counts.values().sum::<f64>());
    for (name, count) in &ours {
        let shares = [count / all[0], theirs[name] / all[1]];
        assert!((shares[0] - shares[1]).abs() < 0.01, "{name}: {shares:?}");
    }
}

#[test]
fn a_loadfile_is_replayed_once() {
    let bench = Bench::new();
    let load = bench.path("load.txt").display().to_string();
    fs::write(
        &load,
        "Deltree \"/clients/client1\" 0x00000000\nMkdir \"/clients\" 0x00000000\n\
         NTCreateX \"/clients/client1\" 0x1 2 1 0x00000000\nClose 1 0x00000000\n\
         NTCreateX \"/clients/client1/a\" 0x0 2 2 0x00000000\nWriteX 2 0 4096 4096 0x00000000\n\
         ReadX 2 0 4096 4096 0x00000000\nReadX 2 0 100 100 0x00000000\nClose 2 0x00000000\n",
    )
    .unwrap();
    let ours = done(&bench, &["dbench", "--run-once", "-c", &load, "3"]);
    let counts = counts(&ours.stdout);
    let expected =
        [("NTCreateX", 6.0), ("Close", 6.0), ("WriteX", 3.0), ("ReadX", 6.0), ("Mkdir", 3.0)];
    for (name, count) in expected {
        assert_eq!(counts.get(name), Some(&count), "{name}: {ours:?}");
    }
}

#[test]
fn wrong_command_lines_of_dbench_are_errors() {
    are_errors(
        "dbench",
        "",
        &[
            "",
            "0",
            "x",
            "1 2",
            "-t",
            "1 -t 0",
            "1 -t x",
            "1 -R 0",
            "1 -R x",
            "1 -c",
            "1 -c /nonexistent",
            "1 -D /nonexistent --fslab-office",
            "1 -D /etc/passwd --fslab-office",
            "1 -B nfs",
            "1 --clients-per-process 2",
            "1 --warmup x --fslab-office",
            "1 --fake-io",
            "1 --per-client-results",
            "1 -q",
            "1 --unknown",
            "1 -T x",
            "1 --fslab-repetitions 0",
        ],
    );
    let bench = Bench::new();
    for line in ["", "1 --unknown", "1 -c /nonexistent"] {
        if !Path::new(DBENCH).exists() {
            return skipped("wrong_command_lines_of_dbench_are_errors", "dbench");
        }
        let theirs = installed(&bench, DBENCH, &line.split_whitespace().collect::<Vec<_>>());
        assert_ne!(theirs.status, Some(0), "{line}: {theirs:?}");
    }
    let same = in_data(&bench, &["dbench", "--fslab-office", "1", "-B", "fileio", "--run-one"]);
    assert!(same.stderr.contains("did you mean `--run-once`?"), "{same:?}");
}
