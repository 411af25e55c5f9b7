//! Duration of the larger analyses.

use std::time::Instant;

use analysis::{Comparer, factorial, scaling::Curve};
use fastrand::Rng;

use crate::{
    factors::crossed,
    scaling::{curve, law},
    shapes::Shape,
    verdicts::FIVE,
};

/// Measures and prints the durations.
pub(crate) fn tell() {
    let mut rng = Rng::with_seed(1);
    let truth = law(0.05, 0.001);
    let curves: Vec<Curve> =
        (0..5).map(|_| curve(&mut rng, Shape::Normal(0.03), 8, 30, |n| truth.at(n))).collect();
    let start = Instant::now();
    let mut comparer = Comparer::new();
    for curve in &curves {
        std::hint::black_box(curve.scaling(&mut comparer, FIVE, 1).unwrap());
    }
    println!("scaling of 5 filesystems, 8 levels, 30 repetitions: {:?}", start.elapsed());
    let start = Instant::now();
    for (at, one) in curves.iter().enumerate() {
        for other in &curves[..at] {
            std::hint::black_box(Curve::efficiency_differences(other, one, 1));
        }
    }
    println!("differences of their efficiency, 10 pairs: {:?}", start.elapsed());
    let (factors, observations) = crossed(&mut rng, &[5, 8], 30, 0.03, [0.5, 0.2, 0.1]);
    let start = Instant::now();
    std::hint::black_box(factorial::analyze(&factors, &observations, 1).unwrap());
    println!("their two factors: {:?}", start.elapsed());
    let (factors, observations) = crossed(&mut rng, &[5, 3, 2], 30, 0.03, [0.5, 0.2, 0.1]);
    let start = Instant::now();
    std::hint::black_box(factorial::analyze(&factors, &observations, 1).unwrap());
    println!("three factors of 5, 3, and 2 levels, 30 repetitions: {:?}", start.elapsed());
}
