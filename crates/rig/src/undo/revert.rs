//! How each change is undone: idempotent, and only while it is still the same thing.

use std::{
    io,
    path::{Path, PathBuf},
};

use model::Nanos;

use super::{Basis, Built, Change, PREFIX, layer};
use crate::{
    host::{EntryKind, Host, Identity},
    mount::MountEntry,
};

/// How often and how long something busy is waited for: 5 s in all, for what udev, a shell or a
/// dying process holds open for a moment.
pub(super) const TRIES: u32 = 50;
pub(super) const PAUSE: Nanos = Nanos(100_000_000);

/// Where files of settings are, besides in control groups.
const SETTINGS: [&str; 2] = ["/sys", "/proc/sys"];
/// Filesystems of control groups (cgroups(7)).
const GROUPS: [&str; 2] = ["cgroup", "cgroup2"];

/// What became of a change that need not be thought of any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is undone, or was never made, or its thing is gone.
    Undone,
    /// It is left alone for good, and why.
    Left(String),
}

/// Undoes a change. What is no longer there, or is another thing by now, counts as undone.
///
/// # Errors
/// Why it cannot be undone, and what to do.
pub(crate) fn revert(host: &dyn Host, change: &Change) -> Result<Outcome, String> {
    match change {
        Change::Directory { path, identity } => directory(host, path, *identity),
        Change::Tree { path, token, identity } => tree(host, path, token, *identity),
        Change::Image { path, identity } => image(host, path, *identity),
        Change::Loops { image, identity, made } => {
            detach(host, image, *identity)?;
            made.map_or(Ok(()), |number| remove(host, number))
        }
        Change::Mount { target, fstype, device } => mount(host, target, fstype, device.as_deref()),
        Change::Layer { kind: Built::Array, uuid, members, .. } => {
            layer::array(host, uuid, members)
        }
        Change::Layer { kind: Built::Mapped, uuid, .. } => layer::mapped(host, uuid),
        Change::Fault { uuid, sound, .. } => layer::sound(host, uuid, sound.as_deref()),
        Change::Setting { path, before, after, moves, basis } => {
            let after = after.as_deref().filter(|_| !moves);
            return founded(host, basis.as_ref(), || setting(host, path, before, after, *moves));
        }
        Change::Kept { values, basis } => {
            return founded(host, basis.as_ref(), || kept(host, values));
        }
        Change::Group { path, home, identity } => group(host, path, home, *identity),
    }
    .map(|()| Outcome::Undone)
}

/// The value of a setting: of a sysfs choice such as `none [bfq]` the one in brackets, else the
/// text.
pub(crate) fn selected(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text.trim(), |(choice, _)| choice)
}

fn gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Whether the path leads to another file or directory than the one that was made.
fn replaced(host: &dyn Host, path: &Path, identity: Option<Identity>) -> bool {
    let is_other = |made| host.entry(path).is_ok_and(|entry| entry.identity != made);
    identity.is_some_and(is_other)
}

/// Removes a directory if it is empty. If another one has taken its name, ours is gone.
fn directory(host: &dyn Host, path: &Path, identity: Option<Identity>) -> Result<(), String> {
    if replaced(host, path, identity) {
        return Ok(());
    }
    match host.remove_directory(path) {
        Err(error) if !gone(&error) => Err(format!("{error}; look what is in it and remove it")),
        _ => Ok(()),
    }
}

fn tree(
    host: &dyn Host,
    path: &Path,
    token: &str,
    identity: Option<Identity>,
) -> Result<(), String> {
    if !generated(path) {
        return Err("it is not a directory that fslab named; remove it yourself".into());
    }
    let mounts = host.mounts().map_err(|error| error.to_string())?;
    if let Some(mount) = mounts.iter().find(|mount| mount.target.starts_with(path)) {
        return Err(format!("{} is mounted below it; unmount that", mount.target.display()));
    }
    host.remove_marked(path, token, identity).map_err(|refusal| refusal.to_string())
}

fn image(host: &dyn Host, path: &Path, identity: Option<Identity>) -> Result<(), String> {
    let entry = match host.entry(path) {
        Err(error) if gone(&error) => return Ok(()),
        entry => entry.map_err(|error| error.to_string())?,
    };
    let ours = match identity {
        Some(identity) => entry.identity == identity,
        // Killed between making it and writing down which file it is: empty, and named by us.
        None => entry.kind == EntryKind::File && entry.size.0 == 0,
    };
    if !ours && identity.is_some() {
        return Ok(()); // ours is gone, and another file has taken its name
    }
    if !ours || !generated(path) {
        return Err("cannot be told to be fslab's; remove it yourself if it is".into());
    }
    // Whatever has taken its name since then is not removed.
    host.remove_same(path, entry.identity).map(drop).map_err(|error| error.to_string())
}

fn generated(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}

fn detach(host: &dyn Host, image: &Path, identity: Identity) -> Result<(), String> {
    let mut trouble = String::new();
    let there = host.entry(image).is_ok_and(|entry| entry.identity == identity);
    for _ in 0..TRIES {
        let devices = host.loops_of(identity).map_err(|error| error.to_string())?;
        let ours: Vec<_> = devices.iter().filter(|d| there || of(host, d, image)).collect();
        if ours.is_empty() {
            return Ok(());
        }
        for device in ours {
            // A device that is open elsewhere goes when its last user does; so look again.
            match host.detach_loop(device, identity) {
                Ok(()) => trouble = format!("{} is still in use", device.display()),
                Err(error) => trouble = format!("{}: {error}", device.display()),
            }
        }
        if host.loops_of(identity).is_ok_and(|devices| devices.is_empty()) {
            return Ok(());
        }
        host.sleep(PAUSE);
    }
    Err(format!("{trouble}; end what uses it, then `fslab clean`"))
}

/// Removes a loop device that was made for an image, unless somebody else uses it by now.
fn remove(host: &dyn Host, number: u32) -> Result<(), String> {
    let node = format!("/sys/block/loop{number}/loop/backing_file");
    for _ in 0..TRIES {
        match host.remove_loop(number) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                if host.entry(Path::new(&node)).is_ok() {
                    return Ok(());
                }
                host.sleep(PAUSE);
            }
            answer => return answer.map_err(|error| format!("/dev/loop{number}: {error}")),
        }
    }
    Err(format!("/dev/loop{number} is held open; end what does, then `fslab clean`"))
}

/// Whether sysfs names the image behind a loop device. Asked once the image is gone from its path:
/// its inode number may be another file's by now.
fn of(host: &dyn Host, device: &Path, image: &Path) -> bool {
    let name = device.file_name().unwrap_or_default().to_string_lossy();
    let backing = host.read(&Path::new("/sys/block").join(&*name).join("loop/backing_file"));
    backing.map_or(true, |text| text.trim_end().starts_with(&*image.to_string_lossy()))
}

/// Unmounts what is topmost at the target, as long as it is the filesystem that was mounted.
fn mount(host: &dyn Host, target: &Path, fstype: &str, device: Option<&str>) -> Result<(), String> {
    let mut tries = 0;
    loop {
        let mounts = host.mounts().map_err(|error| error.to_string())?;
        let ours = |mount: &MountEntry| {
            mount.fstype == fstype && device.is_none_or(|device| device == mount.device)
        };
        let mut there = mounts.iter().filter(|mount| mount.target == target).rev();
        let Some(top) = there.next() else { return Ok(()) };
        if !ours(top) && device.is_some() && !there.any(ours) {
            return Ok(()); // ours is gone
        }
        if !ours(top) {
            return Err(format!("{} is mounted there by somebody else; unmount it", top.fstype));
        }
        match host.unmount(target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES => {
                tries += 1;
                host.sleep(PAUSE);
            }
            Err(error) => {
                let look = format!("`fuser -vm {}` tells who uses it", target.display());
                return Err(format!("{error}; {look}; end that, then `fslab clean`"));
            }
        }
    }
}

/// The path of a file of the kernel, links followed: one below `/sys`, `/proc/sys`, or where
/// control groups are mounted. `None` if it does not exist.
///
/// # Errors
/// If it is anywhere else: no line of a journal makes fslab write there.
fn kernel_file(host: &dyn Host, path: &Path) -> Result<Option<PathBuf>, String> {
    let real = match host.follow(path) {
        Err(error) if gone(&error) => return Ok(None),
        real => real.map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let mounts = host.mounts().map_err(|error| error.to_string())?;
    let groups = mounts.iter().filter(|mount| GROUPS.contains(&mount.fstype.as_str()));
    let mut places =
        SETTINGS.map(Path::new).into_iter().chain(groups.map(|mount| mount.target.as_path()));
    match places.any(|place| host.follow(place).is_ok_and(|place| real.starts_with(place))) {
        true => Ok(Some(real)),
        false => Err(format!(
            "{} is not below /sys, /proc/sys, or a mount of control groups, so it is not written \
             to; see who changed the journal",
            path.display()
        )),
    }
}

/// The file of a setting and what it reads as; `None` when the device it belonged to is gone.
fn reads(host: &dyn Host, path: &Path) -> Result<Option<(PathBuf, String)>, String> {
    let Some(real) = kernel_file(host, path)? else { return Ok(None) };
    match host.read(&real) {
        Err(error) if gone(&error) => Ok(None),
        text => text
            .map(|text| Some((real, selected(&text).to_owned())))
            .map_err(|error| format!("{}: {error}", path.display())),
    }
}

/// Undoes what belongs to another setting, unless somebody else has changed that one.
fn founded(
    host: &dyn Host,
    basis: Option<&Basis>,
    undo: impl FnOnce() -> Result<Outcome, String>,
) -> Result<Outcome, String> {
    let Some(Basis { path, value }) = basis else { return undo() };
    match reads(host, path)? {
        None => Ok(Outcome::Undone),
        Some((_, now)) if now != *value => {
            let path = path.display();
            Ok(Outcome::Left(format!("it belongs to {path}, which reads `{now}`, not `{value}`")))
        }
        Some(_) => undo(),
    }
}

fn setting(
    host: &dyn Host,
    path: &Path,
    before: &str,
    after: Option<&str>,
    moves: bool,
) -> Result<Outcome, String> {
    let Some((real, now)) = reads(host, path)? else { return Ok(Outcome::Undone) };
    // What the kernel has moved there for the moment may move on to what was asked for.
    if now == before && !moves {
        return Ok(Outcome::Undone);
    }
    if let Some(after) = after.filter(|after| *after != now) {
        return Ok(Outcome::Left(format!("reads `{now}`, not `{after}` as the run left it")));
    }
    let cure = || format!("write `{before}` to {} yourself", path.display());
    match host.write(&real, before) {
        Err(error) if now != before => Err(format!("{error}; {}", cure())),
        _ => Ok(Outcome::Undone),
    }
}

/// Writes all of them back before it tells of the first that could not be.
fn kept(host: &dyn Host, values: &[(PathBuf, String)]) -> Result<Outcome, String> {
    let mut answer = Ok(Outcome::Undone);
    for (path, before) in values {
        answer = answer.and(setting(host, path, before, None, false));
    }
    answer
}

fn group(
    host: &dyn Host,
    path: &Path,
    home: &Path,
    identity: Option<Identity>,
) -> Result<(), String> {
    if kernel_file(host, path)?.is_none() || replaced(host, path, identity) {
        return Ok(());
    }
    kernel_file(host, home)?;
    let mut trouble = String::new();
    for _ in 0..TRIES {
        let pids = match host.read(&path.join("cgroup.procs")) {
            Err(error) if gone(&error) => return Ok(()),
            text => text.map_err(|error| error.to_string())?,
        };
        for pid in pids.split_whitespace() {
            if let Err(error) = host.write(&home.join("cgroup.procs"), pid) {
                trouble = format!("process {pid} cannot be moved to {}: {error}", home.display());
            }
        }
        match host.remove_directory(path) {
            Ok(()) => return Ok(()),
            Err(error) if gone(&error) => return Ok(()),
            Err(error) if trouble.is_empty() => trouble = error.to_string(),
            Err(_) => {}
        }
        host.sleep(PAUSE);
    }
    Err(format!("{trouble}; move its processes away and remove it with rmdir"))
}
