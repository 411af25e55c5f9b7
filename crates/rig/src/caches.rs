//! Emptying caches, and looking that they are empty; waiting until everything is at rest.
//!
//! Dropping the kernel's caches frees neither dirty pages nor what a mounted filesystem holds on
//! to, so cold means unmounted in between. What could still hold data then is the page cache of the
//! device itself and that of an image's file; both are looked at.

mod rest;

use std::path::{Path, PathBuf};

use model::{Bytes, Warning};

pub(crate) use self::rest::settle;

use crate::{bench::Bench, device, error::RigError};

/// Documentation/admin-guide/sysctl/vm.rst: 3 frees the page cache, dentries and inodes.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// What may be in memory of an unmounted device: a probe of its superblocks by udev, no workload's
/// data.
const PROBED: Bytes = Bytes::mib(1);

/// Writes back a filesystem.
pub(crate) fn sync(bench: &mut Bench, path: &Path) -> Result<(), RigError> {
    let (done, _) = bench.act(format!("syncfs {}", path.display()), |host| host.sync(path));
    done.map_err(|source| RigError::Caches { path: path.to_owned(), source })
}

/// Empties every cache above and below unmounted devices; `Some` says what stayed.
pub(crate) fn drop_devices(
    bench: &mut Bench,
    devices: &[PathBuf],
    images: &[PathBuf],
) -> Result<Option<Warning>, RigError> {
    device::flush(bench, devices)?;
    let path = Path::new(DROP_CACHES);
    let (done, _) = bench.act(format!("write 3 to {DROP_CACHES}"), |host| host.write(path, "3"));
    done.map_err(|source| RigError::Caches { path: path.to_owned(), source })?;
    let mut kept = Vec::new();
    for path in devices.iter().chain(images) {
        let what = format!("look what memory holds of {}", path.display());
        match bench.act(what, |host| host.resident(path)).0 {
            Ok(bytes) if bytes <= PROBED => {}
            Ok(bytes) => kept.push(format!("{bytes} of {} are in memory", path.display())),
            Err(error) => kept.push(format!("{} cannot be looked at: {error}", path.display())),
        }
    }
    Ok((!kept.is_empty()).then(|| Warning::CacheKept { reason: kept.join("; ") }))
}

/// Empties the caches of a directory tree that cannot be unmounted; `Some` says what stayed.
pub(crate) fn evict(bench: &mut Bench, directory: &Path) -> Result<Option<Warning>, RigError> {
    let what = format!("write back and drop all files below {}", directory.display());
    let mut root = true;
    let (kept, _) = bench.act(what, |host| {
        root = host.is_root();
        host.evict(directory)
    });
    let kept = kept.map_err(|source| RigError::Caches { path: directory.to_owned(), source })?;
    let mut reasons = Vec::new();
    if kept.bytes > Bytes(0) {
        reasons.push(format!("{} of its files are in memory", kept.bytes));
    }
    if kept.unknown > 0 {
        reasons.push(format!("{} of {} files could not be looked at", kept.unknown, kept.files));
    }
    if !root {
        reasons.push("not root, so names and inodes stay in memory".to_owned());
    }
    Ok((!reasons.is_empty()).then(|| Warning::CacheKept { reason: reasons.join("; ") }))
}

#[cfg(test)]
mod tests;
