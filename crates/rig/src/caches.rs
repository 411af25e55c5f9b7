//! Drops caches and checks that they are empty; waits until the system is idle.
//!
//! drop_caches frees neither dirty pages nor the data pinned by a mounted filesystem, so a cold
//! cache requires an unmount. After that, data can be only in the page cache of the device and in
//! that of the image file; both are checked.

mod idle;

use std::path::{Path, PathBuf};

use model::{Bytes, Warning};

pub(crate) use self::idle::wait_idle;

use crate::{device, error::RigError, journaled_host::JournaledHost};

/// Documentation/admin-guide/sysctl/vm.rst: 3 frees the page cache, dentries, and inodes.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Cached bytes tolerated on an unmounted device: udev reads superblocks, but no workload data.
const PROBED: Bytes = Bytes::mib(1);

/// Syncs a filesystem.
pub(crate) fn sync(journaled: &mut JournaledHost, path: &Path) -> Result<(), RigError> {
    let (done, _) = journaled.execute(format!("syncfs {}", path.display()), |host| host.sync(path));
    done.map_err(|source| RigError::Caches { path: path.to_owned(), source })
}

/// Drops every cache above and below unmounted devices; `Some` describes the data still cached.
pub(crate) fn drop_devices(
    journaled: &mut JournaledHost,
    devices: &[PathBuf],
    images: &[PathBuf],
) -> Result<Option<Warning>, RigError> {
    device::flush(journaled, devices)?;
    let path = Path::new(DROP_CACHES);
    let (done, _) =
        journaled.execute(format!("write 3 to {DROP_CACHES}"), |host| host.write(path, "3"));
    done.map_err(|source| RigError::Caches { path: path.to_owned(), source })?;
    let mut kept = Vec::new();
    for path in devices.iter().chain(images) {
        let what = format!("count the cached pages of {}", path.display());
        match journaled.execute(what, |host| host.resident(path)).0 {
            Ok(bytes) if bytes <= PROBED => {}
            Ok(bytes) => kept.push(format!("{bytes} of {} are still cached", path.display())),
            Err(error) => kept.push(format!("{} cannot be checked: {error}", path.display())),
        }
    }
    Ok((!kept.is_empty())
        .then(|| Warning::CacheNotDropped { reason: kept.join("; "), needs_root: false }))
}

/// Drops the caches of a directory tree that cannot be unmounted; `Some` describes the data still
/// cached.
pub(crate) fn evict(
    journaled: &mut JournaledHost,
    directory: &Path,
) -> Result<Option<Warning>, RigError> {
    let what = format!("write back and evict all files in {}", directory.display());
    let mut root = true;
    let (kept, _) = journaled.execute(what, |host| {
        root = host.is_root();
        host.evict(directory)
    });
    let kept = kept.map_err(|source| RigError::Caches { path: directory.to_owned(), source })?;
    let mut reasons = Vec::new();
    if kept.bytes > Bytes(0) {
        reasons.push(format!("{} of its files are still cached", kept.bytes));
    }
    if kept.unknown > 0 {
        reasons.push(format!("{} of {} files could not be checked", kept.unknown, kept.files));
    }
    if !root {
        reasons.push("not root, so dentries and inodes stay cached".to_owned());
    }
    let reason = reasons.join("; ");
    Ok((!reasons.is_empty()).then_some(Warning::CacheNotDropped { reason, needs_root: !root }))
}

#[cfg(test)]
mod tests;
