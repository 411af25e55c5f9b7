//! ioctls of mounted filesystems: trim free space, create a snapshot of a btrfs subvolume.
//!
//! Both change state and require privileges. Kernel source: `fs/ioctl.c`, `fs/ext4/ioctl.c`,
//! `fs/btrfs/ioctl.c`; numbers: `include/uapi/linux/fs.h`, `include/uapi/linux/btrfs.h`.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};

/// `_IOWR('X', 121, struct fstrim_range)`.
const FITRIM: Opcode = opcode::read_write::<[u64; 3]>(b'X', 121);
/// `_IOW(BTRFS_IOCTL_MAGIC, 23, struct btrfs_ioctl_vol_args_v2)`.
const SNAP_CREATE_V2: Opcode = opcode::write::<VolumeArguments>(0x94, 23);
/// `BTRFS_SUBVOL_RDONLY`.
const READ_ONLY: u64 = 1 << 1;
/// Bytes of a name in [`VolumeArguments`].
const NAME: usize = 4040;

/// `struct btrfs_ioctl_vol_args_v2`.
#[repr(C)]
struct VolumeArguments {
    fd: i64,
    transid: u64,
    flags: u64,
    unused: [u64; 4],
    name: [u8; NAME],
}

/// Discards the free space of the filesystem of an open file or directory. Returns the number of
/// discarded bytes.
///
/// # Errors
/// Errors of `ioctl(2)`: `EOPNOTSUPP` and `ENOTTY` if the filesystem or its device does not
/// support it, `EPERM` without privileges.
pub fn trim(file: BorrowedFd<'_>) -> io::Result<u64> {
    // Start, length, and minimum length of a free range.
    let mut range = [0, u64::MAX, 0];
    // SAFETY: FITRIM reads and writes three u64 (`ext4_ioctl` and others), which the updater
    // passes.
    unsafe { ioctl(file, Updater::<FITRIM, [u64; 3]>::new(&mut range)) }?;
    Ok(range[1])
}

/// Creates a read-only snapshot of a btrfs subvolume with this name in an open directory.
///
/// # Errors
/// `EINVAL` for a name that is empty, too long, or has a slash, and if `subvolume` is not the root
/// of a subvolume; `ENOTTY` on other filesystems; other errors of `ioctl(2)`.
pub fn snapshot(
    subvolume: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &str,
) -> io::Result<()> {
    if name.is_empty() || name.len() >= NAME || name.contains(['/', '\0']) {
        return Err(rustix::io::Errno::INVAL.into());
    }
    let mut arguments = VolumeArguments {
        fd: i64::from(subvolume.as_fd().as_raw_fd()),
        transid: 0,
        flags: READ_ONLY,
        unused: [0; 4],
        name: [0; NAME],
    };
    arguments.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: SNAP_CREATE_V2 reads a `btrfs_ioctl_vol_args_v2` (`btrfs_ioctl_snap_create_v2`),
    // whose layout is that of the argument. It writes nothing without BTRFS_SUBVOL_CREATE_ASYNC,
    // which Linux 5.7 removed. The name ends with a zero, because it is shorter than the array.
    unsafe { ioctl(directory, Setter::<SNAP_CREATE_V2, VolumeArguments>::new(arguments)) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs::File, mem::size_of};

    use super::*;

    #[test]
    fn the_layout_and_the_numbers_are_those_of_the_kernel() {
        assert_eq!(size_of::<VolumeArguments>(), 4096);
        assert_eq!(FITRIM, 0xc018_5879);
        assert_eq!(SNAP_CREATE_V2, 0x5000_9417);
    }

    #[test]
    fn unsuitable_filesystems_and_names_are_errors() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let file = File::open(directory.path()).unwrap();
        assert!(trim(file.as_fd()).is_err(), "tmpfs has no device");
        assert!(snapshot(file.as_fd(), file.as_fd(), "a/b").is_err());
        assert!(snapshot(file.as_fd(), file.as_fd(), "one").is_err(), "tmpfs has no subvolumes");
    }
}
