//! Claims of the storage of a run: all devices and image paths are checked before anything is
//! written, so that a refused level of the axis `device` leaves the other levels unchanged.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use model::{Allocation, Bytes, StorageKind};

use super::{Rig, follow};
use crate::{
    base::RigOptions,
    device::{Backing, Image},
    error::RigError,
    guard::{self, ClaimedDevice, ClaimedImage, Permission},
    host::Identity,
    undo::PREFIX,
};

/// Image that may be created.
struct CheckedImage {
    /// Index of its level.
    level: usize,
    path: PathBuf,
    claimed: ClaimedImage,
    size: Bytes,
    allocation: Allocation,
    /// True if the plan names the file, which is kept after the run.
    named: bool,
}

/// Space that images need on one filesystem.
#[derive(Default)]
struct Needed {
    /// Space that is not yet allocated.
    space: Bytes,
    /// Size of all images.
    total: Bytes,
}

impl Rig {
    /// Claims the storage of all levels.
    pub(super) fn claim(&mut self) -> Result<(), RigError> {
        let formats = |kind: &StorageKind| {
            matches!(kind, StorageKind::Image { .. } | StorageKind::Devices { .. })
        };
        if self.levels().any(|level| formats(&level.storage.kind)) {
            self.base.shared.journaled().directory(&self.base.mount_point)?;
        }
        self.claim_directory()?;
        self.claim_devices()?;
        for image in self.check_images()? {
            self.create(image)?;
        }
        Ok(())
    }

    fn claim_directory(&mut self) -> Result<(), RigError> {
        let StorageKind::Directory { path } = &self.base.storage.kind else { return Ok(()) };
        let path = follow(&*self.base.shared.host, Path::new(path))?;
        guard::store_outside(&self.base.options.store_file, &path)?;
        self.base.backing = Backing::Directory(path);
        Ok(())
    }

    /// Claims and locks the devices of all levels. No two of them may overlap.
    fn claim_devices(&mut self) -> Result<(), RigError> {
        let permission = permission(&self.base.options);
        let roots = self.base.shared.host.roots();
        let mut claimed: Vec<ClaimedDevice> = Vec::new();
        for level in self.levels() {
            let StorageKind::Devices { paths } = &level.storage.kind else { continue };
            for path in paths {
                let device = guard::claim_device(Path::new(path), &permission, &roots, &claimed)?;
                if claimed.iter().any(|other| other.overlaps(&device)) {
                    return Err(RigError::DuplicateDevice { device: path.into() });
                }
                level.shared.journaled().lock(device.lock());
                claimed.push(device);
            }
        }
        let mut claimed = claimed.into_iter();
        for level in self.levels_mut() {
            if let StorageKind::Devices { paths } = &level.storage.kind {
                level.backing = Backing::Devices(claimed.by_ref().take(paths.len()).collect());
            }
        }
        Ok(())
    }

    /// Checks the paths of the images of all levels, and the space that they need together.
    fn check_images(&self) -> Result<Vec<CheckedImage>, RigError> {
        let host = &*self.base.shared.host;
        let permission = permission(&self.base.options);
        let mut images: Vec<CheckedImage> = Vec::new();
        let mut needed: BTreeMap<u64, Needed> = BTreeMap::new();
        for (index, level) in self.levels().enumerate() {
            let StorageKind::Image { size, count, directory, file, allocation } =
                &level.storage.kind
            else {
                continue;
            };
            let directory = self.image_directory(directory.as_deref())?;
            // A file name may contain a path. The space of an existing file is used again.
            let existing = file.as_ref().map(|file| directory.join(file));
            let parent = existing.as_deref().and_then(Path::parent).unwrap_or(&directory);
            let had = existing.as_deref().map_or(Bytes(0), guard::allocated);
            let total = Bytes(size.0.saturating_mul((*count).into()));
            let space = guard::needed_space(total, had, *allocation);
            let filesystem = host.entry(parent).map_or(0, |entry| entry.identity.device);
            let of_filesystem = needed.entry(filesystem).or_default();
            of_filesystem.space = of_filesystem.space + space;
            of_filesystem.total = of_filesystem.total + total;
            guard::space_in(parent, of_filesystem.space)?;
            if let Some(limit) = level.storage.memory_limit {
                guard::images_within_limit(parent, of_filesystem.total, *allocation, limit)?;
            }
            for _ in 0..*count {
                let generated = format!("{PREFIX}{}-{}.img", level.options.run_id, images.len());
                let path = existing.clone().unwrap_or_else(|| directory.join(generated));
                let claimed = guard::claim_image(&path, *size, &permission, &host.roots())?;
                if images.iter().any(|other| same(other, &path, &claimed)) {
                    return Err(RigError::DuplicateDevice { device: path });
                }
                let (size, allocation, named) = (*size, *allocation, file.is_some());
                images.push(CheckedImage { level: index, path, claimed, size, allocation, named });
            }
        }
        Ok(images)
    }

    fn image_directory(&self, named: Option<&str>) -> Result<PathBuf, RigError> {
        let host = &*self.base.shared.host;
        match named {
            Some(named) => follow(host, Path::new(named)),
            None => {
                let default = &self.base.options.default_image_directory;
                if host.entry(default).is_err() {
                    self.base.shared.journaled().directory(default)?;
                }
                follow(host, default)
            }
        }
    }

    /// Creates or takes over one image, sets its size, and attaches it to a loop device.
    fn create(&mut self, checked: CheckedImage) -> Result<(), RigError> {
        let CheckedImage { level, mut path, claimed, size, allocation, named } = checked;
        let host = Arc::clone(&self.base.shared.host);
        let mut journaled = self.base.shared.journaled();
        let identity = match claimed {
            ClaimedImage::New if !named => journaled.image(&path)?,
            ClaimedImage::New => journaled.kept_image(&path)?,
            // The identity is that of the checked file. `renew_image` fails if the path leads to
            // another file.
            ClaimedImage::Blank { identity } | ClaimedImage::Replace { identity, .. } => {
                path = follow(&*host, &path)?;
                identity
            }
        };
        journaled.renew_image(&path, identity, size, allocation)?;
        let (image, warning) =
            Image::attach(&mut journaled, &*host, path, identity, (size, allocation))?;
        drop(journaled);
        self.warnings.extend(warning);
        let backing = self.levels_mut().nth(level).map(|level| &mut level.backing);
        if let Some(Backing::Images(images)) = backing {
            images.push(image);
        }
        Ok(())
    }
}

fn permission(options: &RigOptions) -> Permission {
    let RigOptions { overwrite, store_file, .. } = options;
    Permission { overwrite: overwrite.clone(), store_file: store_file.clone() }
}

/// True if a path is that of another image, or leads to its file.
fn same(other: &CheckedImage, path: &Path, claimed: &ClaimedImage) -> bool {
    let file = |claimed: &ClaimedImage| -> Option<Identity> {
        match claimed {
            ClaimedImage::New => None,
            ClaimedImage::Blank { identity } | ClaimedImage::Replace { identity, .. } => {
                Some(*identity)
            }
        }
    };
    other.path == path || (file(claimed).is_some() && file(&other.claimed) == file(claimed))
}
