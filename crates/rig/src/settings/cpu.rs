//! CPU settings: number of online CPUs, governor, and frequency.
//!
//! The frequency is set per policy, a group of CPUs with a common frequency
//! (Documentation/admin-guide/pm/cpufreq.rst). Most virtual machines have no policies; a CPU quota
//! then emulates the frequency ([`super::quota`]). Taking a CPU offline
//! (Documentation/core-api/cpu_hotplug.rst) cannot be undone completely: tasks and interrupts that
//! were bound to the CPU stay on other CPUs. In control groups of version 1, the kernel removes the
//! CPU from `cpuset.cpus` and does not add it again, so undo restores these files.

use std::path::{Path, PathBuf};

use model::{SystemSetting, Value, Warning, setting::parse_percent};

use super::{SavedSettings, SettingChange, Write};
use crate::{cgroup, host::EntryKind, host::Host};

const CPU: &str = "/sys/devices/system/cpu";
const NO_FREQUENCY: &str = "no frequency to set (no cpufreq)";

/// Maximum depth of the search for control groups.
const MAX_DEPTH: u32 = 8;

/// Numbers in a list such as `0-2,5` (Documentation/admin-guide/cputopology.rst).
pub(super) fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

fn listed(host: &dyn Host, file: &str) -> Vec<u32> {
    numbers(&host.read(&Path::new(CPU).join(file)).unwrap_or_default())
}

/// Numbers of the online CPUs.
pub(super) fn online_now(host: &dyn Host) -> Vec<u32> {
    listed(host, "online")
}

fn online_file(number: u32) -> PathBuf {
    Path::new(CPU).join(format!("cpu{number}/online"))
}

/// Plans the change of the number of online CPUs. If there are too many, the CPUs with the highest
/// numbers are taken offline; if there are too few, offline CPUs are brought online. A CPU without
/// an `online` file, often the first one, is not changed.
pub(super) fn online(host: &dyn Host, value: &Value) -> SettingChange {
    let name = SystemSetting::OnlineCpus.spec().name;
    let Value::Count(wanted) = value else {
        return SettingChange::refused(name, value.to_string(), "not a number");
    };
    let wanted = usize::try_from(*wanted).unwrap_or(usize::MAX);
    let now = online_now(host);
    if now.is_empty() {
        return SettingChange::refused(
            name,
            value.to_string(),
            "the kernel does not list the online CPUs",
        );
    }
    let mut change = SettingChange::default();
    let switchable = |number: &u32| host.entry(&online_file(*number)).is_ok();
    let (numbers, state): (Vec<u32>, &str) = if wanted < now.len() {
        let off = now.iter().rev().copied().filter(switchable).take(now.len() - wanted);
        (off.collect(), "0")
    } else {
        let present = listed(host, "present").into_iter();
        let off = present.filter(|number| !now.contains(number)).filter(switchable);
        (off.take(wanted - now.len()).collect(), "1")
    };
    if numbers.len() < now.len().abs_diff(wanted) {
        let count =
            if state == "0" { now.len() - numbers.len() } else { now.len() + numbers.len() };
        change.warnings.push(Warning::SettingNotApplied {
            setting: name.into(),
            wanted: wanted.to_string(),
            found: format!("{count}: no other CPU can be switched"),
        });
    }
    for number in numbers {
        change.write(format!("{name} (cpu{number} online)"), online_file(number), state);
    }
    if state == "0" && !change.writes.is_empty() {
        change.saved = vec![SavedSettings { files: cpusets(host), basis: None }];
    }
    change.fact(name, Path::new(CPU).join("online"), "");
    change
}

/// Files `cpuset.cpus` of all control groups of version 1, those of parent groups first
/// (Documentation/admin-guide/cgroup-v1/cpusets.rst).
fn cpusets(host: &dyn Host) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mounts = host.mounts().unwrap_or_default();
    let listed = |options: &str| options.split(',').any(|option| option == "cpuset");
    if let Some(mount) = mounts.iter().find(|m| m.fstype == "cgroup" && listed(&m.super_options)) {
        cpusets_below(host, &mount.target, MAX_DEPTH, &mut files);
    }
    files
}

fn cpusets_below(host: &dyn Host, group: &Path, depth: u32, files: &mut Vec<PathBuf>) {
    for name in host.list(group).unwrap_or_default() {
        let child = group.join(name);
        if host.entry(&child).is_ok_and(|entry| entry.kind == EntryKind::Directory) {
            files.push(child.join("cpuset.cpus"));
            if depth > 0 {
                cpusets_below(host, &child, depth - 1, files);
            }
        }
    }
}

/// Names and directories of the active frequency policies, ordered by number.
pub(super) fn policies(host: &dyn Host) -> Vec<(String, PathBuf)> {
    let directory = Path::new(CPU).join("cpufreq");
    let names = host.list(&directory).unwrap_or_default().into_iter();
    let number = |name: &String| name.strip_prefix("policy").and_then(|n| n.parse::<u32>().ok());
    let mut policies: Vec<_> = names.filter_map(|name| Some((number(&name)?, name))).collect();
    policies.sort_unstable();
    let with_path = |(_, name): (u32, String)| (name.clone(), directory.join(&name));
    let is_active = |(_, path): &(String, PathBuf)| {
        // For a policy without online CPUs, the read fails.
        host.read(&path.join("scaling_governor")).is_ok()
    };
    policies.into_iter().map(with_path).filter(is_active).collect()
}

/// Plans the change of the governor of every policy.
pub(super) fn governor(host: &dyn Host, value: &Value) -> SettingChange {
    let mut change = SettingChange::default();
    for (name, directory) in policies(host) {
        let path = directory.join("scaling_governor");
        change.fact(&format!("cpu_governor.{name}"), path.clone(), "");
        change.write(format!("cpu_governor of {name}"), path, value.to_string());
    }
    if change.writes.is_empty() {
        return SettingChange::refused("cpu_governor", value.to_string(), NO_FREQUENCY);
    }
    change
}

/// Plans the change of the frequency of all CPUs, in percent of the maximum frequency.
pub(super) fn frequency_change(host: &dyn Host, value: &Value) -> SettingChange {
    let percent = match parse_percent(&value.to_string()) {
        Ok(percent) => percent,
        Err(error) => {
            return SettingChange::refused("cpu_speed", value.to_string(), &error.message);
        }
    };
    let policies = policies(host);
    if policies.is_empty() {
        // 100 % needs no quota.
        return SettingChange {
            percent: Some(percent).filter(|percent| *percent < 100),
            ..SettingChange::default()
        };
    }
    let mut change = SettingChange::default();
    for (name, directory) in policies {
        if let Err(why) = fix_frequency(host, &mut change, &name, &directory, percent) {
            change.warnings.push(Warning::SettingNotApplied {
                setting: format!("cpu_speed of {name}"),
                wanted: value.to_string(),
                found: why,
            });
        }
    }
    change
}

/// Plans a fixed frequency for a policy: the minimum and the maximum are both set to the nearest
/// available frequency. The order of the writes ensures that the minimum never exceeds the maximum,
/// also when they are undone in reverse order. Otherwise the kernel would reject the write or
/// change the other limit.
fn fix_frequency(
    host: &dyn Host,
    change: &mut SettingChange,
    name: &str,
    directory: &Path,
    percent: u8,
) -> Result<(), String> {
    let read = |file: &str| -> Result<u64, String> {
        let text = host.read(&directory.join(file)).map_err(|error| format!("{file}: {error}"))?;
        text.trim().parse().map_err(|_| format!("{file} reads `{}`", text.trim()))
    };
    let highest = read("cpuinfo_max_freq")?;
    let wanted = highest * u64::from(percent) / 100;
    let lowest = read("cpuinfo_min_freq").unwrap_or(0);
    let steps: Vec<u64> = ["scaling_available_frequencies", "scaling_boost_frequencies"]
        .iter()
        .filter_map(|file| host.read(&directory.join(file)).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<_>>())
        .collect();
    let nearest = steps.into_iter().min_by_key(|step: &u64| (step.abs_diff(wanted), *step));
    let frequency = nearest.unwrap_or_else(|| wanted.max(lowest));
    let setting = |which: &str| format!("cpu_speed of {name} ({which}, kHz)");
    if frequency != wanted {
        change.warnings.push(Warning::SettingNotApplied {
            setting: format!("cpu_speed of {name} (kHz)"),
            wanted: wanted.to_string(),
            found: format!("{frequency}, the nearest available"),
        });
    }
    let mut files = ["scaling_min_freq", "scaling_max_freq"];
    if frequency >= read("scaling_min_freq")? {
        files.reverse();
    }
    for file in files {
        let which = if file == "scaling_min_freq" { "minimum" } else { "maximum" };
        // Firmware and thermal limits may be below this value. The file then shows the lowest
        // limit, although the kernel keeps the written value (`cpufreq_set_policy` in
        // drivers/cpufreq/cpufreq.c).
        change.writes.push(Write {
            setting: setting(which),
            path: directory.join(file),
            text: frequency.to_string(),
            from: None,
            moves: true,
            basis: None,
        });
    }
    change.fact(&format!("cpu_speed.{name}"), directory.join("scaling_max_freq"), " kHz");
    Ok(())
}

/// Warning that a quota emulates a CPU frequency.
pub(super) fn emulate_frequency(percent: u8) -> Warning {
    Warning::SettingEmulated {
        wanted: format!("cpu_speed {percent}%"),
        instead: format!(
            "a CPU quota of {percent}% per worker for this process and its programs; kernel \
             threads are not limited"
        ),
        why: NO_FREQUENCY.into(),
    }
}

/// Checks that the cpu controller of control groups is available and supports quotas.
pub(super) fn check_quota(host: &dyn Host) -> Result<(), String> {
    let (version, home) = cgroup::home(host, "cpu")?;
    match version {
        cgroup::Version::V1 if host.entry(&home.join("cpu.cfs_period_us")).is_err() => {
            Err("the kernel does not support CPU quotas (CONFIG_CFS_BANDWIDTH)".into())
        }
        cgroup::Version::V1 | cgroup::Version::V2 => Ok(()),
    }
}
