//! Queue settings of block devices (Documentation/ABI/stable/sysfs-block).
//!
//! Scheduler, read-ahead, and `nr_requests` are set on every device of the stack, because the
//! devices below an image or a volume matter as much as the device on top. This includes a disk
//! that others may use. The write cache mode is set on the run's own devices only: without flushes
//! to a shared disk, an fsync of another process would not survive a power loss.

use std::{collections::BTreeSet, path::Path};

use model::{Bytes, SystemSetting, Value, Warning};

use super::{SavedSettings, SettingChange, Write};
use crate::{
    activity::Stack,
    host::Host,
    sysfs::{queue, selected},
};

const CLASS: &str = "/sys/class/block";

/// Block device below a filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// Kernel name.
    pub(crate) name: String,
    /// True if it is below the run's own devices, so that other processes may use it.
    pub(crate) shared: bool,
}

/// Devices of `top` and all devices below; those below `own` are shared. Partitions are omitted:
/// the queue belongs to their disk, which is included.
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

/// Old scheduler names and their successors: `noop` and `deadline` are the same algorithms for a
/// single queue (Documentation/block/switching-sched.rst, deadline-iosched.rst); `bfq` is derived
/// from `cfq` (bfq-iosched.rst).
const SUCCESSORS: [(&str, &str); 3] =
    [("cfq", "bfq"), ("noop", "none"), ("deadline", "mq-deadline")];

/// Schedulers that the kernel lists for a device; modules that are not loaded are missing.
pub(crate) fn schedulers(host: &dyn Host, name: &str) -> Option<Vec<String>> {
    let text = host.read(&queue(host, name).join("scheduler")).ok()?;
    let word = |word: &str| word.trim_matches(['[', ']']).to_owned();
    Some(text.split_whitespace().map(word).collect())
}

/// Schedulers listed for any other disk: a device that does not exist yet, such as the loop device
/// of an image, will have the same ones.
fn schedulers_of_any_disk(host: &dyn Host, name: &str) -> Option<Vec<String>> {
    if host.entry(&Path::new(CLASS).join(name)).is_ok() {
        return None;
    }
    let names = host.list(Path::new(CLASS)).unwrap_or_default();
    let lists = names.iter().filter_map(|other| schedulers(host, other));
    lists.max_by_key(Vec::len)
}

/// Sets the I/O scheduler of every device. The kernel loads its module if necessary
/// (`block/elevator.c`).
pub(crate) fn scheduler(host: &dyn Host, devices: &[Device], wanted: &str) -> SettingChange {
    let mut change = SettingChange::default();
    let mut renamed = Vec::new();
    for Device { name, .. } in devices {
        let directory = queue(host, name);
        let listed = schedulers(host, name).or_else(|| schedulers_of_any_disk(host, name));
        let known = |word: &str| listed.as_ref().is_some_and(|list| list.iter().any(|l| l == word));
        let successor =
            SUCCESSORS.iter().find(|(old, _)| *old == wanted).map(|(_, successor)| *successor);
        let successor = successor.filter(|_| listed.is_some() && !known(wanted));
        let word = successor.unwrap_or(wanted);
        // Stacked devices without a queue list nothing, or only `none`.
        let has_none = listed.as_ref().is_none_or(|list| list.as_slice() == ["none"]);
        if has_none && !known(word) && stacked(host, name) {
            let why = "not applicable: the device has no request queue";
            change.skipped.push((format!("scheduler.{name}"), why.into()));
            continue;
        }
        if let Some(list) = listed.as_ref().filter(|_| !known(word)) {
            change.notes.push(format!(
                "the kernel lists {} for {name}; trials fail unless there is a module for `{word}`",
                list.join(", ")
            ));
        }
        renamed.extend(successor.map(|_| name.as_str()));
        change.saved.extend(disturbed_settings(host, &directory, word));
        change.write(format!("scheduler of {name}"), directory.join("scheduler"), word);
        change.fact(&format!("scheduler.{name}"), directory.join("scheduler"), "");
        if let Some(word) = successor.filter(|_| renamed.len() == 1) {
            change.warnings.push(Warning::SettingEmulated {
                wanted: format!("scheduler {wanted}"),
                instead: format!("`{word}`, its successor in current kernels"),
                why: format!("the kernel no longer has `{wanted}`"),
            });
        }
    }
    if change.writes.is_empty() {
        return SettingChange { skipped: change.skipped, ..none("scheduler", wanted) };
    }
    change
}

/// Settings that a change of the scheduler resets: `nr_requests`, the writeback limit, and the
/// tunables of the old scheduler (`elevator_switch` in `block/elevator.c`, `wbt_disable_default` in
/// `block/blk-wbt.c`).
///
/// They belong to the current scheduler: if another process sets a different one before the undo,
/// they are not restored.
fn disturbed_settings(host: &dyn Host, directory: &Path, wanted: &str) -> Option<SavedSettings> {
    let scheduler = directory.join("scheduler");
    let now = host.read(&scheduler).unwrap_or_default();
    if selected(&now) == wanted {
        return None;
    }
    let tunables = directory.join("iosched");
    let names = host.list(&tunables).unwrap_or_default();
    let own = ["nr_requests", "wbt_lat_usec"].map(|file| directory.join(file));
    let files = own.into_iter().chain(names.iter().map(|name| tunables.join(name))).collect();
    Some(SavedSettings { files, basis: Some(scheduler) })
}

/// True if a device is on top of other devices.
fn stacked(host: &dyn Host, name: &str) -> bool {
    let node = Path::new(CLASS).join(name);
    let slaves = host.list(&node.join("slaves")).unwrap_or_default();
    !slaves.is_empty() || host.entry(&node.join("loop/backing_file")).is_ok()
}

fn none(setting: &str, wanted: &str) -> SettingChange {
    SettingChange::refused(setting, wanted, "no dedicated device")
}

/// Other queue settings.
pub(super) fn plan_change(
    host: &dyn Host,
    devices: &[Device],
    setting: SystemSetting,
    value: &Value,
) -> SettingChange {
    let (file, unit, text) = match (setting, value) {
        // The kernel uses whole pages and shows KiB (`queue_ra_store` in block/blk-sysfs.c).
        (SystemSetting::ReadAhead, Value::Size(Bytes(bytes))) => {
            ("read_ahead_kb", " KiB", bytes.div_ceil(1024).to_string())
        }
        (SystemSetting::WriteCache, value) => ("write_cache", "", value.to_string()),
        (_, value) => ("nr_requests", "", value.to_string()),
    };
    let mut change = SettingChange::default();
    for Device { name, shared } in devices {
        let path = queue(host, name).join(file);
        let fact = format!("{setting}.{name}");
        if *shared && setting == SystemSetting::WriteCache {
            let why = "skipped: the device is shared, and others depend on its flushes";
            change.skipped.push((fact, why.into()));
        } else if host.entry(&path).is_err() && stacked(host, name) {
            let why = "not applicable: the device has no request queue";
            change.skipped.push((fact, why.into()));
        } else {
            let shown = if unit.is_empty() { String::new() } else { format!(" ({})", unit.trim()) };
            // The number of requests depends on the scheduler and on the queue depth of the driver
            // (`blk_mq_init_sched` in block/blk-mq-sched.c).
            let depth = setting == SystemSetting::NrRequests;
            change.writes.push(Write {
                setting: format!("{setting} of {name}{shown}"),
                path: path.clone(),
                text: text.clone(),
                from: None,
                moves: depth,
                basis: depth.then(|| path.with_file_name("scheduler")),
            });
            change.fact(&fact, path, unit);
        }
    }
    if change.writes.is_empty() {
        return SettingChange {
            skipped: change.skipped,
            ..none(setting.spec().name, &value.to_string())
        };
    }
    change
}
