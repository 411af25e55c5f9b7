//! Skip pattern: a distance between the end of an operation and the start of the next one.
//!
//! Behind the end of the part, a positive distance continues at block 0. A negative one continues
//! at the end of the part plus the distance. Example: with 8 blocks, operations of one block are at
//! 0, 3, 6, 0, 3, 6, 0, 3 with the distance 2, and at 0, 6, 5, 4, 3, 2, 1, 0 with the distance -2.
//! A pass ends after n blocks, or after an operation that ends at the end of the part, as in fio.

use super::BlockSpan;

/// One pass; see the module.
#[derive(Debug)]
pub(super) struct Skip {
    next: u64,
    distance: i64,
    blocks: u64,
    left: u64,
}

impl Skip {
    /// `n` blocks in total, with this distance.
    pub(super) fn new(n: u64, distance: i64) -> Self {
        Self { next: 0, distance, blocks: n, left: n }
    }

    /// Next `count` blocks, or fewer at the end of the part or of the pass.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<BlockSpan> {
        let first = self.next;
        let count = count.min(self.left).min(self.blocks - first);
        if count == 0 {
            return None;
        }
        self.left -= count;
        let end = first + count;
        if end == self.blocks {
            self.left = 0;
        }
        let within = |place: &u64| *place < self.blocks;
        self.next = end.checked_add_signed(self.distance).filter(within).unwrap_or_else(|| {
            let last = self.blocks.checked_add_signed(self.distance.min(0));
            // A distance beyond the part repeats block 0.
            last.filter(within).unwrap_or(0)
        });
        Some(BlockSpan { first, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(n: u64, distance: i64, count: u64) -> Vec<u64> {
        let mut skip = Skip::new(n, distance);
        std::iter::from_fn(|| skip.next(count)).map(|span| span.first).collect()
    }

    #[test]
    fn places_are_those_of_fio() {
        assert_eq!(places(8, 2, 1), [0, 3, 6, 0, 3, 6, 0, 3]);
        assert_eq!(places(9, 1, 1), [0, 2, 4, 6, 8], "the end of the file ends the pass");
        assert_eq!(places(8, -2, 1), [0, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(places(8, -3, 1), [0, 5, 3, 1, 5, 3, 1, 5]);
        assert_eq!(places(8, -1, 1), [0; 8]);
        assert_eq!(places(8, -100, 1), [0; 8]);
        assert_eq!(places(8, 1, 2), [0, 3, 6]);
    }
}
