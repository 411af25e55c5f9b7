//! End of a stream when its rate is steady.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Condition that ends a stream: its rate was steady in the last intervals (fio `steadystate`). All
/// workers of this host count together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// Rate.
    pub rate: SteadyRate,
    /// Measure of the change of the rate.
    pub change: SteadyChange,
    /// Upper limit of the change, exclusive.
    pub limit: SteadyLimit,
    /// Time before the first interval.
    pub ramp: Nanos,
    /// Length of an interval, at least 100 ms.
    pub interval: Nanos,
    /// Number of intervals, 2 to 100000.
    pub intervals: u32,
}

/// Rate that has to be steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyRate {
    /// Operations per second.
    Operations,
    /// Bytes per second.
    Bytes,
}

/// Change of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyChange {
    /// Largest difference between an interval and the mean of the intervals.
    Deviation,
    /// Slope of the least-squares line per interval, without its sign.
    Slope,
}

/// Limit of a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyLimit {
    /// In the unit of the rate.
    Absolute(f64),
    /// Fraction of the mean of the intervals.
    Relative(f64),
}
