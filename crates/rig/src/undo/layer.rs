//! How arrays and mapped devices are undone: whatever bears the id that was drawn for them, by
//! whatever name it goes by now. What bears another id is left alone, whatever its name.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::revert::{PAUSE, TRIES};
use crate::host::{Host, Output};

const CLASS: &str = "/sys/class/block";
/// What to do about a program that is missing.
const AGAIN: &str = "install it, then `fslab clean`";

/// Removes the mapped device of that id.
pub(super) fn mapped(host: &dyn Host, uuid: &str) -> Result<(), String> {
    let mut trouble = String::new();
    for _ in 0..TRIES {
        let Some(name) = named(host, uuid)? else { return Ok(()) };
        let removed = run(host, &["dmsetup", "remove", &name])?;
        if !removed.success() {
            trouble = format!("{name}: {}", removed.verdict());
            host.sleep(PAUSE);
        }
    }
    Err(format!("{trouble}; end what uses it, then `fslab clean`"))
}

/// Makes the mapped device of that id sound: by the table under which it is, or, where it is one of
/// `dust`, by telling it.
///
/// The filesystem on it is not frozen meanwhile (`--nolockfs`), since one that has met an error may
/// not let itself be.
pub(super) fn sound(host: &dyn Host, uuid: &str, table: Option<&str>) -> Result<(), String> {
    let Some(name) = named(host, uuid)? else { return Ok(()) };
    let commands: &[(&[&str], &str)] = match table {
        Some(table) => &[
            (&["dmsetup", "load", &name], table),
            (&["dmsetup", "resume", "--nolockfs", &name], ""),
        ],
        None => &[(&["dmsetup", "message", &name, "0", "disable"], "")],
    };
    for (argv, input) in commands {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let output = host.run_told(&argv, input);
        let output = output.map_err(|error| format!("cannot start dmsetup: {error}; {AGAIN}"))?;
        if !output.success() {
            return Err(format!("{}: {}; then `fslab clean`", argv.join(" "), output.verdict()));
        }
    }
    Ok(())
}

/// The name of the mapped device of that id; `None` where there is none.
fn named(host: &dyn Host, uuid: &str) -> Result<Option<String>, String> {
    // Without the driver nothing is mapped.
    let drivers = present(host.read(Path::new("/proc/misc")), "/proc/misc")?.unwrap_or_default();
    if !drivers.lines().any(|line| line.split_whitespace().next_back() == Some("device-mapper")) {
        return Ok(None);
    }
    // Asked of dmsetup, since sysfs lacks a device whose table was never loaded.
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

/// Stops the array of that id, and wipes its superblocks so that nothing makes it again.
///
/// udev looks at every member that was written to and may make the array again in between; so it is
/// looked for anew after each try.
pub(super) fn array(host: &dyn Host, uuid: &str, members: &[PathBuf]) -> Result<(), String> {
    let arrays = || -> Result<Vec<String>, String> {
        let names = present(host.list(Path::new(CLASS)), CLASS)?.unwrap_or_default();
        Ok(names.into_iter().filter(|name| name.starts_with("md")).collect())
    };
    let mut there = Vec::new();
    for member in members {
        let member = member.display().to_string();
        if present(host.entry(Path::new(&member)), &member)?.is_some() {
            there.push(member);
        }
    }
    let mut members = there;
    if arrays()?.is_empty() && members.is_empty() {
        return Ok(());
    }
    let mut trouble = String::new();
    for _ in 0..TRIES {
        let mut left = false;
        for name in arrays()? {
            let node = format!("/dev/{name}");
            if !bears(host, "--detail", &node, uuid)? {
                continue;
            }
            // After a reboot its members may go by other names.
            let slaves = Path::new(CLASS).join(&name).join("slaves");
            for below in present(host.list(&slaves), &name)?.unwrap_or_default() {
                let member = format!("/dev/{below}");
                if !members.contains(&member) {
                    members.push(member);
                }
            }
            let stopped = run(host, &["mdadm", "--stop", &node])?;
            if !stopped.success() {
                left = true;
                trouble = format!("{node}: {}", stopped.verdict());
            }
        }
        let stopped = !left;
        for member in members.iter().filter(|_| stopped) {
            if bears(host, "--examine", member, uuid)? {
                let wiped = run(host, &["mdadm", "--zero-superblock", member])?;
                if !wiped.success() {
                    left = true;
                    trouble = format!("{member}: {}", wiped.verdict());
                }
            }
        }
        if !left {
            return Ok(());
        }
        host.sleep(PAUSE);
    }
    Err(format!("{trouble}; end what uses it, then `fslab clean`"))
}

/// Whether an array, or the superblock of a member, has that id (mdadm(8), `--export`). A device
/// that is none, or is gone, has none.
fn bears(host: &dyn Host, question: &str, node: &str, uuid: &str) -> Result<bool, String> {
    let told = run(host, &["mdadm", question, "--export", node])?;
    Ok(told.stdout.lines().any(|line| line.trim().strip_prefix("MD_UUID=") == Some(uuid)))
}

/// An answer about something that may not exist. Any other error is not taken for its absence:
/// undoing would then forget what is there.
fn present<T>(answer: io::Result<T>, what: &str) -> Result<Option<T>, String> {
    match answer {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        answer => answer.map(Some).map_err(|error| format!("{what}: {error}; then `fslab clean`")),
    }
}

fn run(host: &dyn Host, argv: &[&str]) -> Result<Output, String> {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    host.run(&argv).map_err(|error| format!("cannot start {}: {error}; {AGAIN}", argv[0]))
}
