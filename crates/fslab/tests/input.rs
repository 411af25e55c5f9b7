//! Invalid input: one message with location and hint, the correct exit status, and no changes.

use std::fs;

use expect_test::{Expect, expect};

use crate::support::{Bench, needs_root};

const SMALL: &str = r#"
[axes]
filesystem = ["ext2"]
workload = [{ suite = "iozone", file_size = "1MiB", block_size = "64KiB", tests = ["write"] }]
"#;

/// Runs an invalid plan and compares the message on stderr.
#[track_caller]
fn refused(plan: &str, expected: Expect) {
    let bench = Bench::new();
    bench.plan(plan);
    let output = bench.ends(2, &["run", "plan.toml"]);
    expected.assert_eq(&output.stderr);
    assert_eq!(output.stdout, "");
    let mut left: Vec<_> =
        fs::read_dir(bench.path(".")).unwrap().map(|e| e.unwrap().path()).collect();
    left.retain(|path| !path.ends_with("plan.toml"));
    assert!(left.is_empty(), "files were changed: {left:?}");
}

#[test]
fn an_unknown_key() {
    refused(
        &format!("repeat = 3\n[storage]\nimage_size = \"64MiB\"\n{SMALL}"),
        expect![[r#"
            error: the plan has no key `repeat`
             --> plan.toml:1:1
              |
            1 | repeat = 3
              | ^^^^^^ did you mean `repetitions`?
        "#]],
    );
}

#[test]
fn a_wrong_unit() {
    refused(
        &format!("[storage]\nimage_size = \"64MB\"\n{SMALL}"),
        expect![[r#"
            error: `64MB` is ambiguous: 64000000 or 67108864 bytes; write `64MiB` for 67108864, or `64000000B`
             --> plan.toml:2:14
              |
            2 | image_size = "64MB"
              |              ^^^^^^ here
        "#]],
    );
    let record = SMALL.replace("64KiB", "4KB");
    refused(
        &format!("[storage]\nimage_size = \"64MiB\"\n{record}"),
        expect![[r#"
            error: `4KB` is ambiguous: 4000 or 4096 bytes; write `4KiB` for 4096, or `4000B`
             --> plan.toml:6:66
              |
            6 | workload = [{ suite = "iozone", file_size = "1MiB", block_size = "4KB", tests = ["write"] }]
              |                                                                  ^^^^^ here
        "#]],
    );
}

#[test]
fn a_duration_of_zero_or_less() {
    refused(
        &format!("time_limit = \"0s\"\n[storage]\nimage_size = \"64MiB\"\n{SMALL}"),
        expect![[r#"
            error: `time_limit` is 0
             --> plan.toml:1:14
              |
            1 | time_limit = "0s"
              |              ^^^^ use a duration such as "2h", or remove the key
        "#]],
    );
    refused(
        &format!("time_limit = \"-1h\"\n[storage]\nimage_size = \"64MiB\"\n{SMALL}"),
        expect![[r#"
            error: `-1h` is negative; use a duration such as `10s`
             --> plan.toml:1:14
              |
            1 | time_limit = "-1h"
              |              ^^^^^ here
        "#]],
    );
}

#[test]
fn an_impossible_size() {
    let file = SMALL.replace("1MiB", "1GiB");
    refused(
        &format!("[storage]\nimage_size = \"64MiB\"\n{file}"),
        expect![[r#"
            error: the workload needs 1GiB plus 12.5 % for metadata, but the storage has 64MiB
             --> plan.toml:6:13
              |
            6 | workload = [{ suite = "iozone", file_size = "1GiB", block_size = "64KiB", tests = ["write"] }]
              |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ use smaller files or larger storage
        "#]],
    );
}

#[test]
fn a_workload_that_does_not_fit_above_the_fill_level() {
    let bench = Bench::new();
    let file = SMALL.replace("1MiB", "16MiB").replace("[axes]", "[axes]\nfill_percent = [0, 80]");
    let plan = bench.plan(&format!("[storage]\nimage_size = \"64MiB\"\n{file}"));
    for command in ["run", "show"] {
        let output = bench.ends(2, &[command, &plan]);
        expect![[r#"
            error: iozone fill_percent=80: the workload needs 16.0 MiB plus 12.5 % for metadata, but only 12.8 MiB of 64.0 MiB are available at fill level 80 %; use smaller files, a larger `storage.image_size`, or a lower `fill_percent`
        "#]]
        .assert_eq(&output.stderr);
        assert_eq!(output.stdout, "");
    }
    let output = bench.ends(0, &["show", &plan, "--set", "fill_percent=0,50"]);
    assert!(
        output.stdout.contains("fill        0 %, 50 % before each workload"),
        "{}",
        output.stdout
    );
}

#[test]
fn text_that_is_not_a_plan() {
    refused(
        "this is not TOML",
        expect![[r#"
        error: key with no value, expected `=`
         --> plan.toml:1:6
          |
        1 | this is not TOML
          |      ^ a plan is TOML: `key = "value"`, `[table]`, lists in brackets
    "#]],
    );
}

#[test]
fn a_missing_plan() {
    let bench = Bench::new();
    let output = bench.ends(2, &["run", "dmeo"]);
    expect![[r#"
        error: no plan or workload `dmeo`; did you mean the built-in plan `demo`?
    "#]]
    .assert_eq(&output.stderr);
}

#[test]
fn an_unsupported_setting() {
    let output = Bench::new().ends(2, &["run", "demo", "--set", "fiel_size=4KiB"]);
    expect![[r#"
        error: --set fiel_size=4KiB: the plan has no key `fiel_size`; did you mean `file_size`?
    "#]]
    .assert_eq(&output.stderr);
}

#[test]
fn a_missing_tool_is_a_skipped_cell_with_the_package_to_install() {
    let bench = Bench::new();
    fs::write(
        bench.path("more.toml"),
        r#"
[[filesystem]]
name = "nofs"
title = "A filesystem without an installed tool"
fstype = "ext2"
magic = 0xef53
min_size = "1MiB"
mkfs = ["mkfs.nofs", "{options}", "{device}"]
kernel = { since = "1.0" }
source = "nowhere"
[filesystem.package]
debian = "nofs-progs"
"#,
    )
    .unwrap();
    let plan = format!("[storage]\nimage_size = \"64MiB\"\n{SMALL}").replace("ext2", "nofs");
    let plan = bench.plan(&plan);
    let output = bench.ends(0, &["list", "filesystems", "--catalog", "more.toml"]);
    assert!(output.stdout.contains("mkfs.nofs not found"), "{}", output.stdout);
    let output = bench.ends(3, &["run", &plan, "--catalog", "more.toml"]);
    let expected = match needs_root("a_missing_tool_is_a_skipped_cell_with_the_package_to_install")
    {
        true => "nofs: mkfs.nofs",
        false => "requires root",
    };
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}

#[test]
fn a_run_file_that_cannot_be_written() {
    let bench = Bench::new();
    let plan = bench.plan(&format!("[storage]\nimage_size = \"64MiB\"\n{SMALL}"));
    let output = bench.ends(2, &["run", &plan, "-o", "/proc/nothing/run.fslab"]);
    let message =
        "/proc/nothing/run.fslab cannot be written: /proc/nothing is not a directory; use";
    assert!(output.stderr.contains(message), "{}", output.stderr);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}

#[test]
fn a_run_file_that_exists() {
    let bench = Bench::new();
    let plan = bench.plan(&format!("[storage]\nimage_size = \"64MiB\"\n{SMALL}"));
    fs::write(bench.path("old.fslab"), "precious").unwrap();
    let output = bench.ends(2, &["run", &plan, "-o", "old.fslab"]);
    let message =
        "old.fslab exists and is not a run file of this version; use another path with -o";
    assert!(output.stderr.contains(message), "{}", output.stderr);
    assert_eq!(fs::read_to_string(bench.path("old.fslab")).unwrap(), "precious");
}

#[test]
fn a_report_on_something_else() {
    let bench = Bench::new();
    fs::write(bench.path("x.fslab"), "not a run").unwrap();
    let output = bench.ends(2, &["report", "x.fslab"]);
    assert!(output.stderr.contains("is not a run file"), "{}", output.stderr);
    let output = bench.ends(2, &["report", "missing.fslab"]);
    assert!(output.stderr.contains("cannot open the run file missing.fslab"), "{}", output.stderr);
}

#[test]
fn a_directory_that_cannot_be_written() {
    let bench = Bench::new();
    let plan = bench.plan(
        "[storage]\ndirectory = \"/proc/self\"\n[axes]\n\
         workload = [{ suite = \"iozone\", file_size = \"1MiB\", tests = [\"write\"] }]",
    );
    let output = bench.ends(3, &["run", &plan]);
    assert!(output.stderr.contains("/proc/self"), "{}", output.stderr);
}

#[test]
fn a_full_disk_fails_the_cell_and_the_run_continues() {
    if !needs_root("a_full_disk_fails_the_cell_and_the_run_continues") {
        return;
    }
    // 200,000 inodes of 256 bytes take 49 of the 64 MiB: the file fits the image, but not the
    // filesystem.
    let bench = Bench::new();
    let plan = bench.plan(
        r#"
repetitions = 1
[storage]
image_size = "64MiB"
[axes]
filesystem = [{ name = "full", type = "ext2", mkfs_options = ["-N", "200000"] }, "ext2"]
workload = [{ suite = "iozone", file_size = "40MiB", block_size = "64KiB", tests = ["write"] }]
"#,
    );
    let output = bench.ends(4, &["run", &plan, "-o", "run.fslab"]);
    assert!(
        output.stderr.contains("FAILED") && output.stderr.contains("space"),
        "{}",
        output.stderr
    );
    let report = bench.ends(0, &["report", "run.fslab"]).stdout;
    assert!(report.contains("full") && report.contains("failed"), "{report}");
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}

#[test]
fn a_file_larger_than_the_free_space_of_a_directory() {
    let bench = Bench::new();
    let plan = bench.plan(
        "[storage]\ndirectory = \".\"\n[axes]\n\
         workload = [{ suite = \"iozone\", file_size = \"900TiB\", tests = [\"write\"] }]",
    );
    let output = bench.ends(2, &["run", &plan]);
    assert!(output.stderr.contains("900TiB plus 12.5 % for metadata"), "{}", output.stderr);
}

#[test]
fn incompatible_settings() {
    let bench = Bench::new();
    let output = bench.ends(2, &["run", "demo-directory", "--set", "filesystem=ext4"]);
    assert!(output.stderr.contains("`ext4`"), "{}", output.stderr);
    let output = bench.ends(2, &["show", "demo", "--scale", "1/100000"]);
    assert!(output.stderr.contains("use a larger scale"), "{}", output.stderr);
}

#[test]
fn a_run_is_not_overwritten_by_its_report() {
    let bench = Bench::new();
    let small = ["--set", "repetitions=1", "--set", "file_size=1MiB", "--set", "files=10"];
    bench.ends(0, &[&["run", "demo-directory", "-o", "run.fslab"], &small[..]].concat());
    let before = fs::read(bench.path("run.fslab")).unwrap();
    bench.ends(2, &["report", "run.fslab", "--html", "run.fslab"]);
    assert_eq!(fs::read(bench.path("run.fslab")).unwrap(), before);
    let output = bench.ends(0, &["run", "--resume", "run.fslab"]);
    assert!(output.stderr.contains("nothing is left to do"), "{}", output.stderr);
    assert_eq!(fs::read(bench.path("run.fslab")).unwrap(), before);
}
