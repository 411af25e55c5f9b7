//! Failing phases: the trial is stored as failed with operation and path, the run continues with
//! the other cells, and no changes remain.

use model::{
    RunRecord,
    record::{CellState, Outcome},
};

use crate::support::{Bench, needs_root};

/// Runs a plan with two cells, of which the first fails. Returns the run and the stored reason.
#[track_caller]
fn failed(bench: &Bench, plan: &str) -> (RunRecord, String) {
    let plan = bench.plan(plan);
    let output = bench.ends(4, &["run", &plan, "-o", "run.fslab"]);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    let failed = |state: &CellState| matches!(state, CellState::Failed { .. });
    let states: Vec<bool> = record.cells.iter().map(|cell| failed(&cell.state)).collect();
    assert_eq!(states, [true, false], "{}\n{}", output.stdout, output.stderr);
    let trial = record.trials.iter().find(|trial| trial.cell == 0).unwrap();
    let Outcome::Failed { reason } = &trial.outcome else { panic!("the trial was measured") };
    assert!(output.stdout.contains("failed"), "{}", output.stdout);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
    bench.ends(0, &["clean"]);
    let reason = reason.clone();
    (record, reason)
}

fn plan(image: &str, filesystems: &str, workload: &str) -> String {
    format!(
        "repetitions = 1\nseed = 3\n[storage]\nimage_size = \"{image}\"\n[axes]\n\
         filesystem = [{filesystems}]\nworkload = [{workload}]\n"
    )
}

const CREATE: &str = r#"{ suite = "metadata", operations = ["create"], files = 5000 }"#;

#[test]
fn a_filesystem_without_inodes_left() {
    if !needs_root("failures::a_filesystem_without_inodes_left") {
        return;
    }
    let bench = Bench::new();
    let levels = r#"{ name = "few", type = "ext4", mkfs_options = ["-N", "1024"] }, "ext4""#;
    let (_, reason) = failed(&bench, &plan("64MiB", levels, CREATE));
    assert!(reason.starts_with("create: opening /"), "{reason}");
    assert!(reason.contains("os error 28"), "{reason}");
}

#[test]
fn a_filesystem_without_space_left() {
    if !needs_root("failures::a_filesystem_without_space_left") {
        return;
    }
    let bench = Bench::new();
    // No blocks are reserved for root, so the free space ends with the filesystem.
    let levels =
        r#"{ name = "small", type = "ext4", mkfs_options = ["-J", "size=28", "-m", "0"] }, "ext4""#;
    let workload = r#"{ suite = "small-files", operations = ["write"], files = 8, file_size_mean = "4MiB", file_size_distribution = "fixed" }"#;
    let (_, reason) = failed(&bench, &plan("64MiB", levels, workload));
    assert!(reason.starts_with("write: writing /"), "{reason}");
    assert!(reason.contains("os error 28"), "{reason}");
}

#[test]
fn a_file_with_the_maximum_number_of_links() {
    if !needs_root("failures::a_file_with_the_maximum_number_of_links") {
        return;
    }
    let bench = Bench::new();
    // EXT4_LINK_MAX is 65000; XFS allows 2^31 - 1.
    let workload = r#"{ suite = "bonnie", links = "hard", files = 65536, tests = ["seq-create"] }"#;
    let (_, reason) = failed(&bench, &plan("300MiB", r#""ext4", "xfs""#, workload));
    assert!(reason.starts_with("seq-create: linking /"), "{reason}");
    assert!(reason.contains("os error 31"), "{reason}");
}

#[test]
fn a_name_that_is_too_long() {
    if !needs_root("failures::a_name_that_is_too_long") {
        return;
    }
    let bench = Bench::new();
    let workloads =
        r#"{ suite = "metadata", operations = ["create"], files = 10, name_length = [300, 250] }"#;
    let (_, reason) = failed(&bench, &plan("64MiB", r#""ext4""#, workloads));
    assert!(reason.starts_with("create: opening /"), "{reason}");
    assert!(reason.contains("os error 36"), "{reason}");
}

#[test]
fn an_exhausted_quota() {
    if !needs_root("failures::an_exhausted_quota") {
        return;
    }
    let bench = Bench::new();
    let levels = r#"{ name = "limited", type = "btrfs", setup = [
        { run_mounted = ["btrfs", "quota", "enable", "{mount}"] },
        { run_mounted = ["btrfs", "qgroup", "limit", "1M", "{mount}"] } ] }, "btrfs""#
        .replace('\n', " ");
    let workload = r#"{ suite = "small-files", operations = ["write"], files = 400, file_size_mean = "16KiB", file_size_distribution = "fixed" }"#;
    let (_, reason) = failed(&bench, &plan("256MiB", &levels, workload));
    assert!(reason.starts_with("write: "), "{reason}");
    assert!(reason.contains("os error 122"), "{reason}");
}
