//! Runs in guests on the QEMU emulator, as any user.

use std::{fs, path::PathBuf, process::Command};

use model::{
    Clock, Metric, RunRecord, Sample, Warning,
    metric::Unit,
    record::{Outcome, TrialRecord},
};

use crate::support::{Bench, finished, on_path, root, skipped};

const PLAN: &str = r#"
profile = "quick"
repetitions = 1
seed = 1
guest = "tcg"
[storage]
image_size = "320MiB"
[axes]
filesystem = ["ext4", "xfs"]
workload = [{ suite = "small-files", files = 40, file_size_mean = "4KiB" }]
"#;

/// Maximum relative difference between two repetitions, as stated in the guide.
const REPETITIONS_WITHIN: f64 = 0.01;

/// Package of the oldest available kernel in `$FSLAB_KERNELS`, or in the directory of
/// `scripts/prepare`.
pub(crate) fn package() -> Option<PathBuf> {
    let named = std::env::var_os("FSLAB_KERNELS").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| root().join("target/kernels"));
    let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("linux-image-") && name.ends_with(".deb") && !name.contains("cloud")
    };
    files.filter(fits).min()
}

#[test]
fn filesystems_are_measured_in_a_guest_without_root() {
    const NAME: &str = "filesystems_are_measured_in_a_guest_without_root";
    let (Some(package), true) = (package(), runs_here("tcg")) else {
        return skipped(NAME, "QEMU and a kernel package");
    };
    let bench = Bench::new();
    let (plan, run) = (bench.plan(PLAN), bench.path("run.fslab"));
    let kernel = package.display().to_string();
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "--kernel", &kernel]);
    let record = store::read(&run).unwrap();
    assert_eq!(record.trials.len(), 2);
    for trial in &record.trials {
        assert_eq!(trial.outcome, Outcome::Measured);
        let guest =
            |(_, warning): &(_, Warning)| matches!(warning, Warning::MeasuredInGuest { .. });
        assert!(trial.warnings.iter().any(guest));
        assert!(!trial.samples.is_empty());
    }
    let fact = |name: &str| record.environment.get(name).unwrap_or_default().to_owned();
    assert_eq!(fact("guest.engine"), "tcg");
    assert_eq!(fact("guest.host_flush"), "yes");
    let release = fact("kernel.release");
    assert!(!release.is_empty() && kernel.contains(&release), "{release}: {kernel}");
    // A single kernel is an environment fact of the run, not part of its cells.
    assert!(record.cells.iter().all(|cell| cell.cell.settings.is_empty()));
    for folder in ["/dev/shm".into(), std::env::temp_dir()] {
        let mut names = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name());
        assert!(!names.any(|name| name.to_string_lossy().contains(&record.info.id)));
    }
    let report = bench.ends(0, &["report", "run.fslab", "--detail"]);
    assert!(report.stdout.contains("measured-in-guest"), "{}", report.stdout);
}

/// Plan with disks of known delays. Only reads are delayed, so creating and filling the filesystem
/// is fast.
const SLOW: &str = r#"
profile = "quick"
repetitions = 1
seed = 1
guest = "tcg"
fsck = false
[storage]
image_size = "64MiB"
[axes]
filesystem = [
  "ext4",
  { name = "ext4-20ms", type = "ext4", layers = [{ delay = "20ms", write_delay = "0s" }] },
  { name = "ext4-200ms", type = "ext4", layers = [{ delay = "200ms", write_delay = "0s" }] },
]
workload = [{ suite = "stream", file_size = "1MiB", block_size = "4KiB", access_pattern = "random", direct = true, operations = 8 }]
"#;

#[test]
fn a_disk_with_a_known_delay_is_measured_at_that_delay() {
    const NAME: &str = "a_disk_with_a_known_delay_is_measured_at_that_delay";
    let (Some(package), true, true) = (package(), runs_here("tcg"), on_path("dmsetup")) else {
        return skipped(NAME, "QEMU, a kernel package, and dmsetup");
    };
    let bench = Bench::new();
    let (plan, kernel) = (bench.plan(SLOW), package.display().to_string());
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "--kernel", &kernel]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let mean = |name: &str| {
        let trials = trials(&record, name);
        let [trial] = trials[..] else { panic!("{name}: {}", trials.len()) };
        assert_eq!(trial.outcome, Outcome::Measured, "{name}");
        let of = |sample: &&model::Sample| {
            sample.metric == Metric::LatencyMean && sample.worker.is_none()
        };
        let samples: Vec<_> = trial.samples.iter().filter(of).collect();
        let [sample] = samples[..] else { panic!("{name}: {samples:?}") };
        sample.value
    };
    let [none, short, long] = ["ext4", "ext4-20ms", "ext4-200ms"].map(mean);
    // dm-delay counts ticks of 4 ms (CONFIG_HZ=250) from the current tick, so it can be one tick
    // early. The load of the host makes it late, equally for all disks.
    assert!(short >= 16e6 && long >= 196e6, "{short} {long}");
    assert!(none < short && long > 4.0 * short, "{none} {short} {long}");
}

/// Plan with one ext4 per disk. On the disk that fails completely, only the file is read, because
/// its directory is cached after the layout.
const FAILING: &str = r#"
profile = "quick"
repetitions = 2
seed = 1
guest = "KIND"
[storage]
image_size = "128MiB"
image_count = 2
[axes]
filesystem = [
  { name = "sound", type = "ext4", device_count = 1 },
  { name = "flakey", type = "ext4", device_count = 1, layers = [{ flakey = "error" }] },
  { name = "logged", type = "ext4", layers = [{ log_writes = true }] },
]
workload = [{ suite = "stream", file_size = "16MiB", block_size = "64KiB", direct = true, cache = "unchanged" }]
"#;

/// Parts of the message of a failed read.
const READ_FAILED: [&str; 3] =
    ["reading ", "/file.0 at offset ", "Input/output error (os error 5)"];

#[test]
fn a_failing_disk_fails_its_trials_and_the_run_continues() {
    const NAME: &str = "a_failing_disk_fails_its_trials_and_the_run_continues";
    let Some((kind, more)) = guest_with_dmsetup(NAME) else { return };
    let bench = Bench::new();
    let plan = bench.plan(&FAILING.replace("KIND", kind));
    let output = bench.ends(4, &with(&["run", &plan, "-o", "run.fslab"], &more));
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let flakey = trials(&record, "flakey");
    let [trial] = flakey[..] else { panic!("{}\n{}", flakey.len(), output.stderr) };
    let Outcome::Failed { reason } = &trial.outcome else { panic!("{trial:?}") };
    assert!(READ_FAILED.iter().all(|text| reason.contains(text)), "{reason}");
    for name in ["sound", "logged"] {
        let trials = trials(&record, name);
        assert_eq!(trials.len(), 2, "{name}: {}", output.stderr);
        assert!(trials.iter().all(|trial| trial.outcome == Outcome::Measured), "{name}");
    }
    assert_eq!(record.trials.last().map(|trial| trial.repetition), Some(1), "the run continued");
    for trial in trials(&record, "logged") {
        let fact = |name: &str| trial.environment.get(&format!("layers.log-writes.{name}"));
        let number = |name: &str| fact(name).and_then(|text| text.parse::<u64>().ok());
        // The log contains the file, and the metadata that the filesystem has written.
        let (entries, end) = (number("entries"), number("end_bytes"));
        assert!(end > Some(16 << 20) && entries > Some(16), "{entries:?} {end:?}");
    }
    let report = bench.ends(0, &["report", "run.fslab"]).stdout;
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Failed: flakey") && words.contains("Input/output error"), "{report}");
}

/// Plan in which the metadata is on intact blocks at the start of the disk, and the file is larger
/// than these.
const DUSTY: &str = r#"
profile = "quick"
repetitions = 1
seed = 1
guest = "uml"
[storage]
image_size = "256MiB"
[axes]
filesystem = [{ name = "dust", type = "ext4", layers = [{ dust = "2-15", block_size = "16MiB" }] }]
workload = [{ suite = "stream", file_size = "64MiB", block_size = "64KiB", direct = true, cache = "unchanged" }]
"#;

/// Kernels of Debian packages lack dm-dust; the user-mode Linux kernel has it.
#[test]
fn bad_blocks_fail_their_reads() {
    const NAME: &str = "bad_blocks_fail_their_reads";
    if !runs_here("uml") || !on_path("dmsetup") {
        return skipped(NAME, "user-mode Linux (dm-dust) that runs on this CPU, and dmsetup");
    }
    let bench = Bench::new();
    bench.ends(3, &["run", &bench.plan(DUSTY), "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let [trial] = trials(&record, "dust")[..] else { panic!("{:?}", record.trials) };
    let Outcome::Failed { reason } = &trial.outcome else { panic!("{trial:?}") };
    // On a slow machine, the thread that prefetches block bitmaps may find a bad block first.
    let prefetch = reason.contains("Cannot read block bitmap");
    assert!(prefetch || READ_FAILED.iter().all(|text| reason.contains(text)), "{reason}");
    // The first 32 MiB of the 256 MiB are intact, the other blocks of 16 MiB are bad.
    assert!(
        trial
            .actions
            .iter()
            .any(|action| action.description.ends_with("addbadblock, for 14 blocks"))
    );
}

/// Plan with a disk that drops writes. They are detected when the data is read from the disk, not
/// while it is cached.
const LYING: &str = r#"
profile = "quick"
repetitions = 1
seed = 1
guest = "KIND"
[storage]
image_size = "64MiB"
[axes]
filesystem = ["ext4", { name = "lying", type = "ext4", layers = [{ flakey = "drop_writes" }] }]
workload = [{ suite = "small-files", files = 40, file_size_mean = "4KiB" }]
"#;

#[test]
fn dropped_writes_are_detected_with_cold_caches() {
    const NAME: &str = "dropped_writes_are_detected_with_cold_caches";
    let Some((kind, more)) = guest_with_dmsetup(NAME) else { return };
    let bench = Bench::new();
    let plan = bench.plan(&LYING.replace("KIND", kind));
    bench.ends(4, &with(&["run", &plan, "-o", "run.fslab"], &more));
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!(trials(&record, "ext4")[0].outcome, Outcome::Measured);
    let lying = trials(&record, "lying")[0];
    assert!(lying.samples.iter().any(|sample| sample.phase == "write"));
    let Outcome::Failed { reason } = &lying.outcome else { panic!("{lying:?}") };
    assert!(reason.starts_with("stat: ") && reason.contains("is missing"), "{reason}");
}

/// Trials of a filesystem, in the order of execution.
fn trials<'a>(record: &'a RunRecord, name: &str) -> Vec<&'a TrialRecord> {
    let of = |trial: &&TrialRecord| record.cells[trial.cell].cell.filesystem.name == name;
    record.trials.iter().filter(of).collect()
}

const ICOUNT: &str = r#"
profile = "quick"
repetitions = 2
seed = 1
guest = "icount"
fsck = false
[storage]
image_size = "320MiB"
[axes]
filesystem = ["ext4", "xfs"]
workload = [{ suite = "metadata", operations = ["create", "open", "stat"], files = 200, passes = 20, file_size = "4KiB" }]
"#;

#[test]
fn icount_guests_report_instructions_only() {
    const NAME: &str = "icount_guests_report_instructions_only";
    let (Some(package), true) = (package(), runs_here("tcg")) else {
        return skipped(NAME, "QEMU and a kernel package");
    };
    let bench = Bench::new();
    let (plan, run) = (bench.plan(ICOUNT), bench.path("run.fslab"));
    let kernel = package.display().to_string();
    let output = bench.ends(0, &["run", &plan, "-o", "run.fslab", "--kernel", &kernel]);
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
        assert!(output.stderr.contains(" concurrent"), "{}", output.stderr);
    }
    let record = store::read(&run).unwrap();
    // Trials are stored in the order of the rounds, not in the order in which they end.
    assert_eq!(
        record.trials.iter().map(|trial| trial.repetition).collect::<Vec<_>>(),
        [0, 0, 1, 1]
    );
    assert_eq!(Clock::of(&record.environment), Clock::Instructions);
    assert_eq!(record.trials.len(), 4);
    assert!(record.trials.iter().all(|trial| trial.outcome == Outcome::Measured));
    for sample in record.trials.iter().flat_map(|trial| &trial.samples) {
        let metric = sample.metric;
        let timed = [Unit::Nanoseconds, Unit::OpsPerSecond, Unit::BytesPerSecond, Unit::Hertz];
        assert!(!timed.contains(&metric.spec().unit), "{}", metric.name());
    }
    for cell in 0..2 {
        // Counts of read-only operations vary only because kernel threads are included.
        for phase in ["open", "stat"] {
            let per_op = |sample: &&Sample| {
                sample.phase == phase && sample.metric == Metric::InstructionsPerOp
            };
            let trials = record.trials.iter().filter(|trial| trial.cell == cell);
            let values = trials.filter_map(|trial| trial.samples.iter().find(per_op));
            let values: Vec<f64> = values.map(|sample| sample.value).collect();
            let [first, second] = values[..] else { panic!("two repetitions: {values:?}") };
            assert!((first / second - 1.0).abs() < REPETITIONS_WITHIN, "{phase}: {values:?}");
            // A system call takes hundreds of instructions, and up to several thousand with the
            // time measurement.
            assert!((500.0..50_000.0).contains(&first), "{phase}: {first}");
        }
        let step = |name: &str| {
            let mut samples = record.trials.iter().filter(|trial| trial.cell == cell);
            let of =
                |sample: &Sample| sample.phase == name && sample.metric == Metric::StepInstructions;
            samples.all(|trial| trial.samples.iter().any(of))
        };
        assert!(["mkfs", "mount", "umount"].into_iter().all(step));
    }
    let report = bench.ends(0, &["report", "run.fslab", "--detail"]).stdout;
    bench.ends(0, &["report", "run.fslab", "--html", "report.html"]);
    let page = fs::read_to_string(bench.path("report.html")).unwrap();
    for text in [&report, &page] {
        let text = text.replace('\n', " ");
        assert!(text.to_lowercase().contains("guest instructions per operation"), "{text}");
        for time in ["ops/s", "s/op", "µs"] {
            assert!(!text.contains(time), "{time}");
        }
    }
    assert!(page.contains("In a guest (icount, guest instructions)"), "below the figures");
}

/// Runs all commands of the regression guide with fewer trials, so that the gate is inconclusive.
#[test]
fn the_commands_of_the_regression_guide_work() {
    const NAME: &str = "the_commands_of_the_regression_guide_work";
    let (Some(package), true) = (package(), runs_here("tcg")) else {
        return skipped(NAME, "QEMU and a kernel package");
    };
    let bench = Bench::new();
    let guide = fs::read_to_string(root().join("docs/guides/regressions.md")).unwrap();
    let blocks = guide.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    let blocks: Vec<String> =
        blocks.map(|(block, _)| block.replace("repetitions=7", "repetitions=2")).collect();
    let [measure, compare, script] = &blocks[..] else { panic!("{blocks:?}") };
    let program = PathBuf::from(env!("CARGO_BIN_EXE_fslab"));
    let folder = program.parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let shell = |text: &str| {
        let mut command = Command::new("sh");
        command.args(["-euc", text]).current_dir(bench.path("."));
        command.env("PATH", &path).env("FSLAB_STATE", bench.state());
        finished(command.env("OLD", &package).env("NEW", &package).output().unwrap())
    };
    let measured = shell(measure);
    assert_eq!(measured.status, Some(0), "{}", measured.stderr);
    let compared = shell(compare);
    assert_eq!(compared.status, Some(6), "{}{}", compared.stdout, compared.stderr);
    assert!(compared.stdout.contains("gate 1 %: inconclusive"), "{}", compared.stdout);
    let gated = shell(&format!("{script}\n./gate.sh"));
    assert_eq!(gated.status, Some(125), "{}{}", gated.stdout, gated.stderr);
}

#[test]
fn impossible_guests_are_rejected_before_any_change() {
    let bench = Bench::new();
    let refused = |plan: &str, more: &[&str], why: &str| {
        let plan = bench.plan(plan);
        let output = bench.ends(2, &[&["run", &plan], more].concat());
        assert!(output.stderr.contains(why), "{}", output.stderr);
    };
    const DIRECTORY: &str =
        "repetitions = 1\n[storage]\ndirectory = \"/tmp\"\n[axes]\nworkload = [\"fsync-4k\"]\n";
    refused(DIRECTORY, &["--guest", "tcg"], "guests use image files as disks");
    refused(PLAN, &["--set", "guest_device_latency=1ms"], "applies to icount guests only");
    refused(ICOUNT, &["--set", "image_count=2"], "have one disk");
    refused(PLAN, &["--guest", "vm"], "auto, kvm, icount, uml, tcg");
    refused(&PLAN.replace("\"tcg\"", "\"vm\""), &[], "unknown guest `vm`");
    if runs_here("tcg") {
        refused(PLAN, &["--kernel", "/not/here.deb"], "/not/here.deb");
    }
}

#[test]
fn supported_guests_are_listed() {
    let bench = Bench::new();
    let output = bench.ends(0, &["guest", "check"]).stdout;
    for kind in ["kvm", "icount", "uml", "tcg"] {
        let row = output.lines().find(|line| line.split_whitespace().next() == Some(kind));
        let here = row.and_then(|row| row.split_whitespace().nth(1));
        assert!(matches!(here, Some("yes" | "no")), "{kind}:\n{output}");
    }
    let doctor = bench.ends(0, &["doctor"]).stdout;
    let line = doctor.lines().find(|line| line.starts_with("guests "));
    assert!(line.is_some_and(|line| line.contains("fslab guest check")), "{doctor}");
    let (list, known) = (bench.ends(0, &["guest", "kernel", "list"]), on_path("linux.uml"));
    assert!(!known || list.stdout.contains("linux.uml"), "{list:?}");
    assert!(known || !list.stdout.is_empty() || list.stderr.contains("apt-get download"));
}

#[test]
fn a_missing_source_is_reported_with_a_hint() {
    let bench = Bench::new();
    let build = ["guest", "kernel", "build"];
    let of = |more: &[&str]| bench.ends(2, &[&build, more].concat()).stderr;
    let output = of(&["--source", "/nowhere/linux-source-6.1.deb"]);
    assert!(output.contains("/nowhere/linux-source-6.1.deb does not exist"), "{output}");
    assert!(output.contains("apt-get download linux-source-6.1"), "{output}");
    assert!(of(&["--source", "0.01"]).contains("no kernel source 0.01 is installed"));
    fs::write(bench.path("words.tar"), "words").unwrap();
    assert!(of(&["--source", "words.tar"]).contains("words.tar"));
    of(&["--jobs", "0"]);
    assert!(bench.ends(0, &[&build[..], &["--help"]].concat()).stdout.contains("Exit status"));
}

/// Kind of guest that runs on this machine, preferably the faster one, and its kernel arguments.
fn guest_with_dmsetup(test: &str) -> Option<(&'static str, Vec<String>)> {
    let dmsetup = on_path("dmsetup");
    match package().map(|package| package.display().to_string()) {
        _ if dmsetup && runs_here("uml") => Some(("uml", Vec::new())),
        Some(package) if dmsetup && runs_here("tcg") => {
            Some(("tcg", vec!["--kernel".into(), package]))
        }
        Some(_) | None => {
            skipped(test, "dmsetup, and user-mode Linux or QEMU and a kernel package");
            None
        }
    }
}

/// True if `fslab guest check` reports that a kind of guest runs without a kernel given as a path.
pub(crate) fn runs_here(kind: &str) -> bool {
    let output = Bench::new().ends(0, &["guest", "check"]).stdout;
    let row = output.lines().find(|line| line.split_whitespace().next() == Some(kind));
    let row = row.unwrap_or_default();
    row.split_whitespace().nth(1) == Some("yes") && !row.contains("with a kernel given as a path")
}

/// Arguments followed by additional ones.
fn with<'a>(arguments: &[&'a str], more: &'a [String]) -> Vec<&'a str> {
    arguments.iter().copied().chain(more.iter().map(String::as_str)).collect()
}
