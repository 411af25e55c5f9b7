//! Tickets: random numbers whose remainders determine both the position and the operation.

use fastrand::Rng;

use super::BlockSpan;

/// Updates with tickets that are multiples of this are written back.
const WRITTEN_BACK: u64 = 10;

/// One pass of draws.
#[derive(Debug)]
pub(super) struct Tickets {
    left: u64,
    blocks: u64,
    // ceil(2^64 / blocks), or 0 for one block; unused for 2^31 blocks or more.
    inverse: u64,
}

impl Tickets {
    /// `n` draws from `n` blocks.
    pub(super) fn new(n: u64) -> Self {
        Self { left: n, blocks: n, inverse: (u64::MAX / n.max(1)).wrapping_add(1) }
    }

    /// Position of the next ticket, and true if an update writes it back. Operations of several
    /// blocks are moved back until they fit.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Rng, count: u64) -> Option<(BlockSpan, bool)> {
        self.left = self.left.checked_sub(1)?;
        // Upper 31 bits: the range of rand(3) in the GNU C library.
        let ticket = random.u64(..) >> 33;
        let first = self.remainder(ticket).min(self.blocks - count);
        Some((BlockSpan { first, count }, ticket.is_multiple_of(WRITTEN_BACK)))
    }

    /// `ticket mod blocks` without a division: the ticket is multiplied by the inverse of the
    /// divisor, and the fractional part of the product is multiplied by the divisor. Example: 7 ·
    /// 1/3 = 2.333…, and 0.333… · 3 = 1 = 7 mod 3 (Lemire, Kaser, and Kurz, "Faster remainder by
    /// direct computation", Software: Practice and Experience 49(6), 2019; exact for 32-bit
    /// numbers).
    #[inline]
    fn remainder(&self, ticket: u64) -> u64 {
        if self.blocks > ticket {
            return ticket;
        }
        let fraction = u128::from(self.inverse.wrapping_mul(ticket));
        ((fraction * u128::from(self.blocks)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_remainder_is_the_remainder(
            n in prop_oneof![1u64..100, 1u64..1 << 31, any::<u64>().prop_map(|n| n.max(1))],
            ticket in 0u64..1 << 31,
        ) {
            prop_assert_eq!(Tickets::new(n).remainder(ticket), ticket % n);
        }
    }
}
