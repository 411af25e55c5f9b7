//! What blocks hold: what is put in before a write (headers or marks), and its check after a read.
//!
//! # The header
//!
//! With [`model::phase::Fill::Random`], a file is cut into blocks: of 4 KiB where the record is a
//! multiple of that, else of one record. Each block begins with 32 bytes, four little-endian words:
//!
//! ```text
//!  0  key         which file: the stream's seed, mixed with the index of the file
//!  8  offset      of the block in the file; all ones in a block written as a duplicate
//! 16  generation  which write it comes from: time of day in nanoseconds at which the worker began,
//!                 plus the count of its writes, from 1; 0 in a duplicate
//! 24  check       checksum of the rest of the block, mixed with the three words above
//! ```
//!
//! So no two blocks of a run are equal, which defeats deduplication, and a block tells on its own,
//! without anything kept from writing, whether it is whole, where it belongs, and which write it
//! comes from. Records of less than 64 bytes have no headers and cannot be verified.
//!
//! # What it costs
//!
//! The rest of a block never changes, so its checksum (XXH3) is taken once for each block of the
//! pool, before the clock starts; inside the loop a header is four stores and two multiplications
//! for each 4 KiB. The ceiling of the null engine ([`crate::ceiling`]) includes it. Checking reads
//! the whole block and is for phases that ask for it.

use std::time::SystemTime;

use model::phase::{Direction, Files, Fill, Interface, Stream};
use twox_hash::XxHash3_64;

use crate::{
    buffer::Slots,
    error::{Difference, Fault},
};

const BLOCK: u64 = 4096;
const HEADER: usize = 32;
/// Records shorter than this have no headers.
const SHORTEST: u64 = 64;
/// The offset that a duplicate claims.
const ANYWHERE: u64 = u64::MAX;

/// Whether blocks of this stream have headers.
pub(crate) fn has_headers(stream: &Stream) -> bool {
    matches!(stream.fill, Fill::Random { .. }) && stream.record.0 >= SHORTEST
}

/// The header of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    key: u64,
    offset: u64,
    generation: u64,
    check: u64,
}

impl Header {
    /// The header of a block whose rest has this checksum.
    #[inline]
    fn new(key: u64, offset: u64, generation: u64, rest: u64) -> Self {
        // Odd constants from the golden ratio and from XXH64: two multiplications spread every bit
        // of place and generation over the upper half, which the shift brings down.
        let mixed = (key ^ offset).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ generation.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        Self { key, offset, generation, check: rest ^ mixed ^ (mixed >> 32) }
    }

    #[inline]
    fn put(self, block: &mut [u8]) {
        let words = [self.key, self.offset, self.generation, self.check];
        for (bytes, word) in block[..HEADER].chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn get(block: &[u8]) -> Self {
        let word = |index: usize| {
            let bytes = block[index * 8..][..8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        Self { key: word(0), offset: word(1), generation: word(2), check: word(3) }
    }
}

fn rest(block: &[u8]) -> u64 {
    XxHash3_64::oneshot(&block[HEADER..])
}

/// The word that names a file.
fn key(stream: &Stream, worker: u32) -> u64 {
    let file = match stream.files {
        Files::PerWorker(_) => u64::from(worker) + 1,
        Files::One(_) | Files::Shared(_) | Files::Split(_) => 1,
    };
    // Never zero, which is what a hole holds.
    (stream.seed ^ file.wrapping_mul(0x9E37_79B9_7F4A_7C15)).max(1)
}

/// What the generations of a worker count from: the time of day in nanoseconds. A write takes
/// longer than one, so later phases, also of later boots, write later generations, and what is
/// written twice is not the same twice.
pub(crate) fn first_generation() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(0)
}

fn block_size(stream: &Stream) -> usize {
    let block = if stream.record.0.is_multiple_of(BLOCK) { BLOCK } else { stream.record.0 };
    usize::try_from(block).unwrap_or(usize::MAX)
}

/// What is done to each operation about to be written.
pub(crate) enum Stamp {
    /// Headers are put in.
    Headers(Headers),
    /// One byte is increased.
    Marks(Marks),
}

impl Stamp {
    /// For a worker of a stream; `None` where what is written stays as it is. Looks at every slot
    /// to write from.
    pub(crate) fn new(stream: &Stream, worker: u32, slots: &mut Slots<'_>) -> Option<Self> {
        // An update changes what it read; and single bytes are the same in every record.
        let bytewise = stream.interface == Interface::Bytewise;
        let own = !matches!(stream.direction, Direction::Update(_));
        match stream.fill {
            Fill::Random { .. } => Headers::new(stream, worker, slots).map(Self::Headers),
            Fill::Marks => (own && !bytewise).then(|| Self::Marks(Marks::new(stream))),
            Fill::PagePattern => None,
        }
    }

    /// Whether the operation at this offset is to be written as a duplicate.
    #[inline]
    pub(crate) fn duplicate(&self, offset: u64) -> bool {
        match self {
            Self::Headers(headers) => headers.duplicate(offset),
            Self::Marks(_) => false,
        }
    }

    /// Completes the content of an operation about to be submitted from slot `slot`.
    #[inline]
    pub(crate) fn put(&mut self, slot: u32, offset: u64, generation: u64, bytes: &mut [u8]) {
        match self {
            Self::Headers(headers) => headers.put(slot, offset, generation, bytes),
            Self::Marks(marks) => marks.put(bytes),
        }
    }
}

/// Increases one byte of a buffer that is written again and again: before the i-th write of the
/// worker, from 0, byte `i mod record`. What is written therefore depends on all writes before.
pub(crate) struct Marks {
    record: usize,
    next: usize,
}

impl Marks {
    fn new(stream: &Stream) -> Self {
        Self { record: usize::try_from(stream.record.0).unwrap_or(usize::MAX), next: 0 }
    }

    #[inline]
    fn put(&mut self, bytes: &mut [u8]) {
        // An operation of a list may be shorter than a record.
        if let Some(byte) = bytes.get_mut(self.next) {
            *byte = byte.wrapping_add(1);
        }
        self.next += 1;
        if self.next == self.record {
            self.next = 0;
        }
    }
}

/// Puts headers into what is about to be written.
pub(crate) struct Headers {
    key: u64,
    block: usize,
    // Blocks in one slot.
    blocks: usize,
    // Checksums of the rest of each block of each slot to write from.
    rests: Box<[u64]>,
    // Of so many of 2^32 records the first is written as a duplicate.
    duplicates: u64,
}

impl Headers {
    /// For a worker of a stream; `None` where blocks have no headers. Looks at every slot to write
    /// from, and stamps those for duplicates once and for all.
    fn new(stream: &Stream, worker: u32, slots: &mut Slots<'_>) -> Option<Self> {
        let Fill::Random { duplicates, .. } = stream.fill else { return None };
        if !has_headers(stream) {
            return None;
        }
        let (block, key) = (block_size(stream), key(stream, worker));
        let (write, duplicate) = slots.written();
        let mut blocks = 0;
        let mut rests = Vec::new();
        for slot in write {
            let slot = slots.peek(slot).chunks_exact(block);
            blocks = slot.len();
            rests.extend(slot.map(rest));
        }
        for slot in duplicate {
            for block in slots.peek(slot).chunks_exact_mut(block) {
                Header::new(key_of_duplicates(stream), ANYWHERE, 0, rest(block)).put(block);
            }
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 0..=1, so the product lies within 0..=2^32"
        )]
        let duplicates = (duplicates.clamp(0.0, 1.0) * 4_294_967_296.0) as u64;
        Some(Self { key, block, blocks, rests: rests.into(), duplicates })
    }

    #[inline]
    fn duplicate(&self, offset: u64) -> bool {
        let mixed = (self.key ^ offset).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.duplicates > 0
            && (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32 < self.duplicates
    }

    #[inline]
    fn put(&self, slot: u32, offset: u64, generation: u64, bytes: &mut [u8]) {
        let first = slot as usize * self.blocks;
        let mut offset = offset;
        for (block, rest) in bytes.chunks_exact_mut(self.block).zip(&self.rests[first..]) {
            Header::new(self.key, offset, generation, *rest).put(block);
            offset += self.block as u64;
        }
    }
}

fn key_of_duplicates(stream: &Stream) -> u64 {
    (!stream.seed).max(1)
}

/// Judges what was read by its headers.
pub(crate) struct Check {
    key: u64,
    duplicates: Option<u64>,
    block: usize,
}

impl Check {
    /// For a worker of a stream that [`has_headers`].
    pub(crate) fn new(stream: &Stream, worker: u32) -> Self {
        let duplicates = match stream.fill {
            Fill::Random { duplicates, .. } if duplicates > 0.0 => Some(key_of_duplicates(stream)),
            Fill::Random { .. } | Fill::PagePattern | Fill::Marks => None,
        };
        Self { key: key(stream, worker), duplicates, block: block_size(stream) }
    }

    /// Judges the bytes read from `offset` on.
    ///
    /// # Errors
    /// [`Fault::Content`] for the first block that is not what was written there.
    pub(crate) fn judge(&self, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
        let mut offset = offset;
        for block in bytes.chunks_exact(self.block) {
            self.block(offset, block)
                .map_err(|difference| Fault::Content { offset, difference })?;
            offset += self.block as u64;
        }
        Ok(())
    }

    /// The generation of a block, 0 for a duplicate, or what is wrong with it.
    pub(crate) fn block(&self, offset: u64, block: &[u8]) -> Result<u64, Difference> {
        let found = Header::get(block);
        if found != Header::new(found.key, found.offset, found.generation, rest(block)) {
            let hole = block.iter().all(|byte| *byte == 0);
            return Err(if hole { Difference::Hole } else { Difference::Damaged });
        }
        if Some(found.key) == self.duplicates && found.offset == ANYWHERE {
            return Ok(0);
        }
        if found.key != self.key {
            return Err(Difference::Foreign);
        }
        if found.offset != offset {
            return Err(Difference::Misplaced { belongs: found.offset });
        }
        Ok(found.generation)
    }

    /// Size of a block.
    pub(crate) fn block_size(&self) -> usize {
        self.block
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Bytes,
        phase::{Direction, Interface},
    };
    use proptest::prelude::*;

    use super::*;
    use crate::{
        buffer::{Class, Pool},
        io::{Purpose, conformance::stream},
    };

    fn plan(record: u64, duplicates: f64) -> Stream {
        let fill = Fill::Random { entropy: 1.0, duplicates };
        Stream {
            record: Bytes(record),
            fill,
            seed: 3,
            ..stream(Interface::Offset, Direction::Write, 1)
        }
    }

    /// What worker 0 writes at `offset`.
    fn written(plan: &Stream, offset: u64) -> Vec<u8> {
        let mut pool = Pool::new(plan, Purpose::Write, 1).unwrap();
        let mut slots = pool.slots();
        let mut stamp = Stamp::new(plan, 0, &mut slots).unwrap();
        // Not the first slot: the checksums of another one.
        let taken: Vec<_> = (0..2).filter_map(|_| slots.take(Class::Write)).collect();
        let (slot, bytes) = taken.into_iter().last().unwrap();
        let bytes = &mut bytes[..usize::try_from(plan.record.0).unwrap()];
        stamp.put(slot, offset, 11, bytes);
        bytes.to_vec()
    }

    #[test]
    fn every_kind_of_difference_is_told_apart() {
        let plan = plan(8192, 0.0);
        let good = written(&plan, 81_920);
        let check = Check::new(&plan, 0);
        assert_eq!(check.judge(81_920, &good), Ok(()));
        assert_eq!(check.block(81_920, &good[..4096]), Ok(11));
        let judged = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            check.judge(81_920, &bytes)
        };
        let fault = |offset, difference| Err(Fault::Content { offset, difference });
        assert_eq!(judged(&|b| b[5000] ^= 1), fault(81_920 + 4096, Difference::Damaged));
        assert_eq!(judged(&|b| b[16] ^= 1), fault(81_920, Difference::Damaged));
        assert_eq!(judged(&|b| b[4096..].fill(0)), fault(81_920 + 4096, Difference::Hole));
        let (place, other) = (0, Check::new(&plan, 1));
        let misplaced = Difference::Misplaced { belongs: 81_920 };
        assert_eq!(check.judge(place, &good), fault(place, misplaced));
        assert_eq!(other.judge(81_920, &good), fault(81_920, Difference::Foreign));
    }

    #[test]
    fn a_share_of_records_is_duplicates_and_they_pass_anywhere() {
        let plan = plan(4096, 0.3);
        let mut pool = Pool::new(&plan, Purpose::Write, 1).unwrap();
        let mut slots = pool.slots();
        let stamp = Stamp::new(&plan, 0, &mut slots).unwrap();
        let count = (0..10_000).filter(|record| stamp.duplicate(record * 4096)).count();
        assert!((2850..3150).contains(&count), "{count} of 10000");
        let (_, bytes) = slots.take(Class::Duplicate).unwrap();
        let check = Check::new(&plan, 9);
        assert_eq!(check.judge(4096 * 17, bytes), Ok(()));
    }

    #[test]
    fn tiny_records_have_no_headers() {
        assert!(has_headers(&plan(64, 0.0)));
        assert!(!has_headers(&plan(63, 0.0)));
        let pattern = Stream { fill: Fill::PagePattern, ..plan(4096, 0.0) };
        assert!(!has_headers(&pattern));
    }

    proptest! {
        #[test]
        fn what_is_written_is_accepted_and_a_flipped_bit_is_not(
            record in 64u64..20_000, place in 0u64..1 << 30, bit in 0usize..160_000
        ) {
            let plan = plan(record, 0.0);
            let offset = place * record;
            let mut bytes = written(&plan, offset);
            let check = Check::new(&plan, 0);
            prop_assert_eq!(check.judge(offset, &bytes), Ok(()));
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check.judge(offset, &bytes).is_err());
        }
    }
}
