//! Block content: headers or marks added before a write, and verification after a read.
//!
//! # Header
//!
//! With [`model::phase::DataPattern::Random`], a file consists of blocks. They have 4 KiB if the
//! block size is a multiple of 4 KiB, and otherwise the block size. Each block begins with 32
//! bytes, four little-endian words:
//!
//! ```text
//!  0  key         file: the seed of the headers of the stream, mixed with the index of the file
//!  8  offset      offset of the block in the file, with the number of the file of a worker in its
//!                 upper bits ([`crate::file_offset`]); all ones in a duplicate
//! 16  generation  write of the block: time of day in nanoseconds at which the worker started,
//!                 plus the number of its write, from 1; 0 in a duplicate
//! 24  check       checksum of the rest of the block, mixed with the three words above
//! ```
//!
//! Except for duplicates, no two blocks of a run are therefore equal, which defeats deduplication.
//! The header shows if the block is intact, where the block belongs, and which write produced it.
//! No record of the writes is needed. Blocks of less than 64 bytes have no headers and cannot be
//! verified.
//!
//! # Cost
//!
//! The rest of a block never changes, so its checksum (XXH3) is computed once per block of the pool
//! before the clock starts. Inside the loop, a header takes four stores and two multiplications per
//! 4 KiB. The measurement of the null engine ([`crate::generator_limit`]) includes them.
//! Verification reads the whole block and is done only in phases that request it.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    time::SystemTime,
};

use model::{
    Bytes,
    phase::{DataPattern, Direction, IoEngineKind, Stream},
};
use twox_hash::XxHash3_64;

use crate::{
    buffer::Slots,
    error::{Difference, Fault},
    file_offset::within,
};

const BLOCK: u64 = 4096;
const HEADER: usize = 32;
/// Minimum block size with headers.
const SHORTEST: u64 = 64;
/// Offset in the header of a duplicate.
const ANYWHERE: u64 = u64::MAX;

/// True if blocks of this stream have headers.
pub(crate) fn has_headers(stream: &Stream) -> bool {
    matches!(stream.data, DataPattern::Random { .. }) && stream.block_size.0 >= SHORTEST
}

/// Header of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    key: u64,
    offset: u64,
    generation: u64,
    check: u64,
}

impl Header {
    /// Header of a block whose rest has this checksum.
    #[inline]
    fn new(key: u64, offset: u64, generation: u64, rest: u64) -> Self {
        // Odd constants from the golden ratio and from XXH64: two multiplications spread every bit
        // of offset and generation over the upper half, which the shift moves down.
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

/// Seed of the keys.
fn seed(stream: &Stream) -> u64 {
    stream.header_seed.unwrap_or(stream.seed)
}

/// Key of a file.
fn key(stream: &Stream, worker: u32) -> u64 {
    let file = if stream.files.are_separate() { u64::from(worker) + 1 } else { 1 };
    // Never zero, the content of a hole.
    (seed(stream) ^ file.wrapping_mul(0x9E37_79B9_7F4A_7C15)).max(1)
}

/// True if a file begins with a block that a stream with this block size wrote.
///
/// # Errors
/// If the file cannot be opened or read.
pub fn is_written_by_fslab(path: &Path, block_size: Bytes) -> io::Result<bool> {
    let own = usize::try_from(block_size.0).unwrap_or(usize::MAX).min(1 << 30);
    let sizes = [usize::try_from(BLOCK).unwrap_or(4096), own];
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(sizes.iter().max().copied().unwrap_or(0) as u64).read_to_end(&mut bytes)?;
    Ok(sizes.iter().any(|size| {
        let Some(block) = bytes.get(..*size).filter(|block| block.len() >= HEADER) else {
            return false;
        };
        let header = Header::get(block);
        header.key != 0
            && within(header.offset) == 0
            && header == Header::new(header.key, header.offset, header.generation, rest(block))
    }))
}

/// Generation of a worker before its first write: the time of day in nanoseconds. A write takes
/// longer than a nanosecond, so later phases have higher generations, even after a reboot. No block
/// is therefore written twice with the same header.
pub(crate) fn first_generation() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(0)
}

fn block_size(stream: &Stream) -> usize {
    let block = if stream.block_size.0.is_multiple_of(BLOCK) { BLOCK } else { stream.block_size.0 };
    usize::try_from(block).unwrap_or(usize::MAX)
}

/// Change of the data of each operation before it is written.
pub(crate) enum PayloadWriter {
    /// Headers are written.
    Headers(Headers),
    /// One byte is incremented.
    Marks(Marks),
}

impl PayloadWriter {
    /// Writer for a worker of a stream; `None` if the data is unchanged. Reads every write slot.
    pub(crate) fn new(stream: &Stream, worker: u32, slots: &mut Slots<'_>) -> Option<Self> {
        // Two kinds of I/O write no marks: updates, which change the data that they have read, and
        // bytewise I/O, in which all blocks have the same content.
        let bytewise = stream.io_engine == IoEngineKind::Bytewise;
        let own = !matches!(stream.direction, Direction::Update(_));
        match stream.data {
            DataPattern::Random { .. } => Headers::new(stream, worker, slots).map(Self::Headers),
            DataPattern::Marks => (own && !bytewise).then(|| Self::Marks(Marks::new(stream))),
            DataPattern::PagePattern => None,
        }
    }

    /// True if the operation at this offset is written as a duplicate.
    #[inline]
    pub(crate) fn duplicate(&self, offset: u64) -> bool {
        match self {
            Self::Headers(headers) => headers.duplicate(offset),
            Self::Marks(_) => false,
        }
    }

    /// Completes the content of an operation before its submission from slot `slot`.
    #[inline]
    pub(crate) fn put(&mut self, slot: u32, offset: u64, generation: u64, bytes: &mut [u8]) {
        match self {
            Self::Headers(headers) => headers.put(slot, offset, generation, bytes),
            Self::Marks(marks) => marks.put(bytes),
        }
    }
}

/// Increments one byte of a buffer that is written repeatedly: byte `i mod block size` before the
/// i-th write of the worker, from 0. The content therefore depends on all earlier writes.
pub(crate) struct Marks {
    record: usize,
    next: usize,
}

impl Marks {
    fn new(stream: &Stream) -> Self {
        Self { record: usize::try_from(stream.block_size.0).unwrap_or(usize::MAX), next: 0 }
    }

    #[inline]
    fn put(&mut self, bytes: &mut [u8]) {
        // An operation of a trace may be shorter than a block.
        if let Some(byte) = bytes.get_mut(self.next) {
            *byte = byte.wrapping_add(1);
        }
        self.next += 1;
        if self.next == self.record {
            self.next = 0;
        }
    }
}

/// Writes headers into data that is about to be written.
pub(crate) struct Headers {
    key: u64,
    block: usize,
    // Blocks per slot.
    blocks: usize,
    // Checksums of the rest of each block of each write slot.
    rests: Box<[u64]>,
    // Number of duplicates per 2^32 blocks.
    duplicates: u64,
}

impl Headers {
    /// Writer for a worker of a stream; `None` if blocks have no headers. Reads every write slot,
    /// and writes the headers of duplicate slots once.
    fn new(stream: &Stream, worker: u32, slots: &mut Slots<'_>) -> Option<Self> {
        let DataPattern::Random { duplicate_fraction: duplicates, .. } = stream.data else {
            return None;
        };
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
            reason = "clamped, so the product is at most 2^32"
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
    (!seed(stream)).max(1)
}

/// Verifies data by its headers.
pub(crate) struct Verifier {
    key: u64,
    duplicates: Option<u64>,
    block: usize,
}

impl Verifier {
    /// Verifier for a worker of a stream that [`has_headers`].
    pub(crate) fn new(stream: &Stream, worker: u32) -> Self {
        let duplicates = match stream.data {
            DataPattern::Random { duplicate_fraction: duplicates, .. } if duplicates > 0.0 => {
                Some(key_of_duplicates(stream))
            }
            DataPattern::Random { .. } | DataPattern::PagePattern | DataPattern::Marks => None,
        };
        Self { key: key(stream, worker), duplicates, block: block_size(stream) }
    }

    /// Verifies the bytes read at `offset`.
    ///
    /// # Errors
    /// [`Fault::Content`] for the first block that differs from the written one.
    pub(crate) fn verify(&self, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
        let mut offset = offset;
        for block in bytes.chunks_exact(self.block) {
            self.block(offset, block)
                .map_err(|difference| Fault::Content { offset, difference })?;
            offset += self.block as u64;
        }
        Ok(())
    }

    /// Generation of a block, 0 for a duplicate, or the difference.
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
        phase::{Direction, IoEngineKind},
    };
    use proptest::prelude::*;

    use super::*;
    use crate::{
        buffer::{Class, Pool},
        io::{AccessMode, conformance::stream},
    };

    fn plan(record: u64, duplicates: f64) -> Stream {
        let fill =
            DataPattern::Random { incompressible_fraction: 1.0, duplicate_fraction: duplicates };
        Stream {
            block_size: Bytes(record),
            data: fill,
            seed: 3,
            ..stream(IoEngineKind::Offset, Direction::Write, 1)
        }
    }

    /// Data that worker 0 writes at `offset`.
    fn written(plan: &Stream, offset: u64) -> Vec<u8> {
        let mut pool = Pool::new(plan, AccessMode::Write, 1).unwrap();
        let mut slots = pool.slots();
        let mut stamp = PayloadWriter::new(plan, 0, &mut slots).unwrap();
        // Not the first slot, to use the checksums of another one.
        let taken: Vec<_> = (0..2).filter_map(|_| slots.take(Class::Write)).collect();
        let (slot, bytes) = taken.into_iter().last().unwrap();
        let bytes = &mut bytes[..usize::try_from(plan.block_size.0).unwrap()];
        stamp.put(slot, offset, 11, bytes);
        bytes.to_vec()
    }

    #[test]
    fn every_kind_of_difference_is_detected() {
        let plan = plan(8192, 0.0);
        let good = written(&plan, 81_920);
        let check = Verifier::new(&plan, 0);
        assert_eq!(check.verify(81_920, &good), Ok(()));
        assert_eq!(check.block(81_920, &good[..4096]), Ok(11));
        let judged = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            check.verify(81_920, &bytes)
        };
        let fault = |offset, difference| Err(Fault::Content { offset, difference });
        assert_eq!(judged(&|b| b[5000] ^= 1), fault(81_920 + 4096, Difference::Damaged));
        assert_eq!(judged(&|b| b[16] ^= 1), fault(81_920, Difference::Damaged));
        assert_eq!(judged(&|b| b[4096..].fill(0)), fault(81_920 + 4096, Difference::Hole));
        let (place, other) = (0, Verifier::new(&plan, 1));
        let misplaced = Difference::Misplaced { belongs: 81_920 };
        assert_eq!(check.verify(place, &good), fault(place, misplaced));
        assert_eq!(other.verify(81_920, &good), fault(81_920, Difference::Foreign));
    }

    #[test]
    fn duplicates_have_the_requested_fraction_and_pass_at_any_offset() {
        let plan = plan(4096, 0.3);
        let mut pool = Pool::new(&plan, AccessMode::Write, 1).unwrap();
        let mut slots = pool.slots();
        let stamp = PayloadWriter::new(&plan, 0, &mut slots).unwrap();
        let count = (0..10_000).filter(|record| stamp.duplicate(record * 4096)).count();
        assert!((2850..3150).contains(&count), "{count} of 10000");
        let (_, bytes) = slots.take(Class::Duplicate).unwrap();
        let check = Verifier::new(&plan, 9);
        assert_eq!(check.verify(4096 * 17, bytes), Ok(()));
    }

    #[test]
    fn tiny_blocks_have_no_headers() {
        assert!(has_headers(&plan(64, 0.0)));
        assert!(!has_headers(&plan(63, 0.0)));
        let pattern = Stream { data: DataPattern::PagePattern, ..plan(4096, 0.0) };
        assert!(!has_headers(&pattern));
    }

    proptest! {
        #[test]
        fn written_data_passes_and_a_flipped_bit_does_not(
            record in 64u64..20_000, place in 0u64..1 << 30, bit in 0usize..160_000
        ) {
            let plan = plan(record, 0.0);
            let offset = place * record;
            let mut bytes = written(&plan, offset);
            let check = Verifier::new(&plan, 0);
            prop_assert_eq!(check.verify(offset, &bytes), Ok(()));
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check.verify(offset, &bytes).is_err());
        }
    }
}
