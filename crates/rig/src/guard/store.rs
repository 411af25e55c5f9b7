//! Checks of the location of the run file, which must not be on a device that the run overwrites,
//! nor on the filesystem under test.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::{
    Number, Refusal, Roots,
    mounts::{self, Mount},
};

/// Checks that the run file is not on the filesystem mounted at `target_mount`. Other mounts and
/// subvolumes of this filesystem are also rejected.
///
/// If the file does not exist yet, its nearest existing parent is checked. Filesystems are compared
/// by the device number in mountinfo, because `stat(2)` returns another number for each btrfs
/// subvolume.
///
/// # Errors
/// [`Refusal::StoreOnTarget`]; [`Refusal::Open`] or [`Refusal::Unreadable`] if a path or the mount
/// table cannot be read.
pub fn store_outside(store_file: &Path, target_mount: &Path) -> Result<(), Refusal> {
    let roots = Roots::default();
    let table = roots.proc.join("self/mountinfo");
    let mounts = mounts::own(&roots)
        .map_err(Refusal::unreadable(&target_mount.display().to_string(), table))?;
    let filesystem = |path: &Path| {
        filesystem(path, &mounts).map_err(|source| Refusal::Open { path: path.into(), source })
    };
    if filesystem(&nearest_existing(store_file))? == filesystem(target_mount)? {
        return Err(Refusal::StoreOnTarget {
            store_file: store_file.into(),
            target: target_mount.into(),
        });
    }
    Ok(())
}

/// Device number of the filesystem that contains `path`, from mountinfo. If the kernel has no
/// `STATX_MNT_ID` (before Linux 5.8), or if the mount is not in the table, the number is from
/// `stat(2)`.
fn filesystem(path: &Path, mounts: &[Mount]) -> io::Result<Number> {
    let facts = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?;
    let known = facts.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    let mount = mounts.iter().find(|mount| known && mount.id == facts.stx_mnt_id);
    match mount {
        Some(mount) => Ok(mount.number),
        None => Ok(Number::of(fs::metadata(path)?.dev())),
    }
}

/// The path itself if it exists, otherwise its nearest existing parent.
pub(super) fn nearest_existing(path: &Path) -> PathBuf {
    let exists = path.ancestors().find(|ancestor| ancestor.exists());
    exists.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")).into()
}

/// True if `store_file` is a device node of this device.
pub(super) fn is_device(store_file: &Path, device: Number) -> bool {
    Number::at(store_file) == Some(device)
}

/// True if both paths lead to the same file, or would lead to the same file if it existed.
pub(super) fn is_same_file(store_file: &Path, other: &Path) -> bool {
    let resolved = |path: &Path| {
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(directory.join(path.file_name()?))
    };
    let id = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    resolved(store_file).is_some_and(|here| Some(here) == resolved(other))
        || id(store_file).is_some_and(|here| Some(here) == id(other))
}
