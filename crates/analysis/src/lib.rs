//! Statistics on slices of numbers. Results carry their warnings.
//!
//! A cell is one combination of a filesystem, a workload, and settings. It is measured several
//! times, each time in a new trial, which yields one value (a repetition) per metric. A block is a
//! pass over all cells of a run in random order; reports call it a round. The margin δ is the
//! smallest difference of practical importance.
//!
//! Input is slices of `f64` in the base unit of one [`model::Metric`], one value per trial.
//! Results:
//!
//! - [`summary::Summary`] of one cell, and [`stop::Decision`] on further repetitions;
//! - [`compare::Comparison`] of two cells, and [`ranks::Ranking`] of a family of cells;
//! - [`aggregate::Aggregate`] over workloads, and [`family::Screening`] of many p-values;
//! - [`steady::Drift`] of the rate within a phase;
//! - [`trend::Trend`] over the levels of a swept parameter, [`scaling::Scaling`] over numbers of
//!   clients, and [`factorial::Factorial`] over several varied factors.
//!
//! A result that cannot be estimated is a [`NotEstimable`] with the reason. [`runs`] compares whole
//! runs, [`conditions`] lists the differences between the conditions of two runs, and [`audit`]
//! checks printed tables and statements for contradictions. `docs/method/statistics.md` gives the
//! reasons for each method and its coverage.
//!
//! The crate reads no clock, file, or random device: random numbers come from a seeded generator,
//! so equal input gives bit-identical results. Outliers are never dropped and no distribution is
//! assumed. Formatting is left to crate `report`.
#![forbid(unsafe_code)]

pub mod aa;
pub mod aggregate;
pub mod audit;
pub mod blocks;
mod bootstrap;
pub mod changes;
pub mod compare;
pub mod conditions;
pub mod crosscheck;
pub mod drift;
pub mod factorial;
pub mod family;
pub mod forecast;
pub mod hosts;
pub mod modes;
pub mod moments;
mod not_estimable;
mod null;
pub mod outliers;
pub mod paired;
pub mod percentiles;
mod rank_bootstrap;
pub mod ranks;
#[cfg(test)]
mod reference;
pub mod runs;
mod sample;
pub mod scaling;
#[cfg(test)]
mod simulated;
pub mod slowdown;
pub mod steady;
pub mod stop;
pub mod summary;
mod sweep;
pub mod trend;
pub mod variance;
pub mod warmup;

pub use compare::{Check, Comparer, Comparison, Method, Side, Size, Verdict};
pub use conditions::Conditions;
pub use family::holm;
pub use not_estimable::NotEstimable;
pub use ranks::Ranking;
pub use stop::{Decision, decide};
pub use summary::{Interval, Summary};
pub use trend::Repetition;

/// Reason that numbers cannot be analyzed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The list of values is empty.
    #[error("no values; measure at least one repetition")]
    Empty,
    /// A value is not a number, or infinite.
    #[error("value {index} is {value}, not a finite number; exclude failed trials")]
    NotFinite {
        /// Index of the value in the slice.
        index: usize,
        /// Value.
        value: f64,
    },
    /// A value has no logarithm, so no ratio can be formed.
    #[error("value {index} is {value}; ratios need values above zero; compare another metric")]
    NotPositive {
        /// Index of the value in the slice.
        index: usize,
        /// Value.
        value: f64,
    },
    /// A level has no logarithm, so it cannot be part of a sweep.
    #[error("level {index} is {at}; use levels above zero")]
    NotPositiveLevel {
        /// Index of the level in the slice.
        index: usize,
        /// Position of the level.
        at: f64,
    },
}

/// Median of ascending values. For an even number of values, the mean of the two middle values.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// Values in ascending order. Fails if there are none, or if a value is not finite.
fn sorted(values: &[f64]) -> Result<Vec<f64>, Error> {
    if values.is_empty() {
        return Err(Error::Empty);
    }
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(Error::NotFinite { index, value: values[index] });
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Ok(sorted)
}

/// Ratio with the given logarithm, clamped to a finite number above zero.
fn bounded(logarithm: f64) -> model::Ratio {
    model::Ratio(logarithm.exp().clamp(f64::MIN_POSITIVE, f64::MAX))
}

/// Length as a `u32`, saturating.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
