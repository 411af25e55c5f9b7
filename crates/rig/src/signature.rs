//! Signatures on a device or an image: filesystems, volume and RAID members, swap, partition
//! tables.
//!
//! Input: a file and its size. Output: a list of all [`Signature`]s found, because a device may
//! have several (for example, an old filesystem below a new partition table), and each indicates
//! that data may be present. The names are those of blkid(8), and a test compares the results with
//! blkid on real filesystems. In doubt, this module reports a signature: a false positive costs the
//! user one option, a false negative costs the data.
//!
//! Data without a known signature is detected by sampling ([`in_use`]), and a partition reserved
//! for a boot loader by its partition type ([`reserved`]).
//!
//! Not checked: checksums, versions, and the integrity of a filesystem.
//!
//! Sources of offsets and magic numbers: the on-disk format documents of the filesystems, the
//! headers in `include/uapi/linux/magic.h`, `fs/*/`, and `drivers/md/` of the kernel, and the
//! format documents of LUKS, LVM2, OpenZFS, and UEFI.

mod data;
mod layout;
mod magic;
mod table;
mod window;

use std::{fmt, fs::File, io};

use model::Bytes;

use self::window::Window;
pub use self::{data::in_use, table::reserved};

/// Signature found on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Name, as `TYPE` or `PTTYPE` of blkid(8) if blkid knows it.
    pub kind: &'static str,
    /// Label, if there is one that is cheap to read.
    pub label: Option<String>,
    /// UUID or serial number in the format of the filesystem's tools, if cheap to read.
    pub uuid: Option<String>,
    /// Offset of the magic number from the start of the device.
    pub offset: Bytes,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(label) = &self.label {
            // A label may contain any character, including terminal control characters.
            write!(f, " \"{}\"", label.escape_debug())?;
        }
        match &self.uuid {
            Some(uuid) => write!(f, " ({uuid})"),
            None => Ok(()),
        }
    }
}

/// Finds all known signatures in the first `size` bytes of `file`, in no particular order. Each
/// kind is reported once, regardless of the number of copies.
///
/// Reads less than 4 MiB, regardless of the locations of the copies; the position of `file` is
/// unchanged.
///
/// # Errors
/// Those of `pread(2)`. A file shorter than `size` is searched up to its end.
pub fn probe(file: &File, size: Bytes) -> io::Result<Vec<Signature>> {
    let window = Window::read(file, size)?;
    let mut found = magic::find(&window);
    found.extend(layout::find(&window));
    // Several rules may match the same signature, at several copies of it.
    let mut kinds = std::collections::HashSet::new();
    found.retain(|signature| kinds.insert(signature.kind));
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests;
