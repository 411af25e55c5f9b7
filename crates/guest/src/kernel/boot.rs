//! Boot image of a PC, `bzImage` or `vmlinuz`: a header followed by the compressed `vmlinux`.
//!
//! The header is parsed ([`Header`]) and the `vmlinux` is extracted into a file
//! ([`Header::extract`]). An emulated guest takes seconds to decompress an image; loading an
//! extracted `vmlinux` takes fractions of a second. Format and field names: the kernel's
//! `Documentation/arch/x86/boot.rst`.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::fs::FileExt as _,
    path::Path,
};

use super::{elf, source::Compression, source::Source};
use crate::GuestError;

/// Size of a part of the image that contains the whole header, in bytes. The header ends at 0x202
/// plus the offset of the jump at its start, which is one byte.
const HEADER: usize = 0x400;
/// `boot_flag` and its offset.
const BOOT_FLAG: (usize, [u8; 2]) = (0x1fe, [0x55, 0xaa]);
/// `header` and its offset.
const MAGIC: (usize, [u8; 4]) = (0x202, *b"HdrS");
/// First `version` with `payload_offset`.
const SINCE: u16 = 0x0208;
/// Maximum size of a `vmlinux` in bytes. Distributions have kernels of less than 100 MiB.
const VMLINUX_MAX: u32 = 1 << 30;

/// Header of a boot image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Release of the kernel (`uname -r`).
    pub(super) release: String,
    /// Offset of the compressed kernel.
    offset: u64,
    /// Size of the compressed kernel in bytes.
    length: u64,
}

impl Header {
    /// True if a file with this beginning is a boot image.
    pub(super) fn is_at(first: &[u8]) -> bool {
        let has = |at: usize, magic: &[u8]| first.get(at..at + magic.len()) == Some(magic);
        has(BOOT_FLAG.0, &BOOT_FLAG.1) && has(MAGIC.0, &MAGIC.1)
    }

    /// Parses the header.
    pub(super) fn read(source: Source<'_>, file: &File) -> Result<Self, GuestError> {
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0).map_err(|error| source.failed(error))?;
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u64::from(short(at)) | u64::from(short(at + 2)) << 16;
        if !Self::is_at(&header) || short(0x206) < SINCE {
            return Err(source.malformed("is not a boot image of Linux 2.6.26 or later"));
        }
        // `setup_sects`: 0 means 4; the boot sector is not included.
        let sectors = if header[0x1f1] == 0 { 4 } else { u64::from(header[0x1f1]) };
        let offset = (sectors + 1) * 512 + long(0x248);
        let mut text = [0; 128];
        let at = u64::from(short(0x20e)) + 0x200;
        let read = file.read_at(&mut text, at).map_err(|error| source.failed(error))?;
        let text = text[..read].split(|byte| b" \0".contains(byte)).next().unwrap_or_default();
        let release = String::from_utf8_lossy(text).into_owned();
        if !elf::is_release(&release) {
            return Err(source.malformed("is a boot image without a release"));
        }
        Ok(Self { release, offset, length: long(0x24c) })
    }

    /// True if the file contains the complete kernel in a supported compression.
    pub(super) fn is_complete(&self, file: &File) -> bool {
        let mut first = [0; Compression::MAGIC];
        let end = self.offset.saturating_add(self.length);
        file.metadata().is_ok_and(|facts| facts.len() >= end)
            && file.read_exact_at(&mut first, self.offset).is_ok()
            && !matches!(Compression::of(&first), Compression::Unsupported(_))
    }

    /// Extracts the `vmlinux`.
    pub(super) fn extract(
        &self,
        source: Source<'_>,
        mut file: &File,
        to: &Path,
    ) -> Result<(), GuestError> {
        let end = self.offset + self.length;
        let size = file.metadata().map_err(|error| source.failed(error))?.len();
        if self.length < Compression::MAGIC as u64 {
            return Err(source.malformed(format!("contains a kernel of {} bytes", self.length)));
        }
        if end > size {
            let why = format!(
                "is truncated: it has {size} bytes, but its kernel ends at {end}; copy it again"
            );
            return Err(source.malformed(why));
        }
        let mut first = [0; Compression::MAGIC];
        file.read_exact_at(&mut first, self.offset).map_err(|error| source.failed(error))?;
        // For any compression, the last four bytes are the decompressed size modulo 2^32
        // (`arch/x86/boot/compressed/mkpiggy.c`). A gzip stream contains these bytes; for other
        // compressions they are appended.
        let mut length = [0; 4];
        file.read_exact_at(&mut length, end - 4).map_err(|error| source.failed(error))?;
        let expected = u32::from_le_bytes(length);
        if expected > VMLINUX_MAX {
            return Err(source.malformed(format!("contains a kernel of {expected} bytes")));
        }
        let packed = match Compression::of(&first) {
            Compression::Gzip => self.length,
            Compression::None
            | Compression::Xz
            | Compression::Zstd
            | Compression::Lz4
            | Compression::Unsupported(_) => self.length - 4,
        };
        file.seek(SeekFrom::Start(self.offset)).map_err(|error| source.failed(error))?;
        let mut stream = source.unpacked(file.take(packed), expected.into())?;
        let length = source.write_to(&mut stream, to, 0o644)?;
        if length != u64::from(expected) {
            let why = format!("its kernel has {length} instead of {expected} bytes; copy it again");
            return Err(source.malformed(why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
