//! Storage of a run, which is claimed and created when the [`Rig`] is opened. Every trial creates
//! its filesystem on this storage.

mod external;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use model::{Allocation, Bytes, Environment, Storage, StorageKind, Warning, record::Action};

use self::external::ExternalDirectory;
pub use crate::base::RigOptions;
use crate::{
    activity::MonitorCache,
    base::{Base, Shared},
    device::{Backing, Image},
    error::RigError,
    guard::{self, ClaimedImage, Permission},
    host::Host,
    instance::{InstanceSpec, MountedFilesystem},
    journaled_host::JournaledHost,
    memory::{self, Group},
    probe,
    sysfs::name_of,
    undo::{self, Journal, NotUndone, PREFIX},
};

/// Claimed storage of a run. Dropping it undoes all changes of the machine. [`Rig::close`] does the
/// same and returns the changes that could not be undone.
#[derive(Debug)]
pub struct Rig {
    pub(crate) base: Base,
    warnings: Vec<Warning>,
    group: Option<Group>,
    external: Option<ExternalDirectory>,
    closed: bool,
}

impl Rig {
    /// Claims the devices, creates and attaches the images, or finds the directory, and then sets
    /// the memory limit of the plan. No filesystem is created yet.
    ///
    /// # Errors
    /// [`RigError`]. Changes made before the error are undone.
    pub fn open(
        host: Arc<dyn Host>,
        storage: &Storage,
        options: RigOptions,
    ) -> Result<Self, RigError> {
        let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if options.run_id.is_empty() || !options.run_id.chars().all(fit) {
            return Err(RigError::RunId { id: options.run_id });
        }
        let what = match storage.kind {
            StorageKind::Image { .. } => Some("creating filesystems on image files"),
            StorageKind::Devices { .. } => Some("creating filesystems on devices"),
            StorageKind::Directory { .. } => None,
        };
        if let Some(what) = what.filter(|_| !host.is_root()) {
            return Err(RigError::NotRoot { what });
        }
        let state = match &options.state_directory {
            Some(state) => state.clone(),
            None => undo::default_state_directory(&*host)?,
        };
        let journal = Journal::create(&*host, &state, &options.run_id)?;
        // The path is resolved because mount tables contain resolved paths.
        let state = follow(&*host, &state)?;
        let shared = Shared {
            host: Arc::clone(&host),
            journaled: Mutex::new(JournaledHost::new(host, journal)),
            occupied: AtomicBool::new(false),
            monitor_cache: MonitorCache::default(),
        };
        let mut rig = Self {
            base: Base {
                shared: Arc::new(shared),
                backing: Backing::Images(Vec::new()),
                mount_point: state.join(format!("{PREFIX}{}", options.run_id)),
                options,
                storage: storage.clone(),
            },
            warnings: Vec::new(),
            group: None,
            external: None,
            closed: false,
        };
        // From this point, dropping `rig` undoes all changes.
        rig.claim()?;
        rig.warnings.extend(rig.base.backing.warnings(&*rig.base.shared.host));
        if let Some(memory) = storage.memory_limit
            && let Some(warning) = rig.limit_memory(memory)
        {
            rig.warnings.push(warning);
        }
        Ok(rig)
    }

    fn claim(&mut self) -> Result<(), RigError> {
        let host = Arc::clone(&self.base.shared.host);
        match self.base.storage.kind.clone() {
            StorageKind::Image { size, count, directory, file, allocation } => {
                self.base.shared.journaled().directory(&self.base.mount_point)?;
                let directory = self.image_directory(directory)?;
                let total = Bytes(size.0.saturating_mul(count.into()));
                // A file name may contain a path. The space of an existing file is used again.
                let existing = file.as_ref().map(|file| directory.join(file));
                let parent = existing.as_deref().and_then(Path::parent).unwrap_or(&directory);
                let had = existing.as_deref().map_or(Bytes(0), guard::allocated);
                guard::space_for_images(parent, total, had, allocation)?;
                if let Some(limit) = self.base.storage.memory_limit {
                    guard::images_within_limit(parent, total, allocation, limit)?;
                }
                for index in 0..count {
                    let image = self.image(&directory, index, file.as_deref(), size, allocation)?;
                    let Backing::Images(images) = &mut self.base.backing else {
                        unreachable!("set above")
                    };
                    images.push(image);
                }
            }
            StorageKind::Devices { paths } => {
                self.base.shared.journaled().directory(&self.base.mount_point)?;
                let mut claimed: Vec<guard::ClaimedDevice> = Vec::new();
                for path in &paths {
                    let device = guard::claim_device(
                        Path::new(path),
                        &self.permission(),
                        &host.roots(),
                        &claimed,
                    )?;
                    if claimed.iter().any(|other| other.overlaps(&device)) {
                        return Err(RigError::DuplicateDevice { device: path.into() });
                    }
                    self.base.shared.journaled().lock(device.lock());
                    claimed.push(device);
                }
                self.base.backing = Backing::Devices(claimed);
            }
            StorageKind::Directory { path } => {
                let path = follow(&*host, Path::new(&path))?;
                guard::store_outside(&self.base.options.store_file, &path)?;
                self.base.backing = Backing::Directory(path);
            }
        }
        Ok(())
    }

    fn permission(&self) -> Permission {
        let RigOptions { overwrite, store_file, .. } = &self.base.options;
        Permission { overwrite: overwrite.clone(), store_file: store_file.clone() }
    }

    fn image_directory(&self, named: Option<String>) -> Result<PathBuf, RigError> {
        let host = &*self.base.shared.host;
        match named {
            Some(named) => follow(host, Path::new(&named)),
            None => {
                let default = &self.base.options.default_image_directory;
                if host.entry(default).is_err() {
                    self.base.shared.journaled().directory(default)?;
                }
                follow(host, default)
            }
        }
    }

    /// Creates or claims one image, sets its size, and attaches it to a loop device.
    fn image(
        &mut self,
        directory: &Path,
        index: u32,
        file: Option<&str>,
        size: Bytes,
        allocation: Allocation,
    ) -> Result<Image, RigError> {
        let host = Arc::clone(&self.base.shared.host);
        let generated = format!("{PREFIX}{}-{index}.img", self.base.options.run_id);
        let mut path = directory.join(file.unwrap_or(&generated));
        let claimed = guard::claim_image(&path, size, &self.permission(), &host.roots())?;
        let mut journaled = self.base.shared.journaled();
        let identity = match claimed {
            ClaimedImage::New if file.is_none() => journaled.image(&path)?,
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
        Ok(image)
    }

    /// Creates and mounts a filesystem; see [`MountedFilesystem`].
    ///
    /// # Errors
    /// [`RigError::Busy`] while an earlier instance exists; otherwise [`RigError`] if the storage
    /// is not suitable or a step such as mkfs or mount fails. Changes made before the error are
    /// undone.
    pub fn instance(&self, spec: &InstanceSpec<'_>) -> Result<MountedFilesystem, RigError> {
        if self.base.shared.occupied.swap(true, Ordering::AcqRel) {
            return Err(RigError::Busy);
        }
        let warnings = MountedFilesystem::ready(&self.base, spec).inspect_err(|_| {
            self.base.shared.occupied.store(false, Ordering::Release);
        })?;
        // From this point, the instance releases the storage when it is dropped.
        MountedFilesystem::make(&self.base, spec, warnings)
    }

    /// Sets or changes the memory limit of this process. Returns a warning if this failed.
    pub fn limit_memory(&mut self, limit: Bytes) -> Option<Warning> {
        let host = Arc::clone(&self.base.shared.host);
        let mut journaled = self.base.shared.journaled();
        let done = match &self.group {
            Some(group) => group.change(&mut journaled, limit),
            None => Group::enter(&mut journaled, &*host, &self.base.options.run_id, limit)
                .map(|group| self.group = Some(group)),
        };
        done.err().map(|reason| Warning::MemoryLimitNotSet { reason })
    }

    /// Description of the storage.
    pub fn describe(&self) -> String {
        self.base.describe()
    }

    /// Warnings that apply to all results on this storage.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.clone()
    }

    /// Environment facts about the host and the storage, with current values.
    pub fn environment(&self) -> Environment {
        let host = &*self.base.shared.host;
        let mut environment = probe::machine(host);
        let below = match &self.base.backing {
            Backing::Images(images) => images.first().map(|image| image.path.as_path()),
            Backing::Directory(path) => Some(path.as_path()),
            Backing::Devices(_) => None,
        };
        if let Some(path) = below {
            environment.merge(probe::holder(host, path));
        }
        for device in self.base.backing.devices() {
            environment.merge(probe::device(host, &name_of(&device)));
        }
        if let Some((limit, version)) = memory::limit(host, self.group.as_ref()) {
            environment.set("memory.limit_bytes", limit.0.to_string());
            environment.set("memory.group", version);
        }
        if let Some(external) = &self.external {
            environment.merge(external.facts.clone());
        }
        environment
    }

    /// Boot ID of the machine; `None` if not available.
    pub fn boot_id(&self) -> Option<String> {
        self.base.shared.host.boot_id()
    }

    /// Actions on the machine since the last call, including those of instances.
    pub fn take_actions(&self) -> Vec<Action> {
        self.base.shared.journaled().take_actions()
    }

    /// Undoes all changes, newest first, and returns the changes that could not be undone. In this
    /// case, the journal is kept for `fslab clean`.
    pub fn close(mut self) -> Vec<NotUndone> {
        self.closed = true;
        self.base.shared.journaled().close()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        for not_undone in self.base.shared.journaled().close() {
            tracing::warn!(what = not_undone.what, why = not_undone.why, "not undone");
        }
    }
}

fn follow(host: &dyn Host, path: &Path) -> Result<PathBuf, RigError> {
    host.follow(path).map_err(|source| RigError::Directory { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
