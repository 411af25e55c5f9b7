//! Page cache residency of a file or block device.
//!
//! [`resident`] uses `cachestat(2)` (Linux 6.5, `mm/filemap.c`), which reads no data and maps
//! nothing. On older kernels it uses `mincore(2)` on a mapping, one window at a time.

use std::{
    ffi::c_long,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    ptr,
};

use crate::checked;

/// Number of `cachestat(2)`, which is the same on all architectures except Alpha, MIPS, and x32:
/// since Linux 5.1, new system calls get one common number.
const SYS_CACHESTAT: c_long = 451;

/// Length of a `mincore` window in bytes: small enough to map anywhere, large enough for few calls.
const WINDOW: u64 = 1 << 30;

/// `struct cachestat_range` of `include/uapi/linux/mman.h`; a length of 0 means to the end of the
/// file.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of `include/uapi/linux/mman.h`, in pages.
#[repr(C)]
#[derive(Default)]
struct Stat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes of a file in the page cache (whole pages).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// All cached bytes.
    pub cached: u64,
    /// Dirty bytes; `None` if only `mincore` is available.
    pub dirty: Option<u64>,
}

/// Bytes of a file or block device in the page cache.
///
/// # Errors
/// `EOPNOTSUPP` for filesystems without pages (hugetlbfs), `EPERM` if the kernel allows only the
/// owner or a writer to query (since 6.15), and errors of `mmap(2)` on kernels without `cachestat`.
pub fn resident(file: impl AsFd) -> io::Result<Resident> {
    let file = file.as_fd();
    match by_cachestat(file) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => by_mincore(file),
        answer => answer,
    }
}

/// Size of a page in bytes.
pub fn page_size() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX)
}

fn by_cachestat(file: BorrowedFd<'_>) -> io::Result<Resident> {
    let range = Range { offset: 0, length: 0 };
    let mut stat = Stat::default();
    // SAFETY: cachestat(fd, range, stat, flags) reads one `Range` and writes one `Stat`; both are
    // live locals with the kernel's layout (`repr(C)`, all u64); `BorrowedFd` keeps the descriptor
    // open.
    let answer = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0u32)
    };
    checked(answer)?;
    let bytes = |pages: u64| pages.saturating_mul(page_size());
    Ok(Resident { cached: bytes(stat.cached), dirty: Some(bytes(stat.dirty)) })
}

fn by_mincore(file: BorrowedFd<'_>) -> io::Result<Resident> {
    let length = rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))?;
    let mut cached = 0;
    for offset in (0..length).step_by(usize::try_from(WINDOW).unwrap_or(1 << 30)) {
        cached += window(file, offset, WINDOW.min(length - offset))?;
    }
    Ok(Resident { cached, dirty: None })
}

/// Resident bytes within one window; `offset` is a multiple of the page size, `length` positive.
fn window(file: BorrowedFd<'_>, offset: u64, length: u64) -> io::Result<u64> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let start = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    let mut pages = vec![0u8; length.div_ceil(rustix::param::page_size())];
    // SAFETY: a new shared mapping at an address chosen by the kernel. Nothing reads through it, so
    // a file that shrinks cannot cause a fault. `BorrowedFd` keeps the descriptor open.
    let address = unsafe {
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        libc::mmap(ptr::null_mut(), length, read, shared, file.as_raw_fd(), start)
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `address` is page aligned and maps `length` bytes (mmap succeeded above); `pages` has
    // one byte per page of that length, as mincore(2) requires.
    let answer = unsafe { libc::mincore(address, length, pages.as_mut_ptr()) };
    let answer = checked(answer.into());
    // SAFETY: exactly the mapping created above, which has no other references.
    let unmapped = unsafe { libc::munmap(address, length) };
    answer?;
    checked(unmapped.into())?;
    let resident = pages.iter().filter(|page| **page & 1 != 0).count();
    Ok(u64::try_from(resident).unwrap_or(u64::MAX).saturating_mul(page_size()))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write as _};

    use super::*;

    /// A file of 64 pages on a disk filesystem that was just written, so its pages are cached.
    fn written() -> File {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&vec![7; 64 * rustix::param::page_size()]).unwrap();
        file
    }

    #[test]
    fn both_methods_report_written_pages() {
        let file = written();
        let all = 64 * page_size();
        assert_eq!(resident(&file).unwrap().cached, all);
        assert_eq!(by_mincore(file.as_fd()).unwrap(), Resident { cached: all, dirty: None });
    }

    #[test]
    fn an_empty_file_has_no_cached_pages() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        assert_eq!(resident(&file).unwrap().cached, 0);
        assert_eq!(by_mincore(file.as_fd()).unwrap().cached, 0);
    }

    #[test]
    fn dropped_pages_are_not_cached() {
        let file = written();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        assert_eq!(resident(&file).unwrap().cached, 0);
        assert_eq!(by_mincore(file.as_fd()).unwrap().cached, 0);
    }
}
