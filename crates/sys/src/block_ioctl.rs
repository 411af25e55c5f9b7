//! Block device ioctls that change state: discard a range, drop the page cache.
//!
//! Every call takes an open descriptor. [`discard`] destroys data; the caller must have checked
//! that the device may be erased.
//!
//! Kernel source: `block/ioctl.c`; numbers: `include/uapi/linux/fs.h`.

use std::{io, os::fd::AsFd};

use rustix::ioctl::{NoArg, Opcode, Setter, ioctl, opcode};

/// `_IO(0x12, 97)`.
const BLKFLSBUF: Opcode = opcode::none(0x12, 97);
/// `_IO(0x12, 119)`. Although declared without an argument, the call reads two u64 through a
/// pointer.
const BLKDISCARD: Opcode = opcode::none(0x12, 119);

/// Discards a range: the device may drop its contents. Irreversible.
///
/// `offset` and `length` are in bytes, multiples of the logical block size. The call first drops
/// the range from the page cache, and returns when the device has completed the request.
///
/// # Errors
/// `EOPNOTSUPP` if the device cannot discard, `EINVAL` if the range is not aligned or empty,
/// `EBADF` if the descriptor is not open for writing, `ENOTTY` if it is not a block device.
pub fn discard(device: impl AsFd, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: BLKDISCARD reads two u64 and writes nothing (`blk_ioctl_discard`). The setter passes
    // an array of two u64 that lives through the call. Other descriptors return ENOTTY.
    unsafe { ioctl(device, Setter::<BLKDISCARD, [u64; 2]>::new([offset, length])) }?;
    Ok(())
}

/// Writes back and drops the page cache of a block device.
///
/// # Errors
/// `EACCES` without `CAP_SYS_ADMIN`, `ENOTTY` if it is not a block device.
pub fn flush_cache(device: impl AsFd) -> io::Result<()> {
    // SAFETY: BLKFLSBUF has no argument (`blkdev_flushbuf`); other descriptors return ENOTTY.
    unsafe { ioctl(device, NoArg::<BLKFLSBUF>::new()) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_files_are_rejected() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(discard(&file, 0, 4096).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(flush_cache(&file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
