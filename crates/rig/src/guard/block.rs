//! A block device as sysfs knows it: its number, name, partitions, holders, and what names it.
//!
//! Sources: `Documentation/ABI/stable/sysfs-block`, `Documentation/ABI/testing/sysfs-block*`, and
//! `Documentation/ABI/testing/sysfs-block-loop` of the kernel.

use std::{
    fmt, fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use super::{Refusal, Roots, open::Node};

/// The number of a block device, `MAJOR:MINOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Number {
    major: u32,
    minor: u32,
}

impl Number {
    /// From a `dev_t` as `stat(2)` gives it.
    pub(super) fn of(dev: u64) -> Self {
        Self { major: rustix::fs::major(dev), minor: rustix::fs::minor(dev) }
    }

    /// From the text `8:1`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The number of the block device at `path`; `None` for anything else.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        metadata.file_type().is_block_device().then(|| Self::of(metadata.rdev()))
    }

    /// Whether no device driver stands behind it: the kernel makes such numbers up for filesystems
    /// without exactly one device (btrfs, zfs, tmpfs).
    pub(super) fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// What names a device beyond a reboot, as far as the kernel tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) model: Option<String>,
    pub(super) serial: Option<String>,
    pub(super) wwid: Option<String>,
    pub(super) mapper_name: Option<String>,
    pub(super) backing_file: Option<String>,
}

impl Identity {
    /// All names, the most specific first.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.serial, &self.wwid, &self.backing_file, &self.mapper_name, &self.model]
            .into_iter()
            .filter_map(|name| name.as_deref())
    }
}

/// A block device: a whole disk or a partition.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) number: Number,
    /// Its folder below [`Roots::sys`], with all links resolved.
    folder: PathBuf,
}

impl Block {
    /// The device of this number.
    pub(super) fn find(number: Number, roots: &Roots) -> io::Result<Self> {
        let folder = roots.sys.join("dev/block").join(number.to_string()).canonicalize()?;
        Ok(Self { number, folder })
    }

    /// The device of a sysfs folder, or of a link to it; `None` if there is no device in it.
    fn in_folder(path: &Path) -> Option<Self> {
        let folder = path.canonicalize().ok()?;
        let number = Number::parse(&fs::read_to_string(folder.join("dev")).ok()?)?;
        Some(Self { number, folder })
    }

    /// Its kernel name, such as `sda1`; as a path below `/dev`.
    pub(super) fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        // A slash cannot stand in a file name of sysfs; the kernel writes `!` for it.
        name.replace('!', "/")
    }

    /// The disk that it is a partition of; `None` for a whole disk.
    pub(super) fn disk(&self) -> Option<Self> {
        if !self.folder.join("partition").exists() {
            return None;
        }
        self.folder.parent().and_then(Self::in_folder)
    }

    /// Its partitions, as the kernel knows them now.
    pub(super) fn partitions(&self) -> Vec<Self> {
        let mut all = children(&self.folder);
        all.retain(|block| block.folder.join("partition").exists());
        all
    }

    /// The devices on top of it that say so: device mapper, md, bcache.
    pub(super) fn holders(&self) -> Vec<Self> {
        children(&self.folder.join("holders"))
    }

    /// The devices that it is built from.
    pub(super) fn slaves(&self) -> Vec<Self> {
        children(&self.folder.join("slaves"))
    }

    /// The file or device that a loop device shows, as the kernel writes its path.
    pub(super) fn backing_file(&self) -> Option<String> {
        self.fact("loop/backing_file")
    }

    /// The character devices that reach the same disk around the block layer, with their names:
    /// `sgN`, `ngXnY`, and those of bsg (`drivers/scsi/sg.c`, `drivers/nvme/host/core.c`,
    /// `block/bsg.c`).
    pub(super) fn generic(&self) -> Vec<(String, Number)> {
        let device = self.folder.join("device");
        let namespace =
            self.name().strip_prefix("nvme").map(|rest| device.join(format!("ng{rest}")));
        let folders = ["scsi_generic", "bsg"].map(|class| fs::read_dir(device.join(class)));
        let entries = folders.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
        let named = |folder: PathBuf| {
            let number = Number::parse(&fs::read_to_string(folder.join("dev")).ok()?)?;
            Some((folder.file_name()?.to_string_lossy().into_owned(), number))
        };
        entries.chain(namespace).filter_map(named).collect()
    }

    /// All whole disks, loop devices without a file among them.
    pub(super) fn disks(roots: &Roots) -> Vec<Self> {
        children(&roots.sys.join("block"))
    }

    /// All loop devices that are attached.
    pub(super) fn attached_loops(roots: &Roots) -> Vec<Self> {
        let mut all = Self::disks(roots);
        all.retain(|block| block.backing_file().is_some());
        all
    }

    /// The block device that a loop device shows; `None` if it shows a file.
    ///
    /// The kernel gives a path of the mount namespace that attached it; where that path leads to
    /// nothing here, its last part is compared with the names of all devices, as `/dev` is alike
    /// everywhere.
    pub(super) fn backing_device(&self, roots: &Roots) -> Option<Number> {
        let path = roots.resolve(Path::new(&self.backing_file()?));
        if path.exists() {
            return Number::at(&path);
        }
        let name = path.file_name()?;
        Self::in_folder(&roots.sys.join("class/block").join(name)).map(|block| block.number)
    }

    /// The regular file that a loop device shows; `None` if its path leads to nothing here.
    pub(super) fn backing_identity(&self, roots: &Roots) -> Option<Node> {
        let file = fs::metadata(roots.resolve(Path::new(&self.backing_file()?))).ok()?;
        let (device, inode) = (file.dev(), file.ino());
        file.is_file().then_some(Node::File { device, inode })
    }

    /// Its name, and its own name in brackets where device mapper gave it one.
    pub(super) fn title(&self) -> String {
        match self.fact("dm/name") {
            Some(own) => format!("{} ({own})", self.name()),
            None => self.name(),
        }
    }

    /// What names the disk; for a partition that of its disk.
    pub(super) fn identity(&self) -> Identity {
        let disk = self.disk();
        let disk = disk.as_ref().unwrap_or(self);
        Identity {
            model: disk.fact("device/model"),
            serial: disk
                .fact("serial")
                .or_else(|| disk.fact("device/serial"))
                .or_else(|| disk.scsi_serial()),
            wwid: disk.fact("wwid").or_else(|| disk.fact("device/wwid")),
            mapper_name: disk.fact("dm/name"),
            backing_file: disk.backing_file(),
        }
    }

    /// The serial number of a SCSI or SATA disk: vital product data page 0x80, which is four bytes
    /// of header and then text (SPC-4, 7.8.13).
    fn scsi_serial(&self) -> Option<String> {
        let page = fs::read(self.folder.join("device/vpd_pg80")).ok()?;
        text(&String::from_utf8_lossy(page.get(4..)?))
    }

    /// An attribute, trimmed; `None` when it is absent or empty.
    fn fact(&self, name: &str) -> Option<String> {
        text(&fs::read_to_string(self.folder.join(name)).ok()?)
    }
}

fn text(raw: &str) -> Option<String> {
    let trimmed = raw.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// The devices whose folders, or links to them, lie in `folder`, by name; none if there is no such
/// folder.
fn children(folder: &Path) -> Vec<Block> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().filter_map(|path| Block::in_folder(path)).collect()
}

/// The device of this number, or the refusal that its state cannot be known.
pub(super) fn known(number: Number, subject: &str, roots: &Roots) -> Result<Block, Refusal> {
    let link = roots.sys.join("dev/block").join(number.to_string());
    Block::find(number, roots).map_err(Refusal::unreadable(subject, link))
}
