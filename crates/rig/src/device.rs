//! Block devices of an instance: their properties, their reset before each mkfs, and their I/O
//! counters.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use model::{Allocation, Bytes, Warning};

use crate::{
    error::RigError,
    guard::ClaimedDevice,
    host::{Host, Identity, WipeMethod},
    journaled_host::JournaledHost,
    settings,
    sysfs::{name_of, queue},
    undo::Step,
};

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
    pub(crate) fn reattach(
        self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
    ) -> Result<Vec<Warning>, RigError> {
        let warnings = self.images().iter().map(|image| image.reattach(journaled, host));
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
    let queue = queue(host, name);
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
