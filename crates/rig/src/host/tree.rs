//! Removal of a directory tree that fslab created, possibly in a directory of another user.
//!
//! Input: a path, the identity of the directory that fslab created there, and the text of its
//! marker file. The directory is opened once, and all reads and removals are relative to this file
//! descriptor. A component of the path that is replaced by a symbolic link during the removal
//! therefore has no effect. Symbolic links in the tree are removed, not followed. Mount points are
//! not crossed.

use std::{
    ffi::{CStr, OsStr},
    io::{self, Read as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxFlags, fstat, openat, statat, statx,
        unlinkat,
    },
    io::Errno,
};

use super::Identity;

/// File in a directory tree created by fslab that contains the ID of its run.
pub const MARKER: &str = ".fslab-run";

/// Maximum number of bytes read from a marker, which contains a run ID.
const MARKER_LENGTH: u64 = 4096;

/// Reason why a directory tree was not removed, or removed only partly.
#[derive(Debug, thiserror::Error)]
pub enum TreeRefusal {
    /// The path does not lead to the directory created by fslab.
    #[error("it is not the directory created by fslab; find that one and remove it")]
    Replaced,
    /// The marker is missing or belongs to another run.
    #[error(
        "it does not contain the marker of this run; check its contents and remove it manually"
    )]
    Marker,
    /// A filesystem is mounted in the tree.
    #[error("{} is a mount point; unmount it", .0.display())]
    Mounted(PathBuf),
    /// A file or directory of the tree cannot be read or removed.
    #[error("{}: {source}; remove it yourself", .path.display())]
    Failed {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
}

/// Mount of a directory: the device number, and the mount ID (statx(2)) if the kernel provides it.
/// Bind mounts of one filesystem have the same device number and different mount IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mount {
    device: u64,
    id: Option<u64>,
}

/// Removes a directory tree; succeeds if the tree does not exist.
///
/// # Errors
/// [`TreeRefusal`].
pub(super) fn remove(
    path: &Path,
    token: &str,
    identity: Option<Identity>,
) -> Result<(), TreeRefusal> {
    let failed = |errno: Errno| TreeRefusal::Failed { path: path.to_owned(), source: errno.into() };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(TreeRefusal::Replaced);
    };
    // Symbolic links in the parent path are followed; the identity check detects a wrong directory.
    let of_path = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = match openat(CWD, parent, of_path, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        parent => parent.map_err(failed)?,
    };
    let top = match openat(&parent, name, flags(), Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        // The path leads to a symbolic link or a file.
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(TreeRefusal::Replaced),
        top => top.map_err(failed)?,
    };
    let found = identity_of(fstat(&top).map_err(failed)?);
    if identity.is_some_and(|made| made != found) {
        return Err(TreeRefusal::Replaced);
    }
    let mut names = 0;
    let mut marked = false;
    for entry in Dir::read_from(&top).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        names += usize::from(!dots(entry.file_name()));
        marked |= entry.file_name().to_bytes() == MARKER.as_bytes();
    }
    if names > 0 {
        let marker = if marked { marker(&top).map_err(failed)? } else { String::new() };
        // A run that is killed right after creating the marker leaves an empty marker and no other
        // file.
        let begun = marked && names == 1 && marker.is_empty();
        if !begun && marker.trim() != token {
            return Err(TreeRefusal::Marker);
        }
        let mount = mount_of(&top).map_err(failed)?;
        empty(&top, path, mount, true)?;
        // The marker is removed last, so that an interrupted removal can be resumed.
        unlinkat(&top, MARKER, AtFlags::empty()).map_err(failed)?;
    }
    let still = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map(identity_of);
    if still != Ok(found) {
        return Err(TreeRefusal::Replaced);
    }
    unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(failed)
}

/// Removes the file at a path if it has this identity; returns true if the file was removed. The
/// parent directory is opened once, so replacing it by a symbolic link during the call has no
/// effect.
pub(super) fn remove_same(path: &Path, identity: Identity) -> io::Result<bool> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let of_path = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, parent, of_path, Mode::empty())?;
    if identity_of(statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?) != identity {
        return Ok(false);
    }
    unlinkat(&parent, name, AtFlags::empty())?;
    Ok(true)
}

/// Removes the contents of an open directory; in the top directory, all except the marker. `path`
/// is used in error messages only.
fn empty(directory: &OwnedFd, path: &Path, mount: Mount, top: bool) -> Result<(), TreeRefusal> {
    let failed = |path: &Path, errno: Errno| TreeRefusal::Failed {
        path: path.to_owned(),
        source: errno.into(),
    };
    for entry in Dir::read_from(directory).map_err(|errno| failed(path, errno))? {
        let entry = entry.map_err(|errno| failed(path, errno))?;
        let name = entry.file_name();
        if dots(name) || top && name.to_bytes() == MARKER.as_bytes() {
            continue;
        }
        let path = path.join(OsStr::from_bytes(name.to_bytes()));
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
            kind = stat.map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode));
        }
        let removed = if kind == FileType::Directory {
            let inner = openat(directory, name, flags(), Mode::empty());
            let inner = inner.map_err(|errno| failed(&path, errno))?;
            if mount_of(&inner).map_err(|errno| failed(&path, errno))? != mount {
                return Err(TreeRefusal::Mounted(path));
            }
            empty(&inner, &path, mount, false)?;
            unlinkat(directory, name, AtFlags::REMOVEDIR)
        } else {
            unlinkat(directory, name, AtFlags::empty())
        };
        match removed {
            Err(Errno::BUSY) => return Err(TreeRefusal::Mounted(path)),
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(&path, errno)),
        }
    }
    Ok(())
}

/// Text of the marker; empty if the marker is not a regular file.
fn marker(top: &OwnedFd) -> Result<String, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(top, MARKER, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Ok(String::new()),
        file => file?,
    };
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Ok(String::new());
    }
    let mut text = Vec::new();
    let read = std::fs::File::from(file).take(MARKER_LENGTH).read_to_end(&mut text);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn mount_of(directory: &OwnedFd) -> Result<Mount, Errno> {
    let found = statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
    let has = |mask: u32| StatxFlags::from_bits_retain(mask).contains(StatxFlags::MNT_ID);
    let id = found.ok().filter(|found| has(found.stx_mask)).map(|found| found.stx_mnt_id);
    Ok(Mount { device: fstat(directory)?.st_dev, id })
}

fn identity_of(stat: rustix::fs::Stat) -> Identity {
    Identity { device: stat.st_dev, inode: stat.st_ino }
}

fn dots(name: &CStr) -> bool {
    [&b"."[..], b".."].contains(&name.to_bytes())
}

fn flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(test)]
mod tests;
