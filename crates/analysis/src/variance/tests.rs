use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::{
    reference::{lines, near, values},
    simulated::{hostile, normal},
};

/// Tree with these logarithms.
fn tree(logs: &[&[&[f64]]]) -> Vec<Instance> {
    let run = |run: &&[f64]| run.iter().map(|log| log.exp()).collect();
    logs.iter().map(|instance| Instance { runs: instance.iter().map(run).collect() }).collect()
}

fn variances(components: &Components) -> Vec<f64> {
    components.shares.iter().map(|share| share.variance).collect()
}

#[test]
fn the_example_of_kalibera_and_jones_with_three_levels() {
    // From their paper, also in the tests of libkalibera: S² = 16.5, 2.6, 3.6; T² = 16.5, -5.7,
    // 2.3. The negative one counts as 0 here.
    let data = tree(&[
        &[&[9.0, 5.0], &[8.0, 3.0]],
        &[&[10.0, 6.0], &[7.0, 11.0]],
        &[&[1.0, 12.0], &[2.0, 4.0]],
    ]);
    let components = components(&data, 1).unwrap();
    let found = variances(&components);
    assert_eq!(
        found.iter().map(|t| (t * 10.0).round() / 10.0).collect::<Vec<_>>(),
        [16.5, 0.0, 2.3]
    );
    let names: Vec<_> =
        components.shares.iter().map(|share| (share.level, share.repetitions)).collect();
    assert_eq!(names, [("window", 2), ("run", 2), ("instance", 3)]);
    near(components.mean, 6.5f64.exp(), 1e-9);
    assert_eq!(components.shares[2].interval, None, "three instances");
    assert_eq!(components.plan(&[1.0, 1.0, 1.0]), Ok(vec![None, Some(1)]));
}

#[test]
fn the_example_of_kalibera_and_jones_with_two_levels() {
    // Means 6.25, 8.5, 4.75; T² = 12.7 and 0.4.
    let data =
        tree(&[&[&[9.0, 5.0, 8.0, 3.0]], &[&[10.0, 6.0, 7.0, 11.0]], &[&[1.0, 12.0, 2.0, 4.0]]]);
    let found = components(&data, 1).unwrap();
    assert_eq!(
        found.shares.iter().map(|share| share.level).collect::<Vec<_>>(),
        ["window", "instance"]
    );
    near(variances(&found)[0], 12.722_222, 1e-6);
    near(variances(&found)[1], 0.381_944, 1e-5);
}

#[test]
fn plan_agrees_with_libkalibera() {
    // T² = 0.72667, 0.26278, 0.7747; at costs of 3, 20, and 100, r = 4.29 and 1.30.
    let data =
        tree(&[&[&[3.0, 4.0, 3.0], &[1.2, 3.1, 3.0]], &[&[0.2, 1.0, 1.5], &[1.0, 2.0, 3.0]]]);
    let components = components(&data, 1).unwrap();
    for (ours, theirs) in variances(&components).into_iter().zip([0.726_667, 0.262_778, 0.7747]) {
        near(ours, theirs, 1e-4);
    }
    assert_eq!(components.plan(&[3.0, 20.0, 100.0]), Ok(vec![Some(5), Some(2)]));
    for costs in [&[3.0, 20.0][..], &[3.0, 0.0, 1.0], &[f64::NAN; 3], &[1.0; 4], &[]] {
        assert!(matches!(components.plan(costs), Err(NotEstimable::Levels { needed: 3, .. })));
    }
}

#[test]
fn components_agree_with_statsmodels() {
    let pastes = lines("pastes")
        .map(|assays| Instance { runs: assays.chunks(2).map(<[f64]>::to_vec).collect() });
    let components = components(&pastes.collect::<Vec<_>>(), 1).unwrap();
    for (ours, theirs) in variances(&components).into_iter().zip(values("pastes_components")) {
        near(ours, theirs, 1e-9);
    }
    let mean = values("pastes_mean");
    near(components.mean, mean[0].exp(), 1e-12);
    near(components.interval.low, mean[1].exp(), 1e-9);
    near(components.interval.high, mean[2].exp(), 1e-9);
    assert!(!components.instances_alike());
}

/// Given numbers of instances, runs, and windows, with the spreads of windows, runs, and instances.
fn drawn(rng: &mut Rng, [r3, r2, r1]: [usize; 3], spread: [f64; 3]) -> Vec<Instance> {
    let mut instance = |_| {
        let own = spread[2] * normal(rng);
        let mut run = |_| {
            let own = own + spread[1] * normal(rng);
            (0..r1).map(|_| 100.0 * (own + spread[0] * normal(rng)).exp()).collect()
        };
        Instance { runs: (0..r2).map(&mut run).collect() }
    };
    (0..r3).map(&mut instance).collect()
}

#[test]
fn simulated_fractions_are_within_their_intervals() {
    // Variances of 1, 1, and 4 parts.
    let mut rng = Rng::with_seed(1);
    let mut covered = [0u32; 3];
    for seed in 0..200 {
        let tree = drawn(&mut rng, [20, 3, 5], [0.01, 0.01, 0.02]);
        let components = components(&tree, seed).unwrap();
        let truth = [1.0 / 6.0, 1.0 / 6.0, 4.0 / 6.0];
        for ((covered, share), truth) in covered.iter_mut().zip(&components.shares).zip(truth) {
            *covered += u32::from(share.interval.unwrap().contains(truth));
        }
    }
    assert!(covered.iter().all(|covered| *covered >= 176), "{covered:?} of 200");
}

#[test]
fn similar_instances_are_detected() {
    let mut rng = Rng::with_seed(2);
    let alike = components(&drawn(&mut rng, [300, 3, 5], [0.03, 0.02, 0.0]), 1).unwrap();
    assert!(alike.instances_alike(), "{alike:?}");
    let unlike = components(&drawn(&mut rng, [40, 3, 5], [0.01, 0.01, 0.03]), 1).unwrap();
    assert!(!unlike.instances_alike());
    let few = components(&drawn(&mut rng, [4, 3, 5], [0.03, 0.02, 0.0]), 1).unwrap();
    assert!(!few.instances_alike(), "without an interval nothing is shown");
}

#[test]
fn unsuitable_trees_are_rejected() {
    let of = |logs: &[&[&[f64]]]| components(&tree(logs), 1);
    assert_eq!(of(&[]), Err(NotEstimable::Repetitions { least: 0, needed: 2 }));
    assert_eq!(of(&[&[&[1.0, 2.0]]]), Err(NotEstimable::Repetitions { least: 1, needed: 2 }));
    assert_eq!(of(&[&[], &[]]), Err(NotEstimable::Repetitions { least: 0, needed: 2 }));
    assert_eq!(of(&[&[&[]], &[&[]]]), Err(NotEstimable::Repetitions { least: 0, needed: 2 }));
    assert_eq!(of(&[&[&[1.0]], &[&[2.0]]]), Err(NotEstimable::Levels { levels: 1, needed: 2 }));
    assert_eq!(of(&[&[&[1.0, 2.0]], &[&[2.0]]]), Err(NotEstimable::Unbalanced));
    assert_eq!(of(&[&[&[1.0]], &[&[2.0], &[1.0]]]), Err(NotEstimable::Unbalanced));
    assert_eq!(of(&[&[&[1.7, 1.7]], &[&[1.7, 1.7]]]), Err(NotEstimable::Constant));
    for values in hostile() {
        let instance = Instance { runs: vec![values.clone(), values] };
        if let Ok(found) = components(&vec![instance; 7], 1) {
            assert!(found.shares.iter().all(|share| (0.0..=1.0).contains(&share.share.0)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn neither_unit_nor_order_matters(seed in 0u64..500, factor in 1e-3f64..1e6) {
        let plain = drawn(&mut Rng::with_seed(seed), [7, 3, 4], [0.02, 0.01, 0.02]);
        let mut other = plain.clone();
        other.rotate_left(2);
        for instance in &mut other {
            instance.runs.reverse();
            instance.runs.iter_mut().for_each(|run| run.rotate_left(1));
            instance.runs.iter_mut().flatten().for_each(|value| *value *= factor);
        }
        let (plain, other) = (components(&plain, 1).unwrap(), components(&other, 1).unwrap());
        for (one, two) in plain.shares.iter().zip(&other.shares) {
            prop_assert!((one.share.0 - two.share.0).abs() < 1e-9);
        }
        let total: f64 = plain.shares.iter().map(|share| share.share.0).sum();
        prop_assert!((total - 1.0).abs() < 1e-9);
        prop_assert!((other.mean / plain.mean / factor - 1.0).abs() < 1e-9);
    }
}
