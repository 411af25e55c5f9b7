use proptest::prelude::*;

use super::*;

const FIVE: Ratio = Ratio(0.05);

fn compare(a: &[f64], b: &[f64], better: Better) -> Comparison {
    Comparer::new().compare(a, b, better, FIVE).unwrap()
}

/// Eight values around `center`, 0.4 % apart.
fn around(center: f64) -> Vec<f64> {
    (0..8).map(|i| center * (1.0 + 0.004 * (f64::from(i) - 3.5))).collect()
}

/// As [`around`], but 4 % apart.
fn wide_around(center: f64) -> Vec<f64> {
    (0..8).map(|i| center * (1.0 + 0.04 * (f64::from(i) - 3.5))).collect()
}

fn differs(side: Side, size: Size) -> Verdict {
    Verdict::Differs { side, size }
}

#[test]
fn every_row_of_the_verdict_table_is_reached() {
    let base = around(100.0);
    let of = |b: &[f64]| compare(&base, b, Better::Higher).verdict;
    assert_eq!(of(&around(120.0)), differs(Side::Better, Size::AtLeast));
    assert_eq!(of(&around(105.0)), differs(Side::Better, Size::Uncertain));
    assert_eq!(of(&around(103.0)), differs(Side::Better, Size::Negligible));
    assert_eq!(of(&around(100.1)), Verdict::Equivalent);
    assert_eq!(of(&around(97.0)), differs(Side::Worse, Size::Negligible));
    assert_eq!(of(&around(95.0)), differs(Side::Worse, Size::Uncertain));
    assert_eq!(of(&around(80.0)), differs(Side::Worse, Size::AtLeast));
    let noisy = compare(&wide_around(100.0), &wide_around(103.0), Better::Higher);
    assert!(matches!(noisy.verdict, Verdict::Inconclusive { needed } if needed > 8), "{noisy:?}");
}

#[test]
fn the_direction_follows_the_metric() {
    let slower = compare(&around(100.0), &around(120.0), Better::Lower);
    assert_eq!(slower.verdict, differs(Side::Worse, Size::AtLeast));
    assert!((slower.ratio.0 - 1.0 / 1.2).abs() < 1e-3);
}

#[test]
fn hodges_and_lehmann_by_hand() {
    // ln ratios of {2, 4} to {1, 2}: ln 1, ln 2, ln 2, ln 4; their median is ln 2.
    let comparison = compare(&[1.0, 2.0], &[2.0, 4.0], Better::Higher);
    assert!((comparison.ratio.0 - 2.0).abs() < 1e-12);
    assert_eq!(comparison.interval, None, "two against two reject nothing at 5 %");
    assert_eq!(comparison.warnings.len(), 2);
    assert!(matches!(comparison.verdict, Verdict::Inconclusive { .. }));
}

#[test]
fn equal_constants_are_equivalent_and_unequal_ones_differ() {
    let same = compare(&[7.0; 8], &[7.0; 8], Better::Higher);
    assert_eq!((same.verdict, same.p), (Verdict::Equivalent, 1.0));
    let more = compare(&[7.0; 8], &[8.0; 8], Better::Higher);
    assert_eq!(more.verdict, differs(Side::Better, Size::AtLeast));
    assert!((more.p - 2.0 / 12870.0).abs() < 1e-12);
}

#[test]
fn the_formula_for_repeats_by_hand() {
    // s = 0.1 on both sides, δ = 5 %: 2.1 · (0.28 / 0.04879)² = 69.2.
    let logs: Vec<f64> = [-1.0f64, 1.0].iter().map(|sign| sign * 0.1 / 2f64.sqrt()).collect();
    assert_eq!(repeats_needed(&logs, &logs, FIVE), 70);
    assert_eq!(repeats_needed(&[0.0; 9], &[0.0; 9], FIVE), 10, "nine did not decide");
}

#[test]
fn medians_that_contradict_the_estimate_withhold_the_verdict() {
    // Two modes: most differences are near 1, the medians sit in different modes.
    let a = [1.0, 1.001, 1.002, 1.003, 1.3, 1.301, 1.302, 1.303, 1.304];
    let b = [1.0, 1.001, 1.002, 1.003, 1.004, 1.301, 1.302, 1.303, 1.304];
    let comparison = compare(&a, &b, Better::Higher);
    assert!((comparison.ratio_of_medians.0 - comparison.ratio.0).abs() > 0.05);
    assert!(matches!(comparison.verdict, Verdict::Inconclusive { .. }));
}

#[test]
fn what_has_no_logarithm_is_refused() {
    let error = Comparer::new().compare(&[1.0, 0.0], &[1.0], Better::Higher, FIVE).unwrap_err();
    assert_eq!(error, Error::NotPositive { index: 1, value: 0.0 });
}

fn normal(rng: &mut fastrand::Rng, center: f64, spread: f64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    center * (spread * radius * (std::f64::consts::TAU * rng.f64()).cos()).exp()
}

#[test]
fn false_positives_and_coverage_keep_their_level() {
    // 2000 pairs; the standard error of a share of 5 % is 0.5 %. Unequal spreads are the hard case.
    let mut rng = fastrand::Rng::with_seed(11);
    let mut comparer = Comparer::new();
    for (spread_a, spread_b, limit) in [(0.03, 0.03, 0.065), (0.01, 0.08, 0.08)] {
        let (mut positive, mut missed) = (0, 0);
        for _ in 0..2000 {
            let a: Vec<f64> = (0..10).map(|_| normal(&mut rng, 100.0, spread_a)).collect();
            let b: Vec<f64> = (0..10).map(|_| normal(&mut rng, 100.0, spread_b)).collect();
            let comparison = comparer.compare(&a, &b, Better::Higher, FIVE).unwrap();
            positive += u32::from(comparison.p <= 0.05);
            missed += u32::from(!comparison.interval.unwrap().contains(1.0));
        }
        let share = |n: u32| f64::from(n) / 2000.0;
        assert!(share(positive) < limit && share(positive) > 0.03, "{}", share(positive));
        assert!(missed <= positive, "the interval never claims more than the test");
    }
}

#[test]
fn a_true_difference_is_found() {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut comparer = Comparer::new();
    let found = (0..400).filter(|_| {
        let a: Vec<f64> = (0..10).map(|_| normal(&mut rng, 100.0, 0.02)).collect();
        let b: Vec<f64> = (0..10).map(|_| normal(&mut rng, 105.0, 0.02)).collect();
        comparer.compare(&a, &b, Better::Higher, FIVE).unwrap().p <= 0.05
    });
    assert!(found.count() > 380, "power at 2 % noise and a 5 % difference is above 99 %");
}

proptest! {
    #[test]
    fn swapping_inverts_ratio_and_interval(
        a in prop::collection::vec(50.0f64..150.0, 6..10),
        b in prop::collection::vec(50.0f64..150.0, 6..10),
    ) {
        let (one, other) =
            (compare(&a, &b, Better::Higher), compare(&b, &a, Better::Higher));
        let close = |x: f64, y: f64| (x - y).abs() < 1e-9;
        prop_assert!(close(one.ratio.0 * other.ratio.0, 1.0));
        prop_assert!(close(one.p, other.p));
        let (i, j) = (one.interval.unwrap(), other.interval.unwrap());
        prop_assert!(close(i.low * j.high, 1.0) && close(i.high * j.low, 1.0));
    }

    #[test]
    fn scale_does_not_matter(
        a in prop::collection::vec(50.0f64..150.0, 6..10),
        b in prop::collection::vec(50.0f64..150.0, 6..10),
        factor in 0.001f64..1000.0,
    ) {
        let scaled = |v: &[f64]| v.iter().map(|x| x * factor).collect::<Vec<_>>();
        let one = compare(&a, &b, Better::Higher);
        let other = compare(&scaled(&a), &scaled(&b), Better::Higher);
        prop_assert!((one.ratio.0 / other.ratio.0 - 1.0).abs() < 1e-9);
        let (i, j) = (one.interval.unwrap(), other.interval.unwrap());
        prop_assert!((i.low / j.low - 1.0).abs() < 1e-9 && (i.high / j.high - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_interval_without_one_means_a_rejected_test(
        a in prop::collection::vec(50.0f64..150.0, 6..10),
        b in prop::collection::vec(60.0f64..220.0, 6..10),
    ) {
        let comparison = compare(&a, &b, Better::Higher);
        let interval = comparison.interval.unwrap();
        prop_assert!(interval.contains(comparison.ratio.0));
        prop_assert!(interval.contains(1.0) || comparison.p <= 0.05 + 1e-9);
    }

    #[test]
    fn the_lower_level_lies_inside(
        a in prop::collection::vec(50.0f64..150.0, 6..10),
        b in prop::collection::vec(60.0f64..220.0, 6..10),
    ) {
        let logs = |values: &[f64]| logarithms(values, Better::Higher).unwrap();
        let (a, b) = (logs(&a), logs(&b));
        let all = differences(&a, &b);
        let null = Null::new(a.len(), b.len(), 1);
        let at = |level| invert(&null, &a, &b, &all, level).unwrap();
        let (wide, narrow) = (at(0.95), at(0.90));
        prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
    }
}
