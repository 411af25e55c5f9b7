use proptest::prelude::*;

use super::*;
use crate::{
    reference::near,
    trend::Repetition,
    trend::tests::{blocked, free, noisy},
};

#[test]
fn index_uses_medians() {
    let levels: [&[f64]; 3] = [&[9., 10., 11., 10., 10., 90.], &[20.0; 6], &[5.0; 6]];
    let found = blocked(&levels).sensitivity(1).unwrap();
    assert_eq!(found.index, Ratio(4.0));
    assert!(found.upper.0 >= 4.0 && found.chance.0 > 1.0, "{found:?}");
}

#[test]
fn eight_flat_levels_match_the_simulation() {
    // Eight levels, eight repetitions, spread 3 %: 1.036 on average, 1.054 at the 95th percentile.
    let mut rng = fastrand::Rng::with_seed(5);
    let all = (0..200).map(|_| noisy(&[1.0; 8], 8, 0.03, &mut rng).medians());
    let mut indices: Vec<f64> = all.map(|medians| index(&medians)).collect();
    near(indices.iter().sum::<f64>() / 200.0, 1.036, 0.003);
    indices.sort_by(f64::total_cmp);
    near(quantile(&indices, 0.95), 1.054, 0.006);
    let one = noisy(&[1.0; 8], 8, 0.03, &mut rng).sensitivity(1).unwrap();
    near(one.chance.0, 1.054, 0.02);
}

#[test]
fn verdicts_match_manual_computation() {
    let of = |index, upper, chance| Sensitivity {
        index: Ratio(index),
        upper: Ratio(upper),
        chance: Ratio(chance),
    };
    let verdict = |own: Sensitivity| own.verdict(Ratio(0.05), Ratio(0.10));
    assert_eq!(verdict(of(1.08, 1.20, 1.04)), Sensitive::Sensitive);
    assert_eq!(verdict(of(1.08, 1.20, 1.09)), Sensitive::Inconclusive);
    assert_eq!(verdict(of(1.04, 1.20, 1.02)), Sensitive::Inconclusive);
    assert_eq!(verdict(of(1.04, 1.10, 1.02)), Sensitive::Insensitive);
    // A significant difference has precedence over a small one.
    assert_eq!(verdict(of(1.08, 1.09, 1.04)), Sensitive::Sensitive);
}

#[test]
fn flat_levels_are_rarely_sensitive() {
    let mut rng = fastrand::Rng::with_seed(7);
    let sensitive = (0..60).filter(|seed| {
        let own = noisy(&[1.0; 6], 8, 0.08, &mut rng).sensitivity(*seed).unwrap();
        own.verdict(Ratio(0.05), INSENSITIVE) == Sensitive::Sensitive
    });
    // At 5 %, 3 of 60 with a standard deviation of 1.7.
    let sensitive = sensitive.count();
    assert!(sensitive <= 9, "{sensitive}");
}

#[test]
fn levels_just_outside_are_rarely_insensitive() {
    let mut rng = fastrand::Rng::with_seed(8);
    let insensitive = (0..60).filter(|seed| {
        let levels = [1.0, 1.02, 1.04, 1.06, 1.08, 1.101];
        noisy(&levels, 8, 0.03, &mut rng).sensitivity(*seed).unwrap().upper.0 <= 1.10
    });
    let insensitive = insensitive.count();
    assert!(insensitive <= 9, "{insensitive}");
}

#[test]
fn block_drift_is_not_sensitivity() {
    // All levels alike in each block, and blocks far apart.
    let level: Vec<f64> = (0..8).map(|block| 100.0 * 1.3f64.powi(block)).collect();
    let own = blocked(&[&level, &level, &level]).sensitivity(1).unwrap();
    assert_eq!((own.index, own.upper, own.chance), (Ratio(1.0), Ratio(1.0), Ratio(1.0)));
}

#[test]
fn missing_data_are_reported() {
    let one = blocked(&[&[1.0; 8]]).sensitivity(1);
    assert_eq!(one, Err(NotEstimable::Levels { levels: 1, needed: 2 }));
    let few = free(&[&[1.0; 8], &[1.0; 5]]).sensitivity(1);
    assert_eq!(few, Err(NotEstimable::Repetitions { least: 5, needed: 6 }));
}

#[test]
fn extreme_numbers_are_handled() {
    let far = blocked(&[&[f64::MIN_POSITIVE; 6], &[f64::MAX; 6]]).sensitivity(1).unwrap();
    assert_eq!((far.index, far.upper), (Ratio(f64::MAX), Ratio(f64::MAX)));
    assert!(far.chance.0 >= 1.0);
    let near_zero = f64::from_bits(1);
    let small = blocked(&[&[near_zero; 6], &[near_zero; 6]]).sensitivity(1).unwrap();
    assert_eq!(small.upper, Ratio(1.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn scale_and_order_change_nothing(
        values in prop::collection::vec(prop::collection::vec(100u16..200, 6..8), 2..5),
    ) {
        let levels: Vec<Vec<f64>> =
            values.iter().map(|v| v.iter().map(|i| f64::from(*i)).collect()).collect();
        let slices: Vec<&[f64]> = levels.iter().map(Vec::as_slice).collect();
        let sweep = blocked(&slices);
        let own = sweep.sensitivity(3).unwrap();
        prop_assert!(own.index.0 >= 1.0 && own.upper.0 >= 1.0 && own.chance.0 >= 1.0);
        let larger = |repetition: &Repetition| Repetition { value: repetition.value * 8.0, ..*repetition };
        let turned = |level: &Level| Level {
            at: level.at,
            repetitions: level.repetitions.iter().rev().map(larger).collect(),
        };
        let turned = Sweep::new(sweep.levels.iter().rev().map(turned).collect()).unwrap();
        prop_assert_eq!(turned.sensitivity(3).unwrap(), own);
    }
}
