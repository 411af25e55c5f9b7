//! Environment facts: properties of the machine, its devices, and its filesystems, read from the
//! kernel. Facts that are not available are omitted.
//!
//! The names of facts must not change, because runs are compared by them: `kernel.*`, `cpu.*`,
//! `memory.*`, `vm.*`, `clock.*`, `host.*`, `backing.*`, `filesystem.*`, and `device.NAME.*`;
//! `level.NAME.*` for a level of the axis `device`.
//! Instead of a serial number, the beginning of its hash is recorded, which is sufficient to
//! compare the devices of two runs.

mod cleaner;
mod device;
mod machine;
mod profiles;

use std::path::Path;

use model::Environment;
use sha2::{Digest, Sha256};

pub(crate) use self::{
    cleaner::cleaner,
    device::{disks, model, rotational},
};
pub use self::{device::device, machine::machine, profiles::profiles};
use crate::{
    host::{Host, Statistics},
    mount::holder as mount_of,
    sysfs::{device_name, selected},
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

/// First 32 bits of the SHA-256 hash, in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..4])
}

/// Facts about the filesystem that contains an image file or a directory, and about the device of
/// this filesystem.
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

#[cfg(test)]
mod tests;
