//! `fslab mdtest`: tables, phases, system calls, and errors.

use std::{collections::BTreeMap, fs, process::Command};

use super::{are_errors, done};
use crate::support::{Bench, skipped};

const MDTEST: &str = "/usr/bin/mdtest";

/// Rows of the first table of an output: name, and maximum, minimum, mean, and deviation.
fn rows(text: &str) -> BTreeMap<String, [f64; 4]> {
    let table = text.lines().skip_while(|line| !line.starts_with("SUMMARY ")).skip(3);
    let rows = table.take_while(|line| line.starts_with("   "));
    let row = |line: &str| {
        // A name in 18 columns after three blanks, and four numbers of fixed width.
        let (name, numbers) = line[3..].split_at(18);
        assert_eq!(line.len(), 85, "{line:?}");
        let numbers: Vec<f64> =
            numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
        (name.trim().to_owned(), numbers.try_into().unwrap())
    };
    rows.map(row).collect()
}

fn names(text: &str) -> Vec<String> {
    rows(text).into_keys().collect()
}

const ALL: [&str; 10] = [
    "Directory creation",
    "Directory removal",
    "Directory rename",
    "Directory stat",
    "File creation",
    "File read",
    "File removal",
    "File stat",
    "Tree creation",
    "Tree removal",
];

#[test]
fn the_table_has_the_rows_of_mdtest_and_all_repetitions() {
    let bench = Bench::new();
    let run = bench.path("run.fslab").display().to_string();
    let ours = done(
        &bench,
        &["mdtest", "-n", "40", "-i", "3", "--fslab-workers", "2", "--fslab-run", &run],
    );
    let first = ours.stdout.lines().next().unwrap();
    assert!(first.contains("measured by fslab") && first.ends_with("2 workers"), "{first}");
    assert!(ours.stdout.contains("2 tasks, 80 files/directories"), "{ours:?}");
    assert!(ours.stdout.contains("SUMMARY rate (in ops/sec): (of 3 iterations)"), "{ours:?}");
    let rows = rows(&ours.stdout);
    assert_eq!(rows.keys().map(String::as_str).collect::<Vec<_>>(), ALL);
    for (name, [max, min, mean, deviation]) in &rows {
        assert!(max >= mean && mean >= min && *min > 0.0 && *deviation >= 0.0, "{name} {rows:?}");
    }
    let csv = bench.ends(0, &["report", &run, "--format", "csv"]).stdout;
    let created: Vec<&str> = csv
        .lines()
        .filter(|line| line.contains("file-create") && line.contains("ops_rate"))
        .collect();
    // Three repetitions, each with the rate of all workers and of each worker.
    assert_eq!(created.len(), 9, "{created:#?}");
    let report = bench.ends(0, &["report", &run, "--format", "mdtest"]).stdout;
    assert_eq!(names(&report), ALL);
}

#[test]
fn options_select_the_rows() {
    let bench = Bench::new();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        names(&done(&bench, &[&["mdtest", "-n", "12"], &words[..]].concat()).stdout)
    };
    assert_eq!(row("-F -C"), ["File creation", "Tree creation"]);
    assert_eq!(row("-T"), ["Directory stat", "File stat"]);
    assert_eq!(row("-E -w 100 -e 100 -X -R --random-seed=3"), ["File read"]);
    assert_eq!(row("-r -D -z 1 -b 3"), ["Directory removal", "Tree removal"]);
    assert_eq!(row("-U -u --fslab-workers 2"), ["Directory rename"]);
    let files = ["File creation", "File read", "File removal", "File stat"];
    let all = |line: &str| row(line)[..4] == files;
    for line in [
        "-F -u -L -N 1 -z 1 -b 3 --fslab-workers 3",
        "-F -t -N 1 -w 3901 -e 3901 -y -X --fslab-workers 2",
        "-F -S --fslab-workers 2",
        "-F -S -c --fslab-workers 2",
        "-F -c -N 1 --fslab-workers 3",
        "-F -Y",
    ] {
        assert!(all(line), "{line}");
    }
}

#[test]
fn times_are_milliseconds_and_say_so() {
    let bench = Bench::new();
    let both = done(&bench, &["mdtest", "-n", "20", "-F", "-P"]).stdout;
    let (rates, times) = both.split_once("SUMMARY time (in ms/op)").unwrap();
    let times = format!("SUMMARY time (in ms/op){times}");
    let (rates, times) = (rows(rates), rows(&times));
    for (name, [rate, ..]) in &rates {
        let time = times[name][0];
        assert!((time * rate - 1e3).abs() <= 0.001 * rate, "{name}: {rate} {time}");
    }
    assert!(both.contains("mdtest prints seconds per phase"), "{both}");
    let only = done(&bench, &["mdtest", "-n", "20", "-F", "-Z"]).stdout;
    assert!(!only.contains("SUMMARY rate"), "{only}");
}

#[test]
fn a_stonewall_stores_the_number_of_files_for_later_commands() {
    let bench = Bench::new();
    let status = bench.path("status").display().to_string();
    let line = ["mdtest", "-n", "200k", "-F", "-W", "1", "-x", &status, "--fslab-workers", "2"];
    let ours = done(&bench, &line).stdout;
    assert_eq!(names(&ours)[..4], ["File creation", "File read", "File removal", "File stat"]);
    let count: u64 = fs::read_to_string(&status).unwrap().trim().parse().unwrap();
    assert!(count > 0 && count <= 200 << 10, "{count}");
    // All phases have this number of files per worker.
    fs::write(&status, "30\n").unwrap();
    let run = bench.path("stat.fslab").display().to_string();
    done(&bench, &["mdtest", "-n", "999", "-F", "-T", "-x", &status, "--fslab-run", &run]);
    let show = bench.ends(0, &["report", &run, "--format", "json"]).stdout;
    assert!(show.contains("\"entries\"") && show.contains("30"), "{show}");
    assert_eq!(fs::read_to_string(&status).unwrap(), "30\n", "not written without -C");
}

/// System calls on the files of a command, without their results and with relative paths.
fn calls(bench: &Bench, line: &[&str]) -> Vec<String> {
    fs::create_dir_all(bench.path("data")).unwrap();
    let trace = bench.path("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=file,desc", "-e", "signal=none", "-o"]);
    command.arg(&trace).arg(env!("CARGO_BIN_EXE_fslab"));
    command.arg("--state-directory").arg(bench.path("state")).args(line);
    let ended = command.current_dir(bench.path("data")).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let text = fs::read_to_string(&trace).unwrap();
    let own = text.lines().filter(|line| line.contains("mdtest_tree.") || line.contains("-XX"));
    let call = |line: &str| {
        let (_, call) = line.split_once(' ').unwrap();
        let call = call.trim_start().rsplit_once(" = ").map_or(call, |(call, _)| call);
        let digits = call.find("(").map(|at| call[at + 1..].split(", ").next().unwrap());
        let call = match digits {
            Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                call.replace(&format!("{number}, "), "")
            }
            _ => call.to_owned(),
        };
        call.trim().to_owned()
    };
    own.map(call).collect()
}

#[test]
fn phases_make_the_calls_of_mdtest() {
    let has = |program: &str| Command::new(program).arg("-V").output().is_ok();
    if !has("strace") {
        return skipped("phases_make_the_calls_of_mdtest", "strace");
    }
    let bench = Bench::new();
    let line = ["mdtest", "-n", "3", "-w", "10", "-e", "10"];
    let calls = calls(&bench, &line);
    let without = |end: &str| -> Vec<String> {
        let kept = calls.iter().filter(|call| call.starts_with(end));
        kept.map(|call| {
            call.replace("mdtest_tree.0/", "")
                .replace("dir.mdtest.0.", "d")
                .replace("file.mdtest.0.", "f")
        })
        .collect()
    };
    let made = without("mkdirat(");
    assert_eq!(made.len(), 4, "{calls:#?}");
    let renames = without("renameat");
    let pairs: Vec<Vec<&str>> =
        renames.iter().map(|call| call.split('"').skip(1).step_by(2).collect()).collect();
    assert_eq!(pairs, [["d0", "d0-XX"], ["d1", "d0"], ["d0-XX", "d1"]], "{renames:#?}");
    let opens = without("openat(");
    let created = opens.iter().filter(|call| call.contains("O_RDWR|O_CREAT"));
    assert_eq!(created.clone().count(), 3, "{opens:#?}");
    assert!(created.clone().all(|call| !call.contains("O_EXCL")), "{opens:#?}");
    let read = opens.iter().filter(|call| call.contains("O_RDWR") && !call.contains("O_CREAT"));
    assert_eq!(read.count(), 3, "{opens:#?}");
    let stats =
        calls.iter().filter(|call| call.starts_with("newfstatat(") || call.starts_with("statx("));
    assert_eq!(stats.count(), 6, "{calls:#?}");
    let removed = without("unlinkat(");
    let directories = removed.iter().filter(|call| call.contains("AT_REMOVEDIR")).count();
    assert_eq!((removed.len(), directories), (7, 4), "{removed:#?}");
}

#[test]
fn wrong_command_lines_of_mdtest_are_errors() {
    are_errors(
        "mdtest",
        MDTEST,
        &[
            "",
            "-n",
            "-n 0",
            "-n x",
            "-n 1 -z 99",
            "-n 1 -b 0",
            "-n 1 -I 2",
            "-n 1 -u -S -F",
            "-n 1 -S",
            "-n 1 -E -D",
            "-n 1 -w 5 -e 6",
            "-n 1 -a HDFS",
            "-n 1 -d /nonexistent",
            "-n 1 -d /etc/passwd",
            "-n 1 directory",
            "-n 1 -i 0",
            "-n 3 -z 4",
            "-n 1 --fslab-workers 0",
            "-n 1 -c -u --fslab-workers 2",
            "-n 1 -c -W 1",
            "-n 1 -B",
            "-n 1 -k",
            "-n 1 -l 1",
            "-n 1 --savePerOpDataCSV=x",
            "-n 1 -q",
            "-n 1 --unknown",
        ],
    );
}

#[test]
fn processes_of_an_mpi_launcher_are_not_separate_runs() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("data")).unwrap();
    let mut command = bench.command(&["mdtest", "-n", "1"]);
    command.current_dir(bench.path("data")).env("OMPI_COMM_WORLD_SIZE", "4");
    let ended = command.output().unwrap();
    let message = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(message.contains("started 4 processes") && message.contains("--fslab-workers 4"));
}
