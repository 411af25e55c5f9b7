use proptest::prelude::*;

use super::*;
use crate::reference::{near, values};

/// Levels at 1, 2, 4 …, value i in block i.
pub(super) fn blocked(levels: &[&[f64]]) -> Sweep {
    let level = |(at, values): (usize, &&[f64])| Level {
        at: f64::from(1u32 << at),
        repetitions: (0..)
            .map(Some)
            .zip(*values)
            .map(|(block, v)| Repetition { block, value: *v })
            .collect(),
    };
    Sweep::new(levels.iter().enumerate().map(level).collect()).unwrap()
}

/// The same levels without blocks.
pub(super) fn free(levels: &[&[f64]]) -> Sweep {
    let mut levels = blocked(levels).levels;
    levels
        .iter_mut()
        .flat_map(|level| &mut level.repetitions)
        .for_each(|repetition| repetition.block = None);
    Sweep::new(levels).unwrap()
}

/// Levels around these medians with approximately normal spread, in blocks.
pub(super) fn noisy(medians: &[f64], n: usize, spread: f64, rng: &mut fastrand::Rng) -> Sweep {
    let mut noise = || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    let mut draw = |median: &f64| (0..n).map(|_| median * (spread * noise()).exp()).collect();
    let levels: Vec<Vec<f64>> = medians.iter().map(&mut draw).collect();
    let levels: Vec<&[f64]> = levels.iter().map(Vec::as_slice).collect();
    blocked(&levels)
}

fn pairs(places: &[f64], values: &[f64]) -> Sweep {
    let level = |(at, value): (&f64, &f64)| Level {
        at: *at,
        repetitions: vec![Repetition { block: None, value: *value }],
    };
    Sweep::new(places.iter().zip(values).map(level).collect()).unwrap()
}

#[test]
fn motivation_scores_give_the_published_statistic() {
    // Hollander and Wolfe, "Nonparametric Statistical Methods", 1999, example 6.2: J = 79.
    let trend = free(&[
        &[40., 35., 38., 43., 44., 41.],
        &[38., 40., 47., 44., 40., 42.],
        &[48., 40., 45., 43., 46., 44.],
    ])
    .trend(1)
    .unwrap();
    assert_eq!((trend.statistic, trend.exact), (79.0, false));
    near(trend.tau_b.unwrap(), values("motivation_tau_b")[0], 1e-12);
    assert!((trend.p - values("motivation_p")[0]).abs() < 0.006, "{}", trend.p);
}

#[test]
fn small_sweeps_are_enumerated() {
    // 3! · 3! orders within two blocks; the steepest and its mirror are one each.
    let rising = blocked(&[&[1., 2.], &[3., 4.], &[5., 6.]]).trend(1).unwrap();
    assert_eq!((rising.statistic, rising.exact, rising.p), (12.0, true, 2.0 / 36.0));
    // Without blocks there are 6! / 2!³ = 90 orders.
    assert_eq!(free(&[&[1., 2.], &[3., 4.], &[5., 6.]]).trend(1).unwrap().p, 2.0 / 90.0);
}

#[test]
fn blocks_remove_the_drift() {
    // Within each block the value falls with the level; the drift between blocks hides that.
    let values = |level: f64| -> Vec<f64> { (0..6).map(|b| 2f64.powi(b) - level * 0.1).collect() };
    let levels = [values(1.0), values(2.0), values(3.0)];
    let levels: Vec<&[f64]> = levels.iter().map(Vec::as_slice).collect();
    assert!(blocked(&levels).trend(1).unwrap().p < 1e-3);
    assert!(free(&levels).trend(1).unwrap().p > 0.2);
}

#[test]
fn slope_matches_sen_1968() {
    // Sen (1968), section 6: seven pairs whose slopes have the median 4.
    let places = [1., 2., 3., 4., 10., 12., 18.].map(f64::exp2);
    let sweep = pairs(&places, &[9., 15., 19., 20., 45., 55., 78.].map(f64::exp));
    near(sweep.trend(1).unwrap().per_doubling.0.ln(), 4.0, 1e-12);
}

#[test]
fn the_slope_agrees_with_scipy() {
    let sweep = pairs(&[1., 1., 2., 2., 4., 4., 16.], &[90., 110., 150., 160., 250., 210., 300.]);
    near(sweep.trend(1).unwrap().per_doubling.0.ln(), values("slope_by_scipy")[0], 1e-12);
}

#[test]
fn kendall_ties_agree_with_scipy() {
    // scipy.stats.kendalltau([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]) is -0.4714045207910316.
    let trend = pairs(&[12., 2., 1., 12., 2.], &[2., 5., 8., 2., 1.]).trend(1).unwrap();
    near(trend.tau_b.unwrap(), -0.471_404_520_791_031_6, 1e-12);
}

#[test]
fn equal_values_have_no_trend() {
    let trend = blocked(&[&[3.0; 8], &[3.0; 8]]).trend(1).unwrap();
    assert_eq!(
        (trend.p, trend.tau_b, trend.per_doubling),
        (1.0, Err(NotEstimable::Constant), Ratio(1.0))
    );
    let interval = trend.per_doubling_interval.unwrap();
    assert_eq!((interval.low, interval.high), (1.0, 1.0));
}

#[test]
fn ends_compare_the_last_with_the_first() {
    let sweep = blocked(&[
        &[10., 11., 10.5, 10.2, 10.1, 10.3],
        &[1.0; 6],
        &[20., 22., 21., 20.5, 21.5, 20.2],
    ]);
    let ends = |better| sweep.ends(&mut Comparer::new(), better, Ratio(0.05)).unwrap();
    near(ends(Better::Higher).ratio.0, 2.0, 0.02);
    near(ends(Better::Lower).ratio.0, 0.5, 0.02);
}

#[test]
fn missing_data_are_reported() {
    let levels = |levels, needed| Err(NotEstimable::Levels { levels, needed });
    assert_eq!(blocked(&[&[1.0]]).trend(1), levels(1, 2));
    let few = blocked(&[&[1., 2., 3.], &[4., 5., 6.]]).trend(1).unwrap();
    assert_eq!(few.per_doubling_interval, Err(NotEstimable::Repetitions { least: 3, needed: 6 }));
    let level = |at, value| Level { at, repetitions: vec![Repetition { block: None, value }] };
    assert_eq!(Sweep::new(vec![]), Err(Error::Empty));
    assert_eq!(
        Sweep::new(vec![level(0.0, 1.0)]),
        Err(Error::NotPositiveLevel { index: 0, at: 0.0 })
    );
    let negative = Sweep::new(vec![level(1.0, -1.0)]);
    assert_eq!(negative, Err(Error::NotPositive { index: 0, value: -1.0 }));
}

#[test]
fn slope_interval_covers_the_true_slope() {
    let mut rng = fastrand::Rng::with_seed(3);
    let levels: Vec<Vec<f64>> = (0..6)
        .map(|at| (0..12).map(|_| 1.1f64.powi(at) * (1.0 + 0.04 * (rng.f64() - 0.5))).collect())
        .collect();
    let levels: Vec<&[f64]> = levels.iter().map(Vec::as_slice).collect();
    let trend = blocked(&levels).trend(1).unwrap();
    let interval = trend.per_doubling_interval.unwrap();
    assert!(interval.contains(1.1) && interval.high - interval.low < 0.02, "{interval:?}");
    assert!(interval.contains(trend.per_doubling.0) && trend.p < 1e-3);
}

#[test]
fn permuted_labels_keep_the_error_rate() {
    // 200 sweeps without a trend: p <= 10 % in about 20, with a standard deviation of 4.2.
    let mut rng = fastrand::Rng::with_seed(11);
    let mut draw = || (0..3).map(|_| rng.f64() + 1.0).collect::<Vec<f64>>();
    let shown = (0..200).filter(|_| {
        let levels = [draw(), draw(), draw()];
        let levels: Vec<&[f64]> = levels.iter().map(Vec::as_slice).collect();
        blocked(&levels).trend(1).unwrap().p <= 0.1
    });
    let shown = shown.count();
    assert!((3..=37).contains(&shown), "{shown}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn order_of_input_does_not_matter_and_scale_neither(
        values in prop::collection::vec(prop::collection::vec(1u16..500, 2..5), 2..4),
        scale in 0.001f64..1000.0,
    ) {
        let levels: Vec<Vec<f64>> =
            values.iter().map(|v| v.iter().map(|i| f64::from(*i)).collect()).collect();
        let slices: Vec<&[f64]> = levels.iter().map(Vec::as_slice).collect();
        let sweep = blocked(&slices);
        let mut turned = sweep.levels.clone();
        turned.reverse();
        turned.iter_mut().for_each(|level| level.repetitions.reverse());
        prop_assert_eq!(sweep.trend(7), Sweep::new(turned.clone()).unwrap().trend(7));
        for repetition in turned.iter_mut().flat_map(|level| &mut level.repetitions) {
            repetition.value *= scale;
        }
        let (one, other) = (sweep.trend(7).unwrap(), Sweep::new(turned).unwrap().trend(7).unwrap());
        prop_assert_eq!((one.statistic, one.p, one.tau_b), (other.statistic, other.p, other.tau_b));
        prop_assert!((one.per_doubling.0 / other.per_doubling.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn j_is_the_count_of_pairs(values in prop::collection::vec((0usize..4, 1u8..9), 2..30)) {
        let place = |(level, value): &(usize, u8)| Level {
            at: f64::from(1u32 << level),
            repetitions: vec![Repetition { block: None, value: f64::from(*value) }],
        };
        let sweep = Sweep::new(values.iter().map(place).collect()).unwrap();
        let mut doubled = 0;
        for (level, value) in &values {
            for (other, against) in &values {
                doubled += match (level < other, value.cmp(against)) {
                    (true, std::cmp::Ordering::Less) => 2,
                    (true, std::cmp::Ordering::Equal) => 1,
                    (true, std::cmp::Ordering::Greater) | (false, _) => 0,
                };
            }
        }
        prop_assert_eq!(Order::new(&sweep).doubled_j(), doubled);
    }
}

#[test]
fn counting_by_chunks_gives_the_same_interval() {
    let mut rng = fastrand::Rng::with_seed(3);
    let levels: Vec<Vec<f64>> =
        (0..5).map(|at| (0..20).map(|_| f64::from(at) + 5.0 + rng.f64()).collect()).collect();
    let levels: Vec<&[f64]> = levels.iter().map(Vec::as_slice).collect();
    let sweep = blocked(&levels);
    let slopes = Slopes::new(&sweep);
    let counts = slopes.counts();
    assert!(counts.len() > 4);
    let resampler = || Resampler::new(&[&sweep], 9).unwrap();
    assert_eq!(slopes.medians(resampler(), &counts), slopes.medians(resampler(), &[]));
    assert!(Slopes::new(&free(&levels)).counts().is_empty(), "a hundred units are too many");
}

#[test]
fn resampled_slope_equals_slope_of_repeated_values() {
    let sweep = blocked(&[&[1., 2., 3., 4., 5., 6.], &[2., 5., 4., 3., 7., 9.]]);
    let mut plain = Vec::new();
    let resampler = || Resampler::new(&[&sweep], 9).unwrap();
    resampler().each(|weights| {
        let mut slopes = Vec::new();
        let [from, to] = sweep.levels() else { unreachable!("two levels") };
        for (y, one) in from.repetitions.iter().zip(&weights[0]) {
            for (w, other) in to.repetitions.iter().zip(&weights[1]) {
                let slope = w.value.ln() - y.value.ln();
                slopes.extend(std::iter::repeat_n(slope, (one * other) as usize));
            }
        }
        slopes.sort_by(f64::total_cmp);
        plain.push(crate::median(&slopes));
    });
    let ours = Slopes::new(&sweep);
    assert_eq!(ours.medians(resampler(), &ours.counts()), plain);
}
