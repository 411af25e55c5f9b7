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
    space::{allocated, images_within_limit, space_for_images},
    store::store_outside,
};
pub use crate::medium::{Medium, Roots};

/// Parses a mount table of any bytes.
#[cfg(any(test, feature = "simulated"))]
pub(crate) fn fuzz(bytes: &[u8]) {
    let _mounts = mounts::parse(bytes, None);
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
