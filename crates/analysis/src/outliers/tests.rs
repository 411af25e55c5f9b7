use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::{
    reference::{near, values},
    simulated::{around_100, hostile},
};

#[test]
fn scores_agree_with_scipy() {
    let theirs = values("outlier_scores");
    for (ours, theirs) in scores(&values("modes"), None).into_iter().zip(theirs) {
        near(ours.unwrap(), theirs, 1e-9);
    }
}

#[test]
fn labels_match_manual_computation() {
    // The MAD of the logarithms is 0.01, so a score is 67.45 times the logarithm.
    let at = |log: f64| 50.0 * log.exp();
    let labels = label(
        &[
            at(0.0),
            at(-0.01),
            at(0.01),
            at(0.051),
            at(0.053),
            at(-0.147),
            at(-0.149),
            at(0.0),
            at(0.0),
            at(0.01),
            at(-0.01),
        ],
        None,
    );
    let mut expected = [Label::Ordinary; 11];
    expected[4] = Label::Mild;
    expected[5] = Label::Mild;
    expected[6] = Label::Severe;
    assert_eq!(labels, expected);
}

#[test]
fn difference_below_clock_resolution_is_not_an_outlier() {
    let mut durations = vec![100.0; 9];
    durations.push(101.0);
    assert_eq!(label(&durations, None)[9], Label::Mild, "0.6745 · 0.00995 / 0.001 = 6.7");
    assert_eq!(label(&durations, Some(Ratio(0.01)))[9], Label::Ordinary);
    assert_eq!(label(&durations, Some(Ratio(f64::NAN)))[9], Label::Mild);
}

#[test]
fn few_values_are_not_labeled() {
    assert_eq!(label(&[1.0, 1.0, 1.0, 1.0, 9.0], None), [Label::Ordinary; 5]);
    assert_eq!(label(&[1.0, 1.0, 1.0, 1.0, 1.0, 9.0], None)[5], Label::Severe);
}

#[test]
fn values_without_logarithm_are_not_labeled() {
    let mut values = vec![100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 150.0];
    let alone = label(&values, None);
    values.extend([f64::NAN, 0.0, -5.0, f64::INFINITY]);
    let labels = label(&values, None);
    assert_eq!(labels[..7], alone);
    assert_eq!(labels[6], Label::Severe);
    assert_eq!(labels[7..], [Label::Ordinary; 4]);
    for values in hostile() {
        assert_eq!(label(&values, None).len(), values.len());
    }
}

/// Number of 2000 cells with a spread of 3 % that have any label, and a severe one.
fn labeled(n: usize) -> [u32; 2] {
    let mut rng = Rng::with_seed(4);
    let mut found = [0, 0];
    for _ in 0..2000 {
        let labels = label(&around_100(&mut rng, n, 3.0), None);
        found[0] += u32::from(labels.iter().any(|label| *label != Label::Ordinary));
        found[1] += u32::from(labels.contains(&Label::Severe));
    }
    found
}

#[test]
fn normal_scatter_is_rarely_severe() {
    let [_, severe] = labeled(8);
    assert!(severe <= 60, "{severe} of 2000 cells of 8");
    assert!(labeled(30)[1] <= 2, "of 30");
}

proptest! {
    #[test]
    fn neither_unit_nor_order_matters(
        values in prop::collection::vec(1.0f64..3.0, 0..30),
        factor in 1e-6f64..1e9,
        turn in 0usize..30,
    ) {
        // Scores exactly at the limits may have either label.
        let clear = scores(&values, None).into_iter().flatten().all(|score| {
            (score.abs() - 3.5).abs() > 1e-6 && (score.abs() - 10.0).abs() > 1e-6
        });
        prop_assume!(clear);
        let mut turned: Vec<f64> = values.iter().map(|value| value * factor).collect();
        let turn = turn % values.len().max(1);
        turned.rotate_left(turn);
        let mut labels = label(&values, None);
        labels.rotate_left(turn);
        prop_assert_eq!(label(&turned, None), labels);
    }
}
