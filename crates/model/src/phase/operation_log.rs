//! Logs of single operations, as files in the form of fio.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Logs of the operations of a stream. Each worker keeps its entries in memory that is reserved
/// before the loop, and writes the files after it. A name is that of the files without
/// `_bw.N.log`, where N is the number of the worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationLog {
    /// Path of the log of rates in KiB per second (`_bw`).
    pub bandwidth: Option<String>,
    /// Path of the log of operations per second (`_iops`).
    pub operations: Option<String>,
    /// Path of the logs of latencies in nanoseconds (`_lat`, `_slat`, `_clat`).
    pub latency: Option<String>,
    /// Path of the log of histograms of the completion latency (`_clat_hist`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histograms: Option<HistogramLog>,
    /// Length of the intervals of which entries are means; 0: one entry per operation.
    pub interval: Nanos,
    /// Latencies of an interval are maxima instead of means.
    pub maximum: bool,
    /// Entries contain the offset in the file.
    pub offsets: bool,
    /// Number of worker 0 in the names.
    pub first: u32,
    /// One file per worker. Otherwise all workers append to one file, whose name has no number.
    pub per_worker: bool,
}

/// Log of the histograms of intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramLog {
    /// Path, as in [`OperationLog`].
    pub path: String,
    /// Length of the intervals; 0: no lines, as in fio.
    pub interval: Nanos,
    /// Joins `2^coarseness` bins of fio, 0 to 6.
    pub coarseness: u8,
}
