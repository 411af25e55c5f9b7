//! Claim of an image file: checks that the file may be created or overwritten.

use std::{
    fmt,
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use model::Bytes;
use rustix::{
    fs::{FlockOperation, SeekFrom, flock, seek},
    io::Errno,
};

use super::{
    Permission, Refusal, Roots,
    lock::holder,
    store::is_same_file,
    usage::{persistent, user_of_file},
};
use crate::{
    host::Identity,
    signature::{self, Signature},
};

/// Smallest unit of an image size: a multiple of every sector size of loop devices, so that no tail
/// is lost.
const IMAGE_UNIT: u64 = 4096;

/// Bytes read at once in the search for data.
const READ_CHUNK: usize = 1 << 20;

/// Image path that may be used, and its current state.
#[derive(Debug)]
pub enum ClaimedImage {
    /// No file exists; its creation should check that again (`O_EXCL`).
    New,
    /// A regular file of zeros.
    Blank {
        /// Identity of the checked file: only this one may be overwritten.
        identity: Identity,
    },
    /// An image with contents that may be overwritten.
    Replace {
        /// Signatures found.
        found: Vec<Signature>,
        /// Identity of the checked file: only this one may be overwritten.
        identity: Identity,
    },
}

impl fmt::Display for ClaimedImage {
    /// Description of the data that would be lost.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => write!(f, "new file"),
            Self::Blank { .. } => write!(f, "existing file, blank"),
            Self::Replace { found, .. } => write!(f, "existing image with {}", list(found)),
        }
    }
}

/// Checks that an image of `size` may be created at `path`, or may replace an existing file.
///
/// An existing file with a known signature counts as an image and requires `--overwrite-device
/// PATH`. A file of zeros is free to use. A file with any other data counts as a document and is
/// always rejected. The check reads an unused file up to its first non-zero byte, without holes; if
/// all bytes are zero, the time is proportional to its allocated size.
///
/// # Errors
/// [`Refusal::ImageSize`], [`Refusal::StoreIsTarget`], [`Refusal::Open`],
/// [`Refusal::NotRegularFile`], [`Refusal::ImageInUse`], [`Refusal::ImageLinks`],
/// [`Refusal::NotAnImage`], [`Refusal::ImageOccupied`], [`Refusal::Unreadable`].
pub fn claim_image(
    path: &Path,
    size: Bytes,
    permission: &Permission,
    roots: &Roots,
) -> Result<ClaimedImage, Refusal> {
    if size == Bytes(0) || !size.0.is_multiple_of(IMAGE_UNIT) {
        return Err(Refusal::ImageSize { size });
    }
    if is_same_file(&permission.store_file, path) {
        return Err(Refusal::StoreIsTarget { path: path.into() });
    }
    let refused = |source| Refusal::Open { path: path.into(), source };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return claim_new(path),
        Err(error) => return Err(refused(error)),
    };
    if !metadata.is_file() {
        return Err(Refusal::NotRegularFile { path: path.into() });
    }
    let canonical = path.canonicalize().map_err(refused)?;
    if let Some(by) = user_of_file(&canonical, roots)? {
        return Err(Refusal::ImageInUse { path: path.into(), by });
    }
    let file = File::open(&canonical).map_err(refused)?;
    // Of the open file: its name may lead to another file at any time.
    let metadata = file.metadata().map_err(refused)?;
    if !metadata.is_file() {
        return Err(Refusal::NotRegularFile { path: path.into() });
    }
    if metadata.nlink() > 1 {
        return Err(Refusal::ImageLinks { path: path.into(), links: metadata.nlink() });
    }
    if persistent(|| is_locked(&file).then_some(())).is_some() {
        let by = format!("locked by {}", holder(&file, roots));
        return Err(Refusal::ImageInUse { path: path.into(), by });
    }
    let identity = Identity { device: metadata.dev(), inode: metadata.ino() };
    let found = signature::probe(&file, Bytes(metadata.len())).map_err(refused)?;
    if found.is_empty() {
        return match is_blank(&file).map_err(refused)? {
            true => Ok(ClaimedImage::Blank { identity }),
            false => Err(Refusal::NotAnImage { path: path.into() }),
        };
    }
    let permitted = |name: &String| [path, &canonical].contains(&Path::new(name.trim()));
    if permission.overwrite.iter().any(permitted) {
        return Ok(ClaimedImage::Replace { found, identity });
    }
    Err(Refusal::ImageOccupied { path: path.into(), found: list(&found) })
}

/// True if another process has locked a file, by either kind of lock (fcntl(2), flock(2)), as
/// virtual machines lock their disks.
fn is_locked(file: &File) -> bool {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return true,
        // Closing the file alone would not release it while a process is being started.
        Ok(()) => drop(flock(file, FlockOperation::Unlock)),
        // Some network filesystems lock only what is open for writing.
        Err(_) => {}
    }
    // A filesystem without such locks has none.
    sys::lock::is_locked(file).unwrap_or(false)
}

/// A path that does not exist: its directory must exist, and it must not be a dangling link.
fn claim_new(path: &Path) -> Result<ClaimedImage, Refusal> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(Refusal::NotRegularFile { path: path.into() });
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    match fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => Ok(ClaimedImage::New),
        Ok(_) => Err(Refusal::NotRegularFile { path: directory.into() }),
        Err(source) => Err(Refusal::Open { path: directory.into(), source }),
    }
}

/// True if every byte of a file is zero. Holes are not read (lseek(2), `SEEK_DATA`; without support
/// of the filesystem, everything counts as data).
fn is_blank(file: &File) -> io::Result<bool> {
    let mut buffer = vec![0; READ_CHUNK];
    let mut position = 0;
    loop {
        position = match seek(file, SeekFrom::Data(position)) {
            Ok(data) => data,
            // No data from here to the end.
            Err(Errno::NXIO) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let n_read = file.read_at(&mut buffer, position)?;
        if n_read == 0 {
            return Ok(true);
        }
        if buffer[..n_read].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        position += n_read as u64;
    }
}

fn list(found: &[Signature]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
