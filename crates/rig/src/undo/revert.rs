//! How each change is undone: idempotent, and only while it is still the same thing.

use std::{
    io,
    path::{Path, PathBuf},
};

use model::Nanos;

use super::{Basis, Built, Change, MARKER, PREFIX, layer};
use crate::host::{EntryKind, Host, Identity};

/// How often and how long something busy is waited for: 5 s in all, for what udev, a shell or a
/// dying process holds open for a moment.
pub(super) const TRIES: u32 = 50;
pub(super) const PAUSE: Nanos = Nanos(100_000_000);

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
        Change::Directory { path } => directory(host, path),
        Change::Tree { path, token } => tree(host, path, token),
        Change::Image { path, identity } => image(host, path, *identity),
        Change::Loops { image, identity, made } => {
            detach(host, image, *identity)?;
            made.map_or(Ok(()), |number| remove(host, number))
        }
        Change::Mount { target, fstype } => mount(host, target, fstype),
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
        Change::Group { path, home } => group(host, path, home),
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

fn directory(host: &dyn Host, path: &Path) -> Result<(), String> {
    match host.remove_directory(path) {
        Err(error) if !gone(&error) => Err(format!("{error}; look what is in it and remove it")),
        _ => Ok(()),
    }
}

fn tree(host: &dyn Host, path: &Path, token: &str) -> Result<(), String> {
    let entry = match host.entry(path) {
        Err(error) if gone(&error) => return Ok(()),
        entry => entry.map_err(|error| error.to_string())?,
    };
    if entry.kind != EntryKind::Directory || !generated(path) {
        return Err("it is not a directory that fslab named; remove it yourself".into());
    }
    let names = host.list(path).map_err(|error| error.to_string())?;
    if names.is_empty() {
        return directory(host, path);
    }
    let marker = host.read(&path.join(MARKER)).unwrap_or_default();
    // Killed between making the marker and writing into it; nothing else is made before that.
    let begun = marker.is_empty() && names == [MARKER];
    if !begun && marker.trim() != token {
        let cure = "look what is in it and remove it yourself";
        return Err(format!("it does not carry the marker of this run; {cure}"));
    }
    let mounts = host.mounts().map_err(|error| error.to_string())?;
    if let Some(mount) = mounts.iter().find(|mount| mount.target.starts_with(path)) {
        return Err(format!("{} is mounted below it; unmount that", mount.target.display()));
    }
    // The marker goes last, so that an interrupted removal can be taken up again.
    for name in names.iter().filter(|name| *name != MARKER) {
        let path = path.join(name);
        let kind = host.entry(&path).map(|entry| entry.kind);
        let removed = match kind {
            Ok(EntryKind::Directory) => host.remove_tree(&path),
            _ => host.remove_file(&path),
        };
        removed.map_err(|error| format!("{}: {error}; remove it yourself", path.display()))?;
    }
    host.remove_file(&path.join(MARKER)).map_err(|error| error.to_string())?;
    directory(host, path)
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
    host.remove_file(path).map_err(|error| error.to_string())
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

fn mount(host: &dyn Host, target: &Path, fstype: &str) -> Result<(), String> {
    let mut tries = 0;
    loop {
        let mounts = host.mounts().map_err(|error| error.to_string())?;
        let Some(top) = mounts.iter().rfind(|mount| mount.target == target) else {
            return Ok(());
        };
        if top.fstype != fstype {
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

/// What a setting reads as; `None` when the device it belonged to is gone.
fn reads(host: &dyn Host, path: &Path) -> Result<Option<String>, String> {
    match host.read(path) {
        Err(error) if gone(&error) => Ok(None),
        text => text
            .map(|text| Some(selected(&text).to_owned()))
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
        Some(now) if now != *value => {
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
    let Some(now) = reads(host, path)? else { return Ok(Outcome::Undone) };
    // What the kernel has moved there for the moment may move on to what was asked for.
    if now == before && !moves {
        return Ok(Outcome::Undone);
    }
    if let Some(after) = after.filter(|after| *after != now) {
        return Ok(Outcome::Left(format!("reads `{now}`, not `{after}` as the run left it")));
    }
    let cure = || format!("write `{before}` to {} yourself", path.display());
    match host.write(path, before) {
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

fn group(host: &dyn Host, path: &Path, home: &Path) -> Result<(), String> {
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
