//! When a flush inside the loop is due, and what it covers.

use model::phase::{Amount, FlushCall, FlushEvery};

use crate::patterns::Visit;

/// Flushes inside the loop.
pub(super) struct Flusher {
    every: FlushEvery,
    // Until the next one: operations or bytes.
    left: u64,
    // What was written since the last one: first and last byte, as offset and end.
    from: u64,
    to: u64,
}

impl Flusher {
    /// Counts from here.
    pub(super) fn new(every: FlushEvery) -> Self {
        Self { every, left: Self::amount(every), from: u64::MAX, to: 0 }
    }

    fn amount(every: FlushEvery) -> u64 {
        match every.after {
            Amount::Ops(ops) => ops.max(1),
            Amount::Bytes(bytes) => bytes.0.max(1),
        }
    }

    /// A write is about to be submitted.
    #[inline(always)]
    pub(super) fn wrote(&mut self, visit: Visit) {
        let spent = match self.every.after {
            Amount::Ops(_) => 1,
            Amount::Bytes(_) => visit.len as u64,
        };
        self.left = self.left.saturating_sub(spent);
        self.from = self.from.min(visit.offset);
        self.to = self.to.max(visit.offset + visit.len as u64);
    }

    /// Whether enough was written.
    #[inline(always)]
    pub(super) fn due(&self) -> bool {
        self.left == 0
    }

    /// Starts over; answers the call to make, and the range (offset and length) it is to cover.
    pub(super) fn restart(&mut self) -> (FlushCall, (u64, u64)) {
        let range = (self.from, self.to.saturating_sub(self.from));
        *self = Self::new(self.every);
        (self.every.call, range)
    }
}
