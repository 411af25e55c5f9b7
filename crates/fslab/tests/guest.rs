//! Runs in throw-away guests, by QEMU's emulator, as whoever runs the tests.

use std::{fs, path::PathBuf};

use model::{Warning, record::Outcome};

use crate::support::{Bench, root, skipped};

const PLAN: &str = r#"
profile = "quick"
repeats = 1
seed = 1
guest = "tcg"
[storage]
image = "320MiB"
[axes]
filesystem = ["ext4", "xfs"]
workload = [{ suite = "smallfile", files = 40, mean_size = "4KiB" }]
"#;

/// The package of a kernel: in `$FSLAB_KERNELS`, or where `scripts/prepare --guest` puts one.
fn package() -> Option<PathBuf> {
    let named = std::env::var_os("FSLAB_KERNELS").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| root().join("target/kernels"));
    let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("linux-image-6.1.") && name.ends_with(".deb") && !name.contains("cloud")
    };
    files.filter(fits).min()
}

#[test]
fn filesystems_are_measured_in_a_guest_by_anyone() {
    const NAME: &str = "filesystems_are_measured_in_a_guest_by_anyone";
    let (Some(package), true) = (package(), on_path("qemu-system-x86_64")) else {
        return skipped(NAME, "QEMU and a kernel's package");
    };
    let bench = Bench::new();
    let (plan, run) = (bench.plan(PLAN), bench.path("run.fslab"));
    let kernel = package.display().to_string();
    bench.ends(0, &["run", &plan, "-o", "run.fslab", "--kernel", &kernel]);
    let record = store::read(&run).unwrap();
    assert_eq!(record.trials.len(), 2);
    for trial in &record.trials {
        assert_eq!(trial.outcome, Outcome::Measured);
        let guest = |(_, warning): &(_, Warning)| matches!(warning, Warning::InGuest { .. });
        assert!(trial.warnings.iter().any(guest));
        assert!(!trial.samples.is_empty());
    }
    let fact = |name: &str| record.environment.get(name).unwrap_or_default().to_owned();
    assert_eq!(fact("guest.engine"), "tcg");
    assert_eq!(fact("guest.host_flush"), "yes");
    assert!(fact("kernel.release").starts_with("6.1."), "{}", fact("kernel.release"));
    // One kernel is a fact of the run, and no part of what its cells are.
    assert!(record.cells.iter().all(|cell| cell.cell.factors.is_empty()));
    for folder in ["/dev/shm".into(), std::env::temp_dir()] {
        let mut names = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name());
        assert!(!names.any(|name| name.to_string_lossy().contains(&record.info.id)));
    }
    let report = bench.ends(0, &["report", "run.fslab"]);
    assert!(report.stdout.contains("W-GUEST"), "{}", report.stdout);
}

#[test]
fn what_cannot_be_a_guest_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    let refused = |plan: &str, more: &[&str], why: &str| {
        let plan = bench.plan(plan);
        let said = bench.ends(2, &[&["run", &plan], more].concat());
        assert!(said.stderr.contains(why), "{}", said.stderr);
    };
    const DIRECTORY: &str =
        "repeats = 1\n[storage]\ndirectory = \"/tmp\"\n[axes]\nworkload = [\"fsync-4k\"]\n";
    refused(DIRECTORY, &["--guest", "tcg"], "disks are image files");
    refused(PLAN, &["--guest", "vm"], "auto, kvm, uml, tcg");
    refused(&PLAN.replace("\"tcg\"", "\"vm\""), &[], "there is no guest `vm`");
    if on_path("qemu-system-x86_64") {
        refused(PLAN, &["--kernel", "/not/here.deb"], "/not/here.deb");
    }
}

#[test]
fn which_guests_there_can_be_is_told() {
    let bench = Bench::new();
    let said = bench.ends(0, &["guest", "check"]).stdout;
    for kind in ["kvm", "counted", "uml", "tcg"] {
        let row = said.lines().find(|line| line.split_whitespace().next() == Some(kind));
        let here = row.and_then(|row| row.split_whitespace().nth(1));
        assert!(matches!(here, Some("yes" | "no")), "{kind}:\n{said}");
    }
    let doctor = bench.ends(0, &["doctor"]).stdout;
    let line = doctor.lines().find(|line| line.starts_with("guests "));
    assert!(line.is_some_and(|line| line.contains("fslab guest check")), "{doctor}");
    let (list, known) = (bench.ends(0, &["guest", "kernel", "list"]), on_path("linux.uml"));
    assert!(!known || list.stdout.contains("linux.uml"), "{list:?}");
    assert!(known || !list.stdout.is_empty() || list.stderr.contains("apt-get download"));
}

#[test]
fn a_source_that_is_missing_is_told_with_what_gets_one() {
    let bench = Bench::new();
    let build = ["guest", "kernel", "build"];
    let of = |more: &[&str]| bench.ends(2, &[&build, more].concat()).stderr;
    let said = of(&["--source", "/nowhere/linux-source-6.1.deb"]);
    assert!(said.contains("there is no /nowhere/linux-source-6.1.deb"), "{said}");
    assert!(said.contains("apt-get download linux-source-6.1"), "{said}");
    assert!(of(&["--source", "0.01"]).contains("no source of a kernel 0.01 is installed"));
    fs::write(bench.path("words.tar"), "words").unwrap();
    assert!(of(&["--source", "words.tar"]).contains("words.tar"));
    of(&["--jobs", "0"]);
    assert!(bench.ends(0, &[&build[..], &["--help"]].concat()).stdout.contains("Exit status"));
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}
