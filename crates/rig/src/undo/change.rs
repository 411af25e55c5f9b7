//! Changes to a machine, with the data required to undo them.
//!
//! These types are the format of the journal. The undo is in [`super::revert`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::{Host, Identity};

/// Change to the machine, with the data required to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A directory was created. Undo removes the directory if it is empty and the path leads to it.
    Directory {
        /// Path.
        path: PathBuf,
        /// Identity; `None` until it is created, and in journals of older versions.
        #[serde(default)]
        identity: Option<Identity>,
    },
    /// A directory was created, which a workload may fill. Undo removes the directory tree if it
    /// contains the marker and the path leads to it.
    Tree {
        /// Path; the name begins with [`PREFIX`].
        path: PathBuf,
        /// Content of the marker.
        token: String,
        /// Identity; `None` until it is created, and in journals of older versions.
        #[serde(default)]
        identity: Option<Identity>,
    },
    /// An image file was created. Undo removes the file if the path leads to it.
    Image {
        /// Path; the name begins with [`PREFIX`].
        path: PathBuf,
        /// Identity; `None` until it is created.
        identity: Option<Identity>,
    },
    /// A file was attached to a loop device. Undo detaches every loop device with this backing
    /// file.
    Loops {
        /// Path of the file.
        image: PathBuf,
        /// Identity of the file.
        identity: Identity,
        /// Number of the loop device if the device was created for this file; `None` until known.
        made: Option<u32>,
    },
    /// A filesystem was mounted on a mount point of fslab. Undo unmounts it.
    Mount {
        /// Mount point.
        target: PathBuf,
        /// Name in `/proc/filesystems`.
        fstype: String,
        /// Device number in mountinfo; `None` until the filesystem is mounted, and in journals of
        /// older versions.
        #[serde(default)]
        device: Option<String>,
    },
    /// A command mounted a filesystem on a mount point of fslab. Undo unmounts it, and all mounts
    /// that the command made in other places.
    CommandMount {
        /// Mount point; its name begins with [`PREFIX`] and is unique.
        target: PathBuf,
        /// Filesystem type that the command must mount.
        fstype: String,
        /// Device number in mountinfo; `None` until the mount was checked.
        device: Option<String>,
        /// Program that unmounts the filesystem, and its arguments; empty for umount(2).
        umount: Vec<String>,
    },
    /// An array or a mapped device was created on top of other devices. Undo removes the device
    /// with this UUID.
    Layer {
        /// Kind of device.
        kind: Built,
        /// Name; begins with [`PREFIX`].
        name: String,
        /// Generated UUID of the array or the mapped device.
        uuid: String,
        /// Members of an array. Undo wipes their superblocks, so that the array is not assembled
        /// again.
        members: Vec<PathBuf>,
    },
    /// Faults of a mapped device were enabled. Undo disables the faults of the device with this
    /// UUID.
    Fault {
        /// Name; begins with [`PREFIX`].
        name: String,
        /// Generated UUID.
        uuid: String,
        /// Device-mapper table without faults; `None` for a `dust` device, whose faults are
        /// disabled by a message.
        sound: Option<String>,
    },
    /// A setting was changed. Undo restores the old value, unless another process has changed the
    /// setting since.
    Setting {
        /// File of the setting.
        path: PathBuf,
        /// Text that restores the setting.
        before: String,
        /// Value read back after the change; `None` until known.
        after: Option<String>,
        /// True if the kernel may change the setting by itself. A value other than `after` then
        /// does not mean that another process changed the setting, and undo always restores it.
        #[serde(default)]
        moves: bool,
        /// Setting that must have its recorded value for the undo; `None`: no condition.
        #[serde(default)]
        basis: Option<ParentSetting>,
    },
    /// Settings that a later change may alter. Undo restores those that have another value.
    Kept {
        /// Files of the settings, and their values before the later change.
        values: Vec<(PathBuf, String)>,
        /// Setting that must have its recorded value for the undo; `None`: no condition.
        #[serde(default)]
        basis: Option<ParentSetting>,
    },
    /// A control group was created and processes were moved into it. Undo moves the processes back
    /// and removes the group.
    Group {
        /// Directory.
        path: PathBuf,
        /// Directory of the group from which the processes were moved.
        home: PathBuf,
        /// Identity; `None` until it is created, and in journals of older versions.
        #[serde(default)]
        identity: Option<Identity>,
    },
}

/// Setting on which other settings depend, as `nr_requests` depends on `scheduler`. The dependent
/// settings are restored only if this setting has the recorded value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentSetting {
    /// File of the setting.
    pub path: PathBuf,
    /// Value that the setting must have.
    pub value: String,
}

/// Kinds of devices created on top of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Built {
    /// md(4) array.
    Array,
    /// Device-mapper device.
    Mapped,
}

impl Change {
    /// The change of a setting with `now` as its value after the change, and the file of the
    /// setting; `None` for other kinds of changes.
    pub(crate) fn with_value_read(self, now: Option<String>) -> Option<(PathBuf, Self)> {
        match self {
            Self::Setting { path, before, after: _, moves, basis } => {
                let change = Self::Setting { path: path.clone(), before, after: now, moves, basis };
                Some((path, change))
            }
            Self::Directory { .. }
            | Self::Tree { .. }
            | Self::Image { .. }
            | Self::Loops { .. }
            | Self::Mount { .. }
            | Self::CommandMount { .. }
            | Self::Layer { .. }
            | Self::Fault { .. }
            | Self::Kept { .. }
            | Self::Group { .. } => None,
        }
    }

    /// Short description of the change, for messages.
    pub fn describe(&self) -> String {
        match self {
            Self::Directory { path, .. } => format!("directory {}", path.display()),
            Self::Tree { path, .. } => format!("directory tree {}", path.display()),
            Self::Image { path, .. } => format!("image file {}", path.display()),
            Self::Loops { image, .. } => format!("loop devices of {}", image.display()),
            Self::Mount { target, fstype, .. } | Self::CommandMount { target, fstype, .. } => {
                format!("{fstype} on {}", target.display())
            }
            Self::Layer { kind: Built::Array, name, .. } => format!("array {name}"),
            Self::Layer { kind: Built::Mapped, name, .. } => format!("mapped device {name}"),
            Self::Fault { name, .. } => format!("faults of {name}"),
            Self::Setting { path, .. } => format!("setting {}", path.display()),
            Self::Kept { values, .. } => {
                let paths: Vec<_> = values.iter().map(|(p, _)| p.display().to_string()).collect();
                format!("settings {}", paths.join(" "))
            }
            Self::Group { path, .. } => format!("control group {}", path.display()),
        }
    }

    /// True if `other` is a change of the setting on which this change depends. This change must
    /// then be undone before `other`.
    pub(super) fn depends_on(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Setting { basis: Some(basis), .. } | Self::Kept { basis: Some(basis), .. },
                Self::Setting { path, .. },
            ) => basis.path == *path,
            _ => false,
        }
    }

    /// True if a mounted filesystem may depend on the change. Such a change is not undone while a
    /// mount, a loop device, or a layer could not be removed.
    pub(super) fn may_be_mounted(&self) -> bool {
        match self {
            Self::Directory { .. }
            | Self::Image { .. }
            | Self::Loops { .. }
            | Self::Layer { .. } => true,
            Self::Tree { .. }
            | Self::Mount { .. }
            | Self::CommandMount { .. }
            | Self::Fault { .. }
            | Self::Setting { .. }
            | Self::Kept { .. }
            | Self::Group { .. } => false,
        }
    }

    /// True if other processes may use what was changed. If the change cannot be undone, those on
    /// which it may depend ([`Self::may_be_mounted`]) are kept.
    pub(super) fn may_be_in_use(&self) -> bool {
        matches!(
            self,
            Self::Mount { .. }
                | Self::CommandMount { .. }
                | Self::Loops { .. }
                | Self::Layer { .. }
        )
    }

    /// Updates the device number in the recorded identity, which may change with a reboot. The file
    /// at the path is the recorded one if it has the same inode number.
    pub(super) fn renumber(&mut self, host: &dyn Host) {
        if let Self::Image { path, identity: Some(identity) }
        | Self::Directory { path, identity: Some(identity) }
        | Self::Tree { path, identity: Some(identity), .. } = self
            && let Ok(entry) = host.entry(path)
            && entry.identity.inode == identity.inode
        {
            *identity = entry.identity;
        }
    }

    /// True if a reboot undoes the change. An array is not undone by a reboot: its superblocks
    /// remain, and udev may have assembled it again.
    pub(super) fn undone_by_reboot(&self) -> bool {
        match self {
            Self::Directory { .. }
            | Self::Tree { .. }
            | Self::Image { .. }
            | Self::Layer { kind: Built::Array, .. } => false,
            Self::Layer { kind: Built::Mapped, .. }
            | Self::Loops { .. }
            | Self::Mount { .. }
            | Self::CommandMount { .. }
            | Self::Fault { .. }
            | Self::Setting { .. }
            | Self::Kept { .. }
            | Self::Group { .. } => true,
        }
    }
}
