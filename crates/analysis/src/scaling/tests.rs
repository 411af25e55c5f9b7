use proptest::prelude::*;

use super::*;

const FIVE: Ratio = Ratio(0.05);

/// Eight trials around each rate, ±1.4 %, each in a separate block.
fn curve(levels: &[(u32, f64)]) -> Curve {
    curve_of(levels, Better::Higher, 8)
}

fn curve_of(levels: &[(u32, f64)], better: Better, repetitions: u32) -> Curve {
    Curve::new(levels_of(levels, repetitions), better).unwrap()
}

fn levels_of(levels: &[(u32, f64)], repetitions: u32) -> Vec<Level> {
    let level = |(place, (clients, rate)): (u32, &(u32, f64))| Level {
        clients: *clients,
        repetitions: (0..repetitions)
            .map(|block| Repetition {
                block: Some(block),
                // The index of the level rotates the order, so that no block is the best of all
                // levels.
                value: rate * (1.0 + 0.004 * (f64::from((block * 3 + place) % repetitions) - 3.5)),
            })
            .collect(),
    };
    (0..).zip(levels).map(level).collect()
}

fn scaling(curve: &Curve) -> Scaling {
    curve.scaling(&mut Comparer::new(), FIVE, 1).unwrap()
}

fn shape(levels: &[(u32, f64)]) -> Result<ScalingShape, NotEstimable> {
    scaling(&curve(levels)).shape
}

#[test]
fn every_shape_is_reached() {
    assert_eq!(shape(&[(1, 100.), (2, 190.), (4, 350.)]), Ok(ScalingShape::Rises));
    assert_eq!(shape(&[(1, 100.), (2, 190.), (4, 200.), (8, 199.)]), Ok(ScalingShape::Saturates));
    assert_eq!(shape(&[(1, 100.), (2, 190.), (4, 150.)]), Ok(ScalingShape::RisesAndFalls));
    assert_eq!(shape(&[(1, 200.), (2, 190.), (4, 150.)]), Ok(ScalingShape::Falls));
    assert_eq!(shape(&[(1, 100.), (2, 100.5), (4, 100.2)]), Ok(ScalingShape::Flat));
    assert_eq!(shape(&[(1, 100.)]), Err(NotEstimable::Levels { levels: 1, needed: 2 }));
    let few = curve_of(&[(1, 100.), (2, 200.)], Better::Higher, 5);
    assert_eq!(scaling(&few).shape, Err(NotEstimable::Repetitions { least: 5, needed: 6 }));
}

#[test]
fn noise_is_inconclusive() {
    let noisy = |clients, values: [f64; 6]| Level {
        clients,
        repetitions: values.map(|value| Repetition { block: None, value }).to_vec(),
    };
    let levels = vec![
        noisy(1, [80., 90., 100., 110., 120., 130.]),
        noisy(2, [85., 97., 104., 117., 123., 140.]),
    ];
    let curve = Curve::new(levels, Better::Higher).unwrap();
    assert_eq!(scaling(&curve).shape, Err(NotEstimable::Inconclusive));
}

#[test]
fn saturation_peak_and_fall_match_manual_computation() {
    let levels = [(1, 100.), (2, 150.), (4, 192.), (8, 200.), (16, 170.)];
    let result = scaling(&curve(&levels));
    assert_eq!(
        (result.points[result.saturation].clients, result.points[result.peak].clients),
        (4, 8)
    );
    assert_eq!(result.saturation_range, Ok((4, 4)));
    let fall = result.fall.unwrap();
    assert!((fall.ratio.0 - 0.85).abs() < 0.01, "{fall:?}");
    assert!(fall.interval.unwrap().contains(fall.ratio.0));
    assert!(result.rise.unwrap().ratio.0 > 1.9);
    let efficiency = result.points[2].efficiency.unwrap();
    assert!((efficiency.value.0 - 192.0 / 400.0).abs() < 0.01);
    assert!(efficiency.interval.unwrap().contains(efficiency.value.0));
    let base = result.points[0].efficiency.unwrap();
    assert_eq!((base.value, base.interval.unwrap().high), (Ratio(1.0), 1.0));
    assert_eq!(result.laws, Err(NotEstimable::Levels { levels: 5, needed: 6 }));
}

#[test]
fn flat_top_has_a_wide_saturation_range() {
    let result = scaling(&curve(&[(1, 100.), (2, 190.), (4, 190.4), (8, 200.), (16, 200.)]));
    let (low, high) = result.saturation_range.unwrap();
    assert!(low <= 2 && high >= 4, "{low} {high}");
}

#[test]
fn lowest_latency_is_best_and_has_no_efficiency() {
    let result = scaling(&curve_of(&[(1, 100.), (2, 100.), (4, 80.), (8, 81.)], Better::Lower, 8));
    assert_eq!((result.peak, result.saturation), (2, 2));
    assert_eq!(result.shape, Ok(ScalingShape::Saturates));
    assert_eq!(result.points[0].efficiency, Err(NotEstimable::NotARate));
    assert_eq!(result.laws, Err(NotEstimable::NotARate));
    assert!(result.rise.unwrap().ratio.0 > 1.2);
}

#[test]
fn best_of_equal_levels_is_not_a_rise() {
    // 60 flat curves of 8 levels with noise, at a nominal 5 % each for rise and fall. If every
    // difference counted, about 6 would be expected. Differences below δ′ do not count.
    let mut rng = fastrand::Rng::with_seed(2);
    let mut shown = 0;
    for _ in 0..60 {
        let levels = (0..8).map(|at| Level {
            clients: 1 << at,
            repetitions: (0..8)
                .map(|block| Repetition { block: Some(block), value: 1.0 + 0.3 * rng.f64() })
                .collect(),
        });
        let curve = Curve::new(levels.collect(), Better::Higher).unwrap();
        let shape = scaling(&curve).shape;
        shown +=
            u32::from(!matches!(shape, Ok(ScalingShape::Flat) | Err(NotEstimable::Inconclusive)));
    }
    assert!(shown <= 9, "{shown}");
}

#[test]
fn efficiencies_are_compared_at_the_same_clients() {
    let one = curve(&[(1, 100.), (2, 160.), (4, 200.)]);
    let other = curve(&[(1, 300.), (2, 570.), (8, 900.)]);
    let result = Curve::efficiency_differences(&one, &other, 1);
    assert_eq!(result.iter().map(|d| d.clients).collect::<Vec<_>>(), [1, 2, 4, 8]);
    assert_eq!(result[0].difference, Ok(0.0));
    assert!((result[1].difference.unwrap() - 0.15).abs() < 0.01);
    assert!(result[1].interval.unwrap().low > 0.1);
    assert_eq!(result[2].difference, Err(NotEstimable::NotShared));
    assert_eq!(result[3].interval, Err(NotEstimable::NotShared));
    let from_two = curve(&[(2, 100.), (4, 160.)]);
    let result = Curve::efficiency_differences(&one, &from_two, 1);
    assert!(result.iter().all(|d| d.difference == Err(NotEstimable::NotShared)));
}

#[test]
fn common_blocks_narrow_the_interval() {
    // A drift of ±20 % from block to block that affects both curves alike.
    let level = |clients: u32, rate: f64, blocked: bool| Level {
        clients,
        repetitions: (0..10u32)
            .map(|block| Repetition {
                block: blocked.then_some(block),
                value: rate * (0.8 + 0.04 * f64::from((block * 7 + clients) % 10)),
            })
            .collect(),
    };
    let pair = |blocked| {
        let curve = |rate| {
            let levels = vec![level(1, 100.0, blocked), level(3, rate, blocked)];
            Curve::new(levels, Better::Higher).unwrap()
        };
        let result = Curve::efficiency_differences(&curve(200.0), &curve(240.0), 1);
        let interval = result[1].interval.unwrap();
        interval.high - interval.low
    };
    assert!(pair(true) < 0.7 * pair(false), "{} {}", pair(true), pair(false));
}

#[test]
fn zero_clients_are_rejected() {
    let level = Level { clients: 0, repetitions: vec![Repetition { block: None, value: 1.0 }] };
    let refused = Curve::new(vec![level], Better::Higher);
    assert_eq!(refused, Err(Error::NotPositiveLevel { index: 0, at: 0.0 }));
    assert_eq!(Curve::new(vec![], Better::Higher), Err(Error::Empty));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn order_of_input_does_not_matter_and_scale_neither(
        rates in prop::collection::vec(50.0f64..500.0, 6..8),
        exponent in -20i32..20,
    ) {
        let levels: Vec<(u32, f64)> = (0..).map(|at| 1 << at).zip(rates).collect();
        let mut turned = levels_of(&levels, 8);
        turned.reverse();
        turned.iter_mut().for_each(|level| level.repetitions.reverse());
        let one = scaling(&curve(&levels));
        prop_assert_eq!(&one, &scaling(&Curve::new(turned, Better::Higher).unwrap()));
        let scale = f64::exp2(f64::from(exponent));
        let scaled: Vec<(u32, f64)> = levels.iter().map(|(n, rate)| (*n, rate * scale)).collect();
        let other = scaling(&curve(&scaled));
        prop_assert_eq!((one.peak, one.saturation), (other.peak, other.saturation));
        prop_assert_eq!((one.shape, one.saturation_range), (other.shape, other.saturation_range));
        for (a, b) in one.points.iter().zip(&other.points) {
            prop_assert_eq!(a.efficiency, b.efficiency);
        }
        let (a, b) = (one.laws.unwrap(), other.laws.unwrap());
        prop_assert_eq!(a.chosen.law, b.chosen.law);
        prop_assert!((a.chosen.sigma - b.chosen.sigma).abs() < 1e-4);
    }
}
