//! Parts of a device that may contain signatures. Each part is read once.

use std::{fs::File, io, os::unix::fs::FileExt};

use model::Bytes;

/// Size of the part at the start of the device. This part ends with the second label of ZFS; later
/// locations are read separately ([`ISLANDS`]).
const HEAD: u64 = 512 << 10;
/// Size of the part at the end of the device. The last two labels of ZFS are in the last two
/// complete units of 256 KiB, and up to 256 KiB may follow.
const TAIL: u64 = 768 << 10;
/// Offsets after [`HEAD`] of second LUKS2 headers (LUKS2 on-disk format specification, 2.1) and of
/// VMFS headers.
const ISLANDS: [u64; 4] = [0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000];
/// Bytes read at each offset in [`ISLANDS`].
const ISLAND: u64 = 4096;

/// Data that was read from a device.
pub(super) struct Window {
    /// Size of the device.
    pub(super) size: u64,
    parts: Vec<(u64, Vec<u8>)>,
}

impl Window {
    pub(super) fn read(file: &File, size: Bytes) -> io::Result<Self> {
        let size = size.0;
        let spans = [(0, HEAD), (size.saturating_sub(TAIL), TAIL)]
            .into_iter()
            .chain(ISLANDS.map(|offset| (offset, ISLAND)));
        let mut parts = Vec::new();
        for (offset, length) in spans.filter(|(offset, _)| *offset < size) {
            let length = length.min(size - offset);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
            let n_read = read_full(file, &mut bytes, offset)?;
            bytes.truncate(n_read);
            parts.push((offset, bytes));
        }
        Ok(Self { size, parts })
    }

    /// Bytes at `offset`; `None` if they are beyond the end or were not read.
    pub(super) fn bytes(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.parts.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(length)?)
        })
    }

    /// True if `magic` is at `offset`.
    pub(super) fn has(&self, offset: u64, magic: &[u8]) -> bool {
        self.bytes(offset, magic.len()) == Some(magic)
    }

    /// Byte at `offset`; 0 if it was not read.
    pub(super) fn u8(&self, offset: u64) -> u8 {
        self.array::<1>(offset)[0]
    }

    /// Little-endian number of 16 bits; 0 if it was not read.
    pub(super) fn u16(&self, offset: u64) -> u16 {
        u16::from_le_bytes(self.array(offset))
    }

    /// Little-endian number of 32 bits; 0 if it was not read.
    pub(super) fn u32(&self, offset: u64) -> u32 {
        u32::from_le_bytes(self.array(offset))
    }

    /// Offset that is `back` bytes before the end; `None` if the device is too small.
    pub(super) fn before_end(&self, back: u64) -> Option<u64> {
        self.size.checked_sub(back)
    }

    /// The `N` bytes at `offset`; zeros if they were not read.
    pub(super) fn array<const N: usize>(&self, offset: u64) -> [u8; N] {
        self.bytes(offset, N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    /// Trimmed text in a field of `length` bytes, which ends at the first NUL or with the field.
    /// `None` if the text is empty or was not read.
    pub(super) fn text(&self, offset: u64, length: usize) -> Option<String> {
        let field = self.bytes(offset, length)?;
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(length);
        let text = String::from_utf8_lossy(&field[..end]);
        let trimmed = text.trim();
        (!trimmed.is_empty()).then(|| trimmed.to_owned())
    }

    /// Text in a field of `units` units of little-endian UTF-16, which ends at the first NUL or
    /// with the field. `None` if the text is empty or was not read.
    pub(super) fn text_utf16(&self, offset: u64, units: usize) -> Option<String> {
        let field = self.bytes(offset, units * 2)?;
        let units = field.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let units = units.take_while(|unit| *unit != 0);
        let text: String =
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        (!text.is_empty()).then_some(text)
    }

    /// UUID, printed in the order of its bytes; `None` if all bytes are zero or were not read.
    pub(super) fn uuid(&self, offset: u64) -> Option<String> {
        uuid_text(self.array(offset))
    }

    /// UUID in the format of UEFI, in which the first three groups are little-endian. `None` if all
    /// bytes are zero or were not read.
    pub(super) fn guid(&self, offset: u64) -> Option<String> {
        let mut bytes: [u8; 16] = self.array(offset);
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        uuid_text(bytes)
    }
}

fn uuid_text(bytes: [u8; 16]) -> Option<String> {
    if bytes == [0; 16] {
        return None;
    }
    let mut text = hex::encode(bytes);
    for hyphen in [20, 16, 12, 8] {
        text.insert(hyphen, '-');
    }
    Some(text)
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes read.
pub(super) fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut n_read = 0;
    while n_read < buffer.len() {
        match file.read_at(&mut buffer[n_read..], offset + n_read as u64) {
            Ok(0) => break,
            Ok(n) => n_read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n_read)
}
