//! Patterns without jumps: sequential, backward, and same block.

use super::BlockSpan;
use crate::io::Kind;

/// Ascending from a first block, with adjacent operations.
#[derive(Debug)]
pub(super) struct Forward {
    next: u64,
    left: u64,
}

impl Forward {
    /// `n` blocks starting at `first`.
    pub(super) fn new(first: u64, n: u64) -> Self {
        Self { next: first, left: n }
    }

    /// Next `count` blocks, or the rest.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<BlockSpan> {
        let count = count.min(self.left);
        if count == 0 {
            return None;
        }
        let first = self.next;
        self.next += count;
        self.left -= count;
        Some(BlockSpan { first, count })
    }
}

/// Two positions, one of the reads and one of the writes, with adjacent operations.
#[derive(Debug)]
pub(super) struct PerDirection {
    read: u64,
    write: u64,
    left: u64,
}

impl PerDirection {
    /// `n` blocks in total; both positions start at block 0.
    pub(super) fn new(n: u64) -> Self {
        Self { read: 0, write: 0, left: n }
    }

    /// Next `count` blocks of this direction, or the rest.
    #[inline]
    pub(super) fn next(&mut self, kind: Kind, count: u64) -> Option<BlockSpan> {
        let count = count.min(self.left);
        if count == 0 {
            return None;
        }
        let position = match kind {
            Kind::Read => &mut self.read,
            Kind::Write => &mut self.write,
        };
        let first = *position;
        *position += count;
        self.left -= count;
        Some(BlockSpan { first, count })
    }
}

/// Descending from the last block to the first, with adjacent operations.
#[derive(Debug)]
pub(super) struct Backward {
    left: u64,
}

impl Backward {
    /// Blocks n-1, … 1, 0.
    pub(super) fn new(n: u64) -> Self {
        Self { left: n }
    }

    /// Previous `count` blocks, or the rest.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<BlockSpan> {
        let count = count.min(self.left);
        if count == 0 {
            return None;
        }
        self.left -= count;
        Some(BlockSpan { first: self.left, count })
    }
}

/// Block 0, repeatedly.
#[derive(Debug)]
pub(super) struct SameBlock {
    left: u64,
}

impl SameBlock {
    /// `n` operations.
    pub(super) fn new(n: u64) -> Self {
        Self { left: n }
    }

    /// First `count` blocks.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<BlockSpan> {
        self.left = self.left.checked_sub(1)?;
        Some(BlockSpan { first: 0, count })
    }
}
