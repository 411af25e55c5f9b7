//! Configuration and result of the I/O loop, and state shared by the loops of a phase.

use std::sync::atomic::{AtomicU32, AtomicU64};

use model::{
    Bytes, Nanos,
    phase::{Latencies, Moved, Series, Stonewall},
};

use crate::{
    barrier::ControlBlock,
    io::AccessMode,
    pace::Pacer,
    payload::{PayloadWriter, Verifier},
};

/// Result of a loop.
#[derive(Debug)]
pub(crate) struct LoopResult {
    /// Start of counting.
    pub(crate) started: Nanos,
    /// End of counting.
    pub(crate) counted_until: Nanos,
    /// End of the last operation, counted or not.
    pub(crate) ended: Nanos,
    /// Counted reads.
    pub(crate) read: Moved,
    /// Counted writes.
    pub(crate) written: Moved,
    /// Bytes written after the end of counting.
    pub(crate) uncounted: Bytes,
    /// Times of counted operations.
    pub(crate) latencies: Latencies,
    /// Counted operations by interval.
    pub(crate) series: Series,
    /// True unless a signal ended the counting.
    pub(crate) complete: bool,
}

/// State shared by the I/O loops of a phase: stop signal, progress counters, and stonewall
/// behavior.
pub(crate) struct LoopShared<'b> {
    /// Zero, or [`STOP`] and [`ABORT`] bits.
    pub(crate) signal: &'b AtomicU32,
    /// Published number of bytes moved.
    pub(crate) moved: &'b AtomicU64,
    /// Published number of completed operations.
    pub(crate) done: &'b AtomicU64,
    /// Published number of operations covered by a sync.
    pub(crate) durable: &'b AtomicU64,
    /// Control block of these counters, to be saved after each sync.
    pub(crate) control: Option<&'b ControlBlock>,
    /// True if the remaining operations run uncounted after a stop.
    pub(crate) finish: bool,
}

impl LoopShared<'_> {
    /// Only writers continue after a stop, because later phases need their files.
    pub(crate) fn finishes(stonewall: Stonewall, mode: AccessMode) -> bool {
        stonewall == Stonewall::Finish && mode == AccessMode::Write
    }
}

/// Content and pace of a loop, derived from a stream before the clock starts.
pub(crate) struct LoopConfig {
    /// Writer of headers or marks.
    pub(crate) writer: Option<PayloadWriter>,
    /// Verifier of data read.
    pub(crate) verifier: Option<Verifier>,
    /// Start times of operations.
    pub(crate) pacer: Pacer,
    /// Index of the worker, and number of workers.
    pub(crate) worker: (u32, u32),
    /// Generation before that of the first write, see [`crate::payload`].
    pub(crate) generation: u64,
}
