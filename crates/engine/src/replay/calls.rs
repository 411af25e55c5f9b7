//! Classification of failed calls of a client, and calls without a safe form.
#![expect(unsafe_code, reason = "range locks have no safe form (fcntl(2))")]

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use crate::{calls::again, error::Operation};

/// Failure that ends the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// Operation that failed.
    pub(super) operation: Operation,
    /// Error of the system call.
    pub(super) errno: Errno,
}

/// True if operations after this error would be meaningless: no space is left, the device or the
/// filesystem is broken, or the process has too many open files.
pub(super) fn is_fatal(errno: Errno) -> bool {
    const SPOILING: [Errno; 6] =
        [Errno::NOSPC, Errno::DQUOT, Errno::IO, Errno::ROFS, Errno::MFILE, Errno::NFILE];
    SPOILING.contains(&errno)
}

/// Result of a call; `None` for an error that may be expected by a loadfile.
#[inline]
pub(super) fn classify<T>(
    operation: Operation,
    answer: Result<T, Errno>,
) -> Result<Option<T>, Refused> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(errno) if is_fatal(errno) => Err(Refused { operation, errno }),
        Err(_) => Ok(None),
    }
}

/// Operation on a range lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    /// Take the lock for writing; waits until it is free.
    Take,
    /// Release the lock.
    Give,
}

/// `F_SETLKW` of fcntl(2). The owner of a lock is the process, or a thread with a separate
/// descriptor table (`files_struct`, fs/locks.c).
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
        // SAFETY: the descriptor is open, and the call reads one flock, which lives through the
        // call.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLKW, &raw const range) } {
            -1 => {
                let error = std::io::Error::last_os_error();
                Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
            }
            _ => Ok(()),
        }
    })
}
