//! Data without a known signature: a sample of a device's blocks.

use std::{fs::File, io};

use model::Bytes;

use super::window::read_full;

/// Bytes read at each end, where headers, tables, and boot loaders are.
const END: u64 = 1 << 20;
/// Blocks read between the ends.
const PLACES: u64 = 256;
/// Bytes of a block.
const BLOCK: u64 = 4096;

/// Offset of the first block that was read and is in use: neither all zeros nor all 0xff, which is
/// what a new or discarded device returns. `None` if no such block was found.
///
/// The first and last mebibyte are read, and 256 blocks of 4 KiB at equal distances between them; a
/// device of up to 3 MiB is read as a whole. The places depend on the size alone, so two calls read
/// the same ones. Data that is only between them is not found.
///
/// # Errors
/// Those of `pread(2)`. A file shorter than `size` is searched as far as it goes.
pub fn in_use(file: &File, size: Bytes) -> io::Result<Option<Bytes>> {
    let size = size.0;
    let middle = size.saturating_sub(2 * END);
    if middle <= PLACES * BLOCK {
        return span(file, 0, size);
    }
    let aligned = |offset: u64| offset / BLOCK * BLOCK;
    // The middle of each of as many equal parts as there are places.
    let places = (0..PLACES).map(|n| aligned(END + middle / (2 * PLACES) * (2 * n + 1)));
    let last = aligned(size - END);
    let spans = [(0, END)].into_iter().chain(places.map(|at| (at, BLOCK)));
    for (offset, length) in spans.chain([(last, size - last)]) {
        if let Some(found) = span(file, offset, length)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn span(file: &File, offset: u64, length: u64) -> io::Result<Option<Bytes>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    let n_read = read_full(file, &mut bytes, offset)?;
    let blocks = bytes[..n_read].chunks(usize::try_from(BLOCK).map_err(io::Error::other)?);
    let blank = |block: &[u8]| {
        (block[0] == 0 || block[0] == 0xff) && block[1..] == block[..block.len() - 1]
    };
    let found = blocks.zip((offset..).step_by(4096)).find(|(block, _)| !blank(block));
    Ok(found.map(|(_, at)| Bytes(at)))
}
