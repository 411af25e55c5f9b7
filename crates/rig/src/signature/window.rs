//! Parts of a device that contain signatures, read once.

use std::{fs::File, io, os::unix::fs::FileExt};

use model::Bytes;

/// Size of the head, which ends with the second label of ZFS. Locations further in are read
/// separately ([`ISLANDS`]).
const HEAD: u64 = 512 << 10;
/// Size of the tail: the last two labels of ZFS begin 512 KiB before the end rounded down to 256
/// KiB.
const TAIL: u64 = 768 << 10;
/// Offsets of second LUKS2 headers beyond the head (LUKS2 on-disk format specification, 2.1), and
/// of the VMFS headers.
const ISLANDS: [u64; 4] = [0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000];
/// Bytes read at each of these offsets.
const ISLAND: u64 = 4096;

/// Data read, by offset; the gaps between the parts count as missing.
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

    /// The `length` bytes at `offset`; `None` if they are beyond the end or were not read.
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

    /// A byte; 0 if it was not read, as for the other numbers here.
    pub(super) fn u8(&self, offset: u64) -> u8 {
        self.array::<1>(offset)[0]
    }

    /// A little-endian number of 16 bits.
    pub(super) fn u16(&self, offset: u64) -> u16 {
        u16::from_le_bytes(self.array(offset))
    }

    /// A little-endian number of 32 bits.
    pub(super) fn u32(&self, offset: u64) -> u32 {
        u32::from_le_bytes(self.array(offset))
    }

    /// The offset `back` bytes before the end, if the device is large enough.
    pub(super) fn before_end(&self, back: u64) -> Option<u64> {
        self.size.checked_sub(back)
    }

    /// `N` bytes; zeros if they were not read.
    pub(super) fn array<const N: usize>(&self, offset: u64) -> [u8; N] {
        self.bytes(offset, N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    /// Text in a field of `length` bytes that ends with the field or at its first NUL; `None` if it
    /// is empty.
    pub(super) fn text(&self, offset: u64, length: usize) -> Option<String> {
        let field = self.bytes(offset, length)?;
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(length);
        let text = String::from_utf8_lossy(&field[..end]);
        let trimmed = text.trim();
        (!trimmed.is_empty()).then(|| trimmed.to_owned())
    }

    /// As [`Window::text`], in little-endian UTF-16 of at most `units` units.
    pub(super) fn text_utf16(&self, offset: u64, units: usize) -> Option<String> {
        let field = self.bytes(offset, units * 2)?;
        let units = field.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let units = units.take_while(|unit| *unit != 0);
        let text: String =
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        (!text.is_empty()).then_some(text)
    }

    /// UUID in byte order; `None` if it is all zeros.
    pub(super) fn uuid(&self, offset: u64) -> Option<String> {
        uuid_text(self.array(offset))
    }

    /// UUID as stored by UEFI: the first three groups are little-endian.
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
    let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    for hyphen in [20, 16, 12, 8] {
        text.insert(hyphen, '-');
    }
    Some(text)
}

/// Reads until the buffer is full or the file ends.
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
