//! Values from sysfs that several modules read: names, queues, and I/O statistics of block devices.

use std::path::{Path, PathBuf};

use model::{Bytes, Nanos};

use crate::{
    host::Host,
    mount::{MountEntry, holder},
};

/// Bytes per sector in the statistics of the block layer, regardless of the block size of the
/// device (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// Total I/O of devices since their creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Bytes read.
    pub read: Bytes,
    /// Bytes written.
    pub written: Bytes,
}

impl DeviceCounters {
    /// I/O between `earlier` and now.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { read: self.read - earlier.read, written: self.written - earlier.written }
    }
}

/// Counters of `/sys/class/block/NAME/stat` (Documentation/block/stat.rst), since the creation of
/// the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceStat {
    pub(crate) counters: DeviceCounters,
    /// Completed requests: reads, writes, discards, and flushes.
    pub(crate) completed: u64,
    /// Requests that were passed to the driver and are not completed.
    pub(crate) in_flight: u64,
    /// Completed read requests, and read requests that were merged with other requests before.
    pub(crate) reads: u64,
    pub(crate) reads_merged: u64,
    /// Completed write requests, and write requests that were merged with other requests before.
    pub(crate) writes: u64,
    pub(crate) writes_merged: u64,
    /// Discarded bytes; `None` before Linux 4.18.
    pub(crate) discarded: Option<Bytes>,
    /// Completed flush requests; `None` before Linux 5.5.
    pub(crate) flushes: Option<u64>,
    /// Time during which the device had at least one request.
    pub(crate) busy: Milliseconds,
    /// Sum of the times that requests spent in the queue and in the device.
    pub(crate) queue_time: Milliseconds,
}

/// Time in the statistics of the block layer. The kernel shows the lower 32 bits of the
/// milliseconds (`part_stat_show` in block/genhd.c), so the value wraps after 49.7 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Milliseconds(u64);

impl Milliseconds {
    /// Time between `earlier` and this value, which may have wrapped once.
    pub(crate) fn since(self, earlier: Self) -> Nanos {
        let range = 1 << 32;
        let passed = match self.0.checked_sub(earlier.0) {
            Some(passed) => passed,
            None if earlier.0 < range => self.0 + range - earlier.0,
            None => 0,
        };
        Nanos(passed.saturating_mul(1_000_000))
    }
}

impl DeviceStat {
    /// Reads the counters of a disk or partition; `None` if the kernel has none.
    pub(crate) fn read(host: &dyn Host, name: &str) -> Option<Self> {
        let text = host.read(&Path::new("/sys/class/block").join(name).join("stat")).ok()?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Option<Self> {
        let numbers = text.split_whitespace().map(str::parse::<u64>);
        let fields = numbers.collect::<Result<Vec<_>, _>>().ok()?;
        // Discards were added in Linux 4.18 and flushes in 5.5; older lines are shorter.
        let field = |index: usize| fields.get(index).copied();
        let bytes = |sectors: u64| Bytes(sectors.saturating_mul(SECTOR));
        let completed = [field(0)?, field(4)?, field(11).unwrap_or(0), field(15).unwrap_or(0)];
        Some(Self {
            counters: DeviceCounters { read: bytes(field(2)?), written: bytes(field(6)?) },
            completed: completed.into_iter().fold(0, u64::saturating_add),
            in_flight: field(8)?,
            reads: field(0)?,
            reads_merged: field(1)?,
            writes: field(4)?,
            writes_merged: field(5)?,
            discarded: field(13).map(bytes),
            flushes: field(15),
            busy: Milliseconds(field(9)?),
            queue_time: Milliseconds(field(10)?),
        })
    }
}

/// Kernel name of a device node.
pub(crate) fn name_of(device: &Path) -> String {
    device.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Directory of the request queue in sysfs; for a partition, that of its disk.
pub(crate) fn queue(host: &dyn Host, name: &str) -> PathBuf {
    let node = Path::new("/sys/class/block").join(name);
    if host.entry(&node.join("queue")).is_ok() {
        return node.join("queue");
    }
    // The sysfs directory of a partition is in the directory of its disk
    // (Documentation/ABI/testing/sysfs-block).
    match host.follow(&node) {
        Ok(path) if path.join("partition").exists() => path.parent().unwrap_or(&path).join("queue"),
        _ => node.join("queue"),
    }
}

/// Kernel name of the block device that contains the file at a path; `None` if there is no such
/// device, or if there are several.
pub(crate) fn device_of(host: &dyn Host, path: &Path) -> Option<String> {
    let mounts = host.mounts().ok()?;
    device_name(host, holder(&mounts, path)?)
}

/// Kernel name of the block device of a mount. If the device number of the mount is that of a block
/// device, the device is found by this number. Filesystems with a generated number, such as btrfs,
/// report one device as the mount source. This device is returned. For a btrfs with several
/// devices, `None` is returned.
pub(crate) fn device_name(host: &dyn Host, mount: &MountEntry) -> Option<String> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let number = Path::new("/sys/dev/block").join(&mount.device);
    if let Ok(node) = host.follow(&number) {
        return name(&node);
    }
    let node =
        host.follow(Path::new(&mount.source)).ok().filter(|_| mount.source.starts_with('/'))?;
    let found = name(&node)?;
    host.entry(&Path::new("/sys/class/block").join(&found)).ok()?;
    (mount.fstype != "btrfs" || single_btrfs(host, &found)).then_some(found)
}

/// True if the btrfs filesystem on this device has no other device, according to
/// `/sys/fs/btrfs/UUID/devices`.
fn single_btrfs(host: &dyn Host, name: &str) -> bool {
    let btrfs = Path::new("/sys/fs/btrfs");
    let filesystems = host.list(btrfs).unwrap_or_default();
    let mut lists =
        filesystems.iter().filter_map(|uuid| host.list(&btrfs.join(uuid).join("devices")).ok());
    lists.any(|devices| devices.len() == 1 && devices[0] == name)
}

/// Value of a setting: the bracketed choice in a list such as `none [bfq]`, otherwise the trimmed
/// text.
pub(crate) fn selected(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text.trim(), |(choice, _)| choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_all_kernel_versions_are_parsed() {
        let line = "  10 0 80 5 20 0 160 7 3 9 12";
        let old = DeviceStat::parse(line).unwrap();
        assert_eq!(
            old.counters,
            DeviceCounters { read: Bytes(80 * 512), written: Bytes(160 * 512) }
        );
        assert_eq!((old.completed, old.in_flight), (30, 3));
        let new = DeviceStat::parse(&format!("{line} 1 0 8 0 4 2\n")).unwrap();
        assert_eq!((new.completed, new.counters), (35, old.counters));
        assert_eq!((old.discarded, old.flushes), (None, None));
        assert_eq!((new.discarded, new.flushes), (Some(Bytes(8 * 512)), Some(4)));
        assert_eq!((new.reads, new.reads_merged, new.writes, new.writes_merged), (10, 0, 20, 0));
        assert_eq!((new.busy, new.queue_time), (Milliseconds(9), Milliseconds(12)));
        assert_eq!(DeviceStat::parse("1 2 3"), None);
        assert_eq!(DeviceStat::parse(""), None);
        let largest = DeviceStat::parse(&format!("{} ", u64::MAX).repeat(17)).unwrap();
        assert_eq!((largest.completed, largest.counters.read), (u64::MAX, Bytes(u64::MAX)));
    }

    #[test]
    fn wrapped_times_are_handled() {
        let passed = |earlier, later| Milliseconds(later).since(Milliseconds(earlier));
        assert_eq!(passed(5, 8), Nanos(3_000_000));
        assert_eq!(passed((1 << 32) - 2, 1), Nanos(3_000_000));
        assert_eq!(passed(1 << 40, 1), Nanos(0), "more than 32 bits do not wrap");
    }
}
