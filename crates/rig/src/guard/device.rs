//! Checks and locks a block device named by a user before it is overwritten.

use std::{
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use model::Bytes;
use rustix::{fs::OFlags, io::Errno};

use super::{
    Medium, Number, Permission, Refusal, Roots,
    block::{Block, Identity, known},
    contents::{Contents, contents},
    lock::DiskLock,
    store::is_device,
    usage::{check_free, persistent},
};

/// Block device that passed all checks of the guard and is locked.
///
/// The device is kept open for reading. The open is not exclusive, so that mkfs can open the device
/// exclusively. The disk is locked until the claim is dropped. The contents are read once, at the
/// time of the claim, because later contents are written by the run itself.
#[derive(Debug)]
pub struct ClaimedDevice {
    given: PathBuf,
    path: PathBuf,
    name: String,
    medium: Medium,
    /// Parent disk, if the device is a partition.
    disk: Option<Number>,
    identity: Identity,
    contents: Vec<Contents>,
    roots: Roots,
    lock: Arc<DiskLock>,
    /// Keeps the device open, so that the kernel does not reuse its number.
    _file: File,
}

/// Checks that the block device at `path` may be overwritten, and claims it.
///
/// A symbolic link is resolved at the time of the claim. A partition may be claimed while other
/// partitions of the disk are in use. The whole disk is locked. `held` are the devices that this
/// run has already claimed; devices of the same disk share one lock.
///
/// # Errors
/// Any [`Refusal`] that applies to devices.
pub fn claim_device(
    path: &Path,
    permission: &Permission,
    roots: &Roots,
    held: &[ClaimedDevice],
) -> Result<ClaimedDevice, Refusal> {
    let (file, medium) = open(path, false, roots)?;
    let subject = path.display().to_string();
    let block = known(medium.number, &subject, roots)?;
    let name = block.name();
    if medium.size == Bytes(0) {
        return Err(Refusal::Empty { device: name });
    }
    check_free(&block, roots)?;
    if sys::block::read_only(&file).map_err(Refusal::unreadable(&name, path))? {
        return Err(Refusal::ReadOnly { device: name });
    }
    if is_device(&permission.store_file, medium.number) {
        return Err(Refusal::StoreIsTarget { path: permission.store_file.clone() });
    }
    let node = node(path, &name, medium.number, roots)?;
    let disk = block.disk().map(|disk| disk.number);
    let whole = disk.unwrap_or(medium.number);
    let lock = match held.iter().find(|other| other.lock.number == whole) {
        Some(other) => Arc::clone(&other.lock),
        None => Arc::new(DiskLock::take(&block, &node, roots)?),
    };
    let claimed = ClaimedDevice {
        given: path.into(),
        path: node,
        disk,
        identity: block.identity(),
        contents: contents(&file, &block, &medium, roots)?,
        name,
        medium,
        roots: roots.clone(),
        lock,
        _file: file,
    };
    claimed.probe_exclusive()?;
    claimed.check_permission(permission)?;
    Ok(claimed)
}

impl ClaimedDevice {
    /// Path of the device node with symbolic links resolved: `/dev/sda1`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Kernel name: `sda1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Size of the device at the time of the claim.
    pub fn size(&self) -> Bytes {
        self.medium.size
    }

    /// Identity of the device, which destructive operations compare with the opened device.
    pub(crate) fn medium(&self) -> &Medium {
        &self.medium
    }

    pub(crate) fn lock(&self) -> &Arc<DiskLock> {
        &self.lock
    }

    /// True if both are the same device, or if one of them is a partition of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        let part_of = |part: &Self, whole: &Self| {
            part.medium.number == whole.medium.number || part.disk == Some(whole.medium.number)
        };
        part_of(self, other) || part_of(other, self)
    }

    /// Description of the data that would be lost. The first line contains the name, the identity,
    /// and the size of the device. The following lines describe the contents of the device and of
    /// each partition. There is no trailing newline.
    pub fn describe(&self) -> String {
        let mut text = self.name.clone();
        let identity = &self.identity;
        let facts = [
            ("model", &identity.model),
            ("serial", &identity.serial),
            ("WWID", &identity.wwid),
            ("mapped as", &identity.mapper_name),
            ("backing file", &identity.backing_file),
        ];
        for (what, value) in facts {
            if let Some(value) = value {
                let _ = write!(text, ", {what} {value}");
            }
        }
        let _ = write!(text, ", {}", decimal(self.medium.size));
        for contents in &self.contents {
            let _ = write!(text, "\n  {contents}");
        }
        text
    }

    /// Kernel name, model, and size on one line: `sda, model ST4000, 4.0 TB, 3.6 TiB`.
    pub(crate) fn summary(&self) -> String {
        let model = self.identity.model.as_ref().or(self.identity.mapper_name.as_ref());
        let model = model.map(|model| format!(", model {model}")).unwrap_or_default();
        format!("{}{model}, {}", self.name, decimal(self.medium.size))
    }

    /// Checks right before a destructive operation that the path still leads to the same device
    /// with the same medium, and that the device is not in use.
    ///
    /// # Errors
    /// [`Refusal::Changed`], [`Refusal::ReadOnly`], or the refusal for a use that started since the
    /// claim.
    pub fn recheck(&self) -> Result<(), Refusal> {
        for path in [&self.given, &self.path] {
            let (file, medium) = open(path, false, &self.roots)?;
            if medium != self.medium {
                return Err(Refusal::Changed {
                    path: path.clone(),
                    device: self.name.clone(),
                    was: self.medium.to_string(),
                    is: medium.to_string(),
                });
            }
            if sys::block::read_only(&file).map_err(Refusal::unreadable(&self.name, path))? {
                return Err(Refusal::ReadOnly { device: self.name.clone() });
            }
        }
        // The sysfs directory is searched again, because a device that was removed and added again
        // may have another one.
        let block = known(self.medium.number, &self.name, &self.roots)?;
        check_free(&block, &self.roots)?;
        self.probe_exclusive()
    }

    /// Opens the device exclusively and closes it again. The open fails if anything else has
    /// claimed the device, such as a mount in another mount namespace (open(2), `O_EXCL` without
    /// `O_CREAT`).
    fn probe_exclusive(&self) -> Result<(), Refusal> {
        let busy = Errno::BUSY.raw_os_error();
        match persistent(|| open(&self.path, true, &self.roots).err()) {
            None => Ok(()),
            Some(Refusal::Open { source, .. }) if source.raw_os_error() == Some(busy) => {
                Err(Refusal::Busy { device: self.name.clone() })
            }
            Some(other) => Err(other),
        }
    }

    fn check_permission(&self, permission: &Permission) -> Result<(), Refusal> {
        let number = self.medium.number.to_string();
        // A name that several disks have does not identify this device.
        let whole = self.lock.number;
        let mut others = Block::disks(&self.roots);
        others.retain(|other| other.number != whole);
        let others: Vec<_> = others.iter().map(Block::identity).collect();
        let unique = |name: &&str| !others.iter().any(|other| other.names().any(|it| it == *name));
        let mut names: Vec<&str> = self.identity.names().filter(unique).collect();
        if names.is_empty() {
            names.push(&number);
        }
        let empty = self.contents.iter().all(Contents::is_empty);
        if empty || permission.overwrite.iter().any(|name| names.contains(&name.trim())) {
            return Ok(());
        }
        Err(Refusal::Occupied {
            device: self.name.clone(),
            description: self.describe(),
            name: names[0].to_owned(),
        })
    }
}

/// Opens a block device for reading, and reads its identity. With `exclusive`, fails if anything
/// else has claimed the device.
pub(super) fn open(path: &Path, exclusive: bool, roots: &Roots) -> Result<(File, Medium), Refusal> {
    let refused = |source| Refusal::Open { path: path.into(), source };
    let other = || Refusal::NotBlockDevice { path: path.into() };
    // The file type is checked before the open, because opening a character device may have side
    // effects.
    if !fs::metadata(path).map_err(refused)?.file_type().is_block_device() {
        return Err(other());
    }
    let flags = if exclusive { OFlags::EXCL } else { OFlags::empty() } | OFlags::NONBLOCK;
    let flags = flags.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(refused)?;
    let medium = Medium::of(&file, roots).map_err(refused)?.ok_or_else(other)?;
    Ok((file, medium))
}

/// Path of the device node: the kernel name below [`Roots::dev`] if that path leads to this device,
/// otherwise the given path with symbolic links resolved. Fails if the resolved path now leads to
/// another device.
pub(super) fn node(
    path: &Path,
    name: &str,
    number: Number,
    roots: &Roots,
) -> Result<PathBuf, Refusal> {
    let usual = roots.dev.join(name);
    if Number::at(&usual) == Some(number) {
        return Ok(usual);
    }
    let refused = |source| Refusal::Open { path: path.into(), source };
    let canonical = path.canonicalize().map_err(refused)?;
    match Number::at(&canonical) {
        Some(now) if now == number => Ok(canonical),
        now => Err(Refusal::Changed {
            path: path.into(),
            device: name.into(),
            was: number.to_string(),
            is: now.map_or_else(|| "no block device".into(), |now| now.to_string()),
        }),
    }
}

/// Size in decimal units, rounded down to one decimal place and followed by the size in binary
/// units. Below 1 MB, only the size in binary units is shown.
pub(super) fn decimal(size: Bytes) -> String {
    let units = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000)];
    let Some((unit, one)) = units.into_iter().find(|(_, one)| size.0 >= *one) else {
        return size.to_string();
    };
    let tenths = size.0 / (one / 10);
    format!("{}.{} {unit}, {}", tenths / 10, tenths % 10, size.rough())
}
