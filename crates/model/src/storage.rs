//! What lies under the filesystems of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// The storage of a run, and the memory its workloads may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Image, devices or directory.
    pub place: Place,
    /// Limit of the workload's memory, page cache included; `None` for all there is.
    pub memory: Option<Bytes>,
    /// A directory on another filesystem, for tasks that copy from and to it; `None` for one in
    /// memory.
    #[serde(default)]
    pub elsewhere: Option<String>,
}

/// Where filesystems are made, or found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Image files that fslab makes, each on a loop device with direct I/O to the file.
    Image {
        /// Size of each image.
        size: Bytes,
        /// How many; more than one only for filesystems that span devices.
        count: u32,
        /// The directory they are made in; `None` for the default.
        directory: Option<String>,
        /// One image file of this very name, which is kept; `count` is 1 then. `None` for files of
        /// fslab's own naming, which are removed.
        file: Option<String>,
        /// Whether their space is reserved beforehand.
        allocation: Allocation,
    },
    /// Block devices, all used together; more than one only for filesystems that span devices.
    Devices {
        /// Their paths.
        paths: Vec<String>,
    },
    /// A directory of whatever is mounted there; nothing is formatted.
    Directory {
        /// Its path.
        path: String,
    },
}

/// Whether the space of an image is reserved beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// Reserved in full before each mkfs; the loop device then offers no discard, so that nothing
    /// gives the space back.
    #[default]
    Full,
    /// Allocated as it is written; writes then also measure the filesystem below.
    Sparse,
}

impl Allocation {
    /// Its name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Sparse => "sparse",
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Image { size, count: 1, allocation, .. } => {
                write!(
                    f,
                    "image file of {} ({} allocation) on a loop device",
                    size.rough(),
                    allocation.name()
                )?;
            }
            Place::Image { size, count, allocation, .. } => write!(
                f,
                "{count} image files of {} ({} allocation) on loop devices",
                size.rough(),
                allocation.name()
            )?,
            Place::Devices { paths } => write!(f, "{}", paths.join(" + "))?,
            Place::Directory { path } => write!(f, "directory {path}")?,
        }
        match self.memory {
            Some(memory) => write!(f, ", memory limited to {}", memory.rough()),
            None => Ok(()),
        }
    }
}
