//! Changes to a machine, with the data required to undo them.
//!
//! These types are the format of the journal. The undo itself is in [`super::revert`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::{Host, Identity};

/// Change to the machine, with the data required to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A directory was created. Undone if it is empty and the path leads to this directory.
    Directory {
        /// Path.
        path: PathBuf,
        /// Identity; `None` until it is created, and in journals of older versions.
        #[serde(default)]
        identity: Option<Identity>,
    },
    /// A directory was created and filled by a workload. Undone only if it contains the marker and
    /// the path leads to this directory.
    Tree {
        /// Path; the name begins with [`PREFIX`].
        path: PathBuf,
        /// Content of the marker.
        token: String,
        /// Identity; `None` until it is created, and in journals of older versions.
        #[serde(default)]
        identity: Option<Identity>,
    },
    /// An image file was created. Undone if the path leads to this file.
    Image {
        /// Path; the name begins with [`PREFIX`].
        path: PathBuf,
        /// Identity; `None` until it is created.
        identity: Option<Identity>,
    },
    /// A file was attached to loop devices. Undone for every device with this backing file.
    Loops {
        /// Path of the file.
        image: PathBuf,
        /// Identity of the file.
        identity: Identity,
        /// Number of a loop device created for it; `None` until known.
        made: Option<u32>,
    },
    /// A filesystem was mounted on a mount point of fslab.
    Mount {
        /// Mount point.
        target: PathBuf,
        /// Name in `/proc/filesystems`.
        fstype: String,
        /// Device number in mountinfo; `None` until it is mounted, and in journals of older
        /// versions.
        #[serde(default)]
        device: Option<String>,
    },
    /// A device was created on top of others: an array or a mapped device. Undone for the device
    /// with this UUID.
    Layer {
        /// Kind of device.
        kind: Built,
        /// Name; begins with [`PREFIX`].
        name: String,
        /// Generated UUID of the array or the mapped device.
        uuid: String,
        /// Members of an array; their superblocks would allow it to be assembled again.
        members: Vec<PathBuf>,
    },
    /// Faults of a mapped device were enabled. Undone by disabling them, for the device with this
    /// UUID.
    Fault {
        /// Name; begins with [`PREFIX`].
        name: String,
        /// Generated UUID.
        uuid: String,
        /// Table without faults; `None` for a `dust` device, which is disabled by a message.
        sound: Option<String>,
    },
    /// A setting was changed. Undone unless another process has changed it since, which is
    /// detectable if the kernel does not change it by itself.
    Setting {
        /// File of the setting.
        path: PathBuf,
        /// Text that restores it.
        before: String,
        /// Value read back after the change; `None` until known.
        after: Option<String>,
        /// True if the kernel may change it by itself, so that a value other than `after` does not
        /// indicate a change by another process.
        #[serde(default)]
        moves: bool,
        /// Undone only if this setting has this value; `None`: always.
        #[serde(default)]
        basis: Option<ParentSetting>,
    },
    /// Settings that another change may disturb. Undone by restoring those that differ.
    Kept {
        /// Files and their values.
        values: Vec<(PathBuf, String)>,
        /// Undone only if this setting has this value; `None`: always.
        #[serde(default)]
        basis: Option<ParentSetting>,
    },
    /// A control group was created and processes were moved into it. Undone by moving them back.
    Group {
        /// Directory.
        path: PathBuf,
        /// Directory of the group they came from.
        home: PathBuf,
        /// Identity; `None` until it is created, and in journals of older versions.
        #[serde(default)]
        identity: Option<Identity>,
    },
}

/// Setting on which other settings depend, as `nr_requests` depends on the scheduler: their values
/// are meaningful only while it is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentSetting {
    /// File of the setting.
    pub path: PathBuf,
    /// Required value.
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
    /// The change of a setting with an updated value, and its file; `None` for other changes.
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
            | Self::Layer { .. }
            | Self::Fault { .. }
            | Self::Kept { .. }
            | Self::Group { .. } => None,
        }
    }

    /// Description of the change.
    pub fn describe(&self) -> String {
        match self {
            Self::Directory { path, .. } => format!("directory {}", path.display()),
            Self::Tree { path, .. } => format!("directory tree {}", path.display()),
            Self::Image { path, .. } => format!("image file {}", path.display()),
            Self::Loops { image, .. } => format!("loop devices of {}", image.display()),
            Self::Mount { target, fstype, .. } => format!("{fstype} on {}", target.display()),
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

    /// True if it can be undone only while that setting is in effect.
    pub(super) fn depends_on(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Setting { basis: Some(basis), .. } | Self::Kept { basis: Some(basis), .. },
                Self::Setting { path, .. },
            ) => basis.path == *path,
            _ => false,
        }
    }

    /// True if a mount may depend on it, so that it has to stay while mounted.
    pub(super) fn may_be_mounted(&self) -> bool {
        match self {
            Self::Directory { .. }
            | Self::Image { .. }
            | Self::Loops { .. }
            | Self::Layer { .. } => true,
            Self::Tree { .. }
            | Self::Mount { .. }
            | Self::Fault { .. }
            | Self::Setting { .. }
            | Self::Kept { .. }
            | Self::Group { .. } => false,
        }
    }

    /// Updates device numbers, which may change with a reboot. A file or directory with the same
    /// inode number and a name generated for this run is the same one.
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

    /// True if a reboot undoes it. The superblocks of an array remain, and udev may have assembled
    /// it again.
    pub(super) fn undone_by_reboot(&self) -> bool {
        match self {
            Self::Directory { .. }
            | Self::Tree { .. }
            | Self::Image { .. }
            | Self::Layer { kind: Built::Array, .. } => false,
            Self::Layer { kind: Built::Mapped, .. }
            | Self::Loops { .. }
            | Self::Mount { .. }
            | Self::Fault { .. }
            | Self::Setting { .. }
            | Self::Kept { .. }
            | Self::Group { .. } => true,
        }
    }
}
