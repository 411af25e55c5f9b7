//! `fslab bonnie++`, compared with an installed bonnie++.

use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, chown},
    path::Path,
    process::{Command, Stdio},
};

use super::{are_errors, documented, done, in_data, installed, options_in};
use crate::support::{Bench, needs_root, skipped};

const BONNIE: &str = "/usr/sbin/bonnie++";

/// Options of a small measurement; as root, the files belong to root.
const SMALL: &str = "-s 8:16k:200:3 -r 0 -n 1:200:100:3 -f -m verylongmachinename -z 5";

fn words(line: &str) -> Vec<&str> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    if rustix::process::geteuid().is_root() {
        words.extend(["-u", "root"]);
    }
    words
}

fn fslab(line: &str) -> Vec<&str> {
    [vec!["bonnie++"], words(line)].concat()
}

/// Output of a program that reads records.
fn read_by(program: &str, records: &str) -> String {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(records.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{program}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_option_of_an_installed_bonnie_is_in_the_table() {
    if !Path::new(BONNIE).exists() {
        return skipped("every_option_of_an_installed_bonnie_is_in_the_table", "bonnie++");
    }
    let usage = installed(&Bench::new(), BONNIE, &["-h"]);
    let options = options_in(usage.stderr.split("usage:").nth(1).unwrap());
    assert!(options.len() > 12, "{options:?}");
    let known = documented("bonnie-options.md");
    let missing: Vec<_> = options.difference(&known).collect();
    assert!(missing.is_empty(), "{missing:?} of {options:?}");
}

#[test]
fn the_records_have_the_fields_of_an_installed_bonnie() {
    let test = "the_records_have_the_fields_of_an_installed_bonnie";
    let bench = Bench::new();
    let line = format!("{SMALL} -q");
    let ours = done(&bench, &fslab(&line));
    assert_eq!(ours.stdout.lines().count(), 1, "{ours:?}");
    let own: Vec<&str> = ours.stdout.trim_end().split(',').collect();
    assert_eq!(own.len(), 50);
    assert_eq!(own[..2], ["1.98", concat!("fslab-", env!("CARGO_PKG_VERSION"))]);
    assert_eq!(own[2..9], ["verylongmachinename", "1", "5", "8M", "16384", "200", "3"]);
    assert_eq!(own[21..25], ["1", "200", "100", "3"]);
    if !Path::new(BONNIE).exists() {
        return skipped(test, "bonnie++");
    }
    let theirs = installed(&bench, BONNIE, &words(&line));
    let other: Vec<&str> = theirs.stdout.trim_end().split(',').collect();
    assert_eq!(other.len(), 50, "{theirs:?}");
    // Version, chunks, and directories: bonnie++ 2.00 leaves out the chunk, and has the directories
    // in the next field.
    let same = (0..50).filter(|at| ![1, 6, 24, 25].contains(at));
    for at in same {
        let is_input = at < 9 || (21..24).contains(&at);
        match is_input {
            true => assert_eq!(own[at], other[at], "field {at}"),
            false => assert_eq!(own[at].is_empty(), other[at].is_empty(), "field {at}"),
        }
    }
    assert_eq!(other[25], own[24]);
    // The tables have the same columns.
    let columns = |text: &str| -> Vec<Vec<usize>> {
        let all = text.lines().filter(|line| line.contains("/sec") || line.contains("-Create"));
        let starts = |line: &str| line.match_indices('-').map(|(at, _)| at).collect();
        all.map(|line| starts(&line[20..])).collect()
    };
    assert_eq!(columns(&ours.stderr), columns(&theirs.stderr));
    assert!(ours.stderr.lines().next().unwrap().starts_with("Version fslab-"), "{ours:?}");
}

#[test]
fn programs_of_bonnie_read_the_records() {
    let bench = Bench::new();
    let ours = done(&bench, &fslab("-s 0 -n 1 -x 2"));
    let lines: Vec<&str> = ours.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "a header and a line for each repetition: {ours:?}");
    assert!(lines[0].starts_with("format_version,bonnie_version,"));
    assert!(lines.iter().all(|line| line.split(',').count() == 50), "{ours:?}");
    let seeds: Vec<&str> = lines[1..].iter().map(|line| line.split(',').nth(4).unwrap()).collect();
    assert_eq!(seeds[0], seeds[1], "the generator starts again, as in bonnie++");
    if !Path::new("/usr/bin/bon_csv2html").exists() {
        return skipped("programs_of_bonnie_read_the_records", "bonnie++");
    }
    let records = lines[1..].join("\n") + "\n";
    let table = read_by("bon_csv2txt", &records);
    assert_eq!(table.matches("Latency").count(), 2, "{table}");
    let html = read_by("bon_csv2html", &records);
    assert!(html.contains("<table") && html.matches("Latency</td>").count() == 4, "{html}");
}

#[test]
fn tables_and_a_record_are_on_stdout() {
    let bench = Bench::new();
    let run = bench.path("kept.fslab").display().to_string();
    let own = ["--fslab-run", &run, "--fslab-repetitions=2"];
    let ours = done(&bench, &[fslab("-s 0 -n 1:-2 -c 3"), own.into()].concat());
    let lines: Vec<&str> = ours.stdout.lines().collect();
    assert_eq!(lines.len(), 6, "{ours:?}");
    assert!(lines[0].starts_with("Version fslab-"), "{ours:?}");
    assert_eq!(lines[3].split_whitespace().next(), Some("1:symlink"));
    let record: Vec<&str> = lines[5].split(',').collect();
    assert_eq!((record[3], record[22]), ("3", "symlink"));
    assert!(ours.stderr.contains("-c has no effect"), "{ours:?}");
    let kept = store::read(Path::new(&run)).unwrap();
    assert_eq!((kept.cells.len(), kept.trials.len()), (1, 2));
    assert_eq!(kept.cells[0].cell.workload.count("workers"), 1);
    let exists = in_data(&bench, &[fslab("-s 0 -n 1"), vec!["--fslab-run", &run]].concat());
    assert_eq!(exists.status, Some(1), "an existing file is not overwritten: {exists:?}");
    assert!(exists.stderr.contains("use another path with --fslab-run"), "{exists:?}");
}

#[test]
fn wrong_command_lines_are_errors_as_in_bonnie() {
    let user = if rustix::process::geteuid().is_root() { "-u root" } else { "" };
    let lines = [
        "-k",
        "-s",
        "-s 1g:100",
        "-s 1g:2097152",
        "-s 0 -n 0",
        "-s 1",
        "-s 1 -r 4096",
        "-n 1:10:20",
        "-n 1:0:0:100000",
        "-c 0",
        "-c 201",
        "-x 0",
        "-d /nonexistent -s 0",
        "-d /etc/passwd -s 0",
        "-n",
        "-m",
        "-r",
        "-Z /nonexistent",
        "-x",
        "-z",
        "-d",
    ];
    // The user is first, because some of these options lack their argument.
    let lines: Vec<String> = lines.iter().map(|line| format!("{user} {line}")).collect();
    // bonnie++ accepts some of them and starts a long measurement, so only fslab runs them all.
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    are_errors("bonnie++", "", &lines);
    if !Path::new(BONNIE).exists() {
        return skipped("wrong_command_lines_are_errors_as_in_bonnie", "bonnie++");
    }
    let bench = Bench::new();
    for line in ["-k", "-s", "-s 1 -r 4096", "-d /nonexistent -s 0", "-Z /nonexistent -s 0"] {
        let line = format!("{user} {line}");
        let theirs = installed(&bench, BONNIE, &line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(theirs.status, Some(1), "{line}: {theirs:?}");
    }
}

#[test]
fn root_measures_as_the_user_of_the_option() {
    let test = "root_measures_as_the_user_of_the_option";
    if !needs_root(test) {
        return;
    }
    let bench = Bench::new();
    let refused = in_data(&bench, &["bonnie++", "-s", "0", "-n", "1"]);
    assert_eq!(refused.status, Some(1));
    assert!(refused.stderr.contains("-u is missing"), "{refused:?}");
    let unknown = in_data(&bench, &["bonnie++", "-s", "0", "-n", "1", "-u", "no-such-user"]);
    assert!(unknown.stderr.contains("unknown user"), "{unknown:?}");
    // User 65534 must reach the directory of this test.
    let home = tempfile::Builder::new().prefix("fslab-test-").tempdir_in("/var/tmp").unwrap();
    chown(home.path(), Some(65534), Some(65534)).unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir(at("data")).unwrap();
    chown(at("data"), Some(65534), Some(65534)).unwrap();
    let run = at("kept.fslab");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fslab"));
    command.args(["bonnie++", "-s", "0", "-n", "1", "-q", "-u", "65534:65534"]);
    command.args(["-d", &at("data"), "--fslab-run", &run]).env("FSLAB_STATE", at("state"));
    let ended = command.current_dir("/").output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let owner = |path: &str| fs::metadata(path).unwrap().uid();
    assert_eq!([owner(&run), owner(&at("state"))], [65534, 65534]);
    let kept = store::read(Path::new(&run)).unwrap();
    assert_eq!(kept.trials.len(), 1);
}
