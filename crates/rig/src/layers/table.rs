//! Device-mapper tables and mdadm(8) argument vectors, as text.
//!
//! Lengths and offsets are in sectors of 512 bytes, the unit of all tables (dmsetup(8)), regardless
//! of the block size of the device.

use model::{Bytes, Layer, Nanos};

/// Bytes per sector of the device mapper.
pub(super) const SECTOR: u64 = 512;

/// The space for metadata is a multiple of this number of bytes, so that the data after the
/// metadata is aligned.
const ALIGNED: u64 = 1 << 20;

/// Minimum metadata size of a thin pool
/// (Documentation/admin-guide/device-mapper/thin-provisioning.rst).
const MIN_POOL_METADATA: u64 = 2 << 20;

/// Minimum metadata size of a cache. Above this minimum, the metadata uses 1/1000 of the cache
/// device (lvmcache(7)).
const MIN_CACHE_METADATA: u64 = 8 << 20;
const CACHE_METADATA_DIVISOR: u64 = 1000;

/// Maximum metadata size of a thin pool or a cache
/// (Documentation/admin-guide/device-mapper/thin-provisioning.rst).
const MAX_METADATA: u64 = 16 << 30;

/// Table that maps a part of a device (Documentation/admin-guide/device-mapper/linear.rst).
pub(super) fn linear(device: &str, start: u64, length: u64) -> String {
    format!("0 {length} linear {device} {start}")
}

/// Table of an encrypted device. Sectors are numbered from 0, and no space is reserved
/// (Documentation/admin-guide/device-mapper/dm-crypt.rst). Discards are not passed down, which is
/// the kernel's default, because they would reveal the used sectors.
pub(super) fn crypt(device: &str, length: u64, cipher: &str, key: &str) -> String {
    format!("0 {length} crypt {cipher} {key} 0 {device} 0")
}

/// Table of a thin pool that uses a metadata device and a data device completely. The low water
/// mark is 0 blocks, because its event is not used. All features have the defaults of the kernel:
/// blocks are zeroed on first use, and discards are passed down.
pub(super) fn pool(meta: &str, data: &str, length: u64, block: Bytes) -> String {
    format!("0 {length} thin-pool {meta} {data} {} 0", block.0 / SECTOR)
}

/// Table of the thin volume of a pool. A pool has one volume of the same size as the pool, so that
/// space is never overcommitted.
pub(super) fn thin(pool: &str, length: u64) -> String {
    format!("0 {length} thin {pool} 0")
}

/// Table of a device with a cache, with the `default` policy of the kernel
/// (Documentation/admin-guide/device-mapper/cache.rst).
pub(super) fn cache(
    [meta, fast, origin]: [&str; 3],
    length: u64,
    block: Bytes,
    mode: &str,
) -> String {
    let block = block.0 / SECTOR;
    format!("0 {length} cache {meta} {fast} {origin} {block} 1 {mode} default 0")
}

/// Name of the device-mapper target of a layer, or `md` for an array. A thin layer has several
/// targets; the name is that of the topmost one.
pub(super) fn target(layer: &Layer) -> &'static str {
    match layer {
        Layer::Md { .. } => "md",
        Layer::Crypt { .. } => "crypt",
        Layer::Thin { .. } => "thin",
        Layer::Cache { .. } => "cache",
        Layer::Delay { .. } => "delay",
        Layer::Flakey { .. } => "flakey",
        Layer::Dust { .. } => "dust",
        Layer::LogWrites => "log-writes",
    }
}

/// Table of a delayed device. Flushes have the delay of writes
/// (Documentation/admin-guide/device-mapper/delay.rst).
pub(super) fn delay(device: &str, length: u64, read: Nanos, write: Nanos) -> String {
    let [read, write] = [read, write].map(|time| time.0 / 1_000_000);
    format!("0 {length} delay {device} 0 {read} {device} 0 {write}")
}

/// Table of a device that fails periodically. The first interval starts when the table is loaded;
/// it is the interval without faults (`up`). For the fault `error`, no feature is set, and all
/// requests fail during `down` (Documentation/admin-guide/device-mapper/dm-flakey.rst).
pub(super) fn flakey(device: &str, length: u64, fault: &str, up: Nanos, down: Nanos) -> String {
    let [up, down] = [up, down].map(|time| time.0 / 1_000_000_000);
    let features = if fault == "error" { String::new() } else { format!(" 1 {fault}") };
    format!("0 {length} flakey {device} 0 {up} {down}{features}")
}

/// Table of a `flakey` device without faults: the interval `down` is 0.
pub(super) fn sound(device: &str, length: u64) -> String {
    format!("0 {length} flakey {device} 0 1 0")
}

/// Table of a device with bad blocks. Blocks are registered later, and fail only after the faults
/// are enabled (Documentation/admin-guide/device-mapper/dm-dust.rst).
pub(super) fn dust(device: &str, length: u64, block: Bytes) -> String {
    format!("0 {length} dust {device} 0 {}", block.0)
}

/// Table of a device whose writes are logged on another device
/// (Documentation/admin-guide/device-mapper/log-writes.rst).
pub(super) fn log_writes(device: &str, length: u64, log: &str) -> String {
    format!("0 {length} log-writes {device} {log}")
}

/// Number of metadata sectors of a thin pool on a device of `sectors` sectors. The size is 48 bytes
/// per block, at least 2 MiB, as recommended by the documentation of the kernel.
pub(super) fn pool_metadata(sectors: u64, block: Bytes) -> u64 {
    let blocks = sectors.saturating_mul(SECTOR) / block.0.max(1);
    aligned(blocks.saturating_mul(48).max(MIN_POOL_METADATA))
}

/// Number of metadata sectors of a cache on a device of `sectors` sectors.
pub(super) fn cache_metadata(sectors: u64) -> u64 {
    let bytes = sectors.saturating_mul(SECTOR) / CACHE_METADATA_DIVISOR;
    aligned(bytes.max(MIN_CACHE_METADATA))
}

fn aligned(bytes: u64) -> u64 {
    bytes.min(MAX_METADATA).next_multiple_of(ALIGNED) / SECTOR
}

/// Number of sectors rounded down to whole blocks.
pub(super) fn whole(sectors: u64, block: Bytes) -> u64 {
    let block = (block.0 / SECTOR).max(1);
    sectors / block * block
}

/// Command that creates a mapped device. The table is passed as standard input.
pub(super) fn map(name: &str, uuid: &str) -> Vec<String> {
    ["dmsetup", "create", name, "--uuid", uuid].map(str::to_owned).to_vec()
}

/// Node of a mapped device (dmsetup(8)).
pub(super) fn mapped(name: &str) -> String {
    format!("/dev/mapper/{name}")
}

/// Node of an array (mdadm(8)).
pub(super) fn node(name: &str) -> String {
    format!("/dev/md/{name}")
}

/// Command that creates an array.
///
/// The members are assumed to be in sync (`--assume-clean`), so that no resynchronization runs
/// during the workload. The members were discarded before, and on most devices discarded blocks
/// read as zeros. No write-intent bitmap is created; by default, mdadm adds one depending on the
/// size. `--run` suppresses confirmation prompts.
pub(super) fn array(
    level: &str,
    chunk: Option<Bytes>,
    name: &str,
    uuid: &str,
    members: &[String],
) -> Vec<String> {
    let mut argv = vec!["mdadm".to_owned(), "--create".into(), node(name), "--run".into()];
    argv.push(format!("--level={level}"));
    argv.push(format!("--raid-devices={}", members.len()));
    argv.push("--metadata=1.2".into());
    argv.push(format!("--uuid={uuid}"));
    if let Some(chunk) = chunk {
        // mdadm(8) uses KiB for a number without a unit.
        argv.push(format!("--chunk={}", chunk.0 / 1024));
    }
    if !["raid0", "linear"].contains(&level) {
        argv.extend(["--assume-clean", "--bitmap=none"].map(str::to_owned));
    }
    argv.extend_from_slice(members);
    argv
}
