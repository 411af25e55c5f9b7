//! Random patterns whose positions are multiples of a number of blocks.

use fastrand::Rng;

use super::{BlockSpan, Skewed, Uniform};

/// One pass of draws.
#[derive(Debug)]
pub(super) struct Aligned<'a> {
    draws: Draws<'a>,
    alignment: u64,
    blocks: u64,
}

/// Draws of aligned places.
#[derive(Debug)]
pub(super) enum Draws<'a> {
    Uniform(Uniform),
    Skewed(Skewed<'a>),
}

impl<'a> Aligned<'a> {
    /// Draws of `places`, each of `alignment` blocks, from a part of `blocks` blocks.
    pub(super) fn new(draws: Draws<'a>, alignment: u64, blocks: u64) -> Self {
        Self { draws, alignment, blocks }
    }

    /// `count` blocks, at most those of the part, at the drawn place, or at the last place where
    /// they fit.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Rng, count: u64) -> Option<BlockSpan> {
        let place = match &mut self.draws {
            Draws::Uniform(order) => order.next(random, 1),
            Draws::Skewed(order) => order.next(random, 1),
        }?;
        let first = place.first * self.alignment;
        let first = if first + count > self.blocks { self.last(count) } else { first };
        Some(BlockSpan { first, count })
    }

    /// Last aligned position of `count` blocks.
    #[cold]
    fn last(&self, count: u64) -> u64 {
        (self.blocks - count) / self.alignment * self.alignment
    }
}
