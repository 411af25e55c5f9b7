//! Filesystem instance: a newly created filesystem that is mounted for one trial and removed
//! afterwards.

mod command;
mod fill;
mod layered;
mod make;
mod prepare;
mod step;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use model::{
    Bytes, Environment, FilesystemLevel, FillLevel, Isolation, Nanos, SystemSettings, Warning,
    record::Action, sample::lifecycle,
};

pub use self::step::Step;
use self::{command::Placement, step::RunningStep};
use crate::{
    activity::{ActivityMonitor, KernelLogMonitor},
    base::Shared,
    caches,
    catalog::Filesystem,
    error::RigError,
    host::{Host, Statistics, UnreadablePath},
    journaled_host::JournaledHost,
    layers::FaultTarget,
    mount::Mounting,
    settings::Quota,
    sysfs::{DeviceCounters, DeviceStat, name_of},
    undo,
};

/// Empty settings, for [`InstanceSpec::plain`].
static NO_SETTINGS: SystemSettings = SystemSettings::new();

/// Specification of an instance.
#[derive(Clone, Copy)]
pub struct InstanceSpec<'a> {
    /// Catalog entry of the filesystem type.
    pub filesystem: &'a Filesystem,
    /// Entry of `filesystem` in the plan.
    pub level: &'a FilesystemLevel,
    /// Catalog entry named by [`FilesystemLevel::converted_to`].
    pub converted_to: Option<&'a Filesystem>,
    /// I/O scheduler for the devices of the filesystem and all devices below them; `None`:
    /// unchanged.
    pub scheduler: Option<&'a str>,
    /// System settings to change; all others are unchanged.
    pub settings: &'a SystemSettings,
    /// Fill level of the filesystem when the workload starts.
    pub fill_level: FillLevel,
    /// Isolation of trials. With [`Isolation::Reattach`], images are detached and attached again
    /// before mkfs.
    pub isolation: Isolation,
    /// Function that creates a directory and writes a source tree with this number of files into
    /// it.
    pub populate: &'a dyn Fn(&Path, u64) -> Result<(), String>,
}

impl<'a> InstanceSpec<'a> {
    /// Specification without settings, filling, and conversion. If the `setup` of the level
    /// populates a source tree, the instance fails.
    pub fn plain(filesystem: &'a Filesystem, level: &'a FilesystemLevel) -> Self {
        Self {
            filesystem,
            level,
            converted_to: None,
            scheduler: None,
            settings: &NO_SETTINGS,
            fill_level: FillLevel(0),
            isolation: Isolation::Remount,
            populate: &|_, _| Err("this instance cannot populate source trees".into()),
        }
    }
}

/// Space of a new filesystem after `setup`, and the space that remains after filling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Space available to unprivileged users after the `setup` of the plan.
    pub available: Bytes,
    /// Space available to unprivileged users when the workload starts. The same as `available`,
    /// unless the plan fills the filesystem.
    pub remaining: Bytes,
    /// Total size of the storage devices used, below any layers. Without devices, the size that the
    /// filesystem reports.
    pub device_size: Bytes,
    /// Number of inodes; `None` if the filesystem creates inodes on demand.
    pub inodes: Option<u64>,
}

/// Space used by the files of a workload.
///
/// The two values have different sources. `used` is from statfs(2) and includes metadata, the
/// journal, and preallocated space. If the filesystem uses less space than before, `used` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceUsage {
    /// Increase of the used space since the start of the workload, that is, since the first mount
    /// or the end of the filling.
    pub used: Bytes,
    /// Total size of all regular files; a file with several hard links counts once.
    pub data: Bytes,
}

/// Result of [`MountedFilesystem::finish`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishReport {
    /// Lifecycle steps of the instance in order, from mkfs to fsck. Their names are defined in
    /// [`model::sample::lifecycle`].
    pub lifecycle: Vec<Step>,
    /// Description of the damage that fsck found; `None` if it found none or did not run.
    pub damage: Option<String>,
    /// Environment facts that are known only at the end, such as the state of a write log.
    pub facts: Environment,
    /// Warnings about the end of the instance.
    pub warnings: Vec<Warning>,
}

/// Mounted filesystem under test. [`MountedFilesystem::finish`] unmounts the filesystem and returns
/// the results. Dropping it undoes as many changes as possible.
#[derive(Debug)]
pub struct MountedFilesystem {
    shared: Arc<Shared>,
    /// Directory in which workloads run.
    directory: PathBuf,
    /// Directory on which the filesystem is mounted.
    mount_point: PathBuf,
    /// Mount parameters; `None` for a directory on an existing filesystem.
    mounting: Option<Mounting>,
    mounted: Option<undo::Step>,
    /// Daemons that the mount command started.
    daemons: Vec<u32>,
    /// Placement of a filesystem whose storage is a directory or a server; `None` for others.
    placement: Option<Placement>,
    /// Undo step of the directory that was created in a filesystem with other files, and its
    /// description.
    workspace: Option<(undo::Step, String)>,
    /// Undo steps of the changes other than the mount, oldest first, with descriptions.
    steps: Vec<(undo::Step, String)>,
    /// Devices whose faults start with the first measured phase, or whose log gets a mark then.
    fault_targets: Vec<FaultTarget>,
    /// Undo steps that end the active faults, with descriptions; `None` before the faults start.
    faults: Option<Vec<(undo::Step, String)>>,
    /// Devices of the filesystem: those on top of the layers, or the storage devices if there are
    /// no layers. Empty for a filesystem in memory and for a directory.
    devices: Vec<PathBuf>,
    /// Storage devices below the layers; empty without layers.
    lowest: Vec<PathBuf>,
    images: Vec<PathBuf>,
    /// Kernel names of the devices whose counters are read: those of the filesystem, or the device
    /// that contains the directory. The monitor finds the devices below them.
    counted: Vec<String>,
    /// Names of the kernel threads that do deferred work.
    threads: Vec<String>,
    in_memory: bool,
    /// True if there is no filesystem: workloads access the device.
    is_raw: bool,
    /// Open device if there is no filesystem. The kernel drops the page cache of a block device
    /// when it is closed the last time (`bdev_release` in block/bdev.c), unlike that of a mounted
    /// filesystem when a file is closed.
    opened: Option<File>,
    fsck: Option<(Vec<String>, Vec<i32>)>,
    lifecycle: Vec<Step>,
    space: Space,
    /// Used space when the workload starts.
    used_before: Bytes,
    /// Names in the root directory that do not belong to the workload, because they were created by
    /// the filesystem, by `setup`, or by filling.
    foreign: Vec<String>,
    options: String,
    environment: Environment,
    warnings: Vec<Warning>,
    /// CPU quota that emulates a CPU frequency; `None` if none is set.
    quota: Option<Quota>,
}

impl MountedFilesystem {
    /// Directory in which workloads run. It may already contain entries of the filesystem such as
    /// `lost+found`, files of the `setup` of the plan, and, if the filesystem was filled,
    /// `fslab-fill`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes workloads run in a directory that another host has created in the same filesystem. The
    /// directory of this instance is removed as before.
    pub fn share(&mut self, directory: PathBuf) {
        self.directory = directory;
    }

    /// Block device that workloads access instead of files in [`MountedFilesystem::directory`];
    /// `None` if there is a filesystem.
    pub fn raw_device(&self) -> Option<&Path> {
        self.devices.first().filter(|_| self.is_raw).map(PathBuf::as_path)
    }

    /// Lifecycle steps so far: mkfs, `setup`, and mount, as far as they were executed.
    pub fn lifecycle(&self) -> &[Step] {
        &self.lifecycle
    }

    /// Space after mkfs, `setup`, and filling.
    pub fn space(&self) -> Space {
        self.space
    }

    /// Mount options in effect, as reported by the kernel.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// Environment facts about this instance, such as its mount options and the settings of its
    /// devices.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Warnings that apply to all results of this instance.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Sets the number of workers of the next phase. The CPU quota that emulates a CPU frequency
    /// depends on this number. Returns a warning if the quota could not be changed. Without a
    /// quota, there is no effect.
    pub fn expect_workers(&self, workers: u32) -> Option<Warning> {
        let quota = self.quota.as_ref()?;
        let changed = quota.set_workers(&mut self.shared.journaled(), workers);
        changed.err().map(|found| Warning::SettingNotApplied {
            setting: "cpu_speed".into(),
            wanted: format!("a quota for {workers} workers"),
            found,
        })
    }

    /// Actions on the machine since the last call, each with its duration and error.
    pub fn take_actions(&self) -> Vec<Action> {
        self.shared.journaled().take_actions()
    }

    /// Sum of the I/O counters of the devices of the filesystem; `None` if a device is unknown or
    /// has no counters. For a directory, the counters include the I/O of other processes on the
    /// same device.
    pub fn counters(&self) -> Option<DeviceCounters> {
        let mut sum = DeviceCounters::default();
        for name in &self.counted {
            let counters = DeviceStat::read(&*self.shared.host, name)?.counters;
            sum.read = sum.read + counters.read;
            sum.written = sum.written + counters.written;
        }
        (!self.counted.is_empty()).then_some(sum)
    }

    /// Starts to record kernel log messages only, for example between phases.
    pub fn listen(&self) -> KernelLogMonitor {
        KernelLogMonitor::start(
            Arc::clone(&self.shared.host),
            &self.counted,
            &self.shared.monitor_cache,
        )
    }

    /// Starts to record system activity.
    pub fn monitor(&self) -> ActivityMonitor {
        ActivityMonitor::start(
            Arc::clone(&self.shared.host),
            &self.counted,
            &self.shared.monitor_cache,
        )
    }

    fn begin(&self, name: &'static str) -> RunningStep {
        RunningStep::begin(name, self.monitor())
    }

    /// Mounts the filesystem and records the step.
    fn mount_timed(&mut self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        let running = self.begin(lifecycle::MOUNT);
        let cost = self.mount(journaled)?;
        self.lifecycle.push(running.finish_stages(cost));
        Ok(())
    }

    /// Writes back the filesystem, or the page cache of the devices if there is none.
    fn sync(&self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        match self.is_raw {
            true => self.devices.iter().try_for_each(|device| caches::sync(journaled, device)),
            false => caches::sync(journaled, &self.directory),
        }
    }

    /// Syncs the filesystem and returns the space that the files of the workload use; `None` for a
    /// directory on an existing filesystem, and without a filesystem. stat(2) is called for all
    /// files, so their inodes are cached, and a later unmount has to free them.
    ///
    /// # Errors
    /// [`RigError::Unreadable`] if the filesystem or a directory cannot be read, and
    /// [`RigError::Caches`] if writeback fails.
    pub fn space_usage(&mut self) -> Result<Option<SpaceUsage>, RigError> {
        if self.mounting.is_none() || self.placement.is_some() {
            return Ok(None);
        }
        let mut journaled = self.shared.journaled();
        self.sync(&mut journaled)?;
        let used = statistics(&*self.shared.host, &self.directory)?.used() - self.used_before;
        let what = format!("add up the files below {}", self.directory.display());
        let foreign: Vec<&str> = self.foreign.iter().map(String::as_str).collect();
        let (data, _) = journaled.execute(what, |host| host.sizes(&self.directory, &foreign));
        let data =
            data.map_err(|UnreadablePath { path, source }| RigError::Unreadable { path, source })?;
        Ok(Some(SpaceUsage { used, data }))
    }

    /// Drops all data of the filesystem from memory, and checks that none is cached. Returns a
    /// warning if data is still cached.
    ///
    /// A filesystem on devices is synced and unmounted. Then the page caches of its devices and the
    /// kernel caches are dropped. Before the filesystem is mounted again with the same options, the
    /// cached pages of devices and images are counted. For a filesystem that a command mounts, the
    /// files of its data directory are evicted instead. A directory on an existing filesystem is
    /// synced, and its files are evicted one by one. Without a filesystem, the page caches of the
    /// devices and the kernel caches are dropped. As root, the kernel caches are dropped, too;
    /// without root, dentries and inodes stay cached. For a filesystem in memory, only a warning is
    /// returned.
    ///
    /// # Errors
    /// [`RigError`] if the filesystem cannot be unmounted or mounted again. Only
    /// [`MountedFilesystem::finish`] may be called then.
    pub fn drop_caches(&mut self) -> Result<Option<Warning>, RigError> {
        if self.in_memory {
            let reason = "the filesystem is in memory".into();
            return Ok(Some(Warning::CacheNotDropped { reason, needs_root: false }));
        }
        let shared = Arc::clone(&self.shared);
        let mut journaled = shared.journaled();
        let devices = [&self.devices[..], &self.lowest[..]].concat();
        if self.is_raw {
            self.sync(&mut journaled)?;
            return caches::drop_devices(&mut journaled, &devices, &self.images);
        }
        if self.mounting.is_none() {
            return caches::evict(&mut journaled, &self.directory);
        }
        if self.mounted.is_none() {
            return Err(RigError::NotMounted { target: self.mount_point.clone() });
        }
        self.sync(&mut journaled)?;
        self.unmount(&mut journaled)?;
        let kept = match &self.placement {
            Some(placement) => placement.drop_caches(&mut journaled, &*shared.host)?,
            None => caches::drop_devices(&mut journaled, &devices, &self.images)?,
        };
        self.mount(&mut journaled)?;
        Ok(kept)
    }

    /// Syncs the filesystem and waits until it is idle in three consecutive samples at intervals of
    /// 20 ms. Idle means that no I/O is in flight, and that no I/O was completed since the last
    /// sample. In addition, the kernel threads for deferred work must have used almost no CPU time.
    /// Returns a warning if the wait exceeds `limit`.
    ///
    /// # Errors
    /// [`RigError::Caches`] if writeback fails.
    pub fn wait_idle(&mut self, limit: Nanos) -> Result<Option<Warning>, RigError> {
        let shared = Arc::clone(&self.shared);
        let mut journaled = shared.journaled();
        self.sync(&mut journaled)?;
        // A cache or an array may still be busy when the filesystem is idle.
        let below = self.lowest.iter().map(|device| name_of(device));
        let working: Vec<String> = self.counted.iter().cloned().chain(below).collect();
        let idle = caches::wait_idle(&*shared.host, &working, &self.threads, limit);
        if !idle.active.is_empty() {
            let names = idle.active.into_iter().collect::<Vec<_>>().join(" ");
            self.environment.set("deferred_work.waited_for", &names);
            journaled.note(format!("wait for {names}"), idle.waited);
        }
        Ok(idle.warning)
    }

    /// Unmounts the filesystem, runs fsck if requested, and undoes the changes made for this
    /// instance.
    ///
    /// # Errors
    /// [`RigError`] if the unmount, the end of the faults, the start of fsck, or an undo fails. The
    /// remaining changes are undone with those of the rig or by `fslab clean`.
    pub fn finish(mut self, fsck: bool) -> Result<FinishReport, RigError> {
        let shared = Arc::clone(&self.shared);
        let mut journaled = shared.journaled();
        if let Some((step, what)) = &self.workspace {
            journaled.undo(*step, what)?;
            self.workspace = None;
        }
        if self.mounted.is_some() {
            let running = self.begin(lifecycle::UMOUNT);
            let cost = self.unmount(&mut journaled)?;
            self.lifecycle.push(running.finish_stages(cost));
        }
        let (facts, warnings) = self.end_faults(&mut journaled)?;
        let mut damage = None;
        if let Some((argv, clean)) = self.fsck.take().filter(|_| fsck) {
            let running = self.begin(lifecycle::FSCK);
            let output = journaled.run(&argv)?;
            self.lifecycle.push(running.finish_program(&output));
            let is_clean = output.status.is_some_and(|status| clean.contains(&status));
            damage = (!is_clean).then(|| format!("{} {}", argv[0], output.verdict()));
        }
        let undone = self.undo(&mut journaled);
        drop(journaled);
        undone?;
        let lifecycle = std::mem::take(&mut self.lifecycle);
        Ok(FinishReport { lifecycle, damage, facts, warnings })
    }

    /// Undoes all open changes, newest first. Continues after an error and returns the first one.
    /// Faults that are still active are ended before the unmount.
    fn undo(&mut self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        let mut answer = Ok(());
        self.opened = None;
        let mounted = self.mounted.take().map(|step| (step, "mount".to_owned()));
        let faults = self.faults.take().unwrap_or_default();
        let above = faults.into_iter().chain(self.workspace.take());
        for (step, what) in above.rev() {
            answer = answer.and(journaled.undo(step, what));
        }
        if let Some((step, what)) = mounted {
            answer = answer.and(journaled.undo(step, what));
            journaled.wait_for_exit(&std::mem::take(&mut self.daemons));
        }
        for (step, what) in self.steps.drain(..).rev() {
            answer = answer.and(journaled.undo(step, what));
        }
        answer
    }
}

impl Drop for MountedFilesystem {
    fn drop(&mut self) {
        let shared = Arc::clone(&self.shared);
        let undone = self.undo(&mut shared.journaled());
        match undone {
            Ok(()) => shared.occupied.store(false, Ordering::Release),
            // The storage remains occupied, because it must not be formatted while it may be
            // mounted.
            Err(error) => tracing::warn!(%error, "an instance was not removed completely"),
        }
    }
}

fn statistics(host: &dyn Host, path: &Path) -> Result<Statistics, RigError> {
    host.statistics(path).map_err(|source| RigError::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
