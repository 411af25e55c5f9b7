//! What is written to the files, and where reads go.

use model::phase::{Fill, Set};

use crate::buffer::{POOL, random, random_share};

/// The unit in which random bytes and zeros alternate, and of stamps.
const PAGE: usize = 4096;
/// Bytes of a stamp: the worker's seed, and a count of its blocks.
const STAMP: usize = 16;

/// What the memory of a worker is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses {
    /// Bytes of the longest call.
    pub(crate) record: u64,
    /// Whether anything is read.
    pub(crate) reads: bool,
    /// Whether anything is written.
    pub(crate) writes: bool,
    /// What tells the phase from others on the same set, so that what one writes over another's is
    /// something else: [`tag`].
    pub(crate) tag: u64,
}

/// A number made of words: FNV-1a (Fowler, Noll, and Vo), 64 bits.
pub(crate) fn tag(words: &str) -> u64 {
    words.bytes().fold(0xCBF2_9CE4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The memory of one worker.
///
/// What is written goes round a pool of at least 1 MiB, so that no compressor of a filesystem sees
/// a repetition, and each 4 KiB of a call begins with a stamp of its own, of worker, set, phase,
/// and a count, so that no two blocks of a trial are equal, which defeats deduplication.
pub(crate) struct Data {
    pool: Box<[u8]>,
    read: Box<[u8]>,
    record: usize,
    next: usize,
    stamps: bool,
    key: u64,
    blocks: u64,
}

impl Data {
    /// For a worker; `None` if there is no memory for records so large.
    pub(crate) fn new(set: &Set, worker: u32, uses: Uses) -> Option<Self> {
        Self::of_slot(set, worker, uses, 0, 1)
    }

    /// For one of `slots` entries that a worker has in flight, each of which has its part of the
    /// pool: what the kernel still reads is not used again. `None` as before.
    pub(crate) fn of_slot(
        set: &Set,
        worker: u32,
        uses: Uses,
        slot: u32,
        slots: u32,
    ) -> Option<Self> {
        let record = usize::try_from(uses.record).ok()?;
        let writes = uses.writes;
        let least = usize::try_from(POOL / u64::from(slots.max(1))).ok()?;
        let pool = record.max(least).checked_next_multiple_of(PAGE)?;
        let mut pool = zeros(if writes { pool } else { 0 })?;
        let read = zeros(if uses.reads { record } else { 0 })?;
        let place = tag(&set.name) ^ uses.tag;
        let key = set.seed ^ place ^ u64::from(worker).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let stamps = match set.fill {
            Fill::Random { entropy, .. } => {
                let part = u64::from(slot).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                random(&mut pool, random_share(entropy), key ^ part);
                true
            }
            Fill::PagePattern | Fill::Marks => {
                pool.chunks_mut(PAGE).for_each(|page| page[..8].fill(0x20));
                false
            }
        };
        // No slot comes to the counts of the next one: that would be 2^48 blocks.
        let blocks = u64::from(slot) << 48;
        Some(Self { pool, read, record, next: 0, stamps, key, blocks })
    }

    /// Bytes of one call.
    pub(crate) fn record(&self) -> usize {
        self.record
    }

    /// The next bytes to write, at most one record.
    pub(crate) fn write(&mut self, len: usize) -> &[u8] {
        if self.pool.len() - self.next < len {
            self.next = 0;
        }
        let bytes = &mut self.pool[self.next..][..len];
        self.next += len.next_multiple_of(PAGE);
        if self.stamps {
            for block in bytes.chunks_mut(PAGE).filter(|block| block.len() >= STAMP) {
                self.blocks += 1;
                block[..8].copy_from_slice(&self.key.to_le_bytes());
                block[8..STAMP].copy_from_slice(&self.blocks.to_le_bytes());
            }
        }
        bytes
    }

    /// Where a record is read to.
    pub(crate) fn read(&mut self) -> &mut [u8] {
        &mut self.read
    }
}

fn zeros(len: usize) -> Option<Box<[u8]>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).ok()?;
    bytes.resize(len, 0);
    Some(bytes.into_boxed_slice())
}
