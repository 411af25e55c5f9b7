//! Space checks for image files.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use model::{Allocation, Bytes};
use rustix::fs::{StatFs, statfs};

use super::{Refusal, Roots, store::nearest_existing};

/// Filesystems in memory: tmpfs (with devtmpfs) and ramfs, by `f_type` (statfs(2)).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Reserve for the metadata of the filesystem and for other users: this fraction of the image size.
const RESERVE_DIVISOR: u64 = 32;

/// Estimate of the data that mkfs and mount write to a sparse image: this fraction of its size, at
/// least [`SPARSE_MIN`], at most all of it. Inode tables of ext2 use 1/64, and journals have fixed
/// minimum sizes, of which that of xfs is the largest (64 MiB, mkfs.xfs(8)).
const SPARSE_DIVISOR: u64 = 16;
/// See [`SPARSE_DIVISOR`].
const SPARSE_MIN: Bytes = Bytes::mib(128);

/// Checks that `directory` (or its nearest existing parent) has space for images of `total` bytes
/// together.
///
/// Preallocated images need their size and a reserve of 1/32. Sparse images need the reserve and
/// the data written by mkfs, estimated as a sixteenth of their size; the data of the workloads is
/// checked by the estimate for the plan. The previous space `had` of an image counts as available.
/// In memory, both the memory available without swapping (`MemAvailable`, proc(5)) and the limit of
/// the mount apply.
///
/// # Errors
/// [`Refusal::Space`], [`Refusal::Memory`]; [`Refusal::Open`] or [`Refusal::Unreadable`] if the
/// values are not available.
pub fn space_for_images(
    directory: &Path,
    total: Bytes,
    had: Bytes,
    allocation: Allocation,
) -> Result<(), Refusal> {
    space_within(directory, total, had, allocation, &Roots::default())
}

/// Allocated space of a file; 0 if it does not exist.
pub fn allocated(file: &Path) -> Bytes {
    // stat(2): always units of 512 bytes.
    Bytes(fs::metadata(file).map_or(0, |file| file.blocks().saturating_mul(512)))
}

/// As [`space_for_images`], with the memory of the given machine.
pub(super) fn space_within(
    directory: &Path,
    total: Bytes,
    had: Bytes,
    allocation: Allocation,
    roots: &Roots,
) -> Result<(), Refusal> {
    let place = nearest_existing(directory);
    let facts = statfs(&place)
        .map_err(|error| Refusal::Open { path: directory.into(), source: error.into() })?;
    let written = written(total, allocation);
    let needed = written - had.min(written) + Bytes(total.0 / RESERVE_DIVISOR);
    let unit = u64::try_from(facts.f_frsize).unwrap_or(0);
    let unit = if unit == 0 { u64::try_from(facts.f_bsize).unwrap_or(0) } else { unit };
    let free = Bytes(facts.f_bavail.saturating_mul(unit));
    // A mount without size limit (ramfs, tmpfs with size=0) reports no size.
    if facts.f_blocks > 0 && free < needed {
        return Err(Refusal::Space { directory: directory.into(), free, needed });
    }
    if in_memory(&facts) {
        let available = available_memory(directory, roots)?;
        if available < needed {
            return Err(Refusal::Memory { directory: directory.into(), available, needed });
        }
    }
    Ok(())
}

/// Estimate of the data written to images of `total` bytes together before any workload.
fn written(total: Bytes, allocation: Allocation) -> Bytes {
    match allocation {
        Allocation::Preallocated => total,
        Allocation::Sparse => Bytes(total.0 / SPARSE_DIVISOR).max(SPARSE_MIN).min(total),
    }
}

/// Checks that images of `total` bytes together do not exceed the memory `limit` of the run if they
/// are in memory. Pages of a file in memory are charged to the group that first touches them
/// ("Shared Page Accounting", Documentation/admin-guide/cgroup-v1/memory.rst), which is the run,
/// because each new filesystem gets a newly allocated image. They cannot be written back, so the
/// kernel would kill the run.
///
/// # Errors
/// [`Refusal::MemoryLimit`]; [`Refusal::Open`] if the values are not available.
pub fn images_within_limit(
    directory: &Path,
    total: Bytes,
    allocation: Allocation,
    limit: Bytes,
) -> Result<(), Refusal> {
    let facts = statfs(nearest_existing(directory))
        .map_err(|error| Refusal::Open { path: directory.into(), source: error.into() })?;
    let needed = written(total, allocation);
    match in_memory(&facts) && limit <= needed {
        true => Err(Refusal::MemoryLimit { directory: directory.into(), needed, limit }),
        false => Ok(()),
    }
}

/// True if a filesystem keeps its files in memory.
fn in_memory(facts: &StatFs) -> bool {
    // The sign of `f_type` differs between machines; the magic numbers are 32 bits wide.
    let kind = u64::try_from(i128::from(facts.f_type) & 0xffff_ffff).unwrap_or(0);
    IN_MEMORY.contains(&kind)
}

/// Memory available without swapping.
fn available_memory(directory: &Path, roots: &Roots) -> Result<Bytes, Refusal> {
    let path = roots.proc.join("meminfo");
    let text = fs::read_to_string(&path)
        .map_err(Refusal::unreadable(&directory.display().to_string(), &path))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    // The unit is always `kB` and always means KiB.
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    // Kernels before 3.14 have no such line; the memory then counts as sufficient.
    Ok(Bytes(kib.map_or(u64::MAX, |kib: u64| kib.saturating_mul(1024))))
}
