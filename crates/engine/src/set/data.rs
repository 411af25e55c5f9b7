//! Content of written files, and buffers for reads.

use model::phase::{DataPattern, Set};

use crate::buffer::{POOL, random, random_share};

/// Length in bytes of a unit that begins with random bytes and ends with zeros; distance of stamps.
const PAGE: usize = 4096;
/// Bytes of a stamp: a key of the worker, the set, and the phase, and a block counter.
const STAMP: usize = 16;

/// Use of the memory of a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses {
    /// Bytes of the longest call.
    pub(crate) block_size: u64,
    /// True if files are read.
    pub(crate) reads: bool,
    /// True if files are written.
    pub(crate) writes: bool,
    /// Number that distinguishes the phase from others on the same set, so that overwrites differ
    /// from the old content: [`tag`].
    pub(crate) tag: u64,
}

/// Hash of a text: FNV-1a (Fowler, Noll, and Vo), 64 bits.
pub(crate) fn tag(words: &str) -> u64 {
    words.bytes().fold(0xCBF2_9CE4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// Memory of one worker.
///
/// Written data cycles through a pool of at least 1 MiB, so that no compressor of a filesystem
/// detects a repetition. With random data, each 4 KiB of a call begins with a stamp of worker, set,
/// phase, and a counter. No two blocks of a trial are therefore equal, which defeats deduplication.
pub(crate) struct Data {
    pool: Box<[u8]>,
    read: Box<[u8]>,
    block_size: usize,
    next: usize,
    stamps: bool,
    key: u64,
    blocks: u64,
}

impl Data {
    /// Memory of a worker; `None` if there is not enough for this block size.
    pub(crate) fn new(set: &Set, worker: u32, uses: Uses) -> Option<Self> {
        Self::of_slot(set, worker, uses, 0, 1)
    }

    /// Memory of one of `slots` entries that a worker has in flight. Each has its own part of the
    /// pool, because data must not be reused while the kernel still reads it. `None` as in
    /// [`Self::new`].
    pub(crate) fn of_slot(
        set: &Set,
        worker: u32,
        uses: Uses,
        slot: u32,
        slots: u32,
    ) -> Option<Self> {
        let block_size = usize::try_from(uses.block_size).ok()?;
        let writes = uses.writes;
        let least = usize::try_from(POOL / u64::from(slots.max(1))).ok()?;
        let pool = block_size.max(least).checked_next_multiple_of(PAGE)?;
        let mut pool = zeros(if writes { pool } else { 0 })?;
        let read = zeros(if uses.reads { block_size } else { 0 })?;
        let place = tag(&set.name) ^ uses.tag;
        let key = set.seed ^ place ^ u64::from(worker).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let stamps = match set.data {
            DataPattern::Random { incompressible_fraction: entropy, .. } => {
                let part = u64::from(slot).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                random(&mut pool, random_share(entropy), key ^ part);
                true
            }
            DataPattern::PagePattern | DataPattern::Marks => {
                pool.chunks_mut(PAGE).for_each(|page| page[..8].fill(0x20));
                false
            }
        };
        // A slot never reaches the counters of the next one: that would take 2^48 blocks.
        let blocks = u64::from(slot) << 48;
        Some(Self { pool, read, block_size, next: 0, stamps, key, blocks })
    }

    /// Bytes per call.
    pub(crate) fn block_size(&self) -> usize {
        self.block_size
    }

    /// Next bytes to write, at most one block.
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

    /// Buffer for a read.
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
