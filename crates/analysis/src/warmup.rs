//! Warm-up and steady state of a phase.
//!
//! Takes the operations of a phase over time ([`Series`], whose intervals contain whole operations)
//! and returns a [`RateProfile`]: the shape of the rate, the initial rate, the steady rate, and the
//! time until the rate is steady. This applies to time-based workloads. A workload with an end,
//! such as unpacking an archive, is timed as a whole and has no warm-up to remove.
//! [`crate::steady`] decides whether the result of a phase is a steady state.
//!
//! # Steps
//!
//! 1. The last interval is omitted, because it may be incomplete. Neighboring intervals are merged
//!    until an interval has 100 operations on average, and there are at most 256 intervals.
//! 2. The end of the warm-up is found by MSER-5: means of five intervals are computed, and the
//!    means before a position d are removed. In the first half, d is the position that minimizes
//!    the squared standard error of the mean of the rest (White, "An Effective Truncation Heuristic
//!    for Bias Reduction in Simulation Output", Simulation 69, 1997; White, Cobb, and Spratt, "A
//!    Comparison of Five Steady-State Truncation Heuristics for Simulation", Winter Simulation
//!    Conference 2000). If d is the middle of the series, the series has not settled. The rule
//!    misses some shapes (Wang and Glynn, "On the Marginal Standard Error Rule", ACM TOMACS 26,
//!    2016), hence the next step.
//! 3. The rest is divided into five rounds, which must be within [`steady::limits`].
//! 4. The shape is a cycle if the autocorrelation has a peak above one half beyond its first zero,
//!    at a lag of at most a fifth of the rest. Otherwise the shape follows from the changes of
//!    level of the means of five intervals ([`crate::changes`]): the first level is compared with
//!    the last.
//! 5. Neighboring intervals have a correlation ρ. If the rate is a first-order process, m intervals
//!    are equivalent to m (1 - ρ) / (1 + ρ) independent ones: 90 intervals with ρ = 0.5 to 30.

use model::{Nanos, Profile, phase::Series};

use crate::{
    NotEstimable,
    changes::{self, Change, Options},
    count,
    steady::{self, Drift},
};

/// Intervals per batch.
const BATCH: usize = 5;
/// Minimum number of batches for finding the end of the warm-up.
const LEAST_BATCHES: usize = 10;
/// Minimum number of operations per interval, on average.
const LEAST_OPS: u64 = 100;
/// Minimum (20 batches) and maximum number of intervals after merging.
const LEAST_INTERVALS: usize = BATCH * changes::POINTS_MIN;
const MOST_INTERVALS: usize = 256;
/// Autocorrelation above which there is a cycle.
const CYCLE: f64 = 0.5;
/// Minimum number of periods of a cycle.
const PERIODS: usize = 5;

/// End of the warm-up of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Number of intervals to omit at the beginning.
    pub cut: usize,
    /// True if the rest is settled; otherwise the cut is at the last position considered.
    pub settled: bool,
}

/// Shape of a rate over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One level from the first interval to the last.
    Flat,
    /// Higher at the end than at the beginning.
    Warming,
    /// Lower at the end than at the beginning.
    Cliff,
    /// Lower between two changes of level than at both ends.
    Recovering,
    /// Periodic.
    Cyclic {
        /// Period.
        period: Nanos,
    },
    /// None of these.
    Unsettled,
}

/// Rate of a phase over time.
#[derive(Clone, Debug, PartialEq)]
pub struct RateProfile {
    /// Shape of the rate. The rate may be steady at its end although it is a cliff or warming.
    pub shape: Shape,
    /// Operations per second up to the first change of level.
    pub burst: f64,
    /// Operations per second in the steady state; `None` if the rate did not settle within the
    /// limits of the profile.
    pub steady: Option<f64>,
    /// Time from the start until the rate is steady: to the end of the warm-up, or to the last
    /// change of level if that is earlier.
    pub until: Option<Nanos>,
    /// Number of independent intervals that the rest is equivalent to, at most its number of
    /// intervals. A confidence interval of the rate within this run needs 10.
    pub independent: f64,
    /// Drift of the rest over five rounds; `None` if the rest is too short.
    pub drift: Option<Drift>,
}

/// End of the warm-up of a series of equally long intervals.
///
/// # Errors
/// [`NotEstimable::Intervals`] below 50 values, [`NotEstimable::NotFinite`].
pub fn mser(rounds: &[f64]) -> Result<Truncation, NotEstimable> {
    if let Some(index) = rounds.iter().position(|value| !value.is_finite()) {
        return Err(NotEstimable::NotFinite { index });
    }
    let means = batches(rounds);
    if means.len() < LEAST_BATCHES {
        let needed = count(LEAST_BATCHES * BATCH);
        return Err(NotEstimable::Intervals { intervals: count(rounds.len()), needed });
    }
    let half = means.len() / 2;
    let errors = (0..=half).map(|cut| (cut, error(&means[cut..])));
    // Of equal errors, the first one is used, which omits the fewest intervals.
    let cut = errors.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(cut, _)| cut);
    Ok(Truncation { cut: cut * BATCH, settled: cut < half })
}

/// Rate profile of a phase under the limits and the margin of a profile.
///
/// # Errors
/// [`NotEstimable::Intervals`] below 100 intervals of 100 operations.
pub fn rate_profile(series: &Series, profile: Profile) -> Result<RateProfile, NotEstimable> {
    let joined = joined(series)?;
    let seconds = joined.interval.seconds();
    #[expect(clippy::cast_precision_loss, reason = "operations of an interval, below 2^53")]
    let rates: Vec<f64> = joined.ops.iter().map(|ops| *ops as f64 / seconds).collect();
    let truncation = mser(&rates)?;
    let rest = &rates[truncation.cut..];
    let drift = drift(&joined, truncation.cut);
    let even = drift.is_some_and(|drift| drift.within(steady::limits(profile)));
    let steady = (truncation.settled && even).then(|| mean(rest));
    let changes = levels(&rates, seconds, profile)?;
    let burst_ends = changes.first().map_or(rates.len(), |change| change.at * BATCH);
    // MSER may cut within the last level. The rate is steady from the start of that level.
    let level = changes.last().map_or(rates.len(), |change| change.at * BATCH);
    let begins = truncation.cut.min(level);
    let period = cycle(if truncation.settled { rest } else { &rates });
    let shape = match period {
        Some(lag) => Shape::Cyclic { period: Nanos(joined.interval.0.saturating_mul(lag as u64)) },
        None => shape(&changes, steady.is_some(), profile),
    };
    Ok(RateProfile {
        shape,
        burst: mean(&rates[..burst_ends]),
        steady,
        until: steady.map(|_| Nanos(joined.interval.0.saturating_mul(begins as u64))),
        independent: independent(rest),
        drift,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Means of five values each; an incomplete batch at the end is omitted.
fn batches(values: &[f64]) -> Vec<f64> {
    values.chunks_exact(BATCH).map(mean).collect()
}

/// Squared standard error of the mean as MSER defines it.
fn error(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() as f64).powi(2)
}

/// Intervals without the last one, merged until they have enough operations.
fn joined(series: &Series) -> Result<Series, NotEstimable> {
    let whole = series.ops.split_last().map_or(&[][..], |(_, whole)| whole);
    let mut joined = Series { ops: whole.to_vec(), bytes: Vec::new(), ..series.clone() };
    let too_few = |ops: &[u64]| {
        let total = ops.iter().fold(0u64, |total, ops| total.saturating_add(*ops));
        total < LEAST_OPS * ops.len() as u64
    };
    while joined.ops.len() >= LEAST_INTERVALS
        && (joined.ops.len() > MOST_INTERVALS || too_few(&joined.ops))
    {
        let pairs = joined.ops.chunks_exact(2);
        joined.ops = pairs.map(|pair| pair[0].saturating_add(pair[1])).collect();
        joined.interval = Nanos(joined.interval.0.saturating_mul(2));
    }
    if joined.ops.len() < LEAST_INTERVALS || joined.interval.0 == 0 {
        let intervals = count(joined.ops.len());
        return Err(NotEstimable::Intervals { intervals, needed: count(LEAST_INTERVALS) });
    }
    Ok(joined)
}

/// Drift of the rate after the cut.
fn drift(joined: &Series, cut: usize) -> Option<Drift> {
    // `steady::drift` omits the last interval of a series, so an empty one is appended.
    let mut rest = Series { ops: joined.ops[cut..].to_vec(), ..joined.clone() };
    rest.ops.push(0);
    steady::drift(&rest)
}

/// Changes of the level by at least the equivalence margin; positions are counted in batches.
fn levels(rates: &[f64], seconds: f64, profile: Profile) -> Result<Vec<Change>, NotEstimable> {
    // A batch without operations has no logarithm, so it counts as half an operation.
    let least = 0.5 / (BATCH as f64 * seconds);
    let points: Vec<f64> = batches(rates).into_iter().map(|rate| rate.max(least).ln()).collect();
    changes::find(
        &points,
        Options { least_change: profile.equivalence_margin(), ..Options::default() },
    )
}

/// Shape by the levels between the changes.
fn shape(changes: &[Change], settled: bool, profile: Profile) -> Shape {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return if settled { Shape::Flat } else { Shape::Unsettled };
    };
    let delta = profile.equivalence_margin().0.ln_1p();
    let (burst, end) = (first.before, last.after);
    let between = || changes[..changes.len() - 1].iter().map(|change| change.after);
    let [low, high] = [burst.min(end) - delta, burst.max(end) + delta];
    match () {
        () if between().any(|level| level < low) => Shape::Recovering,
        () if between().any(|level| level > high) => Shape::Unsettled,
        () if end < burst - delta => Shape::Cliff,
        () if end > burst + delta => Shape::Warming,
        () if settled => Shape::Flat,
        () => Shape::Unsettled,
    }
}

/// Correlation of values with the values `lag` positions later.
fn correlation(values: &[f64], lag: usize) -> f64 {
    let mean = mean(values);
    let all: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs = values.iter().zip(&values[lag.min(values.len())..]);
    let shared: f64 = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum();
    if all > 0.0 { shared / all } else { 0.0 }
}

/// Period of the values, in positions; `None` without a cycle.
fn cycle(values: &[f64]) -> Option<usize> {
    let lags = 1..=values.len() / PERIODS;
    let correlated: Vec<(usize, f64)> = lags.map(|lag| (lag, correlation(values, lag))).collect();
    let beyond = correlated.iter().skip_while(|(_, correlation)| *correlation > 0.0);
    let (lag, peak) = beyond.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (*peak > CYCLE).then_some(*lag)
}

/// Number of independent values that the values are equivalent to.
fn independent(values: &[f64]) -> f64 {
    let (m, correlation) = (values.len() as f64, correlation(values, 1));
    (m * (1.0 - correlation) / (1.0 + correlation)).min(m)
}

#[cfg(test)]
mod tests;
