//! A small version of `make calibrate` with bounds: a change that breaks coverage or error rates
//! fails here. Seeds are fixed, so the rates are the same each time; bounds are two points wider
//! than required, because rates of a few hundred runs scatter.
#![expect(clippy::unwrap_used, reason = "a simulation that fails may stop")]
#![allow(dead_code, reason = "the simulations are those of the benchmark, which uses more of them")]

#[path = "../benches/calibrate/coverage.rs"]
mod coverage;
#[path = "../benches/calibrate/page.rs"]
mod page;
#[path = "../benches/calibrate/run.rs"]
mod run;
#[path = "../benches/calibrate/shapes.rs"]
mod shapes;
#[path = "../benches/calibrate/verdicts.rs"]
mod verdicts;

use model::Profile;
use shapes::{Machine, Shape};

#[test]
fn intervals_of_a_fixed_number_hold_the_truth() {
    for shape in [Shape::Normal(0.04), Shape::Bimodal, Shape::LeftTail, Shape::HeavyTail] {
        for n in [6, 10] {
            let covered = coverage::fixed(shape, n, 1000);
            assert!((0.93..=0.99).contains(&covered), "{shape:?}, n = {n}: {covered}");
        }
    }
}

#[test]
fn intervals_hold_the_truth_after_the_stop_rule() {
    for shape in [Shape::Normal(0.04), Shape::LeftTail] {
        for profile in [Profile::Quick, Profile::Standard] {
            let result = coverage::stopped(shape, profile, 600);
            let covered = result.coverage;
            assert!((0.91..=0.99).contains(&covered), "{shape:?}, {profile:?}: {covered}");
        }
    }
}

#[test]
fn equal_cells_are_seldom_called_different() {
    for shape in [Shape::Normal(0.04), Shape::Bimodal] {
        for machine in Machine::ALL {
            let result = verdicts::result([shape, shape], 1.0, machine, 150);
            assert!(result.different <= 0.08, "{shape:?}, {machine:?}: {result:?}");
        }
    }
}

#[test]
fn a_difference_of_five_percent_is_found_and_not_called_equivalent() {
    let result = verdicts::result([Shape::Normal(0.02); 2], 1.05, Machine::Still, 150);
    assert!(
        result.different >= 0.95 && result.worse == 0.0 && result.equivalent <= 0.07,
        "{result:?}"
    );
    let result = verdicts::result([Shape::Bimodal; 2], 1.05, Machine::Still, 150);
    assert!(result.different >= 0.80, "{result:?}");
}

#[test]
fn equal_cells_of_a_family_have_no_winner() {
    let (pair, winner) = verdicts::family(5, 150);
    assert!(pair <= 0.08 && winner <= 0.02, "{pair} {winner}");
}
