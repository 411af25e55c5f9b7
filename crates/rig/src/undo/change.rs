//! What may be changed on a machine, with what is needed to undo it.
//!
//! These are the nouns of the journal: they are written to it and read back from it. How each is
//! undone is in [`super::revert`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::{Host, Identity};

/// One change of the machine, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A directory was made. Undone when empty, while the path leads to that very directory.
    Directory {
        /// Its path.
        path: PathBuf,
        /// Which one; `None` until it is made, and in journals of older versions.
        #[serde(default)]
        identity: Option<Identity>,
    },
    /// A directory was made and a workload fills it. Undone only while it holds our marker and the
    /// path leads to that very directory.
    Tree {
        /// Its path; the name begins with [`PREFIX`].
        path: PathBuf,
        /// What the marker holds.
        token: String,
        /// Which one; `None` until it is made, and in journals of older versions.
        #[serde(default)]
        identity: Option<Identity>,
    },
    /// An image file was made. Undone while the path leads to that very file.
    Image {
        /// Its path; the name begins with [`PREFIX`].
        path: PathBuf,
        /// Which file; `None` until it is made.
        identity: Option<Identity>,
    },
    /// A file was attached to loop devices. Undone for every device that it is behind.
    Loops {
        /// The file's path.
        image: PathBuf,
        /// Which file.
        identity: Identity,
        /// The number of a loop device that was made for it; `None` until that is known.
        made: Option<u32>,
    },
    /// Something was mounted on a mount point of ours.
    Mount {
        /// The mount point.
        target: PathBuf,
        /// The filesystem's name in `/proc/filesystems`.
        fstype: String,
        /// Its device number as in mountinfo; `None` until it is mounted, and in journals of older
        /// versions.
        #[serde(default)]
        device: Option<String>,
    },
    /// A device was made of others: an array or a mapped device. Undone for whatever bears its id.
    Layer {
        /// What kind of device.
        kind: Built,
        /// Its name, which begins with [`PREFIX`].
        name: String,
        /// The id that was drawn for it: an array's UUID, a mapped device's.
        uuid: String,
        /// What an array was made of, whose superblocks would let it come to life again.
        members: Vec<PathBuf>,
    },
    /// A mapped device was made to fail. Undone by making it sound, for whatever bears its id.
    Fault {
        /// Its name, which begins with [`PREFIX`].
        name: String,
        /// The id that was drawn for it.
        uuid: String,
        /// The table under which it is sound; `None` for one of `dust`, which is told to be.
        sound: Option<String>,
    },
    /// A setting was changed. Undone unless somebody else has changed it since, which shows where
    /// the kernel does not move it.
    Setting {
        /// The file of the setting.
        path: PathBuf,
        /// What to write to put it back.
        before: String,
        /// What it read back as after the change; `None` until that is known.
        after: Option<String>,
        /// Whether the kernel may move it by itself, so that another value than `after` tells
        /// nothing of who changed it.
        #[serde(default)]
        moves: bool,
        /// Undone only while this holds; `None` for always.
        #[serde(default)]
        basis: Option<Basis>,
    },
    /// Settings that another change may disturb. Undone by writing back those that read otherwise.
    Kept {
        /// Their files, and what they held.
        values: Vec<(PathBuf, String)>,
        /// Undone only while this holds; `None` for always.
        #[serde(default)]
        basis: Option<Basis>,
    },
    /// A control group was made and processes moved into it. Undone by moving them home.
    Group {
        /// Its directory.
        path: PathBuf,
        /// The directory of the group they came from.
        home: PathBuf,
        /// Which one; `None` until it is made, and in journals of older versions.
        #[serde(default)]
        identity: Option<Identity>,
    },
}

/// A setting that others belong to, as the depth of a queue belongs to its scheduler: their values
/// mean something only while it reads as it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The file of the setting.
    pub path: PathBuf,
    /// What it must read as.
    pub value: String,
}

/// The kinds of device that are made of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Built {
    /// An array of md(4).
    Array,
    /// A device of the device mapper.
    Mapped,
}

impl Change {
    /// A changed setting as it is known when it reads so, with its file; `None` for other changes.
    pub(crate) fn reading(self, now: Option<String>) -> Option<(PathBuf, Self)> {
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

    /// The change in words.
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

    /// Whether it is put back only with that setting.
    pub(super) fn belongs_to(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Setting { basis: Some(basis), .. } | Self::Kept { basis: Some(basis), .. },
                Self::Setting { path, .. },
            ) => basis.path == *path,
            _ => false,
        }
    }

    /// Whether a mount may stand on it, so that it has to stay while one does.
    pub(super) fn carries(&self) -> bool {
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

    /// After a reboot a disk, and the files on it, may have another device number. A file or
    /// directory that has kept its inode number, under a name that is made up for one run only, is
    /// the same.
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

    /// Whether a reboot undoes it. An array's superblocks stay, and udev may have made it again.
    pub(super) fn volatile(&self) -> bool {
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
