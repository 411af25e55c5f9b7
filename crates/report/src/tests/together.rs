//! Reports of runs with workloads that run together.

use expect_test::expect;

use super::*;
use crate::{fixture::together, view::answer::Answer};

fn findings(view: &View) -> String {
    let points = view.findings.by_point.iter();
    let points = points.filter(|point| point.label == "Workloads that run together");
    let lines = points.flat_map(|point| {
        let found = point.findings.iter().map(|finding| finding.text.clone());
        found.chain(point.open.iter().map(|open| open.text())).collect::<Vec<_>>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_slowdown_is_the_headline_and_a_finding_with_its_interval() {
    let view = View::new(&together::record(&["ext4", "xfs"], 3.0, 8));
    let answer = Answer::new(&view);
    expect![[r#"
        xfs: sync latency p99 of log with bulk: slowdown ×3.000 [2.970, 3.060]
        ext4: with bulk, the sync latency p99 of log had a slowdown of ×3.000 [2.942, 3.030] relative to log alone (n = 8 and 8, Holm-adjusted over 6 comparisons).
        ext4: with bulk, the commit rate of log was equivalent to that of log alone within ±5 % (n = 8 and 8, Holm-adjusted over 6 comparisons).
        xfs: with bulk, the sync latency p99 of log had a slowdown of ×3.000 [2.970, 3.060] relative to log alone (n = 8 and 8, Holm-adjusted over 6 comparisons).
        xfs: with bulk, the commit rate of log was equivalent to that of log alone within ±5 % (n = 8 and 8, Holm-adjusted over 6 comparisons)."#]].assert_eq(&format!("{}\n{}", answer.headline, findings(&view)));
    let table = view.slowdowns[0].table();
    assert_eq!(table.rows.len(), 3);
    let text = markdown(&view);
    assert!(text.contains("Slowdown by other workloads"), "{text}");
    assert!(text.contains("log with bulk on ext4"), "{text}");
}

#[test]
fn equal_results_are_equivalent_or_inconclusive() {
    let view = View::new(&together::record(&["ext4"], 1.0, 8));
    let answer = Answer::new(&view);
    expect![[r#"
        No significant slowdown by other workloads
        ext4: with bulk, the sync latency p99 of log was equivalent to that of log alone within ±5 % (n = 8 and 8, Holm-adjusted over 3 comparisons).
        ext4: with bulk, the commit rate of log was equivalent to that of log alone within ±5 % (n = 8 and 8, Holm-adjusted over 3 comparisons)."#]].assert_eq(&format!("{}\n{}", answer.headline, findings(&view)));
}

#[test]
fn too_few_repetitions_give_no_slowdown() {
    let view = View::new(&together::record(&["ext4"], 3.0, 3));
    let answer = Answer::new(&view);
    expect![[r#"
        No comparison: too few repetitions, or no valid results
        Inconclusive: slowdown of sync latency p99 of log by bulk on ext4. n = 3, 6 needed. Run at least 6 repetitions.
        Inconclusive: slowdown of commit rate of log by bulk on ext4. n = 3, 6 needed. Run at least 6 repetitions."#]].assert_eq(&format!("{}\n{}", answer.headline, findings(&view)));
    assert!(answer.findings.is_empty());
}

#[test]
fn runs_without_members_have_no_slowdowns() {
    assert!(View::new(&crate::fixture::record()).slowdowns.is_empty());
}
