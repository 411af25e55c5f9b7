use proptest::prelude::*;

use super::*;

fn around(center: f64) -> Vec<f64> {
    (0..8).map(|i| center * (1.0 + 0.004 * (f64::from(i) - 3.5))).collect()
}

fn rank_of(cells: &[Vec<f64>], better: Better) -> Ranking {
    let cells: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
    rank(&mut Comparer::new(), &cells, better, Ratio(0.05)).unwrap()
}

#[test]
fn clear_order_has_one_winner_and_distinct_letters() {
    let ranking = rank_of(&[around(100.0), around(300.0), around(200.0)], Better::Higher);
    assert_eq!((ranking.order, ranking.top), (vec![1, 2, 0], vec![1]));
    assert_eq!(ranking.letters, ["c", "a", "b"]);
}

#[test]
fn lower_is_better_metrics_are_ordered_by_direction() {
    let ranking = rank_of(&[around(100.0), around(300.0), around(200.0)], Better::Lower);
    assert_eq!((ranking.order, ranking.top), (vec![0, 2, 1], vec![0]));
}

#[test]
fn cells_without_significant_difference_share_letter_and_top_group() {
    let ranking = rank_of(&[around(300.0), around(300.1), around(100.0)], Better::Higher);
    assert_eq!(ranking.top, [1, 0]);
    assert_eq!(ranking.letters, ["a", "a", "b"]);
}

#[test]
fn negligible_difference_yields_no_winner() {
    // Tight values 1 % apart: significantly different, but negligible at 5 %.
    let tight = |base: f64| (0..8).map(|i| base + f64::from(i) * 1e-3).collect::<Vec<f64>>();
    let ranking = rank_of(&[tight(100.0), tight(101.0)], Better::Higher);
    assert!(ranking.pairs[0].is_significant());
    assert_eq!(ranking.letters, ["b", "a"]);
    assert_eq!(ranking.top, [1, 0]);
}

#[test]
fn disagreement_about_size_keeps_the_order() {
    // Significantly different with p = 0.0035, but the ratio of medians (1.15) and the estimate
    // (1.32) disagree by more than 5 %: two modes in the first. The size is withheld, the win is
    // not.
    let two_modes = [101.0, 77.0, 82.0, 74.0, 103.0, 64.0, 101.0, 103.0, 103.0, 71.0];
    let higher = [136.0, 109.0, 107.0, 138.0, 121.0, 118.0, 102.0, 102.0, 102.0, 101.0];
    let ranking = rank_of(&[two_modes.to_vec(), higher.to_vec()], Better::Higher);
    let pair = &ranking.pairs[0];
    assert!(pair.p_holm < FAMILY_ERROR && !pair.comparison.ratios_agree);
    let uncertain = Verdict::Differs { side: Side::Better, size: Size::Uncertain };
    assert_eq!(pair.comparison.verdict, uncertain);
    assert!(pair.is_significant() && !pair.comparison.sizes_agree());
    assert_eq!((ranking.top, ranking.letters), (vec![1], vec!["b".into(), "a".into()]));
}

#[test]
fn worst_of_three_is_not_in_the_top_group() {
    // Scattered so widely that median and estimate differ by more than 5 %, without any overlap.
    let lists = [
        vec![0.96, 1.25, 1.80, 1.90, 2.02, 2.10],
        vec![0.80, 0.84, 0.87, 0.88, 0.90, 0.93],
        vec![0.27, 0.30, 0.34, 0.50, 0.52, 0.54],
    ];
    let repetitions: Vec<Vec<Repetition>> = lists.iter().map(|list| by_block(1.0, list)).collect();
    let cells: Vec<&[Repetition]> = repetitions.iter().map(Vec::as_slice).collect();
    let ranking =
        rank_repetitions(&mut Comparer::new(), &cells, Better::Higher, Ratio(0.05)).unwrap();
    let ends = &ranking.pair(0, 2).unwrap().comparison;
    assert!(!ends.ratios_agree, "{ends:?}");
    assert!(ends.warnings.iter().any(|w| w.code() == "estimates-disagree"), "{:?}", ends.warnings);
    assert_eq!((ranking.top, ranking.bottom), (vec![0], vec![2]));
    assert_eq!(ranking.letters, ["a", "b", "c"]);
}

#[test]
fn five_values_per_side_are_never_significant() {
    let few = |base: f64| (0..5).map(|i| base + f64::from(i)).collect::<Vec<f64>>();
    let ranking = rank_of(&[few(100.0), few(300.0)], Better::Higher);
    assert!(ranking.pairs[0].p_holm < FAMILY_ERROR, "five against five reach 2/252");
    assert!(!ranking.pairs[0].is_significant() && ranking.top.len() == 2);
}

#[test]
fn overlapping_letters_are_not_transitive() {
    // First and last differ; the middle one differs from neither.
    assert_eq!(letters(&[0, 1, 2], &[(0, 2)]), ["a", "ab", "b"]);
}

#[test]
fn redundant_letters_are_removed() {
    // Four cells; 0-2, 0-3, and 1-3 differ: ab over 0-1, 1-2, 2-3.
    let pairs = [(0, 2), (0, 3), (1, 3)];
    assert_eq!(letters(&[0, 1, 2, 3], &pairs), ["a", "ab", "bc", "c"]);
}

#[test]
fn identical_cells_rarely_have_a_single_winner() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut comparer = Comparer::new();
    let mut winners = 0;
    for _ in 0..300 {
        let cells: Vec<Vec<f64>> =
            (0..5).map(|_| (0..8).map(|_| 100.0 + 5.0 * rng.f64()).collect()).collect();
        let slices: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
        let ranking = rank(&mut comparer, &slices, Better::Higher, Ratio(0.05)).unwrap();
        winners += u32::from(ranking.top.len() == 1);
    }
    assert!(winners <= 6, "{winners} of 300");
}

#[test]
fn probabilities_of_rank_1_sum_to_one() {
    let cells = [around(100.0), around(100.0), around(90.0)];
    let slices: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
    let shares = rank(&mut Comparer::new(), &slices, Better::Higher, Ratio(0.05)).unwrap().first;
    assert!((shares.iter().map(|share| share.0).sum::<f64>() - 1.0).abs() < 1e-9);
    assert!((shares[0].0 - 0.5).abs() < 1e-9, "joint resampling ties equal lists: {shares:?}");
    assert!(shares[2].0 < 1e-9);
}

#[test]
fn bottom_group_and_ranks_mirror_top_group() {
    let ranking =
        rank_of(&[around(100.0), around(300.0), around(100.1), around(299.9)], Better::Higher);
    assert_eq!((ranking.top, ranking.bottom), (vec![1, 3], vec![0, 2]));
    for cell in [0, 2] {
        assert!(ranking.places[cell].0 >= 3 && ranking.places[cell].1 <= 4);
    }
    assert!(ranking.places[1].1 <= 2 && ranking.places[3].1 <= 2);
    let turned = rank_of(&[around(100.0), around(300.0)], Better::Lower);
    assert_eq!((turned.top, turned.bottom), (vec![0], vec![1]));
    let none = rank_of(&[], Better::Lower);
    assert!(none.top.is_empty() && none.bottom.is_empty() && none.first.is_empty());
}

#[test]
fn ranking_of_repetitions_checks_its_pairs() {
    let repetitions = |values: &[f64]| -> Vec<Repetition> {
        let repetition =
            |(block, value): (u32, &f64)| Repetition { block: Some(block), value: *value };
        (0..).zip(values).map(repetition).collect()
    };
    // The third stalls once, so that its mean contradicts its median.
    let mut stalls: Vec<f64> = around(120.0);
    stalls[0] = 10.0;
    let lists = [repetitions(&around(100.0)), repetitions(&around(90.0)), repetitions(&stalls)];
    let slices: Vec<&[Repetition]> = lists.iter().map(Vec::as_slice).collect();
    let mut comparer = Comparer::new();
    let ranking = rank_repetitions(&mut comparer, &slices, Better::Higher, Ratio(0.05)).unwrap();
    assert_eq!((&ranking.order, &ranking.top), (&vec![2, 0, 1], &vec![2, 0, 1]));
    assert_eq!(ranking.pair(0, 1).unwrap().comparison.checks.len(), 3);
    assert!(
        ranking.pair(0, 1).unwrap().is_significant()
            && !ranking.pair(0, 2).unwrap().is_significant()
    );
    // As compared alone, but for the resamples of the medians, which all cells share.
    let alone = comparer.compare_repetitions(slices[1], slices[0], Better::Higher, Ratio(0.05));
    let (alone, together) = (alone.unwrap(), &ranking.pair(0, 1).unwrap().comparison);
    assert_eq!(
        (alone.interval, alone.p, alone.verdict),
        (together.interval, together.p, together.verdict)
    );
    let fault = rank_repetitions(&mut comparer, &[slices[0], &[]], Better::Higher, Ratio(0.05));
    assert_eq!(fault.unwrap_err(), Error::Empty);
}

/// Positions on a line that differ if further apart than a reach: a plausible pattern of verdicts
/// with any number of cells.
fn pattern() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (2usize..8, any::<u32>()).prop_map(|(cells, bits)| {
        let pairs = (0..cells).flat_map(|a| (a + 1..cells).map(move |b| (a, b)));
        let apart = pairs.enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, pair)| pair);
        (cells, apart.collect())
    })
}

proptest! {
    #[test]
    fn cells_share_a_letter_unless_they_differ_significantly((cells, apart) in pattern()) {
        let order: Vec<usize> = (0..cells).collect();
        let letters = letters(&order, &apart);
        for a in 0..cells {
            prop_assert!(!letters[a].is_empty());
            for b in a + 1..cells {
                let share = letters[a].chars().any(|c| letters[b].contains(c));
                prop_assert_eq!(share, !apart.contains(&(a, b)), "{} {}: {:?}", a, b, letters);
            }
        }
    }
}

/// One value per block: `center` times the factor of the block, with a small step by block.
fn by_block(center: f64, factors: &[f64]) -> Vec<Repetition> {
    let repetition = |(block, factor): (u32, &f64)| {
        let step = 0.002 * (f64::from(block % 4) - 1.5);
        Repetition { block: Some(block), value: center * factor * (1.0 + step) }
    };
    (0..).zip(factors).map(repetition).collect()
}

#[test]
fn order_uses_blocks_common_to_all_cells() {
    // The machine gets 20 % faster after block 8, which affects the slower cell only.
    let factors: Vec<f64> = (0..30).map(|block| if block < 8 { 1.0 } else { 1.2 }).collect();
    let (fast, slow) = (by_block(110.0, &factors[..8]), by_block(100.0, &factors));
    let cells: [&[Repetition]; 2] = [&slow, &fast];
    let mut comparer = Comparer::new();
    let raw = rank_repetitions(&mut comparer, &cells, Better::Higher, Ratio(0.05)).unwrap();
    assert_eq!(raw.order, [0, 1]);
    let ranking = rank_shared(&mut comparer, &cells, Better::Higher, Ratio(0.05)).unwrap();
    assert_eq!((ranking.order, ranking.top), (vec![1, 0], vec![1]));
    let pair = &ranking.pairs[0];
    assert!(pair.is_significant() && !pair.is_contradictory());
    assert_eq!((pair.comparison.n_first, pair.comparison.n_second), (8, 8));
    assert!(ranking.first[1].0 > 0.99, "{:?}", ranking.first);
}

#[test]
fn significant_difference_against_the_order_is_contradictory() {
    // In the eight common blocks of all three the second is better; in the thirty that it shares
    // with the first it is not.
    let turns: Vec<f64> = (0..30).map(|block| if block < 8 { 1.03 } else { 0.97 }).collect();
    let (first, second) = (by_block(100.0, &[1.0; 30]), by_block(100.0, &turns));
    let third = by_block(50.0, &[1.0; 8]);
    let cells: [&[Repetition]; 3] = [&first, &second, &third];
    let ranking = rank_shared(&mut Comparer::new(), &cells, Better::Higher, Ratio(0.05)).unwrap();
    assert_eq!(ranking.order, [1, 0, 2]);
    let pair = ranking.pair(0, 1).unwrap();
    assert_eq!((pair.better, pair.comparison.n_first), (1, 30));
    assert!(pair.is_contradictory(), "{pair:?}");
    assert!(ranking.pairs.iter().all(|pair| pair.other != 2 || pair.is_significant()));
}
