//! One ratio over several workloads, with what it hides.
//!
//! The repeats of two contenders on each workload enter as [`Pairing`]s; an [`Aggregate`] leaves.
//! Per workload the ratio is Hodges–Lehmann's, as in [`crate::compare`], oriented so that above 1
//! the second contender is better. Their geometric mean is the summary: unlike the arithmetic mean
//! it does not depend on which of the two is the baseline (Fleming and Wallace, "How not to lie
//! with statistics: the correct way to summarize benchmark results", Communications of the ACM 29,
//! 1986), which is why there is no arithmetic mean here. The harmonic mean stands beside it, for
//! those who ask how much time would be saved if the baseline spent the same time in each workload
//! (Eeckhout, "R.I.P. geomean speedup: use equal-work (or equal-time) harmonic mean speedup
//! instead", IEEE Computer Architecture Letters 23, 2024). Workloads have no weights.
//!
//! Intervals resample blocks 4000 times, jointly for all lists if all of their blocks are known, so
//! that what a block did to several workloads stays together. Contenders of two runs share no
//! blocks ([`geometric_across`]): those of each run are drawn for all of its lists alike. A
//! workload that one contender lacks is no pairing; the caller names those left out beside the
//! figure.

use model::{Ratio, metric::Better};
use rayon::prelude::*;

use crate::{
    Absent, Interval,
    bootstrap::{
        beside::{Paired, Products, SIDE, Units},
        expanded_interval,
    },
    bounded,
    compare::{Sample, differences::Differences, sum, sums},
    count,
    summary::{LEVEL, needed},
    trend::Repeat,
};

/// Workloads that are at least resampled by one thread at a time: they take it some microseconds
/// each, and to share work costs about as much.
const SHARE: usize = 32;

/// Two contenders on one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairing {
    /// The workload.
    pub name: String,
    /// Repeats of the baseline.
    pub first: Vec<Repeat>,
    /// Repeats of the other; a ratio above 1 is in its favor.
    pub second: Vec<Repeat>,
    /// Which way the metric points.
    pub better: Better,
}

/// What several workloads say together.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Geometric mean of the ratios.
    pub ratio: Ratio,
    /// Its 95 % interval for these workloads.
    pub interval: Interval,
    /// Its 95 % interval for workloads like these: they are resampled as well. `None` with fewer
    /// than six of them.
    pub like_these: Option<Interval>,
    /// Harmonic mean of the ratios, "equal time in each workload at the baseline".
    pub harmonic: Ratio,
    /// The ratio of each workload, in the order given.
    pub each: Vec<(String, Ratio)>,
    /// Index of the workload with the least ratio.
    pub least: usize,
    /// Index of the workload with the greatest ratio.
    pub most: usize,
    /// Index of a workload without which the other contender would be the better one. If there are
    /// several, the one that matters most.
    pub fragile: Option<usize>,
}

/// A pairing made ready.
struct Ready {
    /// The differences of logarithms, ascending, with the repeats (of `first`, of `second`) that
    /// make them.
    differences: Vec<(f64, [u32; 2])>,
    /// The logarithm of the ratio of all repeats.
    ratio: f64,
}

/// Aggregates over workloads. Cost: for each workload 4000 walks through half of the differences;
/// 0.1 s for 20 workloads of 30 against 30 repeats.
///
/// # Errors
/// [`Absent::Workloads`] without any, [`Absent::Unsound`] when a value is not finite and positive,
/// and [`Absent::Repeats`] when a list has fewer than six blocks (or repeats, where blocks are
/// unknown).
pub fn geometric(workloads: &[Pairing], seed: u64) -> Result<Aggregate, Absent> {
    aggregate(workloads, [0, 0], seed)
}

/// Aggregates over workloads whose baseline was measured in one run and the other contender in
/// another: a block of one is none of the other, whatever their numbers.
///
/// # Errors
/// As [`geometric`].
pub fn geometric_across(workloads: &[Pairing], seed: u64) -> Result<Aggregate, Absent> {
    aggregate(workloads, [0, 1], seed)
}

/// The aggregate, with the run that either side is of.
fn aggregate(workloads: &[Pairing], runs: [u8; 2], seed: u64) -> Result<Aggregate, Absent> {
    let ready = workloads.iter().map(Ready::new).collect::<Result<Vec<Ready>, Absent>>()?;
    let logs: Vec<f64> = ready.iter().map(|workload| workload.ratio).collect();
    let by_ratio = |a: &usize, b: &usize| logs[*a].total_cmp(&logs[*b]);
    // Of equal ones the first, on either side.
    let least = (0..logs.len()).min_by(by_ratio).ok_or(Absent::Workloads)?;
    let most = (0..logs.len()).rev().max_by(by_ratio).ok_or(Absent::Workloads)?;
    let mean = mean(&logs);
    let lists = || workloads.iter().flat_map(|pairing| [&pairing.first, &pairing.second]);
    let blocked = lists().flatten().all(|repeat| repeat.block.is_some());
    let runs = runs.iter().cycle().map(|run| blocked.then_some(*run));
    let lists: Vec<&[Repeat]> = lists().map(Vec::as_slice).collect();
    let units = Units::of_lists(lists.into_iter().zip(runs))?;
    let paired = |(at, ready): (usize, Ready)| {
        Paired::new(&units, [2 * at, 2 * at + 1], ready.differences.into_iter())
    };
    let paired: Vec<Paired> = ready.into_iter().enumerate().map(paired).collect();
    let blocks = units.least();
    let mut rng = fastrand::Rng::with_seed(seed.wrapping_add(1));
    let (mut these, mut like_these) = (Vec::new(), Vec::new());
    let mut drawn = vec![[0.0; SIDE]; workloads.len()];
    units.each(seed, |weights| {
        let resampled = drawn.par_iter_mut().with_min_len(SHARE).zip(&paired);
        resampled.for_each_init(Products::default, |products, (drawn, paired)| {
            *drawn = products.medians(paired, &units, weights);
        });
        these.extend(means(drawn.iter().copied()));
        like_these.extend(means(
            drawn
                .iter()
                .map(|_| std::array::from_fn(|side| drawn[rng.usize(0..drawn.len())][side])),
        ));
    });
    let outermost = if mean > 0.0 { most } else { least };
    let enough = count(workloads.len()) >= needed(LEVEL);
    Ok(Aggregate {
        ratio: bounded(mean),
        interval: of_logarithms(expanded_interval(these, blocks)),
        like_these: enough.then(|| {
            let fewest = blocks.min(count(workloads.len()));
            of_logarithms(expanded_interval(like_these, fewest))
        }),
        harmonic: harmonic(&logs),
        each: workloads
            .iter()
            .zip(&logs)
            .map(|(pairing, log)| (pairing.name.clone(), bounded(*log)))
            .collect(),
        least,
        most,
        fragile: (without(&logs, outermost) * mean < 0.0).then_some(outermost),
    })
}

impl Ready {
    fn new(pairing: &Pairing) -> Result<Self, Absent> {
        let sound = |repeats: &[Repeat]| match Sample::of_repeats(repeats, pairing.better) {
            Err(crate::Error::Empty) => Err(Absent::Repeats { least: 0, needed: needed(LEVEL) }),
            other => other.map_err(|_| Absent::Unsound),
        };
        let (a, b) = (sound(&pairing.first)?, sound(&pairing.second)?);
        let ratio = Differences::new(&a.logs, &b.logs).median();
        let sign = if pairing.better == Better::Lower { -1.0 } else { 1.0 };
        let mut differences = Vec::with_capacity(a.logs.len() * b.logs.len());
        for (j, second) in (0u32..).zip(&pairing.second) {
            for (i, first) in (0u32..).zip(&pairing.first) {
                differences.push((sign * second.value.ln() - sign * first.value.ln(), [i, j]));
            }
        }
        differences.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        Ok(Self { differences, ratio })
    }
}

fn mean(logs: &[f64]) -> f64 {
    sum(logs.iter().copied()) / logs.len() as f64
}

/// The means of many lists of logarithms, side by side.
fn means(logs: impl ExactSizeIterator<Item = [f64; SIDE]>) -> [f64; SIDE] {
    let n = logs.len() as f64;
    sums(logs).map(|sum| sum / n)
}

/// The mean of all but one; 0 if there is no other.
fn without(logs: &[f64], left_out: usize) -> f64 {
    let others = logs.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, log)| *log);
    sum(others) / (logs.len().max(2) - 1) as f64
}

/// W / Σ exp(-l), with the greatest term taken out first so that none overflows.
fn harmonic(logs: &[f64]) -> Ratio {
    let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let terms = sum(logs.iter().map(|log| (least - log).exp()));
    bounded(least + (logs.len() as f64 / terms).ln())
}

fn of_logarithms(interval: Interval) -> Interval {
    Interval { low: bounded(interval.low).0, high: bounded(interval.high).0, ..interval }
}

#[cfg(test)]
mod tests;
