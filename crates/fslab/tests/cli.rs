//! Help, listings, and exit statuses.

use crate::support::Bench;

#[test]
fn help_names_every_command_and_status() {
    let output = Bench::new().ends(0, &["--help"]);
    for word in [
        "demo", "run", "bench", "show", "report", "import", "loadfile", "compare", "explain",
        "list", "doctor", "guest", "clean", "130",
    ] {
        assert!(output.stdout.contains(word), "{word} is missing from\n{}", output.stdout);
    }
    assert!(!output.stdout.contains("worker"), "hidden commands stay hidden");
}

#[test]
fn a_missing_or_wrong_command_is_a_usage_error() {
    let bench = Bench::new();
    bench.ends(2, &[]);
    bench.ends(2, &["rnu"]);
    bench.ends(2, &["run"]);
    bench.ends(2, &["run", "demo", "--scale", "big"]);
    bench.ends(2, &["run", "demo", "--set", "filesystem"]);
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let bench = Bench::new();
    let mut command = bench.command(&["list", "metrics"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn published_results_are_shown_by_name_and_marked_as_published() {
    let bench = Bench::new();
    let output = bench.ends(0, &["report", "tasks-2006@published"]);
    assert!(output.stdout.contains("288.56"), "the total of jfs:\n{}", output.stdout);
    for format in ["csv", "json", "md"] {
        let output = bench.ends(0, &["report", "tasks-2004@published", "--format", format]);
        assert!(output.stdout.contains("not measured by fslab"), "{}", output.stdout);
    }
    let editions = ["compare", "tasks-2004@published", "tasks-2006@published"];
    let output = bench.ends(0, &editions).stdout;
    assert!(output.contains("(no statistical test): disk, kernel"), "{output}");
    let gated = [&editions[..], &["--gate", "5%"]].concat();
    assert!(bench.ends(2, &gated).stderr.contains("without significance tests"));
    let output = bench.ends(2, &["report", "tasks-2009@published"]).stderr;
    assert!(output.contains("Did you mean tasks-200"), "{output}");
    let output = bench.ends(2, &["report", "tasks-1999@published"]);
    assert!(output.stderr.contains("tasks-2004@published"), "{}", output.stderr);
    assert!(bench.ends(0, &["report", "--help"]).stdout.contains("tasks-2006@published"));
}

#[test]
fn every_filesystem_is_listed_with_a_hint() {
    let output = Bench::new().ends(0, &["list", "filesystems"]);
    for name in [
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "jfs",
        "reiserfs",
        "reiser4",
        "nilfs2",
        "f2fs",
        "bcachefs",
        "exfat",
        "vfat",
        "ntfs3",
        "tmpfs",
        "directory",
    ] {
        let line = output.stdout.lines().find(|line| line.trim_start().starts_with(name));
        assert!(line.is_some(), "{name} is missing from\n{}", output.stdout);
    }
    assert!(output.stdout.contains("6.13"), "reiserfs left the kernel in 6.13:\n{}", output.stdout);
}

#[test]
fn every_listing_has_rows() {
    let bench = Bench::new();
    for what in ["suites", "plans", "metrics", "warnings", "published"] {
        let output = bench.ends(0, &["list", what]);
        assert!(output.stdout.lines().count() > 3, "{what}:\n{}", output.stdout);
    }
}

#[test]
fn system_settings_are_listed_and_shown() {
    let bench = Bench::new();
    let listed = bench.ends(0, &["list", "settings"]).stdout;
    for name in
        std::iter::once("scheduler").chain(model::setting::SETTINGS.iter().map(|spec| spec.name))
    {
        let row = |line: &str| line.split_whitespace().next() == Some(name);
        assert!(listed.lines().any(row), "{name} is missing from\n{listed}");
    }
    let plan = bench.plan(
        "[storage]\nimage_size = \"64MiB\"\nimage_directory = \"/dev/shm\"\n[axes]\n\
         filesystem = [\"ext4\"]\nscheduler = [\"wishful\"]\nread_ahead = [\"1MiB\"]\n\
         transparent_hugepage = [\"never\"]\n\
         workload = [{ suite = \"iozone\", file_size = \"2MiB\", tests = [\"write\"] }]\n",
    );
    let shown = bench.ends(0, &["show", &plan]).stdout;
    for line in [
        "  scheduler=wishful",
        "    write wishful to /sys/class/block/loop·0/queue/scheduler",
        "    write 1024 to /sys/class/block/loop·0/queue/read_ahead_kb",
        "    write never to /sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line} is missing from\n{shown}");
    }
}

#[test]
fn every_builtin_plan_can_be_shown() {
    let bench = Bench::new();
    let show = |plan: &str, scale: &str| bench.ends(0, &["show", plan, "--scale", scale]).stdout;
    assert!(show("demo", "1").contains("mkfs.ext4"), "the commands are shown");
    assert!(show("demo-directory", "1").contains("measured as mounted"));
    let study = show("iozone-2009", "1/64");
    assert!(study.contains("block_size=16KiB file_size=256MiB"), "{study}");
    assert!(study.contains("block_size=256KiB"), "{study}");
    assert!(study.contains("640MiB") && study.contains("limited to 128MiB"), "{study}");
    assert!(study.contains("32 cells"), "{study}");
    let tasks = show("tasks-2006", "1/10");
    assert!(tasks.contains("source_files=1800"), "{tasks}");
    assert!(tasks.contains("16 cells") && tasks.contains("method=coreutils-per-file"), "{tasks}");
    let bonnie = show("bonnie-2012", "1/32");
    assert!(bonnie.contains("file_size=256MiB seeks=256"), "{bonnie}");
    assert!(bonnie.contains("3200MiB") && bonnie.contains("limited to 128MiB"), "{bonnie}");
    assert!(bonnie.contains("11 cells"), "{bonnie}");
    let small = show("smallfiles-2011", "1/64");
    assert!(small.contains("cache=warm files=5468 workers=4"), "{small}");
    assert!(small.contains("30 cells"), "{small}");
    let metadata = show("metadata-scaling", "1/64");
    assert!(metadata.contains("workers=8") && metadata.contains("32 cells"), "{metadata}");
    // The files of 200 clients are not scaled, so the images are larger than 1/64.
    let dbench = show("dbench-2012", "1/64");
    assert!(dbench.contains("clients=200") && dbench.contains("2 image files"), "{dbench}");
    // Each plan can also be shown at scale 1, and as text for a new plan.
    let plans = bench.ends(0, &["list", "plans"]).stdout;
    for plan in plans.lines().skip(1).filter_map(|line| line.split_whitespace().next()) {
        assert!(show(plan, "1").contains("storage"), "{plan}");
        let text = bench.ends(0, &["show", plan, "--text"]).stdout;
        assert!(text.contains("[storage]"), "a plan to start from:\n{text}");
    }
}

#[test]
fn the_verbose_version_names_compiler_and_database() {
    let bench = Bench::new();
    assert!(bench.ends(0, &["version"]).stdout.starts_with("fslab "));
    let output = bench.ends(0, &["version", "--verbose"]);
    assert!(
        output.stdout.contains("rustc") && output.stdout.contains("SQLite 3."),
        "{}",
        output.stdout
    );
}

#[test]
fn doctor_reports_the_generator_overhead() {
    let output = Bench::new().ends(0, &["doctor"]);
    for word in ["kernel", "clock", "generator", "ext4"] {
        assert!(output.stdout.contains(word), "{}", output.stdout);
    }
}

#[test]
fn clean_finds_nothing_on_a_clean_machine() {
    Bench::new().has_nothing_to_undo();
}

#[test]
fn the_demo_creates_its_run_file() {
    let output = Bench::new().ends(2, &["demo", "-o", "not-here/run.fslab"]);
    assert!(output.stderr.contains("not-here/run.fslab cannot be written"), "{}", output.stderr);
}
