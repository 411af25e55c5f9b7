//! Copy of a directory tree, as by `cp -a`, except for owners, extended attributes, and hard links.

use std::{ffi::CStr, os::fd::OwnedFd, path::Path};

use model::phase::TaskRoot;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Stat, fchmod, fstat, futimens, mkdirat, readlinkat, statat,
    symlinkat, utimensat,
};

use super::{
    ResolvedPath,
    context::{Entry, TaskContext, below, close, entries, failed, open_directory},
    data,
    entries::modified,
};
use crate::{EngineError, error::Operation};

/// Owner permissions of a directory while it is copied.
const WHILE_COPYING: u32 = 0o700;

/// Copies a tree with modes, modification times, and symbolic links. Entries are copied in the
/// order of the directory.
pub(super) fn copy_tree(
    from: &ResolvedPath,
    to: &ResolvedPath,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let source = open_directory(CWD, &from.path, &from.path)?;
    let status = examine(&source, &from.path)?;
    let mode = Mode::from_raw_mode(status.st_mode & 0o777 | WHILE_COPYING);
    mkdirat(CWD, &to.path, mode)
        .map_err(|errno| failed(Operation::MakeDirectory, &to.path, errno))?;
    let target = open_directory(CWD, &to.path, &to.path)?;
    let level = Level { source, from: &from.path, target, to: &to.path };
    level.copy((from.at, to.at), &status, context)
}

fn examine(file: &OwnedFd, path: &Path) -> Result<Stat, EngineError> {
    fstat(file).map_err(|errno| failed(Operation::Examine, path, errno))
}

/// Directory and its copy, both open.
struct Level<'a> {
    source: OwnedFd,
    from: &'a Path,
    target: OwnedFd,
    to: &'a Path,
}

impl Level<'_> {
    /// Copies all entries of the directory, then sets mode and times of the copy.
    fn copy(
        &self,
        at: (TaskRoot, TaskRoot),
        status: &Stat,
        context: &mut TaskContext<'_>,
    ) -> Result<(), EngineError> {
        for Entry { name, kind } in entries(&self.source, self.from)? {
            match kind {
                FileType::Directory => self.directory(&name, at, context)?,
                FileType::RegularFile => self.file(&name, at, context)?,
                FileType::Symlink => self.link(&name)?,
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => return Err(unsupported_type(&below(self.from, &name))),
            }
            context.done(1)?;
        }
        keep(&self.target, status, self.to)
    }

    fn directory(
        &self,
        name: &CStr,
        at: (TaskRoot, TaskRoot),
        context: &mut TaskContext<'_>,
    ) -> Result<(), EngineError> {
        let (from, to) = (below(self.from, name), below(self.to, name));
        let source = open_directory(&self.source, name, &from)?;
        let status = examine(&source, &from)?;
        let mode = Mode::from_raw_mode(status.st_mode & 0o777 | WHILE_COPYING);
        mkdirat(&self.target, name, mode)
            .map_err(|errno| failed(Operation::MakeDirectory, &to, errno))?;
        let target = open_directory(&self.target, name, &to)?;
        Level { source, from: &from, target, to: &to }.copy(at, &status, context)
    }

    fn file(
        &self,
        name: &CStr,
        at: (TaskRoot, TaskRoot),
        context: &mut TaskContext<'_>,
    ) -> Result<(), EngineError> {
        let from = ResolvedPath { at: at.0, path: below(self.from, name) };
        let to = below(self.to, name);
        let (source, status) = data::open(&self.source, name, &from.path)?;
        let target = data::create(&self.target, name, data::permissions(status.st_mode), &to)?;
        data::pump(&source, &from, &target, (at.1, &to), context)?;
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

/// Modification time of a status.
fn of(status: &Stat) -> rustix::fs::Timestamps {
    modified(status.st_mtime, i64::try_from(status.st_mtime_nsec).unwrap_or(0))
}

/// Sets mode and modification time of a copy.
fn keep(file: &OwnedFd, status: &Stat, path: &Path) -> Result<(), EngineError> {
    futimens(file, &of(status)).map_err(|errno| failed(Operation::SetTimes, path, errno))?;
    fchmod(file, data::permissions(status.st_mode))
        .map_err(|errno| failed(Operation::ChangeMode, path, errno))
}

/// Error for an entry that is not a file, directory, or symbolic link.
pub(super) fn unsupported_type(path: &Path) -> EngineError {
    EngineError::Task {
        problem: format!("{} is a device, a pipe, or a socket", path.display()),
        hint: "use a tree of files, directories, and symbolic links",
    }
}
