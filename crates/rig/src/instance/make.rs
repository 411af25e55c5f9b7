//! Creation of an instance: system settings, mkfs, `setup`, mount, filling, and reading back the
//! options in effect.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, MutexGuard, atomic::AtomicBool},
};

use model::{
    Bytes, Environment, FilesystemLevel, FillLevel, Isolation, SystemSetting, Value, Warning,
    sample::lifecycle,
};

use super::{InstanceSpec, MountedFilesystem, Space, command::make_tree, fill, statistics};
use crate::{
    base::Base,
    catalog::{Filesystem, Kind},
    device::{self, Backing, Share},
    error::RigError,
    guard,
    journaled_host::JournaledHost,
    layers::device_requirement,
    mount::{Mounting, holder},
    options::{ResolvedOptions, resolve_options},
    probe,
    settings::{self, AppliedSettings},
    setup::{self, SetupTarget},
    sysfs::{device_of, name_of},
    undo::PREFIX,
};

/// Maximum deviation from the fill level of the plan without a warning, in percentage points.
const TOLERANCE: f64 = 2.0;

/// `f_type` of ext2, ext3, and ext4 (include/uapi/linux/magic.h).
const EXT: u64 = 0xef53;

impl MountedFilesystem {
    /// Checks that the instance can be created. If the instance has images of another size than the
    /// last one, or the plan sets isolation to `reattach`, attaches the images again and returns
    /// warnings about the new loop devices.
    pub(crate) fn ready(rig: &Base, spec: &InstanceSpec<'_>) -> Result<Vec<Warning>, RigError> {
        check_fit(rig, spec)?;
        let (shared, share) = (&rig.shared, share(rig, spec)?);
        let mut journaled = shared.journaled();
        let resized = share.resize(&mut journaled)?;
        match spec.isolation {
            Isolation::Remount | Isolation::Reboot if !resized => Ok(Vec::new()),
            Isolation::Remount | Isolation::Reboot | Isolation::Reattach => {
                share.reattach(&mut journaled, &*shared.host)
            }
        }
    }

    /// Creates the instance. After an error, dropping the partial instance undoes its changes and
    /// releases the storage.
    pub(crate) fn make(
        rig: &Base,
        spec: &InstanceSpec<'_>,
        warnings: Vec<Warning>,
    ) -> Result<Self, RigError> {
        let InstanceSpec { filesystem, converted_to, .. } = *spec;
        // Filesystem type during the workload.
        let last = converted_to.unwrap_or(filesystem);
        let share = share(rig, spec)?;
        let devices = match filesystem.kind {
            Kind::Block | Kind::Device => share.devices(),
            Kind::Memory | Kind::Directory | Kind::Command => Vec::new(),
        };
        // Settings are applied to the storage devices, before layers are created on them.
        let counted: Vec<String> = devices.iter().map(|device| name_of(device)).collect();
        let mut mounted = Self {
            shared: Arc::clone(&rig.shared),
            directory: rig.mount_point.clone(),
            mount_point: rig.mount_point.clone(),
            mounting: None,
            mounted: None,
            daemons: Vec::new(),
            placement: None,
            workspace: None,
            steps: Vec::new(),
            fault_targets: Vec::new(),
            faults: None,
            threads: last.deferred_threads(&counted),
            counted,
            lowest: Vec::new(),
            images: share.images().iter().map(|image| image.path.clone()).collect(),
            devices,
            in_memory: filesystem.kind == Kind::Memory,
            is_raw: filesystem.kind == Kind::Device,
            opened: None,
            fsck: None,
            lifecycle: Vec::new(),
            space: Space::default(),
            used_before: Bytes(0),
            foreign: Vec::new(),
            options: String::new(),
            environment: Environment::default(),
            warnings,
            quota: None,
        };
        mounted.tune(rig, spec)?;
        match &rig.backing {
            Backing::Directory(parent) if filesystem.kind == Kind::Command => {
                mounted.place(rig, parent, spec)?;
                mounted.make_filesystem(rig, spec)?;
            }
            Backing::Directory(parent) => {
                mounted.directory = mounted.make_directory(rig, parent)?;
                mounted.measure_space(rig, Bytes(0))?;
            }
            Backing::Images(_) | Backing::Devices(_) => mounted.make_filesystem(rig, spec)?,
        }
        mounted.read_back(last);
        Ok(mounted)
    }

    /// Applies the system settings of the plan. All storage devices must exist.
    fn tune(&mut self, rig: &Base, spec: &InstanceSpec<'_>) -> Result<(), RigError> {
        let shared = Arc::clone(&self.shared);
        let (host, mut journaled) = (&*shared.host, shared.journaled());
        let own: Vec<String> = rig.backing.devices().iter().map(|device| name_of(device)).collect();
        let devices = settings::queue::stack(host, &self.counted, &own);
        let mut applied = AppliedSettings::default();
        let settings = (spec.scheduler, spec.settings);
        let answer = applied
            .machine(&mut journaled, host, &rig.options.run_id, spec.settings)
            .and_then(|()| applied.devices(&mut journaled, host, &devices, settings));
        // Settings applied before a failure are undone with the instance.
        self.steps.extend(applied.steps);
        self.warnings.extend(applied.warnings);
        self.environment.merge(applied.facts);
        self.quota = applied.quota;
        answer
    }

    /// Creates a directory that is removed with the instance, and monitors the device of `parent`.
    pub(super) fn make_directory(
        &mut self,
        rig: &Base,
        parent: &Path,
    ) -> Result<PathBuf, RigError> {
        let shared = Arc::clone(&self.shared);
        let keep = |step| self.steps.push(step);
        let made = make_tree(&mut shared.journaled(), rig, parent, JournaledHost::tree, keep)?;
        self.counted = device_of(&*shared.host, parent).into_iter().collect();
        Ok(made)
    }

    fn make_filesystem(&mut self, rig: &Base, spec: &InstanceSpec<'_>) -> Result<(), RigError> {
        let InstanceSpec { filesystem, converted_to, fill_level, .. } = *spec;
        let share = share(rig, spec)?;
        let whole = share.sizes().into_iter().map(|(_, size)| size).sum();
        let shared = Arc::clone(&self.shared);
        let ResolvedOptions { level, removed, kept } =
            resolve_options(spec.level, filesystem, converted_to, &*shared.host);
        self.warnings.extend(removed);
        if !kept.is_empty() {
            self.environment.set("filesystem.options", kept.join("; "));
        }
        let last = converted_to.unwrap_or(filesystem);
        let mut journaled = shared.journaled();
        let mut size = whole;
        if filesystem.kind.is_on_devices() {
            share.renew(&mut journaled)?;
            share.recheck(&mut journaled)?;
            if !level.layers.is_empty() {
                size = self.build_layers(&mut journaled, rig, spec, share)?;
            }
        }
        if let Some(device) = self.raw_device() {
            let opened = File::open(device);
            let failed = |source| RigError::Unreadable { path: device.to_owned(), source };
            self.opened = Some(opened.map_err(failed)?);
            let (available, remaining) = (size, size);
            self.space = Space { available, remaining, device_size: whole, inodes: None };
            return Ok(());
        }
        let devices: Vec<String> =
            self.devices.iter().map(|device| device.display().to_string()).collect();
        let data = self.placement.as_ref().map(|placement| placement.directory.clone());
        let target = SetupTarget {
            devices: &devices,
            size,
            mount_point: &self.mount_point.clone(),
            directory: &data.unwrap_or_default(),
            name: &format!("{PREFIX}{}", rig.options.run_id),
        };
        if matches!(filesystem.kind, Kind::Block | Kind::Command) {
            self.mkfs(&mut journaled, filesystem, &level, target)?;
            let stages = setup::stages(&level, filesystem, converted_to, target);
            if !stages.is_empty() {
                self.prepare(&mut journaled, &stages, spec, &rig.options.interrupt)?;
            }
            self.features(&mut journaled, last, &devices)?;
        }
        self.mounting = Some(target.mounting(last, &level));
        self.fsck = last.fsck_argv(&devices).map(|argv| (argv, last.fsck_clean.clone()));
        if fill_level.is_empty() || self.in_memory {
            self.mount_timed(&mut journaled)?;
        } else {
            self.mount(&mut journaled)?;
        }
        self.check_magic(last)?;
        self.enter(&mut journaled, rig)?;
        self.measure_space(rig, whole)?;
        if !fill_level.is_empty() {
            self.fill(journaled, fill_level, &rig.options.interrupt)?;
        }
        // Read before the workload, whose files are in the same directory.
        self.foreign = shared.host.list(&self.directory).unwrap_or_default();
        self.foreign.extend(["lost+found", fill::FILL_DIRECTORY].map(str::to_owned));
        self.warnings.extend(share.unreserved(&*self.shared.host));
        Ok(())
    }

    /// Runs mkfs. The reported duration is that of the program. Some mkfs programs sync their data
    /// and others do not, so the page cache of the devices is written back and dropped before the
    /// monitor stops. The first mount therefore always reads from the devices.
    ///
    /// A type that the plan defines may have no mkfs.
    fn mkfs(
        &mut self,
        journaled: &mut JournaledHost,
        filesystem: &Filesystem,
        level: &FilesystemLevel,
        target: SetupTarget<'_>,
    ) -> Result<(), RigError> {
        let argv = target.mkfs(filesystem, level);
        if argv.is_empty() {
            return Ok(());
        }
        let running = self.begin(lifecycle::MKFS);
        let output = match filesystem.mkfs_mounts {
            true => self.make_mounted(journaled, argv, target.mounting(filesystem, level))?,
            false => {
                let output = journaled.run(&argv)?;
                if !output.success() {
                    let (command, verdict) = (argv.join(" "), output.verdict());
                    return Err(RigError::Mkfs { command, verdict });
                }
                output
            }
        };
        device::flush(journaled, &self.devices)?;
        self.lifecycle.push(running.finish_program(&output));
        Ok(())
    }

    /// Records the parameters of the new filesystem as an environment fact. The tool that prints
    /// them runs before the mount, because the kernel may change them. A missing or failing tool is
    /// not an error. Data that the tool read is dropped from the page cache.
    fn features(
        &mut self,
        journaled: &mut JournaledHost,
        filesystem: &Filesystem,
        devices: &[String],
    ) -> Result<(), RigError> {
        let host = Arc::clone(&self.shared.host);
        let exists =
            |argv: &Vec<String>| argv.first().is_some_and(|name| host.find(name).is_some());
        let argv = filesystem.features_argv(devices).filter(exists);
        let Some(argv) = argv else { return Ok(()) };
        if let Ok(output) = journaled.run(&argv)
            && output.success()
        {
            let features = filesystem.features_in(&output.stdout, devices);
            self.environment.set("filesystem.features", features);
        }
        device::flush(journaled, &self.devices)
    }

    /// Fills the filesystem, drops its page cache, and mounts it again; the reported mount time is
    /// that of this mount. A filesystem in memory stays mounted, because an unmount would remove
    /// its files.
    fn fill(
        &mut self,
        mut journaled: MutexGuard<'_, JournaledHost>,
        fill_level: FillLevel,
        stop: &AtomicBool,
    ) -> Result<(), RigError> {
        let host = Arc::clone(&self.shared.host);
        let before = statistics(&*host, &self.directory)?;
        fill::fill(&mut journaled, &*host, &self.directory, fill_level, stop)?;
        if !self.in_memory {
            self.unmount(&mut journaled)?;
            device::flush(&mut journaled, &self.devices)?;
            self.mount_timed(&mut journaled)?;
        }
        let now = statistics(&*host, &self.directory)?;
        let reached = fill::reached(before, now);
        self.space.remaining = now.available;
        self.used_before = now.used();
        self.environment.set("fill.reached_percent", format!("{reached:.1}"));
        if (reached - f64::from(fill_level.0)).abs() > TOLERANCE {
            self.warnings.push(Warning::SettingNotApplied {
                setting: "fill_percent".into(),
                wanted: fill_level.to_string(),
                found: fill::percentage(reached),
            });
        }
        Ok(())
    }

    pub(super) fn check_magic(&self, filesystem: &Filesystem) -> Result<(), RigError> {
        // A command mounts the type that was found in mountinfo, possibly by another driver.
        if let Some(Mounting::Command(_)) = self.mounting {
            return Ok(());
        }
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

    /// Records the space of the filesystem before filling. `devices` is the total size of the
    /// storage devices. Also checks that the run file is not on this filesystem.
    fn measure_space(&mut self, rig: &Base, devices: Bytes) -> Result<(), RigError> {
        guard::store_outside(&rig.options.store_file, &self.directory)?;
        let statistics = statistics(&*self.shared.host, &self.directory)?;
        self.space = Space {
            available: statistics.available,
            remaining: statistics.available,
            device_size: if self.devices.is_empty() { statistics.total } else { devices },
            inodes: Some(statistics.inodes).filter(|inodes| *inodes > 0),
        };
        self.used_before = statistics.used();
        Ok(())
    }

    /// Reads back the mount options and device settings in effect, as environment facts.
    fn read_back(&mut self, filesystem: &Filesystem) {
        let host = Arc::clone(&self.shared.host);
        if !self.is_raw
            && let Ok(mounts) = host.mounts()
            && let Some(mount) = holder(&mounts, &self.directory)
        {
            self.options = mount.resolved_options();
            self.environment.set("mount.options", &self.options);
            self.environment.set("mount.fstype", &mount.fstype);
            self.environment.merge(probe::cleaner(&*host, mount));
        }
        // In the mount table, ext4 omits options that its superblock sets by default. This file
        // lists all options (ext4_seq_options_show in fs/ext4/super.c).
        if let [name, ..] = &self.counted[..]
            && filesystem.magic == EXT
            && let Ok(all) = host.read(&Path::new("/proc/fs/ext4").join(name).join("options"))
        {
            let all = all.lines().collect::<Vec<_>>().join(",");
            self.environment.set("mount.options.with_defaults", all);
        }
        if !filesystem.deferred_work.is_empty() {
            self.environment.set("deferred_work", &filesystem.deferred_work);
        }
        self.environment.merge(probe::profiles(&*host, &self.counted));
        for name in &self.counted {
            self.environment.merge(probe::device(&*host, name));
        }
    }
}

/// Storage devices that the instance uses.
fn share<'a>(rig: &'a Base, spec: &InstanceSpec<'_>) -> Result<Share<'a>, RigError> {
    let have = rig.backing.devices().len();
    let device_requirement =
        device_requirement(spec.level, spec.filesystem, spec.converted_to, have)?;
    Ok(rig.backing.first(device_requirement.devices).sized(size(spec)))
}

/// Size of the images, if the plan varies it.
fn size(spec: &InstanceSpec<'_>) -> Option<Bytes> {
    spec.settings.get(&SystemSetting::Size).and_then(Value::as_size)
}

/// Smallest device size that both the filesystem type and the type after a conversion support.
pub(super) fn min_size(spec: &InstanceSpec<'_>) -> Bytes {
    let min = spec.filesystem.min_size;
    spec.converted_to.map_or(min, |converted_to| converted_to.min_size.max(min))
}

/// Checks that the storage is suitable for the filesystem, its `setup`, and the isolation of the
/// plan.
fn check_fit(rig: &Base, spec: &InstanceSpec<'_>) -> Result<(), RigError> {
    let filesystem = spec.filesystem;
    let unfit = |hint| {
        let (filesystem, storage) = (filesystem.name.clone(), rig.describe());
        Err(RigError::Storage { filesystem, storage, hint })
    };
    let changes = !spec.level.setup.is_empty() || spec.converted_to.is_some();
    match (&rig.backing, filesystem.kind) {
        (Backing::Directory(_), Kind::Directory | Kind::Command) => {}
        (Backing::Directory(_), Kind::Block | Kind::Device | Kind::Memory) => {
            return unfit(
                "set `image_size` or `device` in `storage`, or use filesystem `directory`",
            );
        }
        (Backing::Images(_) | Backing::Devices(_), Kind::Directory | Kind::Command) => {
            return unfit("set `directory` in `storage`");
        }
        (Backing::Images(_) | Backing::Devices(_), Kind::Device) if !spec.fill_level.is_empty() => {
            return unfit("`fill_percent` requires a filesystem; remove `none` or `fill_percent`");
        }
        (Backing::Images(_) | Backing::Devices(_), Kind::Block | Kind::Device | Kind::Memory) => {}
    }
    if changes && !matches!(filesystem.kind, Kind::Block | Kind::Command) {
        return unfit("`setup` requires a filesystem on a device; remove `setup`");
    }
    let share = share(rig, spec)?;
    if size(spec).is_some() && share.images().is_empty() {
        return unfit("`size` requires images; remove it, or set `image_directory`");
    }
    if spec.isolation == Isolation::Reattach && share.images().is_empty() {
        return unfit("isolation `reattach` requires images; use remount or reboot");
    }
    let min = min_size(spec);
    let small = share.sizes().into_iter().find(|(_, size)| *size < min);
    // With layers, the size is checked later, because a layer may combine small devices.
    match small.filter(|_| spec.level.layers.is_empty()) {
        Some((device, size)) => {
            Err(RigError::TooSmall { filesystem: filesystem.name.clone(), device, size, min })
        }
        None => Ok(()),
    }
}
