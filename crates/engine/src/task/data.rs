//! Data of single files: cp, dd, split, cat.
//!
//! All operations are loops of read(2) and write(2) with one buffer. Current versions of cp(1) use
//! FICLONE or copy_file_range(2), with which some filesystems share the data instead of copying it.
//! These loops always copy.

use std::{
    fmt::Write as _,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use model::{Bytes, phase::TaskRoot};
use rustix::{
    fs::{CWD, Mode, OFlags, Stat, fstat, openat},
    io::{read as read_some, write as write_some},
    path::Arg,
};

use super::{
    ResolvedPath,
    context::{TaskContext, close, failed},
    entries::make_directory,
};
use crate::{EngineError, calls::again, error::Operation};

/// Mode used by cp(1), dd(1), split(1), and the shell; the umask applies.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// Creates a file that must not exist, open for writing.
pub(super) fn create(
    directory: impl AsFd,
    name: impl Arg,
    mode: Mode,
    path: &Path,
) -> Result<OwnedFd, EngineError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    openat(directory, name, flags, mode).map_err(|errno| failed(Operation::Open, path, errno))
}

/// Opens a file for reading, without following symbolic links, and returns its fstat(2).
pub(super) fn open(
    directory: impl AsFd,
    name: impl Arg,
    path: &Path,
) -> Result<(OwnedFd, Stat), EngineError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())
        .map_err(|errno| failed(Operation::Open, path, errno))?;
    let status = fstat(&file).map_err(|errno| failed(Operation::Examine, path, errno))?;
    Ok((file, status))
}

/// Permission bits of a mode.
pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777)
}

/// Reads the next bytes into the buffer, and returns their number; 0 at the end of the file.
pub(super) fn get(
    file: &OwnedFd,
    from: &ResolvedPath,
    most: usize,
    context: &mut TaskContext<'_>,
) -> Result<usize, EngineError> {
    let most = most.min(context.buffer.len());
    let buffer = &mut context.buffer[..most];
    let done = again(|| read_some(file, &mut *buffer))
        .map_err(|errno| failed(Operation::Read, &from.path, errno))?;
    context.has_read(from.at, done as u64)?;
    Ok(done)
}

/// Writes the first bytes of the buffer.
pub(super) fn put(
    file: &OwnedFd,
    len: usize,
    to: (TaskRoot, &Path),
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let mut written = 0;
    while written < len {
        let buffer = &context.buffer[written..len];
        let done = again(|| write_some(file, buffer))
            .map_err(|errno| failed(Operation::Write, to.1, errno))?;
        written += done;
        context.has_written(to.0, done as u64)?;
    }
    Ok(())
}

/// Copies the rest of a file.
pub(super) fn pump(
    from: &OwnedFd,
    source: &ResolvedPath,
    to: &OwnedFd,
    target: (TaskRoot, &Path),
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    loop {
        match get(from, source, usize::MAX, context)? {
            0 => return Ok(()),
            len => put(to, len, target, context)?,
        }
    }
}

/// Copies a file, as `cp --reflink=never --sparse=never` does. The copy gets the mode of the file
/// minus the umask.
pub(super) fn copy(
    from: &ResolvedPath,
    to: &ResolvedPath,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let (source, status) = open(CWD, &from.path, &from.path)?;
    let target = create(CWD, &to.path, permissions(status.st_mode), &to.path)?;
    pump(&source, from, &target, (to.at, &to.path), context)?;
    close(target, &to.path)
}

/// Writes a file of zeros, as `dd if=/dev/zero` does.
pub(super) fn zeros(
    file: &ResolvedPath,
    size: Bytes,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let target = create(CWD, &file.path, MODE, &file.path)?;
    let mut left = size.0;
    while left > 0 {
        let len = length(left, context);
        put(&target, len, (file.at, &file.path), context)?;
        left -= len as u64;
    }
    close(target, &file.path)?;
    context.done(1)
}

/// Length of the next write: the size of the buffer, or the rest.
fn length(left: u64, context: &TaskContext<'_>) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(context.buffer.len())
}

/// Writes bytes of a fast generator, which are not compressible.
pub(super) fn random(
    file: &ResolvedPath,
    size: Bytes,
    seed: u64,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let target = create(CWD, &file.path, MODE, &file.path)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut left = size.0;
    while left > 0 {
        let len = length(left, context);
        random.fill(&mut context.buffer[..len]);
        put(&target, len, (file.at, &file.path), context)?;
        left -= len as u64;
    }
    close(target, &file.path)?;
    context.done(1)
}

/// Reads a file, as cat(1) to /dev/null does, but without the writes.
pub(super) fn read(file: &ResolvedPath, context: &mut TaskContext<'_>) -> Result<(), EngineError> {
    let (source, _) = open(CWD, &file.path, &file.path)?;
    while get(&source, file, usize::MAX, context)? > 0 {}
    context.done(1)
}

/// Digits in the names of this number of pieces.
pub(super) fn digits(pieces: u64) -> usize {
    pieces.saturating_sub(1).to_string().len()
}

/// Splits a file, as split(1) with numeric names does. The file is read in units of the buffer. A
/// piece is written by one call per part of it that was read: one call for most pieces smaller than
/// the buffer.
pub(super) fn split(
    file: &ResolvedPath,
    piece: Bytes,
    into: &ResolvedPath,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let directory = make_directory(&into.path)?;
    let (source, status) = open(CWD, &file.path, &file.path)?;
    let size = u64::try_from(status.st_size).unwrap_or(0);
    let width = digits(size.div_ceil(piece.0));
    let mut name = String::new();
    let (mut number, mut room) = (0u64, 0u64);
    let mut open: Option<OwnedFd> = None;
    loop {
        let len = get(&source, file, usize::MAX, context)?;
        let mut start = 0;
        while start < len {
            let target = match open.take() {
                Some(target) => target,
                None => {
                    name.clear();
                    // Writing to a string cannot fail.
                    let _ = write!(name, "{number:0width$}");
                    room = piece.0;
                    number += 1;
                    create(&directory, name.as_str(), MODE, &into.path.join(&name))?
                }
            };
            let end = len.min(start.saturating_add(usize::try_from(room).unwrap_or(usize::MAX)));
            let part = end - start;
            let mut written = 0;
            while written < part {
                let bytes = &context.buffer[start + written..end];
                let done = again(|| write_some(&target, bytes))
                    .map_err(|errno| failed(Operation::Write, &into.path.join(&name), errno))?;
                written += done;
                context.has_written(into.at, done as u64)?;
            }
            start = end;
            room -= part as u64;
            if room == 0 {
                close(target, &into.path)?;
                context.done(1)?;
            } else {
                open = Some(target);
            }
        }
        if len == 0 {
            break;
        }
    }
    if let Some(last) = open {
        close(last, &into.path)?;
        context.done(1)?;
    }
    Ok(())
}
