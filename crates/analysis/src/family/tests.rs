use proptest::prelude::*;

use super::*;
use crate::reference::{near, values};

#[test]
fn holm_matches_manual_computation() {
    // 4 · 0.005, 3 · 0.01, 2 · 0.03, then 0.04 lifted to its predecessor.
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    let expected = [0.03, 0.06, 0.06, 0.02];
    assert!(adjusted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}

proptest! {
    #[test]
    fn holm_never_lowers_and_keeps_the_order(p in prop::collection::vec(0.0f64..1.0, 1..30)) {
        let adjusted = holm(&p);
        for i in 0..p.len() {
            prop_assert!(adjusted[i] >= p[i] && adjusted[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
            }
        }
    }
}

#[test]
fn adjustments_agree_with_statsmodels() {
    for name in ["thrombolysis", "drawn"] {
        let of = |what: &str| values(&format!("{what}_{name}"));
        let p = of("p");
        for (ours, theirs) in holm(&p).into_iter().zip(of("holm")) {
            near(ours, theirs, 1e-12);
        }
        let screening = benjamini_hochberg(&p, 0.05);
        for (ours, theirs) in screening.adjusted.iter().zip(of("bh")) {
            near(*ours, theirs, 1e-12);
        }
        let found: Vec<bool> = of("bh_found").iter().map(|found| *found == 1.0).collect();
        assert_eq!(screening.found, found);
    }
}

#[test]
fn benjamini_hochberg_example_is_reproduced() {
    // Section 4.1 of the paper: of 15 comparisons the four smallest p-values are found at 0.05;
    // Holm's adjustment keeps three.
    let p = values("p_thrombolysis");
    let screening = benjamini_hochberg(&p, 0.05);
    assert_eq!(screening.found.iter().filter(|found| **found).count(), 4);
    assert!(screening.found[..4].iter().all(|found| *found));
    near(screening.level, 1.0 - 4.0 * 0.05 / 15.0, 1e-12);
    assert_eq!(holm(&p).iter().filter(|p| **p <= 0.05).count(), 3);
}

#[test]
fn empty_families_are_handled() {
    let none = benjamini_hochberg(&[0.5, f64::NAN, 7.0, -1.0], 0.0);
    assert_eq!(none.found, [false, false, false, true], "below 0 is 0");
    let empty = benjamini_hochberg(&[], 0.05);
    assert_eq!((empty.found, empty.adjusted, empty.level), (vec![], vec![], 1.0));
    assert_eq!(holm(&[f64::NAN, 0.01, f64::INFINITY]), [1.0, 0.03, 1.0]);
}
