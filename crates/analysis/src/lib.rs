//! Think: statistics on slices of numbers, whose answers carry their warnings.
//!
//! Data enters as slices of `f64` in the base unit of one [`model::Metric`], one value for each
//! trial, and leaves as values: [`summary::Summary`] of one cell, [`stop::Decision`] on going on,
//! [`compare::Comparison`] of two cells, [`ranks::Ranking`] of a family of cells,
//! [`aggregate::Aggregate`] over workloads, [`family::Screening`] of many p-values,
//! [`steady::Drift`] of the work of one phase over time. Where one thing was swept, a
//! [`trend::Trend`] over its levels leaves, and a [`scaling::Scaling`] over numbers of clients;
//! where several things were varied together, a [`factorial::Factorial`]. What of these cannot be
//! estimated is an [`Absent`], with its reason. [`runs`] compares whole runs, [`conditions`] tells
//! what differed between two of them beside their numbers, and [`audit`] whether printed tables and
//! sentences agree with themselves. Which method is used where, and what it costs in coverage, is
//! argued in `docs/method/statistics.md`.
//!
//! Nothing here reads a clock, a file or a random device: draws come from a generator with a given
//! seed, so the same data gives the same answer, bit for bit. No value is dropped as an outlier, no
//! distribution is assumed, and nothing is formatted for people; that is the report's work.
#![forbid(unsafe_code)]

mod absent;
pub mod aggregate;
pub mod audit;
pub mod blocks;
mod bootstrap;
pub mod changes;
pub mod compare;
pub mod conditions;
pub mod drift;
pub mod factorial;
pub mod family;
pub mod forecast;
pub mod modes;
pub mod moments;
mod null;
pub mod outliers;
pub mod percentiles;
pub mod ranks;
#[cfg(test)]
mod reference;
pub mod runs;
pub mod scaling;
#[cfg(test)]
mod simulated;
pub mod steady;
pub mod stop;
pub mod summary;
pub mod trend;
pub mod twins;
pub mod variance;
pub mod warmup;

pub use absent::Absent;
pub use compare::{Check, Comparer, Comparison, Method, Side, Size, Verdict};
pub use conditions::Conditions;
pub use family::holm;
pub use ranks::Ranking;
pub use stop::{Decision, decide};
pub use summary::{Interval, Summary};
pub use trend::Repeat;

/// Why numbers cannot be analyzed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// There is nothing to summarize.
    #[error("there are no values; measure at least one repeat")]
    Empty,
    /// A value is not a number, or infinite.
    #[error("value {index} is {value}, which is not a finite number; leave failed trials out")]
    NotFinite {
        /// Its index in the slice.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A value has no logarithm, so it has no place in a ratio.
    #[error("value {index} is {value}; ratios need values above zero, so compare another metric")]
    NotPositive {
        /// Its index in the slice.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A level has no logarithm, so it has no place in a sweep.
    #[error("level {index} lies at {at}; give levels above zero")]
    Place {
        /// Its index in the slice.
        index: usize,
        /// Where it lies.
        at: f64,
    },
}

/// The median of values sorted ascending; the mean of the two middle ones if their number is even.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// The values in ascending order, if there are any and all are finite.
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

/// The ratio with that logarithm, kept among the numbers that are neither zero nor infinite.
fn bounded(logarithm: f64) -> model::Ratio {
    model::Ratio(logarithm.exp().clamp(f64::MIN_POSITIVE, f64::MAX))
}

/// A length as a repeat count; more than four thousand million repeats do not happen.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
