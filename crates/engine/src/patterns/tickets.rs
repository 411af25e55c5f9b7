//! Tickets: numbers whose remainders decide both the place and what is done there.

use fastrand::Rng;

use super::Place;

/// Of an update with tickets, those that are multiples of this are written back.
const WRITTEN_BACK: u64 = 10;

/// One pass of draws.
#[derive(Debug)]
pub(super) struct Tickets {
    left: u64,
    records: u64,
    // ceil(2^64 / records), or 0 for one record; of no use where there are 2^31 or more.
    inverse: u64,
}

impl Tickets {
    /// `n` draws from `n` records.
    pub(super) fn new(n: u64) -> Self {
        Self { left: n, records: n, inverse: (u64::MAX / n.max(1)).wrapping_add(1) }
    }

    /// The place of the next ticket, and whether an update writes it back. Operations of several
    /// records are moved back until they fit.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Rng, count: u64) -> Option<(Place, bool)> {
        self.left = self.left.checked_sub(1)?;
        // The upper 31 bits: the range of rand(3) in the C library of GNU.
        let ticket = random.u64(..) >> 33;
        let first = self.remainder(ticket).min(self.records - count);
        Some((Place { first, count }, ticket.is_multiple_of(WRITTEN_BACK)))
    }

    /// `ticket mod records` without a division: the fraction that the product with the inverse
    /// leaves, times the divisor (Lemire, Kaser, and Kurz, "Faster remainder by direct
    /// computation", Software: Practice and Experience 49(6), 2019; exact for numbers of 32 bits).
    #[inline]
    fn remainder(&self, ticket: u64) -> u64 {
        if self.records > ticket {
            return ticket;
        }
        let fraction = u128::from(self.inverse.wrapping_mul(ticket));
        ((fraction * u128::from(self.records)) >> 64) as u64
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
