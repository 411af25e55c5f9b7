//! Variance components of a cell, and the optimal number of repetitions of each level.
//!
//! Values form a tree: windows in runs, runs on instances of a filesystem. [`Components`] contain
//! the fraction of the variance that each of these levels adds, and the number of repetitions of
//! each level that is optimal for its cost. All variances are those of ln y: a variance of 0.0004
//! is a spread of 2 %.
//!
//! # Method
//!
//! The method is that of Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013.
//! Levels are numbered from 1 (windows) upwards, and level i is repeated r(i) times. S²(i) is the
//! variance of the means of level i about the mean of the node above them, averaged over the tree.
//! S²(2), for example, is the variance of the means of runs. A mean over 10 windows still has a
//! tenth of the variance of a window, so S²(1) / 10 is subtracted:
//!
//! ```text
//! T²(1) = S²(1)
//! T²(i) = S²(i) - S²(i-1) / r(i-1)             0 if that is negative
//! r(i)  = sqrt(c(i+1)/c(i) · T²(i)/T²(i+1))    rounded up; c(i): cost of one repetition of level i
//! ```
//!
//! T² are the usual components of a balanced nested analysis of variance. The interval of the mean
//! is ȳ ± t(r - 1) sqrt(S² / r), with r and S² of the top level. Intervals of fractions resample
//! whole instances (Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section
//! 3.8).
//!
//! Successive windows of one run are correlated, so part of their variance is attributed to the
//! run; wider windows reduce this effect.

use model::Ratio;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{
    Interval, NotEstimable,
    bootstrap::{RESAMPLES, expanded_interval},
    count,
    summary::{LEVEL, needed},
};

/// Fraction of the variance below which instances may be ignored, if its interval is also below
/// [`ALIKE_BOUND`].
const ALIKE: f64 = 0.05;
/// Limit of the upper end of the 95 % interval of that fraction.
const ALIKE_BOUND: f64 = 0.10;

/// Instance: a newly created filesystem.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Runs, each with the values of its windows, above zero.
    pub runs: Vec<Vec<f64>>,
}

/// Variance components.
#[derive(Clone, Debug, PartialEq)]
pub struct Components {
    /// One component per repeated level, the lowest level first. If each instance has only one run,
    /// the run is part of the instance.
    pub shares: Vec<Share>,
    /// Geometric mean of all values, in their unit.
    pub mean: f64,
    /// 95 % interval of the mean, by Student's t over instances.
    pub interval: Interval,
}

/// Variance component of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// `window`, `run`, or `instance`.
    pub level: &'static str,
    /// Number of repetitions within the level above.
    pub repetitions: u32,
    /// T² of ln y.
    pub variance: f64,
    /// Fraction of the sum of all levels.
    pub share: Ratio,
    /// 95 % interval of the fraction; `None` with too few instances.
    pub interval: Option<Interval>,
}

impl Components {
    /// Optimal number of repetitions of each level except the top one, the lowest level first.
    /// `costs` are those of one more repetition of each level, in any unit, the lowest level first.
    /// The number is `None` for a level if the level above it adds no variance: then only the lower
    /// level is worth repeating.
    ///
    /// # Errors
    /// [`NotEstimable::Levels`] unless there is exactly one cost per level, and each is above zero.
    pub fn plan(&self, costs: &[f64]) -> Result<Vec<Option<u32>>, NotEstimable> {
        let sound = costs.iter().filter(|cost| cost.is_finite() && **cost > 0.0).count();
        if sound != self.shares.len() || costs.len() != sound {
            let needed = count(self.shares.len());
            return Err(NotEstimable::Levels { levels: count(sound), needed });
        }
        let pairs = self.shares.windows(2).zip(costs.windows(2));
        let repetitions = |(shares, costs): (&[Share], &[f64])| {
            let best = (costs[1] / costs[0] * shares[0].variance / shares[1].variance).sqrt();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and a saturated count is still far too many"
            )]
            let best = best.is_finite().then(|| best.ceil() as u32);
            best.map(|best| best.max(1))
        };
        Ok(pairs.map(repetitions).collect())
    }

    /// True if instances are so similar that runs can be repeated on one instance instead of on new
    /// ones: instances add less than 5 % of the variance, and the upper bound of this fraction is
    /// below 10 %.
    pub fn instances_alike(&self) -> bool {
        self.shares.last().is_some_and(|top| {
            top.share.0 < ALIKE && top.interval.is_some_and(|share| share.high < ALIKE_BOUND)
        })
    }
}

/// Computes the variance components of a cell. The seed determines all random draws.
///
/// # Errors
/// [`NotEstimable::Repetitions`] below 2 instances, [`NotEstimable::Levels`] if only one level was
/// repeated, [`NotEstimable::Unbalanced`], [`NotEstimable::NotFinite`] for a value without
/// logarithm (the index counts all values in order), and [`NotEstimable::Constant`].
pub fn components(tree: &[Instance], seed: u64) -> Result<Components, NotEstimable> {
    let levels = levels(tree)?;
    let values: Vec<f64> =
        tree.iter().flat_map(|instance| &instance.runs).flatten().copied().collect();
    if let Some(index) = values.iter().position(|value| !(value.is_finite() && *value > 0.0)) {
        return Err(NotEstimable::NotFinite { index });
    }
    let logs: Vec<f64> = values.into_iter().map(f64::ln).collect();
    let parts: Vec<Part> =
        logs.chunks(logs.len() / tree.len()).map(|own| Part::new(own, &levels)).collect();
    let components = pooled(&parts, &vec![1; parts.len()], &levels);
    let total: f64 = components.iter().sum();
    // The tolerance covers rounding: equal logarithms may have a variance above zero.
    if total <= 1e-24 {
        return Err(NotEstimable::Constant);
    }
    let intervals = intervals(&parts, &levels, seed);
    let share = |(at, variance): (usize, &f64)| Share {
        level: levels[at].0,
        repetitions: count(levels[at].1),
        variance: *variance,
        share: Ratio(variance / total),
        interval: intervals.as_ref().map(|intervals| intervals[at]),
    };
    let (mean, half) = center(&parts);
    Ok(Components {
        shares: components.iter().enumerate().map(share).collect(),
        mean: mean.exp(),
        interval: Interval { low: (mean - half).exp(), high: (mean + half).exp(), level: LEVEL },
    })
}

/// Repeated levels with their numbers of repetitions, the lowest level first, instances last.
fn levels(tree: &[Instance]) -> Result<Vec<(&'static str, usize)>, NotEstimable> {
    let Some(first) = tree.first().filter(|_| tree.len() > 1) else {
        return Err(NotEstimable::Repetitions { least: count(tree.len()), needed: 2 });
    };
    let runs = first.runs.len();
    let windows = first.runs.first().map_or(0, Vec::len);
    let equal = |instance: &Instance| {
        instance.runs.len() == runs && instance.runs.iter().all(|run| run.len() == windows)
    };
    if !tree.iter().all(equal) {
        return Err(NotEstimable::Unbalanced);
    }
    if runs == 0 || windows == 0 {
        return Err(NotEstimable::Repetitions { least: 0, needed: 2 });
    }
    let all = [("window", windows), ("run", runs), ("instance", tree.len())];
    let repeated: Vec<_> = all.into_iter().filter(|(_, repetitions)| *repetitions > 1).collect();
    if repeated.len() < 2 {
        return Err(NotEstimable::Levels { levels: count(repeated.len()), needed: 2 });
    }
    Ok(repeated)
}

/// Mean and variances of one instance.
struct Part {
    mean: f64,
    /// S² of the levels below instances, within this instance.
    within: Vec<f64>,
}

impl Part {
    fn new(logs: &[f64], levels: &[(&'static str, usize)]) -> Self {
        let mut values = logs.to_vec();
        let mut within = Vec::new();
        for (_, repetitions) in &levels[..levels.len() - 1] {
            let parts = || values.chunks(*repetitions);
            within.push(
                parts().map(|part| squares(part) / (*repetitions as f64 - 1.0)).sum::<f64>()
                    / (values.len() / repetitions) as f64,
            );
            values = parts().map(mean).collect();
        }
        Self { mean: mean(&values), within }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sum of squares about the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// T² of each level. Each instance counts as many times as its weight.
fn pooled(parts: &[Part], weights: &[u32], levels: &[(&'static str, usize)]) -> Vec<f64> {
    let n = parts.len() as f64;
    let weighted = |of: &dyn Fn(&Part) -> f64| -> f64 {
        parts.iter().zip(weights).map(|(part, weight)| f64::from(*weight) * of(part)).sum()
    };
    let mut spread: Vec<f64> =
        (0..levels.len() - 1).map(|level| weighted(&|part| part.within[level]) / n).collect();
    let mean = weighted(&|part| part.mean) / n;
    spread.push(weighted(&|part| (part.mean - mean).powi(2)) / (n - 1.0));
    let below = |at: usize| at.checked_sub(1).map_or(0.0, |at| spread[at] / levels[at].1 as f64);
    (0..levels.len()).map(|at| (spread[at] - below(at)).max(0.0)).collect()
}

/// Interval of each fraction; `None` with too few instances.
fn intervals(parts: &[Part], levels: &[(&'static str, usize)], seed: u64) -> Option<Vec<Interval>> {
    if count(parts.len()) < needed(LEVEL) {
        return None;
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut drawn = vec![Vec::new(); levels.len()];
    for _ in 0..RESAMPLES {
        let mut weights = vec![0; parts.len()];
        (0..parts.len()).for_each(|_| weights[rng.usize(0..parts.len())] += 1);
        let components = pooled(parts, &weights, levels);
        let total: f64 = components.iter().sum();
        if total > 0.0 {
            drawn.iter_mut().zip(components).for_each(|(own, part)| own.push(part / total));
        }
    }
    let instances = count(parts.len());
    Some(drawn.into_iter().map(|own| expanded_interval(own, instances)).collect())
}

/// Mean over instances and the half-width of its interval.
fn center(parts: &[Part]) -> (f64, f64) {
    let means: Vec<f64> = parts.iter().map(|part| part.mean).collect();
    let n = means.len() as f64;
    let error = (squares(&means) / (n - 1.0) / n).sqrt();
    // The quantile exists, because there are at least two instances.
    let quantile = StudentsT::new(0.0, 1.0, n - 1.0)
        .map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - (1.0 - LEVEL) / 2.0));
    (mean(&means), quantile * error)
}

#[cfg(test)]
mod tests;
