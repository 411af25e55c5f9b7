//! Mounted devices, their mount points, and the devices below the root filesystem.
//!
//! Sources: proc(5) (`/proc/PID/mountinfo`), `fs/btrfs/sysfs.c` and `fs/bcachefs/sysfs.c` of the
//! kernel for members of filesystems with several devices.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{Number, Roots, block::Block};
use crate::mount::MountEntry;

/// Line of a mountinfo file.
#[derive(Clone, Debug)]
pub(super) struct Mount {
    /// Mount ID, unique on the machine while the mount exists.
    pub(super) id: u64,
    /// Device number of the filesystem: the number of its block device, or an anonymous number.
    pub(super) number: Number,
    /// Mount point in the mount namespace of `process`.
    pub(super) point: PathBuf,
    /// Mount source in the format of the filesystem.
    source: String,
    /// Process in whose mount namespace the mount was found; `None` for the namespace of this
    /// process.
    process: Option<u32>,
}

/// Mounts of all readable mount namespaces.
pub(super) struct Mounts {
    mounts: Vec<Mount>,
    /// Name and member devices of each mounted filesystem with several devices.
    groups: Vec<(String, Vec<Number>)>,
    roots: Roots,
}

/// Mount of a device.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MountUse {
    /// Mount point in the mount namespace of this process.
    Local(PathBuf),
    /// Description of a mount in another namespace, or of a filesystem with several devices.
    Other(String),
}

impl Mounts {
    /// Reads the mounts of this process, those of all other readable mount namespaces, and the
    /// members of mounted filesystems with several devices.
    ///
    /// # Errors
    /// If the mountinfo of this process cannot be read. Mounts of other processes may be missed,
    /// because a process may be hidden or exit during the check. A later exclusive open of the
    /// device detects these mounts.
    pub(super) fn read(roots: &Roots) -> io::Result<Self> {
        let mut mounts = own(roots)?;
        let mut seen: HashSet<_> = namespace(&roots.proc.join("self")).into_iter().collect();
        for (process, directory) in processes(roots) {
            if namespace(&directory).is_none_or(|id| seen.insert(id)) {
                let text = fs::read(directory.join("mountinfo")).unwrap_or_default();
                mounts.extend(parse(&text, Some(process)));
            }
        }
        Ok(Self { mounts, groups: groups(roots), roots: roots.clone() })
    }

    /// Mount of the device `number`. Mounts in the namespace of this process are searched first.
    pub(super) fn use_of(&self, number: Number) -> Option<MountUse> {
        let mount = self.mounts.iter().find(|mount| self.devices_of(mount).contains(&number));
        match mount {
            Some(Mount { process: None, point, .. }) => Some(MountUse::Local(point.clone())),
            Some(Mount { process: Some(process), point, .. }) => Some(MountUse::Other(format!(
                "at {} in the mount namespace of process {process}",
                point.display()
            ))),
            None => {
                let (name, _) = self.groups.iter().find(|(_, group)| group.contains(&number))?;
                Some(MountUse::Other(format!("member of {name}")))
            }
        }
    }

    /// All devices on which the root filesystem depends: the devices mounted at `/` in the mount
    /// namespaces of this process and of process 1, and all devices below them. If `/` is on a
    /// partition, its whole disk is not included.
    pub(super) fn under_root(&self) -> HashSet<Number> {
        let ours = self.mounts.iter().rfind(|mount| mount.process.is_none() && mount.is_root());
        // [`Mounts::read`] skips process 1 if it has the mount namespace of this process, so the
        // table of process 1 is read again.
        let first = parse(&fs::read(self.roots.proc.join("1/mountinfo")).unwrap_or_default(), None);
        let first = first.iter().rfind(|mount| mount.is_root());
        let mut todo: Vec<_> =
            ours.into_iter().chain(first).flat_map(|mount| self.devices_of(mount)).collect();
        let mut set = HashSet::new();
        while let Some(number) = todo.pop() {
            if set.insert(number) {
                todo.extend(self.below(number));
            }
        }
        set
    }

    /// Devices directly below a device: its slaves, and, for a loop device, the backing device or
    /// the device of the filesystem that contains the backing file.
    fn below(&self, number: Number) -> Vec<Number> {
        let Ok(block) = Block::find(number, &self.roots) else { return Vec::new() };
        // For a partition, sysfs lists the slaves and the backing file in the directory of its
        // disk.
        let disk = block.disk();
        let top = disk.as_ref().unwrap_or(&block);
        let mut below: Vec<_> = top.slaves().iter().map(|slave| slave.number).collect();
        if let Some(file) = top.backing_file() {
            below.extend(top.backing_device(&self.roots));
            let device = fs::metadata(file).map(|metadata| Number::of(metadata.dev()));
            below.extend(device.ok().filter(|number| !number.is_anonymous()));
        }
        below
    }

    /// Devices of a mount: one device, or all members of a filesystem with several devices.
    fn devices_of(&self, mount: &Mount) -> Vec<Number> {
        let mut devices = vec![mount.number];
        if mount.number.is_anonymous() {
            // The source of a bcachefs mount lists all members, separated by colons.
            let parts = mount.source.split(':').filter(|part| part.starts_with('/'));
            devices
                .extend(parts.filter_map(|part| Number::at(&self.roots.resolve(Path::new(part)))));
        }
        for (_, group) in &self.groups {
            if devices.iter().any(|number| group.contains(number)) {
                devices.extend(group);
            }
        }
        devices
    }
}

impl Mount {
    fn is_root(&self) -> bool {
        self.point == Path::new("/")
    }
}

/// Mounts in the mount namespace of this process, in mount order.
pub(super) fn own(roots: &Roots) -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read(roots.proc.join("self/mountinfo"))?, None))
}

/// Process directories of `/proc`, in ascending order.
pub(super) fn processes(roots: &Roots) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(&roots.proc).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    all.sort();
    all
}

pub(super) fn parse(text: &[u8], process: Option<u32>) -> Vec<Mount> {
    let table = MountEntry::parse_table(&String::from_utf8_lossy(text));
    let mounts = table.into_iter().filter_map(|entry| {
        let MountEntry { id, device, target: point, source, .. } = entry;
        Some(Mount { id, number: Number::parse(&device)?, point, source, process })
    });
    mounts.collect()
}

/// Mount namespace of a process, as the text of the link `ns/mnt`.
fn namespace(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/mnt")).ok()
}

/// Mounted filesystems with several devices: `btrfs UUID` and `bcachefs UUID` with their members.
fn groups(roots: &Roots) -> Vec<(String, Vec<Number>)> {
    let mut groups = Vec::new();
    for filesystem in ["btrfs", "bcachefs"] {
        let directories = fs::read_dir(roots.sys.join("fs").join(filesystem)).into_iter().flatten();
        for directory in directories.flatten() {
            let links = fs::read_dir(directory.path().join("devices")).into_iter().flatten();
            // For bcachefs there is a directory `dev-N` per member, with the link `block` to the
            // device.
            let members = fs::read_dir(directory.path()).into_iter().flatten();
            let links = links.flatten().map(|link| link.path());
            let members = members.flatten().map(|member| member.path().join("block"));
            let numbers: Vec<_> = links
                .chain(members)
                .filter_map(|link| Number::parse(&fs::read_to_string(link.join("dev")).ok()?))
                .collect();
            if !numbers.is_empty() {
                let uuid = directory.file_name();
                groups.push((format!("{filesystem} {}", uuid.to_string_lossy()), numbers));
            }
        }
    }
    groups
}
