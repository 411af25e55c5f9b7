//! Detection of data without a known signature, by a sample of the blocks of a device.

use std::{fs::File, io};

use model::Bytes;

use super::window::read_full;

/// Bytes read at each end of the device, where headers, tables, and boot loaders are stored.
const END: u64 = 1 << 20;
/// Number of blocks that are read between the ends.
pub(super) const SAMPLES: u64 = 256;
/// Size of a block, in bytes.
const BLOCK: u64 = 4096;

/// Offset of the first sampled block that contains data; `None` if there is none. A block with only
/// bytes 0, or only bytes 0xff, is blank, as on a new or discarded device.
///
/// The sample consists of the first and the last mebibyte and of 256 equidistant blocks of 4 KiB
/// between them. A device of up to 3 MiB is read completely. The locations depend on the size only,
/// so that each call reads the same blocks. Data in other blocks is not detected.
///
/// # Errors
/// Those of `pread(2)`. If the file is shorter than `size`, it is searched up to its end.
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
