//! Offsets with the number of a file, for workers with several files.
//!
//! The number is in the upper bits. All parts of the loop therefore handle one offset per
//! operation, and workers with one file have no extra work.

/// Bits of an offset in a file; the bits above are the number of the file.
pub(crate) const FILE_SHIFT: u32 = 44;

/// Number of the file of an offset.
#[inline]
pub(crate) fn file_of(offset: u64) -> usize {
    (offset >> FILE_SHIFT) as usize
}

/// Offset in its file.
#[inline]
pub(crate) fn within(offset: u64) -> u64 {
    offset & ((1 << FILE_SHIFT) - 1)
}

/// First offset of a file.
#[inline]
pub(crate) fn first_of(file: usize) -> u64 {
    (file as u64) << FILE_SHIFT
}

/// Change of the open files that the next operation requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileChange {
    /// File to open.
    pub(crate) open: usize,
    /// File to close before, which has no more blocks.
    pub(crate) close: Option<usize>,
}
