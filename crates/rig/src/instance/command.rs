//! Instances whose filesystem is mounted by a command.
//!
//! Such a filesystem may have its data in a directory of another filesystem (overlayfs, gocryptfs)
//! or on a server (NFS). In the first case the directory is created for the instance. In the second
//! case the filesystem has files of other users, so the workload gets a separate directory, which
//! is removed before the filesystem is unmounted.

use std::path::{Path, PathBuf};

use model::Warning;

use super::{InstanceSpec, MountedFilesystem, step::StepCost};
use crate::{
    base::Base,
    caches,
    error::RigError,
    host::{Host, Output},
    journaled_host::{JournaledHost, mounting::CommandMount},
    mount::{MountCommand, Mounting},
    setup,
    sysfs::device_of,
    undo::{self, PREFIX},
};

/// Placement of a filesystem whose storage is a directory or a server.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// Directory for the data of the filesystem, empty at first.
    pub(super) directory: PathBuf,
    /// True if the filesystem stores its data in this directory only.
    is_private: bool,
}

impl Placement {
    /// Drops the data of the unmounted filesystem from memory. Returns a warning if data may still
    /// be cached.
    pub(super) fn drop_caches(
        &self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
    ) -> Result<Option<Warning>, RigError> {
        if self.is_private {
            return caches::evict(journaled, &self.directory);
        }
        if host.is_root() {
            caches::drop_devices(journaled, &[], &[])?;
        }
        let reason = "the server or the filesystem below may keep the data in its cache".into();
        Ok(Some(Warning::CacheNotDropped { reason, needs_root: false }))
    }
}

impl MountedFilesystem {
    /// Creates the directory for the data of the filesystem, and the mount point.
    pub(super) fn place(
        &mut self,
        rig: &Base,
        parent: &Path,
        spec: &InstanceSpec<'_>,
    ) -> Result<(), RigError> {
        let directory = self.make_directory(rig, parent)?;
        let is_private = setup::has_placeholder(spec.filesystem, spec.level, "{directory}");
        if !is_private {
            // The directory is not used, so neither is its device.
            self.counted.clear();
        }
        self.placement = Some(Placement { directory, is_private });
        let step = self.shared.journaled().directory(&self.mount_point)?;
        self.steps.push((step, format!("directory {}", self.mount_point.display())));
        Ok(())
    }

    /// Selects the directory of the workload in the mounted filesystem: its root if the filesystem
    /// is new, otherwise a new directory.
    pub(super) fn enter(
        &mut self,
        journaled: &mut JournaledHost,
        rig: &Base,
    ) -> Result<(), RigError> {
        if self.placement.as_ref().is_none_or(|placement| placement.is_private) {
            return Ok(());
        }
        let mount_point = self.mount_point.clone();
        let keep = |step| self.workspace = Some(step);
        self.directory = make_tree(journaled, rig, &mount_point, JournaledHost::marked_tree, keep)?;
        self.counted = device_of(&*self.shared.host, &mount_point).into_iter().collect();
        Ok(())
    }

    pub(super) fn mount(&mut self, journaled: &mut JournaledHost) -> Result<StepCost, RigError> {
        match self.mounting.clone() {
            None => Ok(StepCost::default()),
            Some(Mounting::Call(request)) => {
                let (step, elapsed) = journaled.mount(&request)?;
                self.mounted = Some(step);
                Ok(StepCost { elapsed, program: None })
            }
            Some(Mounting::Command(command)) => {
                let output = self.mount_by(journaled, &command)?;
                Ok(StepCost { elapsed: output.elapsed, program: output.cpu })
            }
        }
    }

    pub(super) fn unmount(&mut self, journaled: &mut JournaledHost) -> Result<StepCost, RigError> {
        let target = self.mount_point.clone();
        let step = self.mounted.ok_or_else(|| RigError::NotMounted { target: target.clone() })?;
        let cost = match &self.mounting {
            Some(Mounting::Command(command)) if !command.umount.is_empty() => {
                let (elapsed, program) =
                    journaled.unmount_by(step, &command.umount, &target, &self.daemons)?;
                StepCost { elapsed, program }
            }
            Some(Mounting::Command(_) | Mounting::Call(_)) | None => {
                let elapsed = journaled.unmount(step, &target)?;
                let elapsed = elapsed + journaled.wait_for_exit(&self.daemons);
                StepCost { elapsed, program: None }
            }
        };
        self.mounted = None;
        self.daemons.clear();
        Ok(cost)
    }

    /// Runs a mkfs program that mounts the new filesystem, and unmounts the filesystem.
    pub(super) fn make_mounted(
        &mut self,
        journaled: &mut JournaledHost,
        argv: Vec<String>,
        mounting: Mounting,
    ) -> Result<Output, RigError> {
        let Mounting::Command(command) = &mounting else {
            unreachable!("the catalog requires `mount_command` for `mkfs_mounts`")
        };
        let output = self.mount_by(journaled, &MountCommand { argv, ..command.clone() })?;
        self.mounting = Some(mounting);
        self.unmount(journaled)?;
        Ok(output)
    }

    fn mount_by(
        &mut self,
        journaled: &mut JournaledHost,
        command: &MountCommand,
    ) -> Result<Output, RigError> {
        let CommandMount { step, output, daemons } = journaled.mount_by(command)?;
        self.mounted = Some(step);
        self.daemons = daemons;
        Ok(output)
    }
}

/// Creates a directory with a marker, and in it the returned directory for data. The undo step is
/// passed to `keep` before the second directory is created. `make` is [`JournaledHost::tree`] or
/// [`JournaledHost::marked_tree`].
pub(super) fn make_tree(
    journaled: &mut JournaledHost,
    rig: &Base,
    parent: &Path,
    make: impl FnOnce(&mut JournaledHost, &Path, &str) -> Result<undo::Step, RigError>,
    keep: impl FnOnce((undo::Step, String)),
) -> Result<PathBuf, RigError> {
    let run_id = &rig.options.run_id;
    let tree = parent.join(format!("{PREFIX}{run_id}"));
    // The marker is next to the directory of the workload, not in it.
    let directory = tree.join("data");
    let step = make(journaled, &tree, run_id)?;
    keep((step, format!("directory {}", tree.display())));
    let (made, _) = journaled
        .execute(format!("mkdir {}", directory.display()), |host| host.make_directory(&directory));
    made.map_err(|source| RigError::Directory { path: directory.clone(), source })?;
    Ok(directory)
}
