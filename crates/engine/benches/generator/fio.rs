//! fio, run with its usual options.

use std::{path::Path, process::Command, time::Duration};

use crate::rate::Rate;

/// Version of fio; `None` if it is not installed.
pub(crate) fn version() -> Option<String> {
    let output = Command::new("fio").arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs one job in one thread on one CPU for this duration, with default statistics.
/// `--invalidate=0` keeps the cached pages of the file, which the comparison requires.
pub(crate) fn run(options: &[&str], file: Option<&Path>, cpu: usize, length: Duration) -> Rate {
    let mut command = Command::new("fio");
    command.args(["--name=peer", "--output-format=json", "--thread", "--time_based"]);
    command.args(["--invalidate=0", "--overwrite=1"]);
    command.arg(format!("--cpus_allowed={cpu}"));
    command.arg(format!("--runtime={}ms", length.as_millis()));
    command.args(options);
    if let Some(file) = file {
        command.arg(format!("--filename={}", file.display()));
    }
    let output = command.output().expect("fio starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    // Some versions print notes before the first brace.
    let json = &text[text.find('{').expect("fio writes JSON")..];
    let json: serde_json::Value = serde_json::from_str(json).expect("fio writes JSON");
    let job = &json["jobs"][0];
    let iops = |kind: &str| job[kind]["iops"].as_f64().unwrap_or(0.0);
    Rate { per_second: iops("read") + iops("write") }
}
