use proptest::prelude::*;

use super::*;

fn check(values: &[f64], low: f64, high: f64) {
    let interval = Summary::at_level(values, 0.95).unwrap().interval.unwrap();
    assert!((interval.low - low).abs() < 1e-3, "low end {} is not {low}", interval.low);
    assert!((interval.high - high).abs() < 1e-3, "high end {} is not {high}", interval.high);
}

fn up_to(n: u32) -> Vec<f64> {
    (1..=n).map(f64::from).collect()
}

#[test]
fn worked_example_is_reproduced() {
    check(&up_to(10), 2.6577, 8.3423);
}

#[test]
fn six_values_interpolate_a_tenth_of_the_gap_in_probability() {
    // γ(1) = 62/64, γ(2) = 50/64, I = 0.1, λ = 5 · 0.1 / (1 + 4 · 0.1) = 0.35714.
    check(&up_to(6), 1.3571, 5.6429);
}

#[test]
fn eight_values_match_manual_computation() {
    // γ(1) = 254/256, γ(2) = 238/256, I = 0.675, λ = 7 · 0.675 / (1 + 6 · 0.675) = 0.93564.
    check(&up_to(8), 1.9356, 7.0644);
}

#[test]
fn cell_intervals_allow_for_interim_analyses() {
    // γ(1) = 62/64, γ(2) = 50/64, I = (0.96875 - 0.96) / 0.1875, λ = 5 I / (1 + 4 I) = 0.19663.
    let interval = Summary::new(&up_to(6)).unwrap().interval.unwrap();
    assert!((interval.low - 1.19663).abs() < 1e-4 && (interval.high - 5.80337).abs() < 1e-4);
    assert_eq!(interval.level, LEVEL);
    assert_eq!(needed(BUILT), needed(LEVEL));
}

#[test]
fn five_values_have_no_interval_but_a_warning() {
    let summary = Summary::new(&[5.0, 1.0, 3.0, 2.0, 4.0]).unwrap();
    assert_eq!((summary.n, summary.median, summary.min, summary.max), (5, 3.0, 1.0, 5.0));
    assert_eq!(summary.interval, None);
    assert_eq!(summary.half_width(), None);
    assert_eq!(summary.warnings, [Warning::TooFewRepetitions { n: 5, needed: 6 }]);
}

#[test]
fn non_finite_values_are_rejected() {
    assert_eq!(Summary::new(&[]), Err(Error::Empty));
    assert!(matches!(Summary::new(&[1.0, f64::NAN]), Err(Error::NotFinite { index: 1, .. })));
    assert!(matches!(Summary::new(&[f64::INFINITY]), Err(Error::NotFinite { index: 0, .. })));
}

#[test]
fn minimum_sample_size_follows_the_level() {
    assert_eq!((needed(0.90), needed(0.95), needed(0.99)), (5, 6, 8));
}

#[test]
fn thousands_of_values_do_not_overflow() {
    let interval = Summary::at_level(&up_to(5001), 0.95).unwrap().interval.unwrap();
    // The normal approximation of the ranks: 2501 ± 1.96 · sqrt(5001) / 2.
    assert!((interval.low - (2501.0 - 69.3)).abs() < 1.5, "{interval:?}");
    assert!((interval.high - (2501.0 + 69.3)).abs() < 1.5, "{interval:?}");
}

#[test]
fn the_half_width_is_the_longer_side() {
    let values = [90.0, 99.0, 99.5, 100.0, 100.0, 100.5, 101.0, 102.0];
    let summary = Summary::new(&values).unwrap();
    let interval = summary.interval.unwrap();
    let longer = (summary.median - interval.low) / summary.median;
    assert!((summary.half_width().unwrap().0 - longer).abs() < 1e-12);
}

/// Share of 4000 seeded samples whose interval covers the true median; its standard error is 0.35
/// %.
fn coverage(n: usize, draw: impl Fn(&mut fastrand::Rng) -> f64, truth: f64) -> f64 {
    let mut rng = fastrand::Rng::with_seed(n as u64);
    let covered = (0..4000).filter(|_| {
        let values: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
        Summary::new(&values).unwrap().interval.unwrap().contains(truth)
    });
    covered.count() as f64 / 4000.0
}

#[test]
fn coverage_is_the_level_within_two_points() {
    let normal = |rng: &mut fastrand::Rng| {
        let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
        1.0 + 0.05 * radius * (std::f64::consts::TAU * rng.f64()).cos()
    };
    let tail = |rng: &mut fastrand::Rng| 1.0 + 0.04 * (1.0 - rng.f64()).ln();
    let tail_median = 1.0 + 0.04 * 0.5f64.ln();
    for n in [6, 8, 10, 15, 30] {
        let share = coverage(n, normal, 1.0);
        assert!((share - LEVEL).abs() < 0.02, "normal, n = {n}: {share}");
        let share = coverage(n, tail, tail_median);
        assert!((share - LEVEL).abs() < 0.02, "left tail, n = {n}: {share}");
    }
}

proptest! {
    #[test]
    fn scaling_the_values_scales_the_answer(
        values in prop::collection::vec(1.0f64..1e6, 6..60), exponent in -20i32..20
    ) {
        let factor = 2f64.powi(exponent);
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        let (one, other) = (Summary::new(&values).unwrap(), Summary::new(&scaled).unwrap());
        let (a, b) = (one.interval.unwrap(), other.interval.unwrap());
        prop_assert_eq!((one.median * factor, a.low * factor, a.high * factor),
            (other.median, b.low, b.high));
    }

    #[test]
    fn a_higher_level_contains_a_lower_one(
        values in prop::collection::vec(1.0f64..1e6, 12..60),
        one in 0.5f64..0.99, two in 0.5f64..0.99
    ) {
        let (narrow, wide) = (one.min(two), one.max(two));
        let narrow = Summary::at_level(&values, narrow).unwrap().interval.unwrap();
        let wide = Summary::at_level(&values, wide).unwrap().interval.unwrap();
        let slack = 1e-9 * wide.high;
        prop_assert!(wide.low <= narrow.low + slack && narrow.high <= wide.high + slack);
    }

    #[test]
    fn the_order_of_values_does_not_matter(
        mut values in prop::collection::vec(1.0f64..1e6, 6..30)
    ) {
        let before = Summary::new(&values).unwrap();
        values.reverse();
        prop_assert_eq!(before, Summary::new(&values).unwrap());
    }

    #[test]
    fn the_interval_holds_the_median_and_stays_within_the_values(
        values in prop::collection::vec(1.0f64..1e6, 6..60)
    ) {
        let summary = Summary::new(&values).unwrap();
        let interval = summary.interval.unwrap();
        prop_assert!(interval.contains(summary.median));
        prop_assert!(summary.min <= interval.low && interval.high <= summary.max);
    }
}
