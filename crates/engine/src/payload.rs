//! What records hold: stamps put in before a write, and the comparison after a read.
//!
//! # Stamps
//!
//! With [`model::phase::Fill::Random`], each 512 bytes of a file, counted from its start, begin
//! with 16 bytes: seed XOR index of the file's worker, then the offset of these 512 bytes, both
//! little endian. The rest comes from the pool. So no two blocks of a run are equal, which defeats
//! deduplication, and a block that was written elsewhere or by another worker is recognized.
//!
//! Stamps are written in place, inside the timed loop, right before the write. Each is two stores,
//! but to a cache line that the outer caches hold, and it waits for that line: about 10 ns, which
//! is 80 ns for 4 KiB, several percent of a write into the page cache and nothing beside a device.
//! The copy of the kernel then finds these lines near. What it comes to on a host is in the ceiling
//! of the null engine ([`crate::ceiling`]).
//!
//! # Verification
//!
//! The content of a record follows from seed, worker, and offset, so nothing is kept from writing:
//! a second pool is filled from the same seed, the record's slot in it is stamped, and the two are
//! compared, all inside the loop. As slots are chosen by record number, a file can only be verified
//! with the record size that wrote it; other combinations are reported as differing content.

use crate::{buffer::Slots, error::Fault};

const BLOCK_LEN: usize = 512;
const BLOCK: u64 = BLOCK_LEN as u64;
const STAMP: usize = 16;

/// What is done to a record before it is written and after it was read.
pub(crate) trait Payload {
    /// Completes the content of a record about to be submitted, `offset` bytes into the file.
    fn prepare(&mut self, offset: u64, slot: &mut [u8]);

    /// Judges a record that was moved.
    ///
    /// # Errors
    /// [`Fault::Content`] with the first byte that is not what was written.
    fn check(&mut self, record: u64, offset: u64, slot: &[u8]) -> Result<(), Fault>;
}

/// Records as they lie in the pool, and no look at what was read.
pub(crate) struct Plain;

impl Payload for Plain {
    #[inline]
    fn prepare(&mut self, _offset: u64, _slot: &mut [u8]) {}

    #[inline]
    fn check(&mut self, _record: u64, _offset: u64, _slot: &[u8]) -> Result<(), Fault> {
        Ok(())
    }
}

/// Records with stamps.
pub(crate) struct Stamped {
    /// Seed XOR worker.
    pub(crate) key: u64,
}

impl Stamped {
    fn stamp(&self, block: u64) -> [u8; STAMP] {
        let mut stamp = [0; STAMP];
        stamp[..8].copy_from_slice(&self.key.to_le_bytes());
        stamp[8..].copy_from_slice(&block.to_le_bytes());
        stamp
    }

    /// The general case: a record that starts or ends inside a block, perhaps inside a stamp.
    #[cold]
    fn prepare_unaligned(&mut self, offset: u64, slot: &mut [u8]) {
        for (position, byte) in (offset..).zip(slot) {
            let within = position % BLOCK;
            if within < STAMP as u64 {
                *byte = self.stamp(position - within)[within as usize];
            }
        }
    }
}

impl Payload for Stamped {
    #[inline]
    fn prepare(&mut self, offset: u64, slot: &mut [u8]) {
        if !offset.is_multiple_of(BLOCK) || !slot.len().is_multiple_of(BLOCK_LEN) {
            return self.prepare_unaligned(offset, slot);
        }
        let mut block = offset;
        for bytes in slot.chunks_exact_mut(BLOCK_LEN) {
            bytes[..STAMP].copy_from_slice(&self.stamp(block));
            block += BLOCK;
        }
    }

    #[inline]
    fn check(&mut self, _record: u64, _offset: u64, _slot: &[u8]) -> Result<(), Fault> {
        Ok(())
    }
}

/// Reads compared with what `writer` would have written.
pub(crate) struct Checked<'r, W> {
    /// How the records were written.
    pub(crate) writer: W,
    /// The slots of a pool filled as the writer's was.
    pub(crate) reference: Slots<'r>,
}

impl<W: Payload> Payload for Checked<'_, W> {
    #[inline]
    fn prepare(&mut self, _offset: u64, _slot: &mut [u8]) {}

    #[inline]
    fn check(&mut self, record: u64, offset: u64, slot: &[u8]) -> Result<(), Fault> {
        let expected = self.reference.take(record).expect("the reference is never lent out");
        self.writer.prepare(offset, expected);
        let verdict = if slot == expected { Ok(()) } else { Err(first(offset, expected, slot)) };
        self.reference.give(record, expected);
        verdict
    }
}

#[cold]
fn first(offset: u64, expected: &[u8], found: &[u8]) -> Fault {
    for (position, (expected, found)) in (offset..).zip(expected.iter().zip(found)) {
        if expected != found {
            return Fault::Content { offset: position, expected: *expected, found: *found };
        }
    }
    unreachable!("called for records of one length that differ")
}

#[cfg(test)]
mod tests {
    use model::{Bytes, phase::Fill};
    use proptest::prelude::*;

    use super::*;
    use crate::buffer::Pool;

    #[test]
    fn a_stamp_tells_key_and_offset() {
        let mut slot = [0xffu8; 1024];
        Stamped { key: 0x0102 }.prepare(4096, &mut slot);
        assert_eq!(slot[..8], 0x0102u64.to_le_bytes());
        assert_eq!(slot[8..16], 4096u64.to_le_bytes());
        assert_eq!(slot[512 + 8..512 + 16], 4608u64.to_le_bytes());
        assert!(slot[16..512].iter().all(|byte| *byte == 0xff));
    }

    #[test]
    fn a_difference_is_found_where_it_is() {
        let fill = Fill::Random { entropy: 1.0, seed: 3 };
        let (mut written, mut pool) =
            (Pool::filled(Bytes(1000), fill).unwrap(), Pool::filled(Bytes(1000), fill).unwrap());
        let mut written = written.slots();
        let mut checked = Checked { writer: Stamped { key: 9 }, reference: pool.slots() };
        let slot = written.take(7).unwrap();
        Stamped { key: 9 }.prepare(7000, slot);
        assert_eq!(checked.check(7, 7000, slot), Ok(()));
        slot[123] ^= 1;
        let expected = slot[123] ^ 1;
        let fault = Fault::Content { offset: 7123, expected, found: slot[123] };
        assert_eq!(checked.check(7, 7000, slot), Err(fault));
    }

    proptest! {
        #[test]
        fn what_a_byte_holds_does_not_depend_on_the_record_it_is_in(
            key: u64, start in 0u64..2000, cut in 0usize..3000
        ) {
            let mut whole = [0u8; 3000];
            let mut parts = [0u8; 3000];
            Stamped { key }.prepare(start, &mut whole);
            let (head, tail) = parts.split_at_mut(cut);
            Stamped { key }.prepare(start, head);
            Stamped { key }.prepare(start + cut as u64, tail);
            prop_assert_eq!(whole, parts);
        }

        #[test]
        fn the_fast_way_stamps_as_the_general_one(key: u64, block in 0u64..1 << 40) {
            let (mut fast, mut general) = ([0u8; 4096], [0u8; 4096]);
            Stamped { key }.prepare(block * 512, &mut fast);
            Stamped { key }.prepare_unaligned(block * 512, &mut general);
            prop_assert_eq!(fast, general);
        }
    }
}
