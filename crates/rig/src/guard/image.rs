//! Claims of image files: checks that a file may be created or overwritten.

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

/// Unit of image sizes. The unit is a multiple of every sector size of loop devices, so that a loop
/// device includes the end of the image.
const IMAGE_UNIT: u64 = 4096;

/// Bytes per read in the search for data.
const READ_CHUNK: usize = 1 << 20;

/// Claim of an image path, with the current state of the file.
#[derive(Debug)]
pub enum ClaimedImage {
    /// No file exists at the path. The caller must create the file with `O_EXCL`.
    New,
    /// A regular file that contains only zeros.
    Blank {
        /// Identity of the checked file. Only a file with this identity may be overwritten.
        identity: Identity,
    },
    /// An image with data that the user allowed to be overwritten.
    Replace {
        /// Signatures found.
        found: Vec<Signature>,
        /// Identity of the checked file. Only a file with this identity may be overwritten.
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

/// Checks that an image of `size` may be created at `path`, or may replace the existing file.
///
/// An existing file with a known signature is an image, and overwriting it requires
/// `--overwrite-device PATH`. A file that contains only zeros may always be overwritten. A file
/// with any other data is always rejected, because it may be a document. Without a signature, the
/// file is read up to its first non-zero byte, except for holes. If all bytes are zero, the time is
/// proportional to the allocated size.
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
    // The attributes of the open file are checked again, because the path may lead to another file
    // by now.
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

/// True if another process has locked a file with flock(2) or fcntl(2), as virtual machines do with
/// their disks.
fn is_locked(file: &File) -> bool {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return true,
        // Closing the file would not release the lock while a process between fork and exec shares
        // the open file.
        Ok(()) => drop(flock(file, FlockOperation::Unlock)),
        // Some network filesystems can lock only files that are open for writing.
        Err(_) => {}
    }
    // On a filesystem that does not support fcntl(2) locks, the file is not locked.
    sys::lock::is_locked(file).unwrap_or(false)
}

/// Claims a path at which no file exists. The directory must exist, and the path must not be a
/// dangling symbolic link.
fn claim_new(path: &Path) -> Result<ClaimedImage, Refusal> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(Refusal::NotRegularFile { path: path.into() });
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    // It is a directory, because the lookup of the file in it failed with ENOENT, not ENOTDIR.
    let refused = |source| Refusal::Open { path: directory.into(), source };
    fs::metadata(directory).map(|_| ClaimedImage::New).map_err(refused)
}

/// True if every byte of a file is zero. Holes are not read (lseek(2), `SEEK_DATA`). On filesystems
/// without holes, the whole file is data.
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
