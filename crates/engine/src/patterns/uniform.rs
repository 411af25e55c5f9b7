//! The random order: independent, every place as likely as any other.

use fastrand::Rng;

use super::{Place, draw::below};

/// One pass of draws.
#[derive(Debug)]
pub(super) struct Uniform {
    left: u64,
    records: u64,
}

impl Uniform {
    /// `n` draws from `n` records.
    pub(super) fn new(n: u64) -> Self {
        Self { left: n, records: n }
    }

    /// `count` records, at most n, from anywhere where they fit.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Rng, count: u64) -> Option<Place> {
        self.left = self.left.checked_sub(1)?;
        let first = below(random.u64(..), self.records - count + 1);
        Some(Place { first, count })
    }
}
