//! Storage below a filesystem instance: its devices, and their reset before each mkfs.

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
    /// Block devices claimed from the guard.
    Devices(Vec<ClaimedDevice>),
    /// Existing directory; nothing is formatted.
    Directory(PathBuf),
}

/// The devices that one entry of `filesystem` in the plan uses: the first `count` devices of the
/// storage. The other devices are not changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share<'a> {
    backing: &'a Backing,
    count: usize,
    /// Size of each image; `None` for the size of the plan.
    size: Option<Bytes>,
}

/// Image file with its loop device.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) size: Bytes,
    pub(crate) allocation: Allocation,
    /// Current loop device. The device may change with each instance if the plan sets isolation to
    /// `reattach`.
    attached: Mutex<Attached>,
}

/// Loop device to which an image is attached.
#[derive(Clone, Debug)]
struct Attached {
    device: PathBuf,
    direct: bool,
    /// Size of the image when it was attached, which is that of the device.
    size: Bytes,
    /// Step of the undo journal; its undo detaches the image.
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

    /// The first `count` devices, or all if there are fewer.
    pub(crate) fn first(&self, count: usize) -> Share<'_> {
        Share { backing: self, count, size: None }
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

    /// The same devices with images of this size; `None` for the size of the plan.
    pub(crate) fn sized(self, size: Option<Bytes>) -> Self {
        Self { size, ..self }
    }

    fn size_of(self, image: &Image) -> Bytes {
        self.size.unwrap_or(image.size)
    }

    /// Path and size of each image or device.
    pub(crate) fn sizes(self) -> Vec<(PathBuf, Bytes)> {
        let images = self.images().iter().map(|image| (image.path.clone(), self.size_of(image)));
        let devices = self.claimed().iter().map(|d| (d.path().to_owned(), d.size()));
        images.chain(devices).collect()
    }

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

    /// Detaches every image from its loop device and attaches it again. Devices and directories are
    /// unchanged. Returns warnings about the new loop devices.
    pub(crate) fn reattach(
        self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
    ) -> Result<Vec<Warning>, RigError> {
        let reattach = |image: &Image| image.reattach(journaled, host, self.size_of(image));
        let warnings = self.images().iter().map(reattach);
        Ok(warnings.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Sets the size of the images, without allocating space. Returns true if the size of a device
    /// changes, which requires [`Share::reattach`].
    pub(crate) fn resize(self, journaled: &mut JournaledHost) -> Result<bool, RigError> {
        let mut resized = false;
        for image in self.images() {
            let size = self.size_of(image);
            if image.attached().size != size {
                journaled.renew_image(&image.path, image.identity, size, Allocation::Sparse)?;
                resized = true;
            }
        }
        Ok(resized)
    }

    /// Resets the devices, so that each instance starts with the same state as far as possible.
    /// Image files are truncated and set to their size again, and preallocated if they were before.
    /// Devices are discarded; if the discard fails, their first and last 2 MiB are overwritten. At
    /// the end, the page cache of all devices is dropped.
    pub(crate) fn renew(self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        for image in self.images() {
            image.recheck(journaled)?;
            let (size, allocation) = (self.size_of(image), image.allocation);
            journaled.renew_image(&image.path, image.identity, size, allocation)?;
        }
        for device in self.claimed() {
            device.recheck()?;
            if journaled.erase(device)? == WipeMethod::Wiped {
                tracing::debug!(
                    device = device.name(),
                    "discard failed; the first and last 2 MiB were overwritten"
                );
            }
        }
        flush(journaled, &self.devices())
    }

    /// Checks right before mkfs that each image is still attached to its loop device, and that each
    /// claimed device is unchanged and not in use.
    pub(crate) fn recheck(self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        self.images().iter().try_for_each(|image| image.recheck(journaled))?;
        Ok(self.claimed().iter().try_for_each(ClaimedDevice::recheck)?)
    }

    /// Warnings about preallocated images with less allocated space than their size. mkfs or mount
    /// may have released the space by a discard.
    pub(crate) fn unreserved(self, host: &dyn Host) -> Vec<Warning> {
        let full =
            self.images().iter().filter(|image| image.allocation == Allocation::Preallocated);
        let lost = full.filter_map(|image| {
            let found = host.entry(&image.path).ok()?.allocated;
            let wanted = self.size_of(image);
            (found < wanted).then(|| Warning::SettingNotApplied {
                setting: format!("allocated space of {}", image.path.display()),
                wanted: wanted.to_string(),
                found: found.to_string(),
            })
        });
        lost.collect()
    }
}

impl Image {
    /// Attaches an image with this identity to a loop device. If the image is preallocated, discard
    /// is disabled on a loop device that is created for it. A loop device that existed before keeps
    /// its discard setting; [`Share::unreserved`] detects released space after the mount.
    pub(crate) fn attach(
        journaled: &mut JournaledHost,
        host: &dyn Host,
        path: PathBuf,
        identity: Identity,
        (size, allocation): (Bytes, Allocation),
    ) -> Result<(Self, Option<Warning>), RigError> {
        let (attached, warning) = attach(journaled, host, &path, identity, (size, allocation))?;
        Ok((Self { path, identity, size, allocation, attached: Mutex::new(attached) }, warning))
    }

    pub(crate) fn device(&self) -> PathBuf {
        self.attached().device.clone()
    }

    fn attached(&self) -> MutexGuard<'_, Attached> {
        // The value is replaced as a whole, so it is valid even if a thread panicked with the lock.
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Detaches the image and attaches it again, possibly to another loop device. The kernel state
    /// of the old device is dropped. The new device has the size of the image, which is `size`.
    /// After an error the image may be detached; the next call then attaches it.
    fn reattach(
        &self,
        journaled: &mut JournaledHost,
        host: &dyn Host,
        size: Bytes,
    ) -> Result<Option<Warning>, RigError> {
        let mut attached = self.attached();
        journaled.undo(attached.step, format!("attach of {}", self.path.display()))?;
        let properties = (size, self.allocation);
        let (new, warning) = attach(journaled, host, &self.path, self.identity, properties)?;
        *attached = new;
        Ok(warning)
    }

    /// Checks that the image is still attached to its loop device. Another process may have
    /// detached the device and attached it to another file.
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
            true => "direct I/O to the file",
            false => {
                "buffered I/O to the file, because the filesystem that stores the file does not \
                 support direct I/O; the data is cached twice"
            }
        };
        format!("{kind} on a loop device with {io}")
    }
}

fn attach(
    journaled: &mut JournaledHost,
    host: &dyn Host,
    path: &Path,
    identity: Identity,
    (size, allocation): (Bytes, Allocation),
) -> Result<(Attached, Option<Warning>), RigError> {
    let (step, made) = journaled.attach(path, identity)?;
    let mut warning = None;
    if allocation == Allocation::Preallocated && made.made.is_some() {
        warning = settings::disable_discard(journaled, host, &name_of(&made.path));
    }
    Ok((Attached { device: made.path, direct: made.direct, size, step }, warning))
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

/// Description of a device that is not a physical disk; `None` if the device appears to be a
/// physical disk.
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
