use proptest::prelude::*;

use super::*;
use crate::reference::{near, values};

fn check(name: &str) {
    let ours = mann_kendall(&values(name)).unwrap();
    let theirs = values(&format!("{name}_is"));
    near(ours.tau, theirs[0], 1e-12);
    near(ours.p, theirs[1], 1e-9);
}

#[test]
fn small_samples_without_ties_are_exact() {
    check("kendall_nine");
    check("kendall_ten");
}

#[test]
fn ties_use_the_normal_approximation() {
    check("kendall_tied");
}

#[test]
fn the_nile_falls() {
    let nile = mann_kendall(&values("nile")).unwrap();
    near(nile.tau, values("nile_tau")[0], 1e-12);
    near(nile.p, values("nile_p")[0], 1e-9);
}

#[test]
fn monotone_rise_of_eight_is_one_order() {
    let values: Vec<f64> = (0..8).map(f64::from).collect();
    let rise = mann_kendall(&values).unwrap();
    assert_eq!((rise.tau, rise.p), (1.0, 2.0 / 40_320.0));
}

#[test]
fn untestable_series_are_reported() {
    assert_eq!(mann_kendall(&[]), Err(NotEstimable::Points { points: 0, needed: 8 }));
    assert_eq!(mann_kendall(&[1.0; 7]), Err(NotEstimable::Points { points: 7, needed: 8 }));
    assert_eq!(mann_kendall(&[1.0; 8]), Err(NotEstimable::Constant));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut values = vec![1.0; 9];
        values[3] = bad;
        assert_eq!(mann_kendall(&values), Err(NotEstimable::NotFinite { index: 3 }));
    }
}

proptest! {
    #[test]
    fn turned_around_only_the_sign_changes(values in prop::collection::vec(0u8..40, 8..40)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let turned: Vec<f64> = values.iter().rev().copied().collect();
        let curved: Vec<f64> = values.iter().map(|value| (value / 9.0).exp()).collect();
        match mann_kendall(&values) {
            Ok(own) => {
                prop_assert_eq!(mann_kendall(&turned), Ok(Monotone { tau: -own.tau, p: own.p }));
                prop_assert_eq!(mann_kendall(&curved), Ok(own));
                prop_assert!((0.0..=1.0).contains(&own.p) && own.tau.abs() <= 1.0);
            }
            Err(absent) => prop_assert_eq!(absent, NotEstimable::Constant),
        }
    }

    #[test]
    fn any_numbers_have_an_answer(values in prop::collection::vec(any::<f64>(), 0..30)) {
        if let Ok(own) = mann_kendall(&values) {
            prop_assert!((0.0..=1.0).contains(&own.p) && own.tau.abs() <= 1.0);
        }
    }
}
