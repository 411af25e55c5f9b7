//! What stands between a typing error and somebody's data: may this device or this image be
//! overwritten, and may the run's own file lie where it lies?
//!
//! A path of a device or an image enters together with what the user permits ([`Permission`]). Out
//! comes a claim ([`ClaimedDevice`], [`ClaimedImage`]) or a [`Refusal`], which names the reason and
//! a hint. A device in use (mounted anywhere, swap, below another device, held open for writing,
//! locked) and the device under `/` are refused whatever is permitted. A device or image that
//! carries data is refused unless it is named, by something that stays with the hardware (serial,
//! WWID, model, backing file) and not by a `/dev` path, which names another disk after a reboot.
//!
//! The guard only reads and locks; it never writes, unmounts, detaches or wipes anything. A lock
//! stops only programs that ask for it; this is why [`ClaimedDevice::recheck`] stands before each
//! destructive use and not only at the start of a run, and why the destructive calls of the host
//! compare the [`Medium`] that they have opened.

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

/// The table of mounts, fed with any bytes.
pub(crate) fn fuzz(bytes: &[u8]) {
    let _mounts = mounts::parse(bytes, None);
}

/// Where the kernel tells of itself; tests put their own folders here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Mount point of sysfs.
    pub sys: PathBuf,
    /// Mount point of procfs.
    pub proc: PathBuf,
    /// The folder of device nodes.
    pub dev: PathBuf,
}

impl Default for Roots {
    /// `/sys`, `/proc`, `/dev`.
    fn default() -> Self {
        Self { sys: "/sys".into(), proc: "/proc".into(), dev: "/dev".into() }
    }
}

impl Roots {
    /// The path to open for one that the kernel or a user wrote: `/dev/...` means [`Roots::dev`].
    fn resolve(&self, path: &Path) -> PathBuf {
        path.strip_prefix("/dev").map_or_else(|_| path.into(), |rest| self.dev.join(rest))
    }
}

/// What the user permits, and what is to be protected besides the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// The names given with `--destroy`: what carries data and may lose it. A device is named by
    /// its serial, WWID, model, device-mapper name or the path of its backing file, and only if it
    /// has none of these to itself by `MAJOR:MINOR`; an image file is named by its path.
    pub destroy: Vec<String>,
    /// The file that the run is stored in; it need not exist yet.
    pub store_file: PathBuf,
}

#[cfg(test)]
mod tests;
