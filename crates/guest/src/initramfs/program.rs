//! Requirements of a program: its loader and libraries, or its interpreter.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

/// Dependencies of an ELF file, from its dynamic section and program headers (ld.so(8); System V
/// ABI, chapter 5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Linkage {
    /// Architecture (`e_machine`).
    pub(super) machine: u16,
    /// Loader (`PT_INTERP`).
    pub(super) loader: Option<PathBuf>,
    /// Required libraries (`DT_NEEDED`), by name or path.
    pub(super) needed: Vec<OsString>,
    /// Search path of the file's libraries, and of the libraries that those need (`DT_RPATH`).
    /// Empty if `runpath` is set.
    pub(super) rpath: Vec<OsString>,
    /// Search path of the file's direct libraries only (`DT_RUNPATH`).
    pub(super) runpath: Vec<OsString>,
    /// End of the mapped part of the file, which is followed by symbols and debug information.
    mapped_end: u64,
}

/// File type of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 64-bit ELF file.
    Elf(Linkage),
    /// Script, with its interpreter and the optional argument; execve(2).
    Script(PathBuf, Option<OsString>),
}

/// Maximum length of a script's first line (`BINPRM_BUF_SIZE` of the kernel).
const FIRST_LINE_MAX: usize = 256;
/// Maximum number of libraries and directories, more than any program has.
const ENTRIES_MAX: usize = 1000;

/// Parses a program. The error describes the defect.
pub(super) fn kind(bytes: &[u8]) -> Result<Kind, String> {
    if let Some(rest) = bytes.strip_prefix(b"#!") {
        let line = &rest[..rest.len().min(FIRST_LINE_MAX - 2)];
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
        let space = line.iter().position(|byte| b" \t".contains(byte)).unwrap_or(line.len());
        let (interpreter, argument) = line.split_at(space);
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let argument = Some(argument.trim_ascii()).filter(|argument| !argument.is_empty());
        if !interpreter.starts_with(b"/") {
            return Err("its first line has no absolute path of an interpreter".to_owned());
        }
        return Ok(Kind::Script(text(interpreter).into(), argument.map(text)));
    }
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err("it is neither an ELF file nor a script".to_owned());
    }
    linkage(bytes).map(Kind::Elf)
}

fn linkage(bytes: &[u8]) -> Result<Linkage, String> {
    let failed = |error: object::Error| format!("it is not a 64-bit ELF file: {error}");
    let header = FileHeader64::<Endianness>::parse(bytes).map_err(failed)?;
    let endian = header.endian().map_err(failed)?;
    let segments = header.program_headers(endian, bytes).map_err(failed)?;
    let entry = u64::from(header.e_phentsize(endian)) * segments.len() as u64;
    let mut linkage = Linkage {
        machine: header.e_machine(endian).0,
        mapped_end: header.e_phoff(endian).saturating_add(entry),
        ..Linkage::default()
    };
    for segment in segments {
        let (at, length) = segment.file_range(endian);
        linkage.mapped_end = linkage.mapped_end.max(at.saturating_add(length));
        if let Some(loader) = segment.interpreter(endian, bytes).map_err(failed)? {
            linkage.loader = Some(OsString::from_vec(loader.to_vec()).into());
        }
        if let Some(entries) = segment.dynamic(endian, bytes).map_err(failed)? {
            read_dynamic(&mut linkage, endian, entries, |at, length| {
                segments
                    .iter()
                    .find_map(|segment| segment.data_range(endian, bytes, at, length).ok()?)
            })?;
        }
    }
    if linkage.needed.len() > ENTRIES_MAX {
        return Err("it needs too many libraries".to_owned());
    }
    Ok(linkage)
}

/// Parses the dynamic section. Each entry has a tag and a value; the value of a name is an offset
/// in the string table. The section contains the address of that table, and `mapped` returns the
/// bytes at an address.
fn read_dynamic<'data>(
    linkage: &mut Linkage,
    endian: Endianness,
    entries: &[elf::Dyn64<Endianness>],
    mapped: impl Fn(u64, u64) -> Option<&'data [u8]>,
) -> Result<(), String> {
    let end = entries.iter().position(|entry| entry.tag(endian) == elf::DT_NULL);
    let entries = &entries[..end.unwrap_or(entries.len())];
    let value = |tag| entries.iter().find(|e| e.tag(endian) == tag).map(|e| e.val(endian));
    let table = match (value(elf::DT_STRTAB), value(elf::DT_STRSZ)) {
        (Some(at), Some(length)) => mapped(at, length),
        _ => None,
    };
    let text = |at: u64| {
        let rest = table?.get(usize::try_from(at).ok()?..)?;
        Some(&rest[..rest.iter().position(|&byte| byte == 0)?])
    };
    for entry in entries {
        let tag = entry.tag(endian);
        if ![elf::DT_NEEDED, elf::DT_RPATH, elf::DT_RUNPATH].contains(&tag) {
            continue;
        }
        let text = text(entry.val(endian)).ok_or("its string table is damaged")?;
        let list = || {
            let parts = text.split(|&byte| byte == b':').filter(|part| !part.is_empty());
            parts.take(ENTRIES_MAX).map(|part| OsString::from_vec(part.to_vec()))
        };
        match tag {
            elf::DT_NEEDED => linkage.needed.push(OsString::from_vec(text.to_vec())),
            elf::DT_RPATH => linkage.rpath.extend(list()),
            _ => linkage.runpath.extend(list()),
        }
    }
    // ld.so(8): RPATH is ignored if RUNPATH is set.
    if !linkage.runpath.is_empty() {
        linkage.rpath.clear();
    }
    Ok(())
}

/// Removes the unmapped parts of a program: symbols and debug information (strip(1)), which are
/// most of a debug build. Fields of the header that refer to the removed sections are cleared.
pub(super) fn without_symbols(mut bytes: Vec<u8>, linkage: &Linkage) -> Vec<u8> {
    /// `e_shoff`, then `e_shnum` and `e_shstrndx`, in the header of 64-bit files.
    const SECTIONS: [std::ops::Range<usize>; 2] = [40..48, 60..64];
    if let Ok(end) = usize::try_from(linkage.mapped_end)
        && end < bytes.len()
        && end >= 64
    {
        bytes.truncate(end);
        for field in SECTIONS {
            bytes[field].fill(0);
        }
    }
    bytes
}

/// Program that `env` runs, from the argument in a script's first line; env(1).
pub(super) fn of_env(argument: &OsString) -> Option<OsString> {
    let mut words = argument.as_bytes().split(|byte| b" \t".contains(byte));
    let word = words.find(|word| !word.is_empty() && word[0] != b'-' && !word.contains(&b'='))?;
    Some(OsString::from_vec(word.to_vec()))
}

#[cfg(test)]
#[path = "program/tests.rs"]
pub(super) mod tests;
