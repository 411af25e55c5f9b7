//! Facts about block devices.

use std::{collections::BTreeSet, path::Path};

use model::Environment;

use super::{digest, put_file};
use crate::{
    host::Host,
    sysfs::{self, device_of},
};

/// Facts of a request queue (Documentation/ABI/stable/sysfs-block).
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

/// Facts about a block device: a disk, a partition with the queue of its disk, a loop device, or a
/// stack with its lower devices.
pub fn device(host: &dyn Host, name: &str) -> Environment {
    let mut facts = Environment::default();
    let node = Path::new("/sys/class/block").join(name);
    let queue = sysfs::queue(host, name);
    let disk = queue.parent().unwrap_or(&node).to_owned();
    let key = |fact: &str| format!("device.{name}.{fact}");
    if let Ok(sectors) = host.read(&node.join("size"))
        && let Ok(sectors) = sectors.trim().parse::<u64>()
    {
        // Always in units of 512 bytes.
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
    // The world-wide name contains the serial number of many devices.
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
    // Stacks are trees: a device is never below itself.
    below.iter().for_each(|name| facts.merge(device(host, name)));
    facts
}

/// Facts about the connection of a disk: the NUMA node of its nearest parent that has one (-1:
/// none), and the link of its PCI device (Documentation/ABI/testing/sysfs-bus-pci).
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

/// Maximum depth of stacked devices; more indicates an error of the search.
const MAX_DEPTH: u32 = 16;

/// Disks at the bottom of a block device: through partitions, stacks, and loop devices.
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
