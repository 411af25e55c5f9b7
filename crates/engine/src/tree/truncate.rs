//! truncate(2), for which there is no safe form that takes a path.
#![expect(unsafe_code, reason = "a system call that only the C library has")]

use std::ffi::CStr;

use rustix::io::Errno;

/// Makes the file `path` so many bytes long.
pub(super) fn truncate(path: &CStr, size: u64) -> Result<(), Errno> {
    let size = libc::off_t::try_from(size).map_err(|_| Errno::FBIG)?;
    // SAFETY: the path ends with a NUL and lives during the call; nothing else is touched.
    match unsafe { libc::truncate(path.as_ptr(), size) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
