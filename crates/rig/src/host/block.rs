//! Removal of the contents of a block device. Before the first write, the opened device is compared
//! with the claimed device, because the path may lead to another device by then.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use model::Bytes;
use rustix::fs::OFlags;

use super::WipeMethod;
use crate::medium::{Medium, Roots};

/// Bytes overwritten at each end of a device that cannot be discarded. The two ranges contain the
/// superblocks that mkfs programs and blkid read at fixed offsets. btrfs has further copies of its
/// superblock, but mkfs.btrfs and a mount by device ignore them.
const WIPE_SIZE: u64 = 2 << 20;

pub(super) fn erase(device: &Path, expected: &Medium) -> io::Result<WipeMethod> {
    let file = exclusive(device, expected)?;
    let size = sys::block::size_bytes(&file)?;
    if sys::block_ioctl::discard(&file, 0, size).is_ok() {
        return Ok(WipeMethod::Discarded);
    }
    let length = WIPE_SIZE.min(size);
    let zeros = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.write_all_at(&zeros, 0)?;
    file.write_all_at(&zeros, size - length)?;
    file.sync_all()?;
    Ok(WipeMethod::Wiped)
}

pub(super) fn zero(device: &Path, expected: &Medium, length: Bytes) -> io::Result<()> {
    let file = exclusive(device, expected)?;
    file.write_all_at(&vec![0; usize::try_from(length.0).map_err(io::Error::other)?], 0)?;
    file.sync_all()
}

/// Opens a block device exclusively, for reading and writing. Fails with `EBUSY` while the device
/// is mounted or otherwise claimed. If the path leads to another device than the expected one, the
/// error describes both devices.
fn exclusive(device: &Path, expected: &Medium) -> io::Result<File> {
    let flags = (OFlags::EXCL | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(device)?;
    let found = match Medium::of(&file, &Roots::default())? {
        Some(found) if found == *expected => return Ok(file),
        Some(found) => found.to_string(),
        None => "not a block device".into(),
    };
    Err(io::Error::other(format!("the path leads to another device now: {found}, not {expected}")))
}
