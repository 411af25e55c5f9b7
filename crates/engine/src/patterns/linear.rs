//! Orders without jumps: forward, backward, and staying in place.

use super::Place;

/// From a first record on upward, operations end to end.
#[derive(Debug)]
pub(super) struct Forward {
    next: u64,
    left: u64,
}

impl Forward {
    /// `n` records from `first` on.
    pub(super) fn new(first: u64, n: u64) -> Self {
        Self { next: first, left: n }
    }

    /// The next `count` records, or what is left.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<Place> {
        let count = count.min(self.left);
        if count == 0 {
            return None;
        }
        let first = self.next;
        self.next += count;
        self.left -= count;
        Some(Place { first, count })
    }
}

/// From the last record down to the first, operations end to end.
#[derive(Debug)]
pub(super) struct Backward {
    left: u64,
}

impl Backward {
    /// n-1, … 1, 0.
    pub(super) fn new(n: u64) -> Self {
        Self { left: n }
    }

    /// The `count` records before, or what is left.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<Place> {
        let count = count.min(self.left);
        if count == 0 {
            return None;
        }
        self.left -= count;
        Some(Place { first: self.left, count })
    }
}

/// Record 0, again and again.
#[derive(Debug)]
pub(super) struct SameRecord {
    left: u64,
}

impl SameRecord {
    /// `n` visits.
    pub(super) fn new(n: u64) -> Self {
        Self { left: n }
    }

    /// The first `count` records, once more.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<Place> {
        self.left = self.left.checked_sub(1)?;
        Some(Place { first: 0, count })
    }
}
