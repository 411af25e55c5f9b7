//! External directory: a directory on another filesystem, which copy tasks use as their source and
//! target.
//!
//! By default, the directory is in memory (`/dev/shm`), so that only the filesystem under test is
//! measured. A plan may set another path. This path must not share a disk with the storage, because
//! the copy task and the filesystem under test would compete for the disk.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use model::{Environment, StorageKind};

use super::{Rig, follow};
use crate::{
    base::Base,
    device::Backing,
    error::RigError,
    host::Host,
    mount::holder,
    probe,
    sysfs::{device_of, name_of},
    undo::PREFIX,
};

/// Default parent directory, which is a tmpfs on all common distributions (shm_open(3)).
const DEFAULT: &str = "/dev/shm";

/// External directory with its environment facts.
#[derive(Clone, Debug)]
pub(super) struct ExternalDirectory {
    directory: PathBuf,
    pub(super) facts: Environment,
}

impl Rig {
    /// Returns a directory on another filesystem, for tasks that copy files from and to it. The
    /// directory is created empty on the first call and removed with the rig. After the first call,
    /// [`Rig::environment`] contains facts about it. If the directory is in memory, its files count
    /// towards the memory limit of the plan, and they cannot be swapped out. A plan with a memory
    /// limit must reserve memory for these files or set another path.
    ///
    /// # Errors
    /// [`RigError::ExternalDirectory`] if the path of the plan shares a filesystem or a disk with
    /// the storage under test. [`RigError::Directory`] if the path does not exist or the directory
    /// cannot be created.
    pub fn external_directory(&mut self) -> Result<PathBuf, RigError> {
        if let Some(external) = &self.external {
            return Ok(external.directory.clone());
        }
        let host = Arc::clone(&self.base.shared.host);
        let (parent, fallback) = self.external_parent(&*host);
        let parent = follow(&*host, &parent)?;
        let shared = self.shared_with_storage(&*host, &parent);
        if let (Some(why), Some(_)) = (&shared, &self.base.storage.external_directory) {
            return Err(RigError::ExternalDirectory { path: parent, why: why.clone() });
        }
        let run_id = &self.base.options.run_id;
        let tree = parent.join(format!("{PREFIX}{run_id}-external"));
        // The marker is next to the directory, not in it.
        let directory = tree.join("data");
        let mut journaled = self.base.shared.journaled();
        journaled.tree(&tree, run_id)?;
        let what = format!("mkdir {}", directory.display());
        let (made, _) = journaled.execute(what, |host| host.make_directory(&directory));
        made.map_err(|source| RigError::Directory { path: directory.clone(), source })?;
        drop(journaled);
        let mut facts = Environment::default();
        facts.set("external_directory.path", parent.display().to_string());
        if let Some(mount) = host.mounts().ok().as_deref().and_then(|all| holder(all, &parent)) {
            facts.set("external_directory.fstype", &mount.fstype);
            facts.set("external_directory.source", &mount.source);
        }
        if fallback {
            facts.set("external_directory.instead_of", DEFAULT);
        }
        if let Some(why) = shared {
            facts.set("external_directory.shares", why);
        }
        self.external = Some(ExternalDirectory { directory: directory.clone(), facts });
        Ok(directory)
    }

    /// Parent of the directory. True if the default does not exist, so that the state directory is
    /// used instead.
    fn external_parent(&self, host: &dyn Host) -> (PathBuf, bool) {
        match &self.base.storage.external_directory {
            Some(named) => (named.into(), false),
            None if host.entry(Path::new(DEFAULT)).is_ok() => (DEFAULT.into(), false),
            None => {
                (self.base.mount_point.parent().unwrap_or(&self.base.mount_point).to_owned(), true)
            }
        }
    }

    /// Description of the filesystem or disk that a path shares with the storage under test; `None`
    /// if nothing is shared.
    fn shared_with_storage(&self, host: &dyn Host, parent: &Path) -> Option<String> {
        self.levels().find_map(|level| shared_with(level, host, parent))
    }
}

/// Description of the filesystem or disk that a path shares with a level of the storage.
fn shared_with(level: &Base, host: &dyn Host, parent: &Path) -> Option<String> {
    let of_filesystem = |path: &Path| host.entry(path).ok().map(|entry| entry.identity.device);
    let (below, names) = match &level.backing {
        Backing::Directory(path) => {
            if of_filesystem(path) == of_filesystem(parent) {
                return Some("it is on the filesystem under test".into());
            }
            (device_of(host, path), Vec::new())
        }
        Backing::Images(images) => {
            let image_directory = images.first().and_then(|image| image.path.parent());
            (
                image_directory.and_then(|image_directory| device_of(host, image_directory)),
                Vec::new(),
            )
        }
        Backing::Devices(devices) => {
            (None, devices.iter().map(|device| name_of(device.path())).collect())
        }
    };
    if matches!(level.storage.kind, StorageKind::Image { .. } | StorageKind::Devices { .. })
        && parent.starts_with(&level.mount_point)
    {
        return Some("the filesystem under test is mounted there".into());
    }
    let disks = |name: &String| probe::disks(host, name);
    let ours: Vec<String> = below.iter().chain(&names).flat_map(disks).collect();
    let theirs = device_of(host, parent).as_ref().map(disks)?;
    let common = theirs.into_iter().find(|disk| ours.contains(disk))?;
    Some(format!("it and the storage under test are both on {common}"))
}
