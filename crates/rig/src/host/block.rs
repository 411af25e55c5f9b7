//! Emptying a block device. What was opened is compared with what was claimed before the first
//! write, since a path may lead to another device at any time.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use model::Bytes;
use rustix::fs::OFlags;

use super::Erased;
use crate::guard::{Medium, Roots};

/// Bytes of each end of a device that are overwritten when it cannot discard: all superblocks that
/// mkfs programs and blkid look for at fixed places lie within (btrfs has further copies, which its
/// mkfs and a mount by device ignore).
const WIPED: u64 = 2 << 20;

pub(super) fn erase(device: &Path, expected: &Medium) -> io::Result<Erased> {
    let file = exclusive(device, expected)?;
    let size = sys::block::size_bytes(&file)?;
    if sys::orders::discard(&file, 0, size).is_ok() {
        return Ok(Erased::Discarded);
    }
    let length = WIPED.min(size);
    let zeros = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.write_all_at(&zeros, 0)?;
    file.write_all_at(&zeros, size - length)?;
    file.sync_all()?;
    Ok(Erased::Wiped)
}

pub(super) fn zero(device: &Path, expected: &Medium, length: Bytes) -> io::Result<()> {
    let file = exclusive(device, expected)?;
    file.write_all_at(&vec![0; usize::try_from(length.0).map_err(io::Error::other)?], 0)?;
    file.sync_all()
}

/// Opens a block device for writing, which fails with `EBUSY` while it is mounted or otherwise
/// claimed, and with an error that names both if it is not the expected one.
fn exclusive(device: &Path, expected: &Medium) -> io::Result<File> {
    let flags = (OFlags::EXCL | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(device)?;
    let found = match Medium::of(&file, &Roots::default())? {
        Some(found) if found == *expected => return Ok(file),
        Some(found) => found.to_string(),
        None => "not a block device".into(),
    };
    Err(io::Error::other(format!("another device has its name now: {found}, not {expected}")))
}
