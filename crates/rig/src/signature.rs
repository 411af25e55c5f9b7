//! Signatures on a device or an image: filesystems, volume and RAID members, swap, partition
//! tables.
//!
//! Input: a file and its size. Output: a list of all [`Signature`]s found. A device may have
//! several signatures, for example of an old filesystem and of a newer partition table, and each
//! one indicates that data may be present. The names are those of blkid(8). A test compares the
//! results with blkid on real filesystems. Doubtful matches are reported, because a missed
//! signature could cause a loss of data.
//!
//! [`in_use`] samples blocks to detect data without a known signature. [`reserved`] detects a
//! partition reserved for a boot loader by its partition type.
//!
//! Not checked: checksums and the integrity of a filesystem.
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
    /// Name: the `TYPE` or `PTTYPE` of blkid(8) if blkid detects this signature.
    pub kind: &'static str,
    /// Label; `None` if there is none, or if this module does not read labels of this kind.
    pub label: Option<String>,
    /// UUID or serial number in the format of the filesystem's tools; `None` if there is none, or
    /// if this module does not read it.
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

/// Finds all known signatures in the first `size` bytes of `file`, in no particular order. A kind
/// with several copies is reported once.
///
/// Reads less than 4 MiB in total. The file offset of `file` does not change.
///
/// # Errors
/// Those of `pread(2)`. A file shorter than `size` is searched up to its end.
pub fn probe(file: &File, size: Bytes) -> io::Result<Vec<Signature>> {
    let window = Window::read(file, size)?;
    let mut found = magic::find(&window);
    found.extend(layout::find(&window));
    // Several rules may match copies of the same signature.
    let mut kinds = std::collections::HashSet::new();
    found.retain(|signature| kinds.insert(signature.kind));
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests;
