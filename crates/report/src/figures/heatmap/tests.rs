//! Heat map of the artificial run, and its edge cases.

use expect_test::expect_file;
use model::{
    Bytes, RunRecord,
    record::{CellState, Outcome},
};

use super::*;
use crate::fixture;

fn map(record: &RunRecord) -> Option<Figure> {
    figure(&View::new(record), 0)
}

/// Run with these filesystems only.
fn only(keep: &[&str]) -> RunRecord {
    let mut record = fixture::record();
    let cells = std::mem::take(&mut record.cells);
    let kept: Vec<bool> =
        cells.iter().map(|cell| keep.contains(&cell.cell.filesystem.name.as_str())).collect();
    let place = |cell: usize| kept[..cell].iter().filter(|kept| **kept).count();
    record.trials.retain(|trial| kept[trial.cell]);
    record.trials.iter_mut().for_each(|trial| trial.cell = place(trial.cell));
    record.cells =
        cells.into_iter().zip(&kept).filter_map(|(cell, kept)| kept.then_some(cell)).collect();
    record
}

#[test]
fn the_heatmap_matches_the_golden_file() {
    let map = map(&fixture::record()).unwrap();
    expect_file!["../../../golden/heatmap.svg"].assert_eq(&format!("{}\n", map.svg));
    assert!(map.title.starts_with("Iozone: xfs is in the top group of "), "{}", map.title);
    assert!(map.title.contains(" of 26 tests"), "{}", map.title);
    assert!(map.caption.contains("Skipped: jfs."), "{}", map.caption);
    assert!(map.caption.contains("n = 7 to 8 repetitions"), "{}", map.caption);
}

#[test]
fn what_is_printed_is_the_reciprocal_of_the_ratio_to_the_best() {
    let view = View::new(&fixture::record());
    let test = &view.suites[0].points[0].tests[0];
    let results = ranked(test, test.family.as_ref().unwrap());
    assert_eq!(results.len(), 4, "jfs was skipped, and bcachefs lost a repetition");
    for (entry, result) in results {
        let TestResult::Ranked { ratio, ends, found, .. } = result else { panic!("ranked") };
        let best = test.entries[0].summary.as_ref().unwrap().median;
        let own = entry.summary.as_ref().unwrap().median;
        assert!((ratio - own / best).abs() < 0.01, "{ratio} {own} {best}");
        assert!(ends.is_none_or(|(low, high)| low <= ratio && ratio <= high));
        assert_eq!(entry.top, found != Found::Worse, "{found:?}");
    }
}

#[test]
fn times_are_turned_so_that_less_than_one_is_worse() {
    let view = View::new(&fixture::tasks::record());
    for line in view.suites[0].points.iter().flat_map(|point| &point.tests) {
        let Some(family) = &line.family else { continue };
        for (_, result) in ranked(line, family) {
            if let TestResult::Ranked { ratio, found: Found::Worse, .. } = result {
                assert!(ratio < 1.0, "{}: {ratio}", line.name);
            }
        }
    }
}

#[test]
fn one_filesystem_or_one_test_has_no_map() {
    assert!(map(&only(&["ext4"])).is_none());
    assert!(map(&only(&["ext4", "xfs"])).is_some());
    let mut record = only(&["ext4", "xfs"]);
    for cell in &mut record.cells {
        cell.phases.truncate(1);
        cell.state = if cell.label.ends_with("4MiB") {
            CellState::Skipped { reason: "not wanted".into() }
        } else {
            CellState::Done { reason: "converged".into() }
        };
    }
    record.trials.retain(|trial| trial.cell < 2);
    assert!(map(&record).is_none());
}

#[test]
fn a_run_without_results_has_no_map() {
    let mut record = fixture::record();
    record.trials.clear();
    assert!(map(&record).is_none());
}

#[test]
fn a_filesystem_that_failed_keeps_its_column_with_the_reason() {
    let mut record = only(&["ext4", "xfs", "btrfs"]);
    for trial in record.trials.iter_mut().filter(|trial| trial.cell % 3 == 2) {
        trial.outcome = Outcome::Failed { reason: "mount: <wrong> type".into() };
    }
    let map = map(&record).unwrap();
    assert!(map.svg.contains(">failed</text>") && map.svg.contains("class=\"hx\""));
    assert!(map.svg.contains("all 8 repetitions failed: mount: &lt;wrong&gt; type"), "{}", map.svg);
    assert!(map.caption.contains("Missing: btrfs, all 8 repetitions failed"), "{}", map.caption);
}

#[test]
fn many_tests_are_grouped() {
    let sizes: Vec<Bytes> = (1..=8).map(Bytes::mib).collect();
    let map = map(&fixture::with_records(&sizes, "sweep")).unwrap();
    // The 104 tests are grouped into 13 rows of 8 block sizes, not into 8 rows of 13 tests.
    assert_eq!(map.svg.matches("</title>").count(), 1 + 13 * 5);
    assert!(map.caption.starts_with("Ratio to the best median of each test"), "{}", map.caption);
    assert!(map.caption.contains("104 tests are grouped"), "{}", map.caption);
    // bcachefs failed once with one block size, so the means include the seven that all filesystems
    // have.
    assert!(map.svg.contains("geometric mean over 7 of 8 tests"), "{}", map.svg);
    assert!(!map.svg.contains("over 8 of 8 tests"), "{}", map.svg);
}

#[test]
fn every_number_of_a_heatmap_is_finite() {
    let map = map(&fixture::record()).unwrap();
    for word in ["NaN", "inf", "-0.", "×0.000 "] {
        assert!(!map.svg.contains(word) && !map.caption.contains(word), "{word}");
    }
}
