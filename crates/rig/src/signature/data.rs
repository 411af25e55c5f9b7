//! Data without a known signature: a sample of a device's blocks.

use std::{fs::File, io};

use model::Bytes;

use super::window::read_full;

/// Bytes read at each end, which contain headers, tables, and boot loaders.
const END: u64 = 1 << 20;
/// Number of blocks read between the ends.
pub(super) const SAMPLES: u64 = 256;
/// Bytes per block.
const BLOCK: u64 = 4096;

/// Offset of the first sampled block that is in use: neither all zeros nor all 0xff, the contents
/// of a new or discarded device. `None` if there is no such block.
///
/// The sample consists of the first and last mebibyte and of 256 equidistant blocks of 4 KiB
/// between them; a device of up to 3 MiB is read completely. The locations depend on the size only,
/// so that two calls read the same ones. Data between them is not detected.
///
/// # Errors
/// Those of `pread(2)`. A file shorter than `size` is searched up to its end.
pub fn in_use(file: &File, size: Bytes) -> io::Result<Option<Bytes>> {
    let size = size.0;
    let middle = size.saturating_sub(2 * END);
    if middle <= SAMPLES * BLOCK {
        return span(file, 0, size);
    }
    let aligned = |offset: u64| offset / BLOCK * BLOCK;
    // The middle of each of `SAMPLES` equal parts.
    let places = (0..SAMPLES).map(|n| aligned(END + middle / (2 * SAMPLES) * (2 * n + 1)));
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
