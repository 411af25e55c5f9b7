//! The shuffled order: one fixed permutation for each number of records.
//!
//! MT19937-64 (Matsumoto and Nishimura) seeded by the key array that its authors use in their
//! reference output; then for i in 0..n, records i and (next mod n) trade places. That is not a
//! uniform shuffle (Fisher and Yates draw from the rest only), but it is the one that published
//! results used, and it is the same on every host.

use model::phase::Access;
use rand_mt::Mt64;

use super::Place;
use crate::error::{Fault, Memory};

const KEY: [u64; 4] = [0x12345, 0x23456, 0x34567, 0x45678];

/// The permutation of 0..n that `access` needs: empty unless it is [`Access::Shuffled`].
///
/// Takes 8 bytes and one draw for each record, so it is built before the clock starts.
///
/// # Errors
/// [`Fault::Memory`] when it does not fit into memory.
pub(super) fn permutation(access: Access, n: u64) -> Result<Vec<u64>, Fault> {
    if access != Access::Shuffled {
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
pub(super) struct Shuffled<'a> {
    order: std::slice::Iter<'a, u64>,
    records: u64,
}

impl<'a> Shuffled<'a> {
    /// Over this permutation.
    pub(super) fn new(permutation: &'a [u64]) -> Self {
        Self { order: permutation.iter(), records: permutation.len() as u64 }
    }

    /// The next record and those behind it, `count` together or up to the end of the part.
    #[inline]
    pub(super) fn next(&mut self, count: u64) -> Option<Place> {
        let first = *self.order.next()?;
        Some(Place { first, count: count.min(self.records - first) })
    }
}
