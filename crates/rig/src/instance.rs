//! One instance: a freshly made filesystem, mounted for one trial, and taken away again.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use model::{
    Bytes, Environment, FilesystemLevel, Nanos, Warning, record::Action, sample::lifecycle,
};

use crate::{
    bench::Bench,
    caches,
    catalogue::{Filesystem, Kind},
    device::{Backing, DeviceCounters, DeviceStat, name_of},
    error::RigError,
    guard,
    host::Host,
    knobs,
    mount::{MountRequest, holder},
    probe,
    storage::{Rig, Shared},
    undo::{PREFIX, Step},
};

/// What a filesystem offers right after it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// What an ordinary user can fill.
    pub usable: Bytes,
    /// The devices together, or without devices what the filesystem says of itself.
    pub total: Bytes,
    /// Inodes; `None` where they are made on demand.
    pub inodes: Option<u64>,
}

/// How an instance ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// The steps around the phases, named as in [`model::sample::lifecycle`], in their order.
    pub lifecycle: Vec<(&'static str, Nanos)>,
    /// What the check found, if it found damage.
    pub damage: Option<String>,
}

/// A mounted filesystem under test. [`Mounted::finish`] takes it away and tells how that went;
/// dropping it takes it away as well as it can.
#[derive(Debug)]
pub struct Mounted {
    shared: Arc<Shared>,
    /// Directory below which workloads work.
    directory: PathBuf,
    /// How it is mounted; `None` for a directory of somebody else's filesystem.
    request: Option<MountRequest>,
    mounted: Option<Step>,
    /// Further changes, oldest first.
    steps: Vec<(Step, String)>,
    /// Devices it lies on; empty when it has none, or none of its own.
    devices: Vec<PathBuf>,
    images: Vec<PathBuf>,
    /// Names of the devices whose counters tell what it moves.
    counted: Vec<String>,
    in_memory: bool,
    fsck: Option<(Vec<String>, Vec<i32>)>,
    lifecycle: Vec<(&'static str, Nanos)>,
    space: Space,
    options: String,
    environment: Environment,
    warnings: Vec<Warning>,
}

impl Mounted {
    /// Makes the instance. Whatever fails, dropping the half-made one undoes it and frees the
    /// storage.
    pub(crate) fn make(
        rig: &Rig,
        filesystem: &Filesystem,
        level: &FilesystemLevel,
        scheduler: Option<&str>,
    ) -> Result<Self, RigError> {
        let devices = match filesystem.kind {
            Kind::Block => rig.backing.devices(),
            Kind::Memory | Kind::Directory => Vec::new(),
        };
        let mut mounted = Self {
            shared: Arc::clone(&rig.shared),
            directory: rig.mount_point.clone(),
            request: None,
            mounted: None,
            steps: Vec::new(),
            counted: devices.iter().map(|device| name_of(device)).collect(),
            images: rig.backing.images().iter().map(|image| image.path.clone()).collect(),
            devices,
            in_memory: filesystem.kind == Kind::Memory,
            fsck: None,
            lifecycle: Vec::new(),
            space: Space::default(),
            options: String::new(),
            environment: Environment::default(),
            warnings: Vec::new(),
        };
        fits(rig, filesystem, mounted.devices.len())?;
        mounted.set_scheduler(scheduler)?;
        match &rig.backing {
            Backing::Directory(parent) => mounted.make_directory(rig, parent)?,
            Backing::Images(_) | Backing::Devices(_) => {
                mounted.make_filesystem(rig, filesystem, level)?;
            }
        }
        mounted.look(rig)?;
        Ok(mounted)
    }

    fn set_scheduler(&mut self, scheduler: Option<&str>) -> Result<(), RigError> {
        let shared = Arc::clone(&self.shared);
        let Some(scheduler) = scheduler else { return Ok(()) };
        if self.counted.is_empty() {
            self.warnings.push(Warning::ReadBack {
                setting: "scheduler".into(),
                wanted: scheduler.into(),
                found: "no device of its own".into(),
            });
        }
        for name in &self.counted {
            let mut bench = shared.bench();
            let (step, warning) = knobs::set_scheduler(&mut bench, &*shared.host, name, scheduler)?;
            self.steps.extend(step.map(|step| (step, format!("scheduler of {name}"))));
            self.warnings.extend(warning);
        }
        Ok(())
    }

    fn make_directory(&mut self, rig: &Rig, parent: &Path) -> Result<(), RigError> {
        let run_id = &rig.options.run_id;
        let tree = parent.join(format!("{PREFIX}{run_id}"));
        // The marker lies beside the workload's directory, not in it.
        self.directory = tree.join("data");
        let mut bench = self.shared.bench();
        let step = bench.tree(&tree, run_id)?;
        self.steps.push((step, format!("directory {}", tree.display())));
        let (made, _) = bench.act(format!("mkdir {}", self.directory.display()), |host| {
            host.make_directory(&self.directory)
        });
        made.map_err(|source| RigError::Directory { path: self.directory.clone(), source })?;
        drop(bench);
        self.counted = probe::device_of(&*self.shared.host, parent).into_iter().collect();
        Ok(())
    }

    fn make_filesystem(
        &mut self,
        rig: &Rig,
        filesystem: &Filesystem,
        level: &FilesystemLevel,
    ) -> Result<(), RigError> {
        let devices: Vec<String> =
            self.devices.iter().map(|device| device.display().to_string()).collect();
        let size = rig.backing.sizes().into_iter().map(|(_, size)| size).sum();
        let shared = Arc::clone(&self.shared);
        let mut bench = shared.bench();
        if filesystem.kind == Kind::Block {
            rig.backing.renew(&mut bench)?;
            rig.backing.recheck(&mut bench)?;
            let argv = filesystem.mkfs_argv(&devices, level);
            let output = bench.run(&argv)?;
            if !output.success() {
                let (command, verdict) = (argv.join(" "), output.verdict());
                return Err(RigError::Mkfs { command, verdict });
            }
            self.lifecycle.push((lifecycle::MKFS, output.elapsed));
        }
        let request = MountRequest {
            source: filesystem.mount_source(&devices),
            target: self.directory.clone(),
            fstype: filesystem.fstype.clone(),
            options: filesystem.mount_options(&devices, size, level),
        };
        let (step, elapsed) = bench.mount(&request)?;
        self.mounted = Some(step);
        self.request = Some(request);
        self.lifecycle.push((lifecycle::MOUNT, elapsed));
        self.fsck =
            filesystem.fsck_argv(&devices).map(|argv| (argv, filesystem.fsck_clean.clone()));
        drop(bench);
        self.check_magic(filesystem)?;
        self.warnings.extend(rig.backing.unreserved(&*self.shared.host));
        Ok(())
    }

    fn check_magic(&self, filesystem: &Filesystem) -> Result<(), RigError> {
        let found = statistics(&*self.shared.host, &self.directory)?.magic;
        if filesystem.magic == 0 || filesystem.magic == found {
            return Ok(());
        }
        Err(RigError::Magic {
            filesystem: filesystem.name.clone(),
            target: self.directory.clone(),
            wanted: filesystem.magic,
            found,
        })
    }

    /// Reads back what came of it: options, space, settings.
    fn look(&mut self, rig: &Rig) -> Result<(), RigError> {
        let host = Arc::clone(&self.shared.host);
        guard::store_outside(&rig.options.store_file, &self.directory)?;
        let statistics = statistics(&*host, &self.directory)?;
        let devices: Bytes = rig.backing.sizes().into_iter().map(|(_, size)| size).sum();
        self.space = Space {
            usable: statistics.usable,
            total: if self.devices.is_empty() { statistics.total } else { devices },
            inodes: Some(statistics.inodes).filter(|inodes| *inodes > 0),
        };
        if let Ok(mounts) = host.mounts()
            && let Some(mount) = holder(&mounts, &self.directory)
        {
            self.options = mount.resolved_options();
            self.environment.set("mount.options", &self.options);
            self.environment.set("mount.fstype", &mount.fstype);
        }
        for name in &self.counted {
            self.environment.merge(probe::device(&*host, name));
        }
        Ok(())
    }

    /// The directory below which workloads work. It may hold what the filesystem itself put there,
    /// such as `lost+found`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The steps so far: mkfs and mount, where there were any.
    pub fn lifecycle(&self) -> &[(&'static str, Nanos)] {
        &self.lifecycle
    }

    /// What the filesystem offered right after it was made.
    pub fn space(&self) -> Space {
        self.space
    }

    /// The mount options in force, as the kernel tells them.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// Facts that hold for this instance: mount options, settings of its devices.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// What must be known of this instance before believing a number.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What was done to the machine since the last call.
    pub fn take_actions(&self) -> Vec<Action> {
        self.shared.bench().take_actions()
    }

    /// What its devices have moved; `None` where the device is not known or keeps no account. For a
    /// directory that is all that was moved on its device, by anybody.
    pub fn counters(&self) -> Option<DeviceCounters> {
        let mut sum = DeviceCounters::default();
        for name in &self.counted {
            let counters = DeviceStat::read(&*self.shared.host, name)?.counters;
            sum.read = sum.read + counters.read;
            sum.written = sum.written + counters.written;
        }
        (!self.counted.is_empty()).then_some(sum)
    }

    /// Leaves nothing of the filesystem in memory, and looks that it is so.
    ///
    /// With devices: written back, unmounted, device caches flushed, kernel caches dropped, mounted
    /// again with the same options. The check is made while unmounted: neither the devices nor the
    /// images may have pages in memory. In a directory: written back and dropped file by file, and
    /// the kernel's caches too as root; without root, names and inodes stay in memory. `Some` says
    /// what stayed.
    ///
    /// # Errors
    /// [`RigError`] when it cannot be unmounted, or not mounted again; only finishing is left then.
    pub fn make_cold(&mut self) -> Result<Option<Warning>, RigError> {
        if self.in_memory {
            let reason = "the filesystem lives in memory".into();
            return Ok(Some(Warning::CacheKept { reason }));
        }
        let shared = Arc::clone(&self.shared);
        let mut bench = shared.bench();
        let Some(request) = &self.request else {
            return caches::evict(&mut bench, &self.directory);
        };
        let target = || self.directory.clone();
        let step = self.mounted.ok_or_else(|| RigError::NotMounted { target: target() })?;
        caches::sync(&mut bench, &self.directory)?;
        bench.unmount(step, &request.target)?;
        self.mounted = None;
        let kept = caches::drop_devices(&mut bench, &self.devices, &self.images)?;
        let (step, _) = bench.mount(request)?;
        self.mounted = Some(step);
        Ok(kept)
    }

    /// Writes back and waits until the devices are idle: nothing in flight, and nothing completed
    /// over three short looks in a row. `Some` when that does not come within `limit`.
    ///
    /// # Errors
    /// [`RigError::Caches`] when writing back fails.
    pub fn settle(&mut self, limit: Nanos) -> Result<Option<Warning>, RigError> {
        let mut bench = self.shared.bench();
        caches::sync(&mut bench, &self.directory)?;
        drop(bench);
        Ok(caches::settle(&*self.shared.host, &self.counted, limit))
    }

    /// Unmounts, checks if asked to, and undoes what was changed for this instance.
    ///
    /// # Errors
    /// [`RigError::Unmount`] or [`RigError::Undo`]; what is left then is undone with the rig or by
    /// `fslab clean`.
    pub fn finish(mut self, fsck: bool) -> Result<Finish, RigError> {
        let shared = Arc::clone(&self.shared);
        let mut bench = shared.bench();
        if let (Some(step), Some(request)) = (self.mounted, &self.request) {
            let elapsed = bench.unmount(step, &request.target)?;
            self.mounted = None;
            self.lifecycle.push((lifecycle::UMOUNT, elapsed));
        }
        let mut damage = None;
        if let Some((argv, clean)) = self.fsck.take().filter(|_| fsck) {
            let output = bench.run(&argv)?;
            self.lifecycle.push((lifecycle::FSCK, output.elapsed));
            let is_clean = output.status.is_some_and(|status| clean.contains(&status));
            damage = (!is_clean).then(|| format!("{} {}", argv[0], output.verdict()));
        }
        let undone = self.undo(&mut bench);
        drop(bench);
        undone?;
        Ok(Finish { lifecycle: std::mem::take(&mut self.lifecycle), damage })
    }

    /// Undoes what is open, newest first; goes on after a failure and tells the first.
    fn undo(&mut self, bench: &mut Bench) -> Result<(), RigError> {
        let mut answer = Ok(());
        let mounted = self.mounted.take().map(|step| (step, "mount".to_owned()));
        for (step, what) in self.steps.drain(..).chain(mounted).rev() {
            answer = answer.and(bench.undo(step, what));
        }
        answer
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let shared = Arc::clone(&self.shared);
        let undone = self.undo(&mut shared.bench());
        match undone {
            Ok(()) => shared.occupied.store(false, Ordering::Release),
            // The storage stays occupied: nothing may be made on what may still be mounted.
            Err(error) => tracing::warn!(%error, "an instance was not taken away in full"),
        }
    }
}

fn statistics(host: &dyn Host, path: &Path) -> Result<crate::host::Statistics, RigError> {
    host.statistics(path).map_err(|source| RigError::Ask { path: path.to_owned(), source })
}

/// Whether the filesystem can be made on the storage at all.
fn fits(rig: &Rig, filesystem: &Filesystem, devices: usize) -> Result<(), RigError> {
    let unfit = |cure| {
        let (filesystem, storage) = (filesystem.name.clone(), rig.describe());
        Err(RigError::Storage { filesystem, storage, cure })
    };
    match (&rig.backing, filesystem.kind) {
        (Backing::Directory(_), Kind::Directory) => {}
        (Backing::Directory(_), Kind::Block | Kind::Memory) => {
            return unfit("name an image or devices as storage, or take filesystem `directory`");
        }
        (Backing::Images(_) | Backing::Devices(_), Kind::Directory) => {
            return unfit("name a directory as storage");
        }
        (Backing::Images(_) | Backing::Devices(_), Kind::Block | Kind::Memory) => {}
    }
    if devices > 1 && filesystem.many.is_none() {
        return unfit("it takes one device; name one");
    }
    let small = rig.backing.sizes().into_iter().find(|(_, size)| *size < filesystem.min);
    match small {
        Some((device, size)) => {
            let (filesystem, min) = (filesystem.name.clone(), filesystem.min);
            Err(RigError::TooSmall { filesystem, device, size, min })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
