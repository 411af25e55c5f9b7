//! Facts about the machine, as it tells them itself. A fact it does not tell is absent.
//!
//! Names are dotted and stable, since runs are compared by them: `kernel.*`, `cpu.*`, `memory.*`,
//! `vm.*`, `clock.*`, `host.*`, `backing.*`, and `device.NAME.*`.

use std::path::Path;

use model::Environment;

use crate::{
    host::{Host, Statistics},
    knobs, memory,
    mount::{MountEntry, holder as mount_of},
    undo::selected,
};

/// Facts that are the text of one file.
const FILES: [(&str, &str); 15] = [
    ("kernel.release", "/proc/sys/kernel/osrelease"),
    ("kernel.version", "/proc/sys/kernel/version"),
    ("kernel.command_line", "/proc/cmdline"),
    ("clock.source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("cpu.governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("cpu.turbo_off", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("cpu.smt", "/sys/devices/system/cpu/smt/control"),
    ("memory.huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio"),
    ("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes"),
    ("vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
    ("vm.dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes"),
    ("vm.dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs"),
    ("vm.dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs"),
    ("vm.swappiness", "/proc/sys/vm/swappiness"),
];

/// Facts of a device's queue (Documentation/ABI/stable/sysfs-block).
const QUEUE: [&str; 12] = [
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
];

fn put(environment: &mut Environment, name: impl Into<String>, text: &str) {
    let text = selected(text);
    if !text.is_empty() {
        environment.set(name, text);
    }
}

fn put_file(host: &dyn Host, environment: &mut Environment, name: impl Into<String>, path: &Path) {
    if let Ok(text) = host.read(path) {
        put(environment, name, &text);
    }
}

/// Facts about kernel, processors, memory and the machine as a whole.
pub fn machine(host: &dyn Host) -> Environment {
    let mut facts = Environment::default();
    for (name, path) in FILES {
        // The command line and the version may hold brackets that choose nothing.
        if let Ok(text) = host.read(Path::new(path)) {
            let text = if name.starts_with("kernel.") { text.trim() } else { selected(&text) };
            if !text.is_empty() {
                facts.set(name, text);
            }
        }
    }
    processors(host, &mut facts);
    memory_facts(host, &mut facts);
    if let Ok(release) = host.read(Path::new("/etc/os-release"))
        && let Some(name) = field(&release, "PRETTY_NAME=")
    {
        put(&mut facts, "host.distribution", name.trim_matches('"'));
    }
    let dmi = |name: &str| {
        let text = host.read(&Path::new("/sys/class/dmi/id").join(name)).unwrap_or_default();
        text.trim().to_owned()
    };
    put(
        &mut facts,
        "host.product",
        format!("{} {}", dmi("sys_vendor"), dmi("product_name")).trim(),
    );
    put_file(host, &mut facts, "host.hypervisor", Path::new("/sys/hypervisor/type"));
    if let Ok(mounts) = host.mounts() {
        facts.set("host.cgroup", memory::versions(&mounts));
    }
    facts
}

fn processors(host: &dyn Host, facts: &mut Environment) {
    let text = host.read(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let count = text.lines().filter(|line| line.starts_with("processor")).count();
    if count > 0 {
        facts.set("cpu.count", count.to_string());
    }
    let value = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    if let Some(model) = value("model name") {
        facts.set("cpu.model", model);
    }
    if value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")) {
        facts.set("cpu.virtual", "yes");
    }
    let folder = Path::new("/sys/devices/system/cpu/vulnerabilities");
    for name in host.list(folder).unwrap_or_default() {
        put_file(host, facts, format!("cpu.mitigation.{name}"), &folder.join(&name));
    }
}

fn memory_facts(host: &dyn Host, facts: &mut Environment) {
    let text = host.read(Path::new("/proc/meminfo")).unwrap_or_default();
    for (key, name) in [("MemTotal:", "memory.total_bytes"), ("SwapTotal:", "memory.swap_bytes")] {
        let kib = field(&text, key).and_then(|rest| rest.split_whitespace().next());
        if let Some(kib) = kib.and_then(|kib| kib.parse::<u64>().ok()) {
            facts.set(name, (kib << 10).to_string());
        }
    }
}

/// The rest of the first line that begins with `key`.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

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
        ("serial", "device/serial"),
        ("serial", "serial"),
        ("wwid", "wwid"),
        ("queue_depth", "device/queue_depth"),
        ("loop.backing_file", "loop/backing_file"),
        ("loop.direct", "loop/dio"),
        ("mapper.name", "dm/name"),
    ];
    for (fact, file) in identity {
        put_file(host, &mut facts, key(fact), &disk.join(file));
    }
    let below = host.list(&node.join("slaves")).unwrap_or_default();
    if !below.is_empty() {
        facts.set(key("below"), below.join(" "));
    }
    // Stacks are trees: a device is never below itself.
    below.iter().for_each(|name| facts.merge(device(host, name)));
    facts
}

/// Facts about the filesystem that holds a path, and its device: what lies under an image or
/// directory.
pub fn holder(host: &dyn Host, path: &Path) -> Environment {
    let mut facts = Environment::default();
    let mounts = host.mounts().unwrap_or_default();
    let Some(mount) = mount_of(&mounts, path) else { return facts };
    facts.set("backing.fstype", &mount.fstype);
    facts.set("backing.source", &mount.source);
    facts.set("backing.options", mount.resolved_options());
    if let Ok(Statistics { total, usable, .. }) = host.statistics(path) {
        facts.set("backing.size_bytes", total.0.to_string());
        facts.set("backing.usable_bytes", usable.0.to_string());
    }
    if let Some(name) = device_name(host, mount) {
        facts.set("backing.device", &name);
        facts.merge(device(host, &name));
    }
    facts
}

/// The kernel's name of the block device that holds a path; `None` where it is on none, or on many.
pub(crate) fn device_of(host: &dyn Host, path: &Path) -> Option<String> {
    let mounts = host.mounts().ok()?;
    device_name(host, mount_of(&mounts, path)?)
}

/// By device number where that is a block device's; filesystems with numbers of their own, such as
/// btrfs, tell their first device as the source, which is all of it only if there is no other.
fn device_name(host: &dyn Host, mount: &MountEntry) -> Option<String> {
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

/// Whether a btrfs that is seen by this device has no other: `/sys/fs/btrfs/UUID/devices` lists
/// them.
fn single_btrfs(host: &dyn Host, name: &str) -> bool {
    let folder = Path::new("/sys/fs/btrfs");
    let filesystems = host.list(folder).unwrap_or_default();
    let mut lists =
        filesystems.iter().filter_map(|uuid| host.list(&folder.join(uuid).join("devices")).ok());
    lists.any(|devices| devices.len() == 1 && devices[0] == name)
}

#[cfg(test)]
mod tests;
