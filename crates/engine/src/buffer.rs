//! I/O buffers.
//!
//! A pool is divided into slots, each as long as the longest operation and aligned for `O_DIRECT`.
//! There are three classes of slots:
//!
//! - write slots, filled before the clock starts. Together they have at least [`POOL`] bytes and
//!   are used in turn, so that consecutive operations write different data. Marks are written into
//!   the slot, and updates write the data that they have read; for both, one slot per operation in
//!   flight is sufficient.
//! - duplicate slots, all with the same content.
//! - read slots, one per operation in flight. Their content is not used. There are few of them, so
//!   that most of the CPU caches remain for the kernel.
//!
//! A slot is lent as `&mut [u8]`: while an operation is in flight, its I/O engine holds the only
//! reference. Each worker has its own pool, which counts toward the memory limit of the run.

use std::{collections::VecDeque, num::NonZeroUsize};

use model::{
    Bytes,
    phase::{DataPattern, IoEngineKind, Stream},
};
use rustix::io::Errno;

use crate::{
    error::{Fault, Memory},
    io::{AccessMode, updates},
    mapping::Pages,
};

/// Minimum size of all write slots together. The content of a slot is written again after this many
/// bytes. No compressor of a filesystem detects the repetition, because its window is not larger
/// (btrfs and erofs at most 128 KiB, squashfs and zfs usually 128 KiB, f2fs 1 MiB). This size also
/// fits in the second-level cache of most CPUs.
pub(crate) const POOL: u64 = Bytes::MIB;

/// Length in bytes of a unit that begins with random bytes and ends with zeros. Also the length of
/// a page of the page pattern.
const PAGE: usize = 4096;

/// Class of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Write slot.
    Write,
    /// Write slot for duplicates.
    Duplicate,
    /// Read slot.
    Read,
}

/// I/O buffers of one worker; see the module.
pub(crate) struct Pool {
    pages: Pages,
    slot: usize,
    counts: [usize; 3],
}

impl Pool {
    /// Creates a pool for a worker of this stream with up to `depth` operations in flight.
    ///
    /// [`DataPattern::Random`]: the first part of each 4 KiB is random, the rest zero. The
    /// generator (`fastrand`) is seeded with the seed of the stream, so the data is the same for
    /// all workers and hosts. The pattern of the stream replaces it. [`DataPattern::PagePattern`]:
    /// eight bytes of 0x20 at the start of
    /// every 4 KiB of a slot, otherwise zeros. [`DataPattern::Marks`]: zeros, into which marks are
    /// written later ([`crate::payload`]); with [`IoEngineKind::Bytewise`], byte i is `i mod 128`
    /// instead, as in bonnie++. Read slots start as zeros.
    pub(crate) fn new(stream: &Stream, mode: AccessMode, depth: u32) -> Result<Self, Fault> {
        let fault = |bytes, errno: Errno| Fault::Memory {
            what: Memory::Buffers,
            bytes,
            errno: errno.raw_os_error(),
        };
        // Aligned for sectors of 512 bytes. If sectors are larger, the block size must be a
        // multiple of them, so the slots are aligned as well.
        let slot = stream.longest_operation().0.checked_next_multiple_of(512).unwrap_or(u64::MAX);
        let depth = u64::from(depth);
        let duplicates = match stream.data {
            DataPattern::Random { duplicate_fraction: duplicates, .. } => duplicates > 0.0,
            DataPattern::PagePattern | DataPattern::Marks => false,
        };
        // The content of the slots need not differ for marks and updates.
        let one = stream.data == DataPattern::Marks || updates(stream);
        let least = if one { 1 } else { POOL.div_ceil(slot) };
        let write = if mode.writes() { least.max(depth) } else { 0 };
        let duplicate = if mode.writes() && duplicates { depth } else { 0 };
        let read = if mode.reads() { depth } else { 0 };
        let bytes = slot.saturating_mul(write + duplicate + read);
        let too_large = |_| fault(bytes, Errno::NOMEM);
        let len = usize::try_from(bytes).map_err(too_large)?;
        let len = NonZeroUsize::new(len).ok_or_else(|| fault(bytes, Errno::NOMEM))?;
        let pages = Pages::new(len).map_err(|errno| fault(bytes, errno))?;
        let slot = usize::try_from(slot).map_err(too_large)?;
        // Each count is at most `len` divided by the slot size.
        let [write, duplicate, read] =
            [write, duplicate, read].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let mut pool = Self { pages, slot, counts: [write, duplicate, read] };
        pool.fill(stream);
        Ok(pool)
    }

    fn fill(&mut self, stream: &Stream) {
        let seed = stream.seed;
        let [write, duplicate, _] = self.counts.map(|count| count * self.slot);
        let (write, rest) = self.pages.bytes_mut().split_at_mut(write);
        match stream.data {
            DataPattern::Random { incompressible_fraction: entropy, .. } => {
                let share = random_share(entropy);
                random(write, share, seed);
                for slot in write.chunks_exact_mut(self.slot) {
                    // Nothing is written without a pattern.
                    for (byte, own) in slot.iter_mut().zip(stream.pattern.iter().cycle()) {
                        *byte = *own;
                    }
                }
                for slot in rest[..duplicate].chunks_exact_mut(self.slot) {
                    random(slot, share, !seed);
                }
            }
            DataPattern::Marks if stream.io_engine == IoEngineKind::Bytewise => {
                for slot in write.chunks_exact_mut(self.slot) {
                    // 0, 1, … 127, repeated.
                    for (byte, value) in slot.iter_mut().zip((0..=0x7f).cycle()) {
                        *byte = value;
                    }
                }
            }
            DataPattern::Marks => {}
            DataPattern::PagePattern => {
                for slot in write.chunks_exact_mut(self.slot) {
                    for page in slot.chunks_mut(PAGE) {
                        let end = page.len().min(8);
                        page[..end].fill(0x20);
                    }
                }
            }
        }
    }

    /// Address and length of the whole pool, for registering it with the kernel.
    pub(crate) fn region(&mut self) -> (*mut u8, usize) {
        let bytes = self.pages.bytes_mut();
        (bytes.as_mut_ptr(), bytes.len())
    }

    /// Lends the slots. Allocates the lists of free slots, which do not grow later.
    pub(crate) fn slots(&mut self) -> Slots<'_> {
        let mut buffers = (0..).zip(self.pages.bytes_mut().chunks_exact_mut(self.slot));
        let [write, duplicate, read] = self.counts;
        let mut written =
            [write, duplicate].map(|count| VecDeque::from_iter(buffers.by_ref().take(count)));
        let read = Vec::from_iter(buffers.by_ref().take(read));
        assert!(buffers.next().is_none(), "the pool consists of whole slots");
        written.iter_mut().for_each(|free| free.shrink_to_fit());
        let len = write + duplicate + read.len();
        Slots { written, read, borders: [write, write + duplicate], len }
    }
}

/// Fills the first `share` bytes of every 4 KiB with random bytes.
pub(crate) fn random(bytes: &mut [u8], share: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for page in bytes.chunks_mut(PAGE) {
        let end = share.min(page.len());
        random.fill(&mut page[..end]);
    }
}

/// Random bytes per 4 KiB.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped, so the product is at most 4096"
)]
pub(crate) fn random_share(entropy: f64) -> usize {
    (entropy.clamp(0.0, 1.0) * 4096.0).round() as usize
}

/// Free slots of a pool.
pub(crate) struct Slots<'p> {
    // Free slots with their numbers. The lists do not grow, because only slots taken before are
    // returned. Write slots: first in, first out, so that the data differs.
    written: [VecDeque<(u32, &'p mut [u8])>; 2],
    // Read slots: last in, first out. The next operation uses the slot that was returned last, so
    // that a queue does not cycle through all of the memory with each batch.
    read: Vec<(u32, &'p mut [u8])>,
    // Numbers of the first slot of the second and the third class.
    borders: [usize; 2],
    len: usize,
}

impl<'p> Slots<'p> {
    /// Number of slots, free or not.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Next free slot of a class and its number; `None` while all are in flight.
    #[inline(always)]
    pub(crate) fn take(&mut self, class: Class) -> Option<(u32, &'p mut [u8])> {
        match class {
            Class::Write | Class::Duplicate => self.written[class as usize].pop_front(),
            Class::Read => self.read.pop(),
        }
    }

    /// Returns a slot.
    #[inline(always)]
    pub(crate) fn give(&mut self, slot: u32, buffer: &'p mut [u8]) {
        let number = slot as usize;
        if number >= self.borders[1] {
            self.read.push((slot, buffer));
        } else {
            self.written[usize::from(number >= self.borders[0])].push_back((slot, buffer));
        }
    }

    /// Bytes of a free slot, for inspection before the loop.
    pub(crate) fn peek(&mut self, slot: usize) -> &mut [u8] {
        let (number, bytes) = match slot {
            slot if slot < self.borders[0] => &mut self.written[0][slot],
            slot if slot < self.borders[1] => &mut self.written[1][slot - self.borders[0]],
            _ => &mut self.read[slot - self.borders[1]],
        };
        assert_eq!(*number as usize, slot, "before the loop all slots are free and in order");
        bytes
    }

    /// Numbers of the write slots, and of the duplicate slots.
    pub(crate) fn written(&self) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        (0..self.borders[0], self.borders[0]..self.borders[1])
    }
}

#[cfg(test)]
mod tests {
    use model::phase::{Direction, IoEngineKind};

    use super::*;
    use crate::io::conformance::stream;

    fn plan(block_size: u64, fill: DataPattern) -> Stream {
        Stream {
            block_size: Bytes(block_size),
            data: fill,
            seed: 7,
            ..stream(IoEngineKind::Offset, Direction::Write, 1)
        }
    }

    fn random(entropy: f64, duplicates: f64) -> DataPattern {
        DataPattern::Random { incompressible_fraction: entropy, duplicate_fraction: duplicates }
    }

    #[test]
    fn write_slots_cover_the_pool_and_are_reused_in_turn() {
        for (block_size, depth, count) in
            [(4096, 1, 256), (1000, 1, 1024), (4 << 20, 1, 1), (1 << 20, 8, 8)]
        {
            let mut pool =
                Pool::new(&plan(block_size, random(1.0, 0.0)), AccessMode::Write, depth).unwrap();
            let mut slots = pool.slots();
            assert_eq!(slots.len(), count, "block size {block_size}");
            let taken: Vec<_> = (0..count).map(|_| slots.take(Class::Write).unwrap()).collect();
            assert!(taken.iter().map(|(slot, _)| *slot as usize).eq(0..count));
            assert!(slots.take(Class::Write).is_none(), "one holder at a time");
            for (slot, buffer) in taken {
                assert!(
                    buffer.len() as u64 >= block_size && buffer.as_ptr().align_offset(512) == 0
                );
                slots.give(slot, buffer);
            }
            assert_eq!(slots.take(Class::Write).unwrap().0, 0);
        }
    }

    #[test]
    fn slot_classes_are_separate_and_readers_have_enough_slots() {
        let mut pool = Pool::new(&plan(4096, random(1.0, 0.5)), AccessMode::Both, 3).unwrap();
        let mut slots = pool.slots();
        assert_eq!(slots.len(), 256 + 3 + 3);
        assert_eq!(slots.written(), (0..256, 256..259));
        let (read, buffer) = slots.take(Class::Read).unwrap();
        assert_eq!(read, 261);
        slots.give(read, buffer);
        let (duplicate, buffer) = slots.take(Class::Duplicate).unwrap();
        let copy = buffer.to_vec();
        slots.give(duplicate, buffer);
        let (another, buffer) = slots.take(Class::Duplicate).unwrap();
        assert_ne!(duplicate, another);
        assert!(copy == buffer, "duplicates are equal");
        let mut pool = Pool::new(&plan(4096, random(1.0, 0.0)), AccessMode::Read, 1).unwrap();
        assert_eq!(pool.slots().len(), 1);
    }

    #[test]
    fn part_of_each_page_is_random_and_depends_on_the_seed() {
        let content = |seed| {
            let plan = Stream { seed, ..plan(64 << 10, random(0.25, 0.0)) };
            let mut pool = Pool::new(&plan, AccessMode::Write, 1).unwrap();
            pool.pages.bytes_mut().to_vec()
        };
        let seven = content(7);
        for page in seven.chunks(PAGE) {
            assert!(page[1024..].iter().all(|byte| *byte == 0));
            // 1024 random bytes contain about 4 zeros; 100 would be implausible.
            assert!(page[..1024].iter().filter(|byte| **byte == 0).count() < 100);
        }
        assert!(seven == content(7));
        assert!(seven != content(8));
    }

    #[test]
    fn the_page_pattern_is_eight_spaces_per_page() {
        let mut pool =
            Pool::new(&plan(10_240, DataPattern::PagePattern), AccessMode::Write, 1).unwrap();
        let (_, slot) = pool.slots().take(Class::Write).unwrap();
        for (index, byte) in slot.iter().enumerate() {
            assert_eq!(*byte, if index % PAGE < 8 { 0x20 } else { 0 }, "at {index}");
        }
    }
}
