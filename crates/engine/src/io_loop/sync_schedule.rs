//! Schedule and range of syncs inside the loop.

use model::phase::{SyncCall, SyncEvery, SyncInterval};

use crate::patterns::PlannedOp;

/// Syncs inside the loop.
pub(super) struct SyncSchedule {
    every: SyncEvery,
    // Operations or bytes until the next sync.
    left: u64,
    // First byte and end of the data written since the last sync.
    from: u64,
    to: u64,
}

impl SyncSchedule {
    /// Starts counting.
    pub(super) fn new(every: SyncEvery) -> Self {
        Self { every, left: Self::amount(every), from: u64::MAX, to: 0 }
    }

    fn amount(every: SyncEvery) -> u64 {
        match every.after {
            SyncInterval::Ops(ops) => ops.max(1),
            SyncInterval::Bytes(bytes) => bytes.0.max(1),
        }
    }

    /// Counts a write that is about to be submitted.
    #[inline(always)]
    pub(super) fn wrote(&mut self, planned: PlannedOp) {
        let spent = match self.every.after {
            SyncInterval::Ops(_) => 1,
            SyncInterval::Bytes(_) => planned.len as u64,
        };
        self.left = self.left.saturating_sub(spent);
        self.from = self.from.min(planned.offset);
        self.to = self.to.max(planned.offset + planned.len as u64);
    }

    /// True if enough was written.
    #[inline(always)]
    pub(super) fn due(&self) -> bool {
        self.left == 0
    }

    /// True if the call is made before the next operation, so not after the last one.
    #[inline(always)]
    pub(super) fn before_next(&self) -> bool {
        self.every.before_next
    }

    /// Starts the next interval. Returns the call to make and the range (offset and length) it
    /// covers.
    pub(super) fn restart(&mut self) -> (SyncCall, (u64, u64)) {
        let range = (self.from, self.to.saturating_sub(self.from));
        *self = Self::new(self.every);
        (self.every.call, range)
    }
}
