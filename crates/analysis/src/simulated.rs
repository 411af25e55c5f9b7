//! Simulated data with known properties for tests.

use fastrand::Rng;

/// Standard normal value (Box and Muller, "A Note on the Generation of Random Normal Deviates",
/// Annals of Mathematical Statistics 29, 1958).
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

/// Random value as an integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "draws of operations")]
pub(crate) fn whole(value: f64) -> u64 {
    value as u64
}

/// Random values with a median of 100 and the given standard deviation of their logarithms in
/// percent.
pub(crate) fn around_100(rng: &mut Rng, n: usize, percent: f64) -> Vec<f64> {
    (0..n).map(|_| 100.0 * (percent / 100.0 * normal(rng)).exp()).collect()
}

/// Lists of values, most of them invalid, for tests of every method.
pub(crate) fn hostile() -> Vec<Vec<f64>> {
    let n = |value: f64, n: usize| vec![value; n];
    let mut all =
        vec![vec![], n(1.0, 1), n(1.0, 2), n(5.0, 6), n(0.0, 8), n(-3.0, 8), n(1e300, 40)];
    for wild in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e-300, 1e300, 5e-324] {
        all.push(n(wild, 3));
        all.push(vec![wild, 1.0, 2.0]);
        all.push([n(1.0, 30), n(wild, 30)].concat());
        all.push((0..60).map(|at| if at % 3 == 0 { wild } else { f64::from(at) }).collect());
    }
    all
}
