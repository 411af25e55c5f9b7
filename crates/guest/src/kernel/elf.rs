//! Classification of ELF files: the kernel of a PC, a user-mode Linux program, or neither.
//!
//! Only headers, notes, and section names are read, each up to a fixed length. Every value is
//! checked before it is used. Format: elf(5).

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
};

/// Magic of an ELF file.
pub(super) const MAGIC: [u8; 4] = *b"\x7fELF";
/// 64 bits, little endian: bytes 4 and 5.
const CLASS: [u8; 2] = [2, 1];
/// `EM_X86_64`.
const MACHINE: u16 = 62;
/// `ET_EXEC` and `ET_DYN`.
const TYPES: [u16; 2] = [2, 3];
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// Size of a program header.
const PROGRAM: usize = 56;
/// Size of a section header.
const SECTION: usize = 64;
/// Lowest address of a PC kernel (`__START_KERNEL_map` in `arch/x86/include/asm/page_64_types.h`).
/// User programs have lower addresses.
const KERNEL_TEXT: u64 = 0xffff_ffff_8000_0000;
/// Section of the command-line options, which only user-mode Linux programs have, even stripped
/// ones (`arch/um/include/asm/common.lds.S`).
const UML_SECTION: &[u8] = b".uml.setup.init";
/// Type of the note with the entry point for virtual machines (`XEN_ELFNOTE_PHYS32_ENTRY` in
/// `include/xen/interface/elfnote.h`), and the owner of the note.
const PVH_NOTE: (u32, &[u8]) = (18, b"Xen\0");
/// Maximum size of a table, and of all note segments together, in bytes. Kernels are far below.
const TABLE_MAX: u64 = 1 << 20;
/// Text before the release in a kernel (`linux_banner` in `init/version.c`).
const BANNER: &[u8] = b"Linux version ";
/// Maximum length of a release (`__NEW_UTS_LEN` in `include/uapi/linux/utsname.h`).
const RELEASE_MAX: usize = 64;

/// Type of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElfKind {
    /// Kernel of a PC.
    Pc {
        /// True if it has the note that QEMU requires to boot it directly.
        pvh: bool,
    },
    /// User-mode Linux program.
    Uml,
}

/// Classifies a file. The error states why the file is neither a PC kernel nor user-mode Linux.
pub(crate) fn examine(file: &File) -> Result<ElfKind, String> {
    let header: [u8; 64] = bytes(file, 0, 64)?.try_into().map_err(|_| TRUNCATED.to_owned())?;
    if header[..4] != MAGIC || header[4..6] != CLASS || number16(&header, 18) != MACHINE {
        return Err("is not for x86-64; other architectures are not supported".to_owned());
    }
    if !TYPES.contains(&number16(&header, 16)) {
        return Err("is an ELF file, but not a kernel: it is not linked".to_owned());
    }
    let programs = table(file, &header, (32, 54, 56), PROGRAM)?;
    let programs = programs.chunks_exact(PROGRAM);
    let segments = |kind| programs.clone().filter(move |entry| number32(entry, 0) == kind);
    if segments(PT_LOAD).any(|entry| number64(entry, 16) >= KERNEL_TEXT) {
        let (mut pvh, mut left) = (false, TABLE_MAX);
        for entry in segments(PT_NOTE) {
            // Segments may overlap, so their total size can exceed the file size.
            let length = number64(entry, 32);
            left = left
                .checked_sub(length)
                .ok_or("is an ELF file with too many notes for a kernel")?;
            let notes = bytes(file, number64(entry, 8), length)?;
            pvh |= has_note(&notes, PVH_NOTE);
        }
        return Ok(ElfKind::Pc { pvh });
    }
    let sections = table(file, &header, (40, 58, 60), SECTION)?;
    let names = usize::from(number16(&header, 62));
    let names = sections.chunks_exact(SECTION).nth(names).ok_or(NEITHER)?;
    let names = bytes(file, number64(names, 24), number64(names, 32))?;
    if names.split(|byte| *byte == 0).any(|name| name == UML_SECTION) {
        return Ok(ElfKind::Uml);
    }
    Err(NEITHER.to_owned())
}

const TRUNCATED: &str = "is truncated";
const NEITHER: &str = "is a program, but neither a vmlinux (no segment is at a kernel address) \
                       nor user-mode Linux (it has no section .uml.setup.init)";

/// Searches for the release in the kernel banner; `None` if it is not found.
pub(crate) fn release(file: &mut impl io::Read) -> io::Result<Option<String>> {
    let max = BANNER.len() + RELEASE_MAX + 1;
    let finder = memchr::memmem::Finder::new(BANNER);
    let mut window = Vec::with_capacity((1 << 20) + max);
    loop {
        let before = window.len();
        file.by_ref().take(1 << 20).read_to_end(&mut window)?;
        for at in finder.find_iter(&window) {
            let text = &window[at + BANNER.len()..window.len().min(at + max)];
            let end = text.iter().position(|byte| !is_release_byte(*byte)).unwrap_or(text.len());
            let text = String::from_utf8_lossy(&text[..end]);
            // The text of the banner also occurs without a release, in code that prints or searches
            // for it.
            if text.starts_with(|first: char| first.is_ascii_digit()) && is_release(&text) {
                return Ok(Some(text.into_owned()));
            }
        }
        if window.len() == before {
            return Ok(None);
        }
        // A match that is cut off at the end of this window is complete in the next window.
        window.drain(..window.len().saturating_sub(max));
    }
}

/// True if a text can be a release, and therefore a directory name.
pub(super) fn is_release(text: &str) -> bool {
    (1..=RELEASE_MAX).contains(&text.len())
        && text.bytes().all(is_release_byte)
        && !text.starts_with('.')
}

fn is_release_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-+_~".contains(&byte)
}

/// Reads a table of the file. `places` are offsets in the header, at which the table's offset,
/// entry size, and number of entries are. `entry` is the required entry size in bytes.
fn table(
    file: &File,
    header: &[u8; 64],
    places: (usize, usize, usize),
    entry: usize,
) -> Result<Vec<u8>, String> {
    let (offset, length, count) = places;
    let count = number16(header, count);
    if count > 0 && usize::from(number16(header, length)) != entry {
        return Err("is an ELF file with tables of an unknown format".to_owned());
    }
    bytes(file, number64(header, offset), u64::from(count) * entry as u64)
}

fn has_note(mut notes: &[u8], (wanted, owner): (u32, &[u8])) -> bool {
    while notes.len() >= 12 {
        let padded = |at| (number32(notes, at) as usize).next_multiple_of(4);
        let (name, content) = (padded(0), padded(4));
        let kind = number32(notes, 8);
        notes = &notes[12..];
        if kind == wanted && notes.starts_with(owner) && name == owner.len() {
            return true;
        }
        notes = notes.get(name.saturating_add(content)..).unwrap_or_default();
    }
    false
}

/// Reads a part of the file.
fn bytes(file: &File, offset: u64, length: u64) -> Result<Vec<u8>, String> {
    if length > TABLE_MAX {
        return Err(format!(
            "is an ELF file with a table of {length} bytes, too long for a kernel"
        ));
    }
    let length = usize::try_from(length).map_err(|error| error.to_string())?;
    let mut bytes = vec![0; length];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(TRUNCATED.to_owned()),
        // For example EINVAL, because the offset exceeds the maximum file size.
        Err(error) => Err(format!("cannot be read at offset {offset}: {error}")),
    }
}

fn number16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn number64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

#[cfg(test)]
mod tests;
