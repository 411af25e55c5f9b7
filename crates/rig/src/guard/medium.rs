//! Identity of a block device, compared before each destructive operation.

use std::{
    fmt,
    fs::{self, File},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::Path,
};

use model::Bytes;

use super::{Roots, block::Number};
use crate::host::Host;

/// Bytes of a sector in sysfs, independent of the device's own block size.
const SECTOR: u64 = 512;

/// Properties that must not change between the claim of a block device and each write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Medium {
    pub(super) number: Number,
    pub(super) size: Bytes,
    /// Sequence number of the medium, since Linux 5.15.
    pub(super) sequence: Option<u64>,
    /// First byte of a partition on its disk; `None` for a whole disk.
    pub(super) start: Option<Bytes>,
}

impl Medium {
    /// Reads the identity of an open file; `None` if it is not a block device.
    ///
    /// # Errors
    /// Those of `fstat(2)` and `ioctl(2)`.
    pub fn of(file: &File, roots: &Roots) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        if !metadata.file_type().is_block_device() {
            return Ok(None);
        }
        let number = Number::of(metadata.rdev());
        let start = roots.sys.join("dev/block").join(number.to_string()).join("start");
        Ok(Some(Self {
            number,
            size: Bytes(sys::block::size_bytes(file)?),
            sequence: sys::block::disk_sequence(file)?,
            start: fs::read_to_string(start).ok().and_then(|text| sectors(&text)),
        }))
    }

    /// Reads the identity of the whole device with this kernel name from sysfs.
    ///
    /// # Errors
    /// If sysfs has no such device.
    pub(crate) fn named(host: &dyn Host, name: &str) -> io::Result<Self> {
        let fact = |file: &str| host.read(&Path::new("/sys/class/block").join(name).join(file));
        let odd = || io::Error::other(format!("sysfs has no number and size of {name}"));
        Ok(Self {
            number: Number::parse(&fact("dev")?).ok_or_else(odd)?,
            size: sectors(&fact("size")?).ok_or_else(odd)?,
            sequence: fact("diskseq").ok().and_then(|text| text.trim().parse().ok()),
            start: None,
        })
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {}, {}", self.number, self.size)?;
        if let Some(start) = self.start {
            write!(f, ", start {start}")?;
        }
        self.sequence.map_or(Ok(()), |sequence| write!(f, ", medium {sequence}"))
    }
}

fn sectors(text: &str) -> Option<Bytes> {
    Some(Bytes(text.trim().parse::<u64>().ok()?.saturating_mul(SECTOR)))
}
