//! The storage of a run: claimed, made and described once; instances are made on it again and
//! again.

mod elsewhere;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use model::{Allocation, Bytes, Environment, Place, Storage, Warning, record::Action};

use self::elsewhere::Elsewhere;
use crate::{
    bench::Bench,
    device::{Backing, Image, name_of},
    error::RigError,
    evidence::Roster,
    guard::{self, ClaimedImage, Permission},
    host::Host,
    instance::{Mounted, Wanted},
    memory::{self, Group},
    probe,
    undo::{self, Journal, PREFIX, Stuck},
};

/// What a run tells the rig besides its storage.
#[derive(Clone, Debug)]
pub struct RigOptions {
    /// Where journal and mount point are; `None` for [`undo::default_state_directory`].
    pub state_directory: Option<PathBuf>,
    /// Unique name of the run: lower-case letters, digits and dashes.
    pub run_id: String,
    /// What carries data and may lose it; see [`Permission::destroy`].
    pub destroy: Vec<String>,
    /// The file the run is stored in; never on the filesystem under test.
    pub store_file: PathBuf,
    /// Where images are made when the plan names no directory; made if it is missing.
    pub default_image_directory: PathBuf,
    /// Set by the caller, from any thread or signal handler, to stop what takes long: filling a
    /// filesystem up.
    pub interrupt: Arc<AtomicBool>,
}

/// What the rig and its instance share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: Arc<dyn Host>,
    bench: Mutex<Bench>,
    /// Whether an instance is alive.
    pub(crate) occupied: AtomicBool,
    /// What watches know of the tasks of the machine.
    pub(crate) roster: Roster,
}

impl Shared {
    pub(crate) fn bench(&self) -> MutexGuard<'_, Bench> {
        // The journal stays right when a holder panics: each line is written before its deed.
        self.bench.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The storage of a run. Dropping it puts the machine back; [`Rig::close`] does so and tells what
/// stayed.
#[derive(Debug)]
pub struct Rig {
    pub(crate) shared: Arc<Shared>,
    pub(crate) backing: Backing,
    pub(crate) options: RigOptions,
    pub(crate) mount_point: PathBuf,
    storage: Storage,
    warnings: Vec<Warning>,
    group: Option<Group>,
    elsewhere: Option<Elsewhere>,
    closed: bool,
}

impl Rig {
    /// Claims the devices, or makes the images and attaches them, or finds the directory; then sets
    /// the memory limit of the storage. Nothing is formatted yet.
    ///
    /// # Errors
    /// [`RigError`]; what was changed before is undone.
    pub fn open(
        host: Arc<dyn Host>,
        storage: &Storage,
        options: RigOptions,
    ) -> Result<Self, RigError> {
        let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if options.run_id.is_empty() || !options.run_id.chars().all(fit) {
            return Err(RigError::RunId { id: options.run_id });
        }
        let what = match storage.place {
            Place::Image { .. } => Some("making filesystems on image files"),
            Place::Devices { .. } => Some("making filesystems on devices"),
            Place::Directory { .. } => None,
        };
        if let Some(what) = what.filter(|_| !host.is_root()) {
            return Err(RigError::NotRoot { what });
        }
        let state = match &options.state_directory {
            Some(state) => state.clone(),
            None => undo::default_state_directory(&*host)?,
        };
        let journal = Journal::create(&*host, &state, &options.run_id)?;
        // Mount tables hold paths without links.
        let state = follow(&*host, &state)?;
        let shared = Shared {
            host: Arc::clone(&host),
            bench: Mutex::new(Bench::new(host, journal)),
            occupied: AtomicBool::new(false),
            roster: Roster::default(),
        };
        let mut rig = Self {
            shared: Arc::new(shared),
            backing: Backing::Images(Vec::new()),
            mount_point: state.join(format!("{PREFIX}{}", options.run_id)),
            storage: storage.clone(),
            options,
            warnings: Vec::new(),
            group: None,
            elsewhere: None,
            closed: false,
        };
        // From here on dropping `rig` undoes.
        rig.claim()?;
        rig.warnings.extend(rig.backing.warnings(&*rig.shared.host));
        if let Some(memory) = storage.memory
            && let Some(warning) = rig.limit_memory(memory)
        {
            rig.warnings.push(warning);
        }
        Ok(rig)
    }

    fn claim(&mut self) -> Result<(), RigError> {
        let host = Arc::clone(&self.shared.host);
        match self.storage.place.clone() {
            Place::Image { size, count, directory, file, allocation } => {
                self.shared.bench().directory(&self.mount_point)?;
                let directory = self.image_directory(directory)?;
                let total = Bytes(size.0.saturating_mul(count.into()));
                // A name may lead out of the directory; what is there already is used again.
                let there = file.as_ref().map(|file| directory.join(file));
                let folder = there.as_deref().and_then(Path::parent).unwrap_or(&directory);
                let had = there.as_deref().map_or(Bytes(0), guard::allocated);
                guard::space_for_images(folder, total, had, allocation)?;
                if let Some(limit) = self.storage.memory {
                    guard::images_within_limit(folder, total, allocation, limit)?;
                }
                for index in 0..count {
                    let image = self.image(&directory, index, file.as_deref(), size, allocation)?;
                    let Backing::Images(images) = &mut self.backing else {
                        unreachable!("set above")
                    };
                    images.push(image);
                }
            }
            Place::Devices { paths } => {
                self.shared.bench().directory(&self.mount_point)?;
                let mut claimed: Vec<guard::ClaimedDevice> = Vec::new();
                for path in &paths {
                    let device = guard::claim_device(
                        Path::new(path),
                        &self.permission(),
                        &host.roots(),
                        &claimed,
                    )?;
                    if claimed.iter().any(|other| other.overlaps(&device)) {
                        return Err(RigError::Twice { device: path.into() });
                    }
                    self.shared.bench().lock(device.lock());
                    claimed.push(device);
                }
                self.backing = Backing::Devices(claimed);
            }
            Place::Directory { path } => {
                let path = follow(&*host, Path::new(&path))?;
                guard::store_outside(&self.options.store_file, &path)?;
                self.backing = Backing::Directory(path);
            }
        }
        Ok(())
    }

    fn permission(&self) -> Permission {
        let RigOptions { destroy, store_file, .. } = &self.options;
        Permission { destroy: destroy.clone(), store_file: store_file.clone() }
    }

    fn image_directory(&self, named: Option<String>) -> Result<PathBuf, RigError> {
        let host = &*self.shared.host;
        match named {
            Some(named) => follow(host, Path::new(&named)),
            None => {
                let default = &self.options.default_image_directory;
                if host.entry(default).is_err() {
                    self.shared.bench().directory(default)?;
                }
                follow(host, default)
            }
        }
    }

    /// Makes or claims one image, gives it its size, and attaches it.
    fn image(
        &mut self,
        directory: &Path,
        index: u32,
        file: Option<&str>,
        size: Bytes,
        allocation: Allocation,
    ) -> Result<Image, RigError> {
        let host = Arc::clone(&self.shared.host);
        let generated = format!("{PREFIX}{}-{index}.img", self.options.run_id);
        let mut path = directory.join(file.unwrap_or(&generated));
        let claimed = guard::claim_image(&path, size, &self.permission(), &host.roots())?;
        let mut bench = self.shared.bench();
        let identity = match claimed {
            ClaimedImage::New if file.is_none() => bench.image(&path)?,
            ClaimedImage::New => bench.kept_image(&path)?,
            // The file that was looked at; making it anew refuses any other.
            ClaimedImage::Blank { identity } | ClaimedImage::Replace { identity, .. } => {
                path = follow(&*host, &path)?;
                identity
            }
        };
        bench.renew_image(&path, identity, size, allocation)?;
        let (image, warning) =
            Image::attach(&mut bench, &*host, path, identity, (size, allocation))?;
        drop(bench);
        self.warnings.extend(warning);
        Ok(image)
    }

    /// Makes a filesystem and mounts it; see [`Mounted`].
    ///
    /// # Errors
    /// [`RigError`]: an unfit storage, a failed mkfs or mount; [`RigError::Busy`] while an earlier
    /// instance is alive. What was changed before is undone.
    pub fn instance(&self, wanted: &Wanted<'_>) -> Result<Mounted, RigError> {
        if self.shared.occupied.swap(true, Ordering::AcqRel) {
            return Err(RigError::Busy);
        }
        let warnings = Mounted::ready(self, wanted).inspect_err(|_| {
            self.shared.occupied.store(false, Ordering::Release);
        })?;
        // From here on it is the instance that gives the storage free, when it is dropped.
        Mounted::make(self, wanted, warnings)
    }

    /// Limits the memory of this process, or changes the limit; `Some` says why it cannot be.
    pub fn limit_memory(&mut self, limit: Bytes) -> Option<Warning> {
        let host = Arc::clone(&self.shared.host);
        let mut bench = self.shared.bench();
        let done = match &self.group {
            Some(group) => group.change(&mut bench, limit),
            None => Group::enter(&mut bench, &*host, &self.options.run_id, limit)
                .map(|group| self.group = Some(group)),
        };
        done.err().map(|reason| Warning::MemoryUnlimited { reason })
    }

    /// What lies under the filesystems, in words.
    pub fn describe(&self) -> String {
        match &self.backing {
            Backing::Devices(devices) => {
                let lines: Vec<_> = devices.iter().map(guard::ClaimedDevice::describe).collect();
                lines.join("\n")
            }
            Backing::Images(_) | Backing::Directory(_) => self.storage.to_string(),
        }
    }

    /// What must be known of the storage before believing a number.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.clone()
    }

    /// The host and what lies under the filesystems, as it is now.
    pub fn environment(&self) -> Environment {
        let host = &*self.shared.host;
        let mut environment = probe::machine(host);
        let below = match &self.backing {
            Backing::Images(images) => images.first().map(|image| image.path.as_path()),
            Backing::Directory(path) => Some(path.as_path()),
            Backing::Devices(_) => None,
        };
        if let Some(path) = below {
            environment.merge(probe::holder(host, path));
        }
        for device in self.backing.devices() {
            environment.merge(probe::device(host, &name_of(&device)));
        }
        if let Some((limit, version)) = memory::limit(host, self.group.as_ref()) {
            environment.set("memory.limit_bytes", limit.0.to_string());
            environment.set("memory.group", version);
        }
        if let Some(there) = &self.elsewhere {
            environment.merge(there.facts.clone());
        }
        environment
    }

    /// The id that the kernel drew when it was booted; `None` where it does not tell.
    pub fn boot_id(&self) -> Option<String> {
        self.shared.host.boot_id()
    }

    /// What was done to the machine since the last call, here or by an instance.
    pub fn take_actions(&self) -> Vec<Action> {
        self.shared.bench().take_actions()
    }

    /// Puts the machine back, newest change first, and tells what could not be; its journal is kept
    /// then, for `fslab clean`.
    pub fn close(mut self) -> Vec<Stuck> {
        self.closed = true;
        self.shared.bench().close()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        for stuck in self.shared.bench().close() {
            tracing::warn!(what = stuck.what, why = stuck.why, "left behind");
        }
    }
}

fn follow(host: &dyn Host, path: &Path) -> Result<PathBuf, RigError> {
    host.follow(path).map_err(|source| RigError::Directory { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
