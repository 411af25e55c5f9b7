use proptest::prelude::*;

use super::*;
use crate::reference::{near, values};

/// Six blocks whose factors cancel in every ratio.
const BLOCKS: [f64; 6] = [1.0, 1.02, 0.97, 1.05, 0.99, 1.01];

fn list(center: f64, blocked: bool) -> Vec<Repetition> {
    let repetition = |(block, factor): (u32, f64)| Repetition {
        block: Some(block).filter(|_| blocked),
        value: center * factor,
    };
    (0..).zip(BLOCKS).map(repetition).collect()
}

fn pairing(ratio: f64) -> Pairing {
    Pairing {
        name: format!("x{ratio}"),
        first: list(100.0, true),
        second: list(100.0 * ratio, true),
        better: Better::Higher,
    }
}

fn of(ratios: &[f64]) -> Aggregate {
    geometric(&ratios.iter().map(|ratio| pairing(*ratio)).collect::<Vec<_>>(), 1).unwrap()
}

#[test]
fn means_agree_with_scipy() {
    let expected = values("means");
    let aggregate = of(&[1.31, 0.87, 2.4, 1.02, 0.99, 1.6]);
    near(aggregate.ratio.0, expected[0], 1e-9);
    near(aggregate.harmonic.0, expected[1], 1e-9);
    assert_eq!((aggregate.least, aggregate.most, aggregate.fragile), (1, 2, None));
    assert_eq!(aggregate.each[1].0, "x0.87");
    near(aggregate.each[1].1.0, 0.87, 1e-9);
    let (these, like) = (aggregate.interval, aggregate.similar_workloads.unwrap());
    assert!(these.contains(aggregate.ratio.0));
    assert!(like.low < these.low && like.high > these.high, "{these:?} {like:?}");
}

#[test]
fn mean_that_depends_on_one_workload_is_fragile() {
    // ln 0.9 + ln 0.95 + ln 1.5 > 0; without the last it is below.
    assert_eq!(of(&[0.9, 0.95, 1.5]).fragile, Some(2));
    assert_eq!(of(&[1.1, 1.05, 0.5]).fragile, Some(2));
    assert_eq!(of(&[1.1, 1.05, 1.01]).fragile, None);
    assert_eq!(of(&[1.5]).fragile, None, "there is nothing without it");
    assert_eq!(of(&[1.5, 1.2]).similar_workloads, None, "two workloads are like nothing");
}

#[test]
fn lower_times_give_ratios_above_one() {
    let mut faster = pairing(0.5);
    faster.better = Better::Lower;
    near(geometric(&[faster], 1).unwrap().ratio.0, 2.0, 1e-9);
}

#[test]
fn missing_data_are_reported() {
    let refused = |change: fn(&mut Pairing)| {
        let mut pairing = pairing(1.1);
        change(&mut pairing);
        geometric(&[self::pairing(1.2), pairing], 1).unwrap_err()
    };
    assert_eq!(geometric(&[], 1), Err(NotEstimable::Workloads));
    assert_eq!(refused(|p| p.first.clear()), NotEstimable::Repetitions { least: 0, needed: 6 });
    assert_eq!(
        refused(|p| p.second.truncate(5)),
        NotEstimable::Repetitions { least: 5, needed: 6 }
    );
    assert_eq!(refused(|p| p.first[0].value = 0.0), NotEstimable::Unsound);
    assert_eq!(refused(|p| p.first[0].value = f64::NAN), NotEstimable::Unsound);
}

#[test]
fn extreme_values_do_not_overflow() {
    let far = |ratio: f64| Pairing { first: list(1e-300, true), ..pairing(ratio) };
    let aggregate = geometric(&[far(1e298), far(1e298)], 1).unwrap();
    for value in [aggregate.ratio.0, aggregate.harmonic.0, aggregate.interval.high] {
        assert!(value.is_finite() && value > 1e300, "{value}");
    }
}

#[test]
fn common_block_effects_do_not_widen_the_interval() {
    // Every ratio of one block is the same; they vary only across blocks.
    let joint = of(&[1.2, 1.3]);
    let apart = Pairing { first: list(100.0, false), second: list(120.0, false), ..pairing(1.2) };
    let apart = geometric(&[apart, pairing(1.3)], 1).unwrap();
    let width = |aggregate: &Aggregate| aggregate.interval.high / aggregate.interval.low;
    assert!(width(&joint) < width(&apart), "{joint:?} {apart:?}");
}

#[test]
fn interval_has_nominal_coverage() {
    // Four workloads, noise 5 %, drift of blocks 5 %; 100 runs, standard error 2.2 points.
    let mut rng = fastrand::Rng::with_seed(9);
    let mut normal = || {
        let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * rng.f64()).cos()
    };
    let mut held = 0;
    for run in 0..100 {
        let factors: Vec<f64> = (0..8).map(|_| 0.05 * normal()).collect();
        let mut list = |center: f64| -> Vec<Repetition> {
            let repetition = |(block, factor): (u32, &f64)| Repetition {
                block: Some(block),
                value: center * (factor + 0.05 * normal()).exp(),
            };
            (0..).zip(&factors).map(repetition).collect()
        };
        let pairings: Vec<Pairing> = [1.0, 1.1, 1.21, 1.331]
            .iter()
            .map(|ratio| Pairing { first: list(10.0), second: list(10.0 * ratio), ..pairing(1.0) })
            .collect();
        let aggregate = geometric(&pairings, run).unwrap();
        held += u32::from(aggregate.interval.contains(1.1f64.powf(1.5)));
    }
    assert!(held >= 89, "{held} of 100");
}

#[test]
fn blocks_of_two_runs_are_drawn_separately_but_jointly_for_all_workloads() {
    // The same noise in every workload: four of them give no more information than one.
    let mut rng = fastrand::Rng::with_seed(5);
    let mut run = || (0..8).map(|_| 1.0 + 0.1 * rng.f64()).collect::<Vec<f64>>();
    let (first, second) = (run(), run());
    let list = |factors: &[f64]| {
        let repetition =
            |(block, value): (u32, &f64)| Repetition { block: Some(block), value: *value };
        (0..).zip(factors).map(repetition).collect::<Vec<_>>()
    };
    let one = Pairing { first: list(&first), second: list(&second), ..pairing(1.0) };
    let across = |times| geometric_across(&vec![one.clone(); times], 1).unwrap().interval;
    assert_eq!(across(1), across(4));
    // In one run, equal block numbers are the same block, so the ratios are the same in every draw.
    let same = Pairing { second: list(&first), ..one.clone() };
    let width = |interval: Interval| interval.high / interval.low;
    let apart = geometric_across(std::slice::from_ref(&same), 1).unwrap().interval;
    let together = geometric(&[same], 1).unwrap().interval;
    assert!(width(apart) > 1.1 * width(together), "{apart:?} {together:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn swapping_inverts_and_scale_does_not_matter(
        ratios in prop::collection::vec(0.5f64..2.0, 1..4), factor in 0.001f64..1000.0,
    ) {
        let one: Vec<Pairing> = ratios.iter().map(|ratio| pairing(*ratio)).collect();
        let swapped: Vec<Pairing> = one
            .iter()
            .map(|p| Pairing { first: p.second.clone(), second: p.first.clone(), ..p.clone() })
            .collect();
        let mut scaled = one.clone();
        for repetition in scaled.iter_mut().flat_map(|p| p.first.iter_mut().chain(&mut p.second)) {
            repetition.value *= factor;
        }
        let [one, swapped, scaled] = [one, swapped, scaled].map(|p| geometric(&p, 1).unwrap());
        near(one.ratio.0 * swapped.ratio.0, 1.0, 1e-9);
        near(one.interval.low * swapped.interval.high, 1.0, 1e-9);
        near(one.ratio.0, scaled.ratio.0, 1e-9);
        near(one.interval.high, scaled.interval.high, 1e-9);
        prop_assert!(one.harmonic.0 <= one.ratio.0 * (1.0 + 1e-12));
    }
}
