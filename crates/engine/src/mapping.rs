//! Memory from mmap(2): private pages for I/O buffers, shared pages for the control block, sealed
//! pages for the program of a replay, and files under test.
//!
//! Buffers are zeroed and page-aligned, as `O_DIRECT` requires. Buffers and the control block are
//! populated immediately, so that no page fault occurs in a timed loop. Files under test are not
//! populated: their page faults are part of the measurement.
#![expect(unsafe_code, reason = "mmap(2) returns raw memory")]

use std::{num::NonZeroUsize, os::fd::BorrowedFd, ptr::NonNull, slice};

use rustix::{
    io::Errno,
    mm::{MapFlags, MsyncFlags, ProtFlags, mmap, mmap_anonymous, msync, munmap},
};

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

    fn private(len: NonZeroUsize) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
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
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and len are those of the mmap; every borrow of the pages ends with `self`. A
        // failure would only leak the pages and is not reported.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Private page-aligned memory.
pub(crate) struct Pages(Mapping);

impl Pages {
    /// Allocates at least `len` bytes of zeros, all present in memory.
    pub(crate) fn new(len: NonZeroUsize) -> Result<Self, Errno> {
        Mapping::private(len).map(Self)
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is private and initialized by the kernel, lives as long as `self`,
        // and `&mut self` makes this the only borrow.
        unsafe { slice::from_raw_parts_mut(self.0.base().as_ptr(), self.0.len()) }
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
}
