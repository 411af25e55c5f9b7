//! What a client does when a call is refused, and the calls that have no safe form.
#![expect(unsafe_code, reason = "locks of ranges have no safe form (fcntl(2))")]

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use crate::error::Operation;

/// A refusal that ends the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// What was being done.
    pub(super) operation: Operation,
    /// The kernel's answer.
    pub(super) errno: Errno,
}

/// Whether nothing that follows this refusal would mean anything: there is no room, the device or
/// the filesystem is broken, or the process may open no more files.
pub(super) fn spoils(errno: Errno) -> bool {
    const SPOILING: [Errno; 6] =
        [Errno::NOSPC, Errno::DQUOT, Errno::IO, Errno::ROFS, Errno::MFILE, Errno::NFILE];
    SPOILING.contains(&errno)
}

/// What a call answered; `None` for a refusal that a load file can have.
#[inline]
pub(super) fn judged<T>(
    operation: Operation,
    answer: Result<T, Errno>,
) -> Result<Option<T>, Refused> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(errno) if spoils(errno) => Err(Refused { operation, errno }),
        Err(_) => Ok(None),
    }
}

/// Makes an interrupted call again.
#[inline]
pub(super) fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// What is done to the lock of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    /// It is taken, for writing, as soon as nobody else has it.
    Take,
    /// It is given back.
    Give,
}

/// `F_SETLKW` of fcntl(2). The owner is the process, or a thread with a table of descriptors of its
/// own (`files_struct`, fs/locks.c).
pub(super) fn lock(file: &OwnedFd, lock: Lock, offset: u64, len: u64) -> Result<(), Errno> {
    let kind = match lock {
        Lock::Take => libc::F_WRLCK,
        Lock::Give => libc::F_UNLCK,
    };
    let distance = |bytes: u64| libc::off_t::try_from(bytes).map_err(|_| Errno::OVERFLOW);
    // SAFETY: integers only, for which zeros are valid.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    #[expect(clippy::cast_possible_truncation, reason = "constants of one digit")]
    let (kind, whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    (range.l_type, range.l_whence) = (kind, whence);
    (range.l_start, range.l_len) = (distance(offset)?, distance(len)?);
    again(|| {
        // SAFETY: the descriptor is open, and the call reads one flock, which lives until then.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLKW, &raw const range) } {
            -1 => {
                let error = std::io::Error::last_os_error();
                Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
            }
            _ => Ok(()),
        }
    })
}
