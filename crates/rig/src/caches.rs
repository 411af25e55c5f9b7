//! Drops caches, checks that they are empty, and waits until the system is idle.
//!
//! `drop_caches` frees neither dirty pages nor data that a mounted filesystem keeps in memory, so a
//! cold cache requires an unmount. After the unmount, data can only be in the page cache of the
//! device and in the page cache of the image file. Both page caches are checked.

mod idle;

use std::path::{Path, PathBuf};

use model::{Bytes, Warning};

pub(crate) use self::idle::wait_idle;

use crate::{device, error::RigError, journaled_host::JournaledHost};

/// File to which 3 is written to free the page cache, dentries, and inodes
/// (Documentation/admin-guide/sysctl/vm.rst).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Cached bytes that are tolerated for an unmounted device, because udev reads its superblocks.
/// These bytes are not data of the workload.
const PROBED: Bytes = Bytes::mib(1);

pub(crate) fn sync(journaled: &mut JournaledHost, path: &Path) -> Result<(), RigError> {
    let (done, _) = journaled.execute(format!("syncfs {}", path.display()), |host| host.sync(path));
    done.map_err(|source| RigError::Caches { path: path.to_owned(), source })
}

/// Drops the page caches of unmounted devices and the kernel caches, and then counts the cached
/// pages of devices and images. Returns a warning if data is still cached.
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

/// Drops the caches of a directory tree that cannot be unmounted. Returns a warning if data is
/// still cached, or if it was not possible to check this.
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
