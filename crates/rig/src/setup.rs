//! Stages of the `setup` of a plan: the operations on a filesystem between mkfs and the workload.
//!
//! The input is the `setup` of a plan and the types of the filesystem before and after a
//! conversion. The output is the list of all mounts, unmounts, source trees, removals, and
//! programs, in the order in which an instance executes them; `fslab show` prints this list. The
//! filesystem is mounted or unmounted only if the next step requires it. After the last stage, the
//! filesystem is not mounted.
//!
//! A converter requires exclusive access to the device, so the last program that runs while the
//! filesystem is unmounted is the converter. Mounts before it use the original type and only the
//! fixed options of its catalog entry, because the options of the plan are for the new type. Mounts
//! after it use the new type and the options of the plan. Without `converted_to`, all mounts use
//! the options of the plan.

use std::path::{Path, PathBuf};

use model::{Bytes, FilesystemLevel, SetupStep};

use crate::{
    catalog::{Filesystem, fill},
    mount::{MountCommand, MountRequest, Mounting},
};

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage<'a> {
    /// Mounts the filesystem.
    Mount {
        /// Catalog entry of the filesystem type.
        filesystem: &'a Filesystem,
        /// Mount parameters.
        mounting: Mounting,
    },
    /// Unmounts the filesystem.
    Unmount,
    /// Writes a generated source tree.
    Populate {
        /// Directory of the tree, which is created.
        directory: PathBuf,
        /// Number of files.
        files: u64,
    },
    /// Removes a directory with its contents.
    Remove {
        /// Directory.
        directory: PathBuf,
    },
    /// Runs a program.
    Run {
        /// Program and arguments.
        argv: Vec<String>,
    },
}

/// Devices, mount point, and size of a filesystem instance.
#[derive(Clone, Copy, Debug)]
pub struct SetupTarget<'a> {
    /// Devices, in the order of the plan.
    pub devices: &'a [String],
    /// Total size of the devices.
    pub size: Bytes,
    /// Mount point.
    pub mount_point: &'a Path,
    /// Directory for the data of a filesystem without devices; empty if there is none.
    pub directory: &'a Path,
    /// Unique name, that of the mount point.
    pub name: &'a str,
}

impl SetupTarget<'_> {
    /// Mount of a filesystem with the options and commands of a level.
    pub fn mounting(&self, filesystem: &Filesystem, level: &FilesystemLevel) -> Mounting {
        let own = &level.commands;
        let either = |own: &'_ [String], other: &'_ [String]| -> Vec<String> {
            let argv = if own.is_empty() { other } else { own };
            self.filled(argv, filesystem, level)
        };
        let argv = either(&own.mount, &filesystem.mount_command);
        if argv.is_empty() {
            return Mounting::Call(self.request(filesystem, level));
        }
        let fstype =
            if own.mounted_type.is_empty() { &filesystem.fstype } else { &own.mounted_type };
        Mounting::Command(MountCommand {
            argv,
            umount: either(&own.umount, &filesystem.umount_command),
            target: self.mount_point.to_owned(),
            fstype: fstype.clone(),
            shares_superblock: has_placeholder(filesystem, level, "{source}"),
        })
    }

    /// Argument vector of mkfs.
    pub fn mkfs(&self, filesystem: &Filesystem, level: &FilesystemLevel) -> Vec<String> {
        self.filled(&filesystem.mkfs_argv(self.devices, level), filesystem, level)
    }

    /// Mount parameters of a filesystem with the options of a level.
    fn request(&self, filesystem: &Filesystem, level: &FilesystemLevel) -> MountRequest {
        MountRequest {
            source: filesystem.mount_source(self.devices),
            target: self.mount_point.to_owned(),
            fstype: filesystem.fstype.clone(),
            options: filesystem.mount_options(self.devices, self.size, level),
        }
    }

    /// Replaces the placeholders in an argument vector of the plan or of the catalog.
    fn filled(
        &self,
        argv: &[String],
        filesystem: &Filesystem,
        level: &FilesystemLevel,
    ) -> Vec<String> {
        let options = match filesystem.mount_options(self.devices, self.size, level) {
            // mount(8) and FUSE filesystems reject an empty list.
            options if options.is_empty() => "rw".to_owned(),
            options => options,
        };
        let values = [
            ("{mount}", self.mount_point.display().to_string()),
            ("{directory}", self.directory.display().to_string()),
            ("{name}", self.name.to_owned()),
            ("{source}", level.commands.source.clone()),
        ];
        let replaced = |argument: &String| {
            values.iter().fold(argument.clone(), |text, (name, value)| text.replace(name, value))
        };
        let argv: Vec<String> = argv.iter().map(replaced).collect();
        // Within an argument, {options} are the mount options. mkfs has its options already.
        let argv = argv.iter().map(|argument| argument.replace("{options}", &options));
        fill(&argv.collect::<Vec<_>>(), self.devices, &[])
    }
}

/// True if the mount command of a level contains a placeholder.
pub(crate) fn has_placeholder(
    filesystem: &Filesystem,
    level: &FilesystemLevel,
    placeholder: &str,
) -> bool {
    let own = &level.commands.mount;
    let argv = if own.is_empty() { &filesystem.mount_command } else { own };
    argv.iter().any(|argument| argument.contains(placeholder))
}

/// Stages of a filesystem level; empty if the `setup` of the level is empty.
pub fn stages<'a>(
    level: &FilesystemLevel,
    filesystem: &'a Filesystem,
    converted_to: Option<&'a Filesystem>,
    target: SetupTarget<'_>,
) -> Vec<Stage<'a>> {
    let unmounted = |step: &SetupStep| matches!(step, SetupStep::Unmounted { .. });
    let conversion = level.setup.iter().rposition(unmounted);
    let mut stages = Vec::new();
    let mut is_mounted = false;
    for (index, step) in level.setup.iter().enumerate() {
        if unmounted(step) && is_mounted {
            stages.push(Stage::Unmount);
        } else if !unmounted(step) && !is_mounted {
            let (filesystem, mounting) = match converted_to {
                Some(converted_to) if conversion.is_some_and(|conversion| index > conversion) => {
                    (converted_to, target.mounting(converted_to, level))
                }
                Some(_) => {
                    let plain = FilesystemLevel::plain(&*level.fs_type);
                    (filesystem, target.mounting(filesystem, &plain))
                }
                None => (filesystem, target.mounting(filesystem, level)),
            };
            stages.push(Stage::Mount { filesystem, mounting });
        }
        is_mounted = !unmounted(step);
        stages.push(match step {
            SetupStep::Populate { directory, files } => {
                Stage::Populate { directory: target.mount_point.join(directory), files: *files }
            }
            SetupStep::Remove { directory } => {
                Stage::Remove { directory: target.mount_point.join(directory) }
            }
            SetupStep::Unmounted { argv } | SetupStep::Mounted { argv } => {
                Stage::Run { argv: target.filled(argv, filesystem, level) }
            }
        });
    }
    if is_mounted {
        stages.push(Stage::Unmount);
    }
    stages
}
