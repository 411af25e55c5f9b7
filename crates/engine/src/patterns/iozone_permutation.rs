//! IOzone permutation: one fixed permutation per number of blocks.
//!
//! MT19937-64 (Matsumoto and Nishimura) is seeded by the key array of its authors' reference
//! output. Then for i in 0..n, block i and block (next random number mod n) are swapped. This
//! shuffle is not uniform, because a uniform one (Fisher and Yates) draws from the remaining blocks
//! only. Published results use it, and it is the same on every host.

use model::phase::AccessPattern;
use rand_mt::Mt64;

use super::BlockSpan;
use crate::error::{Fault, Memory};

const KEY: [u64; 4] = [0x12345, 0x23456, 0x34567, 0x45678];

/// Permutation of 0..n for `access`: empty unless it is [`AccessPattern::IozonePermutation`].
///
/// Takes 8 bytes and one draw per block, so it is created before the clock starts.
///
/// # Errors
/// [`Fault::Memory`] if there is not enough memory.
pub(super) fn permutation(access: AccessPattern, n: u64) -> Result<Vec<u64>, Fault> {
    if access != AccessPattern::IozonePermutation {
        return Ok(Vec::new());
    }
    let too_large = || Fault::Memory {
        what: Memory::Permutation,
        bytes: n.saturating_mul(8),
        errno: libc::ENOMEM,
    };
    let len = usize::try_from(n).map_err(|_| too_large())?;
    let mut order = Vec::new();
    order.try_reserve_exact(len).map_err(|_| too_large())?;
    order.extend(0..n);
    let mut random = Mt64::new_with_key(KEY);
    for i in 0..len {
        let k = random.next_u64() % n;
        #[expect(clippy::cast_possible_truncation, reason = "below n, which is a usize")]
        order.swap(i, k as usize);
    }
    Ok(order)
}

/// One pass over a permutation.
#[derive(Debug)]
pub(super) struct IozonePermutation<'a> {
    order: std::slice::Iter<'a, u64>,
    blocks: u64,
}

impl<'a> IozonePermutation<'a> {
    /// Pass over this permutation.
    pub(super) fn new(permutation: &'a [u64]) -> Self {
        Self { order: permutation.iter(), blocks: permutation.len() as u64 }
    }

    /// Next block of the permutation and the blocks after it: `count` blocks, or fewer at the end
    /// of the part.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<BlockSpan> {
        let first = *self.order.next()?;
        Some(BlockSpan { first, count: count.min(self.blocks - first) })
    }
}
