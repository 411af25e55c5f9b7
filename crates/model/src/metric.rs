//! Every quantity fslab reports: one table that gives name, unit, direction and meaning.
//!
//! A value without its row here cannot be stored or shown: [`crate::Sample`] holds a [`Metric`],
//! and a `Metric` is its row.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the base unit of a value is. Rates are per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Operations per second.
    OpsPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// A plain count.
    Count,
}

impl Unit {
    /// Its name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes_per_second",
            Self::OpsPerSecond => "ops_per_second",
            Self::Nanoseconds => "ns",
            Self::Count => "count",
        }
    }
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: evidence about a number, not a score.
    Neither,
}

impl Better {
    /// The words that stand beside every number.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Higher => "higher is better ↑",
            Self::Lower => "lower is better ↓",
            Self::Neither => "evidence, no direction",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct MetricSpec {
    /// The metric.
    pub metric: Metric,
    /// Its name in plans, files and tables.
    pub name: &'static str,
    /// Its base unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// What it means, one sentence.
    pub meaning: &'static str,
}

macro_rules! metrics {
    ($($variant:ident $name:literal $unit:ident $better:ident $meaning:literal;)*) => {
        /// A quantity; see [`ALL`] for unit, direction and meaning.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(into = "&'static str", try_from = "String")]
        pub enum Metric {
            $(#[doc = $meaning] $variant,)*
        }

        /// Every metric, in the order of the enum.
        pub const ALL: &[MetricSpec] = &[$(MetricSpec {
            metric: Metric::$variant,
            name: $name,
            unit: Unit::$unit,
            better: Better::$better,
            meaning: $meaning,
        },)*];
    };
}

metrics! {
    Throughput "throughput" BytesPerSecond Higher
        "Bytes moved in the region the suite times, over that time; for writes this is data accepted, which may still be in memory.";
    DurableThroughput "durable_throughput" BytesPerSecond Higher
        "Bytes written over the time until the flush that followed had returned.";
    ThroughputSum "throughput_sum" BytesPerSecond Higher
        "Sum of each worker's own rate; larger than the true rate when workers do not overlap.";
    OpsRate "ops_rate" OpsPerSecond Higher
        "Operations in the region the suite times, over that time.";
    LatencyMean "latency_mean" Nanoseconds Lower
        "Mean service time of an operation.";
    LatencyP50 "latency_p50" Nanoseconds Lower
        "Half of the operations took at most this long.";
    LatencyP99 "latency_p99" Nanoseconds Lower
        "99 % of the operations took at most this long.";
    LatencyP999 "latency_p999" Nanoseconds Lower
        "99.9 % of the operations took at most this long.";
    LatencyMax "latency_max" Nanoseconds Lower
        "The longest operation.";
    Elapsed "elapsed" Nanoseconds Lower
        "Wall-clock time of the whole step.";
    LoopTime "loop_time" Nanoseconds Lower
        "From the first operation to the end of the last.";
    FlushTime "flush_time" Nanoseconds Lower
        "Length of the flush after the loop.";
    CloseTime "close_time" Nanoseconds Lower
        "Length of the close after the flush.";
    UserTime "user_time" Nanoseconds Neither
        "CPU time of the workers in user mode.";
    SystemTime "system_time" Nanoseconds Neither
        "CPU time of the workers in the kernel.";
    StartSkew "start_skew" Nanoseconds Neither
        "Time between the first and the last worker's start.";
    DeviceRead "device_read" Bytes Neither
        "Bytes the devices under the filesystem read during the phase.";
    DeviceWritten "device_written" Bytes Neither
        "Bytes the devices under the filesystem wrote during the phase, flush included.";
    SpaceUsable "space_usable" Bytes Higher
        "Space an ordinary user can fill right after mkfs.";
    SpaceTotal "space_total" Bytes Neither
        "Size of the device or image.";
    Inodes "inodes" Count Neither
        "Inodes right after mkfs; absent where they are made on demand.";
}

impl Metric {
    /// Its row.
    pub fn spec(self) -> &'static MetricSpec {
        &ALL[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.spec().name
    }
}

impl From<Metric> for &'static str {
    fn from(metric: Metric) -> Self {
        metric.name()
    }
}

/// The text names no metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no metric is called `{0}`")]
pub struct UnknownMetric(String);

impl FromStr for Metric {
    type Err = UnknownMetric;
    fn from_str(name: &str) -> Result<Self, UnknownMetric> {
        let row = ALL.iter().find(|row| row.name == name);
        row.map(|row| row.metric).ok_or_else(|| UnknownMetric(name.into()))
    }
}

impl TryFrom<String> for Metric {
    type Error = UnknownMetric;
    fn try_from(name: String) -> Result<Self, UnknownMetric> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_at_its_metric_and_reads_back() {
        for (index, row) in ALL.iter().enumerate() {
            assert_eq!(row.metric as usize, index, "{}", row.name);
            assert_eq!(row.name.parse(), Ok(row.metric));
            assert!(row.meaning.ends_with('.'), "{}", row.name);
        }
    }
}
