//! Columns of a chunk: the fields of up to [`MOST`] operations of a task.
//!
//! Each field is a column: a sequence of variable-length integers, compressed with zlib. An integer
//! is the difference from the previous value of the field (wrapping, zigzag), with seven bits per
//! byte, lowest first. A blob is, for each of the [`FIELDS`] columns, the length of the compressed
//! bytes as four bytes, lowest first, and these bytes.

use std::io::{Read, Write};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use model::phase::FileCall;

use crate::{NONE, Op, TraceError};

/// Maximum number of operations of a chunk.
pub(crate) const MOST: usize = 1 << 16;

/// Number of columns.
const FIELDS: usize = 13;

/// Maximum bytes of a column: ten per integer.
const COLUMN: u64 = 10 * MOST as u64;

fn fields(op: &Op) -> [u64; FIELDS] {
    [
        op.call.number().into(),
        op.begin,
        op.length,
        op.think,
        op.result.cast_unsigned(),
        op.fd.into(),
        op.fd2.into(),
        op.opened.into(),
        op.path.into(),
        op.path2.into(),
        op.offset,
        op.size,
        op.flags,
    ]
}

/// Encodes at most [`MOST`] operations.
pub(crate) fn encode(ops: &[Op]) -> Vec<u8> {
    let mut blob = Vec::new();
    for field in 0..FIELDS {
        let mut column = ZlibEncoder::new(Vec::new(), Compression::fast());
        let mut plain = Vec::with_capacity(ops.len() * 2);
        let mut previous = 0u64;
        for op in ops {
            let value = fields(op)[field];
            put(&mut plain, value.wrapping_sub(previous).cast_signed());
            previous = value;
        }
        // Writing to memory does not fail.
        let packed = column.write_all(&plain).and_then(|()| column.finish()).unwrap_or_default();
        let length = u32::try_from(packed.len()).unwrap_or(u32::MAX);
        blob.extend(length.to_le_bytes());
        blob.extend(packed);
    }
    blob
}

/// Appends an integer.
fn put(to: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63).cast_unsigned();
    while rest >= 0x80 {
        to.push(low(rest) | 0x80);
        rest >>= 7;
    }
    to.push(low(rest));
}

/// Lowest seven bits.
fn low(value: u64) -> u8 {
    u8::try_from(value & 0x7f).unwrap_or(0)
}

/// Reads an integer.
fn take(from: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()));
        }
    }
    None
}

/// Decodes `count` operations.
///
/// # Errors
/// If the blob is not exactly this number of operations.
pub(crate) fn decode(blob: &[u8], count: usize) -> Result<Vec<Op>, TraceError> {
    let damaged = |what: &str| TraceError::Damaged(format!("a chunk of operations {what}"));
    if count > MOST {
        return Err(damaged("is too long"));
    }
    let mut rest = blob;
    let mut rows = vec![[0u64; FIELDS]; count];
    for field in 0..FIELDS {
        let Some((length, after)) = rest.split_first_chunk::<4>() else {
            return Err(damaged("is incomplete"));
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((packed, after)) = after.split_at_checked(length) else {
            return Err(damaged("is incomplete"));
        };
        rest = after;
        let mut plain = Vec::new();
        let read = ZlibDecoder::new(packed).take(COLUMN + 1).read_to_end(&mut plain);
        read.map_err(|_| damaged("cannot be decompressed"))?;
        let (mut from, mut previous) = (plain.as_slice(), 0u64);
        for row in &mut rows {
            let step = take(&mut from).ok_or_else(|| damaged("has an invalid number"))?;
            previous = previous.wrapping_add(step.cast_unsigned());
            row[field] = previous;
        }
        if !from.is_empty() {
            return Err(damaged("has too many numbers"));
        }
    }
    if !rest.is_empty() {
        return Err(damaged("has too many columns"));
    }
    rows.iter().map(|row| op(row).ok_or_else(|| damaged("has a number out of range"))).collect()
}

fn op(row: &[u64; FIELDS]) -> Option<Op> {
    let small = |field: usize| u32::try_from(row[field]).ok();
    Some(Op {
        call: FileCall::from_number(row[0])?,
        begin: row[1],
        length: row[2],
        think: row[3],
        result: row[4].cast_signed(),
        fd: small(5)?,
        fd2: small(6)?,
        opened: small(7)?,
        path: small(8)?,
        path2: small(9)?,
        offset: row[10],
        size: row[11],
        flags: row[12],
    })
    .filter(|op| op.opened == NONE || op.succeeded())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_op() -> impl Strategy<Value = Op> {
        let numbers = prop::array::uniform5(any::<u32>());
        let long = prop::array::uniform6(any::<u64>());
        (0..FileCall::ALL.len(), numbers, long, 0i64..).prop_map(|(call, small, long, result)| Op {
            call: FileCall::ALL[call],
            begin: long[0],
            length: long[1],
            think: long[2],
            result,
            fd: small[0],
            fd2: small[1],
            opened: small[2],
            path: small[3],
            path2: small[4],
            offset: long[3],
            size: long[4],
            flags: long[5],
        })
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding(ops in prop::collection::vec(any_op(), 0..50)) {
            prop_assert_eq!(decode(&encode(&ops), ops.len()).unwrap(), ops);
        }

        #[test]
        fn a_damaged_chunk_is_an_error_or_other_operations(
            ops in prop::collection::vec(any_op(), 1..20),
            place in any::<prop::sample::Index>(),
            bit in 0..8u8,
        ) {
            let mut blob = encode(&ops);
            let place = place.index(blob.len());
            blob[place] ^= 1 << bit;
            let _ = decode(&blob, ops.len());
            prop_assert!(decode(&blob[..place], ops.len()).is_err());
        }
    }

    #[test]
    fn a_chunk_with_another_number_of_operations_is_rejected() {
        let blob = encode(&[Op::new(FileCall::Open); 3]);
        for count in [0, 2, 4, MOST + 1] {
            assert!(decode(&blob, count).is_err(), "{count}");
        }
    }

    #[test]
    fn similar_operations_take_few_bytes() {
        let ops: Vec<Op> = (0..10_000u64)
            .map(|index| Op {
                begin: index * 12_345,
                length: 2_000 + index * 7 % 1000,
                result: 4096,
                fd: 3,
                offset: index * 4096,
                size: 4096,
                ..Op::new(FileCall::Pread)
            })
            .collect();
        assert!(encode(&ops).len() < 4 * ops.len(), "{}", encode(&ops).len());
    }
}
