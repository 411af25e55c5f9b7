//! Unpacking of an archive, as by `tar -x`, confined to its directory.
//!
//! Every name is resolved from the open directory with `O_NOFOLLOW`, component by component, so
//! that no symbolic link is followed, whether created by the archive or not. `..`, absolute names,
//! and links whose names lead out are rejected before anything is created for them. Symbolic links
//! are created unchanged.
//!
//! The directories of the previous entry stay open, because entries of one directory usually are
//! consecutive. Owners are not set. Of modes, only the permissions are set.

#[cfg(test)]
mod tests;

use std::{
    ffi::{CString, OsStr},
    io::Read,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, fchmod, futimens, linkat, mkdirat, openat, symlinkat, unlinkat,
        utimensat,
    },
    io::Errno,
};
use tar::{Entry, EntryType, Header};

use super::{
    ResolvedPath,
    archive::{Input, unreadable},
    context::{TaskContext, below, close, failed},
    data,
    entries::{make_directory, modified},
};
use crate::{EngineError, calls::again, error::Operation};

/// Default mode of directories; the umask applies.
const DIRECTORY: Mode = Mode::from_raw_mode(0o777);

/// Unpacks an archive to a directory that must not exist.
pub(super) fn unpack(
    archive: &ResolvedPath,
    into: &ResolvedPath,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let (content, reads) = Input::open(archive, context)?.into_parts();
    let root = make_directory(&into.path)?;
    let mut work = Work { archive, into, root, chain: Vec::new(), directories: Vec::new() };
    let mut tape = tar::Archive::new(content);
    let wrong = |error: std::io::Error| unreadable(&archive.path, &error);
    for entry in tape.entries().map_err(wrong)? {
        let mut entry = entry.map_err(wrong)?;
        work.entry(&mut entry, context, |context| reads.note(context))?;
    }
    // Reads to the end, as tar(1) does: padding of the last record, and the gzip checksum.
    let mut content = tape.into_inner();
    while content.read(&mut context.buffer).map_err(wrong)? > 0 {
        reads.note(context)?;
    }
    reads.note(context)?;
    work.finish()
}

/// Unpacking in progress.
struct Work<'a> {
    archive: &'a ResolvedPath,
    into: &'a ResolvedPath,
    root: OwnedFd,
    /// Open directories of the previous entry, outermost first.
    chain: Vec<(CString, OwnedFd)>,
    /// Modes and times of directories, set after their contents are complete.
    directories: Vec<(Vec<CString>, u32, i64)>,
}

impl Work<'_> {
    fn refused(&self, path: &[u8], why: &str) -> EngineError {
        EngineError::Archive {
            path: self.archive.path.clone(),
            problem: format!("the entry `{}` {why}", path.escape_ascii()),
            hint: "check it with `tar -tvf`, and create an archive without such entries".into(),
        }
    }

    fn damaged(&self, error: &std::io::Error) -> EngineError {
        unreadable(&self.archive.path, error)
    }

    /// Components of a name below the directory.
    fn components(&self, path: &[u8]) -> Result<Vec<CString>, EngineError> {
        let mut parts = Vec::new();
        for component in Path::new(OsStr::from_bytes(path)).components() {
            match component {
                Component::CurDir => {}
                Component::Normal(part) => match CString::new(part.as_bytes()) {
                    Ok(part) => parts.push(part),
                    Err(_) => return Err(self.refused(path, "has a NUL byte in its name")),
                },
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(self.refused(path, "leads out of the directory"));
                }
            }
        }
        Ok(parts)
    }

    /// Opens the directory with these components; missing ones are created.
    fn reach(&mut self, parts: &[CString], whole: &[u8]) -> Result<BorrowedFd<'_>, EngineError> {
        let same = self.chain.iter().zip(parts).take_while(|((name, _), part)| name == *part);
        let same = same.count();
        self.chain.truncate(same);
        for part in &parts[same..] {
            let parent = self.chain.last().map_or(self.root.as_fd(), |(_, open)| open.as_fd());
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = match openat(parent, part, flags, Mode::empty()) {
                Err(Errno::NOENT) => mkdirat(parent, part, DIRECTORY)
                    .and_then(|()| openat(parent, part, flags, Mode::empty())),
                answer => answer,
            };
            match opened {
                Ok(open) => self.chain.push((part.clone(), open)),
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    return Err(self.refused(whole, "has a parent that is not a directory"));
                }
                Err(errno) => return Err(failed(Operation::Open, &self.path(parts), errno)),
            }
        }
        Ok(self.chain.last().map_or(self.root.as_fd(), |(_, open)| open.as_fd()))
    }

    fn path(&self, parts: &[CString]) -> PathBuf {
        parts.iter().fold(self.into.path.clone(), |path, part| below(&path, part))
    }

    fn entry(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        context: &mut TaskContext<'_>,
        note: impl Fn(&mut TaskContext<'_>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            return note(context);
        }
        let path = entry.path_bytes().into_owned();
        let parts = self.components(&path)?;
        if kind == EntryType::Directory {
            self.directory(parts, &path, entry.header())?;
        } else {
            let Some((name, parents)) = parts.split_last() else {
                return Err(self.refused(&path, "has no name"));
            };
            if matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse) {
                self.file(entry, parents, name, &path, context, &note)?;
            } else if kind == EntryType::Symlink {
                self.symbolic_link(entry, parents, name, &path)?;
            } else if kind == EntryType::Link {
                self.hard_link(entry, parents, name, &path)?;
            } else {
                return Err(self.refused(&path, "is a device, a pipe, or of an unknown type"));
            }
        }
        // The entry `./` is the directory itself and is not counted.
        context.done(u64::from(path.iter().any(|byte| !matches!(byte, b'.' | b'/'))))?;
        note(context)
    }

    fn directory(
        &mut self,
        parts: Vec<CString>,
        path: &[u8],
        header: &Header,
    ) -> Result<(), EngineError> {
        let (mode, mtime) = self.facts(header)?;
        self.reach(&parts, path)?;
        self.directories.push((parts, mode, mtime));
        Ok(())
    }

    fn facts(&self, header: &Header) -> Result<(u32, i64), EngineError> {
        let mode = header.mode().map_err(|error| self.damaged(&error))?;
        let mtime = header.mtime().map_err(|error| self.damaged(&error))?;
        Ok((mode & 0o777, i64::try_from(mtime).unwrap_or(0)))
    }

    fn file(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        parents: &[CString],
        name: &CString,
        path: &[u8],
        context: &mut TaskContext<'_>,
        note: &impl Fn(&mut TaskContext<'_>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let (mode, mtime) = self.facts(entry.header())?;
        let at = self.into.at;
        let whole = below(&self.path(parents), name);
        let directory = self.reach(parents, path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let create = || openat(directory, name, flags, Mode::from_raw_mode(mode));
        let file = replacing(directory, name, create)
            .map_err(|errno| failed(Operation::Open, &whole, errno))?;
        loop {
            let len = match entry.read(&mut context.buffer) {
                Ok(0) => break,
                Ok(len) => len,
                Err(error) => return Err(self.damaged(&error)),
            };
            note(context)?;
            data::put(&file, len, (at, &whole), context)?;
        }
        futimens(&file, &modified(mtime, 0))
            .map_err(|errno| failed(Operation::SetTimes, &whole, errno))?;
        fchmod(&file, Mode::from_raw_mode(mode))
            .map_err(|errno| failed(Operation::ChangeMode, &whole, errno))?;
        close(file, &whole)
    }

    fn symbolic_link(
        &mut self,
        entry: &Entry<'_, impl Read>,
        parents: &[CString],
        name: &CString,
        path: &[u8],
    ) -> Result<(), EngineError> {
        let text = self.link(entry, path)?;
        let (_, mtime) = self.facts(entry.header())?;
        let whole = below(&self.path(parents), name);
        let directory = self.reach(parents, path)?;
        replacing(directory, name, || symlinkat(&text, directory, name))
            .map_err(|errno| failed(Operation::SymbolicLink, &whole, errno))?;
        utimensat(directory, name, &modified(mtime, 0), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| failed(Operation::SetTimes, &whole, errno))
    }

    fn link(&self, entry: &Entry<'_, impl Read>, path: &[u8]) -> Result<CString, EngineError> {
        entry
            .link_name_bytes()
            .and_then(|text| CString::new(text.into_owned()).ok())
            .ok_or_else(|| self.refused(path, "is a link without a target"))
    }

    /// Creates another name of a file of the archive. The target is resolved like every name, and
    /// linkat(2) does not follow symbolic links.
    fn hard_link(
        &mut self,
        entry: &Entry<'_, impl Read>,
        parents: &[CString],
        name: &CString,
        path: &[u8],
    ) -> Result<(), EngineError> {
        let text = self.link(entry, path)?;
        let parts = self.components(text.to_bytes())?;
        let Some((old, old_parents)) = parts.split_last() else {
            return Err(self.refused(path, "is a link without a target"));
        };
        if old == name && old_parents == parents {
            // The file exists under this name.
            return Ok(());
        }
        let whole = below(&self.path(parents), name);
        let linked = |errno| failed(Operation::Link, &whole, errno);
        let from = self.reach(old_parents, path)?;
        let from = from
            .try_clone_to_owned()
            .map_err(|error| linked(Errno::from_io_error(&error).unwrap_or(Errno::MFILE)))?;
        let directory = self.reach(parents, path)?;
        replacing(directory, name, || linkat(&from, old, directory, name, AtFlags::empty()))
            .map_err(linked)
    }

    /// Sets modes and times of the directories, inner ones first, because creating an entry changes
    /// the time of its directory.
    fn finish(mut self) -> Result<(), EngineError> {
        let mut directories = std::mem::take(&mut self.directories);
        directories.sort_by(|a, b| b.0.cmp(&a.0));
        for (parts, mode, mtime) in directories {
            let path = self.path(&parts);
            let directory = self.reach(&parts, b"")?;
            futimens(directory, &modified(mtime, 0))
                .map_err(|errno| failed(Operation::SetTimes, &path, errno))?;
            fchmod(directory, Mode::from_raw_mode(mode))
                .map_err(|errno| failed(Operation::ChangeMode, &path, errno))?;
        }
        Ok(())
    }
}

/// Creates a name. An existing one is removed first, because an archive may contain a name twice,
/// and the last one counts.
fn replacing<T>(
    directory: BorrowedFd<'_>,
    name: &CString,
    make: impl Fn() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match again(&make) {
        Err(Errno::EXIST) => {
            unlinkat(directory, name, AtFlags::empty())?;
            make()
        }
        answer => answer,
    }
}
