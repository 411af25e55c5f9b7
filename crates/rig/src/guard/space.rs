//! Space checks for image files.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use model::{Allocation, Bytes};
use rustix::fs::{StatFs, statfs};

use super::{Refusal, Roots, store::nearest_existing};

/// Filesystems in memory: tmpfs (with devtmpfs) and ramfs, by `f_type` (statfs(2)).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Reciprocal of the reserve, as a fraction of the image size. The reserve is for the metadata of
/// the filesystem that contains the image, and for other users.
const RESERVE_DIVISOR: u64 = 32;

/// Reciprocal of the fraction of a sparse image that mkfs and mount are estimated to write. The
/// estimate is at least [`SPARSE_MIN`], and at most [`SPARSE_MAX`] and the size of the image. Inode
/// tables of ext2 use 1/64 of the size. Journals have fixed minimum sizes; the largest is that of
/// xfs (64 MiB, mkfs.xfs(8)).
const SPARSE_DIVISOR: u64 = 16;
/// Maximum estimate. In larger images, only filesystems with `mkfs_writes` in the catalog write
/// more; their cells are checked one by one.
const SPARSE_MAX: Bytes = Bytes::gib(8);
/// Minimum estimate of the data that mkfs and mount write to a sparse image.
const SPARSE_MIN: Bytes = Bytes::mib(128);

/// Checks that `directory`, or its nearest existing parent, has space for images with a total size
/// of `total`.
///
/// Preallocated images need their size and a reserve of 1/32 of the size. Sparse images need the
/// reserve and space for the data that mkfs and mount write, estimated as 1/16 of the size and at
/// most 8 GiB. The
/// data of the workloads is not included; it is part of the estimate for the plan. `had` is the
/// space that an existing image uses already, which is not needed again. If the directory is in
/// memory, the memory available without swapping (`MemAvailable`, proc(5)) must also be sufficient.
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

/// Space that images with a total size of `total` need, with the reserve; see
/// [`space_for_images`].
pub fn needed_space(total: Bytes, had: Bytes, allocation: Allocation) -> Bytes {
    let written = written(total, allocation);
    let reserve = match allocation {
        Allocation::Preallocated => total,
        Allocation::Sparse => total.min(Bytes(written.0.saturating_mul(SPARSE_DIVISOR))),
    };
    written - had.min(written) + Bytes(reserve.0 / RESERVE_DIVISOR)
}

/// Checks that `directory`, or its nearest existing parent, has `needed` space, for images of
/// several levels.
///
/// # Errors
/// As [`space_for_images`].
pub fn space_in(directory: &Path, needed: Bytes) -> Result<(), Refusal> {
    free_within(directory, needed, &Roots::default())
}

/// Checks the space as [`space_for_images`] does, with the available memory read below `roots`.
pub(super) fn space_within(
    directory: &Path,
    total: Bytes,
    had: Bytes,
    allocation: Allocation,
    roots: &Roots,
) -> Result<(), Refusal> {
    free_within(directory, needed_space(total, had, allocation), roots)
}

fn free_within(directory: &Path, needed: Bytes, roots: &Roots) -> Result<(), Refusal> {
    let place = nearest_existing(directory);
    let facts = statfs(&place)
        .map_err(|error| Refusal::Open { path: directory.into(), source: error.into() })?;
    let unit = u64::try_from(facts.f_frsize).unwrap_or(0);
    let unit = if unit == 0 { u64::try_from(facts.f_bsize).unwrap_or(0) } else { unit };
    let free = Bytes(facts.f_bavail.saturating_mul(unit));
    // A mount without a size limit (ramfs, tmpfs with size=0) reports a size of 0.
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

/// Estimate of the data written before any workload to images with a total size of `total`.
fn written(total: Bytes, allocation: Allocation) -> Bytes {
    match allocation {
        Allocation::Preallocated => total,
        Allocation::Sparse => {
            Bytes(total.0 / SPARSE_DIVISOR).clamp(SPARSE_MIN, SPARSE_MAX).min(total)
        }
    }
}

/// Checks that images in memory with a total size of `total` need less memory than the `limit` of
/// the run; images on a disk always pass. Pages of a file in memory are charged to the control
/// group that first touches them ("Shared Page Accounting",
/// Documentation/admin-guide/cgroup-v1/memory.rst). This is the group of the run, because the space
/// of an image is allocated again for each new filesystem. Such pages cannot be written back, so at
/// the limit the kernel would kill the run.
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
    // `f_type` is signed on some architectures, and magic numbers have 32 bits.
    let kind = u64::try_from(i128::from(facts.f_type) & 0xffff_ffff).unwrap_or(0);
    IN_MEMORY.contains(&kind)
}

/// Memory available without swapping (`MemAvailable` of /proc/meminfo).
fn available_memory(directory: &Path, roots: &Roots) -> Result<Bytes, Refusal> {
    let path = roots.proc.join("meminfo");
    let text = fs::read_to_string(&path)
        .map_err(Refusal::unreadable(&directory.display().to_string(), &path))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    // The unit is always `kB` and always means KiB.
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    // Kernels before 3.14 have no such line; the check of the memory then always passes.
    Ok(Bytes(kib.map_or(u64::MAX, |kib: u64| kib.saturating_mul(1024))))
}
