//! Storage of a run, which is claimed and created when the [`Rig`] is opened. Every trial creates
//! its filesystem on this storage.

mod claim;
mod external;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use model::{
    Bytes, Environment, Storage, StorageKind, SystemSetting, SystemSettings, Warning,
    record::Action,
};

use self::external::ExternalDirectory;
pub use crate::base::RigOptions;
use crate::{
    activity::MonitorCache,
    base::{Base, Shared},
    device::Backing,
    error::RigError,
    host::Host,
    instance::{InstanceSpec, MountedFilesystem},
    journaled_host::JournaledHost,
    memory::{self, Group},
    probe,
    undo::{self, Journal, NotUndone, PREFIX},
};

/// Reciprocal of the difference up to which two sizes count as equal, as a fraction of the larger.
const SAME_SIZE_DIVISOR: u64 = 100;

/// Claimed storage of a run. Dropping it undoes all changes of the machine. [`Rig::close`] does the
/// same and returns the changes that could not be undone.
#[derive(Debug)]
pub struct Rig {
    /// Storage of the plan, or of the first level of the axis `device`.
    pub(crate) base: Base,
    /// Storage of the other levels.
    others: Vec<Base>,
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
        let mut kinds = storage.kind.each().into_iter();
        let what = kinds.clone().find_map(|(_, kind)| match kind {
            StorageKind::Image { .. } => Some("creating filesystems on image files"),
            StorageKind::Devices { .. } => Some("creating filesystems on devices"),
            StorageKind::Directory { .. } | StorageKind::Levels { .. } => None,
        });
        if let Some(what) = what.filter(|_| !host.is_root()) {
            return Err(RigError::NotRoot { what });
        }
        let first = kinds.next().ok_or(RigError::NoLevel)?;
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
        let shared = Arc::new(shared);
        let mount_point = state.join(format!("{PREFIX}{}", options.run_id));
        let base = |(name, kind): (Option<&str>, &StorageKind)| Base {
            shared: Arc::clone(&shared),
            backing: Backing::Images(Vec::new()),
            mount_point: mount_point.clone(),
            options: options.clone(),
            storage: Storage { kind: kind.clone(), ..storage.clone() },
            level: name.map(str::to_owned),
        };
        let mut rig = Self {
            base: base(first),
            others: kinds.map(base).collect(),
            warnings: Vec::new(),
            group: None,
            external: None,
            closed: false,
        };
        // From this point, dropping `rig` undoes all changes.
        rig.claim()?;
        rig.warnings.extend(rig.storage_warnings());
        if let Some(memory) = storage.memory_limit
            && let Some(warning) = rig.limit_memory(memory)
        {
            rig.warnings.push(warning);
        }
        Ok(rig)
    }

    /// Storage of each level of the axis `device`, in the order of the plan. Storage that is not an
    /// axis is one level without a name.
    fn levels(&self) -> impl Iterator<Item = &Base> {
        std::iter::once(&self.base).chain(&self.others)
    }

    fn levels_mut(&mut self) -> impl Iterator<Item = &mut Base> {
        std::iter::once(&mut self.base).chain(&mut self.others)
    }

    /// Storage of an instance: the level that its settings name.
    fn level(&self, settings: &SystemSettings) -> Result<&Base, RigError> {
        let named = settings.get(&SystemSetting::Device).map(ToString::to_string);
        let mut levels = self.levels();
        levels
            .find(|level| level.level == named)
            .ok_or_else(|| RigError::UnknownLevel { name: named.unwrap_or_default() })
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
        let free = |_: &RigError| self.base.shared.occupied.store(false, Ordering::Release);
        let level = self.level(spec.settings).inspect_err(free)?;
        let warnings = MountedFilesystem::ready(level, spec).inspect_err(free)?;
        // From this point, the instance releases the storage when it is dropped.
        MountedFilesystem::make(level, spec, warnings)
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

    /// Warnings about the storage of all levels, without duplicates.
    fn storage_warnings(&self) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = Vec::new();
        for level in self.levels() {
            let own = level.backing.warnings(&*level.shared.host);
            for warning in own {
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        warnings.extend(self.different_sizes());
        warnings
    }

    /// Warning if the levels of the axis `device` have different sizes.
    fn different_sizes(&self) -> Option<Warning> {
        let size = |level: &Base| -> Bytes {
            let sizes = level.backing.first(usize::MAX).sizes();
            sizes.into_iter().map(|(_, size)| size).sum()
        };
        let sizes: Vec<Bytes> = self.levels().map(size).collect();
        let (least, most) = (sizes.iter().min()?.0, sizes.iter().max()?.0);
        // Disks of one nominal size differ by less.
        let differ = most - least > most / SAME_SIZE_DIVISOR;
        let names = self.levels().filter_map(|level| level.level.as_deref()).zip(&sizes);
        let each = names.map(|(name, size)| format!("{name} {}", size.rough()));
        let sizes = each.collect::<Vec<_>>().join(", ");
        differ.then_some(Warning::DeviceSizesDiffer { sizes })
    }

    /// Description of the storage. Levels of the axis `device` are separated by semicolons; each
    /// has its name, devices or images, size, and kind of medium.
    pub fn describe(&self) -> String {
        self.levels().map(Base::describe).collect::<Vec<_>>().join("; ")
    }

    /// Warnings that apply to all results on this storage.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.clone()
    }

    /// Environment facts about the host and the storage, with current values.
    pub fn environment(&self) -> Environment {
        let host = &*self.base.shared.host;
        let mut environment = probe::machine(host);
        for level in self.levels() {
            environment.merge(level.facts());
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
