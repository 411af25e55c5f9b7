//! Identification of block devices: locations of `/sys`, `/proc`, and `/dev`, device numbers, and
//! the identity of a device, which is compared before each destructive operation.

use std::{
    fmt,
    fs::{self, File},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use model::Bytes;

/// Locations of `/sys`, `/proc`, and `/dev`. Tests use other directories.
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
    /// Path to open for a path that was given by the kernel or a user: `/dev` is replaced by
    /// [`Roots::dev`].
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        path.strip_prefix("/dev").map_or_else(|_| path.into(), |rest| self.dev.join(rest))
    }
}

/// Number of a block device, `MAJOR:MINOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Number {
    major: u32,
    minor: u32,
}

impl Number {
    /// Number from a `dev_t` of `stat(2)`.
    pub(crate) fn of(dev: u64) -> Self {
        Self { major: rustix::fs::major(dev), minor: rustix::fs::minor(dev) }
    }

    /// Number from a text such as `8:1`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Number of the block device at `path`; `None` for anything else.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        metadata.file_type().is_block_device().then(|| Self::of(metadata.rdev()))
    }

    /// True for major number 0, which belongs to no device driver. The kernel generates such
    /// numbers for filesystems that do not have exactly one device (btrfs, zfs, tmpfs).
    pub(crate) fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Bytes per sector in sysfs, independent of the block size of the device.
const SECTOR: u64 = 512;

/// Identity of a block device: properties that must not change between the claim of the device and
/// a destructive operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Medium {
    pub(crate) number: Number,
    pub(crate) size: Bytes,
    /// Sequence number that the kernel increases with each new medium (`diskseq`); `None` before
    /// Linux 5.15.
    pub(crate) sequence: Option<u64>,
    /// Offset of a partition on its disk; `None` for a whole disk.
    pub(crate) start: Option<Bytes>,
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

/// Size in bytes of a number of sectors in the format of sysfs.
pub(crate) fn sectors(text: &str) -> Option<Bytes> {
    Some(Bytes(text.trim().parse::<u64>().ok()?.saturating_mul(SECTOR)))
}
