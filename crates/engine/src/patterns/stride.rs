//! IOzone's stride: traverses the file in steps and wraps to neighboring blocks.
//!
//! The block after p is p + s. If p + 1 + s >= n - 1, the traversal wraps: first to block 1, then
//! to 2, and so on. Example: with n = 21 and s = 17, it is 0, 17, 1, 18, 2, 3, 4, … If n <= s, it
//! always wraps to block 0. For n >= 21 and the default stride of 17, a pass accesses n - 2
//! distinct blocks. The last two blocks are never accessed.

use super::BlockSpan;

/// One pass; see the module.
#[derive(Clone, Debug)]
pub(super) struct Stride {
    position: u64,
    wraps: u64,
    stride: u64,
    blocks: u64,
    left: u64,
}

impl Stride {
    /// `n` operations in steps of `stride` blocks.
    pub(super) fn new(n: u64, stride: u64) -> Self {
        Self { position: 0, wraps: 0, stride, blocks: n, left: n }
    }

    /// Next block of the traversal and the blocks after it: `count` blocks, or fewer at the end of
    /// the part.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<BlockSpan> {
        self.left = self.left.checked_sub(1)?;
        let first = self.position;
        self.advance();
        Some(BlockSpan { first, count: count.min(self.blocks - first) })
    }

    #[inline]
    fn advance(&mut self) {
        let reach = self.position.saturating_add(1).saturating_add(self.stride);
        // n >= 1, because `left` was at least 1.
        if reach < self.blocks - 1 {
            self.position += self.stride;
            return;
        }
        // Wraps modulo n without a division in the loop: each wrap follows an operation, so it
        // reaches n at most once.
        self.wraps += 1;
        if self.wraps == self.blocks {
            self.wraps = 0;
        }
        self.position = if self.blocks <= self.stride { 0 } else { self.wraps };
    }
}
