//! When a client begins its operations.
//!
//! Three manners, of which a replay has at most one: at once; so that what was read and written
//! since the operation before stays within a rate; or at the times that the load file has. The last
//! is an open loop: an operation that begins late counts from when it was due. Being late is not
//! forgiven when the load file begins anew, which is due at its last time.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use model::{Bytes, Nanos, phase::Replay};
use rustix::{thread::nanosleep, time::Timespec};

use super::program::{Op, Program};
use crate::{
    barrier::ABORT,
    clock::{now, sleep_until},
};

/// A client that waits looks this often whether it should go on.
const NAP: Nanos = Nanos(20_000_000);

/// Tells when operations are due.
#[derive(Debug)]
pub(super) enum Pacer {
    /// At once.
    Free,
    /// So that a rate is kept.
    Rate {
        /// Bytes a second.
        limit: u64,
        /// Of the operation before.
        bytes: u64,
        /// When that one was begun.
        begun: Nanos,
    },
    /// At the times of the load file.
    Stamped {
        /// When it was begun this time.
        base: Nanos,
        /// Its last time.
        last: Nanos,
    },
}

impl Pacer {
    /// Of a client.
    pub(super) fn new(replay: &Replay, program: &Program) -> Self {
        if let Some(Bytes(limit)) = replay.rate {
            return Self::Rate { limit, bytes: 0, begun: Nanos(0) };
        }
        if replay.paced {
            let last = program.ops().iter().filter_map(Op::due).max().unwrap_or(0);
            return Self::Stamped { base: Nanos(0), last: micros(last) };
        }
        Self::Free
    }

    /// The loop begins.
    pub(super) fn start(&mut self, clock: Nanos) {
        match self {
            Self::Free => {}
            Self::Rate { begun, .. } => *begun = clock,
            Self::Stamped { base, .. } => *base = clock,
        }
    }

    /// The load file begins anew.
    pub(super) fn rewind(&mut self) {
        if let Self::Stamped { base, last } = self {
            *base = *base + *last;
        }
    }

    /// Whether operations may begin at any time.
    #[inline]
    pub(super) fn free(&self) -> bool {
        matches!(self, Self::Free)
    }

    /// When this operation is due; at the latest now, if it is not to wait.
    pub(super) fn due(&self, op: &Op, clock: Nanos) -> Nanos {
        match self {
            Self::Free => clock,
            Self::Rate { limit, bytes, begun } => {
                // `limit` is not zero: the replay was checked.
                let nanos = u128::from(*bytes) * 1_000_000_000 / u128::from(*limit);
                *begun + Nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
            }
            Self::Stamped { base, .. } => op.due().map_or(clock, |due| *base + micros(due)),
        }
    }

    /// From when an operation counts that was due and was begun at these instants.
    pub(super) fn counts_from(&self, due: Nanos, begun: Nanos) -> Nanos {
        match self {
            Self::Stamped { .. } => due.min(begun),
            Self::Free | Self::Rate { .. } => begun,
        }
    }

    /// An operation of so many bytes was begun at this instant.
    pub(super) fn begun(&mut self, clock: Nanos, moves: u64) {
        if let Self::Rate { bytes, begun, .. } = self {
            (*bytes, *begun) = (moves, clock);
        }
    }
}

/// So many microseconds.
pub(super) fn micros(micros: u64) -> Nanos {
    Nanos(micros.saturating_mul(1000).min(u64::MAX / 2))
}

/// Sleeps until an instant, unless the phase is called off; then `false`.
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
            // Cut short by a signal: the loop sees to it.
            let _ = nanosleep(&Timespec::try_from(nap).unwrap_or_default());
        } else {
            sleep_until(until);
        }
    }
}
