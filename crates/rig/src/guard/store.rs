//! The run's own file must not lie on what the run overwrites or measures.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::{
    Refusal, Roots,
    block::Number,
    mounts::{self, Mount},
};

/// Makes sure that the run's file does not lie on the filesystem mounted at `target_mount`, through
/// whatever mount or subvolume it is reached.
///
/// The file need not exist yet; then the folder that it will be made in counts. Filesystems are
/// compared by the number that mountinfo shows, because btrfs gives each subvolume a number of its
/// own in `stat(2)`.
///
/// # Errors
/// [`Refusal::StoreOnTarget`]; [`Refusal::Open`] when one of the two cannot be looked at.
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

/// The number of the filesystem that `path` is on. Needs `STATX_MNT_ID` (Linux 5.8); without it, or
/// when the mount is not to be seen, the number that `stat(2)` gives.
fn filesystem(path: &Path, mounts: &[Mount]) -> io::Result<Number> {
    let facts = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?;
    let known = facts.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    let mount = mounts.iter().find(|mount| known && mount.id == facts.stx_mnt_id);
    match mount {
        Some(mount) => Ok(mount.number),
        None => Ok(Number::of(fs::metadata(path)?.dev())),
    }
}

/// The path itself, or the nearest folder above it that exists.
pub(super) fn nearest_existing(path: &Path) -> PathBuf {
    let exists = path.ancestors().find(|ancestor| ancestor.exists());
    exists.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")).into()
}

/// Whether `store_file` is the node of this device.
pub(super) fn is_device(store_file: &Path, device: Number) -> bool {
    Number::at(store_file) == Some(device)
}

/// Whether both paths name the same file, or would once it is made.
pub(super) fn is_same_file(store_file: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    let id = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    place(store_file).is_some_and(|here| Some(here) == place(other))
        || id(store_file).is_some_and(|here| Some(here) == id(other))
}
