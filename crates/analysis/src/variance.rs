//! Where the variation of a cell comes from, and what had better be repeated.
//!
//! Values enter as a tree: windows of runs on instances of a filesystem. [`Components`] leave: the
//! share of the variance that each level adds, and how often each level had better be repeated for
//! what it costs. Everything is on ln y, so a variance of 0.0004 is a spread of 2 %.
//!
//! # Method
//!
//! Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013. With levels from 1
//! (windows) upward, each repeated r(i) times, S²(i) is the variance of the means of level i about
//! the mean they belong to, averaged over the tree. It holds some of the variance of the levels
//! below, which is taken out:
//!
//! ```text
//! T²(1) = S²(1)
//! T²(i) = S²(i) - S²(i-1) / r(i-1)             0 where that is negative
//! r(i)  = sqrt(c(i+1)/c(i) · T²(i)/T²(i+1))    rounded up; c(i) is what one more of level i costs
//! ```
//!
//! T² are the usual components of a balanced nested analysis of variance. The mean has the interval
//! ȳ ± t(r - 1) sqrt(S² / r) of the top level. Intervals of shares resample instances as a whole
//! (Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8).
//!
//! Windows of one run follow each other and are alike, so part of what windows do is counted as the
//! run's. The wider the windows, the less.

use model::Ratio;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{
    Absent, Interval,
    bootstrap::{RESAMPLES, expanded_interval},
    count,
    summary::{LEVEL, needed},
};

/// What instances add may be left aside if it is less than this share,
const ALIKE: f64 = 0.05;
/// and, with 95 % confidence, less than this one.
const ALIKE_BOUND: f64 = 0.10;

/// One instance: a filesystem made anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Its runs, and of each run the values of its windows, above zero.
    pub runs: Vec<Vec<f64>>,
}

/// What each level adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Components {
    /// One for each level that was repeated, the lowest first. Where each instance has one run, the
    /// run is part of the instance.
    pub shares: Vec<Share>,
    /// The geometric mean of all values, in their unit.
    pub mean: f64,
    /// Its 95 % interval, by Student's t over instances.
    pub interval: Interval,
}

/// What one level adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// `window`, `run`, or `instance`.
    pub level: &'static str,
    /// How often it was repeated within the level above.
    pub repeats: u32,
    /// T² of ln y.
    pub variance: f64,
    /// That over the sum of all levels.
    pub share: Ratio,
    /// The 95 % interval of the share; `None` with too few instances.
    pub interval: Option<Interval>,
}

impl Components {
    /// How often each level but the top one had better be repeated, the lowest first, where one
    /// more repeat of each level costs so much (in any unit, the lowest first). `None` for a level
    /// below one that adds nothing: it alone is worth repeating.
    ///
    /// # Errors
    /// [`Absent::Levels`] if there is not one cost above zero for each level.
    pub fn plan(&self, costs: &[f64]) -> Result<Vec<Option<u32>>, Absent> {
        let sound = costs.iter().filter(|cost| cost.is_finite() && **cost > 0.0).count();
        if sound != self.shares.len() || costs.len() != sound {
            let needed = count(self.shares.len());
            return Err(Absent::Levels { levels: count(sound), needed });
        }
        let pairs = self.shares.windows(2).zip(costs.windows(2));
        let repeats = |(shares, costs): (&[Share], &[f64])| {
            let best = (costs[1] / costs[0] * shares[0].variance / shares[1].variance).sqrt();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and a saturated count is still far too many"
            )]
            let best = best.is_finite().then(|| best.ceil() as u32);
            best.map(|best| best.max(1))
        };
        Ok(pairs.map(repeats).collect())
    }

    /// Whether instances are so alike that runs may be repeated on one instead of on new ones:
    /// they add less than 5 %, and with confidence less than 10 %.
    pub fn instances_alike(&self) -> bool {
        self.shares.last().is_some_and(|top| {
            top.share.0 < ALIKE && top.interval.is_some_and(|share| share.high < ALIKE_BOUND)
        })
    }
}

/// Takes the variance of a cell apart. The seed settles all draws.
///
/// # Errors
/// [`Absent::Repeats`] below 2 instances, [`Absent::Levels`] if nothing but instances was repeated,
/// [`Absent::Unbalanced`], [`Absent::NotFinite`] for a value without logarithm (its index counts
/// all values in order), and [`Absent::Constant`].
pub fn components(tree: &[Instance], seed: u64) -> Result<Components, Absent> {
    let levels = levels(tree)?;
    let values: Vec<f64> =
        tree.iter().flat_map(|instance| &instance.runs).flatten().copied().collect();
    if let Some(index) = values.iter().position(|value| !(value.is_finite() && *value > 0.0)) {
        return Err(Absent::NotFinite { index });
    }
    let logs: Vec<f64> = values.into_iter().map(f64::ln).collect();
    let parts: Vec<Part> =
        logs.chunks(logs.len() / tree.len()).map(|own| Part::new(own, &levels)).collect();
    let components = pooled(&parts, &vec![1; parts.len()], &levels);
    let total: f64 = components.iter().sum();
    // Logarithms of equal values average to something else in the last digit.
    if total <= 1e-24 {
        return Err(Absent::Constant);
    }
    let intervals = intervals(&parts, &levels, seed);
    let share = |(at, variance): (usize, &f64)| Share {
        level: levels[at].0,
        repeats: count(levels[at].1),
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

/// The levels that were repeated, with the number of repeats; the lowest first, instances last.
fn levels(tree: &[Instance]) -> Result<Vec<(&'static str, usize)>, Absent> {
    let Some(first) = tree.first().filter(|_| tree.len() > 1) else {
        return Err(Absent::Repeats { least: count(tree.len()), needed: 2 });
    };
    let runs = first.runs.len();
    let windows = first.runs.first().map_or(0, Vec::len);
    let equal = |instance: &Instance| {
        instance.runs.len() == runs && instance.runs.iter().all(|run| run.len() == windows)
    };
    if !tree.iter().all(equal) {
        return Err(Absent::Unbalanced);
    }
    if runs == 0 || windows == 0 {
        return Err(Absent::Repeats { least: 0, needed: 2 });
    }
    let all = [("window", windows), ("run", runs), ("instance", tree.len())];
    let repeated: Vec<_> = all.into_iter().filter(|(_, repeats)| *repeats > 1).collect();
    if repeated.len() < 2 {
        return Err(Absent::Levels { levels: count(repeated.len()), needed: 2 });
    }
    Ok(repeated)
}

/// An instance in numbers.
struct Part {
    mean: f64,
    /// S² of the levels below instances, within this one.
    within: Vec<f64>,
}

impl Part {
    fn new(logs: &[f64], levels: &[(&'static str, usize)]) -> Self {
        let mut values = logs.to_vec();
        let mut within = Vec::new();
        for (_, repeats) in &levels[..levels.len() - 1] {
            let parts = || values.chunks(*repeats);
            within.push(
                parts().map(|part| squares(part) / (*repeats as f64 - 1.0)).sum::<f64>()
                    / (values.len() / repeats) as f64,
            );
            values = parts().map(mean).collect();
        }
        Self { mean: mean(&values), within }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of squares about the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// T² of each level, where each instance counts as often as its weight says.
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

/// An interval for each share; `None` with too few instances.
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

/// The mean of instances and the half-width of its interval.
fn center(parts: &[Part]) -> (f64, f64) {
    let means: Vec<f64> = parts.iter().map(|part| part.mean).collect();
    let n = means.len() as f64;
    let error = (squares(&means) / (n - 1.0) / n).sqrt();
    // Refused only without degrees of freedom, and there are two instances at least.
    let quantile = StudentsT::new(0.0, 1.0, n - 1.0)
        .map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - (1.0 - LEVEL) / 2.0));
    (mean(&means), quantile * error)
}

#[cfg(test)]
mod tests;
