//! Unpacking an archive, as `tar -x` does, and nowhere but into its directory.
//!
//! Every name is walked from the open directory with `O_NOFOLLOW`, component by component, so that
//! no symbolic link is ever followed, whether the archive has brought it or not; `..`, absolute
//! names, and links that leave by their names are refused before anything is made for them.
//! Symbolic links themselves are made as they are.
//!
//! Directories on the way to the entry before stay open, since entries of one directory usually
//! follow each other. Owners are not set; of modes only the permissions.

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
    Place,
    archive::{Input, unreadable},
    data,
    entries::{make_directory, modified},
    hand::{Hand, again, below, close, failed},
};
use crate::{EngineError, error::Operation};

/// What is asked for where the archive does not say; the umask applies.
const DIRECTORY: Mode = Mode::from_raw_mode(0o777);

/// Unpacks an archive into a directory that must not exist.
pub(super) fn unpack(
    archive: &Place,
    into: &Place,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    let (content, reads) = Input::open(archive, hand)?.into_parts();
    let root = make_directory(&into.path)?;
    let mut work = Work { archive, into, root, chain: Vec::new(), directories: Vec::new() };
    let mut tape = tar::Archive::new(content);
    let wrong = |error: std::io::Error| unreadable(&archive.path, &error);
    for entry in tape.entries().map_err(wrong)? {
        let mut entry = entry.map_err(wrong)?;
        work.entry(&mut entry, hand, |hand| reads.note(hand))?;
    }
    // To the very end, as tar(1) reads it: what fills the last record, and the checksum of gzip.
    let mut content = tape.into_inner();
    while content.read(&mut hand.buffer).map_err(wrong)? > 0 {
        reads.note(hand)?;
    }
    reads.note(hand)?;
    work.finish()
}

/// An archive on its way into a directory.
struct Work<'a> {
    archive: &'a Place,
    into: &'a Place,
    root: OwnedFd,
    /// Open directories on the way to the entry before, outermost first.
    chain: Vec<(CString, OwnedFd)>,
    /// What directories get when everything is in them.
    directories: Vec<(Vec<CString>, u32, i64)>,
}

impl Work<'_> {
    fn refused(&self, path: &[u8], why: &str) -> EngineError {
        EngineError::Archive {
            path: self.archive.path.clone(),
            problem: format!("its entry `{}` {why}", path.escape_ascii()),
            cure: "look at it with `tar -tvf`, and pack it anew without such entries".into(),
        }
    }

    fn damaged(&self, error: &std::io::Error) -> EngineError {
        unreadable(&self.archive.path, error)
    }

    /// The components of a name below the directory.
    fn components(&self, path: &[u8]) -> Result<Vec<CString>, EngineError> {
        let mut parts = Vec::new();
        for component in Path::new(OsStr::from_bytes(path)).components() {
            match component {
                Component::CurDir => {}
                Component::Normal(part) => match CString::new(part.as_bytes()) {
                    Ok(part) => parts.push(part),
                    Err(_) => return Err(self.refused(path, "has a NUL in its name")),
                },
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(self.refused(path, "leads out of the directory"));
                }
            }
        }
        Ok(parts)
    }

    /// The open directory that these components lead to; what is missing is made.
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
                    return Err(self.refused(whole, "leads through what is no directory"));
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
        hand: &mut Hand<'_>,
        note: impl Fn(&mut Hand<'_>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            return note(hand);
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
                self.file(entry, parents, name, &path, hand, &note)?;
            } else if kind == EntryType::Symlink {
                self.symbolic_link(entry, parents, name, &path)?;
            } else if kind == EntryType::Link {
                self.hard_link(entry, parents, name, &path)?;
            } else {
                return Err(self.refused(&path, "is a device, a pipe, or something unknown"));
            }
        }
        // The directory itself, `./`, is no entry below it.
        hand.done(u64::from(path.iter().any(|byte| !matches!(byte, b'.' | b'/'))))?;
        note(hand)
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
        hand: &mut Hand<'_>,
        note: &impl Fn(&mut Hand<'_>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let (mode, mtime) = self.facts(entry.header())?;
        let at = self.into.at;
        let whole = below(&self.path(parents), name);
        let directory = self.reach(parents, path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let create = || openat(directory, name, flags, Mode::from_raw_mode(mode));
        let file = anew(directory, name, create)
            .map_err(|errno| failed(Operation::Open, &whole, errno))?;
        loop {
            let len = match entry.read(&mut hand.buffer) {
                Ok(0) => break,
                Ok(len) => len,
                Err(error) => return Err(self.damaged(&error)),
            };
            note(hand)?;
            data::put(&file, len, (at, &whole), hand)?;
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
        anew(directory, name, || symlinkat(&text, directory, name))
            .map_err(|errno| failed(Operation::SymbolicLink, &whole, errno))?;
        utimensat(directory, name, &modified(mtime, 0), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| failed(Operation::SetTimes, &whole, errno))
    }

    fn link(&self, entry: &Entry<'_, impl Read>, path: &[u8]) -> Result<CString, EngineError> {
        entry
            .link_name_bytes()
            .and_then(|text| CString::new(text.into_owned()).ok())
            .ok_or_else(|| self.refused(path, "is a link that leads nowhere"))
    }

    /// Another name for a file that the archive has brought; what it leads to is walked as every
    /// name is, and linkat(2) does not follow symbolic links.
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
            return Err(self.refused(path, "is a link that leads nowhere"));
        };
        if old == name && old_parents == parents {
            // It is there, under this very name.
            return Ok(());
        }
        let whole = below(&self.path(parents), name);
        let linked = |errno| failed(Operation::Link, &whole, errno);
        let from = self.reach(old_parents, path)?;
        let from = from
            .try_clone_to_owned()
            .map_err(|error| linked(Errno::from_io_error(&error).unwrap_or(Errno::MFILE)))?;
        let directory = self.reach(parents, path)?;
        anew(directory, name, || linkat(&from, old, directory, name, AtFlags::empty()))
            .map_err(linked)
    }

    /// Gives the directories their modes and times, inner ones first, as what is made in a
    /// directory changes its time.
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

/// Makes a name; one that is there already goes first, as an archive may hold a name twice and the
/// last one counts.
fn anew<T>(
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
