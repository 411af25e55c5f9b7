use proptest::prelude::*;

use super::*;
use crate::reference::{near, values};

/// Points of about a normal distribution with the given spread, around the levels.
fn series(levels: &[(usize, f64)], spread: f64, seed: u64) -> Vec<f64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut noise = || spread * ((0..12).map(|_| rng.f64()).sum::<f64>() - 6.0);
    levels.iter().flat_map(|(n, level)| vec![*level; *n]).map(|level| level + noise()).collect()
}

fn is_number(change: &Change) -> bool {
    !change.p.is_nan() && !change.size.0.is_nan()
}

fn places(points: &[f64]) -> Vec<usize> {
    find(points, Options::default()).unwrap().iter().map(|change| change.at).collect()
}

#[test]
fn the_nile_changed_after_1898() {
    // Cobb (1978): the flow fell with the building of the first dam, from 1899 on.
    let logs: Vec<f64> = values("nile").iter().map(|flow| flow.ln()).collect();
    let changes = find(&logs, Options::default()).unwrap();
    let [change] = &changes[..] else { panic!("one change: {changes:?}") };
    assert_eq!((change.at, 1871 + change.at), (28, 1899));
    near(change.p, values("nile_t")[0], 1e-6);
    let levels = values("nile_levels");
    near(change.before, levels[0], 1e-12);
    near(change.after, levels[1], 1e-12);
    near(change.size.0, (levels[1] - levels[0]).exp(), 1e-12);
}

#[test]
fn divergence_matches_its_definition() {
    let logs: Vec<f64> = values("nile").iter().map(|flow| flow.ln()).collect();
    let (at, q) = best(&logs, 4).unwrap();
    let theirs = values("nile_split");
    assert_eq!(at as f64, theirs[0]);
    near(q, theirs[1], 1e-9);
}

#[test]
fn hunter_example_is_reproduced() {
    // Otava's test of a single series: windows of 10, p below 0.0001, a change at 10.
    let points = [
        1.02, 0.95, 0.99, 1.00, 1.12, 1.00, 1.01, 0.98, 1.01, 0.96, 0.50, 0.51, 0.48, 0.48, 0.55,
        0.50, 0.49, 0.51, 0.50, 0.49,
    ];
    let logs = points.map(f64::ln);
    let options = Options { p: 0.0001, window: 10, ..Options::default() };
    let at = |points: &[f64], options| {
        find(points, options).unwrap().iter().map(|change| change.at).collect::<Vec<_>>()
    };
    assert_eq!(at(&points, options), [10]);
    assert_eq!(at(&logs, options), [10]);
    assert_eq!(places(&logs), [10]);
}

#[test]
fn several_changes_over_several_windows() {
    let points = series(&[(40, 0.0), (30, 0.2), (70, 0.1), (20, 0.3)], 0.02, 3);
    assert_eq!(places(&points), [40, 70, 140]);
    let changes = find(&points, Options::default()).unwrap();
    let sizes: Vec<f64> = changes.iter().map(|change| change.size.0.ln()).collect();
    for (size, made) in sizes.iter().zip([0.2, -0.1, 0.2]) {
        assert!((size - made).abs() < 0.02, "{sizes:?}");
    }
}

#[test]
fn change_below_minimum_size_is_merged() {
    let points = series(&[(30, 0.0), (30, 0.03), (30, 0.2)], 0.005, 4);
    assert_eq!(places(&points), [60]);
    let fine = find(&points, Options { least_change: Ratio(0.0), ..Options::default() }).unwrap();
    assert_eq!(fine.iter().map(|change| change.at).collect::<Vec<_>>(), [30, 60]);
}

#[test]
fn three_points_are_not_a_level() {
    assert_eq!(places(&series(&[(30, 0.0), (3, 0.5)], 0.01, 5)), [0; 0]);
    assert_eq!(places(&series(&[(30, 0.0), (4, 0.5)], 0.01, 5)), [30]);
    assert_eq!(places(&series(&[(15, 0.0), (1, 0.9), (15, 0.0)], 0.01, 5)), [0; 0]);
}

#[test]
fn series_without_changes_rarely_yield_one() {
    let shown = (0..200).filter(|seed| !places(&series(&[(60, 0.0)], 0.05, *seed)).is_empty());
    let shown = shown.count();
    assert!(shown <= 8, "{shown} of 200");
}

#[test]
fn points_without_noise_are_handled() {
    assert_eq!(places(&[0.1; 50]), [0; 0]);
    assert_eq!(
        find(&[0.1; 50], Options { least_change: Ratio(0.0), p: 1.0, ..Options::default() }),
        Ok(vec![])
    );
    let step: Vec<f64> = (0..40).map(|i| if i < 17 { 0.1 } else { 0.3 }).collect();
    let changes = find(&step, Options::default()).unwrap();
    assert_eq!(changes.iter().map(|change| change.at).collect::<Vec<_>>(), [17]);
    assert!(changes[0].p < 1e-12, "{changes:?}");
}

#[test]
fn unsuitable_series_are_reported() {
    let options = Options::default();
    assert_eq!(find(&[], options), Err(NotEstimable::Points { points: 0, needed: 20 }));
    assert_eq!(find(&[1.0; 19], options), Err(NotEstimable::Points { points: 19, needed: 20 }));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut points = vec![1.0; 20];
        points[7] = bad;
        assert_eq!(find(&points, options), Err(NotEstimable::NotFinite { index: 7 }));
    }
}

#[test]
fn extreme_options_terminate() {
    let points = series(&[(30, 0.0), (30, 0.3)], 0.02, 6);
    let odd = |least_side, window| Options { least_side, window, ..Options::default() };
    for options in [odd(0, 0), odd(1, 1), odd(4, 3), odd(2, usize::MAX), odd(usize::MAX / 4, 0)] {
        for change in find(&points, options).unwrap() {
            assert!(change.at > 0 && change.at < 60);
        }
    }
    for p in [f64::NAN, -1.0] {
        assert_eq!(find(&points, Options { p, ..Options::default() }), Ok(vec![]));
    }
    let none = Options { least_change: Ratio(f64::NAN), ..Options::default() };
    assert!(find(&points, none).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn changes_keep_their_distance_and_shift_with_the_series(
        levels in prop::collection::vec((4usize..40, -8i8..8), 1..6),
        seed in any::<u64>(),
    ) {
        let levels: Vec<(usize, f64)> =
            levels.into_iter().map(|(n, level)| (n + 8, f64::from(level) / 16.0)).collect();
        let points = series(&levels, 0.02, seed);
        prop_assume!(points.len() >= POINTS_MIN);
        let own = find(&points, Options::default()).unwrap();
        let mut ends = vec![0];
        ends.extend(own.iter().map(|change| change.at));
        ends.push(points.len());
        prop_assert!(ends.windows(2).all(|ends| ends[1] >= ends[0] + 4), "{:?}", ends);
        for change in &own {
            prop_assert!(change.p < 0.001 && (change.size.0.ln().abs() >= 1.05f64.ln() - 1e-9));
        }
        // A power of two is added without rounding where the points are of its size or smaller.
        let shifted: Vec<f64> = points.iter().map(|point| point + 8.0).collect();
        let other = find(&shifted, Options::default()).unwrap();
        prop_assert_eq!(
            other.iter().map(|change| change.at).collect::<Vec<_>>(),
            own.iter().map(|change| change.at).collect::<Vec<_>>()
        );
    }

    #[test]
    fn any_numbers_have_an_answer(points in prop::collection::vec(any::<f64>(), 0..60)) {
        if let Ok(changes) = find(&points, Options::default()) {
            prop_assert!(changes.iter().all(is_number));
        }
        let or_zero = |point: &f64| if point.is_finite() { *point } else { 0.0 };
        let finite: Vec<f64> = points.iter().map(or_zero).collect();
        if let Ok(changes) = find(&finite, Options::default()) {
            prop_assert!(changes.iter().all(is_number));
        }
    }
}
