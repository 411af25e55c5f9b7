//! Removal of the contents of a directory: files only, as a loadfile requests, or everything after
//! the clients have ended.
//!
//! Symbolic links are not followed. Directories are traversed by descriptors and with memory on the
//! stack, so that a client can do it without allocating.

use std::{
    ffi::{CStr, OsStr},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, statat, unlinkat};

use super::calls::{Refused, classify};
use crate::{calls::again, error::Operation, io::close};

/// Bytes of directory entries per call.
const LISTING: usize = 4096;
/// Maximum depth of directories that are traversed; a stack holds a few hundred such listings.
const DEPTH: u32 = 128;

/// Flags for opening a directory that is traversed.
pub(super) const WALKED: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Entries to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Files; directories are kept.
    Files,
    /// Files and directories.
    Everything,
}

/// Removal of the contents of a directory.
pub(super) struct RemoveWalk<'a> {
    /// Entries to remove.
    pub(super) what: What,
    /// Called before each entry; `false` ends the walk.
    pub(super) should_continue: &'a dyn Fn() -> bool,
    /// Directory to which directories that are too deep are moved, to be removed from there. If
    /// `None`, they are kept.
    pub(super) shallow: Option<BorrowedFd<'a>>,
}

/// End of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkEnd {
    /// Complete.
    Whole,
    /// Interrupted.
    CalledOff,
}

/// Failure that ends a walk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RemoveError {
    /// Failed call.
    pub(super) refused: Refused,
    /// Path of the failure relative to the start of the walk; empty for the start itself.
    pub(super) below: PathBuf,
}

impl RemoveError {
    /// The same error, with a path relative to the directory that contains this name.
    #[cold]
    fn within(self, name: &CStr) -> Self {
        let name = Path::new(OsStr::from_bytes(name.to_bytes()));
        // Joining with an empty path would add a trailing slash.
        let below = if self.below.as_os_str().is_empty() {
            name.to_path_buf()
        } else {
            name.join(self.below)
        };
        Self { below, ..self }
    }
}

impl From<Refused> for RemoveError {
    fn from(refused: Refused) -> Self {
        Self { refused, below: PathBuf::new() }
    }
}

impl RemoveWalk<'_> {
    /// Removes the contents of this directory. Entries that disappear in the meantime count as
    /// removed; entries that cannot be removed are kept.
    pub(super) fn below(&self, directory: OwnedFd) -> Result<WalkEnd, RemoveError> {
        self.walk(directory, 0)
    }

    fn walk(&self, directory: OwnedFd, depth: u32) -> Result<WalkEnd, RemoveError> {
        let mut memory = [MaybeUninit::uninit(); LISTING];
        let mut entries = RawDir::new(&directory, &mut memory);
        while let Some(entry) = entries.next() {
            if !(self.should_continue)() {
                return Ok(WalkEnd::CalledOff);
            }
            // A directory that is removed during the walk has no entries (ENOENT, getdents(2)).
            let Some(entry) = classify(Operation::List, entry)? else { break };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let swept = self.entry(directory.as_fd(), name, depth);
            if swept.map_err(|stuck| stuck.within(name))? == WalkEnd::CalledOff {
                return Ok(WalkEnd::CalledOff);
            }
        }
        let _ = close(directory);
        Ok(WalkEnd::Whole)
    }

    fn entry(
        &self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        depth: u32,
    ) -> Result<WalkEnd, RemoveError> {
        let Ok(status) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(WalkEnd::Whole);
        };
        if FileType::from_raw_mode(status.st_mode) != FileType::Directory {
            classify(Operation::Unlink, unlinkat(directory, name, AtFlags::empty()))?;
            return Ok(WalkEnd::Whole);
        }
        if depth + 1 >= DEPTH {
            self.lift(directory, name, status.st_ino);
            return Ok(WalkEnd::Whole);
        }
        let opened = again(|| openat(directory, name, WALKED, Mode::empty()));
        let Some(child) = classify(Operation::Open, opened)? else { return Ok(WalkEnd::Whole) };
        let swept = self.walk(child, depth + 1)?;
        if self.what == What::Everything && swept == WalkEnd::Whole {
            let gone = unlinkat(directory, name, AtFlags::REMOVEDIR);
            classify(Operation::RemoveDirectory, gone)?;
        }
        Ok(swept)
    }

    /// Moves a directory to `shallow`. Its name there is its inode number, which is unique there.
    #[cold]
    fn lift(&self, directory: BorrowedFd<'_>, name: &CStr, inode: u64) {
        if let Some(shallow) = self.shallow {
            let number = rustix::path::DecInt::new(inode);
            // A directory that cannot be moved is detected when the root is not empty at the end.
            let _ = rustix::fs::renameat(directory, name, shallow, number.as_c_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::{fs::open, io::Errno};
    use tempfile::TempDir;

    use super::*;

    const WALK: RemoveWalk<'static> =
        RemoveWalk { what: What::Files, should_continue: &|| true, shallow: None };

    #[test]
    fn a_directory_removed_during_the_walk_is_empty() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("d");
        fs::create_dir(&path).unwrap();
        let opened = open(&path, WALKED, Mode::empty()).unwrap();
        fs::remove_dir(&path).unwrap();
        let mut memory = [MaybeUninit::uninit(); LISTING];
        let listed = RawDir::new(&opened, &mut memory).next().unwrap().map(drop);
        assert_eq!(listed, Err(Errno::NOENT));
        assert_eq!(WALK.below(opened), Ok(WalkEnd::Whole));
    }

    #[test]
    fn a_failed_removal_has_its_path() {
        let refused = Refused { operation: Operation::List, errno: Errno::IO };
        let stuck = RemoveError::from(refused).within(c"b").within(c"a");
        assert_eq!(stuck, RemoveError { refused, below: PathBuf::from("a/b") });
        assert_eq!(stuck.below.as_os_str(), "a/b", "without a trailing slash");
    }
}
