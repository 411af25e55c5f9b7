//! Data of blocks that the seed, the owner, and the number of an entry determine, so that a later
//! phase can verify them without a copy.
//!
//! A block is a part of a pool of random bytes. Each 4 KiB of it begin with a stamp of the entry
//! and their position, so that no two blocks of a set are equal. The pool depends on the seed only,
//! and a shorter block is the start of a longer one.

use model::phase::Set;

use super::{drawn, mixed};
use crate::{
    buffer::{POOL, random},
    error::{Difference, Fault},
};

/// Distance of stamps in bytes.
const PAGE: usize = 4096;

/// Purpose of the stream from which keys are drawn, see [`drawn`].
const PURPOSE: u64 = 0x626C_6F63;

/// Memory of one worker.
pub(crate) struct EntryData {
    pool: Box<[u8]>,
    read: Box<[u8]>,
    len: usize,
    seed: u64,
}

impl EntryData {
    /// Memory for blocks of the block size of a set; `None` if there is not enough. `makes` is true
    /// if blocks are written or verified.
    pub(crate) fn new(set: &Set, makes: bool, reads: bool) -> Option<Self> {
        let len = if makes || reads { usize::try_from(set.block_size.0).ok()? } else { 0 };
        // Any start in the first MiB is possible, so that it does not depend on the length.
        let size = len.checked_add(usize::try_from(POOL).ok()?)?.checked_next_multiple_of(PAGE)?;
        let mut pool = zeros(if makes { size } else { 0 })?;
        random(&mut pool, PAGE, set.seed);
        let read = zeros(if reads { len } else { 0 })?;
        Some(Self { pool, read, len, seed: set.seed })
    }

    /// Block of an entry.
    pub(crate) fn block(&mut self, owner: u32, entry: u64) -> &[u8] {
        let key = drawn(self.seed, owner, entry, PURPOSE);
        let start = usize::try_from(key % (POOL / PAGE as u64)).unwrap_or(0) * PAGE;
        let block = &mut self.pool[start..][..self.len];
        for (page, position) in block.chunks_mut(PAGE).zip(0u64..) {
            let stamp = [key, mixed(key.wrapping_add(position))].map(u64::to_le_bytes);
            let len = page.len().min(16);
            page[..len].copy_from_slice(&stamp.concat()[..len]);
        }
        block
    }

    /// Buffer for a block.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        &mut self.read
    }

    /// Compares the block that was read with that of an entry.
    pub(crate) fn verify(&mut self, owner: u32, entry: u64) -> Result<(), Fault> {
        let read = std::mem::take(&mut self.read);
        let equal = *self.block(owner, entry) == *read;
        let hole = read.iter().all(|byte| *byte == 0);
        self.read = read;
        match equal {
            true => Ok(()),
            false => Err(Fault::Content {
                offset: 0,
                difference: if hole { Difference::Hole } else { Difference::Damaged },
            }),
        }
    }
}

fn zeros(len: usize) -> Option<Box<[u8]>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).ok()?;
    bytes.resize(len, 0);
    Some(bytes.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use model::{
        Bytes,
        phase::{DataPattern, Naming, Sharing, Sizes, Spread},
    };

    use super::*;

    fn data(block_size: u64) -> EntryData {
        let set = Set {
            name: "t".into(),
            sharing: Sharing::Private,
            files: 1,
            spread: Spread::Flat,
            naming: Naming::Numbers,
            sizes: Sizes::Fixed(Bytes(block_size)),
            block_size: Bytes(block_size),
            data: DataPattern::default(),
            seed: 4,
        };
        EntryData::new(&set, true, true).unwrap()
    }

    #[test]
    fn blocks_depend_on_the_entry_and_not_on_the_length() {
        let mut long = data(3901);
        let first = long.block(0, 7).to_vec();
        assert_ne!(long.block(0, 8), first);
        assert_ne!(long.block(1, 7), first);
        assert_eq!(long.block(0, 7), first, "other blocks leave no trace");
        assert_eq!(data(100).block(0, 7), &first[..100]);
        let larger = data(10_000).block(0, 7).to_vec();
        assert_eq!(larger[..3901], first);
        assert_ne!(larger[..4096], larger[4096..8192]);
    }

    #[test]
    fn a_block_of_another_entry_or_with_a_changed_byte_is_an_error() {
        let mut data = data(5000);
        let block = data.block(3, 9).to_vec();
        data.buffer().copy_from_slice(&block);
        data.verify(3, 9).unwrap();
        let damaged = Fault::Content { offset: 0, difference: Difference::Damaged };
        assert_eq!(data.verify(3, 10), Err(damaged));
        data.buffer()[4999] ^= 1;
        assert_eq!(data.verify(3, 9), Err(damaged));
        data.buffer().fill(0);
        let hole = Fault::Content { offset: 0, difference: Difference::Hole };
        assert_eq!(data.verify(3, 9), Err(hole));
    }
}
