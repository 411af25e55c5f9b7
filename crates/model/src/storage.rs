//! Storage under the filesystems of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    setting::{SystemSetting, SystemSettings},
    units::Bytes,
    workload::Value,
};

/// Storage of a run, and memory limit of its workloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Image files, block devices, a directory, or levels of the axis `device`.
    pub kind: StorageKind,
    /// Memory limit of the workload, including page cache; `None` for unlimited.
    pub memory_limit: Option<Bytes>,
    /// Directory on another filesystem, source and target of copy tasks; `None` for a directory in
    /// memory.
    #[serde(default)]
    pub external_directory: Option<String>,
}

/// Kind of storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// Image files, each on a loop device with direct I/O.
    Image {
        /// Size of each image.
        size: Bytes,
        /// Number of images. More than one only for filesystems that span devices.
        count: u32,
        /// Directory of the images; `None` for the default.
        directory: Option<String>,
        /// Image file to use and keep, with a `count` of 1; `None` for temporary files.
        file: Option<String>,
        /// Allocation of image space.
        allocation: Allocation,
    },
    /// Block devices, which are used together. More than one only for filesystems that span
    /// devices.
    Devices {
        /// Device paths.
        paths: Vec<String>,
    },
    /// Directory of a mounted filesystem, which is not formatted.
    Directory {
        /// Directory path.
        path: String,
    },
    /// Levels of the axis `device`. A trial uses the level that its cell names; the others are not
    /// changed.
    Levels {
        /// Levels in the order of the plan, at least one, with distinct names.
        levels: Vec<StorageLevel>,
    },
}

/// Level of the axis `device`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageLevel {
    /// Name, the value of [`SystemSetting::Device`] in cells.
    pub name: String,
    /// Image files or block devices.
    pub kind: StorageKind,
}

impl StorageKind {
    /// Kinds of storage that a trial may use, with the names of their levels. Storage that is not
    /// an axis is one kind without a name.
    pub fn each(&self) -> Vec<(Option<&str>, &Self)> {
        match self {
            Self::Levels { levels } => {
                levels.iter().map(|level| (Some(level.name.as_str()), &level.kind)).collect()
            }
            Self::Image { .. } | Self::Devices { .. } | Self::Directory { .. } => {
                vec![(None, self)]
            }
        }
    }

    /// Kinds of storage, changeable, in the order of [`StorageKind::each`].
    pub fn each_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::Levels { levels } => levels.iter_mut().map(|level| &mut level.kind).collect(),
            Self::Image { .. } | Self::Devices { .. } | Self::Directory { .. } => vec![self],
        }
    }

    /// Storage of a cell with these settings. If the settings name no level, the first one.
    pub fn of(&self, settings: &SystemSettings) -> Self {
        let named = settings.get(&SystemSetting::Device).map(ToString::to_string);
        let all = self.each();
        let own = all.iter().find(|(name, _)| *name == named.as_deref());
        let mut own = own.or(all.first()).map_or(self, |(_, kind)| kind).clone();
        let wanted = settings.get(&SystemSetting::Size).and_then(Value::as_size);
        if let (Self::Image { size, .. }, Some(wanted)) = (&mut own, wanted) {
            *size = wanted;
        }
        own
    }

    /// True if the kind is block devices, of every level.
    pub fn is_devices(&self) -> bool {
        self.each().iter().all(|(_, kind)| matches!(kind, Self::Devices { .. }))
    }
}

/// Allocation of image space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// Allocated before each mkfs. The loop device does not support discard, so the space stays
    /// allocated.
    #[default]
    Preallocated,
    /// Allocated on write. Writes then include the cost of allocation in the filesystem that
    /// contains the image.
    Sparse,
}

impl Allocation {
    /// Name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preallocated => "preallocated",
            Self::Sparse => "sparse",
        }
    }
}

impl fmt::Display for StorageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image { size, count: 1, allocation, .. } => {
                write!(f, "image file of {} ({}) on a loop device", size.rough(), allocation.name())
            }
            Self::Image { size, count, allocation, .. } => write!(
                f,
                "{count} image files of {} ({}) on loop devices",
                size.rough(),
                allocation.name()
            ),
            Self::Devices { paths } => write!(f, "{}", paths.join(" + ")),
            Self::Directory { path } => write!(f, "directory {path}"),
            Self::Levels { levels } => {
                for (at, StorageLevel { name, kind }) in levels.iter().enumerate() {
                    let separator = if at == 0 { "" } else { "; " };
                    write!(f, "{separator}device {name}: {kind}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}
