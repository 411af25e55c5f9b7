//! A directory on another filesystem than the one under test, for tasks that copy from and to it.
//!
//! By default it is in memory (`/dev/shm`), so that what is measured is the filesystem under test
//! alone. A plan may name another place; that must not share a disk with the storage, or the two
//! would wait for each other.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use model::{Environment, Place};

use super::{Rig, follow};
use crate::{
    device::{Backing, name_of},
    error::RigError,
    host::Host,
    mount::holder,
    probe,
    undo::PREFIX,
};

/// Where it is unless the plan says otherwise: a tmpfs on every common distribution (shm_open(3)).
const DEFAULT: &str = "/dev/shm";

/// The directory, and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    directory: PathBuf,
    pub(super) facts: Environment,
}

impl Rig {
    /// A directory on another filesystem, for tasks that copy from and to it: made when it is first
    /// asked for, empty, removed with the rig. From then on [`Rig::environment`] tells what it is
    /// on. What lies in memory counts towards the storage's memory limit, and swap is denied there:
    /// a plan with both has to leave room for it, or name another place.
    ///
    /// # Errors
    /// [`RigError::Elsewhere`] when the plan names a place on the storage under test, and
    /// [`RigError::Directory`] when the directory cannot be made.
    pub fn elsewhere(&mut self) -> Result<PathBuf, RigError> {
        if let Some(there) = &self.elsewhere {
            return Ok(there.directory.clone());
        }
        let host = Arc::clone(&self.shared.host);
        let (place, fallback) = self.place_elsewhere(&*host);
        let place = follow(&*host, &place)?;
        let shared = self.shared_with_storage(&*host, &place);
        if let (Some(why), Some(_)) = (&shared, &self.storage.elsewhere) {
            return Err(RigError::Elsewhere { path: place, why: why.clone() });
        }
        let run_id = &self.options.run_id;
        let tree = place.join(format!("{PREFIX}{run_id}-elsewhere"));
        // The marker lies beside the directory, not in it.
        let directory = tree.join("data");
        let mut bench = self.shared.bench();
        bench.tree(&tree, run_id)?;
        let what = format!("mkdir {}", directory.display());
        let (made, _) = bench.act(what, |host| host.make_directory(&directory));
        made.map_err(|source| RigError::Directory { path: directory.clone(), source })?;
        drop(bench);
        let mut facts = Environment::default();
        facts.set("elsewhere.path", place.display().to_string());
        if let Some(mount) = host.mounts().ok().as_deref().and_then(|all| holder(all, &place)) {
            facts.set("elsewhere.fstype", &mount.fstype);
            facts.set("elsewhere.source", &mount.source);
        }
        if fallback {
            facts.set("elsewhere.instead_of", DEFAULT);
        }
        if let Some(why) = shared {
            facts.set("elsewhere.shares", why);
        }
        self.elsewhere = Some(Elsewhere { directory: directory.clone(), facts });
        Ok(directory)
    }

    /// Where it is to be, and whether that is for want of the default.
    fn place_elsewhere(&self, host: &dyn Host) -> (PathBuf, bool) {
        match &self.storage.elsewhere {
            Some(named) => (named.into(), false),
            None if host.entry(Path::new(DEFAULT)).is_ok() => (DEFAULT.into(), false),
            None => (self.mount_point.parent().unwrap_or(&self.mount_point).to_owned(), true),
        }
    }

    /// What a place shares with the storage under test, in words.
    fn shared_with_storage(&self, host: &dyn Host, place: &Path) -> Option<String> {
        let of_filesystem = |path: &Path| host.entry(path).ok().map(|entry| entry.identity.device);
        let (below, names) = match &self.backing {
            Backing::Directory(path) => {
                if of_filesystem(path) == of_filesystem(place) {
                    return Some("it is on the filesystem under test".into());
                }
                (probe::device_of(host, path), Vec::new())
            }
            Backing::Images(images) => {
                let folder = images.first().and_then(|image| image.path.parent());
                (folder.and_then(|folder| probe::device_of(host, folder)), Vec::new())
            }
            Backing::Devices(devices) => {
                (None, devices.iter().map(|device| name_of(device.path())).collect())
            }
        };
        if matches!(self.storage.place, Place::Image { .. } | Place::Devices { .. })
            && place.starts_with(&self.mount_point)
        {
            return Some("the filesystem under test is mounted there".into());
        }
        let disks = |name: &String| probe::disks(host, name);
        let ours: Vec<String> = below.iter().chain(&names).flat_map(disks).collect();
        let theirs = probe::device_of(host, place).as_ref().map(disks)?;
        let common = theirs.into_iter().find(|disk| ours.contains(disk))?;
        Some(format!("it is on {common}, as the storage under test is"))
    }
}
