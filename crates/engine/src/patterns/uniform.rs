//! Random pattern: independent and uniform positions.

use fastrand::Rng;

use super::{BlockSpan, draw::below};

/// One pass of draws.
#[derive(Debug)]
pub(super) struct Uniform {
    left: u64,
    blocks: u64,
}

impl Uniform {
    /// `n` draws from `n` blocks.
    pub(super) fn new(n: u64) -> Self {
        Self { left: n, blocks: n }
    }

    /// `count` blocks, at most n, at a random position where they fit.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Rng, count: u64) -> Option<BlockSpan> {
        self.left = self.left.checked_sub(1)?;
        let first = below(random.u64(..), self.blocks - count + 1);
        Some(BlockSpan { first, count })
    }
}
