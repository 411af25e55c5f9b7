//! What a device or an image carries: filesystems, volume and RAID members, swap, partition tables.
//!
//! A file and its size enter; a list of [`Signature`] leaves. All of them are found, as a device
//! may carry several (an old filesystem under a new partition table, say), and each is evidence
//! that somebody's data may be there. The names are those of blkid(8), and a comparison with blkid
//! over real filesystems is among the tests; where one must err, this module reports rather than
//! passes over: a wrong report costs the user one option, a missed one costs the data.
//!
//! Data that carries no known signature is found by a sample ([`in_use`]), and a partition that its
//! table reserves for a boot loader by the table ([`reserved`]).
//!
//! Deliberately not here: checksums, versions, and whether a filesystem is intact.
//!
//! Sources of offsets and magic numbers: the on-disk format documents of each filesystem, the
//! headers in `include/uapi/linux/magic.h`, `fs/*/` and `drivers/md/` of the kernel, and the format
//! documents of LUKS, LVM2, OpenZFS and UEFI.

mod data;
mod layout;
mod magic;
mod table;
mod window;

use std::{fmt, fs::File, io};

use model::Bytes;

use self::window::Window;
pub use self::{data::in_use, table::reserved};

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its name, as blkid(8) writes `TYPE` or `PTTYPE` wherever blkid knows it.
    pub kind: &'static str,
    /// Its label, where it has one and it is cheap to read.
    pub label: Option<String>,
    /// Its UUID or serial number in the form of its own tools, where cheap to read.
    pub uuid: Option<String>,
    /// Where its magic number stands, from the start of the device.
    pub offset: Bytes,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(label) = &self.label {
            // A label may hold anything, control characters of a terminal too.
            write!(f, " \"{}\"", label.escape_debug())?;
        }
        match &self.uuid {
            Some(uuid) => write!(f, " ({uuid})"),
            None => Ok(()),
        }
    }
}

/// Finds every known signature in the first `size` bytes of `file`, in no meaningful order; empty
/// when there is none. The same kind is reported once, however many copies of it there are.
///
/// Reads less than 4 MiB, wherever the copies lie; the position of `file` stays as it was.
///
/// # Errors
/// Those of `pread(2)`. A file shorter than `size` is searched as far as it goes.
pub fn probe(file: &File, size: Bytes) -> io::Result<Vec<Signature>> {
    let window = Window::read(file, size)?;
    let mut found = magic::find(&window);
    found.extend(layout::find(&window));
    // Several rules may name one thing, at several copies of it.
    let mut kinds = std::collections::HashSet::new();
    found.retain(|signature| kinds.insert(signature.kind));
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests;
