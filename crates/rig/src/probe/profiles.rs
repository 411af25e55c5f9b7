//! Distribution of a btrfs filesystem over its devices, read back from the kernel.

use std::path::Path;

use model::Environment;

use crate::host::{EntryKind, Host};

const BTRFS_DIRECTORY: &str = "/sys/fs/btrfs";

/// Types of btrfs block groups. Block groups of type `mixed` contain data and metadata.
const KINDS: [&str; 4] = ["data", "metadata", "system", "mixed"];

/// Facts about a mounted btrfs that contains the first of these devices: its number of devices, and
/// the profiles of its block groups, from `/sys/fs/btrfs/UUID/allocation/KIND/PROFILE`
/// (`btrfs_sysfs_add_block_group_type` in fs/btrfs/sysfs.c). All profiles of a type are listed.
/// Empty for other filesystems.
pub fn profiles(host: &dyn Host, names: &[String]) -> Environment {
    let mut facts = Environment::default();
    let directory = Path::new(BTRFS_DIRECTORY);
    let Some(first) = names.first() else { return facts };
    let filesystems = host.list(directory).unwrap_or_default();
    let devices =
        |uuid: &String| host.list(&directory.join(uuid).join("devices")).unwrap_or_default();
    let Some(uuid) = filesystems.iter().find(|uuid| devices(uuid).contains(first)) else {
        return facts;
    };
    facts.set("filesystem.devices", devices(uuid).len().to_string());
    for kind in KINDS {
        let groups = directory.join(uuid).join("allocation").join(kind);
        let mut found = host.list(&groups).unwrap_or_default();
        // The directory also contains files with totals.
        found.retain(|name| {
            host.entry(&groups.join(name)).is_ok_and(|entry| entry.kind == EntryKind::Directory)
        });
        if !found.is_empty() {
            facts.set(format!("filesystem.{kind}_profile"), found.join("+"));
        }
    }
    facts
}
