//! truncate(2), which has no safe form with a path.
#![expect(unsafe_code, reason = "a system call that only the C library has")]

use std::ffi::CStr;

use rustix::io::Errno;

/// Sets the length of the file `path`.
pub(super) fn truncate(path: &CStr, size: u64) -> Result<(), Errno> {
    let size = libc::off_t::try_from(size).map_err(|_| Errno::FBIG)?;
    // SAFETY: the path ends with a NUL and lives during the call; nothing else is accessed.
    match unsafe { libc::truncate(path.as_ptr(), size) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
