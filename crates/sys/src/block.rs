//! Questions to a block device: its size, whether it is read-only, and which medium it is.
//!
//! Every call takes an open descriptor of the device, so that the answer is about the device that
//! was opened, not about what its path names by now. Nothing here changes a device.
//!
//! Kernel source: `block/ioctl.c`; numbers: `include/uapi/linux/fs.h`.

use std::{ffi::c_int, io, os::fd::AsFd};

use rustix::{
    io::Errno,
    ioctl::{Getter, Opcode, ioctl, opcode},
};

/// `_IO(0x12, 94)`; unlike its declaration, it writes an `int` through its argument.
const BLKROGET: Opcode = opcode::none(0x12, 94);
/// `_IOR(0x12, 114, size_t)`; unlike its declaration, it always writes 64 bits.
const BLKGETSIZE64: Opcode = opcode::read::<usize>(0x12, 114);
/// `_IOR(0x12, 128, __u64)`, since Linux 5.15.
const BLKGETDISKSEQ: Opcode = opcode::read::<u64>(0x12, 128);

/// The size of a block device, in bytes; 0 when no medium is in it.
///
/// # Errors
/// `ENOTTY` when `device` is not a block device.
pub fn size_bytes(device: impl AsFd) -> io::Result<u64> {
    // SAFETY: BLKGETSIZE64 writes one u64 and reads nothing (`blkdev_common_ioctl`); the kernel
    // upholds this for every descriptor that answers the number, and others answer ENOTTY.
    let size = unsafe { ioctl(device, Getter::<BLKGETSIZE64, u64>::new()) }?;
    Ok(size)
}

/// Whether a block device refuses writes (switch on the medium, `blockdev --setro`, read-only
/// loop).
///
/// # Errors
/// `ENOTTY` when `device` is not a block device.
pub fn read_only(device: impl AsFd) -> io::Result<bool> {
    // SAFETY: BLKROGET writes one int and reads nothing (`blkdev_common_ioctl`); the kernel upholds
    // this for every descriptor that answers the number, and others answer ENOTTY.
    let flag = unsafe { ioctl(device, Getter::<BLKROGET, c_int>::new()) }?;
    Ok(flag != 0)
}

/// The sequence number of the medium in the disk that a block device is, or is a partition of.
///
/// The kernel gives a new number to every disk that appears, to every medium that is exchanged and
/// to every file that is attached to a loop device, so equal numbers mean the same medium since
/// boot. `None` when the kernel is older than Linux 5.15 and knows no such number.
///
/// # Errors
/// Those of `ioctl(2)` other than `ENOTTY` and `EINVAL`.
pub fn disk_sequence(device: impl AsFd) -> io::Result<Option<u64>> {
    // SAFETY: BLKGETDISKSEQ writes one u64 and reads nothing (`blkdev_common_ioctl`); the kernel
    // upholds this for every descriptor that answers the number, and others answer ENOTTY.
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

    /// Every device that may be opened must agree with what sysfs says about it.
    #[test]
    fn the_answers_are_those_of_sysfs() {
        let disks = std::fs::read_dir("/sys/block").into_iter().flatten();
        for folder in disks.map(|entry| entry.unwrap().path()) {
            let name = folder.file_name().unwrap().to_str().unwrap().replace('!', "/");
            // Loop devices are attached and detached by others at any time: no two readings of one
            // need agree.
            let Some(device) = (!name.starts_with("loop"))
                .then(|| File::open(std::path::Path::new("/dev").join(name)).ok())
                .flatten()
            else {
                continue;
            };
            let fact = |name: &str| {
                let text = std::fs::read_to_string(folder.join(name)).ok();
                text.map(|text| text.trim().parse::<u64>().unwrap())
            };
            assert_eq!(Some(size_bytes(&device).unwrap()), fact("size").map(|n| n * 512));
            assert_eq!(Some(read_only(&device).unwrap()), fact("ro").map(|n| n != 0));
            assert_eq!(disk_sequence(&device).unwrap(), fact("diskseq"));
        }
    }
}
