//! Names without data: touch, mkdir, find, rm.
//!
//! Calls are relative to the open directory, as in the standard programs, so that no path is
//! resolved twice.

use std::{
    ffi::CStr,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
        futimens, mkdirat, openat, statat, unlinkat,
    },
    io::Errno,
    path::DecInt,
};

use super::context::{Entry, TaskContext, below, close, entries, failed, open_directory};
use crate::{EngineError, error::Operation};

/// Mode used by mkdir(1); the umask applies.
const DIRECTORY: Mode = Mode::from_raw_mode(0o777);
/// Mode used by touch(1); the umask applies.
const FILE: Mode = Mode::from_raw_mode(0o666);

/// Creates a directory that must not exist, and opens it.
pub(super) fn make_directory(path: &Path) -> Result<OwnedFd, EngineError> {
    mkdirat(CWD, path, DIRECTORY).map_err(|errno| failed(Operation::MakeDirectory, path, errno))?;
    open_directory(CWD, path, path)
}

/// Creates files as touch(1) does for each name: open, set the times to now, close.
pub(super) fn touch(
    path: &Path,
    count: u64,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let directory = make_directory(path)?;
    let flags =
        OFlags::CREATE | OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let now = times(UTIME_NOW, UTIME_NOW);
    for number in 0..count {
        let name = DecInt::new(number);
        let at = || below(path, name.as_c_str());
        let file = openat(&directory, name.as_c_str(), flags, FILE)
            .map_err(|errno| failed(Operation::Open, &at(), errno))?;
        futimens(&file, &now).map_err(|errno| failed(Operation::SetTimes, &at(), errno))?;
        close(file, path)?;
        context.done(1)?;
    }
    Ok(())
}

/// Access and modification time given by constants of utimensat(2), such as `UTIME_NOW`.
fn times(access: i64, modification: i64) -> Timestamps {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    Timestamps { last_access: time(access), last_modification: time(modification) }
}

/// Modification time of a file or an archive entry; the access time is unchanged.
pub(super) fn modified(tv_sec: i64, tv_nsec: i64) -> Timestamps {
    Timestamps { last_modification: Timespec { tv_sec, tv_nsec }, ..times(UTIME_OMIT, UTIME_OMIT) }
}

/// Creates directories as mkdir(1) does for each name.
pub(super) fn make_directories(
    path: &Path,
    count: u64,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let directory = make_directory(path)?;
    for number in 0..count {
        let name = DecInt::new(number);
        mkdirat(&directory, name.as_c_str(), DIRECTORY).map_err(|errno| {
            failed(Operation::MakeDirectory, &below(path, name.as_c_str()), errno)
        })?;
        context.done(1)?;
    }
    Ok(())
}

/// Visits all entries below a directory, depth first.
pub(super) fn find(path: &Path, context: &mut TaskContext<'_>) -> Result<(), EngineError> {
    let root = open_directory(CWD, path, path)?;
    visit(&root, path, context, &mut |_, _, _| Ok(()))
}

/// Like [`find`], and returns the sum of the sizes of all files.
pub(super) fn sizes(path: &Path, context: &mut TaskContext<'_>) -> Result<u64, EngineError> {
    let root = open_directory(CWD, path, path)?;
    let mut sum = 0;
    visit(&root, path, context, &mut |directory, entry, path| {
        if entry.kind == FileType::RegularFile {
            let status = statat(directory, &*entry.name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|errno| failed(Operation::Examine, &below(path, &entry.name), errno))?;
            sum += u64::try_from(status.st_size).unwrap_or(0);
        }
        Ok(())
    })?;
    Ok(sum)
}

fn visit(
    directory: &OwnedFd,
    path: &Path,
    context: &mut TaskContext<'_>,
    look: &mut impl FnMut(&OwnedFd, &Entry, &Path) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    for entry in entries(directory, path)? {
        context.done(1)?;
        look(directory, &entry, path)?;
        if entry.kind == FileType::Directory {
            let path = below(path, &entry.name);
            let child = open_directory(directory, &*entry.name, &path)?;
            visit(&child, &path, context, look)?;
        }
    }
    Ok(())
}

/// Removes a directory with all its contents, depth first, or a file of that name.
pub(super) fn remove_tree(path: &Path, context: &mut TaskContext<'_>) -> Result<(), EngineError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let at = |operation| move |errno| failed(operation, path, errno);
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(directory) => {
            empty(directory, path, context)?;
            unlinkat(CWD, path, AtFlags::REMOVEDIR).map_err(at(Operation::Unlink))
        }
        Err(Errno::NOTDIR | Errno::LOOP) => {
            unlinkat(CWD, path, AtFlags::empty()).map_err(at(Operation::Unlink))?;
            context.done(1)
        }
        Err(errno) => Err(at(Operation::Open)(errno)),
    }
}

/// Removes all entries of a directory.
fn empty(
    directory: OwnedFd,
    path: &Path,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    for entry in entries(&directory, path)? {
        let flags = if entry.kind == FileType::Directory {
            let path = below(path, &entry.name);
            empty(open_directory(&directory, &*entry.name, &path)?, &path, context)?;
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        remove(&directory, &entry.name, flags, path)?;
        context.done(1)?;
    }
    Ok(())
}

fn remove(
    directory: impl AsFd,
    name: &CStr,
    flags: AtFlags,
    path: &Path,
) -> Result<(), EngineError> {
    unlinkat(directory, name, flags)
        .map_err(|errno| failed(Operation::Unlink, &below(path, name), errno))
}
