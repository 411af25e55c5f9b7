//! Whether image files of a given size fit where they are to be made.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use model::{Allocation, Bytes};
use rustix::fs::{StatFs, statfs};

use super::{Refusal, Roots, store::nearest_existing};

/// Filesystems that keep their files in memory: tmpfs (with devtmpfs) and ramfs, by `f_type`
/// (statfs(2)).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// What is left free beside the images, for the filesystem's own bookkeeping and for everybody
/// else: one part in this many of the images' size.
const RESERVE_SHARE: u64 = 32;

/// What mkfs and mount alone are taken to write into a sparse image: one part in this many of its
/// size, and at least [`SPARSE_MIN`], but not more than all of it. Inode tables of ext2 take 1/64,
/// and journals have fixed lower bounds, of which that of xfs is the largest (64 MiB, mkfs.xfs(8)).
const SPARSE_SHARE: u64 = 16;
/// See [`SPARSE_SHARE`].
const SPARSE_MIN: Bytes = Bytes::mib(128);

/// Makes sure that `directory` (or, if it does not exist yet, the nearest folder above it) has room
/// for images of `total` bytes together.
///
/// Fully allocated images need their size and a reserve of 1/32. Sparse ones need the reserve and
/// what mkfs writes, for which a sixteenth of their size is taken; what the workloads write on top
/// of that is for the forecast of the plan to check. Space that an image `had` before counts as
/// written. In memory, what counts is the memory that can
/// be had without swapping (`MemAvailable`, proc(5)) as well as the limit of the mount.
///
/// # Errors
/// [`Refusal::Space`], [`Refusal::Memory`]; [`Refusal::Open`] or [`Refusal::Unreadable`] when the
/// system does not tell.
pub fn space_for_images(
    directory: &Path,
    total: Bytes,
    had: Bytes,
    allocation: Allocation,
) -> Result<(), Refusal> {
    space_within(directory, total, had, allocation, &Roots::default())
}

/// The space that a file has taken; none if there is no such file.
pub fn allocated(file: &Path) -> Bytes {
    // stat(2): always units of 512 bytes.
    Bytes(fs::metadata(file).map_or(0, |file| file.blocks().saturating_mul(512)))
}

/// As [`space_for_images`], asking the given machine for its memory.
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
    let needed = written - had.min(written) + Bytes(total.0 / RESERVE_SHARE);
    let unit = u64::try_from(facts.f_frsize).unwrap_or(0);
    let unit = if unit == 0 { u64::try_from(facts.f_bsize).unwrap_or(0) } else { unit };
    let free = Bytes(facts.f_bavail.saturating_mul(unit));
    // A mount without a limit of its own (ramfs, tmpfs with size=0) tells no size at all.
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

/// What is taken to be written into images of `total` bytes together before any workload is.
fn written(total: Bytes, allocation: Allocation) -> Bytes {
    match allocation {
        Allocation::Full => total,
        Allocation::Sparse => Bytes(total.0 / SPARSE_SHARE).max(SPARSE_MIN).min(total),
    }
}

/// Makes sure that images of `total` bytes together do not lie in memory that a run with a `limit`
/// may not use. Pages of a file in memory count for the group that touches them first ("Shared Page
/// Accounting", Documentation/admin-guide/cgroup-v1/memory.rst): that is the run, which gives each
/// new filesystem an image allocated anew. They cannot be written back, so the kernel kills it.
///
/// # Errors
/// [`Refusal::MemoryLimit`]; [`Refusal::Open`] when the system does not tell.
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

/// Whether a filesystem keeps its files in memory.
fn in_memory(facts: &StatFs) -> bool {
    // The sign of `f_type` differs between machines; the magic numbers are 32 bits wide.
    let kind = u64::try_from(i128::from(facts.f_type) & 0xffff_ffff).unwrap_or(0);
    IN_MEMORY.contains(&kind)
}

/// Memory that can be had without swapping.
fn available_memory(directory: &Path, roots: &Roots) -> Result<Bytes, Refusal> {
    let path = roots.proc.join("meminfo");
    let text = fs::read_to_string(&path)
        .map_err(Refusal::unreadable(&directory.display().to_string(), &path))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    // The unit is always written as kB and always means KiB.
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    // Kernels before 3.14 have no such line; then the memory is taken to be there.
    Ok(Bytes(kib.map_or(u64::MAX, |kib: u64| kib.saturating_mul(1024))))
}
