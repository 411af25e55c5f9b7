//! The classic program, and one that only hashes.

use std::{fs, path::Path, process::Command, time::Duration};

use super::load::Lines;
use crate::rate::Rate;

/// Whether the program is there.
pub(super) fn is_installed() -> bool {
    Command::new("dbench").arg("--usage").output().is_ok()
}

/// So many clients for this time, in whole seconds; a fifth of it (which it takes itself) is not
/// counted, before.
pub(super) fn dbench(
    load: &Path,
    clients: u32,
    directory: &Path,
    ramp: Duration,
    run: Duration,
    lines: &Lines,
) -> Rate {
    assert_eq!(ramp.as_secs(), run.as_secs() / 5, "it is no choice of ours");
    let text = said(load, clients, directory, run);
    let told = text.lines().find_map(|line| line.strip_prefix("Throughput "));
    let told = told.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    lines.rate(told.unwrap_or_else(|| panic!("dbench said: {text}")) * 1e6)
}

/// How often one client did each kind of operation within this time.
pub(super) fn counts(load: &Path, directory: &Path, run: Duration) -> Vec<(String, u64)> {
    let text = said(load, 1, directory, run);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, count) = (words.next()?, words.next()?.parse().ok()?);
        // Rows have an average and a maximum more.
        (words.count() == 2).then(|| (name.to_owned(), count))
    };
    text.lines().filter_map(row).collect()
}

fn said(load: &Path, clients: u32, directory: &Path, run: Duration) -> String {
    let directory = directory.join("theirs");
    fs::create_dir(&directory).expect("there is room");
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

/// Hashes a file, and nothing else.
pub(super) fn sha256(path: &Path) {
    let output = Command::new("sha256sum").arg(path).output();
    assert!(output.is_ok_and(|output| output.status.success()), "sha256sum is there");
}
