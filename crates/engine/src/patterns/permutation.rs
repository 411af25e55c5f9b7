//! Permutation pattern: every block once, as if drawn without replacement.

use fastrand::Rng;

use super::{BlockSpan, bijection::Bijection};
use crate::error::{Fault, Memory};

/// One pass over a permutation.
#[derive(Debug)]
pub(super) struct Permutation {
    next: u64,
    blocks: u64,
    bijection: Bijection,
    // One bit for each accessed block; empty if operations have one block.
    accessed: Box<[u64]>,
}

impl Permutation {
    /// Pass over `n` blocks, in a permutation drawn from a generator. With `longer`, operations can
    /// have several blocks.
    pub(super) fn new(n: u64, longer: bool, random: &mut Rng) -> Self {
        let words = if longer { word_count(n).unwrap_or(0) } else { 0 };
        let bijection = Bijection::new(n, random);
        Self { next: 0, blocks: n, bijection, accessed: vec![0; words].into() }
    }

    /// Checks that memory for the bits of a pass is available.
    ///
    /// # Errors
    /// [`Fault::Memory`] if it is not.
    pub(super) fn check_memory(n: u64) -> Result<(), Fault> {
        let what = Memory::Permutation;
        let fault = || Fault::Memory { what, bytes: n.div_ceil(8), errno: libc::ENOMEM };
        let mut bits: Vec<u64> = Vec::new();
        bits.try_reserve_exact(word_count(n).ok_or_else(fault)?).map_err(|_| fault())
    }

    /// Starts another pass, in another permutation.
    pub(super) fn start_over(&mut self, random: &mut Rng) {
        self.next = 0;
        self.bijection = Bijection::new(self.blocks, random);
        self.accessed.fill(0);
    }

    /// Next block of the permutation that was not accessed, and the blocks after it: `count`
    /// blocks, or fewer before an accessed block and at the end of the part.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<BlockSpan> {
        if !self.accessed.is_empty() {
            return self.next_free(count);
        }
        if self.next == self.blocks {
            return None;
        }
        let first = self.bijection.at(self.next);
        self.next += 1;
        Some(BlockSpan { first, count: 1 })
    }

    fn next_free(&mut self, count: u64) -> Option<BlockSpan> {
        while self.next < self.blocks {
            let first = self.bijection.at(self.next);
            self.next += 1;
            let end = first.saturating_add(count).min(self.blocks);
            let mut taken = first;
            while taken < end && self.take(taken) {
                taken += 1;
            }
            if taken > first {
                return Some(BlockSpan { first, count: taken - first });
            }
        }
        None
    }

    /// Marks a block as accessed. Returns false if it was accessed before.
    fn take(&mut self, block: u64) -> bool {
        let word = &mut self.accessed[(block / 64) as usize];
        let bit = 1 << (block % 64);
        let free = *word & bit == 0;
        *word |= bit;
        free
    }
}

/// Words with a bit for each of `n` blocks.
fn word_count(n: u64) -> Option<usize> {
    usize::try_from(n.div_ceil(64)).ok()
}
