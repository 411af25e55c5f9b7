//! Lengths of operations, drawn by weight.

use fastrand::Rng;
use model::phase::Length;

use super::alias::Alias;

/// Distribution of lengths in blocks.
#[derive(Debug)]
pub(super) struct Lengths {
    blocks: Box<[u64]>,
    alias: Alias,
}

impl Lengths {
    /// `None` if every operation moves one block. No length exceeds the segment of `part` blocks.
    pub(super) fn new(lengths: &[Length], part: u64) -> Option<Self> {
        if lengths.is_empty() {
            return None;
        }
        let blocks = lengths.iter().map(|length| u64::from(length.blocks).min(part)).collect();
        let weights: Vec<f64> = lengths.iter().map(|length| f64::from(length.weight)).collect();
        Some(Self { blocks, alias: Alias::new(&weights) })
    }

    /// Smallest length.
    pub(super) fn smallest(&self) -> u64 {
        self.blocks.iter().copied().min().unwrap_or(1)
    }

    /// Draws a length.
    #[inline]
    pub(super) fn draw(&self, random: &mut Rng) -> u64 {
        self.blocks[self.alias.choose(random.u64(..))]
    }
}
