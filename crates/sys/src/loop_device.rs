//! Loop devices: files as block devices (loop(4), `include/uapi/linux/loop.h`,
//! `drivers/block/loop.c`).
//!
//! [`attach`] uses `LOOP_CONFIGURE` (Linux 5.8), which sets the file, block size, and flags in one
//! step, so that no partially configured device is visible. A device is never attached twice and
//! never detached by number only: [`status`] reports the file (device and inode), and callers
//! compare it before they call [`detach`].

use std::{
    ffi::c_ulong,
    fs::{File, OpenOptions},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    path::{Path, PathBuf},
};

use crate::checked;

const LOOP_CONFIGURE: c_ulong = 0x4c0a;
const LOOP_CLR_FD: c_ulong = 0x4c01;
const LOOP_GET_STATUS64: c_ulong = 0x4c05;
const LOOP_CTL_ADD: c_ulong = 0x4c80;
const LOOP_CTL_REMOVE: c_ulong = 0x4c81;
const LOOP_CTL_GET_FREE: c_ulong = 0x4c82;

const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Maximum number of attempts of [`attach`] that fail because another process took the free device.
const RACES: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl Info {
    const EMPTY: Self = Self {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
}

/// `struct loop_config`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

/// Options of an attached file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Request direct I/O to the file. The kernel uses buffered I/O without an error if direct I/O
    /// is not possible; [`status`] and `/sys/block/loopN/loop/dio` report the result.
    pub direct: bool,
    /// Detach the device when its last user closes it.
    pub autoclear: bool,
    /// Reject writes.
    pub read_only: bool,
    /// Logical block size in bytes, a power of two from 512 to the page size; 0 for the kernel's
    /// default.
    pub block_size: u32,
}

/// File attached to a loop device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Device number of the filesystem that holds the file, as in `st_dev`.
    pub device: u64,
    /// Inode number of the file.
    pub inode: u64,
    /// Number of the loop device.
    pub number: u32,
    /// True if I/O to the file is direct.
    pub direct: bool,
    /// True if the kernel detaches the file after the last close of the device.
    pub autoclear: bool,
    /// True if writes are rejected.
    pub read_only: bool,
}

/// Loop device to which a file was attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Device node, `/dev/loopN`.
    pub path: PathBuf,
    /// Number of the device.
    pub number: u32,
    /// True if the device was created by [`attach`]; use [`remove`] after [`detach`].
    pub created: bool,
}

/// Attaches an open file to a loop device.
///
/// A new device is created, because queue settings outlive the file and must not affect later users
/// of an existing device. If the node of the new device does not appear (no devtmpfs), an existing
/// free device is used.
///
/// # Errors
/// Errors of the kernel: `ENOENT` for `/dev/loop-control` without loop support, `EACCES` without
/// privileges, `EBUSY` if other processes took every free device, `EINVAL` for an unsupported block
/// size.
pub fn attach(file: impl AsFd, options: Options) -> io::Result<Attached> {
    let control = control()?;
    let mut races = 0;
    loop {
        let (number, created) = free(control.as_fd())?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = OpenOptions::new().read(true).write(true).open(&path)?;
        match configure(device.as_fd(), file.as_fd(), options) {
            Ok(()) => return Ok(Attached { path, number, created }),
            // Another process attached a file to this device first: try another device.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && races < RACES => races += 1,
            Err(error) => {
                drop(device);
                if created {
                    remove(number)?;
                }
                return Err(error);
            }
        }
    }
}

fn control() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/loop-control")
}

/// Number of a free device, and true if it was created.
fn free(control: BorrowedFd<'_>) -> io::Result<(u32, bool)> {
    // SAFETY: LOOP_CTL_ADD takes an int, -1 for any number (`loop_add`); the descriptor is
    // borrowed.
    let added = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_ADD as _, -1) };
    if let Ok(number) = u32::try_from(added) {
        if Path::new(&format!("/dev/loop{number}")).exists() {
            return Ok((number, true));
        }
        remove(number)?;
    }
    // SAFETY: LOOP_CTL_GET_FREE ignores its argument; the descriptor is borrowed and thus open.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _, 0) };
    checked(number.into())?;
    Ok((number.unsigned_abs(), false))
}

/// Removes a detached loop device with its settings.
///
/// # Errors
/// `EBUSY` while a file is attached or a process has it open, `ENODEV` if it does not exist.
pub fn remove(number: u32) -> io::Result<()> {
    let number = libc::c_int::try_from(number).map_err(io::Error::other)?;
    let control = control()?;
    // SAFETY: LOOP_CTL_REMOVE takes an int; `control` is open for the call.
    let answer = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_REMOVE as _, number) };
    checked(answer.into()).map(|_| ())
}

fn configure(device: BorrowedFd<'_>, file: BorrowedFd<'_>, options: Options) -> io::Result<()> {
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let flags = flag(options.direct, LO_FLAGS_DIRECT_IO)
        | flag(options.autoclear, LO_FLAGS_AUTOCLEAR)
        | flag(options.read_only, LO_FLAGS_READ_ONLY);
    let config = Config {
        // A descriptor is never negative while borrowed.
        fd: file.as_raw_fd().unsigned_abs(),
        block_size: options.block_size,
        info: Info { flags, ..Info::EMPTY },
        reserved: [0; 8],
    };
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`; `Config` has that layout (`repr(C)`,
    // checked for size below) and lives through the call; both descriptors are borrowed and thus
    // open.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) };
    checked(answer.into()).map(|_| ())
}

/// File attached to an open loop device.
///
/// # Errors
/// `ENXIO` if none is attached, `ENOTTY` if it is not a loop device.
pub fn status(device: impl AsFd) -> io::Result<Status> {
    let mut info = Info::EMPTY;
    // SAFETY: LOOP_GET_STATUS64 writes one `struct loop_info64`; `Info` has that layout (`repr(C)`,
    // checked for size below) and is a live local; `AsFd` keeps the descriptor open.
    let answer =
        unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) };
    checked(answer.into())?;
    Ok(Status {
        device: info.device,
        inode: info.inode,
        number: info.number,
        direct: info.flags & LO_FLAGS_DIRECT_IO != 0,
        autoclear: info.flags & LO_FLAGS_AUTOCLEAR != 0,
        read_only: info.flags & LO_FLAGS_READ_ONLY != 0,
    })
}

/// Detaches an open loop device from its file. If another process has the device open, the kernel
/// detaches the file at the last close.
///
/// # Errors
/// `ENXIO` if no file is attached, `ENOTTY` if it is not a loop device.
pub fn detach(device: impl AsFd) -> io::Result<()> {
    // SAFETY: LOOP_CLR_FD ignores its argument; `AsFd` keeps the descriptor open for the call.
    let answer = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_CLR_FD as _, 0) };
    checked(answer.into()).map(|_| ())
}

/// Nodes of all loop devices to which a file (by `st_dev` and `st_ino`) is attached.
///
/// # Errors
/// If `/sys/block` cannot be listed. Devices that vanish or cannot be opened are skipped.
pub fn devices_of(device: u64, inode: u64) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in Path::new("/sys/block").read_dir()? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        if !name.starts_with("loop") || !entry.path().join("loop/backing_file").exists() {
            continue;
        }
        let path = Path::new("/dev").join(name);
        let status = File::open(&path).and_then(status);
        if status.is_ok_and(|status| (status.device, status.inode) == (device, inode)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

// Layouts of include/uapi/linux/loop.h.
const _: () = assert!(size_of::<Info>() == 232 && size_of::<Config>() == 304);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn regular_files_are_not_loop_devices() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(status(&file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(detach(&file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }

    /// Requires root and loop devices; otherwise the error is checked.
    #[test]
    fn a_file_is_attached_found_and_detached() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let attached = match attach(file.as_file(), Options { direct: true, ..Options::default() })
        {
            Ok(attached) => attached,
            Err(error) => {
                let refusals = [libc::EACCES, libc::EPERM, libc::ENOENT, libc::ENXIO];
                return assert!(refusals.contains(&error.raw_os_error().unwrap()), "{error}");
            }
        };
        let meta = file.as_file().metadata().unwrap();
        let path = attached.path;
        let device = File::open(&path).unwrap();
        let status = status(&device).unwrap();
        assert_eq!((status.device, status.inode), (meta.dev(), meta.ino()));
        assert_eq!(crate::block::size_bytes(&device).unwrap(), 1 << 20);
        assert!(!crate::block::read_only(&device).unwrap() && !status.autoclear);
        assert_eq!(devices_of(meta.dev(), meta.ino()).unwrap(), std::slice::from_ref(&path));
        crate::block_ioctl::flush_cache(&device).unwrap();
        detach(&device).unwrap();
        assert_eq!(remove(attached.number).unwrap_err().raw_os_error(), Some(libc::EBUSY));
        drop(device);
        assert!(devices_of(meta.dev(), meta.ino()).unwrap().is_empty());
        if attached.created {
            // udev may have the device open for a moment.
            let removed = (0..1000).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                remove(attached.number).is_ok()
            });
            assert!(removed && !path.exists());
        }
    }
}
