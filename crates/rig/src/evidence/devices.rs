//! The block devices below a filesystem, down to the last, and what each did within a window.
//!
//! Enters: names of devices, `/sys/class/block`, and the mount table (for the file behind a loop
//! device). Leaves: [`model::DeviceWork`] from the differences of two readings. A device whose
//! counters cannot be trusted is left out and stands in `absent`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use model::{
    Bytes,
    evidence::{Absent, DeviceWork, Uncounted},
};

use crate::{device::DeviceStat, host::Host, mount::holder, probe};

const CLASS: &str = "/sys/class/block";

/// One device of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// The kernel's name.
    pub(crate) name: String,
    /// How many devices are above it.
    pub(crate) depth: u32,
    /// `major:minor`, if the kernel tells it.
    pub(crate) number: Option<String>,
    /// Whether it is a part of a disk.
    pub(crate) partition: bool,
}

/// Devices with all that they lie on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    /// Each followed by what it lies on; none twice.
    pub(crate) devices: Vec<Device>,
    /// What could not be followed further.
    pub(crate) absent: Vec<Absent>,
}

impl Stack {
    /// Follows devices down: a partition to its disk, a loop device to the device of the filesystem
    /// that holds its file, stacked devices to their `slaves`
    /// (Documentation/ABI/testing/sysfs-block).
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
            // A partition's directory lies in that of its disk.
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

    /// The device under the file of a loop device.
    fn add_holder(&mut self, host: &dyn Host, name: &str, file: &Path, depth: u32) {
        if let Some(below) = probe::device_of(host, file) {
            return self.add(host, &below, depth);
        }
        let mounts = host.mounts().unwrap_or_default();
        let fstype = holder(&mounts, file).map(|mount| mount.fstype.as_str());
        if !matches!(fstype, Some("tmpfs" | "ramfs")) {
            let what = format!("the devices below {name}");
            let why = "the filesystem of its file lies on none, or on several, that can be told";
            self.absent.push(Absent { what, why: why.into() });
        }
    }

    /// Whether a device of the stack has this name or `major:minor`.
    pub(super) fn holds(&self, device: &str) -> bool {
        let is = |known: &Device| {
            known.name == device || known.number.as_deref().is_some_and(|number| number == device)
        };
        self.devices.iter().any(is)
    }
}

/// Names of all block devices there are.
pub(super) fn all(host: &dyn Host) -> BTreeSet<String> {
    host.list(Path::new(CLASS)).unwrap_or_default().into_iter().collect()
}

/// One reading of the counters, in the order of the stack.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters(Vec<Option<DeviceStat>>);

impl Counters {
    pub(super) fn read(host: &dyn Host, stack: &Stack) -> Self {
        let counted = |device: &Device| {
            let switch = Path::new(CLASS).join(&device.name).join("queue/iostats");
            // 0: the device counts nothing (Documentation/ABI/stable/sysfs-block).
            let off = host.read(&switch).is_ok_and(|text| text.trim() == "0");
            if off { None } else { DeviceStat::read(host, &device.name) }
        };
        Self(stack.devices.iter().map(counted).collect())
    }

    /// What each device did from `earlier` to now, and those that do not tell.
    pub(super) fn since(
        &self,
        earlier: &Self,
        stack: &Stack,
        absent: &mut Vec<Absent>,
    ) -> (Vec<DeviceWork>, Vec<Uncounted>) {
        let (mut works, mut uncounted) = (Vec::new(), Vec::new());
        for (device, (before, after)) in stack.devices.iter().zip(earlier.0.iter().zip(&self.0)) {
            let name = &device.name;
            let lacks = || Uncounted { name: name.clone(), depth: device.depth };
            let (Some(before), Some(after)) = (before, after) else {
                uncounted.push(lacks());
                let why = format!("no counters, or switched off: see {CLASS}/{name}/queue/iostats");
                absent.push(Absent { what: format!("the work of {name}"), why });
                continue;
            };
            match work(device, before, after) {
                Some(work) => works.push(work),
                None => {
                    uncounted.push(lacks());
                    let why = "its counters went backward: it was exchanged meanwhile".to_owned();
                    absent.push(Absent { what: format!("the work of {name}"), why });
                    continue;
                }
            }
            if after.discarded.is_none() {
                let what = format!("discarded bytes of {name}");
                absent.push(Absent { what, why: "needs Linux 4.18".into() });
            }
            let why = match (device.partition, after.flushes) {
                (true, _) => "the kernel counts them for whole disks only",
                (false, None) => "needs Linux 5.5",
                (false, Some(_)) => continue,
            };
            absent.push(Absent { what: format!("flush counts of {name}"), why: why.into() });
        }
        (works, uncounted)
    }
}

/// The difference of two readings; `None` where a count that never wraps went backward.
fn work(device: &Device, before: &DeviceStat, after: &DeviceStat) -> Option<DeviceWork> {
    let bytes = |after: Bytes, before: Bytes| after.0.checked_sub(before.0).map(Bytes);
    let optional = |after: Option<u64>, before: Option<u64>| match (after, before) {
        (Some(after), Some(before)) => after.checked_sub(before).map(Some),
        _ => Some(None),
    };
    let (discarded, already) = (after.discarded.map(|b| b.0), before.discarded.map(|b| b.0));
    // Flushes are not counted for partitions (Documentation/admin-guide/iostats.rst).
    let flushes = after.flushes.filter(|_| !device.partition);
    Some(DeviceWork {
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
