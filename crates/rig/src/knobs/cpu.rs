//! Settings of the processors: how many are online, their governor, and their speed.
//!
//! The frequency is set for each policy (Documentation/admin-guide/pm/cpufreq.rst); a machine
//! without policies, as most virtual ones are, gives a share of the processors' time instead
//! ([`super::quota`]). Taking a processor offline (Documentation/core-api/cpu_hotplug.rst) cannot
//! be undone in full: tasks and interrupts bound to it stay where they were moved. In groups of
//! version 1, `cpuset.cpus` loses it for ever, so those are put back here.

use std::path::{Path, PathBuf};

use model::{Value, Warning, factor::parse_percent};

use super::{Intent, Keep, Write};
use crate::{cgroup, host::EntryKind, host::Host};

const CPU: &str = "/sys/devices/system/cpu";
const NO_FREQUENCY: &str = "the machine has no frequency to set (no cpufreq)";

/// How deep groups are searched for sets of processors.
const DEEPEST: u32 = 8;

/// Numbers of a list such as `0-2,5` (Documentation/admin-guide/cputopology.rst).
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

/// The processors that are online.
pub(super) fn online_now(host: &dyn Host) -> Vec<u32> {
    listed(host, "online")
}

fn switch_of(number: u32) -> PathBuf {
    Path::new(CPU).join(format!("cpu{number}/online"))
}

/// Leaves so many processors online, those with the lowest numbers; offline ones are brought back
/// where there are too few. One without a switch, as the first often is, stays.
pub(super) fn online(host: &dyn Host, value: &Value) -> Intent {
    let Value::Count(wanted) = value else {
        return Intent::refused("cpus", value.to_string(), "no number");
    };
    let wanted = usize::try_from(*wanted).unwrap_or(usize::MAX);
    let now = online_now(host);
    if now.is_empty() {
        return Intent::refused("cpus", value.to_string(), "the kernel tells of no processors");
    }
    let mut intent = Intent::default();
    let switchable = |number: &u32| host.entry(&switch_of(*number)).is_ok();
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
        intent.warnings.push(Warning::ReadBack {
            setting: "cpus".into(),
            wanted: wanted.to_string(),
            found: format!("{count}: there are no others that can be switched"),
        });
    }
    for number in numbers {
        intent.write(format!("cpus (cpu{number} online)"), switch_of(number), state);
    }
    if state == "0" && !intent.writes.is_empty() {
        intent.keeps = vec![Keep { files: sets(host), basis: None }];
    }
    intent.fact("cpus", Path::new(CPU).join("online"), "");
    intent
}

/// The sets of processors of groups of version 1, parents first
/// (Documentation/admin-guide/cgroup-v1/cpusets.rst).
fn sets(host: &dyn Host) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mounts = host.mounts().unwrap_or_default();
    let listed = |options: &str| options.split(',').any(|option| option == "cpuset");
    if let Some(mount) = mounts.iter().find(|m| m.fstype == "cgroup" && listed(&m.super_options)) {
        sets_below(host, &mount.target, DEEPEST, &mut files);
    }
    files
}

fn sets_below(host: &dyn Host, group: &Path, depth: u32, files: &mut Vec<PathBuf>) {
    for name in host.list(group).unwrap_or_default() {
        let child = group.join(name);
        if host.entry(&child).is_ok_and(|entry| entry.kind == EntryKind::Directory) {
            files.push(child.join("cpuset.cpus"));
            if depth > 0 {
                sets_below(host, &child, depth - 1, files);
            }
        }
    }
}

/// The policies of the processors' frequency: name and directory, in the order of their numbers.
pub(super) fn policies(host: &dyn Host) -> Vec<(String, PathBuf)> {
    let folder = Path::new(CPU).join("cpufreq");
    let names = host.list(&folder).unwrap_or_default().into_iter();
    let number = |name: &String| name.strip_prefix("policy").and_then(|n| n.parse::<u32>().ok());
    let mut policies: Vec<_> = names.filter_map(|name| Some((number(&name)?, name))).collect();
    policies.sort_unstable();
    let with_path = |(_, name): (u32, String)| (name.clone(), folder.join(&name));
    let there = |(_, path): &(String, PathBuf)| {
        // A policy without processors that are online answers nothing.
        host.read(&path.join("scaling_governor")).is_ok()
    };
    policies.into_iter().map(with_path).filter(there).collect()
}

/// The governor of every policy.
pub(super) fn governor(host: &dyn Host, value: &Value) -> Intent {
    let mut intent = Intent::default();
    for (name, folder) in policies(host) {
        let path = folder.join("scaling_governor");
        intent.fact(&format!("cpu_governor.{name}"), path.clone(), "");
        intent.write(format!("cpu_governor of {name}"), path, value.to_string());
    }
    if intent.writes.is_empty() {
        return Intent::refused("cpu_governor", value.to_string(), NO_FREQUENCY);
    }
    intent
}

/// The speed of all processors, as a share of the highest.
pub(super) fn speed(host: &dyn Host, value: &Value) -> Intent {
    let share = match parse_percent(&value.to_string()) {
        Ok(share) => share,
        Err(error) => return Intent::refused("cpu_speed", value.to_string(), &error.message),
    };
    let policies = policies(host);
    if policies.is_empty() {
        // All of the time is what there is anyway.
        return Intent { share: Some(share).filter(|share| *share < 100), ..Intent::default() };
    }
    let mut intent = Intent::default();
    for (name, folder) in policies {
        if let Err(why) = fix(host, &mut intent, &name, &folder, share) {
            intent.warnings.push(Warning::ReadBack {
                setting: format!("cpu_speed of {name}"),
                wanted: value.to_string(),
                found: why,
            });
        }
    }
    intent
}

/// Fixes the frequency of a policy: lowest and highest are the same, at the nearest frequency there
/// is. The lowest is above the highest at no time, neither now nor when it is undone in reverse:
/// the kernel would refuse that, or move the other one.
fn fix(
    host: &dyn Host,
    intent: &mut Intent,
    name: &str,
    folder: &Path,
    share: u8,
) -> Result<(), String> {
    let told = |file: &str| -> Result<u64, String> {
        let text = host.read(&folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
        text.trim().parse().map_err(|_| format!("{file} reads `{}`", text.trim()))
    };
    let highest = told("cpuinfo_max_freq")?;
    let wanted = highest * u64::from(share) / 100;
    let lowest = told("cpuinfo_min_freq").unwrap_or(0);
    let steps: Vec<u64> = ["scaling_available_frequencies", "scaling_boost_frequencies"]
        .iter()
        .filter_map(|file| host.read(&folder.join(file)).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<_>>())
        .collect();
    let nearest = steps.into_iter().min_by_key(|step: &u64| (step.abs_diff(wanted), *step));
    let frequency = nearest.unwrap_or_else(|| wanted.max(lowest));
    let setting = |which: &str| format!("cpu_speed of {name} ({which}, kHz)");
    if frequency != wanted {
        intent.warnings.push(Warning::ReadBack {
            setting: format!("cpu_speed of {name} (kHz)"),
            wanted: wanted.to_string(),
            found: format!("{frequency}, the nearest it has"),
        });
    }
    let mut files = ["scaling_min_freq", "scaling_max_freq"];
    if frequency >= told("scaling_min_freq")? {
        files.reverse();
    }
    for file in files {
        let which = if file == "scaling_min_freq" { "least" } else { "most" };
        // Firmware and what cools the machine hold it below that for as long as they must: it reads
        // as the least of all limits, but keeps what was written (`cpufreq_set_policy` in
        // drivers/cpufreq/cpufreq.c).
        intent.writes.push(Write {
            setting: setting(which),
            path: folder.join(file),
            text: frequency.to_string(),
            from: None,
            moves: true,
            basis: None,
        });
    }
    intent.fact(&format!("cpu_speed.{name}"), folder.join("scaling_max_freq"), " kHz");
    Ok(())
}

/// That time stands in for speed.
pub(super) fn stand_in(share: u8) -> Warning {
    Warning::StandIn {
        wanted: format!("cpu_speed {share}%"),
        instead: format!(
            "this process and its programs get {share}% of the time of as many processors as it \
             has workers, by a quota; the kernel's own threads run at full speed"
        ),
        why: NO_FREQUENCY.into(),
    }
}

/// Whether the quota of the cpu controller is there to stand in for the speed.
pub(super) fn quota_here(host: &dyn Host) -> Result<(), String> {
    let (version, home) = cgroup::home(host, "cpu")?;
    match version {
        cgroup::Version::V1 if host.entry(&home.join("cpu.cfs_period_us")).is_err() => {
            Err("the kernel has no quota of processor time (CONFIG_CFS_BANDWIDTH)".into())
        }
        cgroup::Version::V1 | cgroup::Version::V2 => Ok(()),
    }
}
