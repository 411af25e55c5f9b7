//! Which devices are mounted, where, and which of them `/` is on.
//!
//! Sources: proc(5) (`/proc/PID/mountinfo`), `fs/btrfs/sysfs.c` and `fs/bcachefs/sysfs.c` of the
//! kernel for the members of filesystems that span devices.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use super::{
    Roots,
    block::{Block, Number},
};

/// One line of a mountinfo.
#[derive(Clone, Debug)]
pub(super) struct Mount {
    /// Number of the mount, unique in the machine while it stands.
    pub(super) id: u64,
    /// Number of the filesystem: that of its device, or anonymous.
    pub(super) number: Number,
    /// Mount point as seen by the process.
    pub(super) point: PathBuf,
    /// What was mounted, in the filesystem's own words.
    source: PathBuf,
    /// The process whose mount namespace it was found in; `None` for our own.
    process: Option<u32>,
}

/// All mounts that can be seen.
pub(super) struct Mounts {
    mounts: Vec<Mount>,
    /// Members of each mounted filesystem that spans devices, with its name.
    groups: Vec<(String, Vec<Number>)>,
    roots: Roots,
}

/// Where a device is mounted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At this mount point of our own namespace.
    Here(PathBuf),
    /// Somewhere else, in words.
    Elsewhere(String),
}

impl Mounts {
    /// Reads our own mounts, those of every other mount namespace that can be read, and the members
    /// of mounted filesystems that span devices.
    ///
    /// # Errors
    /// When our own mountinfo cannot be read. Other processes may be hidden from us or end while
    /// they are looked at; what is missed there, an exclusive open finds.
    pub(super) fn read(roots: &Roots) -> io::Result<Self> {
        let mut mounts = own(roots)?;
        let mut seen: HashSet<_> = namespace(&roots.proc.join("self")).into_iter().collect();
        for (process, folder) in processes(roots) {
            if namespace(&folder).is_none_or(|id| seen.insert(id)) {
                let text = fs::read(folder.join("mountinfo")).unwrap_or_default();
                mounts.extend(parse(&text, Some(process)));
            }
        }
        Ok(Self { mounts, groups: groups(roots), roots: roots.clone() })
    }

    /// Where `number` is mounted; a mount point of our own namespace is preferred.
    pub(super) fn place_of(&self, number: Number) -> Option<Place> {
        let mount = self.mounts.iter().find(|mount| self.devices_of(mount).contains(&number));
        match mount {
            Some(Mount { process: None, point, .. }) => Some(Place::Here(point.clone())),
            Some(Mount { process: Some(process), point, .. }) => Some(Place::Elsewhere(format!(
                "at {} in the mount namespace of process {process}",
                point.display()
            ))),
            None => {
                let (name, _) = self.groups.iter().find(|(_, group)| group.contains(&number))?;
                Some(Place::Elsewhere(format!("member of {name}")))
            }
        }
    }

    /// Every device that `/` needs: what is mounted there, in our namespace and in that of process
    /// 1, and all that lies below it. A whole disk is not in the set for the sake of a partition.
    pub(super) fn under_root(&self) -> HashSet<Number> {
        let ours = self.mounts.iter().rfind(|mount| mount.process.is_none() && mount.is_root());
        // The namespace of process 1 was skipped above when it is our own.
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

    /// The devices directly below one: its slaves, or what holds the file of a loop device.
    fn below(&self, number: Number) -> Vec<Number> {
        let Ok(block) = Block::find(number, &self.roots) else { return Vec::new() };
        // Slaves of a mapped partition stand at its disk.
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

    /// The devices of a mount: one, or all members where the filesystem spans devices.
    fn devices_of(&self, mount: &Mount) -> Vec<Number> {
        let mut devices = vec![mount.number];
        if mount.number.is_anonymous() {
            // bcachefs writes all its members into one source, with colons between them.
            let source = mount.source.to_string_lossy();
            let parts = source.split(':').filter(|part| part.starts_with('/'));
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

/// The mounts of our own namespace, in the order of mounting.
pub(super) fn own(roots: &Roots) -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read(roots.proc.join("self/mountinfo"))?, None))
}

/// The numbered folders of `/proc`, ascending.
pub(super) fn processes(roots: &Roots) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(&roots.proc).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    all.sort();
    all
}

/// Undoes the escapes that the kernel writes for space, tab, newline and backslash (`\040`).
pub(super) fn unescape(field: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let octal = (first == b'\\')
            .then(|| tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok()))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    std::ffi::OsString::from_vec(bytes).into()
}

pub(super) fn parse(text: &[u8], process: Option<u32>) -> Vec<Mount> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| {
            let (mount, filesystem) = line.split_once(" - ")?;
            let mut mount = mount.split(' ');
            let id = mount.next()?.parse().ok()?;
            let number = Number::parse(mount.nth(1)?)?;
            let point = unescape(mount.nth(1)?);
            let source = unescape(filesystem.split(' ').nth(1)?);
            Some(Mount { id, number, point, source, process })
        })
        .collect()
}

/// The mount namespace of a process: the text of its link.
fn namespace(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/mnt")).ok()
}

/// Mounted filesystems of several devices: `btrfs UUID` and `bcachefs UUID` with their members.
fn groups(roots: &Roots) -> Vec<(String, Vec<Number>)> {
    let mut groups = Vec::new();
    for filesystem in ["btrfs", "bcachefs"] {
        let folders = fs::read_dir(roots.sys.join("fs").join(filesystem)).into_iter().flatten();
        for folder in folders.flatten() {
            let links = fs::read_dir(folder.path().join("devices")).into_iter().flatten();
            // bcachefs has a folder `dev-N` for each member, with the link `block` in it.
            let members = fs::read_dir(folder.path()).into_iter().flatten();
            let links = links.flatten().map(|link| link.path());
            let members = members.flatten().map(|member| member.path().join("block"));
            let numbers: Vec<_> = links
                .chain(members)
                .filter_map(|link| Number::parse(&fs::read_to_string(link.join("dev")).ok()?))
                .collect();
            if !numbers.is_empty() {
                let uuid = folder.file_name();
                groups.push((format!("{filesystem} {}", uuid.to_string_lossy()), numbers));
            }
        }
    }
    groups
}
