//! Root directory of all clients of a replay: created, opened, and removed.

use std::{
    ffi::CStr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, fstat, mkdirat, openat, openat2, unlinkat,
    },
    io::{Errno, fcntl_dupfd_cloexec},
    process::geteuid,
};

use super::{
    calls::Refused,
    remove::{RemoveError, RemoveWalk, WALKED, WalkEnd, What},
};
use crate::{
    calls::again,
    error::{Failure, Fault, Operation},
    process::Identity,
};

/// Name in the directory under test.
pub(crate) const ROOT: &str = "fslab-replay";
const ROOT_NAME: &CStr = c"fslab-replay";

/// Mode of the root. Other users must not be able to create entries in the root, such as a symbolic
/// link that a client would follow.
const PRIVATE: Mode = Mode::RWXU;

/// Maximum number of attempts to remove the remaining entries. Each attempt reaches as many levels
/// deeper as [`super::remove`] traverses, and the longest path has 2047 levels.
const TIMES: u32 = 32;

/// Mode bits that let other users create entries.
const OTHERS_WRITE: u32 = 0o022;

/// Path of the root.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(ROOT)
}

/// Creates the root and returns its identity. An existing root, left by an interrupted replay, is
/// removed first.
///
/// # Errors
/// Among others [`Fault::Exchanged`] if the path does not refer to the created directory
/// afterwards.
pub(super) fn make(directory: &Path, interrupt: &AtomicBool) -> Result<Identity, Failure> {
    let parent = parent(directory)?;
    let make = || mkdirat(&parent, ROOT_NAME, PRIVATE);
    let made = match make() {
        Err(Errno::EXIST) => {
            let left = status(directory, &open(directory, &parent)?)?;
            remove(directory, Identity::of(&left), interrupt)?;
            make()
        }
        answer => answer,
    };
    made.map_err(|errno| failed(directory, Operation::MakeDirectory, errno))?;
    let status = status(directory, &open(directory, &parent)?)?;
    if !is_ours(&status) {
        return Err(exchanged(directory));
    }
    Ok(Identity::of(&status))
}

/// True if only this user can create entries. Read permission is not checked, because filesystems
/// without modes (vfat) use the modes of their mount options.
fn is_ours(status: &Stat) -> bool {
    status.st_uid == geteuid().as_raw() && status.st_mode & OTHERS_WRITE == 0
}

/// Opens the created root.
///
/// # Errors
/// [`Fault::Exchanged`] if the path refers to another directory, or other users can write to it
/// now.
pub(super) fn open_root(directory: &Path, made: Identity) -> Result<OwnedFd, Failure> {
    let root = open(directory, &parent(directory)?)?;
    let status = status(directory, &root)?;
    if Identity::of(&status) != made || !is_ours(&status) {
        return Err(exchanged(directory));
    }
    Ok(root)
}

/// Opens the directory at its path without following a link.
fn open(directory: &Path, parent: &OwnedFd) -> Result<OwnedFd, Failure> {
    open_beneath(parent, ROOT_NAME).map_err(|errno| failed(directory, Operation::Open, errno))
}

/// Opens a directory below another one to traverse it, without following links.
///
/// openat2(2) is available since Linux 5.6. If it is missing, or rejected by a seccomp filter, only
/// the last part of the path is protected.
pub(super) fn open_beneath(directory: &OwnedFd, path: &CStr) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match again(|| openat2(directory, path, WALKED, Mode::empty(), resolve)) {
        Err(Errno::NOSYS | Errno::PERM) => again(|| openat(directory, path, WALKED, Mode::empty())),
        answer => answer,
    }
}

fn status(directory: &Path, root: &OwnedFd) -> Result<Stat, Failure> {
    fstat(root).map_err(|errno| failed(directory, Operation::Examine, errno))
}

/// Removes the created root with everything in it.
///
/// While entries are removed, a listing may miss other entries, and very deep directories are first
/// moved up. The removal is therefore repeated until nothing is left.
///
/// # Errors
/// Among others [`Fault::Exchanged`] if the path refers to another directory, which is not changed.
pub(super) fn remove(
    directory: &Path,
    made: Identity,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let parent = parent(directory)?;
    let should_continue = || !interrupt.load(Relaxed);
    for _ in 0..TIMES {
        let root = open(directory, &parent)?;
        if Identity::of(&status(directory, &root)?) != made {
            return Err(exchanged(directory));
        }
        let top = fcntl_dupfd_cloexec(&root, 0)
            .map_err(|errno| failed(directory, Operation::Open, errno))?;
        let shallow = Some(top.as_fd());
        let walk =
            RemoveWalk { what: What::Everything, should_continue: &should_continue, shallow };
        let swept = walk.below(root).map_err(
            |RemoveError { refused: Refused { operation, errno }, below }| Failure {
                fault: Fault::whole(operation, errno),
                path: path(directory).join(below),
            },
        )?;
        if swept == WalkEnd::CalledOff {
            return Err(Failure { fault: Fault::Aborted, path: path(directory) });
        }
        match unlinkat(&parent, ROOT_NAME, AtFlags::REMOVEDIR) {
            Ok(()) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(errno) => return Err(failed(directory, Operation::RemoveDirectory, errno)),
        }
    }
    Err(failed(directory, Operation::RemoveDirectory, Errno::NOTEMPTY))
}

fn parent(directory: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    again(|| openat(CWD, directory, flags, Mode::empty())).map_err(|errno| Failure {
        fault: Fault::whole(Operation::Open, errno),
        path: directory.to_path_buf(),
    })
}

fn exchanged(directory: &Path) -> Failure {
    Failure { fault: Fault::Exchanged, path: path(directory) }
}

fn failed(directory: &Path, operation: Operation, errno: Errno) -> Failure {
    Failure { fault: Fault::whole(operation, errno), path: path(directory) }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use tempfile::TempDir;

    use super::*;

    static GOES_ON: AtomicBool = AtomicBool::new(false);

    fn fault<T: std::fmt::Debug>(result: Result<T, Failure>) -> Fault {
        result.unwrap_err().fault
    }

    #[test]
    fn a_replaced_root_is_neither_used_nor_removed() {
        let (directory, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(outside.path().join("file"), "precious").unwrap();
        let made = make(directory.path(), &GOES_ON).unwrap();
        open_root(directory.path(), made).unwrap();
        let root = path(directory.path());
        let aside = directory.path().join("aside");
        fs::rename(&root, &aside).unwrap();
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(outside.path(), root.join("client0")).unwrap();
        assert_eq!(fault(open_root(directory.path(), made)), Fault::Exchanged);
        assert_eq!(fault(remove(directory.path(), made, &GOES_ON)), Fault::Exchanged);
        assert!(root.join("client0/file").exists());
        // The created directory is valid again after it was moved back, unless other users can
        // write to it.
        fs::remove_dir_all(&root).unwrap();
        fs::rename(&aside, &root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(fault(open_root(directory.path(), made)), Fault::Exchanged);
        fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
        open_root(directory.path(), made).unwrap();
        remove(directory.path(), made, &GOES_ON).unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn links_are_not_followed() {
        let (directory, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::create_dir(outside.path().join("d")).unwrap();
        symlink(outside.path(), directory.path().join("link")).unwrap();
        fs::create_dir_all(directory.path().join("real/d")).unwrap();
        let top = parent(directory.path()).unwrap();
        open_beneath(&top, c"real/d").unwrap();
        assert!(open_beneath(&top, c"link").is_err());
        let resolve = ResolveFlags::empty();
        if openat2(&top, c"real", WALKED, Mode::empty(), resolve).is_ok() {
            assert_eq!(open_beneath(&top, c"link/d").unwrap_err(), Errno::LOOP);
        }
    }
}
