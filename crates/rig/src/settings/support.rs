//! Lists the system settings that this machine supports, and the writes that the settings of a plan
//! would cause. This module changes nothing.

use std::path::{Path, PathBuf};

use model::{Storage, StorageKind, SystemSetting, Value, setting::SETTINGS};

use super::{
    SettingChange, cpu, memory, plan_change,
    queue::{self, Device, schedulers},
};
use crate::{
    host::Host,
    sysfs::{device_of, name_of},
};

/// Support of this machine for a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// Plan key.
    pub name: &'static str,
    /// Accepted values.
    pub takes: String,
    /// Description, one sentence.
    pub doc: &'static str,
    /// Available or current values. The error is the reason why the setting cannot be changed.
    pub support: Result<String, String>,
}

/// Description of the plan key `scheduler`.
const SCHEDULER: &str = "The I/O scheduler of every device of the stack (queue/scheduler).";

/// Accepted values of the plan key `scheduler`.
const SCHEDULERS: &str = "name of a scheduler; cfq, noop, and deadline select their successors";

/// Plan key, accepted values, and description of all settings. The scheduler is the first one.
pub fn settings() -> Vec<(&'static str, String, &'static str)> {
    let scheduler = ("scheduler", SCHEDULERS.to_owned(), SCHEDULER);
    let settings = SETTINGS.iter().map(|spec| (spec.name, spec.kind.to_string(), spec.doc));
    std::iter::once(scheduler).chain(settings).collect()
}

/// All settings with their support on this machine. The scheduler is the first one.
pub fn setting_support(host: &dyn Host) -> Vec<Support> {
    let disks = disks(host);
    let list = |name: &str| schedulers(host, name).map(|list| list.join(" "));
    let scheduler = group_values(&disks, "no device has a scheduler", list);
    let others = SETTINGS.iter().map(|spec| support(host, &disks, spec.setting));
    let all = settings().into_iter().zip(std::iter::once(scheduler).chain(others));
    all.map(|((name, takes, doc), support)| Support {
        name,
        takes,
        doc,
        support: match SystemSetting::from_name(name).is_some_and(SystemSetting::is_cluster) {
            // It changes no machine.
            true => support,
            false => require_root(host, support),
        },
    })
    .collect()
}

fn require_root(host: &dyn Host, support: Result<String, String>) -> Result<String, String> {
    match support {
        Ok(words) if !host.is_root() => Err(format!("not root; use sudo ({words})")),
        support => support,
    }
}

/// Disks of the machine, without loop devices and RAM disks.
fn disks(host: &dyn Host) -> Vec<String> {
    let names = host.list(Path::new("/sys/block")).unwrap_or_default();
    let made = |name: &String| ["loop", "ram", "zram"].iter().any(|made| name.starts_with(made));
    names.into_iter().filter(|name| !made(name)).collect()
}

/// Description of the values of all disks, such as `sda sdb: none; sdc: bfq`. The error is `why` if
/// no disk has a value.
fn group_values(
    disks: &[String],
    why: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, text) in disks.iter().filter_map(|name| Some((name, value(name)?))) {
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => groups.push((text, vec![name])),
        }
    }
    if groups.is_empty() {
        return Err(why.into());
    }
    let words = groups.iter().map(|(text, names)| format!("{}: {text}", names.join(" ")));
    Ok(words.collect::<Vec<_>>().join("; "))
}

fn support(host: &dyn Host, disks: &[String], setting: SystemSetting) -> Result<String, String> {
    let of_queue = |file: &str, unit: &str| {
        let value = |name: &str| {
            let text = host.read(&super::queue(host, name).join(file)).ok()?;
            Some(format!("now {}{unit}", text.trim()))
        };
        group_values(disks, &format!("no device has queue/{file}"), value)
    };
    let text = |path: &str| host.read(Path::new(path)).map(|text| text.trim().to_owned());
    match setting {
        SystemSetting::Device => Ok("devices and image files".into()),
        SystemSetting::Size => Ok("image files".into()),
        SystemSetting::ReadAhead => of_queue("read_ahead_kb", " KiB"),
        SystemSetting::NrRequests => of_queue("nr_requests", ""),
        SystemSetting::WriteCache => of_queue("write_cache", ""),
        SystemSetting::CpuSpeed => match cpu::policies(host).as_slice() {
            [] => {
                cpu::check_quota(host).map(|()| "emulated by a CPU quota (no cpufreq)".to_owned())
            }
            policies => Ok(format!("{} frequency policies", policies.len())),
        },
        SystemSetting::CpuGovernor => {
            let policies = cpu::policies(host);
            let names: Vec<_> = policies.iter().map(|(name, _)| name.clone()).collect();
            let value = |name: &str| {
                let (_, directory) = policies.iter().find(|(policy, _)| policy == name)?;
                let list = host.read(&directory.join("scaling_available_governors")).ok()?;
                Some(list.trim().to_owned())
            };
            group_values(&names, "no frequency governor (no cpufreq)", value)
        }
        SystemSetting::OnlineCpus => match cpu::online_now(host).len() {
            0 => Err("the kernel does not list the online CPUs".into()),
            count => Ok(format!("1 to {count}")),
        },
        SystemSetting::DirtyThreshold | SystemSetting::DirtyBackgroundThreshold => {
            let now = |face: &str| {
                text(&format!("/proc/sys/vm/{}_{face}", memory::dirty_prefix(setting)))
            };
            match (now("ratio"), now("bytes")) {
                (Ok(ratio), Ok(bytes)) if bytes == "0" => Ok(format!("now {ratio}%")),
                (Ok(_), Ok(bytes)) => Ok(format!("now {bytes} bytes")),
                (Err(error), _) | (_, Err(error)) => {
                    Err(format!("/proc/sys/vm/{}_ratio: {error}", memory::dirty_prefix(setting)))
                }
            }
        }
        SystemSetting::TransparentHugepage => text("/sys/kernel/mm/transparent_hugepage/enabled")
            .map_err(|_| "the kernel is built without transparent huge pages".into()),
        SystemSetting::Hosts | SystemSetting::ReaderShift => Ok("in runs on several hosts".into()),
        SystemSetting::Kernel => Err("requires a guest; use --guest auto".into()),
    }
}

/// Planned change for one value of a setting that the plan varies.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedValue {
    /// Setting and value, such as `read_ahead=128KiB`.
    pub what: String,
    /// Planned change.
    pub change: SettingChange,
}

/// Changes that the schedulers and settings of a plan would cause for a storage. The loop device of
/// an image does not exist yet and is called `loop·N`.
pub fn planned_values(
    host: &dyn Host,
    storage: &Storage,
    image_directory: &Path,
    schedulers: &[String],
    settings: &[(SystemSetting, Vec<Value>)],
) -> Vec<PlannedValue> {
    let devices = devices(host, storage, image_directory);
    let mut planned_values: Vec<_> = schedulers
        .iter()
        .map(|name| PlannedValue {
            what: format!("scheduler={name}"),
            change: queue::scheduler(host, &devices, name),
        })
        .collect();
    for (setting, values) in settings {
        planned_values.extend(values.iter().map(|value| PlannedValue {
            what: format!("{setting}={value}"),
            change: plan_change(
                host,
                if setting.of_devices() { &devices } else { &[] },
                *setting,
                value,
            ),
        }));
    }
    planned_values
}

fn devices(host: &dyn Host, storage: &Storage, image_directory: &Path) -> Vec<Device> {
    let mut devices: Vec<Device> = Vec::new();
    for (_, kind) in storage.kind.each() {
        let own = of_level(host, kind, image_directory);
        devices.extend(own.into_iter().filter(|it| !devices.contains(it)).collect::<Vec<_>>());
    }
    devices
}

/// Devices of one level of the axis `device`, and the devices below them.
fn of_level(host: &dyn Host, kind: &StorageKind, image_directory: &Path) -> Vec<Device> {
    match kind {
        StorageKind::Image { count, directory, .. } => {
            let directory = directory.as_deref().map_or(image_directory, Path::new);
            let below_directory: Vec<_> = device_of(host, directory).into_iter().collect();
            let images =
                (0..*count).map(|index| Device { name: format!("loop·{index}"), shared: false });
            let below = queue::stack(host, &below_directory, &[]);
            images.chain(below.into_iter().map(|d| Device { shared: true, ..d })).collect()
        }
        StorageKind::Devices { paths } => {
            let node = |path: &String| host.follow(Path::new(path)).unwrap_or(PathBuf::from(path));
            let names: Vec<_> = paths.iter().map(|path| name_of(&node(path))).collect();
            queue::stack(host, &names, &names)
        }
        StorageKind::Directory { .. } | StorageKind::Levels { .. } => Vec::new(),
    }
}
