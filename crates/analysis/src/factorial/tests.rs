use proptest::prelude::*;

use super::*;
use crate::reference::{lines, near, values};

fn factors(levels: &[usize]) -> Vec<Factor> {
    let factor = |(at, levels): (usize, &usize)| Factor {
        name: ["filesystem", "scheduler", "cpu_speed"]
            .get(at)
            .map_or_else(|| format!("f{at}"), |name| (*name).to_owned()),
        levels: (0..*levels).map(|level| format!("l{level}")).collect(),
    };
    levels.iter().enumerate().map(factor).collect()
}

fn trial(levels: &[usize], block: u32, value: f64) -> Observation {
    Observation { levels: levels.to_vec(), block: Some(block), value }
}

/// Fully crossed run of `blocks` blocks; `ln` gives ln y without noise.
fn run(
    levels: &[usize],
    blocks: u32,
    noise: f64,
    seed: u64,
    ln: impl Fn(&[usize], u32) -> f64,
) -> Vec<Observation> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut all = Vec::new();
    for block in 0..blocks {
        let mut place = vec![0; levels.len()];
        loop {
            let error = noise * (rng.f64() + rng.f64() + rng.f64() - 1.5) * 2.0;
            all.push(trial(&place, block, (ln(&place, block) + error).exp()));
            let Some(at) = (0..levels.len()).find(|at| place[*at] + 1 < levels[*at]) else { break };
            place[at] += 1;
            place[..at].fill(0);
        }
    }
    all
}

fn term(result: &Factorial, source: Source) -> &Term {
    result.terms.iter().find(|term| term.source == source).unwrap()
}

#[test]
fn tooth_growth_data_give_the_published_table() {
    // Crampton 1947, as `ToothGrowth` of R: anova(lm(len ~ supp * factor(dose))) prints sums of
    // squares 205.35, 2426.43, 108.32, residual 712.11, F 15.572, 91.999, 4.107, p of the
    // interaction 0.0219. ω² computed from these numbers: 0.0555, 0.6926, 0.0236.
    let growth = [
        [4.2, 11.5, 7.3, 5.8, 6.4, 10.0, 11.2, 11.2, 5.2, 7.0],
        [16.5, 16.5, 15.2, 17.3, 22.5, 17.3, 13.6, 14.5, 18.8, 15.5],
        [23.6, 18.5, 33.9, 25.5, 26.4, 32.5, 26.7, 21.5, 23.3, 29.5],
        [15.2, 21.5, 17.6, 9.7, 14.5, 10.0, 8.2, 9.4, 16.5, 9.7],
        [19.7, 23.3, 23.6, 26.4, 20.0, 25.2, 25.8, 21.2, 14.5, 27.3],
        [25.5, 26.4, 22.4, 24.5, 24.8, 30.9, 26.4, 27.3, 29.4, 23.0],
    ];
    let mut observations = Vec::new();
    for (at, row) in growth.iter().enumerate() {
        for length in row {
            let levels = vec![at / 3, at % 3];
            observations.push(Observation { levels, block: None, value: f64::exp(*length) });
        }
    }
    let result = analyze(&factors(&[2, 3]), &observations, 1).unwrap();
    let published =
        [(1, 205.35, 15.572, 0.0555), (2, 2426.43, 91.999, 0.6926), (2, 108.32, 4.107, 0.0236)];
    for (term, (freedom, squares, f, share)) in result.terms.iter().zip(published) {
        assert_eq!(term.freedom, freedom);
        near(term.squares, squares, 5e-5);
        near(term.f, f, 2e-4);
        near(term.share, share, 3e-3);
        assert_eq!(term.interval, Err(NotEstimable::Blocks));
    }
    assert!(result.terms[0].p < 0.001 && result.terms[1].p < 0.000_1);
    assert!((result.terms[2].p - 0.0219).abs() < 0.006, "{}", result.terms[2].p);
    assert_eq!(
        (result.residual_freedom, result.n, result.blocks, result.repetitions),
        (54, 60, 0, (10, 10))
    );
    let shares: f64 = result.terms.iter().map(|term| term.share).sum();
    near(shares + result.residual_share, 1.0, 1e-12);
    assert_eq!(result.block_share, None);
}

#[test]
fn unequal_repetitions_in_blocks_agree_with_statsmodels() {
    let observations: Vec<Observation> = lines("trial")
        .map(|numbers| {
            let whole = |at: usize| (0usize..99).find(|n| *n as f64 == numbers[at]).unwrap();
            trial(&[whole(1), whole(2), whole(3)], count(whole(0)), numbers[4])
        })
        .collect();
    let result = analyze(&factors(&[3, 2, 3]), &observations, 1).unwrap();
    for (term, name) in result.terms.iter().zip(["a", "b", "c", "a:b", "a:c", "b:c"]) {
        let theirs = values(name);
        assert_eq!(f64::from(term.freedom), theirs[0]);
        near(term.squares, theirs[1], 1e-9);
        near(term.f, theirs[2], 1e-9);
        assert!((term.p - theirs[3]).abs() < 0.1 * theirs[3] + 0.000_2, "{} {theirs:?}", term.p);
    }
    assert_eq!(f64::from(result.residual_freedom), values("residual")[0]);
    assert_eq!((result.missing, result.blocks), (2, 8));
    // ω² of blocks from the block and residual sums of the table, and the total of the data.
    let logs: Vec<f64> = observations.iter().map(|o| o.value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let total: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let (block, residual) = (values("block"), values("residual"));
    let error = residual[1] / residual[0];
    near(result.block_share.unwrap(), (block[1] - block[0] * error) / (total + error), 1e-9);
}

#[test]
fn fractions_match_the_simulated_effects() {
    let levels = [3, 3, 2];
    let observations = run(&levels, 8, 0.02, 4, |at, block| {
        let bad_pair = if at[0] == 1 && at[1] == 2 { -0.4 } else { 0.0 };
        0.2 * at[0] as f64 + bad_pair + 0.01 * f64::from(block)
    });
    let result = analyze(&factors(&levels), &observations, 1).unwrap();
    let (filesystem, pair) =
        (term(&result, Source::Main(0)), term(&result, Source::Interaction(0, 1)));
    assert!(filesystem.share > 0.3 && filesystem.p < 0.001, "{filesystem:?}");
    assert!(pair.share > 0.15 && pair.p < 0.001, "{pair:?}");
    assert!(term(&result, Source::Main(2)).share < 0.01);
    for term in &result.terms {
        let interval = term.interval.unwrap();
        assert!(interval.low <= term.share && term.share <= interval.high, "{term:?}");
    }
    let first = result.interaction_of(0);
    assert_eq!((first.len(), first[0].other, first[0].p), (2, 1, pair.p));
    let conditional = |factor| -> Vec<usize> {
        result.conditional_on(factor).iter().map(|dependence| dependence.other).collect()
    };
    assert_eq!((conditional(0), conditional(1), conditional(2)), (vec![1], vec![0], vec![]));
    assert!(!result.mostly_noise());
    assert!(result.block_share.unwrap() > 0.005);
    let shares: f64 = result.terms.iter().map(|term| term.share).sum();
    near(shares + result.residual_share + result.block_share.unwrap(), 1.0, 1e-9);
}

#[test]
fn data_without_effects_are_mostly_noise() {
    let levels = [4, 3];
    let result = analyze(&factors(&levels), &run(&levels, 8, 0.1, 9, |_, _| 0.0), 1).unwrap();
    assert!(result.mostly_noise(), "{}", result.residual_share);
    assert!(
        result.terms.iter().all(|term| term.share < 0.1 && term.p > 0.01),
        "{:?}",
        result.terms
    );
}

#[test]
fn p_values_keep_their_level() {
    // 60 runs without any effect: p <= 10 % is expected in about 6 runs for each term, and in fewer
    // than 16 runs with a probability of 99.9 %.
    let levels = [3, 2];
    let mut shown = [0; 3];
    for seed in 0..60 {
        let observations = run(&levels, 3, 0.1, seed, |_, block| f64::from(block));
        let result = analyze(&factors(&levels), &observations, 1).unwrap();
        shown.iter_mut().zip(&result.terms).for_each(|(n, term)| *n += u32::from(term.p <= 0.1));
    }
    assert!(shown.iter().all(|n| (1..=15).contains(n)), "{shown:?}");
}

#[test]
fn single_repetitions_have_no_interactions() {
    let levels = [3, 2];
    let result = analyze(&factors(&levels), &run(&levels, 1, 0.1, 1, |_, _| 0.0), 1).unwrap();
    assert_eq!(result.terms.len(), 2);
    assert_eq!(result.interactions, Err(NotEstimable::Repetitions { least: 1, needed: 2 }));
    assert!(result.interaction_of(0).is_empty());
    let five = analyze(&factors(&levels), &run(&levels, 5, 0.1, 1, |_, _| 0.0), 1).unwrap();
    assert_eq!(five.terms[0].interval, Err(NotEstimable::Repetitions { least: 5, needed: 6 }));
}

#[test]
fn values_without_noise_have_no_residual() {
    let levels = [2, 2];
    let result = analyze(&factors(&levels), &run(&levels, 6, 0.0, 1, |at, _| at[0] as f64), 1);
    let result = result.unwrap();
    assert!(result.terms[0].share > 0.999_999 && result.terms[0].p < 0.01, "{:?}", result.terms[0]);
    assert!(result.residual_share < 1e-9);
}

#[test]
fn unsuitable_data_are_rejected() {
    let full = run(&[2, 2], 3, 0.1, 1, |_, _| 0.0);
    let of = |levels: &[usize], observations: &[Observation]| {
        analyze(&factors(levels), observations, 1).unwrap_err()
    };
    assert_eq!(of(&[2], &full), Refusal::Factors(1));
    assert_eq!(of(&[2; 17], &full), Refusal::Factors(17));
    assert!(matches!(of(&[2, 1], &full), Refusal::Levels { levels: 1, .. }));
    assert_eq!(of(&[2, 2, 2], &full), Refusal::Observation(0));
    assert_eq!(of(&[2, 2], &[]), Refusal::Values(Error::Empty));
    let part: Vec<Observation> = full.iter().filter(|o| o.levels != [1, 0]).cloned().collect();
    let refused = of(&[2, 2], &part).to_string();
    assert_eq!(
        refused,
        "filesystem=l1 was never measured with scheduler=l0; measure all combinations"
    );
    let same: Vec<Observation> =
        full.iter().cloned().map(|o| Observation { value: 2.0, ..o }).collect();
    assert_eq!(of(&[2, 2], &same), Refusal::Constant);
    let once = run(&[2, 2], 1, 0.1, 1, |_, _| 0.0);
    let distinct: Vec<Observation> =
        (0..).zip(once).map(|(block, o)| Observation { block: Some(block), ..o }).collect();
    assert!(matches!(of(&[2, 2], &distinct), Refusal::TooFew { values: 4, .. }));
    let many = run(&[12, 12], 2, 0.1, 1, |_, _| 0.0);
    assert_eq!(of(&[12, 12], &many), Refusal::TooMany { effects: 143, max: 100 });
}

#[test]
fn effects_confounded_with_blocks_are_rejected() {
    // Each level of the first factor was measured in separate blocks.
    let mut observations = run(&[2, 2], 6, 0.1, 1, |_, _| 0.0);
    observations.retain(|o| o.block.is_some_and(|block| block % 2 == 0) == (o.levels[0] == 0));
    let refused = analyze(&factors(&[2, 2]), &observations, 1);
    assert_eq!(refused, Err(Refusal::Confounded("filesystem".to_owned())));
}

/// The combinations of a regular fraction: each further factor is the product of base factors.
fn fraction(base: usize, words: &[&[usize]], observations: Vec<Observation>) -> Vec<Observation> {
    let holds = |levels: &[usize]| {
        let mut words = words.iter().enumerate();
        words.all(|(at, word)| {
            let product = word.iter().map(|factor| levels[*factor]).sum::<usize>() % 2;
            levels[base + at] == product
        })
    };
    observations.into_iter().filter(|it| holds(&it.levels)).collect()
}

#[test]
fn effects_of_factors_are_ratios_with_intervals() {
    let levels = [2, 3, 2];
    let observations = run(&levels, 6, 0.02, 3, |at, block| {
        let both = if at[0] == 1 && at[2] == 1 { 0.2 } else { 0.0 };
        0.1 * at[0] as f64 - 0.3 * (at[1] as f64) + both + 0.05 * f64::from(block)
    });
    let result = analyze(&factors(&levels), &observations, 1).unwrap();
    let near = |effect: &Effect, expected: f64| {
        let log = effect.ratio.0.ln();
        assert!((log - expected).abs() < 0.02, "{effect:?}, expected {expected}");
        let ends = (effect.interval.low.ln(), effect.interval.high.ln());
        assert!(ends.0 < expected && expected < ends.1 && ends.1 - ends.0 < 0.06, "{effect:?}");
    };
    // The interaction adds half of its size to the main effect.
    near(&term(&result, Source::Main(0)).effects[0], 0.2);
    let three = &term(&result, Source::Main(1)).effects;
    assert_eq!(three.iter().map(|effect| effect.level).collect::<Vec<_>>(), [1, 2]);
    near(&three[0], -0.3);
    near(&three[1], -0.6);
    near(&term(&result, Source::Interaction(0, 2)).effects[0], 0.2);
    assert!(term(&result, Source::Interaction(0, 1)).effects.is_empty(), "three levels");
    assert_eq!(result.per_level, 6 * 4);
}

#[test]
fn intervals_of_effects_contain_no_effect_at_their_level() {
    let levels = [2, 2, 2];
    let inside = (0..200).filter(|seed| {
        let observations = run(&levels, 3, 0.1, *seed, |_, block| f64::from(block));
        let result = analyze(&factors(&levels), &observations, 1).unwrap();
        let interval = result.terms[0].effects[0].interval;
        interval.low <= 1.0 && 1.0 <= interval.high
    });
    let inside = inside.count();
    assert!((180..=198).contains(&inside), "{inside} of 200, 190 expected");
}

#[test]
fn a_fraction_of_resolution_four_has_main_effects_and_alias_chains() {
    // 2^(6-2): E = ABC, F = BCD.
    let levels = [2; 6];
    let full = run(&levels, 3, 0.01, 5, |at, block| {
        0.1 * at[4] as f64 + 0.2 * ((at[0] + at[1]) % 2) as f64 + 0.1 * f64::from(block)
    });
    let observations = fraction(4, &[&[0, 1, 2], &[1, 2, 3]], full);
    assert_eq!(observations.len(), 16 * 3);
    let result = analyze(&factors(&levels), &observations, 1).unwrap();
    assert_eq!((result.missing, result.per_level), (48, 24));
    assert_eq!(result.interactions, Ok(()));
    let chain = term(&result, Source::Interaction(0, 1));
    assert_eq!(chain.aliases, [(2, 4)], "AB = CE");
    let number = result.terms.iter().map(|term| 1 + term.aliases.len()).sum::<usize>();
    assert_eq!(number, 6 + 15, "each interaction is in one chain");
    assert!(chain.p < 0.001, "{chain:?}");
    let found = result.terms.iter().filter(|term| term.p < 0.01).map(|term| term.source);
    let found: Vec<Source> = found.collect();
    assert_eq!(found, [Source::Main(4), Source::Interaction(0, 1)]);
    let effect = term(&result, Source::Main(4)).effects[0];
    assert!((effect.ratio.0.ln() - 0.1).abs() < 0.01, "{effect:?}");
    // Hidden replication: the error is that of all 48 values, not of the 3 of a combination.
    let half = (effect.interval.high / effect.interval.low).ln() / 2.0;
    assert!(half < 0.01, "{half}");
}

#[test]
fn main_effects_remain_if_a_fraction_separates_no_interactions() {
    // 2^(3-1): C = AB, so each interaction is aliased with a factor.
    let full = run(&[2, 2, 2], 4, 0.01, 5, |at, _| 0.1 * at[2] as f64);
    let observations = fraction(2, &[&[0, 1]], full);
    let result = analyze(&factors(&[2, 2, 2]), &observations, 1).unwrap();
    assert_eq!(result.interactions, Err(NotEstimable::Confounded));
    assert_eq!(result.terms.len(), 3);
    assert!(result.terms[2].p < 0.01 && result.terms[0].p > 0.01);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn order_of_input_does_not_matter_and_scale_neither(
        seed in 0u64..1000,
        scale in 0.01f64..100.0,
    ) {
        let levels = [3, 2];
        let observations = run(&levels, 6, 0.1, seed, |at, _| 0.1 * at[1] as f64);
        let result = analyze(&factors(&levels), &observations, 7).unwrap();
        let mut turned = observations.clone();
        turned.reverse();
        prop_assert_eq!(&result, &analyze(&factors(&levels), &turned, 7).unwrap());
        turned.iter_mut().for_each(|observation| observation.value *= scale);
        let scaled = analyze(&factors(&levels), &turned, 7).unwrap();
        for (one, other) in result.terms.iter().zip(&scaled.terms) {
            prop_assert!((one.share - other.share).abs() < 1e-9);
            prop_assert!((one.p - other.p).abs() < 1e-3);
            let (one, other) = (one.interval.unwrap(), other.interval.unwrap());
            prop_assert!((one.low - other.low).abs() < 1e-9);
            prop_assert!((one.high - other.high).abs() < 1e-9);
        }
    }
}
