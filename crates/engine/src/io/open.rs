//! Opening of files with the options of a stream, before the clock starts.

use std::{os::fd::AsFd, os::fd::OwnedFd, path::Path};

use model::phase::{AccessPattern, Bound, Direction, FileCreation, Open, Stream};
use rustix::{
    fs::{FileType, Mode, OFlags, fstat, unlink},
    io::Errno,
};

use super::pass;
use crate::error::{Fault, Operation};

/// `O_DSYNC`. The constant of `rustix` 1.1 is `O_SYNC` on Linux.
const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());

/// Access of a worker to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessMode {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Reads and writes.
    Both,
}

impl AccessMode {
    /// Access mode of a worker. Updates read the blocks they write back, and a backlog of verified
    /// blocks is read.
    pub(crate) fn of(stream: &Stream, worker: u32) -> Self {
        if matches!(stream.direction, Direction::Update(_)) {
            return Self::Both;
        }
        match (stream.direction.reads(worker), stream.direction.writes(worker)) {
            (true, false) => Self::Read,
            (false, _) if stream.verify_backlog.is_some() => Self::Both,
            (false, _) => Self::Write,
            (true, true) => Self::Both,
        }
    }

    /// True if the worker reads.
    pub(crate) fn reads(self) -> bool {
        self != Self::Write
    }

    /// True if the worker writes.
    pub(crate) fn writes(self) -> bool {
        self != Self::Read
    }
}

/// Opens the file of a worker for system calls.
///
/// Writers open with `O_RDWR`. Readers open with `O_RDONLY` if the file must exist and is not used
/// exclusively ([`Open::exclusive`]), otherwise with `O_RDWR`. New files get mode 0640, or 0600 if
/// used exclusively. Files are not truncated, so a reused file keeps its blocks.
pub(super) fn open(stream: &Stream, path: &Path, mode: AccessMode) -> Result<OwnedFd, Fault> {
    let Open { creation: presence, direct, sync, dsync, exclusive: own, .. } = stream.open;
    prepare_presence(presence, path)?;
    let mut flags = OFlags::CLOEXEC;
    flags |= match presence {
        FileCreation::Existing if !mode.writes() && !own => OFlags::RDONLY,
        FileCreation::Existing => OFlags::RDWR,
        FileCreation::Any => OFlags::RDWR | OFlags::CREATE,
        FileCreation::Fresh | FileCreation::Complete => {
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL
        }
    };
    flags.set(OFlags::DIRECT, direct);
    flags.set(OFlags::SYNC, sync);
    flags.set(DSYNC, sync || dsync);
    flags.set(OFlags::APPEND, stream.access_pattern == AccessPattern::Append);
    let permissions = Mode::from_raw_mode(if own { 0o600 } else { 0o640 });
    let file =
        rustix::fs::open(path, flags, permissions).map_err(|errno| refused(stream, mode, errno))?;
    pass::check_regular(stream, &file)?;
    check_length(stream, mode, &file)?;
    Ok(file)
}

/// Removes an existing file if a new one is required.
pub(super) fn prepare_presence(presence: FileCreation, path: &Path) -> Result<(), Fault> {
    if presence == FileCreation::Fresh { remove(path) } else { Ok(()) }
}

/// Removes a file if it exists.
pub(super) fn remove(path: &Path) -> Result<(), Fault> {
    match unlink(path) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Fault::whole(Operation::Unlink, errno)),
    }
}

/// Fault for a file that could not be opened.
pub(super) fn refused(stream: &Stream, mode: AccessMode, errno: Errno) -> Fault {
    if errno == Errno::NOENT && mode.reads() && stream.open.creation == FileCreation::Existing {
        return Fault::NotLaidOut { found: 0, needed: needed(stream) };
    }
    Fault::whole(Operation::Open, errno)
}

/// Checks that a regular file to be read is as long as its whole blocks.
pub(super) fn check_length(
    stream: &Stream,
    mode: AccessMode,
    file: impl AsFd,
) -> Result<(), Fault> {
    // A backlog has only blocks that were written. So have the reads that verify a number of
    // writes, or writes that leave out blocks.
    let all =
        matches!(stream.access_pattern, AccessPattern::Sequential | AccessPattern::Permutation);
    let of_written = stream.verify && (!all || matches!(stream.bound, Bound::Amount(_)));
    if !mode.reads() || stream.verify_backlog.is_some() || of_written {
        return Ok(());
    }
    let status = fstat(file).map_err(|errno| Fault::whole(Operation::Examine, errno))?;
    let found = u64::try_from(status.st_size).unwrap_or(0);
    let needed = needed(stream);
    let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    if regular && found < needed { Err(Fault::NotLaidOut { found, needed }) } else { Ok(()) }
}

/// Bytes up to the end of the whole blocks of the first worker.
pub(super) fn needed(stream: &Stream) -> u64 {
    let (start, size) = match stream.region() {
        Some(region) => (region.offset.0, region.size.0),
        None => (0, stream.size.0),
    };
    start + (size - size % stream.block_size.0)
}
