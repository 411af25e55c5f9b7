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
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    archive,
    keep::{Fate, fate},
    source::Source,
};
use crate::GuestError;

/// Bytes of the files that are kept, all of them. A full kernel has 70 MiB of them.
const KEPT_MAX: u64 = 2 << 30;
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

/// Unpacks what is wanted of a package into a folder, which is there and empty.
pub(super) fn unpack(
    source: Source<'_>,
    file: &mut File,
    into: &Path,
) -> Result<Contents, GuestError> {
    let mut stream = archive::open(source, file)?;
    let mut keep = Keep { source, into, contents: Contents::default() };
    archive::walk(source, &mut stream, &mut |entry, bytes| keep.take(entry, bytes))?;
    Ok(keep.contents)
}

/// Keeping what is wanted of an archive.
struct Keep<'a> {
    source: Source<'a>,
    into: &'a Path,
    contents: Contents,
}

impl Keep<'_> {
    /// Keeps a file, or does not.
    fn take(&mut self, entry: &archive::Entry<'_>, bytes: &mut dyn Read) -> Result<(), GuestError> {
        let (source, archive::Entry { name, kind, .. }) = (self.source, *entry);
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
        let length = source.pour(&mut source.watched(bytes, left), &to, mode)?;
        self.contents.bytes += length;
        self.contents.files += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
