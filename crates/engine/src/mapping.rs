//! Memory from mmap(2): private pages for I/O buffers, shared pages for the control block, sealed
//! pages for the program of a replay, and files under test.
//!
//! Buffers are zeroed and page-aligned, as `O_DIRECT` requires. Buffers and the control block are
//! populated immediately, so that no page fault occurs in a timed loop. Files under test are not
//! populated: their page faults are part of the measurement.
//!
//! Buffers of [`LARGE`] bytes and more are in huge pages where the kernel has them
//! (`transparent_hugepage/enabled` is `always` or `madvise`). With small pages the throughput of
//! large direct I/O depends on the fragmentation of free memory: scattered pages become one segment
//! each of a request of the device, adjacent pages are merged (`blk_rq_map_sg`, and
//! `queue/max_segments` splits the request).
#![expect(unsafe_code, reason = "mmap(2) returns raw memory")]

use std::{num::NonZeroUsize, os::fd::BorrowedFd, ptr::NonNull, slice};

use rustix::{
    io::Errno,
    mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, msync, munmap},
};

/// Buffers of this size in bytes and more are in huge pages. A worker then holds at most twice the
/// memory that it asked for.
const LARGE: usize = 1 << 20;

/// Size of a huge page in bytes on x86-64, and on aarch64 with pages of 4 KiB. Where huge pages are
/// larger, the buffer is in small ones.
const HUGE_PAGE: usize = 2 << 20;

/// Mapping of this process, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the whole process; no thread owns its pages. A `Mapping` does not
// access the bytes. Its users do so by exclusive borrows, atomics, or copies.
unsafe impl Send for Mapping {}
// SAFETY: as for Send; a shared `Mapping` only returns its address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `file`, shared with all other mappings.
    pub(crate) fn shared(file: BorrowedFd<'_>, len: NonZeroUsize) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: with a null hint the kernel chooses an unused address.
        let base = unsafe { mmap(std::ptr::null_mut(), len.get(), protection, flags, file, 0) }?;
        Self::from_kernel(base, len)
    }

    /// Maps the first `len` bytes of the file under test for reading, and for writing if
    /// `writable`. No page is populated.
    pub(crate) fn of_file(
        file: BorrowedFd<'_>,
        len: NonZeroUsize,
        writable: bool,
    ) -> Result<Self, Errno> {
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, writable);
        let (hint, flags) = (std::ptr::null_mut(), MapFlags::SHARED);
        // SAFETY: with a null hint the kernel chooses an unused address.
        let base = unsafe { mmap(hint, len.get(), protection, flags, file, 0) }?;
        Self::from_kernel(base, len)
    }

    /// Maps `len` bytes of `file`, which is sealed against changes, for reading, with all pages
    /// present.
    pub(crate) fn sealed(file: BorrowedFd<'_>, len: NonZeroUsize) -> Result<Self, Errno> {
        // Private, although all mappings have the same pages: before 6.7, Linux refused to share a
        // file with F_SEAL_WRITE even for reading (mm/mmap.c). No page is written, so none is
        // copied.
        let (protection, flags) = (ProtFlags::READ, MapFlags::PRIVATE | MapFlags::POPULATE);
        // SAFETY: with a null hint the kernel chooses an unused address.
        let base = unsafe { mmap(std::ptr::null_mut(), len.get(), protection, flags, file, 0) }?;
        Self::from_kernel(base, len)
    }

    fn private(len: NonZeroUsize, flags: MapFlags) -> Result<Self, Errno> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, flags | MapFlags::PRIVATE);
        // SAFETY: with a null hint the kernel chooses an unused address.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), len.get(), protection, flags) }?;
        Self::from_kernel(base, len)
    }

    fn from_kernel(base: *mut core::ffi::c_void, len: NonZeroUsize) -> Result<Self, Errno> {
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, len: len.get() })
    }

    /// Writes a shared mapping to its file and waits: msync(2) with `MS_SYNC`.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        // SAFETY: base and len are those of the mmap, which lives as long as `self`.
        unsafe { msync(self.base.as_ptr().cast(), self.len, MsyncFlags::SYNC) }
    }

    /// First byte; valid for reads (and for writes unless mapped read-only) of [`Self::len`] bytes
    /// while `self` lives.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Leaves the pages out of child processes. After fork(2), each first write would copy a page
    /// otherwise, and direct I/O must not use private pages that are shared (open(2)).
    fn is_not_inherited(&self) {
        // SAFETY: the range is this mapping, and the advice does not change it in this process. It
        // fails only for memory of devices.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxDontFork) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and len are those of the mmap; every borrow of the pages ends with `self`. A
        // failure would only leak the pages and is not reported.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Private page-aligned memory.
pub(crate) struct Pages {
    mapping: Mapping,
    // First byte in use, as an offset in the mapping, and the number of bytes in use.
    start: usize,
    len: usize,
}

impl Pages {
    /// Allocates `len` bytes of zeros, all present in memory, in huge pages if there are [`LARGE`]
    /// bytes or more.
    pub(crate) fn new(len: NonZeroUsize) -> Result<Self, Errno> {
        let small = len.get() < LARGE;
        let huge_pages = len.get().checked_next_multiple_of(HUGE_PAGE);
        let with_margin = huge_pages.and_then(|bytes| bytes.checked_add(HUGE_PAGE));
        let Some(whole) = with_margin.and_then(NonZeroUsize::new).filter(|_| !small) else {
            let mapping = Mapping::private(len, MapFlags::POPULATE)?;
            mapping.is_not_inherited();
            return Ok(Self { mapping, start: 0, len: len.get() });
        };
        let mapping = Mapping::private(whole, MapFlags::empty())?;
        mapping.is_not_inherited();
        let start = mapping.base().as_ptr().align_offset(HUGE_PAGE);
        let used = whole.get() - HUGE_PAGE;
        // SAFETY: the alignment skips less than one huge page, so these bytes are in the mapping.
        let base = unsafe { mapping.base().as_ptr().add(start) };
        // SAFETY: the range is private memory of this mapping, and the advice changes no content.
        // A kernel without huge pages returns EINVAL; the buffer is then in small pages.
        let _ = unsafe { madvise(base.cast(), used, Advice::LinuxHugepage) };
        // SAFETY: the range is writable, and nothing has a reference to it. The first write of a
        // page makes the kernel allocate it.
        unsafe { base.write_bytes(0, used) };
        Ok(Self { mapping, start, len: len.get() })
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `start + len` is within the mapping, which is private and initialized by the
        // kernel, and lives as long as `self`; `&mut self` makes this the only borrow.
        unsafe { slice::from_raw_parts_mut(self.mapping.base().as_ptr().add(self.start), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_aligned_and_writable() {
        let mut pages = Pages::new(NonZeroUsize::new(10_000).unwrap()).unwrap();
        let bytes = pages.bytes_mut();
        assert_eq!((bytes.len(), bytes.as_ptr().align_offset(4096)), (10_000, 0));
        assert!(bytes.iter().all(|byte| *byte == 0));
        bytes.fill(7);
        assert_eq!(pages.bytes_mut()[9_999], 7);
    }

    #[test]
    fn large_buffers_are_aligned_to_huge_pages() {
        for len in [LARGE, LARGE + 1, HUGE_PAGE, 3 * HUGE_PAGE + 4096] {
            let mut pages = Pages::new(NonZeroUsize::new(len).unwrap()).unwrap();
            let bytes = pages.bytes_mut();
            assert_eq!((bytes.len(), bytes.as_ptr().align_offset(HUGE_PAGE)), (len, 0));
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(7);
        }
        let mut pages = Pages::new(NonZeroUsize::new(LARGE - 1).unwrap()).unwrap();
        assert_eq!(pages.bytes_mut().len(), LARGE - 1);
    }
}
