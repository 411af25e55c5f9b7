//! Record locks of other processes on an open file (fcntl(2)).

use std::{io, os::fd::AsFd, os::fd::AsRawFd as _};

use crate::checked;

/// True if another process or another open file description has locked any byte of a file.
/// Traditional record locks and open file description locks count, for reading or for writing.
///
/// # Errors
/// `EINVAL` on a filesystem without such locks.
pub fn is_locked(file: impl AsFd) -> io::Result<bool> {
    let narrow = |kind: i32| libc::c_short::try_from(kind).map_err(io::Error::other);
    let (l_type, l_whence) = (narrow(libc::F_WRLCK)?, narrow(libc::SEEK_SET)?);
    // From the first byte to the end: length 0.
    let mut lock = libc::flock { l_type, l_whence, l_start: 0, l_len: 0, l_pid: 0 };
    // SAFETY: F_OFD_GETLK reads and writes one `struct flock`, which lives through the call.
    checked(libc::c_long::from(unsafe {
        libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock)
    }))?;
    Ok(lock.l_type != narrow(libc::F_UNLCK)?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn locks_of_other_descriptions_are_found() {
        let mine = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_locked(&mine).unwrap());
        for kind in [libc::F_RDLCK, libc::F_WRLCK] {
            let other = File::options().read(true).write(true).open(mine.path()).unwrap();
            let l_type = kind.try_into().unwrap();
            let lock = libc::flock { l_type, l_whence: 0, l_start: 100, l_len: 1, l_pid: 0 };
            // SAFETY: F_OFD_SETLK reads one `struct flock`, which lives through the call.
            let set = unsafe { libc::fcntl(other.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
            assert_eq!(set, 0);
            assert!(is_locked(&mine).unwrap());
            assert!(!is_locked(&other).unwrap());
            drop(other);
            assert!(!is_locked(&mine).unwrap());
        }
    }
}
