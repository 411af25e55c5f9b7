//! How a phase went from its first second to its last, and where it settled.
//!
//! The work of a phase over time enters ([`Series`], whose intervals hold whole operations), and a
//! [`Regime`] leaves: the shape of the rate, the rate at first and when settled, and the time it
//! took. Whether the number of a phase may be used as it is, [`crate::steady`] says; this module
//! says what the number would be made of, and is for work bound by time. Work that has an end, such
//! as unpacking an archive, is timed whole and has no warm-up to cut.
//!
//! # Steps
//!
//! 1. The last interval is left out, since it may be cut short. Neighbors are joined until an
//!    interval has 100 operations on average, and there are at most 256 of them.
//! 2. Where the warm-up ends: MSER-5. Of means of five intervals, those before d are left out where
//!    that makes the squared standard error of the mean of the rest least, with d in the first half
//!    (White, "An Effective Truncation Heuristic for Bias Reduction in Simulation Output",
//!    Simulation 69, 1997; White, Cobb, and Spratt, "A Comparison of Five Steady-State Truncation
//!    Heuristics for Simulation", Winter Simulation Conference 2000). If d is the half itself, the
//!    series has not settled. The rule misses some shapes (Wang and Glynn, "On the Marginal
//!    Standard Error Rule", ACM TOMACS 26, 2016), hence the next step.
//! 3. What is left is cut into five rounds, which have to be as even as [`steady::limits`] asks.
//! 4. The shape: a cycle, if the autocorrelation has a peak above one half at a lag of which the
//!    rest holds five at least, beyond the first lag without correlation; or else by the changes of
//!    level of the means of five ([`crate::changes`]), the first level against the last.
//! 5. Of m intervals, m (1 - ρ) / (1 + ρ) are worth as much as independent ones, with ρ the
//!    correlation of neighbors, if the rate is a process of first order.

use model::{Nanos, Profile, phase::Series};

use crate::{
    Absent,
    changes::{self, Change, Options},
    count,
    steady::{self, Drift},
};

/// Intervals to a batch.
const BATCH: usize = 5;
/// Batches below which a truncation says nothing.
const LEAST_BATCHES: usize = 10;
/// Operations of an interval, on average.
const LEAST_OPS: u64 = 100;
/// Intervals after joining, at least (20 batches) and at most.
const LEAST_INTERVALS: usize = BATCH * changes::POINTS_MIN;
const MOST_INTERVALS: usize = 256;
/// An autocorrelation above this is a cycle.
const CYCLE: f64 = 0.5;
/// So many periods have to be seen.
const PERIODS: usize = 5;

/// Where the warm-up of a series ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Intervals to leave out at the beginning.
    pub cut: usize,
    /// Whether the rest is settled; if not, the cut lies at the last place looked at.
    pub settled: bool,
}

/// The shape of a rate over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One level from the first interval to the last.
    Flat,
    /// It ends higher than it began.
    Warming,
    /// It ends lower than it began.
    Cliff,
    /// It fell below both ends in between.
    Recovering,
    /// It goes up and down.
    Cyclic {
        /// The time from one top to the next.
        period: Nanos,
    },
    /// None of these.
    Unsettled,
}

/// How a phase went.
#[derive(Clone, Debug, PartialEq)]
pub struct Regime {
    /// The shape of its rate. A cliff or a warming rate may well be settled at the end: see
    /// `steady`.
    pub shape: Shape,
    /// Operations per second up to the first change of level.
    pub burst: f64,
    /// Operations per second once settled; `None` if it did not settle within the limits of the
    /// profile.
    pub steady: Option<f64>,
    /// From the start until settled: to the last change of level, or to where the warm-up was cut
    /// if that is earlier or there is no change.
    pub until: Option<Nanos>,
    /// How many independent intervals the rest is worth, at most as many as it has. An interval of
    /// the rate within this run takes 10.
    pub independent: f64,
    /// How the rest moved over five rounds; `None` if it is too short to say.
    pub drift: Option<Drift>,
}

/// Where the warm-up of a series of equally long intervals ends.
///
/// # Errors
/// [`Absent::Intervals`] below 50 values, [`Absent::NotFinite`].
pub fn mser(rounds: &[f64]) -> Result<Truncation, Absent> {
    if let Some(index) = rounds.iter().position(|value| !value.is_finite()) {
        return Err(Absent::NotFinite { index });
    }
    let means = batches(rounds);
    if means.len() < LEAST_BATCHES {
        let needed = count(LEAST_BATCHES * BATCH);
        return Err(Absent::Intervals { intervals: count(rounds.len()), needed });
    }
    let half = means.len() / 2;
    let errors = (0..=half).map(|cut| (cut, error(&means[cut..])));
    // Of equals the first: nothing is left out without a reason.
    let cut = errors.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(cut, _)| cut);
    Ok(Truncation { cut: cut * BATCH, settled: cut < half })
}

/// How a phase went, judged by the limits and the threshold of a profile.
///
/// # Errors
/// [`Absent::Intervals`] where there are fewer than 100 intervals of 100 operations.
pub fn regime(series: &Series, profile: Profile) -> Result<Regime, Absent> {
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
    // The rule may cut more than it has to, but no less than the last level that it leaves whole.
    let level = changes.last().map_or(rates.len(), |change| change.at * BATCH);
    let begins = truncation.cut.min(level);
    let period = cycle(if truncation.settled { rest } else { &rates });
    let shape = match period {
        Some(lag) => Shape::Cyclic { period: Nanos(joined.interval.0.saturating_mul(lag as u64)) },
        None => shape(&changes, steady.is_some(), profile),
    };
    Ok(Regime {
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

/// Means of five; what does not fill five at the end is left out.
fn batches(values: &[f64]) -> Vec<f64> {
    values.chunks_exact(BATCH).map(mean).collect()
}

/// The squared standard error of the mean, as MSER has it.
fn error(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() as f64).powi(2)
}

/// Whole intervals with enough operations each.
fn joined(series: &Series) -> Result<Series, Absent> {
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
        return Err(Absent::Intervals { intervals, needed: count(LEAST_INTERVALS) });
    }
    Ok(joined)
}

/// How the rate moved after the cut.
fn drift(joined: &Series, cut: usize) -> Option<Drift> {
    // The last interval of a series is not judged, and these are all whole.
    let mut rest = Series { ops: joined.ops[cut..].to_vec(), ..joined.clone() };
    rest.ops.push(0);
    steady::drift(&rest)
}

/// Changes of the level by at least the threshold, counted in batches.
fn levels(rates: &[f64], seconds: f64, profile: Profile) -> Result<Vec<Change>, Absent> {
    // A batch without any operation has no logarithm; it counts as half an operation.
    let least = 0.5 / (BATCH as f64 * seconds);
    let points: Vec<f64> = batches(rates).into_iter().map(|rate| rate.max(least).ln()).collect();
    changes::find(&points, Options { least_change: profile.threshold(), ..Options::default() })
}

/// The shape by the levels between changes.
fn shape(changes: &[Change], settled: bool, profile: Profile) -> Shape {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return if settled { Shape::Flat } else { Shape::Unsettled };
    };
    let delta = profile.threshold().0.ln_1p();
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

/// The correlation of values with those so many places later.
fn correlation(values: &[f64], lag: usize) -> f64 {
    let mean = mean(values);
    let all: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs = values.iter().zip(&values[lag.min(values.len())..]);
    let shared: f64 = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum();
    if all > 0.0 { shared / all } else { 0.0 }
}

/// The lag at which the values repeat themselves.
fn cycle(values: &[f64]) -> Option<usize> {
    let lags = 1..=values.len() / PERIODS;
    let correlated: Vec<(usize, f64)> = lags.map(|lag| (lag, correlation(values, lag))).collect();
    let beyond = correlated.iter().skip_while(|(_, correlation)| *correlation > 0.0);
    let (lag, peak) = beyond.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (*peak > CYCLE).then_some(*lag)
}

/// How many independent values these are worth.
fn independent(values: &[f64]) -> f64 {
    let (m, correlation) = (values.len() as f64, correlation(values, 1));
    (m * (1.0 - correlation) / (1.0 + correlation)).min(m)
}

#[cfg(test)]
mod tests;
