use proptest::prelude::*;

use super::*;
use crate::{
    median,
    null::{Null, statistic},
};

/// All differences, ascending.
fn all(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Hull of the ratios that the test does not reject, found by evaluating W in the middle of every
/// gap from both ends.
fn walked(null: &Null, a: &[f64], b: &[f64], level: f64) -> Option<(f64, f64)> {
    let all = all(a, b);
    let within = |gap: usize| match (gap.checked_sub(1).map(|left| all[left]), all.get(gap)) {
        (Some(left), Some(right)) => f64::midpoint(left, *right),
        (Some(left), None) => left + 1.0,
        (None, Some(right)) => right - 1.0,
        (None, None) => 0.0,
    };
    let rejected = |gap: usize| null.p(statistic(a, b, within(gap))) <= 1.0 - level;
    let last = all.len();
    if !rejected(0) || !rejected(last) {
        return None;
    }
    let kept = |gap: &usize| all[gap - 1] != all[*gap] && !rejected(*gap);
    let estimate = median(&all);
    let low = (1..last).find(kept).map_or(estimate, |gap| all[gap - 1]);
    let high = (1..last).rev().find(kept).map_or(estimate, |gap| all[gap]);
    Some((low.min(estimate), high.max(estimate)))
}

fn ends(null: &Null, a: &[f64], b: &[f64], level: f64) -> Option<(f64, f64)> {
    let critical = null.critical(1.0 - level)?;
    let estimate = Differences::new(a, b).median();
    let high = -Differences::new(b, a).lower_end(critical, -estimate);
    Some((Differences::new(a, b).lower_end(critical, estimate), high))
}

/// Values of a given shape: without ties, with some, with many, in two modes, of very different
/// sizes. All are multiples of 2^-30, so that differences and the middles of gaps are exact.
fn values(shape: u8, count: usize, seed: u64) -> Vec<f64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let draw = |rng: &mut fastrand::Rng| match shape {
        0 => rng.f64(),
        1 => (rng.f64() * 200.0).round() / 256.0,
        2 => (rng.f64() * 8.0).round() / 8.0,
        3 => rng.f64() * 0.05 + f64::from(u8::from(rng.bool())),
        _ => (rng.f64() * 40.0 - 20.0).exp2(),
    };
    let fine = 2f64.powi(30);
    let mut values: Vec<f64> = (0..count).map(|_| (draw(&mut rng) * fine).round() / fine).collect();
    values.sort_by(f64::total_cmp);
    values
}

#[test]
fn machine_numbers_keep_their_order_as_integers() {
    let values = [f64::MIN, -1.0, -1e-300, -0.0, 0.0, f64::MIN_POSITIVE, 0.5, 1.0, f64::MAX];
    assert!(values.windows(2).all(|two| ordered(two[0]) <= ordered(two[1])));
    assert!(values.iter().all(|value| from_ordered(ordered(*value)) == *value));
}

#[test]
fn large_samples_agree_with_exhaustive_search() {
    let null = Null::new(100, 100, 5);
    for shape in 0..5 {
        let (a, b) = (values(shape, 100, 1), values(shape, 100, 2));
        for level in [0.95, 0.9] {
            assert_eq!(ends(&null, &a, &b, level), walked(&null, &a, &b, level), "shape {shape}");
        }
    }
}

proptest! {
    #[test]
    fn any_place_is_what_sorting_gives(
        shape in 0u8..5, n in 1usize..40, m in 1usize..40, seed: u64,
        place: prop::sample::Index,
    ) {
        let (a, b) = (values(shape, n, seed), values(shape, m, seed ^ 1));
        let (sorted, pairs) = (all(&a, &b), Differences::new(&a, &b));
        let index = place.index(n * m);
        prop_assert_eq!(pairs.window(index).get(index), Some(sorted[index]));
        prop_assert_eq!(pairs.median(), median(&sorted));
        let point = sorted[index];
        prop_assert_eq!(pairs.up_to(point), sorted.partition_point(|value| *value <= point));
        prop_assert_eq!(pairs.before(point).below, sorted.partition_point(|v| *v < point));
    }

    #[test]
    fn the_ends_are_those_of_the_walk(
        shape in 0u8..5, other in 0u8..5, n in 2usize..24, m in 2usize..24, seed: u64,
        level in prop::sample::select(vec![0.5, 0.9, 0.95, 0.99]),
    ) {
        let (a, b) = (values(shape, n, seed), values(other, m, seed ^ 1));
        // Drawn splits, because sizes do not matter here and enumeration takes long.
        let null = Null::new(n, m, seed);
        prop_assert_eq!(ends(&null, &a, &b, level), walked(&null, &a, &b, level));
    }

    #[test]
    fn what_is_skipped_would_be_rejected(
        shape in 0u8..5, n in 2usize..30, m in 2usize..30, seed: u64, size in 0.5f64..4.0,
    ) {
        let (a, b) = (values(shape, n, seed), values(shape, m, seed ^ 1));
        let pairs = Differences::new(&a, &b);
        let critical = Critical::of(size);
        let splits: Vec<Split> = all(&a, &b).iter().map(|step| pairs.after(*step)).collect();
        let certain = Split::certain(n, m, critical);
        for (at, split) in splits.iter().enumerate() {
            prop_assert!(split.below > certain || critical.rejects(split.statistic()));
            let ahead = split.below + split.ahead(critical);
            if !critical.rejects(split.statistic()) {
                continue;
            }
            let passed = splits[at..].iter().filter(|later| later.below <= ahead);
            prop_assert!(passed.into_iter().all(|later| critical.rejects(later.statistic())));
        }
    }
}
