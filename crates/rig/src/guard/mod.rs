//! Protection against overwriting data by mistake: decides which devices and images may be
//! overwritten, and checks the location of the run file.
//!
//! The input is the path of a device or an image and the user's permission ([`Permission`]). The
//! output is a claim ([`ClaimedDevice`], [`ClaimedImage`]) or a [`Refusal`] with reason and hint. A
//! device in use (mounted anywhere, swap, below another device, open for writing, locked) and the
//! device of `/` are rejected regardless of the permission. A device or image that contains data is
//! rejected unless it is identified by a property of the hardware (serial number, WWID, model,
//! backing file), not by a `/dev` path, which may be another disk after a reboot.
//!
//! The guard only reads and locks; it never writes, unmounts, detaches, or wipes. A lock stops only
//! programs that check it; therefore [`ClaimedDevice::recheck`] runs before each destructive
//! operation and not only at the start of a run, and the destructive methods of the host compare
//! the [`Medium`] they have opened.

mod block;
mod contents;
mod device;
mod image;
mod lock;
mod medium;
mod mounts;
mod open;
mod refusal;
mod space;
mod store;
mod usage;

use std::path::{Path, PathBuf};

pub(crate) use self::lock::DiskLock;
pub use self::{
    device::{ClaimedDevice, claim_device},
    image::{ClaimedImage, claim_image},
    medium::Medium,
    refusal::Refusal,
    space::{allocated, images_within_limit, space_for_images},
    store::store_outside,
};

/// Parses a mount table of any bytes.
pub(crate) fn fuzz(bytes: &[u8]) {
    let _mounts = mounts::parse(bytes, None);
}

/// Mount points of the kernel's filesystems; tests use other directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Mount point of sysfs.
    pub sys: PathBuf,
    /// Mount point of procfs.
    pub proc: PathBuf,
    /// Directory of device nodes.
    pub dev: PathBuf,
}

impl Default for Roots {
    /// `/sys`, `/proc`, `/dev`.
    fn default() -> Self {
        Self { sys: "/sys".into(), proc: "/proc".into(), dev: "/dev".into() }
    }
}

impl Roots {
    /// Path to open for a path from the kernel or a user: `/dev/...` refers to [`Roots::dev`].
    fn resolve(&self, path: &Path) -> PathBuf {
        path.strip_prefix("/dev").map_or_else(|_| path.into(), |rest| self.dev.join(rest))
    }
}

/// Permissions given by the user, and the file to protect besides the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Names given with `--overwrite-device`: devices and images whose data may be overwritten. A
    /// device is identified by its serial number, WWID, model, device-mapper name, or backing file,
    /// and by `MAJOR:MINOR` only if none of these is unique; an image file is identified by its
    /// path.
    pub overwrite: Vec<String>,
    /// Run file; it need not exist yet.
    pub store_file: PathBuf,
}

#[cfg(test)]
mod tests;
