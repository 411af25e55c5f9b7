//! Block devices of an instance: their properties, their reset before each mkfs, and their I/O
//! counters.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use model::{Allocation, Bytes, Nanos, Warning};

use crate::{
    error::RigError,
    guard::ClaimedDevice,
    host::{Host, Identity, WipeMethod},
    journaled_host::JournaledHost,
    settings,
    storage::Shared,
    undo::Step,
};

/// Bytes per sector in block layer statistics, regardless of the device's block size
/// (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// Storage of the instances of a run.
#[derive(Debug)]
pub(crate) enum Backing {
    /// Image files on loop devices.
    Images(Vec<Image>),
    /// Block devices accepted by the guard.
    Devices(Vec<ClaimedDevice>),
    /// A directory; nothing is formatted.
    Directory(PathBuf),
}

/// Devices of the storage used by a filesystem level: the first ones. The others are not changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share<'a> {
    backing: &'a Backing,
    count: usize,
}

/// Image file with its loop device.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) size: Bytes,
    pub(crate) allocation: Allocation,
    /// Current attachment; replaced if the plan has images reattached for every instance.
    attached: Mutex<Attached>,
}

/// Loop device while it is attached.
#[derive(Clone, Debug)]
struct Attached {
    device: PathBuf,
    direct: bool,
    /// Journal step that detaches it.
    step: Step,
}

/// Total I/O of devices since their creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Bytes read.
    pub read: Bytes,
    /// Bytes written.
    pub written: Bytes,
}

impl DeviceCounters {
    /// I/O between `earlier` and now.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { read: self.read - earlier.read, written: self.written - earlier.written }
    }
}

/// Line of `/sys/class/block/NAME/stat` (Documentation/block/stat.rst); counted since the creation
/// of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceStat {
    pub(crate) counters: DeviceCounters,
    /// Requests completed: reads, writes, discards, flushes.
    pub(crate) completed: u64,
    /// Requests passed to the driver and not completed.
    pub(crate) in_flight: u64,
    /// Read requests completed, and reads merged with other requests before.
    pub(crate) reads: u64,
    pub(crate) reads_merged: u64,
    /// Write requests completed, and writes merged with other requests before.
    pub(crate) writes: u64,
    pub(crate) writes_merged: u64,
    /// Bytes discarded; `None` before Linux 4.18.
    pub(crate) discarded: Option<Bytes>,
    /// Flush requests completed; `None` before Linux 5.5.
    pub(crate) flushes: Option<u64>,
    /// Time with at least one request; the kernel shows the lower 32 bits of the milliseconds.
    pub(crate) busy: Milliseconds,
    /// Total time of requests in device and queue; in the same format.
    pub(crate) queue_time: Milliseconds,
}

/// Time of the block layer, shown by the kernel as 32 bits of milliseconds (`part_stat_show` in
/// block/genhd.c), so that it wraps after 49.7 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Milliseconds(u64);

impl Milliseconds {
    /// Time between `earlier` and now, if it wrapped at most once.
    pub(crate) fn since(self, earlier: Self) -> Nanos {
        let range = 1 << 32;
        let passed = match self.0.checked_sub(earlier.0) {
            Some(passed) => passed,
            None if earlier.0 < range => self.0 + range - earlier.0,
            None => 0,
        };
        Nanos(passed.saturating_mul(1_000_000))
    }
}

impl DeviceStat {
    /// Reads the statistics of a disk or partition; `None` if the kernel has none.
    pub(crate) fn read(host: &dyn Host, name: &str) -> Option<Self> {
        let text = host.read(&Path::new("/sys/class/block").join(name).join("stat")).ok()?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Option<Self> {
        let numbers = text.split_whitespace().map(str::parse::<u64>);
        let fields = numbers.collect::<Result<Vec<_>, _>>().ok()?;
        // Discards were added in Linux 4.18 and flushes in 5.5; older lines are shorter.
        let field = |index: usize| fields.get(index).copied();
        let bytes = |sectors: u64| Bytes(sectors.saturating_mul(SECTOR));
        Some(Self {
            counters: DeviceCounters { read: bytes(field(2)?), written: bytes(field(6)?) },
            completed: field(0)? + field(4)? + field(11).unwrap_or(0) + field(15).unwrap_or(0),
            in_flight: field(8)?,
            reads: field(0)?,
            reads_merged: field(1)?,
            writes: field(4)?,
            writes_merged: field(5)?,
            discarded: field(13).map(bytes),
            flushes: field(15),
            busy: Milliseconds(field(9)?),
            queue_time: Milliseconds(field(10)?),
        })
    }
}

impl Backing {
    /// Device nodes, in the order of the plan.
    pub(crate) fn devices(&self) -> Vec<PathBuf> {
        match self {
            Self::Images(images) => images.iter().map(Image::device).collect(),
            Self::Devices(devices) => devices.iter().map(|d| d.path().to_owned()).collect(),
            Self::Directory(_) => Vec::new(),
        }
    }

    /// The first `count` devices, or all.
    pub(crate) fn first(&self, count: usize) -> Share<'_> {
        Share { backing: self, count }
    }

    /// Warnings that apply to all results on this storage.
    pub(crate) fn warnings(&self, host: &dyn Host) -> Vec<Warning> {
        let storage: Vec<String> = match self {
            Self::Images(images) => images.iter().map(Image::description).collect(),
            Self::Devices(devices) => {
                devices.iter().filter_map(|device| describe_virtual(host, device.name())).collect()
            }
            Self::Directory(path) => vec![format!("the directory {}", path.display())],
        };
        let mut warnings: Vec<Warning> = Vec::new();
        for storage in storage {
            let directory = matches!(self, Self::Directory(_));
            let warning = Warning::SharedStorage { storage, directory };
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        warnings
    }
}

impl<'a> Share<'a> {
    /// Device nodes, in the order of the plan.
    pub(crate) fn devices(self) -> Vec<PathBuf> {
        let mut devices = self.backing.devices();
        devices.truncate(self.count);
        devices
    }

    /// Device or image with its size, to compare with the minimum size of mkfs.
    pub(crate) fn sizes(self) -> Vec<(PathBuf, Bytes)> {
        let images = self.images().iter().map(|image| (image.path.clone(), image.size));
        let devices = self.claimed().iter().map(|d| (d.path().to_owned(), d.size()));
        images.chain(devices).collect()
    }

    /// The image files.
    pub(crate) fn images(self) -> &'a [Image] {
        match self.backing {
            Backing::Images(images) => &images[..self.count.min(images.len())],
            Backing::Devices(_) | Backing::Directory(_) => &[],
        }
    }

    fn claimed(self) -> &'a [ClaimedDevice] {
        match self.backing {
            Backing::Devices(devices) => &devices[..self.count.min(devices.len())],
            Backing::Images(_) | Backing::Directory(_) => &[],
        }
    }

    /// Detaches every image from its loop device and attaches it again; other storage is unchanged.
    /// Returns warnings about the new devices.
    pub(crate) fn reattach(self, shared: &Shared) -> Result<Vec<Warning>, RigError> {
        let mut journaled = shared.journaled();
        let images = self.images().iter();
        let warnings = images.map(|image| image.reattach(&mut journaled, &*shared.host));
        Ok(warnings.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Resets every device to the same state before each instance, as far as possible: images are
    /// zeroed and, if preallocated, allocated again; devices are discarded, or lose their
    /// signatures if they do not support discard. Their page cache is dropped.
    pub(crate) fn renew(self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        for image in self.images() {
            image.recheck(journaled)?;
            journaled.renew_image(&image.path, image.identity, image.size, image.allocation)?;
        }
        for device in self.claimed() {
            device.recheck()?;
            if journaled.erase(device)? == WipeMethod::Wiped {
                tracing::debug!(
                    device = device.name(),
                    "discard is not supported; first and last MiB overwritten"
                );
            }
        }
        flush(journaled, &self.devices())
    }

    /// Checks right before mkfs that each device is still the one claimed or attached, and that no
    /// process uses it.
    pub(crate) fn recheck(self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        self.images().iter().try_for_each(|image| image.recheck(journaled))?;
        Ok(self.claimed().iter().try_for_each(ClaimedDevice::recheck)?)
    }

    /// Images that lost part of their preallocated space, released by mkfs or mount.
    pub(crate) fn unreserved(self, host: &dyn Host) -> Vec<Warning> {
        let full =
            self.images().iter().filter(|image| image.allocation == Allocation::Preallocated);
        let lost = full.filter_map(|image| {
            let found = host.entry(&image.path).ok()?.allocated;
            (found < image.size).then(|| Warning::SettingNotApplied {
                setting: format!("allocated space of {}", image.path.display()),
                wanted: image.size.to_string(),
                found: found.to_string(),
            })
        });
        lost.collect()
    }
}

impl Image {
    /// Attaches an image with this identity. A loop device created for it does not offer discard if
    /// the image is preallocated. An existing device keeps its discard setting, and the space is
    /// checked after the mount.
    pub(crate) fn attach(
        journaled: &mut JournaledHost,
        host: &dyn Host,
        path: PathBuf,
        identity: Identity,
        (size, allocation): (Bytes, Allocation),
    ) -> Result<(Self, Option<Warning>), RigError> {
        let (attached, warning) = attach(journaled, host, &path, identity, allocation)?;
        Ok((Self { path, identity, size, allocation, attached: Mutex::new(attached) }, warning))
    }

    /// Device node.
    pub(crate) fn device(&self) -> PathBuf {
        self.attached().device.clone()
    }

    fn attached(&self) -> MutexGuard<'_, Attached> {
        // The value is replaced as a whole, so it remains valid if a holder panics.
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Detaches and attaches the image, possibly to another device, which drops the kernel's state
    /// of the device. After a failure it is detached, and the next call attaches it.
    fn reattach(
        &self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
    ) -> Result<Option<Warning>, RigError> {
        let mut attached = self.attached();
        journaled.undo(attached.step, format!("attach of {}", self.path.display()))?;
        let (new, warning) = attach(journaled, host, &self.path, self.identity, self.allocation)?;
        *attached = new;
        Ok(warning)
    }

    /// A detached loop device may have been attached to another file since.
    fn recheck(&self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        let failed = |source| RigError::Loop { path: self.path.clone(), source };
        let devices = journaled.loops_of(self.identity).map_err(failed)?;
        if devices.contains(&self.device()) {
            return Ok(());
        }
        Err(RigError::Detached { device: self.device(), image: self.path.clone() })
    }

    fn description(&self) -> String {
        let kind = match self.allocation {
            Allocation::Preallocated => "an image file",
            Allocation::Sparse => "a sparse image file",
        };
        let io = match self.attached().direct {
            true => "direct I/O",
            false => "buffered I/O (its filesystem cannot do direct I/O), so a second cache,",
        };
        format!("{kind} on a loop device with {io} to the file")
    }
}

fn attach(
    journaled: &mut JournaledHost,
    host: &dyn Host,
    path: &Path,
    identity: Identity,
    allocation: Allocation,
) -> Result<(Attached, Option<Warning>), RigError> {
    let (step, made) = journaled.attach(path, identity)?;
    let mut warning = None;
    if allocation == Allocation::Preallocated && made.made.is_some() {
        warning = settings::disable_discard(journaled, host, &name_of(&made.path));
    }
    Ok((Attached { device: made.path, direct: made.direct, step }, warning))
}

/// Writes back and drops the page cache of devices.
pub(crate) fn flush(journaled: &mut JournaledHost, devices: &[PathBuf]) -> Result<(), RigError> {
    for device in devices {
        let what = format!("flush the page cache of {}", device.display());
        let (done, _) = journaled.execute(what, |host| host.flush_device(device));
        done.map_err(|source| RigError::Caches { path: device.clone(), source })?;
    }
    Ok(())
}

/// Kernel name of a device node.
pub(crate) fn name_of(device: &Path) -> String {
    device.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Describes a device that is not a dedicated physical disk; `None` if it appears to be one.
fn describe_virtual(host: &dyn Host, name: &str) -> Option<String> {
    let kinds = [
        ("vd", "a virtual disk (virtio)"),
        ("xvd", "a virtual disk (Xen)"),
        ("loop", "a loop device"),
        ("dm-", "a device-mapper device"),
        ("md", "a software RAID"),
        ("zram", "compressed memory"),
        ("ram", "memory"),
        ("nbd", "a network block device"),
        ("rbd", "a network block device"),
        ("drbd", "a replicated device"),
        ("bcache", "a cached device"),
    ];
    let known = kinds.into_iter().find(|(prefix, _)| name.starts_with(prefix));
    if let Some((_, kind)) = known {
        return Some(format!("{kind}: {name}"));
    }
    let queue = settings::queue(host, name);
    let disk = queue.parent()?;
    let fact = |file: &str| host.read(&disk.join("device").join(file)).unwrap_or_default();
    let (vendor, model) = (fact("vendor"), fact("model"));
    let virtual_models =
        ["QEMU", "VMware", "VBOX", "Virtual", "Msft", "Amazon Elastic", "PersistentDisk"];
    let text = format!("{} {}", vendor.trim(), model.trim());
    virtual_models
        .iter()
        .any(|word| text.contains(word))
        .then(|| format!("a virtual disk ({}): {name}", text.trim()))
}

#[cfg(test)]
mod tests;
