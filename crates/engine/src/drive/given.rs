//! What a loop is given, and what it gives back.

use std::sync::atomic::{AtomicU32, AtomicU64};

use model::{
    Bytes, Nanos,
    phase::{Latencies, Moved, Series, Stonewall},
};

use crate::{
    barrier::Board,
    io::Purpose,
    pace::Pacer,
    payload::{Check, Stamp},
};

/// What a loop did.
#[derive(Debug)]
pub(crate) struct Tally {
    /// When counting began.
    pub(crate) started: Nanos,
    /// When counting ended.
    pub(crate) counted_until: Nanos,
    /// When the last operation ended, counted or not.
    pub(crate) ended: Nanos,
    /// Counted reads.
    pub(crate) read: Moved,
    /// Counted writes.
    pub(crate) written: Moved,
    /// Bytes written after counting had ended.
    pub(crate) uncounted: Bytes,
    /// Times of counted operations.
    pub(crate) latencies: Latencies,
    /// Counted work by interval.
    pub(crate) series: Series,
    /// No signal ended the counting.
    pub(crate) complete: bool,
}

/// What a loop shares with others, and what it does when the signal says stop.
pub(crate) struct Surroundings<'b> {
    /// Zero, or [`STOP`] and [`ABORT`] bits.
    pub(crate) signal: &'b AtomicU32,
    /// Where the bytes moved so far are published.
    pub(crate) moved: &'b AtomicU64,
    /// Where the operations done so far are published.
    pub(crate) done: &'b AtomicU64,
    /// Where the number of operations that a flush has covered is published.
    pub(crate) durable: &'b AtomicU64,
    /// The block that these lie in, to be kept after each flush.
    pub(crate) board: Option<&'b Board>,
    /// Whether the rest of the order is done uncounted after a stop.
    pub(crate) finish: bool,
}

impl Surroundings<'_> {
    /// Only writers go on after a stop: readers have nothing that later phases need.
    pub(crate) fn finishes(stonewall: Stonewall, purpose: Purpose) -> bool {
        stonewall == Stonewall::Finish && purpose == Purpose::Write
    }
}

/// What a loop does with content and time, made from a stream before the clock starts.
pub(crate) struct Manner {
    /// What is put into what is written.
    pub(crate) stamp: Option<Stamp>,
    /// Judgement of what is read.
    pub(crate) check: Option<Check>,
    /// When operations begin.
    pub(crate) pacer: Pacer,
    /// Index of the worker, and how many there are.
    pub(crate) worker: (u32, u32),
    /// The generation before the first write's, see [`crate::payload`].
    pub(crate) generation: u64,
}
