//! One instance: a newly created filesystem, mounted for one trial and removed afterwards.

mod fill;
mod layered;
mod make;
mod prepare;
mod step;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use model::{
    Bytes, Environment, FilesystemLevel, FillLevel, Isolation, Nanos, SystemSettings, Warning,
    record::Action, sample::lifecycle,
};

use self::step::RunningStep;
pub use self::step::Step;
use crate::{
    activity::{ActivityMonitor, KernelLogMonitor},
    base::Shared,
    caches,
    catalog::Filesystem,
    error::RigError,
    host::{Host, Statistics, UnreadablePath},
    journaled_host::JournaledHost,
    layers::FaultTarget,
    mount::MountRequest,
    settings::Quota,
    sysfs::{DeviceCounters, DeviceStat, name_of},
    undo,
};

/// No settings.
static NO_SETTINGS: SystemSettings = SystemSettings::new();

/// Specification of an instance.
#[derive(Clone, Copy)]
pub struct InstanceSpec<'a> {
    /// Catalog entry from which it is created.
    pub filesystem: &'a Filesystem,
    /// Level of the plan's axis.
    pub level: &'a FilesystemLevel,
    /// Catalog entry named by [`FilesystemLevel::converted_to`].
    pub converted_to: Option<&'a Filesystem>,
    /// I/O scheduler of every device of the stack; `None`: unchanged.
    pub scheduler: Option<&'a str>,
    /// System settings; missing ones are unchanged.
    pub settings: &'a SystemSettings,
    /// Fill level when the workload starts.
    pub fill_level: FillLevel,
    /// Isolation: images may be detached and reattached before mkfs.
    pub isolation: Isolation,
    /// Writes a source tree with this many files into a directory, which it creates.
    pub populate: &'a dyn Fn(&Path, u64) -> Result<(), String>,
}

impl<'a> InstanceSpec<'a> {
    /// A catalog entry without further options; a level with `populate_files` fails.
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

/// Space of a new filesystem after `setup`, and the space left after filling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Space available to unprivileged users, without the files of the plan's `setup`.
    pub available: Bytes,
    /// Part of it that is left when the workload starts: all, unless the plan fills the filesystem.
    pub remaining: Bytes,
    /// Total size of the storage devices used, regardless of layers; without devices, the size
    /// reported by the filesystem.
    pub device_size: Bytes,
    /// Inodes; `None` if they are created on demand.
    pub inodes: Option<u64>,
}

/// Space used by the files of a workload.
///
/// The two values have different sources. `used` is from statfs(2) and includes metadata, journal,
/// and preallocated space; it is 0 if less space is used than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceUsage {
    /// Space used in addition to that at the start of the workload: after the first mount, or after
    /// filling.
    pub used: Bytes,
    /// Total size of all regular files; a file with several hard links counts once.
    pub data: Bytes,
}

/// Result of the end of an instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishReport {
    /// Lifecycle steps, named as in [`model::sample::lifecycle`], in order.
    pub lifecycle: Vec<Step>,
    /// Damage found by fsck.
    pub damage: Option<String>,
    /// Facts known only at the end, such as the state of a write log.
    pub facts: Environment,
    /// Warnings about the end of the instance.
    pub warnings: Vec<Warning>,
}

/// Mounted filesystem under test. [`MountedFilesystem::finish`] unmounts it and reports the result;
/// dropping it undoes as much as possible.
#[derive(Debug)]
pub struct MountedFilesystem {
    shared: Arc<Shared>,
    /// Directory in which workloads run.
    directory: PathBuf,
    /// Mount parameters; `None` for a directory of an existing filesystem.
    request: Option<MountRequest>,
    mounted: Option<undo::Step>,
    /// Other changes, oldest first.
    steps: Vec<(undo::Step, String)>,
    /// Layers whose faults begin with the first measured phase.
    fault_targets: Vec<FaultTarget>,
    /// Changes that end the active faults.
    faults: Option<Vec<(undo::Step, String)>>,
    /// Devices of the filesystem, possibly created by layers; empty without dedicated devices.
    devices: Vec<PathBuf>,
    /// Storage devices below the layers; empty without layers.
    lowest: Vec<PathBuf>,
    images: Vec<PathBuf>,
    /// Names of the devices whose counters are read: those of the filesystem. The monitor finds the
    /// devices below them.
    counted: Vec<String>,
    /// Names of the kernel threads that do deferred work.
    threads: Vec<String>,
    in_memory: bool,
    fsck: Option<(Vec<String>, Vec<i32>)>,
    lifecycle: Vec<Step>,
    space: Space,
    /// Space used when the workload starts.
    used_before: Bytes,
    /// Names in the root directory that do not belong to the workload: created by the filesystem,
    /// by `setup`, or by filling.
    foreign: Vec<String>,
    options: String,
    environment: Environment,
    warnings: Vec<Warning>,
    /// CPU quota that emulates a CPU frequency, if any.
    quota: Option<Quota>,
}

impl MountedFilesystem {
    /// Directory in which workloads run. It may contain files of the filesystem such as
    /// `lost+found`, files of the plan's `setup`, and `fslab-fill` if it was filled.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Steps so far: mkfs, setup, and mount, if there were any.
    pub fn lifecycle(&self) -> &[Step] {
        &self.lifecycle
    }

    /// Space after mkfs and `setup`.
    pub fn space(&self) -> Space {
        self.space
    }

    /// Mount options in effect, as reported by the kernel.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// Facts about this instance: mount options, settings of its devices.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Warnings that apply to all results of this instance.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Announces the number of workers of the next phase: an emulated CPU frequency is a quota that
    /// depends on it. `Some` if the quota could not be changed.
    pub fn expect_workers(&self, workers: u32) -> Option<Warning> {
        let quota = self.quota.as_ref()?;
        let changed = quota.set_workers(&mut self.shared.journaled(), workers);
        changed.err().map(|found| Warning::SettingNotApplied {
            setting: "cpu_speed".into(),
            wanted: format!("a quota for {workers} workers"),
            found,
        })
    }

    /// Actions on the machine since the last call.
    pub fn take_actions(&self) -> Vec<Action> {
        self.shared.journaled().take_actions()
    }

    /// I/O counters of its devices; `None` if a device is unknown or has no counters. For a
    /// directory, they include the I/O of other processes on its device.
    pub fn counters(&self) -> Option<DeviceCounters> {
        let mut sum = DeviceCounters::default();
        for name in &self.counted {
            let counters = DeviceStat::read(&*self.shared.host, name)?.counters;
            sum.read = sum.read + counters.read;
            sum.written = sum.written + counters.written;
        }
        (!self.counted.is_empty()).then_some(sum)
    }

    /// Starts to record kernel log messages.
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

    /// Starts a step.
    fn begin(&self, name: &'static str) -> RunningStep {
        RunningStep::begin(name, self.monitor())
    }

    /// Mounts the filesystem and records the step.
    fn mount_timed(&mut self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        let running = self.begin(lifecycle::MOUNT);
        let elapsed = self.mount(journaled)?;
        self.lifecycle.push(running.finish_call(elapsed));
        Ok(())
    }

    fn mount(&mut self, journaled: &mut JournaledHost) -> Result<Nanos, RigError> {
        let Some(request) = &self.request else { return Ok(Nanos(0)) };
        let (step, elapsed) = journaled.mount(request)?;
        self.mounted = Some(step);
        Ok(elapsed)
    }

    fn unmount(&mut self, journaled: &mut JournaledHost) -> Result<Nanos, RigError> {
        let target = || self.directory.clone();
        let step = self.mounted.ok_or_else(|| RigError::NotMounted { target: target() })?;
        let elapsed = journaled.unmount(step, &self.directory)?;
        self.mounted = None;
        Ok(elapsed)
    }

    /// Space used by the files at this time, after a sync; `None` for a filesystem not created by
    /// fslab. Reading the attributes of all files caches their inodes, which a later unmount has to
    /// free.
    ///
    /// # Errors
    /// [`RigError::Unreadable`] if the filesystem or a directory cannot be read, and
    /// [`RigError::Caches`] if writeback fails.
    pub fn space_usage(&mut self) -> Result<Option<SpaceUsage>, RigError> {
        if self.request.is_none() {
            return Ok(None);
        }
        let mut journaled = self.shared.journaled();
        caches::sync(&mut journaled, &self.directory)?;
        let used = statistics(&*self.shared.host, &self.directory)?.used() - self.used_before;
        let what = format!("add up the files below {}", self.directory.display());
        let foreign: Vec<&str> = self.foreign.iter().map(String::as_str).collect();
        let (data, _) = journaled.execute(what, |host| host.sizes(&self.directory, &foreign));
        let data =
            data.map_err(|UnreadablePath { path, source }| RigError::Unreadable { path, source })?;
        Ok(Some(SpaceUsage { used, data }))
    }

    /// Drops everything of the filesystem from memory, and checks that nothing is left.
    ///
    /// With devices: sync, unmount, flush the device caches, drop the kernel caches, and mount
    /// again with the same options. The check is made while unmounted: neither devices nor images
    /// may have cached pages. With a directory: sync and evict file by file, and drop the kernel
    /// caches if root; without root, dentries and inodes stay cached. `Some` describes the data
    /// still cached.
    ///
    /// # Errors
    /// [`RigError`] if it cannot be unmounted or mounted again; it can only be finished then.
    pub fn drop_caches(&mut self) -> Result<Option<Warning>, RigError> {
        if self.in_memory {
            let reason = "the filesystem is in memory".into();
            return Ok(Some(Warning::CacheNotDropped { reason, needs_root: false }));
        }
        let shared = Arc::clone(&self.shared);
        let mut journaled = shared.journaled();
        if self.request.is_none() {
            return caches::evict(&mut journaled, &self.directory);
        }
        if self.mounted.is_none() {
            return Err(RigError::NotMounted { target: self.directory.clone() });
        }
        caches::sync(&mut journaled, &self.directory)?;
        self.unmount(&mut journaled)?;
        let devices = [&self.devices[..], &self.lowest[..]].concat();
        let kept = caches::drop_devices(&mut journaled, &devices, &self.images)?;
        self.mount(&mut journaled)?;
        Ok(kept)
    }

    /// Syncs and waits until the devices are idle (no I/O in flight and none completed over three
    /// short samples in a row), and until the kernel threads that do deferred work use almost no
    /// CPU time over the same samples. `Some` if this takes longer than `limit`.
    ///
    /// # Errors
    /// [`RigError::Caches`] if writeback fails.
    pub fn wait_idle(&mut self, limit: Nanos) -> Result<Option<Warning>, RigError> {
        let shared = Arc::clone(&self.shared);
        let mut journaled = shared.journaled();
        caches::sync(&mut journaled, &self.directory)?;
        // A cache or an array may still work when the filesystem is already idle.
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

    /// Unmounts, runs fsck if requested, and undoes the changes for this instance.
    ///
    /// # Errors
    /// [`RigError::Unmount`] or [`RigError::Undo`]; the remaining changes are undone with the rig
    /// or by `fslab clean`.
    pub fn finish(mut self, fsck: bool) -> Result<FinishReport, RigError> {
        let shared = Arc::clone(&self.shared);
        let mut journaled = shared.journaled();
        if self.mounted.is_some() {
            let running = self.begin(lifecycle::UMOUNT);
            let elapsed = self.unmount(&mut journaled)?;
            self.lifecycle.push(running.finish_call(elapsed));
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

    /// Undoes all open changes, newest first; continues after a failure and returns the first
    /// error. Faults of devices are removed before the unmount.
    fn undo(&mut self, journaled: &mut JournaledHost) -> Result<(), RigError> {
        let mut answer = Ok(());
        let mounted = self.mounted.take().map(|step| (step, "mount".to_owned()));
        let faults = self.faults.take().unwrap_or_default();
        for (step, what) in self.steps.drain(..).chain(mounted).chain(faults).rev() {
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
            // The storage stays occupied: it must not be formatted while it may still be mounted.
            Err(error) => tracing::warn!(%error, "an instance was not removed completely"),
        }
    }
}

fn statistics(host: &dyn Host, path: &Path) -> Result<Statistics, RigError> {
    host.statistics(path).map_err(|source| RigError::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
