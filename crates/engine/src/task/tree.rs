//! Copying a directory with all below it, as `cp -a` does, but for owners, extended attributes, and
//! hard links.

use std::{ffi::CStr, os::fd::OwnedFd, path::Path};

use model::phase::At;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Stat, fchmod, fstat, futimens, mkdirat, readlinkat, statat,
    symlinkat, utimensat,
};

use super::{
    Place, data,
    entries::modified,
    hand::{Entry, Hand, below, close, entries, failed, open_directory},
};
use crate::{EngineError, error::Operation};

/// What the owner may do with a directory until all of it is copied.
const WHILE_COPYING: u32 = 0o700;

/// Copies modes, times of last modification, and symbolic links as they are. Entries are copied in
/// the order in which the directory lists them.
pub(super) fn copy_tree(from: &Place, to: &Place, hand: &mut Hand<'_>) -> Result<(), EngineError> {
    let source = open_directory(CWD, &from.path, &from.path)?;
    let status = examine(&source, &from.path)?;
    let mode = Mode::from_raw_mode(status.st_mode & 0o777 | WHILE_COPYING);
    mkdirat(CWD, &to.path, mode)
        .map_err(|errno| failed(Operation::MakeDirectory, &to.path, errno))?;
    let target = open_directory(CWD, &to.path, &to.path)?;
    let level = Level { source, from: &from.path, target, to: &to.path };
    level.copy((from.at, to.at), &status, hand)
}

fn examine(file: &OwnedFd, path: &Path) -> Result<Stat, EngineError> {
    fstat(file).map_err(|errno| failed(Operation::Examine, path, errno))
}

/// A directory and its copy, both open.
struct Level<'a> {
    source: OwnedFd,
    from: &'a Path,
    target: OwnedFd,
    to: &'a Path,
}

impl Level<'_> {
    /// Copies everything in the directory, then gives the copy its mode and times.
    fn copy(&self, at: (At, At), status: &Stat, hand: &mut Hand<'_>) -> Result<(), EngineError> {
        for Entry { name, kind } in entries(&self.source, self.from)? {
            match kind {
                FileType::Directory => self.directory(&name, at, hand)?,
                FileType::RegularFile => self.file(&name, at, hand)?,
                FileType::Symlink => self.link(&name)?,
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => return Err(strange(&below(self.from, &name))),
            }
            hand.done(1)?;
        }
        keep(&self.target, status, self.to)
    }

    fn directory(&self, name: &CStr, at: (At, At), hand: &mut Hand<'_>) -> Result<(), EngineError> {
        let (from, to) = (below(self.from, name), below(self.to, name));
        let source = open_directory(&self.source, name, &from)?;
        let status = examine(&source, &from)?;
        let mode = Mode::from_raw_mode(status.st_mode & 0o777 | WHILE_COPYING);
        mkdirat(&self.target, name, mode)
            .map_err(|errno| failed(Operation::MakeDirectory, &to, errno))?;
        let target = open_directory(&self.target, name, &to)?;
        Level { source, from: &from, target, to: &to }.copy(at, &status, hand)
    }

    fn file(&self, name: &CStr, at: (At, At), hand: &mut Hand<'_>) -> Result<(), EngineError> {
        let from = Place { at: at.0, path: below(self.from, name) };
        let to = below(self.to, name);
        let (source, status) = data::open(&self.source, name, &from.path)?;
        let target = data::create(&self.target, name, data::permissions(status.st_mode), &to)?;
        data::pump(&source, &from, &target, (at.1, &to), hand)?;
        keep(&target, &status, &to)?;
        close(target, &to)
    }

    fn link(&self, name: &CStr) -> Result<(), EngineError> {
        let (from, to) = (below(self.from, name), below(self.to, name));
        let examine = |errno| failed(Operation::Examine, &from, errno);
        let text = readlinkat(&self.source, name, Vec::new()).map_err(examine)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let status = statat(&self.source, name, flags).map_err(examine)?;
        symlinkat(&text, &self.target, name)
            .map_err(|errno| failed(Operation::SymbolicLink, &to, errno))?;
        utimensat(&self.target, name, &of(&status), flags)
            .map_err(|errno| failed(Operation::SetTimes, &to, errno))
    }
}

/// The time of last modification of what was examined.
fn of(status: &Stat) -> rustix::fs::Timestamps {
    modified(status.st_mtime, i64::try_from(status.st_mtime_nsec).unwrap_or(0))
}

/// Gives a copy the mode and the time of last modification.
fn keep(file: &OwnedFd, status: &Stat, path: &Path) -> Result<(), EngineError> {
    futimens(file, &of(status)).map_err(|errno| failed(Operation::SetTimes, path, errno))?;
    fchmod(file, data::permissions(status.st_mode))
        .map_err(|errno| failed(Operation::ChangeMode, path, errno))
}

/// The error for what is neither a file, a directory, nor a symbolic link.
pub(super) fn strange(path: &Path) -> EngineError {
    EngineError::Task {
        problem: format!("{} is a device, a pipe, or a socket", path.display()),
        cure: "use a tree of files, directories, and symbolic links",
    }
}
