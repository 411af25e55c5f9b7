//! Names without data: touch, mkdir, find, rm.
//!
//! Calls are relative to the open directory, as the everyday programs make them, so that no path is
//! walked twice.

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

use super::hand::{Entry, Hand, below, close, entries, failed, open_directory};
use crate::{EngineError, error::Operation};

/// What mkdir(1) asks for; the umask applies.
const DIRECTORY: Mode = Mode::from_raw_mode(0o777);
/// What touch(1) asks for; the umask applies.
const FILE: Mode = Mode::from_raw_mode(0o666);

/// Makes a directory that must not exist, and opens it.
pub(super) fn make_directory(path: &Path) -> Result<OwnedFd, EngineError> {
    mkdirat(CWD, path, DIRECTORY).map_err(|errno| failed(Operation::MakeDirectory, path, errno))?;
    open_directory(CWD, path, path)
}

/// As touch(1) does for each name: open, set the times to now, close.
pub(super) fn touch(path: &Path, count: u64, hand: &mut Hand<'_>) -> Result<(), EngineError> {
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
        hand.done(1)?;
    }
    Ok(())
}

/// Times that are both one of the constants of utimensat(2).
fn times(access: i64, modification: i64) -> Timestamps {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    Timestamps { last_access: time(access), last_modification: time(modification) }
}

/// The time of last modification that a file or an archive tells; the time of last access stays.
pub(super) fn modified(tv_sec: i64, tv_nsec: i64) -> Timestamps {
    Timestamps { last_modification: Timespec { tv_sec, tv_nsec }, ..times(UTIME_OMIT, UTIME_OMIT) }
}

/// As mkdir(1) does for each name.
pub(super) fn make_directories(
    path: &Path,
    count: u64,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    let directory = make_directory(path)?;
    for number in 0..count {
        let name = DecInt::new(number);
        mkdirat(&directory, name.as_c_str(), DIRECTORY).map_err(|errno| {
            failed(Operation::MakeDirectory, &below(path, name.as_c_str()), errno)
        })?;
        hand.done(1)?;
    }
    Ok(())
}

/// Visits everything below a directory, depth first.
pub(super) fn find(path: &Path, hand: &mut Hand<'_>) -> Result<(), EngineError> {
    let root = open_directory(CWD, path, path)?;
    visit(&root, path, hand, &mut |_, _, _| Ok(()))
}

/// The same, and adds up the sizes of all files.
pub(super) fn sizes(path: &Path, hand: &mut Hand<'_>) -> Result<u64, EngineError> {
    let root = open_directory(CWD, path, path)?;
    let mut sum = 0;
    visit(&root, path, hand, &mut |directory, entry, path| {
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
    hand: &mut Hand<'_>,
    look: &mut impl FnMut(&OwnedFd, &Entry, &Path) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    for entry in entries(directory, path)? {
        hand.done(1)?;
        look(directory, &entry, path)?;
        if entry.kind == FileType::Directory {
            let path = below(path, &entry.name);
            let child = open_directory(directory, &*entry.name, &path)?;
            visit(&child, &path, hand, look)?;
        }
    }
    Ok(())
}

/// Removes a directory with everything below it, depth first, or what else has the name.
pub(super) fn remove_tree(path: &Path, hand: &mut Hand<'_>) -> Result<(), EngineError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let at = |operation| move |errno| failed(operation, path, errno);
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(directory) => {
            empty(directory, path, hand)?;
            unlinkat(CWD, path, AtFlags::REMOVEDIR).map_err(at(Operation::Unlink))
        }
        Err(Errno::NOTDIR | Errno::LOOP) => {
            unlinkat(CWD, path, AtFlags::empty()).map_err(at(Operation::Unlink))?;
            hand.done(1)
        }
        Err(errno) => Err(at(Operation::Open)(errno)),
    }
}

/// Removes everything in a directory.
fn empty(directory: OwnedFd, path: &Path, hand: &mut Hand<'_>) -> Result<(), EngineError> {
    for entry in entries(&directory, path)? {
        let flags = if entry.kind == FileType::Directory {
            let path = below(path, &entry.name);
            empty(open_directory(&directory, &*entry.name, &path)?, &path, hand)?;
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        remove(&directory, &entry.name, flags, path)?;
        hand.done(1)?;
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
