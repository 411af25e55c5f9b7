//! Settings of the queues of block devices (Documentation/ABI/stable/sysfs-block).
//!
//! The scheduler, how far is read ahead, and how many requests a queue holds are set on every
//! device of the stack: what lies under an image or a volume decides as much as the device on top.
//! That may be a disk which others use, too. Whether a cache is taken to be volatile is set on the
//! run's own devices only: without flushes to a shared disk, an fsync of anybody would not last
//! through a loss of power.

use std::{collections::BTreeSet, path::Path};

use model::{Bytes, Factor, Value, Warning};

use super::{Intent, Keep, Write, queue};
use crate::{evidence::Stack, host::Host};

const CLASS: &str = "/sys/class/block";

/// A block device below a filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// The kernel's name.
    pub(crate) name: String,
    /// Whether it lies under the run's own devices, so that others may use it.
    pub(crate) shared: bool,
}

/// The devices under `top`, those included; what lies under `own` is shared. Parts of disks are
/// left out: the queue is that of their disk, which follows.
pub(crate) fn stack(host: &dyn Host, top: &[String], own: &[String]) -> Vec<Device> {
    let below: BTreeSet<_> = Stack::of(host, own)
        .devices
        .into_iter()
        .filter(|device| !own.contains(&device.name))
        .map(|device| device.name)
        .collect();
    let all = Stack::of(host, top).devices.into_iter().filter(|device| !device.partition);
    all.map(|device| Device { shared: below.contains(&device.name), name: device.name }).collect()
}

/// What old kernels called the schedulers, and what does their work today: `noop` and `deadline`
/// are the same algorithms for one queue (Documentation/block/switching-sched.rst,
/// deadline-iosched.rst); `bfq` began as `cfq` with another way of sharing (bfq-iosched.rst).
const NAMES_OF_OLD: [(&str, &str); 3] =
    [("cfq", "bfq"), ("noop", "none"), ("deadline", "mq-deadline")];

/// The schedulers that the kernel lists for a device; modules that are not loaded are not among
/// them.
pub(crate) fn schedulers(host: &dyn Host, name: &str) -> Option<Vec<String>> {
    let text = host.read(&queue(host, name).join("scheduler")).ok()?;
    let word = |word: &str| word.trim_matches(['[', ']']).to_owned();
    Some(text.split_whitespace().map(word).collect())
}

/// What the kernel lists for some disk: a device that is not there yet, as the loop device of an
/// image, will have the same.
fn of_another(host: &dyn Host, name: &str) -> Option<Vec<String>> {
    if host.entry(&Path::new(CLASS).join(name)).is_ok() {
        return None;
    }
    let names = host.list(Path::new(CLASS)).unwrap_or_default();
    let lists = names.iter().filter_map(|other| schedulers(host, other));
    lists.max_by_key(Vec::len)
}

/// Sets the I/O scheduler of every device. The kernel loads its module if need be
/// (`block/elevator.c`).
pub(crate) fn scheduler(host: &dyn Host, devices: &[Device], wanted: &str) -> Intent {
    let mut intent = Intent::default();
    let mut renamed = Vec::new();
    for Device { name, .. } in devices {
        let folder = queue(host, name);
        let listed = schedulers(host, name).or_else(|| of_another(host, name));
        let known = |word: &str| listed.as_ref().is_some_and(|list| list.iter().any(|l| l == word));
        let today = NAMES_OF_OLD.iter().find(|(old, _)| *old == wanted).map(|(_, today)| *today);
        let today = today.filter(|_| listed.is_some() && !known(wanted));
        let word = today.unwrap_or(wanted);
        // Stacked devices without a queue of their own list nothing, or `none` alone.
        let has_none = listed.as_ref().is_none_or(|list| list.as_slice() == ["none"]);
        if has_none && !known(word) && stacked(host, name) {
            let why = "none: it hands requests down without a queue of its own";
            intent.left.push((format!("scheduler.{name}"), why.into()));
            continue;
        }
        if let Some(list) = listed.as_ref().filter(|_| !known(word)) {
            intent.notes.push(format!(
                "the kernel lists {} for {name}; unless it has a module for `{word}`, trials fail",
                list.join(", ")
            ));
        }
        renamed.extend(today.map(|_| name.as_str()));
        intent.keeps.extend(disturbed(host, &folder, word));
        intent.write(format!("scheduler of {name}"), folder.join("scheduler"), word);
        intent.fact(&format!("scheduler.{name}"), folder.join("scheduler"), "");
        if let Some(word) = today.filter(|_| renamed.len() == 1) {
            intent.warnings.push(Warning::StandIn {
                wanted: format!("scheduler {wanted}"),
                instead: format!("`{word}`, which does its work in kernels of today"),
                why: format!("the kernel has no `{wanted}` any more"),
            });
        }
    }
    if intent.writes.is_empty() {
        return Intent { left: intent.left, ..none("scheduler", wanted) };
    }
    intent
}

/// What the change of a scheduler resets: the depth of the queue, the limit of writing back, and
/// the tunables of the scheduler that goes (`elevator_switch` in `block/elevator.c`,
/// `wbt_disable_default` in `block/blk-wbt.c`).
///
/// They belong to the scheduler there is now: if somebody else sets another one before it is back,
/// they are theirs.
fn disturbed(host: &dyn Host, folder: &Path, wanted: &str) -> Option<Keep> {
    let scheduler = folder.join("scheduler");
    let now = host.read(&scheduler).unwrap_or_default();
    if crate::undo::selected(&now) == wanted {
        return None;
    }
    let tunables = folder.join("iosched");
    let names = host.list(&tunables).unwrap_or_default();
    let own = ["nr_requests", "wbt_lat_usec"].map(|file| folder.join(file));
    let files = own.into_iter().chain(names.iter().map(|name| tunables.join(name))).collect();
    Some(Keep { files, basis: Some(scheduler) })
}

/// Whether a device lies on others.
fn stacked(host: &dyn Host, name: &str) -> bool {
    let node = Path::new(CLASS).join(name);
    let slaves = host.list(&node.join("slaves")).unwrap_or_default();
    !slaves.is_empty() || host.entry(&node.join("loop/backing_file")).is_ok()
}

fn none(setting: &str, wanted: &str) -> Intent {
    Intent::refused(setting, wanted, "no device of its own")
}

/// One of the other settings of queues.
pub(super) fn intend(host: &dyn Host, devices: &[Device], factor: Factor, value: &Value) -> Intent {
    let (file, unit, text) = match (factor, value) {
        // The kernel keeps whole pages and tells KiB (`queue_ra_store` in block/blk-sysfs.c).
        (Factor::ReadAhead, Value::Size(Bytes(bytes))) => {
            ("read_ahead_kb", " KiB", bytes.div_ceil(1024).to_string())
        }
        (Factor::WriteCache, value) => ("write_cache", "", value.to_string()),
        (_, value) => ("nr_requests", "", value.to_string()),
    };
    let mut intent = Intent::default();
    for Device { name, shared } in devices {
        let path = queue(host, name).join(file);
        let fact = format!("{factor}.{name}");
        if *shared && factor == Factor::WriteCache {
            let why = "left alone: others use it, and need their flushes";
            intent.left.push((fact, why.into()));
        } else if host.entry(&path).is_err() && stacked(host, name) {
            let why = "none: it hands requests down without a queue of its own";
            intent.left.push((fact, why.into()));
        } else {
            let shown = if unit.is_empty() { String::new() } else { format!(" ({})", unit.trim()) };
            // The number of requests follows the scheduler and the depth that the driver offers
            // (`blk_mq_init_sched` in block/blk-mq-sched.c).
            let depth = factor == Factor::QueueDepth;
            intent.writes.push(Write {
                setting: format!("{factor} of {name}{shown}"),
                path: path.clone(),
                text: text.clone(),
                from: None,
                moves: depth,
                basis: depth.then(|| path.with_file_name("scheduler")),
            });
            intent.fact(&fact, path, unit);
        }
    }
    if intent.writes.is_empty() {
        return Intent { left: intent.left, ..none(factor.spec().name, &value.to_string()) };
    }
    intent
}
