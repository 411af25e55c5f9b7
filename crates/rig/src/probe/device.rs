//! Facts about block devices.

use std::{collections::BTreeSet, path::Path};

use model::Environment;

use super::{device_of, digest, put_file};
use crate::{host::Host, knobs};

/// Facts of a device's queue (Documentation/ABI/stable/sysfs-block).
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

/// Facts about a block device: a disk, a partition with its disk's queue, a loop device, or a
/// stack, whose lower devices follow.
pub fn device(host: &dyn Host, name: &str) -> Environment {
    let mut facts = Environment::default();
    let node = Path::new("/sys/class/block").join(name);
    let queue = knobs::queue(host, name);
    let disk = queue.parent().unwrap_or(&node).to_owned();
    let key = |fact: &str| format!("device.{name}.{fact}");
    if let Ok(sectors) = host.read(&node.join("size"))
        && let Ok(sectors) = sectors.trim().parse::<u64>()
    {
        // Always units of 512 bytes.
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
    // The world-wide name holds the serial number of many devices.
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

/// Facts of the way to a disk: its NUMA node, told by the nearest of its parents that has one (-1
/// stands for none), and the link of the PCI device that it hangs on
/// (Documentation/ABI/testing/sysfs-bus-pci).
fn path_to(host: &dyn Host, disk: &Path, facts: &mut Environment, name: &str) {
    let Ok(place) = host.follow(disk) else { return };
    let nearest = |file: &str| {
        let told = place.ancestors().find_map(|folder| host.read(&folder.join(file)).ok())?;
        let told = told.trim().to_owned();
        (!told.is_empty() && told != "-1").then_some(told)
    };
    let told = [
        ("numa_node", "numa_node"),
        ("link_speed", "current_link_speed"),
        ("link_width", "current_link_width"),
    ];
    for (fact, file) in told {
        if let Some(text) = nearest(file) {
            facts.set(format!("device.{name}.{fact}"), text);
        }
    }
}

/// How deep devices may lie on one another; more is a mistake of the search.
const DEEPEST: u32 = 16;

/// The disks that a block device lies on in the end: through partitions, stacks, and loop devices.
pub(crate) fn disks(host: &dyn Host, name: &str) -> BTreeSet<String> {
    below(host, name, DEEPEST)
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
    // A partition's directory lies in that of its disk (Documentation/ABI/testing/sysfs-block).
    match host.follow(&node) {
        Ok(path) if host.entry(&path.join("partition")).is_ok() => {
            let disk = path.parent().and_then(Path::file_name);
            disk.map_or_else(itself, |disk| next(&disk.to_string_lossy().into_owned()))
        }
        _ => itself(),
    }
}
