//! A file of a module: its bytes, whatever it is compressed with, and what it says about itself.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};

use super::names::normal;
use crate::GuestError;

/// The longest module that is read, in bytes: the largest ones with their debug information are of
/// this order, and a file from strangers may say that it is any size.
const MODULE_MAX: u64 = 512 << 20;
/// The memory that a decompressor may use for its window, in KiB. The kernel's own build packs with
/// windows of 2 MiB and less (`scripts/Makefile.modinst`).
const WINDOW_KIB: u32 = 64 << 10;
/// The longest `.modinfo` section that is believed, in bytes: it is text that people wrote.
const MODINFO_MAX: u64 = 16 << 20;

/// What a module says about itself in its section `.modinfo`, names normalized.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Info {
    /// The modules without which it cannot be loaded; modpost writes them (`depends=`).
    pub(super) depends: Vec<String>,
    /// Names and aliases to be loaded before it if they are there (`softdep=pre:`).
    pub(super) pre: Vec<String>,
    /// The same, after it (`softdep=post:`).
    pub(super) post: Vec<String>,
    /// The names and patterns by which the kernel may ask for it, but those of buses.
    pub(super) aliases: Vec<String>,
}

impl Info {
    /// Reads what `.modinfo` holds: texts `key=value`, each ended by a NUL. modinfo(8),
    /// `include/linux/moduleinfo.h` of the kernel; softdep as in modprobe.d(5), where words before
    /// the first `pre:` or `post:` mean nothing.
    fn of_section(section: &[u8]) -> Self {
        let mut info = Self::default();
        for text in section.split(|&byte| byte == 0) {
            let Some((key, value)) = std::str::from_utf8(text).ok().and_then(|t| t.split_once('='))
            else {
                continue;
            };
            match key {
                "depends" => {
                    info.depends.extend(value.split(',').filter(|n| !n.is_empty()).map(normal));
                }
                "alias" if is_asked_for(value) => info.aliases.push(normal(value)),
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
                        list.push(normal(word));
                    }
                }
            }
        }
    }
}

/// Whether the kernel or a person may ask for a module by this alias. Those with a colon are how
/// udev finds drivers of hardware (`pci:...`), and are most of all aliases; those with spaces could
/// not be asked for.
pub(super) fn is_asked_for(alias: &str) -> bool {
    let odd = |letter: char| letter == ':' || letter.is_whitespace() || letter.is_control();
    !alias.is_empty() && !alias.contains(odd)
}

/// Reads what a module says about itself. Of one that is not compressed little more is read.
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

/// The section `.modinfo` of a module; empty if it has none.
fn modinfo<'data, R: ReadRef<'data>>(data: R) -> Result<Vec<u8>, String> {
    let failed = |error: object::Error| format!("it is no module of a 64-bit machine: {error}");
    let header = FileHeader64::<Endianness>::parse(data).map_err(failed)?;
    let endian = header.endian().map_err(failed)?;
    let sections = header.sections(endian, data).map_err(failed)?;
    let Some((_, section)) = sections.section_by_name(endian, b".modinfo") else {
        return Ok(Vec::new());
    };
    if section.sh_size(endian) > MODINFO_MAX {
        return Err("its section .modinfo is absurdly long".to_owned());
    }
    Ok(section.data(endian, data).map_err(failed)?.to_vec())
}

/// The bytes of a module, decompressed.
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
        .map_err(|error| malformed(format!("it cannot be read to its end: {error}")))?;
    if bytes.len() as u64 > MODULE_MAX {
        return Err(too_long(path));
    }
    Ok(bytes)
}

/// Opens it, unless it is too long to be one: what is not compressed is read by its own offsets.
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
