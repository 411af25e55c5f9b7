use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::{
    reference::{near, values},
    simulated::{hostile, normal, whole},
};

const STANDARD: Profile = Profile::Standard;

/// Series of intervals of 100 ms, with a rate (operations per second) by second, which scatters by
/// the given percentage.
fn series(seconds: u32, percent: f64, rate: impl Fn(f64) -> f64) -> Series {
    let mut rng = Rng::with_seed(1);
    let mut ops: Vec<u64> = (0..seconds * 10)
        .map(|at| rate(f64::from(at) / 10.0) / 10.0 * (percent / 100.0 * normal(&mut rng)).exp())
        .map(whole)
        .collect();
    ops.push(7);
    Series { start: Nanos(5), interval: Nanos(100_000_000), bytes: vec![0; ops.len()], ops }
}

fn shape_of(seconds: u32, percent: f64, rate: impl Fn(f64) -> f64) -> RateProfile {
    rate_profile(&series(seconds, percent, rate), STANDARD).unwrap()
}

#[test]
fn truncation_agrees_with_numpy() {
    let cut = mser(&values("mser_series")).unwrap();
    assert_eq!((cut.cut as f64, cut.settled), (values("mser_cut")[0], true));
}

#[test]
fn truncation_matches_manual_computation() {
    // Batches of 9, 5, and then alternating 1 and 3: without 9 and 5 the squared error is 1/8 of 1.
    let rounds: Vec<f64> = [9.0, 5.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0]
        .into_iter()
        .flat_map(|value| [value; BATCH])
        .collect();
    assert_eq!(mser(&rounds), Ok(Truncation { cut: 10, settled: true }));
    let falling: Vec<f64> = (0..50).map(|at| 100.0 - f64::from(at)).collect();
    assert_eq!(mser(&falling), Ok(Truncation { cut: 25, settled: false }));
    assert_eq!(mser(&[4.0; 50]), Ok(Truncation { cut: 0, settled: true }));
}

#[test]
fn few_and_invalid_values_have_no_truncation() {
    assert_eq!(mser(&[1.0; 49]), Err(NotEstimable::Intervals { intervals: 49, needed: 50 }));
    for values in hostile() {
        let cut = mser(&values);
        let sound = values.len() >= 50 && values.iter().all(|value| value.is_finite());
        assert_eq!(cut.is_ok(), sound, "{values:?}: {cut:?}");
    }
}

#[test]
fn correlated_neighbors_count_less() {
    let series = values("mser_series");
    near(correlation(&series[100..], 1), values("lag_one")[0], 1e-9);
    near(independent(&series[100..]), values("lag_one")[1], 1e-9);
    assert_eq!(independent(&[3.0; 40]), 40.0);
    let turns: Vec<f64> = (0..40).map(|at| f64::from(at % 2)).collect();
    assert_eq!(independent(&turns), 40.0, "never more than there are");
    let slow: Vec<f64> = (0..40).map(f64::from).collect();
    assert!(independent(&slow) < 2.0);
}

#[test]
fn constant_rate_is_flat() {
    let flat = shape_of(20, 3.0, |_| 10_000.0);
    assert_eq!((flat.shape, flat.until.is_some()), (Shape::Flat, true), "{flat:?}");
    near(flat.steady.unwrap(), 10_000.0, 0.01);
    near(flat.burst, 10_000.0, 0.01);
    assert!(flat.independent > 50.0);
    let exact = shape_of(20, 0.0, |_| 10_000.0);
    assert_eq!((exact.shape, exact.until), (Shape::Flat, Some(Nanos(0))));
    assert_eq!(exact.drift.unwrap().range, model::Ratio(0.0));
}

#[test]
fn scatter_alone_is_rarely_not_flat() {
    let mut other = 0u32;
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let ops = (0..251).map(|_| whole(1000.0 * (0.05 * normal(&mut rng)).exp())).collect();
        let series = Series { interval: Nanos(100_000_000), ops, ..Series::default() };
        other += u32::from(rate_profile(&series, STANDARD).unwrap().shape != Shape::Flat);
    }
    assert!(other <= 16, "{other} of 200");
}

#[test]
fn cliff_is_reported_with_both_rates_and_its_time() {
    let cliff = shape_of(25, 2.0, |second| if second < 5.0 { 20_000.0 } else { 8_000.0 });
    assert_eq!(cliff.shape, Shape::Cliff, "{cliff:?}");
    near(cliff.burst, 20_000.0, 0.02);
    near(cliff.steady.unwrap(), 8_000.0, 0.02);
    near(cliff.until.unwrap().seconds(), 5.0, 0.01);
    // Too late to have settled, but detected.
    let late = shape_of(25, 2.0, |second| if second < 18.0 { 20_000.0 } else { 8_000.0 });
    assert_eq!((late.shape, late.steady, late.until), (Shape::Cliff, None, None));
}

#[test]
fn warming_and_recovering_are_detected() {
    let warming = shape_of(25, 2.0, |second| if second < 4.0 { 5_000.0 } else { 9_000.0 });
    assert_eq!(warming.shape, Shape::Warming, "{warming:?}");
    near(warming.steady.unwrap(), 9_000.0, 0.02);
    let dip = |second| if (4.0..8.0).contains(&second) { 5_000.0 } else { 9_000.0 };
    let recovering = shape_of(25, 2.0, dip);
    assert_eq!(recovering.shape, Shape::Recovering, "{recovering:?}");
}

#[test]
fn a_rate_that_keeps_falling_has_not_settled() {
    let falling = shape_of(25, 2.0, |second| 20_000.0 - 700.0 * second);
    assert_eq!(falling.steady, None);
    assert_eq!(falling.shape, Shape::Cliff, "{falling:?}");
    assert!(falling.burst > 15_000.0);
}

#[test]
fn periodic_stalls_are_a_cycle() {
    let flush = |second: f64| if second % 2.0 < 0.5 { 2_000.0 } else { 10_000.0 };
    let cyclic = shape_of(25, 2.0, flush);
    let Shape::Cyclic { period } = cyclic.shape else { panic!("{cyclic:?}") };
    near(period.seconds(), 2.0, 0.06);
    // A wave with fewer than five periods is not a cycle.
    let wave =
        |second: f64| 10_000.0 + 4_000.0 * (second / 25.0 * 3.0 * std::f64::consts::TAU).sin();
    assert!(!matches!(shape_of(25, 2.0, wave).shape, Shape::Cyclic { .. }));
}

#[test]
fn complete_stalls_are_handled() {
    let stalled = shape_of(25, 2.0, |second| if second < 6.0 { 10_000.0 } else { 0.0 });
    assert_eq!(stalled.shape, Shape::Cliff, "{stalled:?}");
}

#[test]
fn short_series_are_rejected() {
    let short = |intervals, needed| Err(NotEstimable::Intervals { intervals, needed });
    assert_eq!(rate_profile(&Series::default(), STANDARD), short(0, 100));
    assert_eq!(rate_profile(&series(9, 0.0, |_| 10_000.0), STANDARD), short(90, 100));
    // 10 operations per interval: merged until fewer than 100 intervals are left.
    assert_eq!(rate_profile(&series(30, 0.0, |_| 100.0), STANDARD), short(75, 100));
    assert_eq!(rate_profile(&series(30, 0.0, |_| 0.0), STANDARD), short(75, 100));
    let huge = Series { interval: Nanos(1 << 40), ops: vec![1 << 50; 600], ..Series::default() };
    let found = rate_profile(&huge, STANDARD).unwrap();
    assert!(found.burst.is_finite() && found.independent.is_finite());
    let none = Series { interval: Nanos(0), ops: vec![1000; 300], ..Series::default() };
    assert_eq!(rate_profile(&none, STANDARD), short(149, 100));
}

proptest! {
    #[test]
    fn neither_the_unit_of_work_nor_that_of_time_matters(
        seed in 0u64..500, factor in 2u64..50, from in 0.4f64..2.5
    ) {
        let mut rng = Rng::with_seed(seed);
        let ops: Vec<u64> = (0..251)
            .map(|at| if at < 60 { from } else { 1.0 } * 1000.0 * (0.03 * normal(&mut rng)).exp())
            .map(whole)
            .collect();
        let more = ops.iter().map(|ops| ops * factor).collect();
        let of = |ops, millis: u64| {
            let interval = Nanos(millis * 1_000_000);
            rate_profile(&Series { interval, ops, ..Series::default() }, STANDARD).unwrap()
        };
        let (plain, scaled) = (of(ops, 100), of(more, 200));
        prop_assert_eq!(plain.shape, scaled.shape);
        prop_assert_eq!(plain.until.map(|until| until.0 * 2), scaled.until.map(|until| until.0));
        prop_assert!((plain.independent - scaled.independent).abs() < 1e-6);
        prop_assert!((plain.burst * factor as f64 / 2.0 / scaled.burst - 1.0).abs() < 1e-9);
    }
}
