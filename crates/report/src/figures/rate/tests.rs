//! Charts of the rate over time of the artificial run.

use expect_test::expect_file;
use model::{Nanos, RunRecord, phase::Series, record::Outcome};

use super::*;
use crate::fixture;

/// Run with a rate over time in its first test, in intervals of 250 ms. The rate of btrfs falls.
fn with(intervals: u32) -> RunRecord {
    let mut record = fixture::record();
    record.trials.retain(|trial| trial.cell < 6);
    record.cells.truncate(6);
    for cell in &mut record.cells {
        cell.phases.truncate(1);
    }
    let mut rng = fastrand::Rng::with_seed(7);
    for trial in &mut record.trials {
        let falling = if trial.cell == 2 { 0.6 / f64::from(intervals.max(1)) } else { 0.0 };
        let ops = (0..intervals).map(|at| {
            let commit = if at % 20 == 19 { 0.4 } else { 1.0 };
            let rate = 900.0 * commit * (1.0 - falling * f64::from(at)) * (0.95 + 0.1 * rng.f64());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made up")]
            let ops = rate as u64;
            ops
        });
        let ops: Vec<u64> = ops.collect();
        let bytes = ops.iter().map(|ops| ops << 16).collect();
        let series = Series { start: Nanos(0), interval: Nanos(250_000_000), ops, bytes };
        trial.series = vec![("write".into(), series)];
    }
    record
}

fn made(record: &RunRecord) -> Option<Figure> {
    figure(&View::new(record), 0, 0, 0)
}

#[test]
fn the_rate_chart_matches_the_golden_file() {
    let figure = made(&with(100)).unwrap();
    expect_file!["../../../golden/rate.svg"].assert_eq(&format!("{}\n", figure.svg));
    assert!(
        figure.title.contains("the rate of btrfs at the end is ×0.49 of that at the start"),
        "{}",
        figure.title
    );
    for words in ["intervals of 250 ms", "n = 7 to 8 repetitions", "Skipped: jfs."] {
        assert!(figure.caption.contains(words), "{words}: {}", figure.caption);
    }
    assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"));
}

#[test]
fn a_short_test_and_one_without_a_time_series_have_no_figure() {
    // The last interval is excluded, because it may be incomplete.
    assert!(made(&with(5)).is_none());
    assert!(made(&with(6)).is_some());
    assert!(made(&with(0)).is_none());
    assert!(made(&fixture::record()).is_none());
}

#[test]
fn one_filesystem_is_one_panel_and_the_others_have_their_reasons() {
    let mut record = with(40);
    for trial in record.trials.iter_mut().filter(|trial| trial.cell > 0) {
        trial.outcome = Outcome::Failed { reason: "mount: <wrong> type".into() };
    }
    let figure = made(&record).unwrap();
    assert_eq!(figure.svg.matches("<path class=\"l ").count(), 1);
    assert!(
        figure.title.ends_with("changes by more than 20 % from start to end"),
        "{}",
        figure.title
    );
    assert!(figure.caption.contains("xfs, all 8 repetitions failed"), "{}", figure.caption);
}

#[test]
fn phases_without_bytes_report_operations() {
    let mut record = with(40);
    for (_, series) in record.trials.iter_mut().flat_map(|trial| &mut trial.series) {
        series.bytes.iter_mut().for_each(|bytes| *bytes = 0);
    }
    let svg = made(&record).unwrap().svg;
    assert!(svg.contains(">operations, k ops/s — higher is better ↑<"), "{svg}");
}
