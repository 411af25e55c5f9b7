//! Unpacks the boot file and modules of a distribution package into a directory.
//!
//! The input is a Debian package (deb(5)) or a tar archive; [`super::keep`] selects the files. The
//! result is a list of the unpacked files ([`Contents`]). Packages are untrusted: only regular
//! files are created, so that no link leads out of the directory. Directories and symbolic links
//! are skipped. Selected files of other types, names outside the directory, and excessive sizes are
//! errors.
//!
//! Out of scope: scripts, signatures, and dependencies of packages.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    archive,
    keep::{FileAction, file_action},
    source::Source,
};
use crate::GuestError;

/// Maximum total size of the unpacked files in bytes. The selected files of a full kernel have 70
/// MiB.
const KEPT_MAX: u64 = 2 << 30;
/// Maximum number of images and programs in a package.
const IMAGES_MAX: usize = 4;

/// Unpacked files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Images for a PC, compressed ones first.
    pub(super) images: Vec<PathBuf>,
    /// Candidates for user-mode Linux programs.
    pub(super) programs: Vec<PathBuf>,
    /// Releases with modules, in `lib/modules/RELEASE` of the directory.
    pub(super) releases: Vec<String>,
    /// Number of files.
    pub(super) files: usize,
    /// Total size in bytes.
    pub(super) bytes: u64,
}

/// Unpacks the selected files of a package into an existing, empty directory.
pub(super) fn unpack(
    source: Source<'_>,
    file: &mut File,
    into: &Path,
) -> Result<Contents, GuestError> {
    let mut stream = archive::open(source, file)?;
    let mut unpacker = Unpacker { source, into, contents: Contents::default() };
    archive::walk(source, &mut stream, &mut |entry, bytes| unpacker.take(entry, bytes))?;
    Ok(unpacker.contents)
}

/// State of unpacking an archive.
struct Unpacker<'a> {
    source: Source<'a>,
    into: &'a Path,
    contents: Contents,
}

impl Unpacker<'_> {
    /// Unpacks or skips a file.
    fn take(&mut self, entry: &archive::Entry<'_>, bytes: &mut dyn Read) -> Result<(), GuestError> {
        let (source, archive::Entry { name, kind, .. }) = (self.source, *entry);
        let reject = |why: &str| source.malformed(format!("is rejected: its file {name:?} {why}"));
        let action = file_action(name).map_err(reject)?;
        if kind.is_dir() || kind.is_symlink() || action == FileAction::Skip {
            return Ok(());
        }
        if !kind.is_file() && !kind.is_contiguous() {
            return Err(reject("is not a regular file"));
        }
        let (to, mode) = match action {
            FileAction::Image { packed } => {
                let to = self.into.join(format!("image-{}", self.contents.images.len()));
                let at = if packed { 0 } else { self.contents.images.len() };
                self.contents.images.insert(at, to.clone());
                (to, 0o644)
            }
            FileAction::Program => {
                let to = self.into.join(format!("program-{}", self.contents.programs.len()));
                self.contents.programs.push(to.clone());
                (to, 0o755)
            }
            FileAction::Module { release, name } => {
                let to = self.into.join("lib/modules").join(&release).join(name);
                let directory = to.parent().unwrap_or(self.into);
                let context = format!("cannot create {}", directory.display());
                fs::create_dir_all(directory).map_err(GuestError::io(context))?;
                if !self.contents.releases.contains(&release) {
                    self.contents.releases.push(release);
                }
                (to, 0o644)
            }
            FileAction::Skip => return Ok(()),
        };
        if self.contents.images.len() + self.contents.programs.len() > IMAGES_MAX {
            return Err(reject("exceeds the maximum number of kernels"));
        }
        let left = KEPT_MAX - self.contents.bytes;
        let length = source.write_to(&mut source.watched(bytes, left), &to, mode)?;
        self.contents.bytes += length;
        self.contents.files += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
