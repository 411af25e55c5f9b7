use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::{
    reference::{near, values},
    simulated::{hostile, normal},
};

/// Run with the given number of cells and blocks, in random order within blocks, each cell a group.
/// Logarithms scatter by 2 %. `shift` returns what is added to a logarithm, given the block, the
/// cell, and the previous cell.
fn run(
    rng: &mut Rng,
    cells: usize,
    blocks: u32,
    shift: impl Fn(u32, usize, Option<usize>) -> f64,
) -> Vec<CellSeries> {
    let mut all = vec![CellSeries { better: Better::Higher, repetitions: Vec::new() }; cells];
    let (mut order, mut after) = (0, None);
    for block in 0..blocks {
        let mut names: Vec<usize> = (0..cells).collect();
        rng.shuffle(&mut names);
        for cell in names {
            let log = 0.02 * normal(rng) + shift(block, cell, after);
            let value = 100.0 * (cell as f64 + 1.0) * log.exp();
            all[cell].repetitions.push(PositionedValue { block, order, after, value });
            (order, after) = (order + 1, Some(cell));
        }
    }
    all
}

fn h(groups: &[&[f64]]) -> f64 {
    let trial = |(block, _): (usize, &f64)| Trial {
        cell: 0,
        block: count(block),
        after: None,
        residual: 0.0,
    };
    let values: Vec<f64> = groups.concat();
    let each = groups.iter().enumerate().flat_map(|(at, group)| group.iter().map(move |v| (at, v)));
    let trials: Vec<Trial> = each.map(trial).collect();
    let ranks = ranks(&values);
    let (tests, ranks) = Tests::new(&trials, 0, &ranks).unwrap();
    tests.statistics(&ranks)[0]
}

#[test]
fn kruskal_wallis_matches_published_examples() {
    // Hollander and Wolfe, Nonparametric Statistical Methods, 1973, page 116: H = 0.7714.
    let clearance: [&[f64]; 3] =
        [&[2.9, 3.0, 2.5, 2.6, 3.2], &[3.8, 2.7, 4.0, 2.4], &[2.8, 3.4, 3.7, 2.2, 2.0]];
    near(h(&clearance), values("clearance")[0], 1e-12);
    let tied: [&[f64]; 3] =
        [&[1.0, 2.0, 2.0, 3.0], &[2.0, 3.0, 4.0, 4.0], &[5.0, 2.0, 6.0, 6.0, 6.0]];
    near(h(&tied), values("tied")[0], 1e-12);
}

#[test]
fn spearman_matches_published_examples() {
    let rho = |by: &[f64], values: &[f64]| {
        let mut places: Vec<usize> = (0..by.len()).collect();
        places.sort_by(|a, b| by[*a].total_cmp(&by[*b]));
        let ordered: Vec<f64> = places.iter().map(|at| values[*at]).collect();
        let trial = Trial { cell: 0, block: 0, after: None, residual: 0.0 };
        let ranks = ranks(&ordered);
        let (tests, ranks) = Tests::new(&vec![trial; by.len()], 0, &ranks).unwrap();
        tests.rho(tests.statistics(&ranks)[1])
    };
    // Hollander and Wolfe, page 187: lightness of tuna by instrument and by panel; ρ = 0.6.
    let hunter = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1];
    let panel = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8];
    near(rho(&hunter, &panel), values("tuna")[0], 1e-12);
}

#[test]
fn slopes_agree_with_scipy() {
    let hunter = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1];
    let panel = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8];
    let mut blocks: Vec<(f64, f64)> = panel.into_iter().zip(hunter).collect();
    blocks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let slopes = Slopes::new(&blocks);
    near(slopes.size().ln_1p(), values("tuna_slope")[0] * (5.2 - 2.5), 1e-9);
}

#[test]
fn drift_is_detected_with_its_size() {
    // 6 % down over ten blocks.
    let fall = |block: u32, _, _| -0.06 * f64::from(block) / 9.0;
    let drift = of_run(&run(&mut Rng::with_seed(1), 6, 10, fall), 6, 1).unwrap();
    assert!(drift.p < 0.001 && drift.order.p < 0.001 && drift.order.rho < -0.4, "{drift:?}");
    assert!(drift.interval.unwrap().contains((-0.06f64).exp_m1()), "{drift:?}");
    assert!(drift.is_detected(Ratio(0.05)) && !drift.is_detected(Ratio(0.5)));
    assert_eq!(drift.blocks, 10);
    assert!(drift.carry_over.iter().all(|carry_over| carry_over.p > 0.01), "{drift:?}");
}

#[test]
fn rising_latency_is_a_decline() {
    let rise = |block: u32, _, _| 0.06 * f64::from(block) / 9.0;
    let mut cells = run(&mut Rng::with_seed(2), 6, 10, rise);
    cells.iter_mut().for_each(|cell| cell.better = Better::Lower);
    assert!(of_run(&cells, 6, 1).unwrap().size.0 < -0.03);
}

#[test]
fn carry_over_names_the_filesystem() {
    let burden = |_, _, after| if after == Some(2) { -0.05 } else { 0.0 };
    let drift = of_run(&run(&mut Rng::with_seed(3), 5, 12, burden), 5, 1).unwrap();
    assert_eq!(
        drift.carry_over.iter().map(|carry_over| carry_over.group).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
    let guilty: Vec<usize> =
        drift.carry_over.iter().filter(|c| c.p < 0.01 && c.size.0 < 0.0).map(|c| c.group).collect();
    assert_eq!(guilty, [2], "{drift:?}");
    assert!((-0.07..-0.03).contains(&drift.carry_over[2].size.0), "{drift:?}");
}

/// Percentages of runs in which blocks, the order, or a group is significant at 5 %. The 300 runs
/// have no effect.
fn false_alarms(cells: usize, blocks: u32) -> [u32; 3] {
    let mut rng = Rng::with_seed(4);
    let mut found = [0u32; 3];
    for seed in 0..300 {
        let drift = of_run(&run(&mut rng, cells, blocks, |_, _, _| 0.0), cells, seed).unwrap();
        let carried = drift.carry_over.iter().any(|carry_over| carry_over.p < 0.05);
        for (found, p) in found.iter_mut().zip([drift.p, drift.order.p]) {
            *found += u32::from(p < 0.05);
        }
        found[2] += u32::from(carried);
    }
    found.map(|found| found / 3)
}

#[test]
fn false_alarm_rate_is_bounded() {
    for (cells, blocks) in [(1, 12), (2, 8), (12, 3), (6, 10)] {
        let found = false_alarms(cells, blocks);
        assert!(found.iter().all(|percent| *percent <= 8), "{cells} × {blocks}: {found:?} %");
    }
}

#[test]
fn phases_of_one_trial_count_once() {
    let mut rng = Rng::with_seed(5);
    let cells = run(&mut rng, 3, 8, |_, _, _| 0.0);
    let phases: Vec<CellSeries> = (0..4).flat_map(|_| cells.clone()).collect();
    let (one, four) = (of_run(&cells, 3, 1).unwrap(), of_run(&phases, 3, 1).unwrap());
    assert_eq!(one, four);
}

#[test]
fn small_and_invalid_runs_are_rejected() {
    assert_eq!(of_run(&[], 0, 1), Err(NotEstimable::Repetitions { least: 0, needed: 3 }));
    let mut rng = Rng::with_seed(6);
    let two = run(&mut rng, 5, 2, |_, _, _| 0.0);
    assert_eq!(of_run(&two, 5, 1), Err(NotEstimable::Repetitions { least: 2, needed: 3 }));
    let short = run(&mut rng, 1, 5, |_, _, _| 0.0);
    assert_eq!(of_run(&short, 1, 1), Err(NotEstimable::Repetitions { least: 5, needed: 6 }));
    assert_eq!(of_run(&run(&mut rng, 1, 6, |_, _, _| 0.0), 1, 1).unwrap().carry_over, []);
    let mut constant = run(&mut rng, 4, 6, |_, _, _| 0.0);
    constant
        .iter_mut()
        .flat_map(|cell| &mut cell.repetitions)
        .for_each(|placed| placed.value = 3.0);
    assert_eq!(of_run(&constant, 4, 1), Err(NotEstimable::Constant));
    for values in hostile() {
        let placed = |(at, value): (usize, f64)| PositionedValue {
            block: count(at / 4),
            order: at,
            after: at.checked_sub(1).map(|at| at % 3),
            value,
        };
        let repetitions: Vec<PositionedValue> =
            values.into_iter().enumerate().map(placed).collect();
        // Fewer groups than declared, and the same trial twice.
        let cells = vec![CellSeries { better: Better::Neither, repetitions }; 2];
        if let Ok(drift) = of_run(&cells, 2, 1) {
            assert!(!drift.size.0.is_nan() && (0.0..=1.0).contains(&drift.p), "{drift:?}");
        }
    }
}

#[test]
fn cells_without_logarithms_are_skipped() {
    let mut rng = Rng::with_seed(7);
    let mut cells = run(&mut rng, 5, 8, |_, _, _| 0.0);
    cells[4].repetitions[0].value = 0.0;
    let with = of_run(&cells, 5, 1).unwrap();
    cells.pop();
    assert_eq!(with, of_run(&cells, 5, 1).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn neither_units_nor_order_of_repetitions_nor_names_matter(
        seed in 0u64..1000, factor in 1e-3f64..1e6, add in 0u32..1000
    ) {
        let cells = run(&mut Rng::with_seed(seed), 4, 8, |block, _, _| 0.004 * f64::from(block));
        let mut other = cells.clone();
        for (cell, by) in other.iter_mut().zip([1.0, 2.0, 4.0, factor]) {
            cell.repetitions.reverse();
            for placed in &mut cell.repetitions {
                placed.value *= by;
                placed.block += add;
                placed.order += add as usize;
                placed.after = placed.after.map(|group| 3 - group);
            }
        }
        let (plain, other) = (of_run(&cells, 4, 1).unwrap(), of_run(&other, 4, 1).unwrap());
        prop_assert!((plain.size.0 - other.size.0).abs() < 1e-9);
        // Residuals that are equal but for their last digits can change ranks.
        prop_assert!((plain.p - other.p).abs() < 0.02);
        prop_assert!((plain.order.rho - other.order.rho).abs() < 0.01);
        for (carry_over, mirrored) in plain.carry_over.iter().zip(other.carry_over.iter().rev()) {
            prop_assert_eq!(carry_over.group, 3 - mirrored.group);
            prop_assert!((carry_over.size.0 - mirrored.size.0).abs() < 1e-9);
        }
    }

    #[test]
    fn blocks_turned_around_turn_the_size_around(seed in 0u64..1000) {
        let cells = run(&mut Rng::with_seed(seed), 4, 8, |block, _, _| 0.004 * f64::from(block));
        let mut back = cells.clone();
        for placed in back.iter_mut().flat_map(|cell| &mut cell.repetitions) {
            placed.block = 7 - placed.block;
            placed.order = 100 - placed.order;
        }
        let (there, back) = (of_run(&cells, 4, 1).unwrap(), of_run(&back, 4, 1).unwrap());
        prop_assert!((there.size.0.ln_1p() + back.size.0.ln_1p()).abs() < 1e-9);
        prop_assert!((there.order.rho + back.order.rho).abs() < 1e-9);
    }
}
