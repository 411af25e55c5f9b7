//! Facts about block devices.

use std::{collections::BTreeSet, path::Path};

use model::Environment;

use super::{digest, put_file};
use crate::{
    host::Host,
    sysfs::{self, device_of},
};

/// Files of a request queue that are recorded as facts (Documentation/ABI/stable/sysfs-block).
const QUEUE: [&str; 17] = [
    "rotational",
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "logical_block_size",
    "physical_block_size",
    "write_cache",
    "fua",
    "wbt_lat_usec",
    "discard_max_bytes",
    "max_sectors_kb",
    "nomerges",
    "rq_affinity",
    "zoned",
    "optimal_io_size",
    "dax",
    "io_poll",
];

/// Facts about a block device and the devices below it (`slaves`). For a partition, the facts about
/// the queue are those of its disk.
pub fn device(host: &dyn Host, name: &str) -> Environment {
    let mut facts = Environment::default();
    let node = Path::new("/sys/class/block").join(name);
    let queue = sysfs::queue(host, name);
    let disk = queue.parent().unwrap_or(&node).to_owned();
    let key = |fact: &str| format!("device.{name}.{fact}");
    if let Ok(sectors) = host.read(&node.join("size"))
        && let Ok(sectors) = sectors.trim().parse::<u64>()
    {
        // The unit of this file is always 512 bytes.
        facts.set(key("size_bytes"), sectors.saturating_mul(512).to_string());
    }
    for fact in QUEUE {
        put_file(host, &mut facts, key(&format!("queue.{fact}")), &queue.join(fact));
    }
    let identity = [
        ("model", "device/model"),
        ("vendor", "device/vendor"),
        ("firmware", "device/firmware_rev"),
        ("firmware", "device/rev"),
        ("queue_depth", "device/queue_depth"),
        ("loop.backing_file", "loop/backing_file"),
        ("loop.direct", "loop/dio"),
        ("mapper.name", "dm/name"),
    ];
    for (fact, file) in identity {
        put_file(host, &mut facts, key(fact), &disk.join(file));
    }
    // For many devices, the WWID contains the serial number, so it is also recorded as a hash.
    for (fact, file) in [
        ("serial", "device/serial"),
        ("serial", "serial"),
        ("wwid", "device/wwid"),
        ("wwid", "wwid"),
    ] {
        if let Ok(text) = host.read(&disk.join(file))
            && !text.trim().is_empty()
        {
            facts.set(key(&format!("{fact}_hash")), digest(text.trim().as_bytes()));
        }
    }
    path_to(host, &disk, &mut facts, name);
    let below = host.list(&node.join("slaves")).unwrap_or_default();
    if !below.is_empty() {
        facts.set(key("below"), below.join(" "));
    }
    // The recursion ends, because a device is never below itself.
    below.iter().for_each(|name| facts.merge(device(host, name)));
    facts
}

/// Facts about the connection of a disk: the NUMA node, and the speed and width of the PCI link
/// (Documentation/ABI/testing/sysfs-bus-pci). Each value is that of the nearest parent device with
/// this file; a NUMA node of -1 means none.
fn path_to(host: &dyn Host, disk: &Path, facts: &mut Environment, name: &str) {
    let Ok(place) = host.follow(disk) else { return };
    let nearest = |file: &str| {
        let value =
            place.ancestors().find_map(|directory| host.read(&directory.join(file)).ok())?;
        let value = value.trim().to_owned();
        (!value.is_empty() && value != "-1").then_some(value)
    };
    let value = [
        ("numa_node", "numa_node"),
        ("link_speed", "current_link_speed"),
        ("link_width", "current_link_width"),
    ];
    for (fact, file) in value {
        if let Some(text) = nearest(file) {
            facts.set(format!("device.{name}.{fact}"), text);
        }
    }
}

/// True if a device is a rotating disk (queue/rotational). For a device on another one, such as a
/// loop device, this is the value of the lowest disks, because older kernels report 1 for the
/// device itself. `None` if the value is not available, or differs between the disks.
pub(crate) fn rotational(host: &dyn Host, name: &str) -> Option<bool> {
    let flag = |disk: &String| {
        let text = host.read(&sysfs::queue(host, disk).join("rotational")).ok()?;
        Some(text.trim() == "1")
    };
    let flags: BTreeSet<Option<bool>> = disks(host, name).iter().map(flag).collect();
    flags.first().copied().flatten().filter(|_| flags.len() == 1)
}

/// Model of a disk.
pub(crate) fn model(host: &dyn Host, name: &str) -> Option<String> {
    let disk = sysfs::queue(host, name).parent()?.join("device/model");
    let model = host.read(&disk).ok()?.trim().to_owned();
    (!model.is_empty()).then_some(model)
}

/// Maximum depth of the search for disks. Real stacks have fewer devices.
const MAX_DEPTH: u32 = 16;

/// Disks on which a block device depends, found through partitions, stacked devices, and loop
/// devices.
pub(crate) fn disks(host: &dyn Host, name: &str) -> BTreeSet<String> {
    below(host, name, MAX_DEPTH)
}

fn below(host: &dyn Host, name: &str, depth: u32) -> BTreeSet<String> {
    let node = Path::new("/sys/class/block").join(name);
    let itself = || BTreeSet::from([name.to_owned()]);
    if depth == 0 {
        return itself();
    }
    let next = |name: &String| below(host, name, depth - 1);
    let slaves = host.list(&node.join("slaves")).unwrap_or_default();
    if !slaves.is_empty() {
        return slaves.iter().flat_map(next).collect();
    }
    if let Ok(file) = host.read(&node.join("loop/backing_file"))
        && let Some(under) = device_of(host, Path::new(file.trim_end()))
    {
        return next(&under);
    }
    // The directory of a partition is in that of its disk (Documentation/ABI/testing/sysfs-block).
    match host.follow(&node) {
        Ok(path) if host.entry(&path.join("partition")).is_ok() => {
            let disk = path.parent().and_then(Path::file_name);
            disk.map_or_else(itself, |disk| next(&disk.to_string_lossy().into_owned()))
        }
        _ => itself(),
    }
}
