//! The memory that records are written from and read into.
//!
//! A pool is a power of two of slots, each one record long, at least two and at least [`POOL`]
//! bytes together. Record r always uses slot r mod slots, so consecutive records come from
//! different memory and what a slot holds is known from the record alone. The memory begins on a
//! page; slots of records that are multiples of the logical block size are aligned as `O_DIRECT`
//! asks.
//!
//! A slot is lent out as `&mut [u8]`: while an operation is in flight its I/O engine holds the only
//! reference, and nothing else can look at the bytes.
//!
//! A pool to read into starts as zeros. Each worker has its own pool (and a second one when it
//! verifies), so `n` workers take `n` times 4 MiB or more, and that memory counts where the memory
//! of the run is limited.

use std::num::NonZeroUsize;

use model::{Bytes, phase::Fill};
use rustix::io::Errno;

use crate::{
    error::{Fault, Memory},
    mapping::Pages,
};

/// The least size of a pool: large enough that no compressor or deduplicator of a filesystem sees a
/// repetition within its window, small enough for the caches of a CPU.
pub(crate) const POOL: u64 = 4 * Bytes::MIB;

/// The unit in which random bytes and zeros alternate, and a page of the pattern.
const PAGE: usize = 4096;

/// Memory for the records of one worker; see the module.
pub(crate) struct Pool {
    pages: Pages,
    record: usize,
    slots: usize,
}

impl Pool {
    /// A pool of zeros for records of `record` bytes, at least 1.
    pub(crate) fn new(record: Bytes) -> Result<Self, Fault> {
        let slots = POOL.div_ceil(record.0).max(2).next_power_of_two();
        let bytes = slots.saturating_mul(record.0);
        let fault = |errno: Errno| Fault::Memory {
            what: Memory::Buffers,
            bytes,
            errno: errno.raw_os_error(),
        };
        let too_large = |_| fault(Errno::NOMEM);
        let len = usize::try_from(bytes).map_err(too_large)?;
        let len = NonZeroUsize::new(len).ok_or_else(|| fault(Errno::NOMEM))?;
        let pages = Pages::new(len).map_err(fault)?;
        let record = usize::try_from(record.0).map_err(too_large)?;
        let slots = usize::try_from(slots).map_err(too_large)?;
        Ok(Self { pages, record, slots })
    }

    /// A pool that holds what `fill` says, apart from stamps; the same for every worker and host.
    ///
    /// [`Fill::Random`]: of each 4 KiB the first share is random, the rest zero; the generator
    /// (`fastrand`) is seeded with the seed of the fill. [`Fill::PagePattern`]: eight bytes of 0x20
    /// at the start of each record and of each further 4 KiB of it, zeros elsewhere.
    pub(crate) fn filled(record: Bytes, fill: Fill) -> Result<Self, Fault> {
        let mut pool = Self::new(record)?;
        match fill {
            Fill::Random { entropy, seed } => {
                let mut random = fastrand::Rng::with_seed(seed);
                let share = random_share(entropy);
                for page in pool.pages.bytes_mut().chunks_mut(PAGE) {
                    let end = share.min(page.len());
                    random.fill(&mut page[..end]);
                }
            }
            Fill::PagePattern => {
                let record = pool.record;
                for slot in pool.pages.bytes_mut().chunks_mut(record) {
                    for page in slot.chunks_mut(PAGE) {
                        let end = page.len().min(8);
                        page[..end].fill(0x20);
                    }
                }
            }
        }
        Ok(pool)
    }

    /// Lends out the slots. Allocates the table of slots here and nothing later.
    pub(crate) fn slots(&mut self) -> Slots<'_> {
        let slots: Vec<_> =
            self.pages.bytes_mut().chunks_exact_mut(self.record).map(Some).collect();
        assert_eq!(slots.len(), self.slots, "the pool is cut into whole records");
        Slots { slots: slots.into() }
    }
}

/// Bytes of each 4 KiB that are random.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..=1, so the product lies within 0..=4096"
)]
fn random_share(entropy: f64) -> usize {
    (entropy.clamp(0.0, 1.0) * 4096.0).round() as usize
}

/// The slots of a pool that no operation holds.
pub(crate) struct Slots<'p> {
    slots: Box<[Option<&'p mut [u8]>]>,
}

impl<'p> Slots<'p> {
    /// How many slots there are, free or not; a power of two.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    // A mask instead of a division, as the number of slots is a power of two.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the mask keeps less than a usize")]
    fn index(&self, record: u64) -> usize {
        (record & (self.slots.len() as u64 - 1)) as usize
    }

    /// The slot of a record; `None` while another operation holds it.
    #[inline]
    pub(crate) fn take(&mut self, record: u64) -> Option<&'p mut [u8]> {
        let index = self.index(record);
        self.slots[index].take()
    }

    /// Puts the slot of a record back.
    #[inline]
    pub(crate) fn give(&mut self, record: u64, slot: &'p mut [u8]) {
        let index = self.index(record);
        self.slots[index] = Some(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_cover_the_pool_and_come_back() {
        for (record, slots) in [(4096, 1024), (1000, 8192), (3 << 20, 2), (16 << 20, 2)] {
            let mut pool = Pool::new(Bytes(record)).unwrap();
            let mut free = pool.slots();
            assert_eq!(free.len(), slots, "record {record}");
            let slot = free.take(5).unwrap();
            assert_eq!(slot.len() as u64, record);
            assert!(free.take(5 + slots as u64).is_none(), "one holder at a time");
            free.give(5, slot);
            assert!(free.take(5).is_some());
        }
    }

    #[test]
    fn slots_of_whole_blocks_are_aligned() {
        let mut pool = Pool::new(Bytes::kib(12)).unwrap();
        let mut slots = pool.slots();
        for record in 0..slots.len() as u64 {
            assert_eq!(slots.take(record).unwrap().as_ptr().align_offset(4096), 0);
        }
    }

    #[test]
    fn a_share_of_each_page_is_random_and_the_seed_decides() {
        let fill = |seed| Fill::Random { entropy: 0.25, seed };
        let mut pool = Pool::filled(Bytes::kib(64), fill(7)).unwrap();
        for page in pool.pages.bytes_mut().chunks(PAGE) {
            assert!(page[1024..].iter().all(|byte| *byte == 0));
            // 1024 random bytes hold about 4 zeros; 100 would be no accident.
            assert!(page[..1024].iter().filter(|byte| **byte == 0).count() < 100);
        }
        let mut same = Pool::filled(Bytes::kib(64), fill(7)).unwrap();
        let mut other = Pool::filled(Bytes::kib(64), fill(8)).unwrap();
        assert!(pool.pages.bytes_mut() == same.pages.bytes_mut());
        assert!(pool.pages.bytes_mut() != other.pages.bytes_mut());
    }

    #[test]
    fn the_page_pattern_is_eight_spaces_a_page() {
        let mut pool = Pool::filled(Bytes(10_000), Fill::PagePattern).unwrap();
        let slot = pool.slots().take(3).unwrap();
        for (index, byte) in slot.iter().enumerate() {
            assert_eq!(*byte, if index % PAGE < 8 { 0x20 } else { 0 }, "at {index}");
        }
    }
}
