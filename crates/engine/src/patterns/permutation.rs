//! Permutation pattern: every block once, as if drawn without replacement, in constant memory.

use fastrand::Rng;

use super::{BlockSpan, bijection::Bijection};

/// One pass over a permutation.
#[derive(Debug)]
pub(super) struct Permutation {
    next: u64,
    blocks: u64,
    bijection: Bijection,
}

impl Permutation {
    /// Pass over `n` blocks, in a permutation drawn from a generator.
    pub(super) fn new(n: u64, random: &mut Rng) -> Self {
        Self { next: 0, blocks: n, bijection: Bijection::new(n, random) }
    }

    /// Next block of the permutation and the blocks after it: `count` blocks, or fewer at the end
    /// of the part.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<BlockSpan> {
        if self.next == self.blocks {
            return None;
        }
        let first = self.bijection.at(self.next);
        self.next += 1;
        Some(BlockSpan { first, count: count.min(self.blocks - first) })
    }
}
