//! Latency charts of the artificial run.

use std::collections::BTreeSet;

use expect_test::expect_file;
use model::{
    Histogram, RunRecord,
    record::{Outcome, PhaseHistogram},
};

use super::*;
use crate::{fixture, view::View};

/// Run with this many operations in its first test. The filesystems differ in the tail of the
/// distribution.
fn timed(operations: u64, kinds: &[HistogramKind]) -> RunRecord {
    let mut record = fixture::record();
    record.trials.retain(|trial| trial.cell < 6);
    record.cells.truncate(6);
    for cell in &mut record.cells {
        cell.phases.truncate(1);
    }
    for trial in &mut record.trials {
        trial.histograms.clear();
        let (cell, repetition) = (trial.cell as u64, u64::from(trial.repetition));
        for of in kinds {
            let mut histogram = Histogram::new();
            for at in 0..operations {
                // Every hundredth operation takes 3 to 8 times as long, and every 1500th 20 times
                // as long as that.
                let base = 100_000 * (10 + cell) / 10 + repetition * 900 + at % 977 * 23;
                let slow = if at % 100 == 0 { 3 + cell } else { 1 };
                let stalled = if at % 1500 == 0 { 20 } else { 1 };
                histogram.record(base * slow * stalled);
            }
            trial.histograms.push(PhaseHistogram { phase: "write".into(), kind: *of, histogram });
        }
    }
    record
}

fn made(record: &RunRecord) -> Vec<Figure> {
    figures(&View::new(record), 0, 0, 0)
}

#[test]
fn latency_charts_match_the_golden_files() {
    let figures = made(&timed(12_000, &[HistogramKind::All]));
    assert_eq!(
        figures.iter().map(|own| own.kind).collect::<Vec<_>>(),
        [Kind::LatencyPercentiles, Kind::LatencyDistribution]
    );
    expect_file!["../../../golden/latency-percentiles.svg"]
        .assert_eq(&format!("{}\n", figures[0].svg));
    expect_file!["../../../golden/distribution.svg"].assert_eq(&format!("{}\n", figures[1].svg));
    let Figure { title, caption, .. } = &figures[0];
    assert!(title.contains("p99.9 of an operation from "), "{title}");
    assert!(title.contains("(ext4) to ") && title.ends_with("(bcachefs)"), "{title}");
    for words in ["95 % confidence interval", "p99.99 and above: fewer than 10", "Skipped: jfs."] {
        assert!(caption.contains(words), "{words}: {caption}");
    }
    for figure in &figures {
        assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "{}", figure.svg);
        assert!(figure.svg.len() < 30_000, "{}", figure.svg.len());
    }
}

#[test]
fn few_operations_have_no_figure() {
    assert!(made(&timed(999, &[HistogramKind::All])).is_empty());
    assert!(made(&timed(0, &[HistogramKind::All])).is_empty());
    assert_eq!(made(&timed(1000, &[HistogramKind::All])).len(), 2);
}

#[test]
fn reads_and_writes_have_separate_charts() {
    let figures =
        made(&timed(2000, &[HistogramKind::All, HistogramKind::Read, HistogramKind::Write]));
    let titles: Vec<&str> = figures.iter().map(|figure| figure.title.as_str()).collect();
    assert_eq!(titles.len(), 4);
    assert!(titles[0].contains("p99 of a read from"), "{titles:?}");
    assert!(titles[3].ends_with("latency distribution of a write"), "{titles:?}");
    let ids: BTreeSet<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids.len(), 4);
}

#[test]
fn latency_from_a_schedule_is_labeled() {
    let figures = made(&timed(2000, &[HistogramKind::All, HistogramKind::ServiceTime]));
    assert!(figures[0].caption.contains("from the scheduled start"), "{}", figures[0].caption);
}

#[test]
fn one_filesystem_has_a_ladder_and_no_distribution() {
    let mut record = timed(2000, &[HistogramKind::All]);
    for trial in record.trials.iter_mut().filter(|trial| trial.cell > 0) {
        trial.outcome = Outcome::Failed { reason: "mount: <wrong> type".into() };
    }
    let figures = made(&record);
    assert_eq!(figures.len(), 1);
    assert!(figures[0].title.ends_with("(ext4)"), "{}", figures[0].title);
    let caption = &figures[0].caption;
    assert!(caption.contains("xfs, all 8 repetitions failed: mount: <wrong> type"), "{caption}");
}

#[test]
fn too_few_repetitions_show_their_range() {
    let mut record = timed(2000, &[HistogramKind::All]);
    record.trials.retain(|trial| trial.repetition < 3);
    let caption = &made(&record)[0].caption;
    assert!(caption.contains("minimum to maximum (too few repetitions"), "{caption}");
}
