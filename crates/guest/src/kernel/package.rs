//! Packages of distributions: what of them boots, and its modules, unpacked into a folder.
//!
//! An open file enters, a Debian package (deb(5)) or a tar archive; the files that
//! [`super::keep`] wants are written below a folder, and a list of them leaves ([`Contents`]). The
//! package is a stranger's: only regular files are made, never a link, so that nothing can lead out
//! of the folder; any other kind among those wanted, a name that leads out, or an absurd length is
//! an error.
//!
//! Deliberately not here: scripts of packages, their signatures, and what they depend on.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{
    keep::{Fate, fate},
    source::Source,
};
use crate::GuestError;

/// What a Debian package begins with: it is an ar(5) archive.
pub(super) const AR: &[u8] = b"!<arch>\n";
/// What an RPM package begins with (`rpm(8)`'s lead).
pub(super) const RPM: &[u8] = &[0xed, 0xab, 0xee, 0xdb];
/// The mark of a tar archive, and its place (POSIX.1-1988, `ustar`; GNU's begins so as well).
const TAR: (usize, &[u8]) = (257, b"ustar");
/// Bytes of a member's header in an ar archive.
const AR_HEADER: usize = 60;
/// Members of a Debian package; it has three.
const MEMBERS_MAX: usize = 16;
/// Bytes of an unpacked package. That of a full kernel has 0.4 to 1.5 GiB.
const TOTAL_MAX: u64 = 8 << 30;
/// Bytes of the files that are kept, all of them. A full kernel has 70 MiB of them.
const KEPT_MAX: u64 = 2 << 30;
/// Files in a package. That of a full kernel has 5,000.
const ENTRIES_MAX: usize = 200_000;
/// Bytes of a name, `PATH_MAX` of the kernel.
const NAME_MAX: u64 = 4096;
/// Bytes of the extended header of a file.
const EXTENDED_MAX: u64 = 64 << 10;
/// Images or programs of one package that are looked at.
const IMAGES_MAX: usize = 4;

/// What was unpacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Images for a PC, packed ones first.
    pub(super) images: Vec<PathBuf>,
    /// What may be programs of user-mode Linux.
    pub(super) programs: Vec<PathBuf>,
    /// The releases that there are modules of, in `lib/modules/RELEASE` of the folder.
    pub(super) releases: Vec<String>,
    /// Files that were kept.
    pub(super) files: usize,
    /// Their length in bytes.
    pub(super) bytes: u64,
}

/// Whether something that begins so is a tar archive.
pub(super) fn is_tar(first: &[u8]) -> bool {
    first.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1))
}

/// Unpacks what is wanted of a package into a folder, which is there and empty.
pub(super) fn unpack(
    source: Source<'_>,
    file: &mut File,
    into: &Path,
) -> Result<Contents, GuestError> {
    let mut first = [0; AR.len()];
    file.read_exact(&mut first).map_err(|error| source.failed(error))?;
    if first == AR {
        let length = data(source, file)?;
        let mut member = source.unpacked(file.take(length), TOTAL_MAX)?;
        return Walk { source, into, contents: Contents::default() }.walk(&mut member);
    }
    let whole = io::Cursor::new(first).chain(file);
    let mut archive = source.unpacked(whole, TOTAL_MAX)?;
    Walk { source, into, contents: Contents::default() }.walk(&mut archive)
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

/// Going through a tar archive.
struct Walk<'a> {
    source: Source<'a>,
    into: &'a Path,
    contents: Contents,
}

impl Walk<'_> {
    fn walk(mut self, stream: &mut dyn Read) -> Result<Contents, GuestError> {
        let source = self.source;
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
                let mut text = self.short(&mut entry, NAME_MAX)?;
                while text.pop_if(|last| *last == 0).is_some() {}
                name = Some(text);
            } else if kind.is_pax_local_extensions() {
                name = self.extended(&mut entry)?.or(name);
            } else if !kind.is_gnu_longlink() && !kind.is_pax_global_extensions() {
                let name = name.take().unwrap_or_else(|| entry.header().path_bytes().into_owned());
                self.take(Path::new(OsStr::from_bytes(&name)), kind, &mut entry)?;
            }
        }
        // What comes last tells whether the rest was whole.
        io::copy(&mut stream, &mut io::sink()).map_err(failed)?;
        Ok(self.contents)
    }

    /// Reads what has to be short.
    fn short(&self, entry: &mut dyn Read, most: u64) -> Result<Vec<u8>, GuestError> {
        let mut bytes = Vec::new();
        let read = entry.take(most + 1).read_to_end(&mut bytes);
        let read = read.map_err(|error| self.source.failed(error))?;
        if read as u64 > most {
            return Err(self.source.malformed("has a file with a name that is too long"));
        }
        Ok(bytes)
    }

    /// Reads the name in an extended header, if it has one.
    fn extended(&self, entry: &mut dyn Read) -> Result<Option<Vec<u8>>, GuestError> {
        let bytes = self.short(entry, EXTENDED_MAX)?;
        let mut name = None;
        for extension in tar::PaxExtensions::new(&bytes) {
            let extension = extension.map_err(|error| self.source.failed(error))?;
            match extension.key_bytes() {
                b"path" => name = Some(extension.value_bytes().to_owned()),
                // It says a second time how long a file is, for those of more than 8 GiB.
                b"size" => return Err(self.source.malformed("has a file that is far too long")),
                _ => {}
            }
        }
        Ok(name)
    }

    /// Keeps a file, or does not.
    fn take(
        &mut self,
        name: &Path,
        kind: tar::EntryType,
        entry: &mut dyn Read,
    ) -> Result<(), GuestError> {
        let source = self.source;
        let refuse = |why: &str| source.malformed(format!("is refused: {name:?} in it {why}"));
        let fate = fate(name).map_err(refuse)?;
        if kind.is_dir() || kind.is_symlink() || fate == Fate::Leave {
            return Ok(());
        }
        if !kind.is_file() && !kind.is_contiguous() {
            return Err(refuse("is not a regular file"));
        }
        let (to, mode) = match fate {
            Fate::Image { packed } => {
                let to = self.into.join(format!("image-{}", self.contents.images.len()));
                let at = if packed { 0 } else { self.contents.images.len() };
                self.contents.images.insert(at, to.clone());
                (to, 0o644)
            }
            Fate::Program => {
                let to = self.into.join(format!("program-{}", self.contents.programs.len()));
                self.contents.programs.push(to.clone());
                (to, 0o755)
            }
            Fate::Module { release, name } => {
                let to = self.into.join("lib/modules").join(&release).join(name);
                let folder = to.parent().unwrap_or(self.into);
                let making = format!("making {}", folder.display());
                fs::create_dir_all(folder).map_err(GuestError::io(making))?;
                if !self.contents.releases.contains(&release) {
                    self.contents.releases.push(release);
                }
                (to, 0o644)
            }
            Fate::Leave => return Ok(()),
        };
        if self.contents.images.len() + self.contents.programs.len() > IMAGES_MAX {
            return Err(refuse("is one kernel too many for a package"));
        }
        let left = KEPT_MAX - self.contents.bytes;
        let length = source.pour(&mut source.watched(entry, left), &to, mode)?;
        self.contents.bytes += length;
        self.contents.files += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
