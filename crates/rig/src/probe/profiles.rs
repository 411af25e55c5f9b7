//! How a filesystem spreads over its devices, read back from the kernel.

use std::path::Path;

use model::Environment;

use crate::host::{EntryKind, Host};

const FOLDER: &str = "/sys/fs/btrfs";

/// The kinds of block groups of btrfs: `mixed` holds data and metadata together.
const KINDS: [&str; 4] = ["data", "metadata", "system", "mixed"];

/// Profiles of a mounted btrfs on devices of these names, as
/// `/sys/fs/btrfs/UUID/allocation/KIND/PROFILE` has them (`btrfs_sysfs_add_block_group_type` in
/// fs/btrfs/sysfs.c), and how many devices the kernel counts to it. A kind with several profiles
/// tells all of them. Nothing for other filesystems.
pub fn profiles(host: &dyn Host, names: &[String]) -> Environment {
    let mut facts = Environment::default();
    let folder = Path::new(FOLDER);
    let Some(first) = names.first() else { return facts };
    let filesystems = host.list(folder).unwrap_or_default();
    let devices = |uuid: &String| host.list(&folder.join(uuid).join("devices")).unwrap_or_default();
    let Some(uuid) = filesystems.iter().find(|uuid| devices(uuid).contains(first)) else {
        return facts;
    };
    facts.set("filesystem.devices", devices(uuid).len().to_string());
    for kind in KINDS {
        let groups = folder.join(uuid).join("allocation").join(kind);
        let mut found = host.list(&groups).unwrap_or_default();
        // Beside the profiles are files with sums.
        found.retain(|name| {
            host.entry(&groups.join(name)).is_ok_and(|entry| entry.kind == EntryKind::Directory)
        });
        if !found.is_empty() {
            facts.set(format!("filesystem.{kind}_profile"), found.join("+"));
        }
    }
    facts
}
