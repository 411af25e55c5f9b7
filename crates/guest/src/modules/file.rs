//! Module file: decompression and metadata.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};

use super::names::normalized;
use crate::GuestError;

/// Maximum size of a module in bytes. Modules with debug information approach this size. Files are
/// untrusted and can claim any size.
const MODULE_MAX: u64 = 512 << 20;
/// Memory limit of a decompressor window, in KiB. The kernel build uses windows of at most 2 MiB
/// (`scripts/Makefile.modinst`).
const WINDOW_KIB: u32 = 64 << 10;
/// Maximum size of a `.modinfo` section in bytes.
const MODINFO_MAX: u64 = 16 << 20;

/// Metadata in the section `.modinfo` of a module, with normalized names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Info {
    /// Required modules, written by modpost (`depends=`).
    pub(super) depends: Vec<String>,
    /// Optional modules and aliases to load before this module (`softdep=pre:`).
    pub(super) pre: Vec<String>,
    /// Optional modules and aliases to load after this module (`softdep=post:`).
    pub(super) post: Vec<String>,
    /// Aliases that the kernel or a user can request.
    pub(super) aliases: Vec<String>,
}

impl Info {
    /// Parses `.modinfo`: strings `key=value`, each ended by a NUL (`include/linux/moduleparam.h`
    /// of the kernel). The format of `softdep` is that of modprobe.d(5); words before the first
    /// `pre:` or `post:` are ignored.
    fn of_section(section: &[u8]) -> Self {
        let mut info = Self::default();
        for text in section.split(|&byte| byte == 0) {
            let Some((key, value)) = std::str::from_utf8(text).ok().and_then(|t| t.split_once('='))
            else {
                continue;
            };
            match key {
                "depends" => {
                    info.depends.extend(value.split(',').filter(|n| !n.is_empty()).map(normalized));
                }
                "alias" if is_requestable(value) => info.aliases.push(normalized(value)),
                "softdep" => info.add_soft(value),
                _ => {}
            }
        }
        info
    }

    fn add_soft(&mut self, value: &str) {
        let mut list: Option<&mut Vec<String>> = None;
        for word in value.split_ascii_whitespace() {
            match word {
                "pre:" => list = Some(&mut self.pre),
                "post:" => list = Some(&mut self.post),
                _ => {
                    if let Some(list) = &mut list {
                        list.push(normalized(word));
                    }
                }
            }
        }
    }
}

/// True if the kernel or a user can request a module by this alias. Aliases with a colon, which are
/// most aliases, are used by udev to find hardware drivers (`pci:...`). Aliases with spaces cannot
/// be requested.
pub(super) fn is_requestable(alias: &str) -> bool {
    let excluded = |letter: char| letter == ':' || letter.is_whitespace() || letter.is_control();
    !alias.is_empty() && !alias.contains(excluded)
}

/// Reads the metadata of a module. Of an uncompressed file, little more than the metadata is read.
pub(super) fn info(path: &Path) -> Result<Info, GuestError> {
    let malformed = |why: String| GuestError::Malformed { path: path.to_owned(), why };
    let section = if path.extension().is_some_and(|ending| ending == "ko") {
        let file = open(path)?;
        let cache = ReadCache::new(file);
        modinfo(&cache)
    } else {
        modinfo(read(path)?.as_slice())
    };
    Ok(Info::of_section(&section.map_err(malformed)?))
}

/// Section `.modinfo` of a module; empty if it has none.
fn modinfo<'data, R: ReadRef<'data>>(data: R) -> Result<Vec<u8>, String> {
    let failed = |error: object::Error| format!("it is not a 64-bit module: {error}");
    let header = FileHeader64::<Endianness>::parse(data).map_err(failed)?;
    let endian = header.endian().map_err(failed)?;
    let sections = header.sections(endian, data).map_err(failed)?;
    let Some((_, section)) = sections.section_by_name(endian, b".modinfo") else {
        return Ok(Vec::new());
    };
    if section.sh_size(endian) > MODINFO_MAX {
        return Err("its section .modinfo is too long".to_owned());
    }
    Ok(section.data(endian, data).map_err(failed)?.to_vec())
}

/// Reads and decompresses a module.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, GuestError> {
    let malformed = |why: String| GuestError::Malformed { path: path.to_owned(), why };
    let file = BufReader::new(open(path)?);
    let ending = path.extension().and_then(|ending| ending.to_str());
    let reader: Box<dyn Read> = match ending {
        Some("xz") => Box::new(lzma_rust2::XzReader::new_mem_limit(file, true, WINDOW_KIB)),
        Some("zst") => Box::new(
            ruzstd::decoding::StreamingDecoder::new(file)
                .map_err(|error| malformed(format!("it cannot be decompressed: {error}")))?,
        ),
        Some("gz") => Box::new(flate2::read::MultiGzDecoder::new(file)),
        _ => Box::new(file),
    };
    let mut bytes = Vec::new();
    reader
        .take(MODULE_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| malformed(format!("it cannot be read completely: {error}")))?;
    if bytes.len() as u64 > MODULE_MAX {
        return Err(too_long(path));
    }
    Ok(bytes)
}

/// Opens a module and checks its size, because an uncompressed file is read at offsets that the
/// file states.
fn open(path: &Path) -> Result<File, GuestError> {
    let failed = || GuestError::io(format!("cannot open the module {}", path.display()));
    let file = File::open(path).map_err(failed())?;
    if file.metadata().map_err(failed())?.len() > MODULE_MAX {
        return Err(too_long(path));
    }
    Ok(file)
}

fn too_long(path: &Path) -> GuestError {
    let why = format!("it is longer than {} MiB", MODULE_MAX >> 20);
    GuestError::Malformed { path: path.to_owned(), why }
}

#[cfg(test)]
#[path = "file/tests.rs"]
mod tests;
