//! Removes what is below a directory: files only, as a load file asks for, or everything, when the
//! clients are done.
//!
//! No symbolic link is followed. Directories are walked by descriptors and with memory on the
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

use super::calls::{Refused, again, judged};
use crate::{error::Operation, io::close};

/// Bytes of entries that are read at once.
const LISTING: usize = 4096;
/// Directories below one another that are walked; a stack holds a few hundred such listings.
const DEPTH: u32 = 128;

/// How a directory is opened that is walked.
pub(super) const WALKED: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Files; directories stay.
    Files,
    /// Directories, too.
    Everything,
}

/// A walk over what is below a directory.
pub(super) struct Sweep<'a> {
    /// What it removes.
    pub(super) what: What,
    /// Asked before each entry; `false` ends it.
    pub(super) goes_on: &'a dyn Fn() -> bool,
    /// Where directories are put that lie too deep, to be removed from there. Without it they are
    /// left as they are.
    pub(super) shallow: Option<BorrowedFd<'a>>,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Swept {
    /// All was seen.
    Whole,
    /// It was called off.
    CalledOff,
}

/// A refusal that ends a walk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stuck {
    /// What was refused.
    pub(super) refused: Refused,
    /// To what, below the directory where the walk began; empty for that one itself.
    pub(super) below: PathBuf,
}

impl Stuck {
    /// The same, seen from the directory that has this name in it.
    #[cold]
    fn within(self, name: &CStr) -> Self {
        let name = Path::new(OsStr::from_bytes(name.to_bytes()));
        // Joined to nothing, a path would get a slash at its end.
        let below = if self.below.as_os_str().is_empty() {
            name.to_path_buf()
        } else {
            name.join(self.below)
        };
        Self { below, ..self }
    }
}

impl From<Refused> for Stuck {
    fn from(refused: Refused) -> Self {
        Self { refused, below: PathBuf::new() }
    }
}

impl Sweep<'_> {
    /// Removes what is below this directory. What is gone already is as good as removed; what
    /// cannot be removed is left.
    pub(super) fn below(&self, directory: OwnedFd) -> Result<Swept, Stuck> {
        self.walk(directory, 0)
    }

    fn walk(&self, directory: OwnedFd, depth: u32) -> Result<Swept, Stuck> {
        let mut memory = [MaybeUninit::uninit(); LISTING];
        let mut entries = RawDir::new(&directory, &mut memory);
        while let Some(entry) = entries.next() {
            if !(self.goes_on)() {
                return Ok(Swept::CalledOff);
            }
            // One that is removed meanwhile has no entries any more (ENOENT, getdents(2)).
            let Some(entry) = judged(Operation::List, entry)? else { break };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let swept = self.entry(directory.as_fd(), name, depth);
            if swept.map_err(|stuck| stuck.within(name))? == Swept::CalledOff {
                return Ok(Swept::CalledOff);
            }
        }
        let _ = close(directory);
        Ok(Swept::Whole)
    }

    fn entry(&self, directory: BorrowedFd<'_>, name: &CStr, depth: u32) -> Result<Swept, Stuck> {
        let Ok(status) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(Swept::Whole);
        };
        if FileType::from_raw_mode(status.st_mode) != FileType::Directory {
            judged(Operation::Unlink, unlinkat(directory, name, AtFlags::empty()))?;
            return Ok(Swept::Whole);
        }
        if depth + 1 >= DEPTH {
            self.lift(directory, name, status.st_ino);
            return Ok(Swept::Whole);
        }
        let opened = again(|| openat(directory, name, WALKED, Mode::empty()));
        let Some(child) = judged(Operation::Open, opened)? else { return Ok(Swept::Whole) };
        let swept = self.walk(child, depth + 1)?;
        if self.what == What::Everything && swept == Swept::Whole {
            let gone = unlinkat(directory, name, AtFlags::REMOVEDIR);
            judged(Operation::RemoveDirectory, gone)?;
        }
        Ok(swept)
    }

    /// Moves a directory up, under the number of its inode, which no other one there has.
    #[cold]
    fn lift(&self, directory: BorrowedFd<'_>, name: &CStr, inode: u64) {
        if let Some(shallow) = self.shallow {
            let number = rustix::path::DecInt::new(inode);
            // What cannot be moved is found when the root is not empty in the end.
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

    const SWEEP: Sweep<'static> = Sweep { what: What::Files, goes_on: &|| true, shallow: None };

    #[test]
    fn a_directory_that_is_removed_meanwhile_has_nothing_to_remove() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("d");
        fs::create_dir(&path).unwrap();
        let opened = open(&path, WALKED, Mode::empty()).unwrap();
        fs::remove_dir(&path).unwrap();
        let mut memory = [MaybeUninit::uninit(); LISTING];
        let listed = RawDir::new(&opened, &mut memory).next().unwrap().map(drop);
        assert_eq!(listed, Err(Errno::NOENT));
        assert_eq!(SWEEP.below(opened), Ok(Swept::Whole));
    }

    #[test]
    fn a_refusal_tells_where_it_was() {
        let refused = Refused { operation: Operation::List, errno: Errno::IO };
        let stuck = Stuck::from(refused).within(c"b").within(c"a");
        assert_eq!(stuck, Stuck { refused, below: PathBuf::from("a/b") });
        assert_eq!(stuck.below.as_os_str(), "a/b", "without a slash at its end");
    }
}
