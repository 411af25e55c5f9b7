//! Commands with the name of a workload instead of a plan.

use std::fs;

use expect_test::{Expect, expect};

use crate::support::{Bench, needs_root};

/// Arguments of a small workload in a directory of the test.
const SMALL: [&str; 10] = [
    "iozone",
    "--directory",
    "data",
    "--repetitions",
    "1",
    "--set",
    "file_size=1MiB",
    "--set",
    "tests=write",
    "-q",
];

fn bench() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).unwrap();
    bench
}

#[track_caller]
fn refused(arguments: &[&str], expected: Expect) {
    let bench = bench();
    let output = bench.ends(2, arguments);
    expected.assert_eq(&output.stderr);
    assert_eq!(output.stdout, "");
}

#[test]
fn a_workload_is_a_plan_that_can_be_saved() {
    let bench = bench();
    let options =
        ["oltp-8k", "--filesystem", "ext4,xfs", "--image", "512MiB", "--profile", "quick"];
    let sizes = ["--set", "file_size=64MiB", "--set", "runtime=1s"];
    let show = |more: &[&str]| bench.ends(0, &[&["show"], &options[..], &sizes, more].concat());
    let text = show(&["--text"]).stdout;
    expect![[r#"
        title = "oltp-8k on ext4, xfs"
        profile = "quick"

        [storage]
        image_size = "512MiB"

        [axes]
        filesystem = ["ext4", "xfs"]
        workload = [{ preset = "oltp-8k", file_size = "64MiB", runtime = "1s" }]
    "#]]
    .assert_eq(&text);
    let shown = show(&[]).stdout;
    let indented = text.lines().map(|line| format!("  {line}").trim_end().to_owned());
    for line in indented {
        assert!(shown.lines().any(|shown| shown == line), "{line} is missing from\n{shown}");
    }
    // `show` prints the saved plan in the same way, without its text.
    let saved = bench.ends(0, &["show", &bench.plan(&text)]).stdout;
    assert!(shown.ends_with(&saved), "{shown}\n{saved}");
}

#[test]
fn options_override_a_plan() {
    let bench = bench();
    let options = ["--filesystem", "ext2,ext4", "--image", "2GiB", "--repetitions", "3"];
    let shown = bench.ends(0, &[&["show", "demo"], &options[..]].concat()).stdout;
    assert!(shown.contains("repetitions 3 (") && shown.contains("image file of 2GiB"), "{shown}");
    assert!(shown.contains("mkfs.ext2") && !shown.contains("mkfs.xfs"), "{shown}");
    assert!(!shown.contains("printed alone"), "{shown}");
}

#[test]
fn a_plan_file_takes_precedence_over_a_workload() {
    let bench = bench();
    let plan = "title = \"mine\"\n[storage]\ndirectory = \"data\"\n[axes]\n\
                workload = [{ suite = \"iozone\", file_size = \"1MiB\" }]\n";
    fs::write(bench.path("oltp-8k"), plan).unwrap();
    let shown = bench.ends(0, &["show", "oltp-8k"]).stdout;
    assert!(shown.starts_with("mine\n"), "{shown}");
    // A directory with the name of a suite does not replace the suite.
    fs::create_dir(bench.path("files")).unwrap();
    let shown = bench.ends(0, &["show", "files", "--directory", "data"]).stdout;
    assert!(shown.contains("suite = \"files\""), "{shown}");
}

#[test]
fn a_workload_runs_in_a_directory() {
    let bench = bench();
    let output = bench.ends(0, &[&["run"], &SMALL[..], &["-o", "run.fslab"]].concat());
    assert_eq!(output.stderr, "");
    assert!(output.stdout.contains("iozone on data"), "{}", output.stdout);
    let record = store::read(&bench.path("run.fslab")).unwrap();
    assert_eq!((record.info.plan_name.as_str(), record.trials.len()), ("iozone", 1));
    assert!(record.info.overrides.is_empty(), "{:?}", record.info.overrides);
    assert!(record.info.plan_text.contains("tests = [\"write\"]"), "{}", record.info.plan_text);
    assert!(record.warnings.iter().all(|warning| warning.code() != "plan-overridden"));
    let output = bench.ends(0, &["run", "--resume", "run.fslab", "-q"]);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
}

#[test]
fn filesystems_are_compared_on_an_image() {
    if !needs_root("filesystems_are_compared_on_an_image") {
        return;
    }
    let bench = Bench::new();
    let options = ["run", "maildir-delivery", "--filesystem", "ext2,ext4", "--image", "64MiB"];
    let short = ["--repetitions", "1", "--set", "files=20", "-o", "run.fslab", "-q"];
    let output = bench.ends(0, &[&options[..], &short].concat());
    assert!(output.stdout.contains("ext2") && output.stdout.contains("ext4"), "{}", output.stdout);
    assert_eq!(output.stderr, "");
    assert_eq!(store::read(&bench.path("run.fslab")).unwrap().trials.len(), 2);
    assert_eq!(bench.left_behind(), Vec::<String>::new());
}

#[test]
fn missing_storage_and_filesystems_name_the_options() {
    refused(
        &["run", "oltp-8k"],
        expect![[r#"
        error: workload `oltp-8k` has no storage to be measured on; add --image SIZE (a new image file, such as 4GiB), --device PATH (a disk; all data on it is lost), or --directory PATH (a mounted filesystem; nothing is formatted)
    "#]],
    );
    refused(
        &["run", "oltp-8k", "--image", "4GiB"],
        expect![[r#"
        error: --image 4GiB requires filesystems to create; add --filesystem ext4,xfs or other names of `fslab list filesystems`
    "#]],
    );
    refused(
        &["run", "oltp-8k", "data"],
        expect![[r#"
        error: `data` is a directory; to measure it, use --directory data
    "#]],
    );
    refused(
        &["run", "oltp-9k"],
        expect![[r#"
            error: no plan or workload `oltp-9k`; did you mean the workload `oltp-8k`?
        "#]],
    );
}

#[test]
fn bench_answers_a_comparison_with_the_command() {
    refused(
        &["bench", "maildir-delivery", "data", "--filesystem", "ext4,xfs"],
        expect![[r#"
        error: fslab bench measures one directory as it is mounted; to compare filesystems, use: fslab run maildir-delivery --filesystem ext4,xfs --image 512MiB
    "#]],
    );
    let bench = bench();
    let options = ["--filesystem", "ext2,ext4", "--runtime", "1s", "--file-size", "1GiB"];
    let more = ["--repetitions", "6", "--set", "rate=0", "-q", "-o", "a run.fslab"];
    let output = bench.ends(2, &[&["bench", "oltp-8k", "data"], &options[..], &more].concat());
    expect![[r#"
        error: fslab bench measures one directory as it is mounted; to compare filesystems, use: fslab run oltp-8k --filesystem ext2,ext4 --image 2GiB --set runtime=1s --set file_size=1GiB --set rate=0 --repetitions 6 -o 'a run.fslab' -q
    "#]].assert_eq(&output.stderr);
    // The suggested command is valid, because `show` accepts its options.
    let command = output.stderr.trim().split("fslab run ").nth(1).unwrap();
    let plan = command.split(" -o ").next().unwrap().split(' ').collect::<Vec<_>>();
    assert!(bench.ends(0, &[&["show"], &plan[..]].concat()).stdout.contains("ext2, ext4"));
}
