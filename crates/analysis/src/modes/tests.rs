use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::{
    reference::{near, values},
    simulated::{around_100, hostile, normal},
};

#[test]
fn two_modes_have_the_gain_of_numpy() {
    let modes = find(&values("modes")).unwrap();
    assert_eq!(modes.lower, [4, 5, 6]);
    assert_eq!(modes.higher, [0, 1, 2, 3, 7, 8, 9]);
    near(modes.gain, values("modes_gain")[0], 1e-9);
    near(modes.ratio.0, 100.2 / 85.0, 1e-12);
}

#[test]
fn two_values_are_outliers_not_a_mode() {
    let mut values = vec![100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 85.0, 85.1];
    assert_eq!(find(&values), None);
    values.push(84.9);
    assert_eq!(find(&values).unwrap().lower, [6, 7, 8]);
}

#[test]
fn ties_and_last_digits_are_one_mode() {
    assert_eq!(find(&[5.0; 20]), None);
    let digits: Vec<f64> = (0..20).map(|at| 5.0 + 1e-6 * f64::from(at % 2)).collect();
    assert_eq!(find(&digits), None);
    // Clock ticks at 2 %: two values only, but significantly different.
    let ticks: Vec<f64> = (0..20).map(|at| 50.0 + f64::from(at % 2)).collect();
    let modes = find(&ticks).unwrap();
    assert_eq!((modes.lower.len(), modes.higher.len()), (10, 10));
    assert!(modes.gain.is_finite());
    // No cut with three on each side passes between the ties.
    assert_eq!(find(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0]), None);
}

#[test]
fn invalid_values_have_no_modes() {
    for values in hostile() {
        if let Some(modes) = find(&values) {
            assert!(values.iter().all(|v| v.is_finite() && *v > 0.0), "{values:?}");
            assert!(modes.ratio.0 > 1.0 && modes.gain.is_finite());
        }
    }
}

/// Number of 1000 cells that are found to be bimodal.
fn found(n: usize, mut draw: impl FnMut(&mut Rng, usize) -> Vec<f64>) -> u32 {
    let mut rng = Rng::with_seed(5);
    (0..1000).map(|_| u32::from(find(&draw(&mut rng, n)).is_some())).sum()
}

#[test]
fn one_mode_is_rarely_split() {
    for n in [8, 15, 30] {
        let scatter = found(n, |rng, n| around_100(rng, n, 5.0));
        assert!(scatter <= 10, "{scatter} of 1000 normal cells of {n}");
        let even = found(n, |rng, n| (0..n).map(|_| 90.0 + 20.0 * rng.f64()).collect());
        assert!(even <= 40, "{even} of 1000 even cells of {n}");
    }
}

#[test]
fn existing_modes_are_found() {
    // 30 % at 0.85, each with 1 %; with at least 3 on either side there are two modes.
    let two = |rng: &mut Rng, n: usize| -> Vec<f64> {
        let lower = |at| if at * 10 < n * 3 { 85.0 } else { 100.0 };
        (0..n).map(|at| lower(at) * (1.0 + 0.01 * normal(rng))).collect()
    };
    assert!(found(10, two) >= 990);
    assert!(found(30, two) == 1000);
}

proptest! {
    #[test]
    fn neither_unit_nor_order_matters(
        seed in 0u64..1000, factor in 1e-3f64..1e6, apart in 1.2f64..3.0, turn in 0usize..20
    ) {
        let mut rng = Rng::with_seed(seed);
        let values: Vec<f64> = around_100(&mut rng, 20, 1.0)
            .into_iter()
            .enumerate()
            .map(|(at, value)| if at % 3 == 0 { value * apart } else { value })
            .collect();
        let modes = find(&values).unwrap();
        let mut turned: Vec<f64> = values.iter().map(|value| value * factor).collect();
        turned.rotate_left(turn);
        let again = find(&turned).unwrap();
        prop_assert!((modes.gain - again.gain).abs() < 1e-6);
        prop_assert!((modes.ratio.0 - again.ratio.0).abs() < 1e-9);
        let mut back: Vec<usize> = again.lower.iter().map(|at| (at + turn) % 20).collect();
        back.sort_unstable();
        prop_assert_eq!(modes.lower, back);
    }
}
