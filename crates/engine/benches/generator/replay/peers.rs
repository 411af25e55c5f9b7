//! dbench and sha256sum.

use std::{fs, path::Path, process::Command, time::Duration};

use super::load::Lines;
use crate::rate::Rate;

/// True if dbench is installed.
pub(super) fn is_installed() -> bool {
    Command::new("dbench").arg("--usage").output().is_ok()
}

/// Operations per second of dbench with this number of clients, run for this time in whole seconds.
/// dbench adds a ramp time of a fifth.
pub(super) fn dbench(
    load: &Path,
    clients: u32,
    directory: &Path,
    ramp: Duration,
    run: Duration,
    lines: &Lines,
) -> Rate {
    assert_eq!(ramp.as_secs(), run.as_secs() / 5, "dbench uses a fifth");
    let text = output_of(load, clients, directory, run);
    let reported = text.lines().find_map(|line| line.strip_prefix("Throughput "));
    let reported = reported.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    lines.rate(reported.unwrap_or_else(|| panic!("unexpected output of dbench: {text}")) * 1e6)
}

/// Number of operations of each type that one client of dbench runs in this time.
pub(super) fn counts(load: &Path, directory: &Path, run: Duration) -> Vec<(String, u64)> {
    let text = output_of(load, 1, directory, run);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, count) = (words.next()?, words.next()?.parse().ok()?);
        // The rows of this table have two more columns, average and maximum; rows of other tables
        // differ.
        (words.count() == 2).then(|| (name.to_owned(), count))
    };
    text.lines().filter_map(row).collect()
}

fn output_of(load: &Path, clients: u32, directory: &Path, run: Duration) -> String {
    let directory = directory.join("theirs");
    fs::create_dir(&directory).expect("the directory is created");
    let output = Command::new("dbench")
        .arg("-D")
        .arg(&directory)
        .arg("-c")
        .arg(load)
        .args(["-t", &run.as_secs().to_string(), &clients.to_string()])
        .output()
        .expect("it is installed");
    fs::remove_dir_all(&directory).expect("it was made above");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Hashes a file.
pub(super) fn sha256(path: &Path) {
    let output = Command::new("sha256sum").arg(path).output();
    assert!(output.is_ok_and(|output| output.status.success()), "sha256sum succeeds");
}
