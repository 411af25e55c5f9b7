use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::{
    reference::{lines, near},
    simulated::{around_100, hostile, whole},
};

const FIVE: Ratio = Ratio(0.05);

fn repetitions(values: Vec<f64>) -> Vec<Repetition> {
    values.into_iter().map(|value| Repetition { block: None, value }).collect()
}

fn pairs(seed: u64, count: usize, shift: f64) -> Vec<(Vec<Repetition>, Vec<Repetition>, Better)> {
    let mut rng = Rng::with_seed(seed);
    let mut pair = |_| {
        let second = around_100(&mut rng, 10, 2.0).into_iter().map(|value| value * shift).collect();
        (repetitions(around_100(&mut rng, 10, 2.0)), repetitions(second), Better::Higher)
    };
    (0..count).map(&mut pair).collect()
}

#[test]
fn fraction_intervals_agree_with_scipy() {
    let count = |number: f64| u32::try_from(whole(number)).unwrap();
    for line in lines("clopper") {
        let [hits, of, low, high] = line[..] else { panic!("{line:?}") };
        let share = binomial(count(hits), count(of));
        near(share.low, low, 1e-9);
        near(share.high, high, 1e-9);
    }
    let none = binomial(0, 0);
    assert_eq!((none.low, none.high), (0.0, 1.0));
}

#[test]
fn aa_duplicates_do_not_differ_on_a_steady_machine() {
    let noise = noise(&pairs(6, 200, 1.0), &mut Comparer::new(), FIVE).unwrap();
    assert_eq!(noise.pairs, 200);
    assert!(noise.share.contains(0.05), "{noise:?}");
    // The ratio of two medians of 10 with 2 % scatter varies by 2 % · sqrt(2 · 1.05 / 10) · 1.96.
    assert!((0.014..0.023).contains(&noise.ratio.0), "{noise:?}");
    assert_eq!(effective_margin(FIVE, Some(&noise)), FIVE);
}

#[test]
fn different_aa_duplicates_raise_the_margin() {
    let noise = noise(&pairs(6, 10, 1.10), &mut Comparer::new(), FIVE).unwrap();
    assert_eq!(noise.differing, 10);
    assert!(noise.share.low > 0.05);
    assert!(noise.ratio.0 > 0.10 && noise.ratio.0 < 0.13, "{noise:?}");
    assert_eq!(effective_margin(FIVE, Some(&noise)), noise.ratio);
    assert_eq!(shown_margin(FIVE, Some(&noise)), noise.ratio);
    assert_eq!(effective_margin(FIVE, None), FIVE);
}

#[test]
fn phases_of_one_aa_duplicate_are_one_case() {
    // One duplicate of 13 phases, all 10 % apart: one case, which is not significant.
    let cell = vec![pairs(6, 13, 1.10)];
    let one = of_cells(&cell, &mut Comparer::new(), FIVE).unwrap();
    assert_eq!((one.pairs, one.differing, one.cells, one.cells_differing), (13, 13, 1, 1));
    near(one.share.low, 0.025, 1e-9);
    assert!(one.shown, "the phases themselves are result apart for certain");
    let flat = noise(&cell[0], &mut Comparer::new(), FIVE).unwrap();
    assert_eq!((flat.cells, flat.cells_differing), (13, 13));
    assert_eq!((flat.ratio, flat.differing), (one.ratio, one.differing));
}

#[test]
fn one_noisy_aa_duplicate_does_not_raise_the_margin() {
    // 13 phases of 8 repetitions with 5 % scatter. The standard error of 200 runs is 1.5 points.
    let mut comparer = Comparer::new();
    let (mut beyond, mut raised, mut apart) = (0, 0, 0);
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let mut side = || repetitions(around_100(&mut rng, 8, 5.0));
        let cell = (0..13).map(|_| (side(), side(), Better::Higher)).collect();
        let noise = of_cells(&[cell], &mut comparer, FIVE).unwrap();
        beyond += u32::from(noise.ratio.0 > FIVE.0);
        raised += u32::from(shown_margin(FIVE, Some(&noise)) != FIVE);
        apart += noise.cells_differing;
    }
    assert!(beyond >= 45, "the percentile alone would have raised it in {beyond} of 200");
    assert!(raised <= 19 && apart <= 19, "{raised} raised, {apart} result apart, of 200");
}

#[test]
fn direction_of_metric_is_irrelevant() {
    let (mut up, mut down) = (pairs(7, 8, 1.04), pairs(7, 8, 1.04));
    down.iter_mut().for_each(|pair| pair.2 = Better::Lower);
    let there = noise(&up, &mut Comparer::new(), FIVE).unwrap();
    let back = noise(&down, &mut Comparer::new(), FIVE).unwrap();
    up.iter_mut().for_each(|pair| std::mem::swap(&mut pair.0, &mut pair.1));
    let swapped = noise(&up, &mut Comparer::new(), FIVE).unwrap();
    for other in [back, swapped] {
        assert_eq!(there.differing, other.differing);
        near(there.ratio.0, other.ratio.0, 1e-9);
    }
}

#[test]
fn too_few_repetitions_are_not_estimable() {
    let none: Result<AaNoise, NotEstimable> = noise(&[], &mut Comparer::new(), FIVE);
    assert_eq!(none, Err(NotEstimable::Repetitions { least: 0, needed: 6 }));
    let mut few = pairs(8, 2, 1.0);
    few[0].0.truncate(5);
    few[1].1.truncate(3);
    let refused = noise(&few, &mut Comparer::new(), FIVE);
    assert_eq!(refused, Err(NotEstimable::Repetitions { least: 5, needed: 6 }));
    few.extend(pairs(9, 1, 1.0));
    assert_eq!(noise(&few, &mut Comparer::new(), FIVE).unwrap().pairs, 1);
}

#[test]
fn invalid_pairs_are_skipped() {
    let sound = around_100(&mut Rng::with_seed(1), 8, 2.0);
    for values in hostile() {
        let pair = [(repetitions(values), repetitions(sound.clone()), Better::Neither)];
        if let Ok(noise) = noise(&pair, &mut Comparer::new(), FIVE) {
            assert!(noise.ratio.0 >= 0.0 && noise.pairs == 1);
        }
    }
    let equal = [(repetitions(vec![4.0; 9]), repetitions(vec![4.0; 9]), Better::Higher)];
    let noise = noise(&equal, &mut Comparer::new(), FIVE).unwrap();
    assert_eq!((noise.differing, noise.ratio), (0, Ratio(0.0)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn neither_unit_nor_order_matters(seed in 0u64..50, factor in 1e-3f64..1e6) {
        let plain = pairs(seed, 3, 1.02);
        let mut other = plain.clone();
        other.reverse();
        for (first, second, _) in &mut other {
            first.reverse();
            first.iter_mut().chain(second).for_each(|repetition| repetition.value *= factor);
        }
        let mut comparer = Comparer::new();
        let plain = noise(&plain, &mut comparer, FIVE).unwrap();
        let other = noise(&other, &mut comparer, FIVE).unwrap();
        prop_assert_eq!(plain.differing, other.differing);
        prop_assert!((plain.ratio.0 - other.ratio.0).abs() < 1e-9);
    }
}
