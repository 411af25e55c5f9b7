//! Tables of the device mapper and argument vectors of mdadm(8), as text.
//!
//! Lengths enter in sectors of 512 bytes, the unit of every table (dmsetup(8)), whatever the
//! device's own block size.

use model::{Bytes, Layer, Nanos};

/// Bytes of a sector of the device mapper.
pub(super) const SECTOR: u64 = 512;

/// What is set aside for metadata is a multiple of this, so that what follows is aligned.
const ALIGNED: u64 = 1 << 20;

/// The least space of a pool's metadata
/// (Documentation/admin-guide/device-mapper/thin-provisioning.rst).
const LEAST_OF_POOL: u64 = 2 << 20;

/// The least space of a cache's metadata, and the part of the cache that it is made for
/// (lvmcache(7)).
const LEAST_OF_CACHE: u64 = 8 << 20;
const PART_OF_CACHE: u64 = 1000;

/// The most space that the metadata of either can use
/// (Documentation/admin-guide/device-mapper/thin-provisioning.rst).
const MOST: u64 = 16 << 30;

/// The whole of a device by the target `linear` would be superfluous; this is a part of one
/// (Documentation/admin-guide/device-mapper/linear.rst).
pub(super) fn linear(device: &str, start: u64, length: u64) -> String {
    format!("0 {length} linear {device} {start}")
}

/// A device encrypted from end to end: sectors are numbered from 0, and nothing is set aside
/// (Documentation/admin-guide/device-mapper/dm-crypt.rst). Discards are not let through, which is
/// the kernel's default: they would show which sectors are in use.
pub(super) fn crypt(device: &str, length: u64, cipher: &str, key: &str) -> String {
    format!("0 {length} crypt {cipher} {key} 0 {device} 0")
}

/// A pool over all of a device. A low water mark of 0 blocks: nobody waits for the event. All
/// features have the kernel's defaults, so blocks are zeroed when they are first used, and discards
/// are passed down.
pub(super) fn pool(meta: &str, data: &str, length: u64, block: Bytes) -> String {
    format!("0 {length} thin-pool {meta} {data} {} 0", block.0 / SECTOR)
}

/// The only volume of a pool, of the pool's own size: never more is promised than there is.
pub(super) fn thin(pool: &str, length: u64) -> String {
    format!("0 {length} thin {pool} 0")
}

/// A device behind a cache, with the policy that the kernel calls `default`
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

/// The device mapper's name for what a layer is made with, the topmost where there are several.
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

/// A device whose answers are held back; flushes wait as long as writes do
/// (Documentation/admin-guide/device-mapper/delay.rst).
pub(super) fn delay(device: &str, length: u64, read: Nanos, write: Nanos) -> String {
    let [read, write] = [read, write].map(|time| time.0 / 1_000_000);
    format!("0 {length} delay {device} 0 {read} {device} 0 {write}")
}

/// A device that fails at times, and begins with being up when this is loaded. Without a feature
/// all requests fail (Documentation/admin-guide/device-mapper/dm-flakey.rst).
pub(super) fn flakey(device: &str, length: u64, fault: &str, up: Nanos, down: Nanos) -> String {
    let [up, down] = [up, down].map(|time| time.0 / 1_000_000_000);
    let features = if fault == "error" { String::new() } else { format!(" 1 {fault}") };
    format!("0 {length} flakey {device} 0 {up} {down}{features}")
}

/// The same device as long as it is sound: never down.
pub(super) fn sound(device: &str, length: u64) -> String {
    format!("0 {length} flakey {device} 0 1 0")
}

/// A device that may have bad blocks; none yet, and none that fails before that is enabled
/// (Documentation/admin-guide/device-mapper/dm-dust.rst).
pub(super) fn dust(device: &str, length: u64, block: Bytes) -> String {
    format!("0 {length} dust {device} 0 {}", block.0)
}

/// A device with a log of its writes on another
/// (Documentation/admin-guide/device-mapper/log-writes.rst).
pub(super) fn log_writes(device: &str, length: u64, log: &str) -> String {
    format!("0 {length} log-writes {device} {log}")
}

/// Sectors to set aside for the metadata of a pool over a device of so many sectors: 48 bytes for
/// each block, and 2 MB at least, as the kernel's document advises.
pub(super) fn pool_metadata(sectors: u64, block: Bytes) -> u64 {
    let blocks = sectors.saturating_mul(SECTOR) / block.0.max(1);
    aligned(blocks.saturating_mul(48).max(LEAST_OF_POOL))
}

/// Sectors to set aside for the metadata of a cache on a device of so many sectors.
pub(super) fn cache_metadata(sectors: u64) -> u64 {
    let bytes = sectors.saturating_mul(SECTOR) / PART_OF_CACHE;
    aligned(bytes.max(LEAST_OF_CACHE))
}

fn aligned(bytes: u64) -> u64 {
    bytes.min(MOST).next_multiple_of(ALIGNED) / SECTOR
}

/// So many sectors, as far as they make whole blocks.
pub(super) fn whole(sectors: u64, block: Bytes) -> u64 {
    let block = (block.0 / SECTOR).max(1);
    sectors / block * block
}

/// The command that maps a device; its table is told on standard input.
pub(super) fn map(name: &str, uuid: &str) -> Vec<String> {
    ["dmsetup", "create", name, "--uuid", uuid].map(str::to_owned).to_vec()
}

/// The node of a mapped device (dmsetup(8)).
pub(super) fn mapped(name: &str) -> String {
    format!("/dev/mapper/{name}")
}

/// The node of an array of that name (mdadm(8)).
pub(super) fn node(name: &str) -> String {
    format!("/dev/md/{name}")
}

/// The command that makes an array.
///
/// Its members were emptied a moment ago and hold equal data, zeros, wherever they could be
/// discarded; so they are taken to be in step (`--assume-clean`), and no resynchronization runs
/// beside the workload. There is no write-intent bitmap, which mdadm would add by the array's size.
/// `--run` asks no questions.
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
        // In KiB without a unit (mdadm(8)).
        argv.push(format!("--chunk={}", chunk.0 / 1024));
    }
    if !["raid0", "linear"].contains(&level) {
        argv.extend(["--assume-clean", "--bitmap=none"].map(str::to_owned));
    }
    argv.extend_from_slice(members);
    argv
}
