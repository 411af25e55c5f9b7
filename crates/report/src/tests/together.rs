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
        On xfs, the sync latency p99 of log (sqlite) was 3.000 times as long with bulk (stream) as alone [2.970, 3.060]
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
        No significant slowdown of log (sqlite) by bulk (stream) on ext4: sync latency p99 ×1.000 [0.981, 1.010], commit rate ×1.000 [0.990, 1.020]
        ext4: with bulk, the sync latency p99 of log was equivalent to that of log alone within ±5 % (n = 8 and 8, Holm-adjusted over 3 comparisons).
        ext4: with bulk, the commit rate of log was equivalent to that of log alone within ±5 % (n = 8 and 8, Holm-adjusted over 3 comparisons)."#]].assert_eq(&format!("{}\n{}", answer.headline, findings(&view)));
}

#[test]
fn too_few_repetitions_give_no_slowdown() {
    let view = View::new(&together::record(&["ext4"], 3.0, 3));
    let answer = Answer::new(&view);
    expect![[r#"
        No comparison of log (sqlite) with bulk (stream) on ext4: n = 3, 6 needed
        Inconclusive: slowdown of sync latency p99 of log by bulk on ext4. n = 3, 6 needed. Run at least 6 repetitions.
        Inconclusive: slowdown of commit rate of log by bulk on ext4. n = 3, 6 needed. Run at least 6 repetitions."#]].assert_eq(&format!("{}\n{}", answer.headline, findings(&view)));
    assert!(answer.findings.is_empty());
}

#[test]
fn a_headline_on_one_filesystem_names_the_workloads() {
    let headline = |factor, repetitions| {
        let view = View::new(&together::record(&["ext4"], factor, repetitions));
        Answer::new(&view).headline
    };
    expect![[r#"
        On ext4, the sync latency p99 of log (sqlite) was 3.000 times as long with bulk (stream) as alone [2.942, 3.030]
        No significant slowdown of log (sqlite) by bulk (stream) on ext4: sync latency p99 ×1.000 [0.981, 1.010], commit rate ×1.000 [0.990, 1.020]
        No comparison of log (sqlite) with bulk (stream) on ext4: n = 3, 6 needed"#]].assert_eq(&[headline(3.0, 8), headline(1.0, 8), headline(3.0, 3)].join("\n"));
}

#[test]
fn a_headline_without_members_alone_states_the_result_together() {
    let mut record = together::record(&["ext4"], 3.0, 8);
    let alone = record.cells.iter().position(|cell| cell.label == "log alone").unwrap();
    record.trials.retain(|trial| trial.cell != alone);
    record.cells.retain(|cell| cell.label != "log alone");
    record.trials.iter_mut().for_each(|trial| trial.cell = 0);
    let view = View::new(&record);
    assert!(view.slowdowns.is_empty());
    let text = "On ext4, the commit rate of log (sqlite) with bulk (stream) was 203.0 commits/s ";
    let headline = Answer::new(&view).headline;
    assert!(headline.starts_with(text), "{headline}");
    assert!(headline.ends_with("; log was not measured alone"), "{headline}");
}

#[test]
fn runs_without_members_have_no_slowdowns() {
    assert!(View::new(&crate::fixture::record()).slowdowns.is_empty());
}
