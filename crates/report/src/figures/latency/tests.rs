//! Figures of latencies over the made-up run.

use expect_test::expect_file;
use model::{
    Histogram, RunRecord,
    record::{Outcome, Times},
};

use super::*;
use crate::{fixture, view::View};

/// The run with so many operations at its first test, each filesystem with a tail of its own.
fn timed(operations: u64, kinds: &[TimesOf]) -> RunRecord {
    let mut record = fixture::record();
    record.trials.retain(|trial| trial.cell < 6);
    record.cells.truncate(6);
    for cell in &mut record.cells {
        cell.phases.truncate(1);
    }
    for trial in &mut record.trials {
        trial.histograms.clear();
        let (cell, repeat) = (trial.cell as u64, u64::from(trial.repeat));
        for of in kinds {
            let mut histogram = Histogram::new();
            for at in 0..operations {
                // Sluggish by a tenth for every hundredth operation, and far more for some.
                let base = 100_000 * (10 + cell) / 10 + repeat * 900 + at % 977 * 23;
                let slow = if at % 100 == 0 { 3 + cell } else { 1 };
                let stalled = if at % 1500 == 0 { 20 } else { 1 };
                histogram.record(base * slow * stalled);
            }
            trial.histograms.push(Times { phase: "write".into(), of: *of, histogram });
        }
    }
    record
}

fn made(record: &RunRecord) -> Vec<Figure> {
    figures(&View::new(record), 0, 0, 0)
}

#[test]
fn the_ladder_and_the_distribution_are_as_agreed() {
    let figures = made(&timed(12_000, &[TimesOf::All]));
    assert_eq!(
        figures.iter().map(|own| own.kind).collect::<Vec<_>>(),
        [Kind::Latency, Kind::Distribution]
    );
    expect_file!["../../../golden/ladder.svg"].assert_eq(&format!("{}\n", figures[0].svg));
    expect_file!["../../../golden/distribution.svg"].assert_eq(&format!("{}\n", figures[1].svg));
    let Figure { title, caption, .. } = &figures[0];
    assert!(title.contains("p99.9 of an operation from "), "{title}");
    assert!(title.contains("(ext4) to ") && title.ends_with("(bcachefs)"), "{title}");
    for words in ["95 % interval", "p99.99 and above: fewer than ten", "Absent: jfs, skipped"] {
        assert!(caption.contains(words), "{words}: {caption}");
    }
    for figure in &figures {
        assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "{}", figure.svg);
        assert!(figure.svg.len() < 30_000, "{}", figure.svg.len());
    }
}

#[test]
fn few_operations_have_no_figure() {
    assert!(made(&timed(999, &[TimesOf::All])).is_empty());
    assert!(made(&timed(0, &[TimesOf::All])).is_empty());
    assert_eq!(made(&timed(1000, &[TimesOf::All])).len(), 2);
}

#[test]
fn reads_and_writes_stand_apart_where_there_are_both() {
    let figures = made(&timed(2000, &[TimesOf::All, TimesOf::Read, TimesOf::Write]));
    let titles: Vec<&str> = figures.iter().map(|figure| figure.title.as_str()).collect();
    assert_eq!(titles.len(), 4);
    assert!(titles[0].contains("p99 of a read from"), "{titles:?}");
    assert!(titles[3].ends_with("distribution of the times of a write"), "{titles:?}");
    let ids: BTreeSet<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids.len(), 4);
}

#[test]
fn times_by_a_schedule_say_so() {
    let figures = made(&timed(2000, &[TimesOf::All, TimesOf::Service]));
    assert!(figures[0].caption.contains("due by its schedule"), "{}", figures[0].caption);
}

#[test]
fn one_filesystem_has_a_ladder_and_no_distribution() {
    let mut record = timed(2000, &[TimesOf::All]);
    for trial in record.trials.iter_mut().filter(|trial| trial.cell > 0) {
        trial.outcome = Outcome::Failed { reason: "mount: <wrong> type".into() };
    }
    let figures = made(&record);
    assert_eq!(figures.len(), 1);
    assert!(figures[0].title.ends_with("(ext4)"), "{}", figures[0].title);
    let caption = &figures[0].caption;
    assert!(caption.contains("xfs, all 8 repeats failed: mount: <wrong> type"), "{caption}");
}

#[test]
fn too_few_repeats_show_their_range() {
    let mut record = timed(2000, &[TimesOf::All]);
    record.trials.retain(|trial| trial.repeat < 3);
    let caption = &made(&record)[0].caption;
    assert!(caption.contains("least to most of the repeats, too few"), "{caption}");
}
