//! Facts about the machine, as it tells them itself. A fact it does not tell is absent.
//!
//! Names are dotted and stable, since runs are compared by them: `kernel.*`, `cpu.*`, `memory.*`,
//! `vm.*`, `clock.*`, `host.*`, `backing.*`, and `device.NAME.*`. Serial numbers are told as the
//! beginning of their hash: enough to tell whether two runs had the same device, and no more.

mod cleaner;
mod device;
mod machine;
mod profiles;

use std::path::Path;

use model::Environment;
use sha2::{Digest, Sha256};

pub(crate) use self::{cleaner::cleaner, device::disks};
pub use self::{device::device, machine::machine, profiles::profiles};
use crate::{
    host::{Host, Statistics},
    mount::{MountEntry, holder as mount_of},
    undo::selected,
};

fn put(environment: &mut Environment, name: impl Into<String>, text: &str) {
    let text = selected(text);
    if !text.is_empty() {
        environment.set(name, text);
    }
}

fn put_file(host: &dyn Host, environment: &mut Environment, name: impl Into<String>, path: &Path) {
    if let Ok(text) = host.read(path) {
        put(environment, name, &text);
    }
}

/// The first 32 bits of the SHA-256 of some bytes, in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Facts about the filesystem that holds a path, and its device: what lies under an image or
/// directory.
pub fn holder(host: &dyn Host, path: &Path) -> Environment {
    let mut facts = Environment::default();
    let mounts = host.mounts().unwrap_or_default();
    let Some(mount) = mount_of(&mounts, path) else { return facts };
    facts.set("backing.fstype", &mount.fstype);
    facts.set("backing.source", &mount.source);
    facts.set("backing.options", mount.resolved_options());
    if let Ok(Statistics { total, usable, .. }) = host.statistics(path) {
        facts.set("backing.size_bytes", total.0.to_string());
        facts.set("backing.usable_bytes", usable.0.to_string());
    }
    if let Some(name) = device_name(host, mount) {
        facts.set("backing.device", &name);
        facts.merge(device(host, &name));
    }
    facts
}

/// The kernel's name of the block device that holds a path; `None` where it is on none, or on many.
pub(crate) fn device_of(host: &dyn Host, path: &Path) -> Option<String> {
    let mounts = host.mounts().ok()?;
    device_name(host, mount_of(&mounts, path)?)
}

/// By device number where that is a block device's; filesystems with numbers of their own, such as
/// btrfs, tell their first device as the source, which is all of it only if there is no other.
fn device_name(host: &dyn Host, mount: &MountEntry) -> Option<String> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let number = Path::new("/sys/dev/block").join(&mount.device);
    if let Ok(node) = host.follow(&number) {
        return name(&node);
    }
    let node =
        host.follow(Path::new(&mount.source)).ok().filter(|_| mount.source.starts_with('/'))?;
    let found = name(&node)?;
    host.entry(&Path::new("/sys/class/block").join(&found)).ok()?;
    (mount.fstype != "btrfs" || single_btrfs(host, &found)).then_some(found)
}

/// Whether a btrfs that is seen by this device has no other: `/sys/fs/btrfs/UUID/devices` lists
/// them.
fn single_btrfs(host: &dyn Host, name: &str) -> bool {
    let folder = Path::new("/sys/fs/btrfs");
    let filesystems = host.list(folder).unwrap_or_default();
    let mut lists =
        filesystems.iter().filter_map(|uuid| host.list(&folder.join(uuid).join("devices")).ok());
    lists.any(|devices| devices.len() == 1 && devices[0] == name)
}

#[cfg(test)]
mod tests;
