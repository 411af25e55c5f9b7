//! Opening files as a stream asks, before the clock starts.

use std::{os::fd::AsFd, os::fd::OwnedFd, path::Path};

use model::phase::{Access, Direction, Open, Presence, Stream};
use rustix::{
    fs::{FileType, Mode, OFlags, fstat, unlink},
    io::Errno,
};

use crate::error::{Fault, Operation};

/// What a worker does with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It only reads.
    Read,
    /// It only writes.
    Write,
    /// Both, by turns.
    Both,
}

impl Purpose {
    /// Of this worker. Who updates reads all that he writes back.
    pub(crate) fn of(stream: &Stream, worker: u32) -> Self {
        if matches!(stream.direction, Direction::Update(_)) {
            return Self::Both;
        }
        match (stream.direction.reads(worker), stream.direction.writes(worker)) {
            (true, false) => Self::Read,
            (false, _) => Self::Write,
            (true, true) => Self::Both,
        }
    }

    /// Whether it reads.
    pub(crate) fn reads(self) -> bool {
        self != Self::Write
    }

    /// Whether it writes.
    pub(crate) fn writes(self) -> bool {
        self != Self::Read
    }
}

/// Opens the file of a worker for system calls.
///
/// Writers get `O_RDWR`, readers `O_RDONLY`, but `O_RDWR` when the file may be created
/// ([`Presence::Any`]) or is to be opened as the worker's own ([`Open::own`]). New files get mode
/// 0640, or 0600 if they are the worker's own. Nothing is truncated: a file that is used as it is
/// keeps its blocks.
pub(super) fn open(stream: &Stream, path: &Path, purpose: Purpose) -> Result<OwnedFd, Fault> {
    let Open { presence, direct, sync, dsync, own, .. } = stream.open;
    prepare_presence(presence, path)?;
    let mut flags = OFlags::CLOEXEC;
    flags |= match presence {
        Presence::Existing if !purpose.writes() && !own => OFlags::RDONLY,
        Presence::Existing => OFlags::RDWR,
        Presence::Any => OFlags::RDWR | OFlags::CREATE,
        Presence::Fresh => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
    };
    flags.set(OFlags::DIRECT, direct);
    flags.set(OFlags::SYNC, sync);
    flags.set(OFlags::DSYNC, sync || dsync);
    flags.set(OFlags::APPEND, stream.access == Access::Append);
    let mode = Mode::from_raw_mode(if own { 0o600 } else { 0o640 });
    let file =
        rustix::fs::open(path, flags, mode).map_err(|errno| refused(stream, purpose, errno))?;
    laid_out(stream, purpose, &file)?;
    Ok(file)
}

/// Removes an old file where a fresh one is wanted.
pub(super) fn prepare_presence(presence: Presence, path: &Path) -> Result<(), Fault> {
    match unlink_if(presence == Presence::Fresh, path) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Fault::whole(Operation::Unlink, errno)),
    }
}

fn unlink_if(wanted: bool, path: &Path) -> Result<(), Errno> {
    if wanted { unlink(path) } else { Ok(()) }
}

/// Why the file could not be opened: a missing one was not laid out.
pub(super) fn refused(stream: &Stream, purpose: Purpose, errno: Errno) -> Fault {
    if errno == Errno::NOENT && purpose.reads() && stream.open.presence == Presence::Existing {
        return Fault::NotLaidOut { found: 0, needed: needed(stream) };
    }
    Fault::whole(Operation::Open, errno)
}

/// Makes sure that a regular file to be read is as long as its whole records.
pub(super) fn laid_out(stream: &Stream, purpose: Purpose, file: impl AsFd) -> Result<(), Fault> {
    if !purpose.reads() {
        return Ok(());
    }
    let status = fstat(file).map_err(|errno| Fault::whole(Operation::Examine, errno))?;
    let found = u64::try_from(status.st_size).unwrap_or(0);
    let needed = needed(stream);
    let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    if regular && found < needed { Err(Fault::NotLaidOut { found, needed }) } else { Ok(()) }
}

/// Bytes of all whole records.
pub(super) fn needed(stream: &Stream) -> u64 {
    stream.size.0 - stream.size.0 % stream.record.0
}
