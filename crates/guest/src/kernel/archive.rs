//! Archives from strangers: Debian packages (deb(5)) and tar archives, however they are packed.
//!
//! An open file enters; each file of the archive is given to whoever asked, with a name that is not
//! to be trusted yet. Lengths, numbers of files, and names are bounded here; what becomes of a file
//! is decided elsewhere.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use super::source::{Source, Watched};
use crate::GuestError;

/// What a Debian package begins with: it is an ar(5) archive.
pub(crate) const AR: &[u8] = b"!<arch>\n";
/// What an RPM package begins with (`rpm(8)`'s lead).
pub(crate) const RPM: &[u8] = &[0xed, 0xab, 0xee, 0xdb];
/// The mark of a tar archive, and its place (POSIX.1-1988, `ustar`; GNU's begins so as well).
const TAR: (usize, &[u8]) = (257, b"ustar");
/// Bytes of a member's header in an ar archive.
const AR_HEADER: usize = 60;
/// Members of a Debian package; it has three.
const MEMBERS_MAX: usize = 16;
/// Bytes of an unpacked archive. That of a full kernel has 0.4 to 1.5 GiB, its source 1.5 GiB.
pub(crate) const TOTAL_MAX: u64 = 8 << 30;
/// Files in an archive. The package of a full kernel has 5,000, its source 90,000.
const ENTRIES_MAX: usize = 200_000;
/// Bytes of a name, `PATH_MAX` of the kernel.
const NAME_MAX: u64 = 4096;
/// Bytes of the extended header of a file.
const EXTENDED_MAX: u64 = 64 << 10;

/// A file of an archive, or what else it has an entry for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Its name, which is a stranger's.
    pub(crate) name: &'a Path,
    /// What it is.
    pub(crate) kind: tar::EntryType,
    /// Whether it is a program, to its owner.
    pub(crate) executable: bool,
}

/// Whether something that begins so is a tar archive.
pub(crate) fn is_tar(first: &[u8]) -> bool {
    first.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1))
}

/// The files of a package, or of an archive, unpacked.
pub(crate) fn open<'a>(
    source: Source<'a>,
    file: &'a mut File,
) -> Result<Watched<'a, Box<dyn Read + 'a>>, GuestError> {
    let mut first = [0; AR.len()];
    file.read_exact(&mut first).map_err(|error| source.failed(error))?;
    if first == AR {
        let length = data(source, file)?;
        return source.unpacked(file.take(length), TOTAL_MAX);
    }
    source.unpacked(io::Cursor::new(first).chain(file), TOTAL_MAX)
}

/// Reads a Debian package up to the files in it, and tells their packed length in bytes.
fn data(source: Source<'_>, file: &mut File) -> Result<u64, GuestError> {
    for _ in 0..MEMBERS_MAX {
        let mut header = [0; AR_HEADER];
        file.read_exact(&mut header).map_err(|error| source.failed(error))?;
        let text = |range: std::ops::Range<usize>| str::from_utf8(&header[range]).map(str::trim);
        let (Ok(name), Ok(length), b"`\n") = (text(0..16), text(48..58), &header[58..]) else {
            return Err(source.malformed("is damaged: a part of it has no header"));
        };
        let length: u64 = length
            .parse()
            .map_err(|_| source.malformed("is damaged: a part of it has no length"))?;
        if name.starts_with("data.tar") {
            return Ok(length);
        }
        // Parts begin at even places.
        let skipped = io::copy(&mut file.take(length.next_multiple_of(2)), &mut io::sink());
        skipped.map_err(|error| source.failed(error))?;
    }
    Err(source.malformed("has no part data.tar, so it is no Debian package"))
}

/// Goes through a tar archive.
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
        return Err(source.malformed("is no package: what is packed in it is no tar archive"));
    }
    let mut stream = io::Cursor::new(first).chain(stream);
    let mut archive = tar::Archive::new(&mut stream);
    // Raw, since names of any length would otherwise be read into memory.
    let mut name = None;
    for (count, entry) in archive.entries().map_err(failed)?.raw(true).enumerate() {
        if count == ENTRIES_MAX {
            return Err(source.malformed("has more files than a kernel can have"));
        }
        let mut entry = entry.map_err(failed)?;
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() {
            let mut text = short(source, &mut entry, NAME_MAX)?;
            while text.pop_if(|last| *last == 0).is_some() {}
            name = Some(text);
        } else if kind.is_pax_local_extensions() {
            name = extended(source, &mut entry)?.or(name);
        } else if !kind.is_gnu_longlink() && !kind.is_pax_global_extensions() {
            let name = name.take().unwrap_or_else(|| entry.header().path_bytes().into_owned());
            let name = Path::new(OsStr::from_bytes(&name));
            let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
            each(&Entry { name, kind, executable }, &mut entry)?;
        }
    }
    // What comes last tells whether the rest was whole.
    io::copy(&mut stream, &mut io::sink()).map_err(failed)?;
    Ok(())
}

/// Reads what has to be short.
fn short(source: Source<'_>, entry: &mut dyn Read, most: u64) -> Result<Vec<u8>, GuestError> {
    let mut bytes = Vec::new();
    let read = entry.take(most + 1).read_to_end(&mut bytes);
    let read = read.map_err(|error| source.failed(error))?;
    if read as u64 > most {
        return Err(source.malformed("has a file with a name that is too long"));
    }
    Ok(bytes)
}

/// Reads the name in an extended header, if it has one.
fn extended(source: Source<'_>, entry: &mut dyn Read) -> Result<Option<Vec<u8>>, GuestError> {
    let bytes = short(source, entry, EXTENDED_MAX)?;
    let mut name = None;
    for extension in tar::PaxExtensions::new(&bytes) {
        let extension = extension.map_err(|error| source.failed(error))?;
        match extension.key_bytes() {
            b"path" => name = Some(extension.value_bytes().to_owned()),
            // It says a second time how long a file is, for those of more than 8 GiB.
            b"size" => return Err(source.malformed("has a file that is far too long")),
            _ => {}
        }
    }
    Ok(name)
}
