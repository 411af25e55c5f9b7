//! What is written to the files, and where reads go.

use model::phase::{Fill, Tree, TreeStep};

use crate::buffer::{POOL, random, random_share};

/// The unit in which random bytes and zeros alternate, and of stamps.
const PAGE: usize = 4096;
/// Bytes of a stamp: the worker's seed, and a count of its blocks.
const STAMP: usize = 16;

/// The memory of one worker.
///
/// What is written goes round a pool of at least 1 MiB, so that no compressor of a filesystem sees
/// a repetition, and each 4 KiB of a call begins with a stamp of their own, so that no two blocks
/// of a run are equal, which defeats deduplication.
pub(super) struct Data {
    pool: Box<[u8]>,
    read: Box<[u8]>,
    record: usize,
    next: usize,
    stamps: bool,
    key: u64,
    blocks: u64,
}

impl Data {
    /// For a worker of a tree; `None` if there is no memory for so large a record.
    pub(super) fn new(tree: &Tree, worker: u32) -> Option<Self> {
        let appends = tree.steps.contains(&TreeStep::Append);
        // A record larger than the file is the file, except to an append.
        let record = if appends { tree.record.0 } else { tree.record.0.min(tree.size.0) };
        let record = usize::try_from(record).ok()?;
        let writes = appends || tree.steps.contains(&TreeStep::Write);
        let least = usize::try_from(POOL).ok()?;
        let pool = record.checked_next_multiple_of(PAGE)?.max(least);
        let mut pool = zeros(if writes { pool } else { 0 })?;
        let reads = tree.steps.contains(&TreeStep::Read);
        let read = zeros(if reads { record } else { 0 })?;
        let key = tree.seed ^ u64::from(worker).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let stamps = match tree.fill {
            Fill::Random { entropy, .. } => {
                random(&mut pool, random_share(entropy), key);
                true
            }
            Fill::PagePattern => {
                pool.chunks_mut(PAGE).for_each(|page| page[..8].fill(0x20));
                false
            }
        };
        Some(Self { pool, read, record, next: 0, stamps, key, blocks: 0 })
    }

    /// Bytes of one call.
    pub(super) fn record(&self) -> usize {
        self.record
    }

    /// The next bytes to write, at most one record.
    pub(super) fn write(&mut self, len: usize) -> &[u8] {
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
    pub(super) fn read(&mut self) -> &mut [u8] {
        &mut self.read
    }
}

fn zeros(len: usize) -> Option<Box<[u8]>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).ok()?;
    bytes.resize(len, 0);
    Some(bytes.into_boxed_slice())
}
