use model::metric::Better;
use proptest::prelude::*;

use super::*;
use crate::{median, trend::Repetition};

fn sample(repetitions: &[(u32, f64)]) -> Sample {
    let repetition =
        |(block, value): &(u32, f64)| Repetition { block: Some(*block), value: *value };
    let repetitions: Vec<Repetition> = repetitions.iter().map(repetition).collect();
    Sample::of_repetitions(&repetitions, Better::Higher).unwrap()
}

#[test]
fn equal_cells_share_every_rank() {
    let own: Vec<(u32, f64)> = (0..8).map(|block| (block, 100.0 + f64::from(block))).collect();
    let (one, same) = (sample(&own), sample(&own));
    let rank_bootstrap = RankBootstrap::new(&[&one, &same]);
    assert!(rank_bootstrap.first().iter().all(|share| (share.0 - 0.5).abs() < 1e-9));
    assert_eq!(rank_bootstrap.places(), [(1, 2), (1, 2)]);
    assert_eq!(rank_bootstrap.p(0, 1), 1.0);
}

#[test]
fn cell_better_in_every_block_is_always_first() {
    // Blocks scatter by 30 % and the second is 1 % better in each: only joint resampling sees it.
    let blocks = [70.0, 130.0, 81.0, 118.0, 95.0, 101.0, 77.0, 125.0, 90.0];
    let of = |factor: f64| {
        let own: Vec<(u32, f64)> = (0..).zip(blocks.map(|block| block * factor)).collect();
        sample(&own)
    };
    let (one, better, worst) = (of(1.0), of(1.01), of(0.5));
    let rank_bootstrap = RankBootstrap::new(&[&one, &better, &worst]);
    assert_eq!(rank_bootstrap.first(), [Ratio(0.0), Ratio(1.0), Ratio(0.0)]);
    assert_eq!(rank_bootstrap.places(), [(2, 2), (1, 1), (3, 3)]);
    assert!((rank_bootstrap.p(0, 1) - 2.0 / 4001.0).abs() < 1e-12);
    assert_eq!(rank_bootstrap.p(0, 1), rank_bootstrap.p(1, 0));
}

#[test]
fn without_blocks_cells_are_drawn_separately() {
    let values = [70.0, 130.0, 81.0, 118.0, 95.0, 101.0, 77.0, 125.0, 90.0];
    let one = Sample::of_values(&values, Better::Higher).unwrap();
    let better = Sample::of_values(&values.map(|v| v * 1.01), Better::Higher).unwrap();
    let rank_bootstrap = RankBootstrap::new(&[&one, &better]);
    assert!(rank_bootstrap.first()[0].0 > 0.2, "{:?}", rank_bootstrap.first());
    assert_eq!(rank_bootstrap.places(), [(1, 2), (1, 2)]);
}

#[test]
fn single_block_cells_and_empty_families_have_ranks() {
    let many: Vec<(u32, f64)> = (0..30).map(|block| (block, 100.0)).collect();
    let rank_bootstrap = RankBootstrap::new(&[&sample(&many), &sample(&[(29, 200.0)])]);
    assert_eq!(rank_bootstrap.first(), [Ratio(0.0), Ratio(1.0)]);
    assert!(RankBootstrap::new(&[]).first().is_empty());
    let alone = RankBootstrap::new(&[&sample(&[(1, 5.0)])]);
    assert_eq!((alone.first(), alone.places()), (vec![Ratio(1.0)], vec![(1, 1)]));
}

#[test]
fn complete_cells_have_known_weight() {
    let twice: Vec<(u32, f64)> = (0..40).map(|at| (at / 2, f64::from(at + 1))).collect();
    let once: Vec<(u32, f64)> = (0..20).map(|at| (at, f64::from(at + 1))).collect();
    let samples = [sample(&twice), sample(&once)];
    let (cells, _) = ready(&samples.each_ref());
    assert_eq!([cells[0].whole, cells[1].whole], [false, true]);
    let mut weights = vec![[0; SIDE]; 20];
    draw(&mut weights, &mut fastrand::Rng::with_seed(1));
    for cell in cells {
        assert_eq!(cell.medians(&weights), cell.of_totals(&weights, &cell.totals(&weights)));
    }
}

proptest! {
    #[test]
    fn the_median_of_weights_is_that_of_the_repeated_values(
        cell in prop::collection::vec((0u32..12, 1u8..40), 1..20),
        weights in prop::collection::vec(0u32..4, 12),
    ) {
        let own: Vec<(u32, f64)> = cell.iter().map(|(b, v)| (*b, f64::from(*v))).collect();
        let all: Vec<(u32, f64)> =
            (0..12).map(|block| (block, f64::from(block * 5 % 12 + 1))).collect();
        let samples = [sample(&own), sample(&all)];
        let (cells, blocks) = ready(&samples.each_ref());
        prop_assert_eq!(blocks, Some(12));
        for ((cell, sample), values) in cells.iter().zip(&samples).zip([&own, &all]) {
            let mut repeated: Vec<f64> = values
                .iter()
                .flat_map(|(block, value)| vec![value.ln(); weights[*block as usize] as usize])
                .collect();
            repeated.sort_by(f64::total_cmp);
            let expected = if repeated.is_empty() { sample.median() } else { median(&repeated) };
            let beside: Vec<[i16; SIDE]> = weights
                .iter()
                .enumerate()
                .map(|(unit, weight)| {
                    // Other resamples next to it, so that a resample that reads its neighbor is
                    // detected.
                    let other = i16::try_from(unit % 3).unwrap();
                    let mut own = [other; SIDE];
                    own[7] = i16::try_from(*weight).unwrap();
                    own
                })
                .collect();
            let found = cell.of_totals(&beside, &cell.totals(&beside))[7] + samples[0].median();
            prop_assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
        }
    }

    #[test]
    fn numbers_of_blocks_and_order_of_repetitions_do_not_matter(
        values in prop::collection::vec((50.0f64..150.0, 50.0f64..150.0), 6..10), add in 0u32..9,
    ) {
        let of = |shift: u32, turned: bool, second: bool| {
            let mut own: Vec<(u32, f64)> = (0u32..)
                .zip(&values)
                .map(|(block, two)| (block * 3 + shift, if second { two.1 } else { two.0 }))
                .collect();
            if turned {
                own.reverse();
            }
            sample(&own)
        };
        let one = RankBootstrap::new(&[&of(0, false, false), &of(0, false, true)]);
        let other = RankBootstrap::new(&[&of(add, true, false), &of(add, true, true)]);
        prop_assert_eq!(one.first(), other.first());
        prop_assert_eq!(one.places(), other.places());
        prop_assert!((one.first().iter().map(|share| share.0).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
