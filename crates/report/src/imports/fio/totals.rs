//! Totals of a run of fio, for programs that run fio themselves.

use model::{Bytes, Histogram, Nanos, Ops, phase::Moved};

use super::{
    document::{self, Entry, Side},
    times::{Kind, Merged, whole},
};
use crate::imports::ImportError;

/// Totals of all jobs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FioTotals {
    /// Version, such as `fio-3.33`.
    pub version: String,
    /// First error number of a job, 0 for success.
    pub error: u32,
    /// Longest run time of a job, in whole milliseconds. It includes a final sync.
    pub runtime: Nanos,
    /// Reads.
    pub read: Moved,
    /// Writes.
    pub written: Moved,
    /// Latencies of reads (lat).
    pub read_latency: Histogram,
    /// Latencies of writes (lat).
    pub write_latency: Histogram,
    /// Latencies of sync calls.
    pub sync_latency: Histogram,
}

/// Reads a document in the format JSON+ with percentiles of `lat`.
///
/// # Errors
/// As an import of the document.
pub fn fio_totals(bytes: &[u8]) -> Result<FioTotals, ImportError> {
    let (document, _) = document::last(bytes)?;
    let entries = document.jobs.as_deref().unwrap_or_default();
    let of = |side: fn(&Entry) -> Option<&Side>| -> Vec<&Side> {
        let sides = entries.iter().filter_map(side);
        sides.filter(|side| side.total_ios > 0.0).collect()
    };
    let (read, written) = (of(|entry| entry.read.as_ref()), of(|entry| entry.write.as_ref()));
    let syncs: Vec<_> = entries.iter().filter_map(|entry| entry.sync.as_ref()).collect();
    let longest = read.iter().chain(&written).map(|side| side.runtime).fold(0.0, f64::max);
    let latency = |sides: &[&Side]| {
        let histogram = Merged::new(sides, Kind::Latency).histogram();
        histogram.or_else(|| Merged::new(sides, Kind::Completion).histogram()).unwrap_or_default()
    };
    Ok(FioTotals {
        error: entries
            .iter()
            .map(|entry| entry.error)
            .find(|error| *error != 0.0)
            .map_or(0, |error| u32::try_from(whole(error)).unwrap_or(u32::MAX)),
        runtime: Nanos(whole(longest * 1e6)),
        read: moved(&read),
        written: moved(&written),
        read_latency: latency(&read),
        write_latency: latency(&written),
        sync_latency: Merged::of_sync(&syncs).histogram().unwrap_or_default(),
        version: document.version,
    })
}

fn moved(sides: &[&Side]) -> Moved {
    let sum = |of: fn(&Side) -> f64| whole(sides.iter().map(|side| of(side)).sum());
    Moved { ops: Ops(sum(|side| side.total_ios)), bytes: Bytes(sum(|side| side.io_bytes)) }
}
