//! Queue settings of block devices (Documentation/ABI/stable/sysfs-block).
//!
//! Scheduler, read-ahead, and `nr_requests` are set on the devices of the filesystem and on all
//! devices below them. The queue below an image or a volume affects the results as much as the
//! queue on top. One of these devices may be a disk that other processes use. The write cache mode
//! is set on the devices of the run only. Otherwise, the kernel might omit flushes to a shared
//! disk, and data that another process has synced would not survive a power loss.

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
    /// True if the device is below the devices of the run, so that other processes may use it.
    pub(crate) shared: bool,
}

/// The devices `top` and all devices below them. Devices below `own`, the devices of the run, are
/// shared. Partitions are omitted, because the queue belongs to their disk, which is included.
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

/// Names of old schedulers and their successors. `noop` and `deadline` are the single-queue
/// versions of the same algorithms (Documentation/block/switching-sched.rst, deadline-iosched.rst).
/// `bfq` is derived from `cfq` (bfq-iosched.rst).
const SUCCESSORS: [(&str, &str); 3] =
    [("cfq", "bfq"), ("noop", "none"), ("deadline", "mq-deadline")];

/// Schedulers that the kernel lists for a device. Schedulers in modules that are not loaded are not
/// listed.
pub(crate) fn schedulers(host: &dyn Host, name: &str) -> Option<Vec<String>> {
    let text = host.read(&queue(host, name).join("scheduler")).ok()?;
    let word = |word: &str| word.trim_matches(['[', ']']).to_owned();
    Some(text.split_whitespace().map(word).collect())
}

/// Longest list of schedulers that another block device has. Used for a device that does not exist
/// yet, such as the loop device of an image. `None` if the device exists.
fn schedulers_of_any_disk(host: &dyn Host, name: &str) -> Option<Vec<String>> {
    if host.entry(&Path::new(CLASS).join(name)).is_ok() {
        return None;
    }
    let names = host.list(Path::new(CLASS)).unwrap_or_default();
    let lists = names.iter().filter_map(|other| schedulers(host, other));
    lists.max_by_key(Vec::len)
}

/// Plans the change of the I/O scheduler of every device. The kernel loads the module of a
/// scheduler if necessary (`block/elevator.c`).
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
        // A stacked device without a request queue lists no scheduler, or only `none`.
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

/// Settings that a change of the scheduler resets: `nr_requests`, the target latency of writeback
/// throttling, and the tunables of the old scheduler (`elevator_switch` in `block/elevator.c`,
/// `wbt_disable_default` in `block/blk-wbt.c`).
///
/// These settings are meaningful for the current scheduler only. If another process has set a
/// different scheduler before the undo, they are not restored.
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

/// Plans the change of a queue setting other than the scheduler.
pub(super) fn plan_change(
    host: &dyn Host,
    devices: &[Device],
    setting: SystemSetting,
    value: &Value,
) -> SettingChange {
    let (file, unit, text) = match (setting, value) {
        // The unit of the file is KiB, and the kernel rounds to whole pages (`queue_ra_store` in
        // block/blk-sysfs.c).
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
            // The kernel may change `nr_requests` by itself, and its default depends on the
            // scheduler (`blk_mq_init_sched` in block/blk-mq-sched.c).
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
