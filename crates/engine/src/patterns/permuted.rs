//! The permuted order: every record once, as if drawn without replacement, in constant memory.

use fastrand::Rng;

use super::{Place, bijection::Bijection};

/// One pass over a permutation.
#[derive(Debug)]
pub(super) struct Permuted {
    next: u64,
    records: u64,
    bijection: Bijection,
}

impl Permuted {
    /// Over `n` records, in a permutation drawn from a generator.
    pub(super) fn new(n: u64, random: &mut Rng) -> Self {
        Self { next: 0, records: n, bijection: Bijection::new(n, random) }
    }

    /// The next record and those behind it, `count` together or up to the end of the part.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<Place> {
        if self.next == self.records {
            return None;
        }
        let first = self.bijection.at(self.next);
        self.next += 1;
        Some(Place { first, count: count.min(self.records - first) })
    }
}
