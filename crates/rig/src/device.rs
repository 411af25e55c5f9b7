//! The block devices below an instance: what they are, how they are made equal before each mkfs,
//! and what they have moved.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use model::{Allocation, Bytes, Nanos, Warning};

use crate::{
    bench::Bench,
    error::RigError,
    guard::ClaimedDevice,
    host::{Erased, Host, Identity},
    knobs,
    storage::Shared,
    undo::Step,
};

/// Bytes of a sector in block layer statistics, whatever the device's own block size
/// (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// What lies under the instances of a run.
#[derive(Debug)]
pub(crate) enum Backing {
    /// Image files on loop devices.
    Images(Vec<Image>),
    /// Block devices that the guard let through.
    Devices(Vec<ClaimedDevice>),
    /// A directory; nothing is formatted.
    Directory(PathBuf),
}

/// The devices of a storage that one level lies on: the first ones. Nothing is done to the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share<'a> {
    backing: &'a Backing,
    count: usize,
}

/// An image file on its loop device.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) size: Bytes,
    pub(crate) allocation: Allocation,
    /// How it is attached; changes where a plan has it attached anew for every instance.
    attached: Mutex<Attached>,
}

/// A file as a block device, for as long as it is attached.
#[derive(Clone, Debug)]
struct Attached {
    device: PathBuf,
    direct: bool,
    /// What undoes it.
    step: Step,
}

/// What devices have moved since they came to be, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Bytes read.
    pub read: Bytes,
    /// Bytes written.
    pub written: Bytes,
}

impl DeviceCounters {
    /// What was moved from `earlier` to now.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { read: self.read - earlier.read, written: self.written - earlier.written }
    }
}

/// One line of `/sys/class/block/NAME/stat` (Documentation/block/stat.rst); counted since the
/// device came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceStat {
    pub(crate) counters: DeviceCounters,
    /// Requests completed: reads, writes, discards, flushes.
    pub(crate) completed: u64,
    /// Requests handed to the driver and not completed.
    pub(crate) in_flight: u64,
    /// Read requests completed, and reads that were joined with others before.
    pub(crate) reads: u64,
    pub(crate) reads_merged: u64,
    /// Write requests completed, and writes that were joined with others before.
    pub(crate) writes: u64,
    pub(crate) writes_merged: u64,
    /// Bytes discarded; `None` before Linux 4.18.
    pub(crate) discarded: Option<Bytes>,
    /// Flush requests completed; `None` before Linux 5.5.
    pub(crate) flushes: Option<u64>,
    /// Time with at least one request; the kernel shows its lower 32 bits of milliseconds.
    pub(crate) busy: Milliseconds,
    /// Time that requests spent in device and queue, summed; likewise.
    pub(crate) queue_time: Milliseconds,
}

/// A time of the block layer, which the kernel shows as 32 bits of milliseconds
/// (`part_stat_show` in block/genhd.c), so that it begins anew after 49.7 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Milliseconds(u64);

impl Milliseconds {
    /// What passed from `earlier` to now, if it began anew no more than once.
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
    /// Reads the statistics of a disk or partition; `None` when the kernel keeps none.
    pub(crate) fn read(host: &dyn Host, name: &str) -> Option<Self> {
        let text = host.read(&Path::new("/sys/class/block").join(name).join("stat")).ok()?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Option<Self> {
        let numbers = text.split_whitespace().map(str::parse::<u64>);
        let fields = numbers.collect::<Result<Vec<_>, _>>().ok()?;
        // Discards came with Linux 4.18 and flushes with 5.5; older lines are shorter.
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
    /// The device nodes, in the order of the plan.
    pub(crate) fn devices(&self) -> Vec<PathBuf> {
        match self {
            Self::Images(images) => images.iter().map(Image::device).collect(),
            Self::Devices(devices) => devices.iter().map(|d| d.path().to_owned()).collect(),
            Self::Directory(_) => Vec::new(),
        }
    }

    /// The first so many devices, or all of them.
    pub(crate) fn first(&self, count: usize) -> Share<'_> {
        Share { backing: self, count }
    }

    /// What the reader must know of the storage before believing a number.
    pub(crate) fn warnings(&self, host: &dyn Host) -> Vec<Warning> {
        let what: Vec<String> = match self {
            Self::Images(images) => images.iter().map(Image::nature).collect(),
            Self::Devices(devices) => {
                devices.iter().filter_map(|device| nature(host, device.name())).collect()
            }
            Self::Directory(path) => vec![format!("the directory {}", path.display())],
        };
        let mut warnings: Vec<Warning> = Vec::new();
        for what in what {
            let warning = Warning::Backing { what };
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        warnings
    }
}

impl<'a> Share<'a> {
    /// The device nodes, in the order of the plan.
    pub(crate) fn devices(self) -> Vec<PathBuf> {
        let mut devices = self.backing.devices();
        devices.truncate(self.count);
        devices
    }

    /// Device or image, and size of each, for the check against the least that mkfs accepts.
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

    /// Detaches every image from its loop device and attaches it again; of other storage nothing is
    /// changed. What is told is what the new devices refused.
    pub(crate) fn reattach(self, shared: &Shared) -> Result<Vec<Warning>, RigError> {
        let mut bench = shared.bench();
        let images = self.images().iter();
        let warnings = images.map(|image| image.reattach(&mut bench, &*shared.host));
        Ok(warnings.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Makes every device equal to what it was before every other instance, as far as it can:
    /// images are zeroed and, if they are reserved, reserved anew; devices are discarded, or where
    /// they cannot, lose their signatures. The page cache of the device goes, too.
    pub(crate) fn renew(self, bench: &mut Bench) -> Result<(), RigError> {
        for image in self.images() {
            image.recheck(bench)?;
            bench.renew_image(&image.path, image.identity, image.size, image.allocation)?;
        }
        for device in self.claimed() {
            device.recheck()?;
            if bench.erase(device)? == Erased::Wiped {
                tracing::debug!(device = device.name(), "cannot discard; wiped its ends");
            }
        }
        flush(bench, &self.devices())
    }

    /// Checks again, right before mkfs, that each device is still the one that was claimed or
    /// attached, and that nothing uses it.
    pub(crate) fn recheck(self, bench: &mut Bench) -> Result<(), RigError> {
        self.images().iter().try_for_each(|image| image.recheck(bench))?;
        Ok(self.claimed().iter().try_for_each(ClaimedDevice::recheck)?)
    }

    /// What the images have lost of their reserved space, which mkfs or mount must have given back.
    pub(crate) fn unreserved(self, host: &dyn Host) -> Vec<Warning> {
        let full = self.images().iter().filter(|image| image.allocation == Allocation::Full);
        let lost = full.filter_map(|image| {
            let found = host.entry(&image.path).ok()?.allocated;
            (found < image.size).then(|| Warning::ReadBack {
                setting: format!("reserved space of {}", image.path.display()),
                wanted: image.size.to_string(),
                found: found.to_string(),
            })
        });
        lost.collect()
    }
}

impl Image {
    /// Attaches an image of that identity. A device made for it offers no discard if its space is
    /// reserved; one that others will use afterwards keeps its discards, and the space is looked at
    /// after mount.
    pub(crate) fn attach(
        bench: &mut Bench,
        host: &dyn Host,
        path: PathBuf,
        identity: Identity,
        (size, allocation): (Bytes, Allocation),
    ) -> Result<(Self, Option<Warning>), RigError> {
        let (attached, warning) = attach(bench, host, &path, identity, allocation)?;
        Ok((Self { path, identity, size, allocation, attached: Mutex::new(attached) }, warning))
    }

    /// Its device node.
    pub(crate) fn device(&self) -> PathBuf {
        self.attached().device.clone()
    }

    fn attached(&self) -> MutexGuard<'_, Attached> {
        // It is replaced as a whole, so it stays right when a holder panics.
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Detaches it and attaches it again, perhaps to another device: what the kernel knew of the
    /// device is gone with it. After a failure it is detached, and the next call attaches it.
    fn reattach(&self, bench: &mut Bench, host: &dyn Host) -> Result<Option<Warning>, RigError> {
        let mut attached = self.attached();
        bench.undo(attached.step, format!("attach of {}", self.path.display()))?;
        let (anew, warning) = attach(bench, host, &self.path, self.identity, self.allocation)?;
        *attached = anew;
        Ok(warning)
    }

    /// A loop device that somebody detached may have been given another file since.
    fn recheck(&self, bench: &mut Bench) -> Result<(), RigError> {
        let failed = |source| RigError::Loop { path: self.path.clone(), source };
        let devices = bench.loops_of(self.identity).map_err(failed)?;
        if devices.contains(&self.device()) {
            return Ok(());
        }
        Err(RigError::Detached { device: self.device(), image: self.path.clone() })
    }

    fn nature(&self) -> String {
        let kind = match self.allocation {
            Allocation::Full => "an image file",
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
    bench: &mut Bench,
    host: &dyn Host,
    path: &Path,
    identity: Identity,
    allocation: Allocation,
) -> Result<(Attached, Option<Warning>), RigError> {
    let (step, made) = bench.attach(path, identity)?;
    let mut warning = None;
    if allocation == Allocation::Full && made.made.is_some() {
        warning = knobs::switch_discard_off(bench, host, &name_of(&made.path));
    }
    Ok((Attached { device: made.path, direct: made.direct, step }, warning))
}

/// Writes back and drops the page cache of devices.
pub(crate) fn flush(bench: &mut Bench, devices: &[PathBuf]) -> Result<(), RigError> {
    for device in devices {
        let what = format!("flush the page cache of {}", device.display());
        let (done, _) = bench.act(what, |host| host.flush_device(device));
        done.map_err(|source| RigError::Caches { path: device.clone(), source })?;
    }
    Ok(())
}

/// The kernel's name of a device node.
pub(crate) fn name_of(device: &Path) -> String {
    device.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What makes a device something else than a disk of its own; `None` for one that looks real.
fn nature(host: &dyn Host, name: &str) -> Option<String> {
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
    let queue = knobs::queue(host, name);
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
