//! Repeatability of instruction counts, and changes that they detect: `make bench-icount`.
//!
//! Arguments: a page to write, and the packages of two kernels, the older one first. `--tries N`
//! sets the number of A/A comparisons. fslab runs in icount guests while another process loads the
//! host. As root, the ranks of filesystems are compared with their ranks by time on the host.
#![expect(clippy::print_stderr, reason = "a standalone program")]

mod page;
mod ranks;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output},
    time::{Duration, Instant},
};

use model::{Metric, RunRecord, phase::Role, record::Outcome};
use page::{Change, Page, Probe};
use tempfile::TempDir;

/// Number of A/A comparisons.
const TRIES: usize = 20;
/// Number of repetitions for which the permutation test can decide all tests of nine filesystems.
/// Of the splits of 7 and 7 values, one in 1716 is the most extreme in either direction, and Holm's
/// adjustment requires 0.05 / 72.
const ENOUGH: &str = "repetitions=7";
/// Lifecycle steps that are also probes.
const STEPS: [&str; 3] = ["mkfs", "mount", "umount"];

/// Plan of the A/A comparisons, with enough repetitions for a decision.
const TWICE: &str = r#"
title = "The same again"
profile = "standard"
repetitions = 7
guest = "icount"
fsck = false
aa_control = "none"
[storage]
image_size = "320MiB"
[axes]
filesystem = ["ext4", "xfs"]
workload = ["small-file-calls"]
"#;

/// Plan with options that are known to increase the work.
const INJECTED: &str = r#"
title = "More work"
profile = "standard"
repetitions = 7
guest = "icount"
fsck = false
aa_control = "none"
[storage]
image_size = "320MiB"
[axes]
workload = ["small-file-calls"]
[[axes.filesystem]]
name = "plain"
type = "ext4"
mkfs_options = ["-O", "^metadata_csum"]
[[axes.filesystem]]
name = "checksums"
type = "ext4"
mkfs_options = ["-O", "metadata_csum"]
[[axes.filesystem]]
name = "journal"
type = "ext4"
mkfs_options = ["-O", "^metadata_csum"]
mount_options = "data=journal"
"#;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.retain(|argument| argument != "--bench");
    let mut tries = TRIES;
    if let Some(at) = arguments.iter().position(|argument| argument == "--tries") {
        let asked: Vec<String> = arguments.drain(at..arguments.len().min(at + 2)).collect();
        tries = asked.get(1).and_then(|tries| tries.parse().ok()).expect("--tries NUMBER");
    }
    let [page, old, new] = &arguments[..] else {
        panic!("usage: PAGE OLD-KERNEL-PACKAGE NEW-KERNEL-PACKAGE")
    };
    let bench = Bench::new(old);
    let mut found = Page::new(&bench.version(), old, new);

    say("nine filesystems, three repetitions, idle machine");
    let (_, took) = bench.run("idle", &["filesystem-cost"]);
    found.idle = took;

    let busy = Busy::start();
    say("the same twice while another process loads one CPU");
    let runs = ["busy-1", "busy-2"].map(|name| bench.run(name, &["filesystem-cost"]));
    found.busy = runs.iter().map(|(_, took)| *took).collect();
    found.probes = probes(&runs[0].0, &runs[1].0);

    let plan = bench.plan("twice", TWICE);
    bench.run("try-0", &[&plan]);
    for attempt in 1..=tries {
        say(&format!("A/A comparison {attempt} of {tries}"));
        let name = format!("try-{attempt}");
        bench.run(&name, &[&plan]);
        found.tries.push(bench.gate(&format!("try-{}", attempt - 1), &name, &[]));
    }
    say("additional work");
    let plan = bench.plan("injected", INJECTED);
    bench.run("injected", &[&plan]);
    for costlier in ["checksums", "journal"] {
        let pair = format!("plain={costlier}");
        let gate = bench.gate("injected", "injected", &["--pair", &pair]);
        let changes = bench.changes("injected", "injected", &["--pair", &pair]);
        found.injected.push((costlier.to_owned(), gate, changes));
    }
    say("two kernels");
    bench.run("old", &["filesystem-cost", "--set", ENOUGH, "--set", "aa_control=none"]);
    bench.run_with("new", new, &["filesystem-cost", "--set", ENOUGH, "--set", "aa_control=none"]);
    found.kernels = bench.changes("old", "new", &[]);
    drop(busy);
    if rustix::process::geteuid().is_root() {
        say("the same calls on this machine");
        found.ranks = ranks::against_native(&bench, &runs[0].0);
    }
    fs::write(page, found.render()).expect("the page can be written");
}

fn say(text: &str) {
    eprintln!("{text}");
}

/// Directory of the run files, and the first guest kernel.
struct Bench {
    directory: TempDir,
    kernel: PathBuf,
}

impl Bench {
    fn new(kernel: &str) -> Self {
        let kernel = std::path::absolute(kernel).expect("a path");
        Self { directory: TempDir::new().expect("a directory"), kernel }
    }

    fn fslab(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fslab"));
        command.args(arguments).current_dir(&self.directory);
        command.env("FSLAB_STATE", self.directory.path().join("state"));
        command.output().expect("fslab starts")
    }

    fn version(&self) -> String {
        String::from_utf8_lossy(&self.fslab(&["--version"]).stdout).trim().to_owned()
    }

    fn plan(&self, name: &str, text: &str) -> String {
        let path = self.directory.path().join(format!("{name}.toml"));
        fs::write(&path, text).expect("a plan can be written");
        path.display().to_string()
    }

    /// Runs a plan in icount guests with the first kernel, and returns the run and its duration.
    fn run(&self, name: &str, plan: &[&str]) -> (RunRecord, Duration) {
        let kernel = self.kernel.display().to_string();
        self.run_with(name, &kernel, plan)
    }

    fn run_with(&self, name: &str, kernel: &str, plan: &[&str]) -> (RunRecord, Duration) {
        let kernel = std::path::absolute(kernel).expect("a path").display().to_string();
        self.measured(name, &[plan, &["--kernel", &kernel]].concat())
    }

    fn measured(&self, name: &str, plan: &[&str]) -> (RunRecord, Duration) {
        let file = format!("{name}.fslab");
        let started = Instant::now();
        let output = self.fslab(&[&["run"][..], plan, &["-o", &file]].concat());
        let took = started.elapsed();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "run {plan:?}: {said}");
        (store::read(&self.directory.path().join(&file)).expect("a run"), took)
    }

    fn compare(&self, one: &str, other: &str, more: &[&str]) -> Output {
        let files = [one, other].map(|name| format!("{name}.fslab"));
        self.fslab(&[&["compare", &files[0], &files[1]][..], more].concat())
    }

    /// Exit status and text of a gate of 1 %.
    fn gate(&self, one: &str, other: &str, more: &[&str]) -> (i32, String) {
        let gated = [more, &["--gate", "1%", "--format", "json"]].concat();
        let output = self.compare(one, other, &gated);
        let said = json(&output);
        let text = said["gate"]["text"].as_str().expect("a gate has a text").to_owned();
        (output.status.code().expect("an exit status"), text)
    }

    /// All tests of a comparison.
    fn changes(&self, one: &str, other: &str, more: &[&str]) -> Vec<Change> {
        let said = json(&self.compare(one, other, &[more, &["--format", "json"]].concat()));
        let tests = said["steps"][0]["tests"].as_array().expect("a step has tests").clone();
        tests.iter().map(Change::read).collect()
    }
}

fn json(output: &Output) -> serde_json::Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Process that uses one CPU until it is dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        Self(child.expect("a shell starts"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Values of all probes in two runs.
fn probes(one: &RunRecord, other: &RunRecord) -> Vec<Probe> {
    let mut probes = Vec::new();
    for (at, cell) in one.cells.iter().enumerate().filter(|(_, cell)| !cell.cell.aa_duplicate) {
        let same = |record: &&model::record::CellRecord| record.cell == cell.cell;
        let there = other.cells.iter().position(|record| same(&record)).expect("the same plan");
        let phases = cell.phases.iter().filter(|phase| phase.role == Role::Measure);
        let phases = phases.map(|phase| (phase.name.as_str(), phase.primary));
        for (name, metric) in phases.chain(STEPS.map(|step| (step, Metric::StepInstructions))) {
            let values = [values(one, at, name, metric), values(other, there, name, metric)];
            let filesystem = cell.cell.filesystem.name.clone();
            probes.push(Probe { filesystem, name: name.to_owned(), values });
        }
    }
    probes
}

/// Values of a metric over the trials of a cell.
fn values(record: &RunRecord, cell: usize, phase: &str, metric: Metric) -> Vec<f64> {
    let trials = record.trials.iter().filter(|trial| trial.cell == cell);
    let measured = trials.filter(|trial| trial.outcome == Outcome::Measured);
    let samples = measured.flat_map(|trial| &trial.samples);
    let own = samples.filter(|sample| {
        sample.phase == phase && sample.metric == metric && sample.worker.is_none()
    });
    own.map(|sample| sample.value).collect()
}

/// Host as one line.
fn host() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.and_then(|rest| rest.split_once(':')).map_or("", |(_, name)| name.trim());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {processors} CPUs; {}", release())
}

/// Name and release of the host kernel.
fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// Last component of a path.
fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy().into_owned())
}
