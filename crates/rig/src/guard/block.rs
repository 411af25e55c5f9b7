//! Block devices in sysfs: number, name, partitions, holders, and identification.
//!
//! Sources: `Documentation/ABI/stable/sysfs-block`, `Documentation/ABI/testing/sysfs-block*`, and
//! `Documentation/ABI/testing/sysfs-block-loop` of the kernel.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{Number, Refusal, Roots, open::Node};

/// Properties that identify a device across reboots; `None` for those that the kernel does not
/// provide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) model: Option<String>,
    pub(super) serial: Option<String>,
    pub(super) wwid: Option<String>,
    pub(super) mapper_name: Option<String>,
    pub(super) backing_file: Option<String>,
}

impl Identity {
    /// All names, starting with the most specific one.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.serial, &self.wwid, &self.backing_file, &self.mapper_name, &self.model]
            .into_iter()
            .filter_map(|name| name.as_deref())
    }
}

/// Block device: a whole disk or a partition.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) number: Number,
    /// Directory of the device below [`Roots::sys`], with all symbolic links resolved.
    directory: PathBuf,
}

impl Block {
    pub(super) fn find(number: Number, roots: &Roots) -> io::Result<Self> {
        let directory = roots.sys.join("dev/block").join(number.to_string()).canonicalize()?;
        Ok(Self { number, directory })
    }

    /// Device with this sysfs directory, which may be a symbolic link; `None` if it is not the
    /// directory of a device.
    fn in_directory(path: &Path) -> Option<Self> {
        let directory = path.canonicalize().ok()?;
        let number = Number::parse(&fs::read_to_string(directory.join("dev")).ok()?)?;
        Some(Self { number, directory })
    }

    /// Kernel name, such as `sda1`, usable as a path below `/dev`.
    pub(super) fn name(&self) -> String {
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        // A name in sysfs cannot contain a slash; the kernel replaces each slash by `!`.
        name.replace('!', "/")
    }

    /// Disk of a partition; `None` for a whole disk.
    pub(super) fn disk(&self) -> Option<Self> {
        if !self.directory.join("partition").exists() {
            return None;
        }
        self.directory.parent().and_then(Self::in_directory)
    }

    /// Partitions that the kernel currently lists.
    pub(super) fn partitions(&self) -> Vec<Self> {
        let mut all = children(&self.directory);
        all.retain(|block| block.directory.join("partition").exists());
        all
    }

    /// Devices on top of this device, as registered by device mapper, md, or bcache.
    pub(super) fn holders(&self) -> Vec<Self> {
        children(&self.directory.join("holders"))
    }

    /// Devices below this device, from which it is composed.
    pub(super) fn slaves(&self) -> Vec<Self> {
        children(&self.directory.join("slaves"))
    }

    /// Path of the backing file or device of a loop device, as reported by the kernel.
    pub(super) fn backing_file(&self) -> Option<String> {
        self.fact("loop/backing_file")
    }

    /// Character devices that access the same disk without the block layer, with their names:
    /// `sgN`, `ngXnY`, and the devices of bsg (`drivers/scsi/sg.c`, `drivers/nvme/host/core.c`,
    /// `block/bsg.c`).
    pub(super) fn generic(&self) -> Vec<(String, Number)> {
        let device = self.directory.join("device");
        let namespace =
            self.name().strip_prefix("nvme").map(|rest| device.join(format!("ng{rest}")));
        let directories = ["scsi_generic", "bsg"].map(|class| fs::read_dir(device.join(class)));
        let entries =
            directories.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
        let named = |directory: PathBuf| {
            let number = Number::parse(&fs::read_to_string(directory.join("dev")).ok()?)?;
            Some((directory.file_name()?.to_string_lossy().into_owned(), number))
        };
        entries.chain(namespace).filter_map(named).collect()
    }

    /// All whole disks, including loop devices without backing file.
    pub(super) fn disks(roots: &Roots) -> Vec<Self> {
        children(&roots.sys.join("block"))
    }

    pub(super) fn attached_loops(roots: &Roots) -> Vec<Self> {
        let mut all = Self::disks(roots);
        all.retain(|block| block.backing_file().is_some());
        all
    }

    /// Block device to which a loop device is attached; `None` if it is attached to a file.
    ///
    /// The kernel reports a path in the mount namespace of the process that attached the loop
    /// device. If the path does not exist in this namespace, its last component is used as the
    /// kernel name of a device, because device nodes have the same names in all namespaces.
    pub(super) fn backing_device(&self, roots: &Roots) -> Option<Number> {
        let path = roots.resolve(Path::new(&self.backing_file()?));
        if path.exists() {
            return Number::at(&path);
        }
        let name = path.file_name()?;
        Self::in_directory(&roots.sys.join("class/block").join(name)).map(|block| block.number)
    }

    /// Regular file to which a loop device is attached; `None` if the reported path does not lead
    /// to a regular file in this mount namespace.
    pub(super) fn backing_identity(&self, roots: &Roots) -> Option<Node> {
        let file = fs::metadata(roots.resolve(Path::new(&self.backing_file()?))).ok()?;
        let (device, inode) = (file.dev(), file.ino());
        file.is_file().then_some(Node::File { device, inode })
    }

    /// Kernel name, with the device-mapper name in parentheses if there is one.
    pub(super) fn title(&self) -> String {
        match self.fact("dm/name") {
            Some(own) => format!("{} ({own})", self.name()),
            None => self.name(),
        }
    }

    /// Identity of a disk; for a partition, that of its disk.
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

    /// Serial number of a SCSI or SATA disk: vital product data page 0x80, a header of four bytes
    /// followed by text (SPC-4, 7.8.13).
    fn scsi_serial(&self) -> Option<String> {
        let page = fs::read(self.directory.join("device/vpd_pg80")).ok()?;
        text(&String::from_utf8_lossy(page.get(4..)?))
    }

    /// Trimmed text of a sysfs attribute; `None` if the attribute is missing or empty.
    fn fact(&self, name: &str) -> Option<String> {
        text(&fs::read_to_string(self.directory.join(name)).ok()?)
    }
}

fn text(raw: &str) -> Option<String> {
    let trimmed = raw.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// Devices whose sysfs directories are in `directory`, or whose directories are linked there,
/// sorted by name. Empty if `directory` does not exist.
fn children(directory: &Path) -> Vec<Block> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().filter_map(|path| Block::in_directory(path)).collect()
}

/// Device with this number; an error if sysfs does not list the device, because its use cannot be
/// checked then.
pub(super) fn known(number: Number, subject: &str, roots: &Roots) -> Result<Block, Refusal> {
    let link = roots.sys.join("dev/block").join(number.to_string());
    Block::find(number, roots).map_err(Refusal::unreadable(subject, link))
}
