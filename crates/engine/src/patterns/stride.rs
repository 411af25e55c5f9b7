//! The classic stride, which walks the file in steps and comes round to its neighbors.
//!
//! From record p the next is p + s. When p + 1 + s >= n - 1, the walk wraps: the first time to
//! record 1, then to 2, and so on; when n <= s always to record 0. For n >= 21 and the usual stride
//! of 17 that visits n - 2 distinct records: the last two are never touched.

use super::Place;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Stride {
    position: u64,
    wraps: u64,
    stride: u64,
    records: u64,
    left: u64,
}

impl Stride {
    /// `n` visits in steps of `stride` records.
    pub(super) fn new(n: u64, stride: u64) -> Self {
        Self { position: 0, wraps: 0, stride, records: n, left: n }
    }

    /// The next record and those behind it, `count` together or up to the end of the part.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<Place> {
        self.left = self.left.checked_sub(1)?;
        let first = self.position;
        self.advance();
        Some(Place { first, count: count.min(self.records - first) })
    }

    #[inline]
    fn advance(&mut self) {
        let reach = self.position.saturating_add(1).saturating_add(self.stride);
        // n >= 1 here, as `left` was at least 1.
        if reach < self.records - 1 {
            self.position += self.stride;
            return;
        }
        // Wraps modulo n, without dividing in the loop: each wrap follows a visit, so it reaches n
        // at most once.
        self.wraps += 1;
        if self.wraps == self.records {
            self.wraps = 0;
        }
        self.position = if self.records <= self.stride { 0 } else { self.wraps };
    }
}
