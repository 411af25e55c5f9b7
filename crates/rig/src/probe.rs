//! Environment facts of the machine, read from the kernel. Facts that are not available are
//! omitted.
//!
//! Names are dotted and stable, because runs are compared by them: `kernel.*`, `cpu.*`, `memory.*`,
//! `vm.*`, `clock.*`, `host.*`, `backing.*`, and `device.NAME.*`. Serial numbers are recorded as
//! the beginning of their hash, sufficient to compare the devices of two runs.

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

/// First 32 bits of the SHA-256 of some bytes, in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Facts about the filesystem that contains a path and about its device, below an image or
/// directory.
pub fn holder(host: &dyn Host, path: &Path) -> Environment {
    let mut facts = Environment::default();
    let mounts = host.mounts().unwrap_or_default();
    let Some(mount) = mount_of(&mounts, path) else { return facts };
    facts.set("backing.fstype", &mount.fstype);
    facts.set("backing.source", &mount.source);
    facts.set("backing.options", mount.resolved_options());
    if let Ok(Statistics { total, available, .. }) = host.statistics(path) {
        facts.set("backing.size_bytes", total.0.to_string());
        facts.set("backing.usable_bytes", available.0.to_string());
    }
    if let Some(name) = device_name(host, mount) {
        facts.set("backing.device", &name);
        facts.merge(device(host, &name));
    }
    facts
}

/// Kernel name of the block device that contains a path; `None` if there is none or several.
pub(crate) fn device_of(host: &dyn Host, path: &Path) -> Option<String> {
    let mounts = host.mounts().ok()?;
    device_name(host, mount_of(&mounts, path)?)
}

/// Found by device number if it is that of a block device. Filesystems with generated numbers, such
/// as btrfs, report their first device as the source, which is sufficient only if there is no
/// other.
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

/// True if the btrfs filesystem on this device has no other device: `/sys/fs/btrfs/UUID/devices`
/// lists them.
fn single_btrfs(host: &dyn Host, name: &str) -> bool {
    let btrfs = Path::new("/sys/fs/btrfs");
    let filesystems = host.list(btrfs).unwrap_or_default();
    let mut lists =
        filesystems.iter().filter_map(|uuid| host.list(&btrfs.join(uuid).join("devices")).ok());
    lists.any(|devices| devices.len() == 1 && devices[0] == name)
}

#[cfg(test)]
mod tests;
