//! `fslab audit` of published tables and of tables from files.

use std::fs;

use crate::support::Bench;

#[test]
fn published_results_are_audited_by_name() {
    let bench = Bench::new();
    let output = bench.ends(1, &["audit", "iozone-2009@published"]).stdout;
    for words in ["author: Jeff Layton", "Malformed numbers (7)", "Conflicting values"] {
        assert!(output.contains(words), "{words} is missing from\n{output}");
    }
    assert!(output.lines().all(|line| line.chars().count() <= 80), "{output}");
    let json = bench.ends(1, &["audit", "tasks-2006@published", "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["found"], true);
    let output = bench.ends(1, &["audit", "bonnie-2012@published", "--format", "md"]).stdout;
    assert!(output.contains("- deletion holds: btrfs is no longer weak at deletion"), "{output}");
    let name = "iozone-2009@published";
    assert!(bench.ends(0, &["report", name]).stdout.contains("malformed-number"));
    let output = bench.ends(2, &["explain", name]).stderr;
    assert!(output.contains("`fslab compare`, `fslab report`, and `fslab audit` only"), "{output}");
    let output = bench.ends(2, &["compare", name, name]).stderr;
    assert!(output.contains("is compared with itself; use a run file for one of them"), "{output}");
    let output = bench.ends(2, &["audit", "dbench-2012@published"]).stderr;
    assert!(output.contains("iozone-2009@published"), "{output}");
}

#[test]
fn a_custom_table_is_audited_with_statements() {
    let bench = Bench::new();
    fs::write(bench.path("a.csv"), "filesystem,value\next4,10.5\nxfs,12.25\n").unwrap();
    let statement = |level: &str| {
        format!(
            "[[statement]]\nid = \"a\"\ntext = \"the best\"\n\
             parts = [{{ kind = \"best\", axis = \"filesystem\", levels = \"{level}\" }}]\n"
        )
    };
    fs::write(bench.path("yes.toml"), statement("xfs")).unwrap();
    fs::write(bench.path("no.toml"), statement("ext4")).unwrap();
    fs::write(bench.path("bad.toml"), "[layout]\nvalu = 1\n").unwrap();
    bench.ends(0, &["audit", "a.csv"]);
    bench.ends(0, &["audit", "a.csv", "--statements", "yes.toml"]);
    let output = bench.ends(1, &["audit", "a.csv", "--statements", "no.toml"]).stdout;
    assert!(output.contains("a contradicted: the best"), "{output}");
    let output = bench.ends(2, &["audit", "a.csv", "--statements", "bad.toml"]).stderr;
    assert!(output.contains("bad.toml") && output.contains("line 2"), "{output}");
    fs::write(bench.path("typo.toml"), statement("zfs")).unwrap();
    let output = bench.ends(2, &["audit", "a.csv", "--statements", "typo.toml"]).stderr;
    assert!(output.contains("typo.toml") && output.contains("line 4: no cell has"), "{output}");
    fs::write(bench.path("b.csv"), "filesystem,value\next4\n").unwrap();
    let output = bench.ends(2, &["audit", "b.csv"]).stderr;
    assert!(output.contains("b.csv") && output.contains("line 2: 1 field"), "{output}");
    bench.ends(2, &["audit", "missing.csv"]);
}

#[test]
fn statements_of_a_study_are_checked_on_a_run() {
    let bench = Bench::new();
    let short = ["--file-size", "1MiB", "--runtime", "100ms", "-o", "run.fslab"];
    bench.ends(0, &[&["bench", "fsync-4k", "."], &short[..]].concat());
    let error = bench.ends(2, &["audit", "run.fslab"]).stderr;
    assert!(error.contains("select statements with --statements: tasks-2006"), "{error}");
    let error = bench.ends(2, &["audit", "run.fslab", "--statements", "nothing-2009"]).stderr;
    assert!(error.contains("there are no statements of `nothing-2009`"), "{error}");
    let error = bench.ends(2, &["audit", "run.fslab", "--statements", "iozone-2009"]).stderr;
    assert!(error.contains("measure them with fslab run iozone-2009"), "{error}");
}
