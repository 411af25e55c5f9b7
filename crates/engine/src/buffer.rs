//! The memory that operations are written from and read into.
//!
//! A pool is cut into slots, each as long as the longest operation and aligned as `O_DIRECT` asks.
//! Slots come in three classes:
//!
//! - to write from, filled before the clock starts: at least [`POOL`] bytes together, used in turn,
//!   so that consecutive operations carry different data; but one for marks and for updates, which
//!   change the data themselves;
//! - to write from where a duplicate is wanted: all with the same content;
//! - to read into: as many as operations may be in flight and no more, since what they hold does
//!   not matter and a small footprint keeps the caches for the kernel.
//!
//! A slot is lent out as `&mut [u8]`: while an operation is in flight its I/O engine holds the only
//! reference, and nothing else can look at the bytes. Each worker has a pool of its own, and that
//! memory counts where the memory of the run is limited.

use std::{collections::VecDeque, num::NonZeroUsize};

use model::{
    Bytes,
    phase::{Fill, Interface, Stream},
};
use rustix::io::Errno;

use crate::{
    error::{Fault, Memory},
    io::Purpose,
    mapping::Pages,
    worker::updates,
};

/// The least size of all slots to write from: larger than the window of the compressors that
/// filesystems use (btrfs and erofs at most 128 KiB, squashfs and zfs usually 128 KiB, f2fs 1 MiB),
/// so none sees a repetition; small enough for the second-level cache of most CPUs.
pub(crate) const POOL: u64 = Bytes::MIB;

/// The unit in which random bytes and zeros alternate, and a page of the pattern.
const PAGE: usize = 4096;

/// What a slot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// To write from.
    Write,
    /// To write from: a duplicate.
    Duplicate,
    /// To read into.
    Read,
}

/// Memory for the operations of one worker; see the module.
pub(crate) struct Pool {
    pages: Pages,
    slot: usize,
    counts: [usize; 3],
}

impl Pool {
    /// A pool for a worker of this stream that has up to `depth` operations in flight.
    ///
    /// [`Fill::Random`]: of each 4 KiB the first share is random, the rest zero; the generator
    /// (`fastrand`) is seeded with the seed of the stream, so workers and hosts have the same.
    /// [`Fill::PagePattern`]: eight bytes of 0x20 at the start of each slot and of each further 4
    /// KiB of it, zeros elsewhere. [`Fill::Marks`]: one slot of zeros, in which the marks are made
    /// ([`crate::payload`]); with [`Interface::Bytewise`] byte i is `i mod 128` instead, as the
    /// classic tool writes it. Slots to read into start as zeros.
    pub(crate) fn new(stream: &Stream, purpose: Purpose, depth: u32) -> Result<Self, Fault> {
        let fault = |bytes, errno: Errno| Fault::Memory {
            what: Memory::Buffers,
            bytes,
            errno: errno.raw_os_error(),
        };
        // Sectors are 512 bytes or a multiple that the record then has to be, too.
        let slot = stream.longest().0.checked_next_multiple_of(512).unwrap_or(u64::MAX);
        let depth = u64::from(depth);
        let duplicates = match stream.fill {
            Fill::Random { duplicates, .. } => duplicates > 0.0,
            Fill::PagePattern | Fill::Marks => false,
        };
        // Marks are made in one buffer, and an update writes what it has read.
        let one = stream.fill == Fill::Marks || updates(stream);
        let least = if one { 1 } else { POOL.div_ceil(slot) };
        let write = if purpose.writes() { least.max(depth) } else { 0 };
        let duplicate = if purpose.writes() && duplicates { depth } else { 0 };
        let read = if purpose.reads() { depth } else { 0 };
        let bytes = slot.saturating_mul(write + duplicate + read);
        let too_large = |_| fault(bytes, Errno::NOMEM);
        let len = usize::try_from(bytes).map_err(too_large)?;
        let len = NonZeroUsize::new(len).ok_or_else(|| fault(bytes, Errno::NOMEM))?;
        let pages = Pages::new(len).map_err(|errno| fault(bytes, errno))?;
        let slot = usize::try_from(slot).map_err(too_large)?;
        // Each is at most `len` divided by the slot.
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
        match stream.fill {
            Fill::Random { entropy, .. } => {
                let share = random_share(entropy);
                random(write, share, seed);
                for slot in rest[..duplicate].chunks_exact_mut(self.slot) {
                    random(slot, share, !seed);
                }
            }
            Fill::Marks if stream.interface == Interface::Bytewise => {
                for slot in write.chunks_exact_mut(self.slot) {
                    // 0, 1, … 127, and again.
                    for (byte, value) in slot.iter_mut().zip((0..=0x7f).cycle()) {
                        *byte = value;
                    }
                }
            }
            Fill::Marks => {}
            Fill::PagePattern => {
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

    /// Lends out the slots. Allocates the lists of free ones here and nothing later.
    pub(crate) fn slots(&mut self) -> Slots<'_> {
        let mut buffers = (0..).zip(self.pages.bytes_mut().chunks_exact_mut(self.slot));
        let [write, duplicate, read] = self.counts;
        let mut written =
            [write, duplicate].map(|count| VecDeque::from_iter(buffers.by_ref().take(count)));
        let read = Vec::from_iter(buffers.by_ref().take(read));
        assert!(buffers.next().is_none(), "the pool is cut into whole slots");
        written.iter_mut().for_each(|free| free.shrink_to_fit());
        let len = write + duplicate + read.len();
        Slots { written, read, borders: [write, write + duplicate], len }
    }
}

/// Fills the first `share` bytes of every 4 KiB with random ones.
pub(crate) fn random(bytes: &mut [u8], share: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for page in bytes.chunks_mut(PAGE) {
        let end = share.min(page.len());
        random.fill(&mut page[..end]);
    }
}

/// Bytes of each 4 KiB that are random.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..=1, so the product lies within 0..=4096"
)]
pub(crate) fn random_share(entropy: f64) -> usize {
    (entropy.clamp(0.0, 1.0) * 4096.0).round() as usize
}

/// The slots of a pool that no operation holds.
pub(crate) struct Slots<'p> {
    // The free ones with their numbers. They never grow beyond what they start with, as only what
    // was taken is given back. To write from: first in, first out, as the data are to differ.
    written: [VecDeque<(u32, &'p mut [u8])>; 2],
    // To read into: last in, first out. The slot of an operation that is over is at hand for the
    // next one, so a queue need not go through the memory of the whole list with each batch.
    read: Vec<(u32, &'p mut [u8])>,
    // Numbers at which the second and the third class begin.
    borders: [usize; 2],
    len: usize,
}

impl<'p> Slots<'p> {
    /// How many slots there are, free or not.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The next free slot of a class and its number; `None` while all are in flight.
    #[inline(always)]
    pub(crate) fn take(&mut self, class: Class) -> Option<(u32, &'p mut [u8])> {
        match class {
            Class::Write | Class::Duplicate => self.written[class as usize].pop_front(),
            Class::Read => self.read.pop(),
        }
    }

    /// Puts a slot back.
    #[inline(always)]
    pub(crate) fn give(&mut self, slot: u32, buffer: &'p mut [u8]) {
        let number = slot as usize;
        if number >= self.borders[1] {
            self.read.push((slot, buffer));
        } else {
            self.written[usize::from(number >= self.borders[0])].push_back((slot, buffer));
        }
    }

    /// The bytes of a slot that is free, for looking at them before the loop.
    pub(crate) fn peek(&mut self, slot: usize) -> &mut [u8] {
        let (number, bytes) = match slot {
            slot if slot < self.borders[0] => &mut self.written[0][slot],
            slot if slot < self.borders[1] => &mut self.written[1][slot - self.borders[0]],
            _ => &mut self.read[slot - self.borders[1]],
        };
        assert_eq!(*number as usize, slot, "before the loop all slots are free and in order");
        bytes
    }

    /// Numbers of the slots to write from, and of those for duplicates.
    pub(crate) fn written(&self) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        (0..self.borders[0], self.borders[0]..self.borders[1])
    }
}

#[cfg(test)]
mod tests {
    use model::phase::{Direction, Interface};

    use super::*;
    use crate::io::conformance::stream;

    fn plan(record: u64, fill: Fill) -> Stream {
        Stream {
            record: Bytes(record),
            fill,
            seed: 7,
            ..stream(Interface::Offset, Direction::Write, 1)
        }
    }

    fn random(entropy: f64, duplicates: f64) -> Fill {
        Fill::Random { entropy, duplicates }
    }

    #[test]
    fn slots_to_write_from_cover_the_pool_and_come_back_in_turn() {
        for (record, depth, count) in
            [(4096, 1, 256), (1000, 1, 1024), (4 << 20, 1, 1), (1 << 20, 8, 8)]
        {
            let mut pool =
                Pool::new(&plan(record, random(1.0, 0.0)), Purpose::Write, depth).unwrap();
            let mut slots = pool.slots();
            assert_eq!(slots.len(), count, "record {record}");
            let taken: Vec<_> = (0..count).map(|_| slots.take(Class::Write).unwrap()).collect();
            assert!(taken.iter().map(|(slot, _)| *slot as usize).eq(0..count));
            assert!(slots.take(Class::Write).is_none(), "one holder at a time");
            for (slot, buffer) in taken {
                assert!(buffer.len() as u64 >= record && buffer.as_ptr().align_offset(512) == 0);
                slots.give(slot, buffer);
            }
            assert_eq!(slots.take(Class::Write).unwrap().0, 0);
        }
    }

    #[test]
    fn classes_do_not_mix_and_readers_have_what_they_need() {
        let mut pool = Pool::new(&plan(4096, random(1.0, 0.5)), Purpose::Both, 3).unwrap();
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
        let mut pool = Pool::new(&plan(4096, random(1.0, 0.0)), Purpose::Read, 1).unwrap();
        assert_eq!(pool.slots().len(), 1);
    }

    #[test]
    fn a_share_of_each_page_is_random_and_the_seed_decides() {
        let content = |seed| {
            let plan = Stream { seed, ..plan(64 << 10, random(0.25, 0.0)) };
            let mut pool = Pool::new(&plan, Purpose::Write, 1).unwrap();
            pool.pages.bytes_mut().to_vec()
        };
        let seven = content(7);
        for page in seven.chunks(PAGE) {
            assert!(page[1024..].iter().all(|byte| *byte == 0));
            // 1024 random bytes hold about 4 zeros; 100 would be no accident.
            assert!(page[..1024].iter().filter(|byte| **byte == 0).count() < 100);
        }
        assert!(seven == content(7));
        assert!(seven != content(8));
    }

    #[test]
    fn the_page_pattern_is_eight_spaces_a_page() {
        let mut pool = Pool::new(&plan(10_240, Fill::PagePattern), Purpose::Write, 1).unwrap();
        let (_, slot) = pool.slots().take(Class::Write).unwrap();
        for (index, byte) in slot.iter().enumerate() {
            assert_eq!(*byte, if index % PAGE < 8 { 0x20 } else { 0 }, "at {index}");
        }
    }
}
