use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::{
    Summary,
    reference::{lines, near},
    simulated::{around_100, hostile, normal, whole},
};

#[test]
fn detectable_differences_agree_with_scipy() {
    for line in lines("detectable") {
        let [spread, repetitions, difference] = line[..] else { panic!("{line:?}") };
        near(detectable(spread, u32::try_from(whole(repetitions)).unwrap()).0, difference, 1e-9);
    }
    for line in lines("repetitions") {
        let [spread, difference, repetitions] = line[..] else { panic!("{line:?}") };
        let ours = repetitions_for(spread, Ratio(difference));
        assert_eq!(f64::from(ours), repetitions.max(6.0), "spread {spread}");
    }
}

#[test]
fn planning_table_is_reproduced() {
    // Spread and difference in percent. The table rounds the quantiles to 2.8, which is one repetition
    // in 420.
    for (spread, difference, repetitions) in
        [(2, 2, 17), (3, 2, 38), (5, 2, 105), (8, 2, 269), (10, 2, 420), (5, 5, 18), (8, 5, 45)]
    {
        let ours = repetitions_for(f64::from(spread) / 100.0, Ratio(f64::from(difference) / 100.0));
        assert!(
            ours.abs_diff(repetitions) <= 1,
            "{spread} %, {difference} %: {ours} not {repetitions}"
        );
    }
}

#[test]
fn a_spread_from_few_values_is_corrected() {
    for line in lines("c4") {
        near(c4(line[0]), line[1], 1e-12);
    }
    let mut rng = Rng::with_seed(1);
    let drawn: f64 = (0..4000).filter_map(|_| spread(&around_100(&mut rng, 2, 5.0))).sum();
    near(drawn / 4000.0, 0.05, 0.04);
}

#[test]
fn half_widths_match_the_summary() {
    for profile in Profile::ALL {
        let (analyses, widths) = (profile.interim_analyses(), half_widths(profile));
        assert_eq!(analyses.len(), widths.len());
        let mut rng = Rng::with_seed(2);
        let mut least = vec![Vec::new(); analyses.len()];
        for _ in 0..1000 {
            // Far from zero, so that a ratio is a difference.
            let values: Vec<f64> =
                (0..analyses[analyses.len() - 1]).map(|_| 1e6 + normal(&mut rng)).collect();
            let (mut so_far, mut before) = (f64::INFINITY, f64::INFINITY);
            for (place, analysis) in analyses.iter().enumerate() {
                let summary = Summary::new(&values[..*analysis as usize]).unwrap();
                let own = summary.half_width().unwrap().0 * 1e6;
                // One narrow interval suffices at the last analysis, or for these profiles.
                let one = place + 1 == analyses.len() || profile.consecutive_analyses() == 1;
                so_far = so_far.min(if one { own } else { own.max(before) });
                before = own;
                least[place].push(so_far);
            }
        }
        for (mut drawn, width) in least.into_iter().zip(widths) {
            drawn.sort_by(f64::total_cmp);
            let drawn = crate::median(&drawn);
            if width.is_finite() {
                near(drawn, *width, 0.06);
            } else {
                assert_eq!(drawn, f64::INFINITY);
            }
        }
    }
}

#[test]
fn cells_close_when_they_are_expected_to() {
    let standard = |percent: f64| repetitions_until(percent / 100.0, Profile::Standard);
    assert_eq!([standard(0.0), standard(2.0), standard(4.0), standard(6.0)], [8, 8, 20, 30]);
    assert_eq!(repetitions_until(0.5, Profile::Quick), 10);
    assert_eq!(repetitions_until(f64::NAN, Profile::Rigorous), 50);
    // Half of the cells are closed by then, and fewer before.
    let mut rng = Rng::with_seed(3);
    let mut closed = [0u32; 2];
    for _ in 0..400 {
        let values = around_100(&mut rng, 30, 4.0);
        let at = Profile::Standard.interim_analyses().iter().find(|analysis| {
            let known = Summary::new(&values[..**analysis as usize]).unwrap();
            known.half_width().unwrap() <= Profile::Standard.half_width_target()
        });
        closed[0] += u32::from(at.is_some_and(|analysis| *analysis < 20));
        closed[1] += u32::from(at.is_some_and(|analysis| *analysis <= 20));
    }
    assert!(closed[0] < 200 && closed[1] > 200, "{closed:?}");
}

#[test]
fn undetectable_differences_are_infinite() {
    assert_eq!(detectable(0.05, 0), Ratio(f64::INFINITY));
    assert_eq!(detectable(f64::NAN, 8), Ratio(f64::INFINITY));
    assert_eq!(detectable(-1.0, 8), Ratio(f64::INFINITY));
    assert_eq!(detectable(0.0, 8), Ratio(0.0));
    for (spread, difference) in [
        (0.05, 0.0),
        (0.05, -0.1),
        (f64::NAN, 0.1),
        (f64::INFINITY, 0.1),
        (0.05, f64::NAN),
        (-1.0, 0.1),
    ] {
        assert_eq!(repetitions_for(spread, Ratio(difference)), u32::MAX, "{spread} {difference}");
    }
    assert_eq!(repetitions_for(0.0, Ratio(0.05)), 6);
    for values in hostile() {
        let sound = values.len() > 1 && values.iter().all(|v| v.is_finite() && *v > 0.0);
        assert_eq!(spread(&values).is_some_and(f64::is_finite), sound, "{values:?}");
    }
}

proptest! {
    #[test]
    fn the_smallest_difference_at_the_repetitions_it_takes_is_that_difference(
        spread in 0.001f64..0.5, difference in 0.005f64..0.5
    ) {
        let repetitions = repetitions_for(spread, Ratio(difference));
        prop_assert!(detectable(spread, repetitions).0 <= difference * (1.0 + 1e-9));
        prop_assert!(repetitions == 6 || detectable(spread, repetitions - 1).0 > difference);
    }

    #[test]
    fn the_unit_does_not_matter(
        values in prop::collection::vec(1.0f64..100.0, 2..30), factor in 1e-6f64..1e9
    ) {
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        prop_assert!((spread(&values).unwrap() - spread(&scaled).unwrap()).abs() < 1e-9);
    }
}
