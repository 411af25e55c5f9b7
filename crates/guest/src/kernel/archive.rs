//! Readers of untrusted archives: Debian packages (deb(5)) and tar archives with any supported
//! compression.
//!
//! The caller receives each file of an archive with an unchecked name. Sizes, numbers of files, and
//! lengths of names are limited here.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use super::source::{Source, Watched};
use crate::GuestError;

/// Magic of a Debian package, which is an ar(5) archive.
pub(crate) const AR: &[u8] = b"!<arch>\n";
/// Magic of an RPM package (`rpm(8)`'s lead).
pub(crate) const RPM: &[u8] = &[0xed, 0xab, 0xee, 0xdb];
/// Magic of a tar archive and its offset (POSIX.1-1988, `ustar`; the GNU format begins with the
/// same bytes).
const TAR: (usize, &[u8]) = (257, b"ustar");
/// Size of a member header in an ar archive.
const AR_HEADER: usize = 60;
/// Maximum number of members of a Debian package, which usually has three.
const MEMBERS_MAX: usize = 16;
/// Maximum size of an unpacked archive. The archive of a full kernel has 0.4 to 1.5 GiB, the kernel
/// source 1.5 GiB.
pub(crate) const TOTAL_MAX: u64 = 8 << 30;
/// Maximum number of files in an archive. The package of a full kernel has 5,000 files, the kernel
/// source 90,000.
const ENTRIES_MAX: usize = 200_000;
/// Maximum length of a name, `PATH_MAX` of the kernel.
const NAME_MAX: u64 = 4096;
/// Maximum size of an extended header.
const EXTENDED_MAX: u64 = 64 << 10;

/// Entry of an archive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Untrusted name.
    pub(crate) name: &'a Path,
    /// Type of the entry.
    pub(crate) kind: tar::EntryType,
    /// True if the file's owner may execute it.
    pub(crate) executable: bool,
}

/// True if a file with this beginning is a tar archive.
pub(crate) fn is_tar(first: &[u8]) -> bool {
    first.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1))
}

/// Opens the decompressed tar archive of a package or archive.
pub(crate) fn open<'a>(
    source: Source<'a>,
    file: &'a mut File,
) -> Result<Watched<'a, Box<dyn Read + 'a>>, GuestError> {
    let mut first = [0; AR.len()];
    file.read_exact(&mut first).map_err(|error| source.failed(error))?;
    if first == AR {
        let length = seek_data(source, file)?;
        return source.unpacked(file.take(length), TOTAL_MAX);
    }
    source.unpacked(io::Cursor::new(first).chain(file), TOTAL_MAX)
}

/// Reads a Debian package up to the archive `data.tar`, and returns the archive's compressed size
/// in bytes.
fn seek_data(source: Source<'_>, file: &mut File) -> Result<u64, GuestError> {
    for _ in 0..MEMBERS_MAX {
        let mut header = [0; AR_HEADER];
        file.read_exact(&mut header).map_err(|error| source.failed(error))?;
        let text = |range: std::ops::Range<usize>| str::from_utf8(&header[range]).map(str::trim);
        let (Ok(name), Ok(length), b"`\n") = (text(0..16), text(48..58), &header[58..]) else {
            return Err(source.malformed("is damaged: a member has no header"));
        };
        let length: u64 =
            length.parse().map_err(|_| source.malformed("is damaged: a member has no size"))?;
        if name.starts_with("data.tar") {
            return Ok(length);
        }
        // Members begin at even offsets.
        let skipped = io::copy(&mut file.take(length.next_multiple_of(2)), &mut io::sink());
        skipped.map_err(|error| source.failed(error))?;
    }
    Err(source.malformed("is not a Debian package: it has no data.tar"))
}

/// Calls `each` for the entries of a tar archive.
pub(crate) fn walk(
    source: Source<'_>,
    stream: &mut dyn Read,
    each: &mut dyn FnMut(&Entry<'_>, &mut dyn Read) -> Result<(), GuestError>,
) -> Result<(), GuestError> {
    let failed = |error| source.failed(error);
    let mut first = Vec::new();
    let block = TAR.0 as u64 + TAR.1.len() as u64;
    stream.take(block).read_to_end(&mut first).map_err(failed)?;
    if !is_tar(&first) {
        return Err(source.malformed("is not a package: it does not contain a tar archive"));
    }
    let mut stream = io::Cursor::new(first).chain(stream);
    let mut archive = tar::Archive::new(&mut stream);
    // Raw mode, because the library would otherwise read names of any length into memory.
    let mut name = None;
    for (count, entry) in archive.entries().map_err(failed)?.raw(true).enumerate() {
        if count == ENTRIES_MAX {
            return Err(source.malformed("has too many files for a kernel"));
        }
        let mut entry = entry.map_err(failed)?;
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() {
            let mut text = read_limited(source, &mut entry, NAME_MAX)?;
            while text.pop_if(|last| *last == 0).is_some() {}
            name = Some(text);
        } else if kind.is_pax_local_extensions() {
            name = extended_name(source, &mut entry)?.or(name);
        } else if !kind.is_gnu_longlink() && !kind.is_pax_global_extensions() {
            let name = name.take().unwrap_or_else(|| entry.header().path_bytes().into_owned());
            let name = Path::new(OsStr::from_bytes(&name));
            let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
            each(&Entry { name, kind, executable }, &mut entry)?;
        }
    }
    // The rest is read, because the end of the stream contains the checksum of the compressed data.
    io::copy(&mut stream, &mut io::sink()).map_err(failed)?;
    Ok(())
}

/// Reads an entry of limited size.
fn read_limited(source: Source<'_>, entry: &mut dyn Read, max: u64) -> Result<Vec<u8>, GuestError> {
    let mut bytes = Vec::new();
    let read = entry.take(max + 1).read_to_end(&mut bytes);
    let read = read.map_err(|error| source.failed(error))?;
    if read as u64 > max {
        return Err(source.malformed("has a file with a too long name"));
    }
    Ok(bytes)
}

/// Reads the name in an extended header, if there is one.
fn extended_name(source: Source<'_>, entry: &mut dyn Read) -> Result<Option<Vec<u8>>, GuestError> {
    let bytes = read_limited(source, entry, EXTENDED_MAX)?;
    let mut name = None;
    for extension in tar::PaxExtensions::new(&bytes) {
        let extension = extension.map_err(|error| source.failed(error))?;
        match extension.key_bytes() {
            b"path" => name = Some(extension.value_bytes().to_owned()),
            // A `size` replaces the size in the header, which can be at most 8 GiB.
            b"size" => return Err(source.malformed("has a file of more than 8 GiB")),
            _ => {}
        }
    }
    Ok(name)
}
