//! Filtered listings.

use expect_test::{Expect, expect};

use crate::support::Bench;

#[track_caller]
fn refused(arguments: &[&str], expected: Expect) {
    let output = Bench::new().ends(2, arguments);
    expected.assert_eq(&output.stderr);
    assert_eq!(output.stdout, "");
}

#[test]
fn a_suite_is_listed_with_common_parameters_first() {
    let bench = Bench::new();
    let stream = bench.ends(0, &["list", "suites", "stream"]).stdout;
    assert!(stream.starts_with("stream: ") && !stream.contains("bonnie:"), "{stream}");
    let rows = stream.lines().skip_while(|line| !line.starts_with(" parameter"));
    // Continuation lines of a cell are indented by more than one space.
    let rows = rows.skip(1).filter(|line| !line.starts_with("  "));
    let first: Vec<&str> = rows.filter_map(|row| row.split_whitespace().next()).take(5).collect();
    assert_eq!(first, ["direction", "access_pattern", "block_size", "file_size", "operations"]);
    assert!(stream.contains("workloads: randread-4k, "), "{stream}");
    let all = bench.ends(0, &["list", "suites"]).stdout;
    assert!(all.contains("stream: ") && all.contains("bonnie: "), "{all}");
}

#[test]
fn a_word_narrows_every_listing() {
    let bench = Bench::new();
    for (kind, word, shown, hidden) in [
        ("workloads", "MAIL", "maildir-delivery", "oltp-8k"),
        ("filesystems", "ext", "ext4", "xfs"),
        ("plans", "tasks", "tasks-2006", "demo"),
        ("settings", "dirty", "dirty_threshold", "nr_requests"),
        ("metrics", "psi_", "psi_io_some", "throughput"),
        ("warnings", "cache", "cache-not-cold", "bimodal"),
        ("published", "tasks", "tasks-2006@published", "bonnie-2012@published"),
        ("charts", "latency", "latency-percentiles", "scaling"),
        ("studies", "bonnie", "bonnie-2012", "tasks-2006"),
        ("suites", "io", "iozone: ", "stream: "),
    ] {
        let output = bench.ends(0, &["list", kind, word]).stdout;
        let starts = |name: &str| output.lines().any(|line| line.trim_start().starts_with(name));
        assert!(starts(shown) && !starts(hidden), "{kind} {word}:\n{output}");
    }
}

#[test]
fn an_unknown_word_of_a_listing_gets_a_suggestion() {
    refused(
        &["list", "workloads", "maildr"],
        expect![[r#"
        error: no entry of `fslab list workloads` contains `maildr`; did you mean `maildir-delivery`? `fslab list workloads` lists all
    "#]],
    );
    refused(
        &["list", "suites", "strem"],
        expect![[r#"
        error: no entry of `fslab list suites` contains `strem`; did you mean `stream`? `fslab list suites` lists all
    "#]],
    );
    refused(
        &["list", "suites", "oltp-8k"],
        expect![[r#"
        error: `oltp-8k` is a workload of suite stream; use `fslab list suites stream` for its parameters
    "#]],
    );
    refused(
        &["list", "metrics", "zzzzzz"],
        expect![[r#"
        error: no entry of `fslab list metrics` contains `zzzzzz`; `fslab list metrics` lists all
    "#]],
    );
}
