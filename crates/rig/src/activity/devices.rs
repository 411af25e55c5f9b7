//! Block devices of a filesystem with all devices below them, and their I/O during a period of
//! recording.
//!
//! Input: names of devices, `/sys/class/block`, and the mount table, which shows the device below
//! the backing file of a loop device. Output: [`model::activity::DeviceActivity`] from the
//! differences of two readings. A device whose counters are missing or not reliable is omitted and
//! listed as unavailable.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use model::{
    Bytes,
    activity::{DeviceActivity, DeviceWithoutCounters, Unavailable},
};

use crate::{
    host::Host,
    mount::holder,
    sysfs::{self, DeviceStat},
};

const CLASS: &str = "/sys/class/block";

/// Device of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// Kernel name.
    pub(crate) name: String,
    /// Number of devices above this device.
    pub(crate) depth: u32,
    /// `major:minor`, if known.
    pub(crate) number: Option<String>,
    /// True for a partition.
    pub(crate) partition: bool,
}

/// Device stack: devices with all devices below them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    /// Devices without duplicates. Each device is followed by the devices below it.
    pub(crate) devices: Vec<Device>,
    /// Devices for which the devices below are unknown.
    pub(crate) unavailable: Vec<Unavailable>,
}

impl Stack {
    /// Finds the devices below devices with these names. Below a partition is its disk. Below a
    /// loop device is the device of the filesystem that contains its backing file. Below a stacked
    /// device are its `slaves` (Documentation/ABI/testing/sysfs-block).
    pub(crate) fn of(host: &dyn Host, names: &[String]) -> Self {
        let mut stack = Self::default();
        names.iter().for_each(|name| stack.add(host, name, 0));
        stack
    }

    fn add(&mut self, host: &dyn Host, name: &str, depth: u32) {
        if self.devices.iter().any(|device| device.name == name) {
            return;
        }
        let node = Path::new(CLASS).join(name);
        let number = host.read(&node.join("dev")).ok().map(|text| text.trim().to_owned());
        let partition = host.entry(&node.join("partition")).is_ok();
        self.devices.push(Device { name: name.to_owned(), depth, number, partition });
        if partition {
            // The sysfs directory of a partition is in the directory of its disk.
            let path = host.follow(&node).ok();
            let disk = path.as_deref().and_then(Path::parent).and_then(Path::file_name);
            if let Some(disk) = disk {
                self.add(host, &disk.to_string_lossy(), depth + 1);
            }
        }
        for below in host.list(&node.join("slaves")).unwrap_or_default() {
            self.add(host, &below, depth + 1);
        }
        if let Ok(file) = host.read(&node.join("loop/backing_file")) {
            self.add_holder(host, name, &PathBuf::from(file.trim_end()), depth + 1);
        }
    }

    /// Adds the device of the filesystem that contains the backing file of a loop device.
    fn add_holder(&mut self, host: &dyn Host, name: &str, file: &Path, depth: u32) {
        if let Some(below) = sysfs::device_of(host, file) {
            return self.add(host, &below, depth);
        }
        let mounts = host.mounts().unwrap_or_default();
        let fstype = holder(&mounts, file).map(|mount| mount.fstype.as_str());
        if !matches!(fstype, Some("tmpfs" | "ramfs")) {
            let what = format!("devices below {name}");
            let why = "the filesystem of its backing file is on no known device, or on several";
            self.unavailable.push(Unavailable { what, why: why.into() });
        }
    }

    /// True if a device of the stack has this name or `major:minor`.
    pub(super) fn contains(&self, device: &str) -> bool {
        let is = |known: &Device| {
            known.name == device || known.number.as_deref().is_some_and(|number| number == device)
        };
        self.devices.iter().any(is)
    }
}

/// Names of all block devices.
pub(super) fn all(host: &dyn Host) -> BTreeSet<String> {
    host.list(Path::new(CLASS)).unwrap_or_default().into_iter().collect()
}

/// Counters of the devices, in the order of the stack; `None` for a device without counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters(Vec<Option<DeviceStat>>);

impl Counters {
    pub(super) fn read(host: &dyn Host, stack: &Stack) -> Self {
        let counted = |device: &Device| {
            let switch = Path::new(CLASS).join(&device.name).join("queue/iostats");
            // A value of 0 means that the device has no counters
            // (Documentation/ABI/stable/sysfs-block).
            let off = host.read(&switch).is_ok_and(|text| text.trim() == "0");
            if off { None } else { DeviceStat::read(host, &device.name) }
        };
        Self(stack.devices.iter().map(counted).collect())
    }

    /// I/O of each device between the two readings, and the devices without usable counters.
    pub(super) fn since(
        &self,
        earlier: &Self,
        stack: &Stack,
        unavailable: &mut Vec<Unavailable>,
    ) -> (Vec<DeviceActivity>, Vec<DeviceWithoutCounters>) {
        let (mut activities, mut uncounted) = (Vec::new(), Vec::new());
        for (device, (before, after)) in stack.devices.iter().zip(earlier.0.iter().zip(&self.0)) {
            let name = &device.name;
            let without_counters =
                || DeviceWithoutCounters { name: name.clone(), depth: device.depth };
            let (Some(before), Some(after)) = (before, after) else {
                uncounted.push(without_counters());
                let why = format!("no counters, or disabled in {CLASS}/{name}/queue/iostats");
                unavailable.push(Unavailable { what: format!("I/O of {name}"), why });
                continue;
            };
            match activity(device, before, after) {
                Some(activity) => activities.push(activity),
                None => {
                    uncounted.push(without_counters());
                    let why = "its counters went backward: the device was replaced".to_owned();
                    unavailable.push(Unavailable { what: format!("I/O of {name}"), why });
                    continue;
                }
            }
            if after.discarded.is_none() {
                let what = format!("discarded bytes of {name}");
                unavailable.push(Unavailable { what, why: "needs Linux 4.18".into() });
            }
            let why = match (device.partition, after.flushes) {
                (true, _) => "the kernel counts flushes of whole disks only",
                (false, None) => "needs Linux 5.5",
                (false, Some(_)) => continue,
            };
            unavailable
                .push(Unavailable { what: format!("flush counts of {name}"), why: why.into() });
        }
        (activities, uncounted)
    }
}

/// Difference of two readings; `None` if a counter that never wraps has decreased.
fn activity(device: &Device, before: &DeviceStat, after: &DeviceStat) -> Option<DeviceActivity> {
    let bytes = |after: Bytes, before: Bytes| after.0.checked_sub(before.0).map(Bytes);
    let optional = |after: Option<u64>, before: Option<u64>| match (after, before) {
        (Some(after), Some(before)) => after.checked_sub(before).map(Some),
        _ => Some(None),
    };
    let (discarded, already) = (after.discarded.map(|b| b.0), before.discarded.map(|b| b.0));
    // Flushes of partitions are not counted (Documentation/admin-guide/iostats.rst).
    let flushes = after.flushes.filter(|_| !device.partition);
    Some(DeviceActivity {
        name: device.name.clone(),
        depth: device.depth,
        read: bytes(after.counters.read, before.counters.read)?,
        written: bytes(after.counters.written, before.counters.written)?,
        reads: after.reads.checked_sub(before.reads)?,
        writes: after.writes.checked_sub(before.writes)?,
        reads_merged: after.reads_merged.checked_sub(before.reads_merged)?,
        writes_merged: after.writes_merged.checked_sub(before.writes_merged)?,
        discarded: optional(discarded, already)?.map(Bytes),
        flushes: optional(flushes, before.flushes)?,
        queue_time: after.queue_time.since(before.queue_time),
        busy: after.busy.since(before.busy),
    })
}

#[cfg(test)]
mod tests;
