//! Storage under the filesystems of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Storage of a run, and memory limit of its workloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Image files, block devices, or a directory.
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

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StorageKind::Image { size, count: 1, allocation, .. } => {
                write!(f, "image file of {} ({}) on a loop device", size.rough(), allocation.name())
            }
            StorageKind::Image { size, count, allocation, .. } => write!(
                f,
                "{count} image files of {} ({}) on loop devices",
                size.rough(),
                allocation.name()
            ),
            StorageKind::Devices { paths } => write!(f, "{}", paths.join(" + ")),
            StorageKind::Directory { path } => write!(f, "directory {path}"),
        }
    }
}
