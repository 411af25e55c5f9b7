//! Properties of a block device: size, read-only flag, and identity of the medium.
//!
//! Every call takes an open descriptor of the device. The result therefore refers to the opened
//! device even if its path names another one by now. No call changes a device.
//!
//! Kernel source: `block/ioctl.c`; numbers: `include/uapi/linux/fs.h`.

use std::{ffi::c_int, io, os::fd::AsFd};

use rustix::{
    io::Errno,
    ioctl::{Getter, Opcode, ioctl, opcode},
};

/// `_IO(0x12, 94)`. Although declared without an argument, the call writes an `int` through a
/// pointer.
const BLKROGET: Opcode = opcode::none(0x12, 94);
/// `_IOR(0x12, 114, size_t)`. The call always writes 64 bits, also if `size_t` has 32 bits.
const BLKGETSIZE64: Opcode = opcode::read::<usize>(0x12, 114);
/// `_IOR(0x12, 128, __u64)`, since Linux 5.15.
const BLKGETDISKSEQ: Opcode = opcode::read::<u64>(0x12, 128);

/// Size of a block device in bytes; 0 without a medium.
///
/// # Errors
/// `ENOTTY` if `device` is not a block device.
pub fn size_bytes(device: impl AsFd) -> io::Result<u64> {
    // SAFETY: BLKGETSIZE64 writes one u64 and reads nothing (`blkdev_common_ioctl`). Descriptors of
    // other files return ENOTTY.
    let size = unsafe { ioctl(device, Getter::<BLKGETSIZE64, u64>::new()) }?;
    Ok(size)
}

/// True if a block device rejects writes, because of a switch on the medium, `blockdev --setro`, or
/// a read-only loop device.
///
/// # Errors
/// `ENOTTY` if `device` is not a block device.
pub fn read_only(device: impl AsFd) -> io::Result<bool> {
    // SAFETY: BLKROGET writes one int and reads nothing (`blkdev_common_ioctl`). Descriptors of
    // other files return ENOTTY.
    let flag = unsafe { ioctl(device, Getter::<BLKROGET, c_int>::new()) }?;
    Ok(flag != 0)
}

/// Sequence number of the medium in a disk. `device` is the disk or one of its partitions.
///
/// The kernel assigns a new number to every disk that appears, to every exchanged medium, and to
/// every file that is attached to a loop device. If two numbers are equal and the host was not
/// rebooted in between, the medium is the same. `None` on kernels before Linux 5.15, which have no
/// such number.
///
/// # Errors
/// Errors of `ioctl(2)` other than `ENOTTY` and `EINVAL`.
pub fn disk_sequence(device: impl AsFd) -> io::Result<Option<u64>> {
    // SAFETY: BLKGETDISKSEQ writes one u64 and reads nothing (`blkdev_common_ioctl`). Descriptors
    // of other files return ENOTTY.
    match unsafe { ioctl(device, Getter::<BLKGETDISKSEQ, u64>::new()) } {
        Ok(sequence) => Ok(Some(sequence)),
        Err(Errno::NOTTY | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_is_not_a_block_device() {
        let file = tempfile::tempfile().unwrap();
        let enotty = Some(Errno::NOTTY.raw_os_error());
        assert_eq!(size_bytes(&file).unwrap_err().raw_os_error(), enotty);
        assert_eq!(read_only(&file).unwrap_err().raw_os_error(), enotty);
        assert_eq!(disk_sequence(&file).unwrap(), None);
    }

    /// The values of every accessible device must equal those in sysfs.
    #[test]
    fn values_equal_those_in_sysfs() {
        let disks = std::fs::read_dir("/sys/block").into_iter().flatten();
        for directory in disks.map(|entry| entry.unwrap().path()) {
            let name = directory.file_name().unwrap().to_str().unwrap().replace('!', "/");
            // Other processes attach and detach loop devices at any time, so two reads may differ.
            let Some(device) = (!name.starts_with("loop"))
                .then(|| File::open(std::path::Path::new("/dev").join(name)).ok())
                .flatten()
            else {
                continue;
            };
            let fact = |name: &str| {
                let text = std::fs::read_to_string(directory.join(name)).ok();
                text.map(|text| text.trim().parse::<u64>().unwrap())
            };
            assert_eq!(Some(size_bytes(&device).unwrap()), fact("size").map(|n| n * 512));
            assert_eq!(Some(read_only(&device).unwrap()), fact("ro").map(|n| n != 0));
            assert_eq!(disk_sequence(&device).unwrap(), fact("diskseq"));
        }
    }
}
