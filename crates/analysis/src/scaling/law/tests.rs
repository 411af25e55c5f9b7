use super::*;
use crate::{
    reference::{near, values},
    trend::{Level, Repetition},
};

fn sweep(clients: &[u32], rates: &[Vec<f64>]) -> Sweep {
    let repetitions = |rates: &Vec<f64>| {
        (0..)
            .map(Some)
            .zip(rates)
            .map(|(block, value)| Repetition { block, value: *value })
            .collect()
    };
    let level = |(clients, rates): (&u32, &Vec<f64>)| Level {
        at: f64::from(*clients),
        repetitions: repetitions(rates),
    };
    Sweep::new(clients.iter().zip(rates).map(level).collect()).unwrap()
}

/// Eight trials at each number of clients according to a law, with noise of ±`noise` and a drift by
/// block.
fn made(law: [f64; 3], clients: &[u32], noise: f64) -> Sweep {
    let mut rng = fastrand::Rng::with_seed(5);
    let fit = Fit {
        law: Law::Universal,
        lambda: law[0],
        sigma: law[1],
        kappa: law[2],
        squares: 0.0,
        aicc: 0.0,
    };
    let mut trial = |n: u32, block: i32| {
        fit.at(f64::from(n)) * (1.0 + noise * (2.0 * rng.f64() - 1.0)) * 1.002f64.powi(block)
    };
    let rates: Vec<Vec<f64>> =
        clients.iter().map(|n| (-4..4).map(|block| trial(*n, block)).collect()).collect();
    sweep(clients, &rates)
}

fn single(clients: &[u32], rates: &[f64]) -> Laws {
    let rates: Vec<Vec<f64>> = rates.iter().map(|rate| vec![*rate]).collect();
    laws(&sweep(clients, &rates), clients, 1).unwrap()
}

const RAYTRACER: ([u32; 11], [f64; 11]) = (
    [1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64],
    [20., 78., 130., 170., 190., 210., 220., 245., 255., 280., 310.],
);
const SPECSDM91: ([u32; 7], [f64; 7]) =
    ([1, 18, 36, 72, 108, 144, 216], [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2]);

#[test]
fn fits_of_published_curves_agree_with_scipy() {
    let raytracer = single(&RAYTRACER.0, &RAYTRACER.1);
    let spec = single(&SPECSDM91.0, &SPECSDM91.1);
    for (name, laws) in [("raytracer", raytracer), ("specsdm91", spec)] {
        for (fit, law) in laws.fits.iter().zip(["linear", "amdahl", "universal"]) {
            let theirs = values(&format!("{name}_{law}"));
            near(fit.lambda, theirs[0], 1e-5);
            near(fit.sigma, theirs[1], 1e-4);
            near(fit.kappa, theirs[2], 1e-3);
            near(fit.squares, theirs[3], 1e-9);
            near(fit.aicc, theirs[4], 1e-9);
        }
    }
}

#[test]
fn gunther_coefficients_are_reproduced() {
    // Guerrilla Capacity Planning, 2007, chapter 5: σ = 0.0500 for the ray tracer by least squares
    // on X; by least squares on ln X it is 0.0514.
    let laws = single(&RAYTRACER.0, &RAYTRACER.1);
    near(laws.fits[2].sigma, 0.05, 0.05);
    assert!(laws.fits[2].kappa < 1e-4);
    assert_eq!(
        laws.chosen.law,
        Law::Amdahl,
        "ten times the error of κ does not select a third law"
    );
}

#[test]
fn law_without_noise_is_recovered() {
    // The usl package for R, tests/coef.R: σ = κ = 0.02, λ = 1, printed with five digits.
    let laws = single(&[1, 2, 4, 6, 8, 10], &[1.0, 1.886_8, 3.076_9, 3.529_4, 3.539_8, 3.355_7]);
    let fit = laws.chosen;
    assert_eq!(fit.law, Law::Universal);
    near(fit.sigma, 0.02, 2e-3);
    near(fit.kappa, 0.02, 2e-3);
    near(fit.lambda, 1.0, 1e-4);
    near(fit.peak(), 7.0, 1e-3);
    assert_eq!(
        (laws.misfit, laws.peak),
        (None, Err(NotEstimable::Repetitions { least: 1, needed: 6 }))
    );
}

#[test]
fn simulated_law_is_chosen() {
    let clients = [1, 2, 4, 8, 16, 32, 64];
    let chosen = |law| laws(&made(law, &clients, 0.02), &clients, 1).unwrap();
    let linear = chosen([100.0, 0.0, 0.0]);
    assert_eq!((linear.chosen.law, linear.peak), (Law::Linear, Err(NotEstimable::NoPeak)));
    let amdahl = chosen([100.0, 0.2, 0.0]);
    assert_eq!((amdahl.chosen.law, amdahl.peak), (Law::Amdahl, Err(NotEstimable::NoPeak)));
    assert!(amdahl.sigma.unwrap().contains(0.2));
    let kappa = amdahl.kappa.unwrap();
    assert_eq!((kappa.low, kappa.high), (0.0, 0.0));
    let universal = chosen([100.0, 0.05, 0.002]);
    assert_eq!(universal.chosen.law, Law::Universal);
    let peak = universal.peak.unwrap();
    let truth = (0.95f64 / 0.002).sqrt();
    assert!(peak.clients_interval.contains(truth) && peak.clients_interval.contains(peak.clients));
    assert!(peak.rate_interval.contains(peak.rate));
    assert!(universal.kappa.unwrap().contains(0.002) && universal.lambda.unwrap().contains(100.0));
}

#[test]
fn distant_peak_is_not_reported() {
    let clients = [1, 2, 3, 4, 6, 8];
    // N* = 43, five times the last level, although κ is clearly positive.
    let laws = laws(&made([100.0, 0.05, 0.000_5], &clients, 0.000_1), &clients, 1).unwrap();
    assert_eq!(laws.chosen.law, Law::Universal);
    assert!(laws.kappa.unwrap().low > 0.0);
    assert_eq!(laws.peak, Err(NotEstimable::NoPeak));
}

#[test]
fn step_function_fits_no_law() {
    let clients = [1, 2, 4, 8, 16, 32];
    let rates = [100., 200., 400., 200., 400., 800.].map(|rate| vec![rate; 8]);
    let laws = laws(&sweep(&clients, &rates), &clients, 1).unwrap();
    assert!(matches!(laws.misfit, Some(NotEstimable::Misfit { .. })), "{:?}", laws.misfit);
    assert_eq!(laws.peak.err(), laws.misfit);
}

#[test]
fn falling_rate_keeps_coefficients_within_bounds() {
    let clients = [1, 2, 4, 8, 16, 32];
    let rates = [100., 80., 60., 45., 30., 20.].map(|rate| vec![rate; 8]);
    let laws = laws(&sweep(&clients, &rates), &clients, 1).unwrap();
    for fit in laws.fits {
        assert!((0.0..=1.0).contains(&fit.sigma) && fit.kappa >= 0.0, "{fit:?}");
    }
    assert!(laws.peak.is_err(), "{:?}", laws.peak);
}

#[test]
fn superlinear_scaling_is_fitted_by_a_line() {
    let clients = [1, 2, 4, 8, 16, 32];
    let rates = [10., 22., 47., 99., 210., 440.].map(|rate| vec![rate; 6]);
    let laws = laws(&sweep(&clients, &rates), &clients, 1).unwrap();
    assert_eq!((laws.chosen.law, laws.fits[2].sigma, laws.fits[2].kappa), (Law::Linear, 0.0, 0.0));
}

#[test]
fn few_or_close_levels_have_no_law() {
    let of =
        |clients: &[u32]| laws(&sweep(clients, &vec![vec![1.0]; clients.len()]), clients, 1).err();
    assert_eq!(of(&[1, 2, 4, 8, 16]), Some(NotEstimable::Levels { levels: 5, needed: 6 }));
    assert_eq!(of(&[2, 3, 4, 5, 6, 7]), Some(NotEstimable::Span { span: 3.5, needed: 8.0 }));
}
