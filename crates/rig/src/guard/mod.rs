//! Protection against overwriting data by mistake. The guard decides which devices and image files
//! may be overwritten, and checks the location of the run file.
//!
//! Input: the path of a device or an image, and the user's permission ([`Permission`]). Output: a
//! claim ([`ClaimedDevice`], [`ClaimedImage`]) or a [`Refusal`] with reason and hint. No permission
//! allows a device that is in use (mounted anywhere, swap, below another device, open for writing,
//! locked) or that contains the root filesystem. A device with data is rejected unless
//! `--overwrite-device` names one of its properties (serial number, WWID, model, backing file). A
//! `/dev` path is not accepted, because it may lead to another disk after a reboot. An image with
//! data is rejected unless `--overwrite-device` names its path.
//!
//! The guard only reads and locks; it never writes, unmounts, detaches, or wipes. A lock has no
//! effect on programs that do not check it. Therefore [`ClaimedDevice::recheck`] runs before each
//! destructive operation, and the destructive methods of the host compare the opened device with
//! the claimed [`Medium`].

mod block;
mod contents;
mod device;
mod image;
mod lock;
mod mounts;
mod open;
mod refusal;
mod space;
mod store;
mod usage;

use std::path::PathBuf;

use crate::medium::Number;

pub(crate) use self::lock::DiskLock;
pub use self::{
    device::{ClaimedDevice, claim_device},
    image::{ClaimedImage, claim_image},
    refusal::Refusal,
    space::{allocated, images_within_limit, needed_space, space_for_images, space_in},
    store::store_outside,
};
pub use crate::medium::{Medium, Roots};

/// Parses any bytes as a mount table.
#[cfg(any(test, feature = "simulated"))]
pub(crate) fn fuzz(bytes: &[u8]) {
    let _mounts = mounts::parse(bytes, None);
}

/// Permissions given by the user, and the run file, which must not be overwritten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Names given with `--overwrite-device`, each of a device or an image whose data may be
    /// overwritten. The name of a device is its serial number, WWID, model, device-mapper name, or
    /// backing file, if no other disk has the same one. If none of these is unique, the name is
    /// `MAJOR:MINOR`. The name of an image is its path.
    pub overwrite: Vec<String>,
    /// Path of the run file, which may not exist yet.
    pub store_file: PathBuf,
}

#[cfg(test)]
mod tests;
