//! Scaling laws: linear, Amdahl's, and the universal scalability law.
//!
//! Takes a checked sweep over clients and returns [`Laws`], or the reason that no law can be
//! fitted. A law summarizes the measured points; it must not be used to predict other points.
//!
//! # The law
//!
//! ```text
//! X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1))      λ > 0, 0 <= σ <= 1, κ >= 0
//! ```
//!
//! (Gunther, "Guerrilla Capacity Planning", Springer 2007, chapters 4 to 6.) With κ = 0, it is
//! Amdahl's law; with σ = κ = 0, it is a line. Its maximum is at N* = sqrt((1 - σ) / κ).
//!
//! # The fit
//!
//! The fit minimizes the squared errors of ln X over all trials, so that errors are relative. σ and
//! κ are found by Levenberg–Marquardt steps within their bounds; ln λ follows from them. A
//! coefficient on a bound stays there as long as the slope points outwards. The fit starts from
//! several points and keeps the best result. It needs 6 levels with a ratio of at least 8 between
//! the largest and the smallest. Of the three laws, the one with the smallest AICc is chosen:
//!
//! ```text
//! AICc = n ln(S / n) + 2 k + 2 k (k + 1) / (n - k - 1)
//! ```
//!
//! S is the sum of squares over n trials, and k the number of coefficients, including the variance
//! (Hurvich and Tsai, "Regression and time series model selection in small samples", Biometrika 76,
//! 1989).

use model::Ratio;

use crate::{
    Interval, NotEstimable,
    bootstrap::{Resampler, expanded_interval},
    count, median,
    trend::Sweep,
};

/// Minimum number of levels for a choice among three laws.
pub const LEVELS_MIN: u32 = 6;
/// Minimum ratio of the largest level to the smallest.
pub const SPAN_MIN: f64 = 8.0;
/// Maximum relative distance of a median from the law up to which the law may be shown.
pub const RESIDUAL_MAX: f64 = 0.1;
/// Maximum position of a peak that may be shown, in multiples of the last level.
pub const PEAK_MAX: f64 = 2.0;

/// Scaling law: X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// σ = κ = 0: each client adds the same rate.
    Linear,
    /// κ = 0: part of the work is serial (Amdahl).
    Amdahl,
    /// λ, σ, and κ: clients also wait for each other (Gunther's universal scalability law).
    Universal,
}

impl Law {
    /// Name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Amdahl => "Amdahl",
            Self::Universal => "universal",
        }
    }

    /// Number of coefficients among σ and κ.
    const fn shape(self) -> usize {
        match self {
            Self::Linear => 0,
            Self::Amdahl => 1,
            Self::Universal => 2,
        }
    }
}

/// Law fitted to the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Law.
    pub law: Law,
    /// λ: rate of one client, in the unit of the metric.
    pub lambda: f64,
    /// σ, contention: serial fraction of the work, 0 to 1.
    pub sigma: f64,
    /// κ, coherency: cost per pair of clients, at least 0.
    pub kappa: f64,
    /// Sum of squared residuals of ln X over all trials.
    pub squares: f64,
    /// Akaike's information criterion, corrected for small samples; smaller is better.
    pub aicc: f64,
}

impl Fit {
    /// Rate at a number of clients, at least 1.
    pub fn at(&self, clients: f64) -> f64 {
        self.lambda * clients / waiting(self.sigma, self.kappa, clients)
    }

    /// N*, in clients; infinite if κ is 0.
    fn peak(&self) -> f64 {
        ((1.0 - self.sigma) / self.kappa).sqrt()
    }
}

/// Laws fitted to one curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Laws {
    /// All three laws, in the order of [`Law`].
    pub fits: [Fit; 3],
    /// Law with the smallest AICc. Its curve may be drawn only if [`Laws::misfit`] is `None`.
    pub chosen: Fit,
    /// Largest distance of a level's median from the chosen law, relative to the law.
    pub residual: Ratio,
    /// [`NotEstimable::Misfit`] if the residual is above 10 %.
    pub misfit: Option<NotEstimable>,
    /// 95 % interval of the chosen law's λ, by resampling blocks.
    pub lambda: Result<Interval, NotEstimable>,
    /// 95 % interval of σ; from 0 to 0 if the law does not have σ.
    pub sigma: Result<Interval, NotEstimable>,
    /// 95 % interval of κ; from 0 to 0 if the law does not have κ.
    pub kappa: Result<Interval, NotEstimable>,
    /// Maximum of the universal law. It is available if this law is chosen and has no misfit, and
    /// if the interval of κ excludes 0. In addition, the interval of N* must be finite, and N* must
    /// be between the first level and twice the last level.
    pub peak: Result<Peak, NotEstimable>,
}

/// Maximum of a law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// N* = sqrt((1 - σ) / κ), in clients.
    pub clients: f64,
    /// 95 % interval of N*.
    pub clients_interval: Interval,
    /// X(N*), in the unit of the metric.
    pub rate: f64,
    /// 95 % interval of X(N*).
    pub rate_interval: Interval,
}

/// Mean of one level, to which laws are fitted.
#[derive(Clone, Copy)]
struct LevelMean {
    clients: f64,
    /// Number of trials.
    weight: f64,
    /// Mean of ln X over the trials.
    mean: f64,
}

/// Fits the laws as described in the module documentation.
pub(super) fn laws(sweep: &Sweep, clients: &[u32], seed: u64) -> Result<Laws, NotEstimable> {
    let levels = count(clients.len());
    if levels < LEVELS_MIN {
        return Err(NotEstimable::Levels { levels, needed: LEVELS_MIN });
    }
    let (first, last) = (clients[0], clients[clients.len() - 1]);
    let span = f64::from(last) / f64::from(first);
    if span < SPAN_MIN {
        return Err(NotEstimable::Span { span, needed: SPAN_MIN });
    }
    let logs: Vec<Vec<f64>> = sweep
        .levels()
        .iter()
        .map(|level| level.values().iter().map(|v| v.ln()).collect())
        .collect();
    let places = places(clients, &logs, |_, _| 1);
    let within: f64 = logs
        .iter()
        .zip(&places)
        .map(|(logs, place)| logs.iter().map(|log| (log - place.mean).powi(2)).sum::<f64>())
        .sum();
    let n = logs.iter().map(Vec::len).sum::<usize>() as f64;
    let fits = [Law::Linear, Law::Amdahl, Law::Universal].map(|law| {
        let best = fit_from_everywhere(law, &places);
        let squares = best.squares + within;
        let k = law.shape() as f64 + 2.0;
        // The lower limit avoids the logarithm of 0 for values that match the law exactly.
        let variance = (squares / n).max(f64::EPSILON * f64::EPSILON);
        let aicc = n * variance.ln() + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0);
        Fit { squares, aicc, ..best }
    });
    let mut chosen = fits[0];
    for fit in fits {
        if fit.aicc < chosen.aicc {
            chosen = fit;
        }
    }
    let distance = |(level, clients): (&crate::trend::Level, &u32)| {
        (*clients, (median(&level.values()) / chosen.at(f64::from(*clients)) - 1.0).abs())
    };
    let distances = sweep.levels().iter().zip(clients).map(distance);
    let (clients_worst, residual) =
        distances.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((first, 0.0));
    let residual = Ratio(residual);
    let misfit = (residual.0 > RESIDUAL_MAX)
        .then_some(NotEstimable::Misfit { clients: clients_worst, residual });
    let refits = refits(&chosen, sweep, clients, &logs, seed);
    let interval = |of: fn(&Fit) -> f64| {
        let (blocks, fits) = refits.as_ref().map_err(|cause: &NotEstimable| *cause)?;
        Ok(expanded_interval(fits.iter().map(of).collect(), *blocks))
    };
    let kappa = interval(|fit| fit.kappa);
    let peak = misfit.map_or(Ok(()), Err).and(kappa).and_then(|kappa| {
        let clients = chosen.peak();
        let tested = f64::from(first)..=PEAK_MAX * f64::from(last);
        let clients_interval = interval(Fit::peak)?;
        let settled = kappa.low > 0.0 && clients_interval.high.is_finite();
        if !(chosen.law == Law::Universal && settled && tested.contains(&clients)) {
            return Err(NotEstimable::NoPeak);
        }
        let rate_interval = interval(|fit| fit.at(fit.peak().max(1.0)))?;
        Ok(Peak { clients, clients_interval, rate: chosen.at(clients), rate_interval })
    });
    let (lambda, sigma) = (interval(|fit| fit.lambda), interval(|fit| fit.sigma));
    Ok(Laws { fits, chosen, residual, misfit, lambda, sigma, kappa, peak })
}

/// Fewest blocks of a level, and the chosen law fitted to resampled blocks.
fn refits(
    chosen: &Fit,
    sweep: &Sweep,
    clients: &[u32],
    logs: &[Vec<f64>],
    seed: u64,
) -> Result<(u32, Vec<Fit>), NotEstimable> {
    let mut refits = Vec::new();
    let resampler = Resampler::new(&[sweep], seed)?;
    let blocks = resampler.least();
    resampler.each(|weights| {
        let places = places(clients, logs, |level, index| weights[level][index]);
        refits.push(fit(chosen.law, &places, [chosen.sigma, chosen.kappa]));
    });
    Ok((blocks, refits))
}

fn places(
    clients: &[u32],
    logs: &[Vec<f64>],
    weight: impl Fn(usize, usize) -> u32,
) -> Vec<LevelMean> {
    let place = |(level, logs): (usize, &Vec<f64>)| {
        let weights = (0..logs.len()).map(|index| f64::from(weight(level, index)));
        let total: f64 = weights.clone().sum();
        let sum: f64 = weights.zip(logs).map(|(weight, log)| weight * log).sum();
        LevelMean { clients: f64::from(clients[level]), weight: total, mean: sum / total }
    };
    logs.iter().enumerate().map(place).collect()
}

/// Denominator of the law.
fn waiting(sigma: f64, kappa: f64, clients: f64) -> f64 {
    1.0 + (clients - 1.0) * (sigma + kappa * clients)
}

fn fit_from_everywhere(law: Law, places: &[LevelMean]) -> Fit {
    let last = places.iter().map(|place| place.clients).fold(1.0, f64::max);
    let mut best = fit(law, places, [0.0, 0.0]);
    for sigma in [0.01, 0.1, 0.9] {
        // The values of κ stand for no peak, and for peaks at about a half and a fifth of the last
        // level.
        for kappa in [0.0, 4.0, 25.0] {
            let other = fit(law, places, [sigma, kappa / (last * last)]);
            if other.squares < best.squares {
                best = other;
            }
        }
    }
    best
}

/// Trial values of σ and κ, with values derived from them.
struct Trial {
    shape: [f64; 2],
    ln_lambda: f64,
    squares: f64,
    /// Half of the slope of the squares by σ and κ.
    slope: [f64; 2],
    /// Gauss–Newton approximation of half of the curvature of the squares.
    curvature: [[f64; 2]; 2],
}

impl Trial {
    fn new(places: &[LevelMean], shape: [f64; 2]) -> Self {
        let total: f64 = places.iter().map(|place| place.weight).sum();
        // Residual of each level before ln λ is subtracted, and its derivatives by σ and κ.
        let parts = places.iter().map(|place| {
            let n = place.clients;
            let waiting = waiting(shape[0], shape[1], n);
            let by = [(n - 1.0) / waiting, n * (n - 1.0) / waiting];
            (place.weight, [place.mean - n.ln() + waiting.ln(), by[0], by[1]])
        });
        let mut means = [0.0; 3];
        for (weight, part) in parts.clone() {
            means.iter_mut().zip(part).for_each(|(mean, value)| *mean += weight * value / total);
        }
        let mut own = Self {
            shape,
            ln_lambda: means[0],
            squares: 0.0,
            slope: [0.0; 2],
            curvature: [[0.0; 2]; 2],
        };
        for (weight, part) in parts {
            let [residual, by @ ..] = [0, 1, 2].map(|at| part[at] - means[at]);
            own.squares += weight * residual * residual;
            for one in 0..2 {
                own.slope[one] += weight * residual * by[one];
                for other in 0..2 {
                    own.curvature[one][other] += weight * by[one] * by[other];
                }
            }
        }
        own
    }
}

/// Best law near a start. `squares` does not include the spread within levels, and `aicc` is 0.
fn fit(law: Law, places: &[LevelMean], start: [f64; 2]) -> Fit {
    const MOST: [f64; 2] = [1.0, f64::INFINITY];
    let mut shape = start;
    shape[law.shape()..].fill(0.0);
    let mut best = Trial::new(places, shape);
    let mut damping = 1e-3;
    for _ in 0..200 {
        let free = |at: usize| {
            at < law.shape()
                && best.curvature[at][at] > 0.0
                && !(best.shape[at] <= 0.0 && best.slope[at] >= 0.0)
                && !(best.shape[at] >= MOST[at] && best.slope[at] <= 0.0)
        };
        let step = step(&best, [free(0), free(1)], damping);
        let mut next = best.shape;
        for at in 0..2 {
            next[at] = (next[at] + step[at]).clamp(0.0, MOST[at]);
        }
        if next == best.shape || damping > 1e12 {
            break;
        }
        let trial = Trial::new(places, next);
        if trial.squares < best.squares {
            let gain = best.squares - trial.squares;
            let done = gain <= 1e-15 * best.squares;
            best = trial;
            damping = (damping / 8.0).max(1e-12);
            if done {
                break;
            }
        } else {
            damping *= 4.0;
        }
    }
    let [sigma, kappa] = best.shape;
    let lambda = best.ln_lambda.exp();
    Fit { law, lambda, sigma, kappa, squares: best.squares, aicc: 0.0 }
}

/// Marquardt's step for the free coefficients. The damping raises the diagonal of the curvature,
/// which makes the step independent of the scales of the coefficients.
fn step(at: &Trial, free: [bool; 2], damping: f64) -> [f64; 2] {
    let [[a, b], [_, d]] = at.curvature;
    let (a, d) = (a * (1.0 + damping), d * (1.0 + damping));
    match free {
        [false, false] => [0.0, 0.0],
        [true, false] => [-at.slope[0] / a, 0.0],
        [false, true] => [0.0, -at.slope[1] / d],
        [true, true] => {
            let determinant = a * d - b * b;
            [
                (b * at.slope[1] - d * at.slope[0]) / determinant,
                (b * at.slope[0] - a * at.slope[1]) / determinant,
            ]
        }
    }
}

#[cfg(test)]
mod tests;
