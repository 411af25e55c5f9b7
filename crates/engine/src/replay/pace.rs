//! Start times of a client's operations.
//!
//! A replay has one of three paces: immediately; limited to a rate of read and written bytes; or at
//! the timestamps of the loadfile. The last one is an open loop: the latency of a late operation
//! counts from its scheduled start. Lateness persists when the loadfile is repeated, which is
//! scheduled at its last timestamp.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use model::{Bytes, Nanos, phase::Replay};
use rustix::{thread::nanosleep, time::Timespec};

use super::program::{Op, Program};
use crate::{
    barrier::ABORT,
    clock::{now, sleep_until},
};

/// Interval in which a waiting client checks the signal word.
const NAP: Nanos = Nanos(20_000_000);

/// Schedule of operations.
#[derive(Debug)]
pub(super) enum Pacer {
    /// Immediately.
    Free,
    /// Limited to a rate.
    Rate {
        /// Bytes per second.
        limit: u64,
        /// Bytes of the previous operation.
        bytes: u64,
        /// Start of the previous operation.
        begun: Nanos,
    },
    /// At the timestamps of the loadfile.
    Stamped {
        /// Start of the current repetition.
        base: Nanos,
        /// Last timestamp.
        last: Nanos,
    },
}

impl Pacer {
    /// Schedule of a client.
    pub(super) fn new(replay: &Replay, program: &Program) -> Self {
        if let Some(Bytes(limit)) = replay.rate {
            return Self::Rate { limit, bytes: 0, begun: Nanos(0) };
        }
        if replay.use_timestamps {
            let last = program.ops().iter().filter_map(Op::due).max().unwrap_or(0);
            return Self::Stamped { base: Nanos(0), last: micros(last) };
        }
        Self::Free
    }

    /// Starts the schedule.
    pub(super) fn start(&mut self, clock: Nanos) {
        match self {
            Self::Free => {}
            Self::Rate { begun, .. } => *begun = clock,
            Self::Stamped { base, .. } => *base = clock,
        }
    }

    /// Starts the loadfile again.
    pub(super) fn rewind(&mut self) {
        if let Self::Stamped { base, last } = self {
            *base = *base + *last;
        }
    }

    /// True if operations may start at any time.
    #[inline]
    pub(super) fn free(&self) -> bool {
        matches!(self, Self::Free)
    }

    /// Scheduled start of this operation; not later than now if it need not wait.
    pub(super) fn due(&self, op: &Op, clock: Nanos) -> Nanos {
        match self {
            Self::Free => clock,
            Self::Rate { limit, bytes, begun } => {
                // `limit` is not zero, as checked before.
                let nanos = u128::from(*bytes) * 1_000_000_000 / u128::from(*limit);
                *begun + Nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
            }
            Self::Stamped { base, .. } => op.due().map_or(clock, |due| *base + micros(due)),
        }
    }

    /// Start of the latency of an operation with this scheduled and actual start.
    pub(super) fn counts_from(&self, due: Nanos, begun: Nanos) -> Nanos {
        match self {
            Self::Stamped { .. } => due.min(begun),
            Self::Free | Self::Rate { .. } => begun,
        }
    }

    /// Records that an operation of this number of bytes started at this instant.
    pub(super) fn begun(&mut self, clock: Nanos, moves: u64) {
        if let Self::Rate { bytes, begun, .. } = self {
            (*bytes, *begun) = (moves, clock);
        }
    }
}

/// Converts microseconds.
pub(super) fn micros(micros: u64) -> Nanos {
    Nanos(micros.saturating_mul(1000).min(u64::MAX / 2))
}

/// Sleeps until an instant. Returns `false` if the phase is aborted before.
pub(super) fn wait(until: Nanos, signal: &AtomicU32) -> bool {
    loop {
        if signal.load(Relaxed) & ABORT != 0 {
            return false;
        }
        let clock = now();
        if clock >= until {
            return true;
        }
        if until - clock > NAP {
            let nap = std::time::Duration::from_nanos(NAP.0 / 2);
            // The loop handles sleeps that a signal interrupted.
            let _ = nanosleep(&Timespec::try_from(nap).unwrap_or_default());
        } else {
            sleep_until(until);
        }
    }
}
