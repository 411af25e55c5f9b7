//! Undo of arrays and mapped devices. Devices are identified by the UUID that fslab generated for
//! them, not by name. Devices with other UUIDs are not changed.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::revert::{PAUSE, TRIES};
use crate::host::{Host, Output};

const CLASS: &str = "/sys/class/block";
/// Hint for a missing program.
const INSTALL: &str = "install it, then run `fslab clean`";

/// Removes the mapped device with this UUID.
pub(super) fn mapped(host: &dyn Host, uuid: &str) -> Result<(), String> {
    let mut failure = String::new();
    for _ in 0..TRIES {
        let Some(name) = device_name(host, uuid)? else { return Ok(()) };
        let removed = run(host, &["dmsetup", "remove", &name])?;
        if !removed.success() {
            failure = format!("{name}: {}", removed.verdict());
            host.sleep(PAUSE);
        }
    }
    Err(format!("{failure}; stop the processes that use it, then run `fslab clean`"))
}

/// Disables the faults of the mapped device with this UUID. `table` is the table without faults;
/// `None` for a `dust` device, whose faults are disabled by a message.
///
/// The filesystem is not frozen (`--nolockfs`), because the freeze may hang after an I/O error.
pub(super) fn sound(host: &dyn Host, uuid: &str, table: Option<&str>) -> Result<(), String> {
    let Some(name) = device_name(host, uuid)? else { return Ok(()) };
    let commands: &[(&[&str], &str)] = match table {
        Some(table) => &[
            (&["dmsetup", "load", &name], table),
            (&["dmsetup", "resume", "--nolockfs", &name], ""),
        ],
        None => &[(&["dmsetup", "message", &name, "0", "disable"], "")],
    };
    for (argv, input) in commands {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let output = host.run_with_input(&argv, input);
        let output = output.map_err(|error| format!("cannot start dmsetup: {error}; {INSTALL}"))?;
        if !output.success() {
            return Err(format!(
                "{}: {}; then run `fslab clean`",
                argv.join(" "),
                output.verdict()
            ));
        }
    }
    Ok(())
}

/// Name of the mapped device with this UUID; `None` if there is none.
fn device_name(host: &dyn Host, uuid: &str) -> Result<Option<String>, String> {
    // Without the device mapper there are no mapped devices.
    let drivers = if_exists(host.read(Path::new("/proc/misc")), "/proc/misc")?.unwrap_or_default();
    if !drivers.lines().any(|line| line.split_whitespace().next_back() == Some("device-mapper")) {
        return Ok(None);
    }
    // dmsetup(8) is used because sysfs does not show a device whose table was never loaded.
    let list = ["dmsetup", "info", "--columns", "--noheadings", "--options", "name,uuid"];
    let list = run(host, &list)?;
    let ours = |line: &str| {
        let (name, id) = line.trim().split_once(':')?;
        (id == uuid).then(|| name.to_owned())
    };
    match list.stdout.lines().find_map(ours) {
        None if !list.success() => Err(list.verdict()),
        name => Ok(name),
    }
}

/// Stops the array with this UUID and wipes the superblocks of its members, so that the array is
/// not assembled again.
///
/// udev probes every member after a write and may assemble the array again. Therefore each attempt
/// lists the arrays again.
pub(super) fn array(host: &dyn Host, uuid: &str, members: &[PathBuf]) -> Result<(), String> {
    let arrays = || -> Result<Vec<String>, String> {
        let names = if_exists(host.list(Path::new(CLASS)), CLASS)?.unwrap_or_default();
        Ok(names.into_iter().filter(|name| name.starts_with("md")).collect())
    };
    let mut existing = Vec::new();
    for member in members {
        let member = member.display().to_string();
        if if_exists(host.entry(Path::new(&member)), &member)?.is_some() {
            existing.push(member);
        }
    }
    let mut members = existing;
    if arrays()?.is_empty() && members.is_empty() {
        return Ok(());
    }
    let mut failure = String::new();
    for _ in 0..TRIES {
        let mut left = false;
        for name in arrays()? {
            let node = format!("/dev/{name}");
            if !has_uuid(host, "--detail", &node, uuid)? {
                continue;
            }
            // The current members are added, because their names may have changed with a reboot.
            let slaves = Path::new(CLASS).join(&name).join("slaves");
            for below in if_exists(host.list(&slaves), &name)?.unwrap_or_default() {
                let member = format!("/dev/{below}");
                if !members.contains(&member) {
                    members.push(member);
                }
            }
            let stopped = run(host, &["mdadm", "--stop", &node])?;
            if !stopped.success() {
                left = true;
                failure = format!("{node}: {}", stopped.verdict());
            }
        }
        let stopped = !left;
        for member in members.iter().filter(|_| stopped) {
            if has_uuid(host, "--examine", member, uuid)? {
                let wiped = run(host, &["mdadm", "--zero-superblock", member])?;
                if !wiped.success() {
                    left = true;
                    failure = format!("{member}: {}", wiped.verdict());
                }
            }
        }
        if !left {
            return Ok(());
        }
        host.sleep(PAUSE);
    }
    Err(format!("{failure}; stop the processes that use it, then run `fslab clean`"))
}

/// True if an array (`--detail`) or the superblock of a member (`--examine`) has this UUID
/// (mdadm(8), `--export`). False for any other device, and for one that no longer exists.
fn has_uuid(host: &dyn Host, query: &str, node: &str, uuid: &str) -> Result<bool, String> {
    let output = run(host, &["mdadm", query, "--export", node])?;
    Ok(output.stdout.lines().any(|line| line.trim().strip_prefix("MD_UUID=") == Some(uuid)))
}

/// Result of an operation on a file that may not exist; `None` if it does not exist. Any other
/// error is returned, because ignoring it could leave the undo incomplete.
fn if_exists<T>(answer: io::Result<T>, what: &str) -> Result<Option<T>, String> {
    match answer {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        answer => {
            answer.map(Some).map_err(|error| format!("{what}: {error}; then run `fslab clean`"))
        }
    }
}

fn run(host: &dyn Host, argv: &[&str]) -> Result<Output, String> {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    host.run(&argv).map_err(|error| format!("cannot start {}: {error}; {INSTALL}", argv[0]))
}
