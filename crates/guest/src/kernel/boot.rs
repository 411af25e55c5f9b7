//! The boot image of a PC, `bzImage` or `vmlinuz`: a header, and behind it the packed `vmlinux`.
//!
//! An open file enters; what its header says leaves ([`Header`]), and the `vmlinux` in it, unpacked
//! into a file ([`Header::extract`]). An emulator takes seconds to do that inside, and fractions of
//! one to read what was unpacked here. Format: the kernel's `Documentation/arch/x86/boot.rst`,
//! by whose names the fields are called.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::fs::FileExt as _,
    path::Path,
};

use super::{elf, source::Packing, source::Source};
use crate::GuestError;

/// Bytes of the image in which its header lies: 0x202 + the offset of its jump, which is one byte.
const HEADER: usize = 0x400;
/// `boot_flag`, and its place.
const BOOT_FLAG: (usize, [u8; 2]) = (0x1fe, [0x55, 0xaa]);
/// `header`, and its place.
const MAGIC: (usize, [u8; 4]) = (0x202, *b"HdrS");
/// The `version` since which `payload_offset` is there.
const SINCE: u16 = 0x0208;
/// Bytes of a `vmlinux` that are believed; those of distributions have less than 100 MiB.
const VMLINUX_MAX: u32 = 1 << 30;

/// What the header of a boot image says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// What `uname -r` will say.
    pub(super) release: String,
    /// Where the packed kernel begins.
    offset: u64,
    /// Its length in bytes.
    length: u64,
}

impl Header {
    /// Whether a file that begins so is a boot image.
    pub(super) fn is_at(first: &[u8]) -> bool {
        let has = |place: usize, mark: &[u8]| first.get(place..place + mark.len()) == Some(mark);
        has(BOOT_FLAG.0, &BOOT_FLAG.1) && has(MAGIC.0, &MAGIC.1)
    }

    /// Reads the header.
    pub(super) fn read(source: Source<'_>, file: &File) -> Result<Self, GuestError> {
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0).map_err(|error| source.failed(error))?;
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u64::from(short(at)) | u64::from(short(at + 2)) << 16;
        if !Self::is_at(&header) || short(0x206) < SINCE {
            return Err(source.malformed("is no boot image of a kernel newer than 2.6.26"));
        }
        // `setup_sects`: 0 stands for 4, and the sector of the boot loader is not counted.
        let sectors = if header[0x1f1] == 0 { 4 } else { u64::from(header[0x1f1]) };
        let offset = (sectors + 1) * 512 + long(0x248);
        let mut text = [0; 128];
        let at = u64::from(short(0x20e)) + 0x200;
        let read = file.read_at(&mut text, at).map_err(|error| source.failed(error))?;
        let text = text[..read].split(|byte| b" \0".contains(byte)).next().unwrap_or_default();
        let release = String::from_utf8_lossy(text).into_owned();
        if !elf::is_release(&release) {
            return Err(source.malformed("is a boot image that does not say which release it is"));
        }
        Ok(Self { release, offset, length: long(0x24c) })
    }

    /// Unpacks the `vmlinux`.
    pub(super) fn extract(
        &self,
        source: Source<'_>,
        mut file: &File,
        to: &Path,
    ) -> Result<(), GuestError> {
        let end = self.offset + self.length;
        let size = file.metadata().map_err(|error| source.failed(error))?.len();
        if self.length < Packing::MAGIC as u64 {
            return Err(source.malformed(format!("holds a kernel of {} bytes", self.length)));
        }
        if end > size {
            let why = format!("ends at {size}, though its kernel does at {end}; copy it anew");
            return Err(source.malformed(why));
        }
        let mut first = [0; Packing::MAGIC];
        file.read_exact_at(&mut first, self.offset).map_err(|error| source.failed(error))?;
        // Whatever packed it, the last four bytes are the length of what comes out, modulo 2^32
        // (`arch/x86/boot/compressed/mkpiggy.c`). To gzip they belong, to others they were added.
        let mut length = [0; 4];
        file.read_exact_at(&mut length, end - 4).map_err(|error| source.failed(error))?;
        let wanted = u32::from_le_bytes(length);
        if wanted > VMLINUX_MAX {
            return Err(source.malformed(format!("holds a kernel of {wanted} bytes")));
        }
        let packed = match Packing::of(&first) {
            Packing::Gzip => self.length,
            Packing::None | Packing::Xz | Packing::Zstd | Packing::Lz4 | Packing::Unread(_) => {
                self.length - 4
            }
        };
        file.seek(SeekFrom::Start(self.offset)).map_err(|error| source.failed(error))?;
        let mut stream = source.unpacked(file.take(packed), wanted.into())?;
        let length = source.pour(&mut stream, to, 0o644)?;
        if length != u64::from(wanted) {
            let why = format!("{length} of {wanted} bytes came out of its kernel; copy it anew");
            return Err(source.malformed(why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
