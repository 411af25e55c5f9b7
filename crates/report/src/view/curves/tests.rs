//! Edge cases of latency curves.

use super::*;

fn histogram(values: impl Iterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    values.for_each(|value| histogram.record(value));
    histogram
}

#[test]
fn percentiles_need_enough_operations_in_every_repetition() {
    let (long, short) = (histogram(1..10_001), histogram(1..1001));
    assert_eq!(ladder(&[&long, &long]).len(), 4);
    assert_eq!(ladder(&[&long, &short]).len(), 3);
    let point = ladder(&[&long])[0];
    assert!((point.median - 5000.0).abs() < 25.0 && point.interval.is_none(), "{point:?}");
    assert_eq!(point.range, (point.median, point.median));
    assert!(ladder(&[]).is_empty());
}

#[test]
fn times_below_the_clock_resolution_are_not_shown() {
    assert!(ladder(&[&histogram(std::iter::repeat_n(0, 5000))]).is_empty());
}

#[test]
fn a_distribution_is_ascending_and_thinned() {
    let histogram = histogram((1..200_000).map(|value| value * 37));
    let range = range(std::slice::from_ref(&histogram));
    let curve = cumulated(&histogram, range);
    assert!(curve.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1), "{curve:?}");
    assert!((100..1000).contains(&curve.len()), "{}", curve.len());
    // The values are uniformly distributed, so the median is half of the maximum.
    let half = curve[curve.partition_point(|(_, share)| *share < 0.5)].0;
    assert!((half - 3_700_000_f32.log10()).abs() < 0.01, "{half}");
    assert!(curve.last().is_some_and(|(_, share)| *share > 0.99));
}

#[test]
fn equal_times_are_a_vertical_line_in_the_middle() {
    let histogram = histogram(std::iter::repeat_n(1000, 1000));
    let (low, high) = range(std::slice::from_ref(&histogram));
    assert!(low < 3.0 && high > 3.0 && high - low > 0.099, "{low} {high}");
    let curve = cumulated(&histogram, (low, high));
    assert_eq!((curve[0].1, curve[curve.len() - 1].1), (0.0, 1.0));
}

#[test]
fn single_slow_operations_do_not_extend_the_axis() {
    let histogram =
        histogram((0..100_000).map(|at| if at == 0 { u64::MAX / 2 } else { 5000 + at }));
    let (low, high) = range(std::slice::from_ref(&histogram));
    assert!(low > 3.0 && high < 6.0, "{low} {high}");
    let curve = cumulated(&histogram, (low, high));
    assert!(curve.iter().all(|(log, share)| (low..=high).contains(log) && *share <= 1.0));
}
